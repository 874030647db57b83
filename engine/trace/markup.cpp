// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/markup.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace rrfp::trace {

std::string clean_utf8(const std::string& text) {
  using Json = nlohmann::json;
  const std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : clean_utf8(text)) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  for (const std::string_view forbidden : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (size_t at = out.find(forbidden); at != std::string::npos; at = out.find(forbidden, at)) {
      out.replace(at, forbidden.size(), "?");
    }
  }
  return out;
}

std::string decimal(double value, int decimals) {
  std::array<char, 400> text{};  // also for the largest double
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::fixed, decimals);
  return {text.data(), end.ptr};
}

std::string duration(int64_t ns) {
  constexpr struct {
    double ns;
    const char* name;
  } kUnits[] = {{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}};
  const auto value = static_cast<double>(ns);
  for (const auto& unit : kUnits) {
    if (value < unit.ns && unit.ns > 1) continue;
    const double figure = value / unit.ns;
    const int decimals = unit.ns == 1 ? 0 : figure < 10 ? 3 : figure < 100 ? 2 : 1;
    return decimal(figure, decimals) + unit.name;
  }
  return {};
}

}  // namespace rrfp::trace
