// SPDX-License-Identifier: Apache-2.0
//
// The files of engine/trace/page, as they are; the build makes their texts (embed.py).
#pragma once

#include <string_view>

namespace rrfp::trace {

extern const std::string_view kPageTemplate;  // with @TITLE@, @STYLE@, @DATA@ and @SCRIPT@
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace rrfp::trace
