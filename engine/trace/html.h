// SPDX-License-Identifier: Apache-2.0
//
// A timeline as one page that needs nothing else: zoom, hover, legend, totals. It loads nothing
// from anywhere, and no text of the timeline can become markup or script.
#pragma once

#include <string>

#include "engine/trace/timeline.h"

namespace rrfp::trace {

[[nodiscard]] std::string to_html(const Timeline& timeline);

}  // namespace rrfp::trace
