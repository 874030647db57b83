// SPDX-License-Identifier: Apache-2.0
//
// Texts for XML and HTML, and figures for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rrfp::trace {

/// The text with bytes that are not UTF-8 replaced.
[[nodiscard]] std::string clean_utf8(const std::string& text);
/// Fit for the content of an element and for a quoted attribute: no markup is left, and none of the
/// characters that XML forbids.
[[nodiscard]] std::string escaped(const std::string& text);
/// "%.*f", whatever the locale.
[[nodiscard]] std::string decimal(double value, int decimals);
/// "1.234 ms", "12.3 s": with about four digits.
[[nodiscard]] std::string duration(int64_t ns);

}  // namespace rrfp::trace
