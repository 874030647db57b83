// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/hints.h"

#include <algorithm>
#include <filesystem>

#include "capi/cli/files.h"

namespace rrfp::cli {

const std::vector<std::string>& known_hints() {
  static const std::vector<std::string> names = {
      "gpipe",      "1f1b",           "bf",   "bfw",     "zb-h1", "zb-h2",    "interleaved",
      "looped-bfs", "interleaved-zb", "zb-v", "v-half",  "v-min", "dualpipe", "dualpipe-v",
      "rf-1",       "rf-v",           "rf-m", "bfw-sort"};
  return names;
}

bool is_hint_name(const std::string& name, const std::vector<std::string>& names) {
  const size_t colon = name.find(':');
  const std::string base = name.substr(0, colon);
  const bool may_have_size = base == "interleaved" || base == "interleaved-zb";
  return (colon == std::string::npos || may_have_size) &&
         std::find(names.begin(), names.end(), base) != names.end();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Hint load_hint(const std::string& label, const std::string& name) {
  if (is_hint_name(name, known_hints())) {
    return labelled(label, [&] { return create<Hint>(rrfp_hint_create, name.c_str()); });
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(name, ignored)) {
    bad_input(label + " is neither a known hint (" + joined(known_hints()) + ") nor a file");
  }
  const std::string text = read_file(label, name);
  return labelled(
      label, [&] { return create<Hint>(rrfp_hint_create_from_text, text.data(), text.size()); });
}

std::string chosen_hint(const std::string& description) {
  // "rf-1 of rf-1 12.3 ms, ..." or "rf-1, until a step has been measured"
  return description.substr(0, std::min(description.find(" of "), description.find(',')));
}

rrfp_order order_of(const std::string& name) {
  if (name == "paired") return RRFP_ORDER_PAIRED;
  return name == "strict" ? RRFP_ORDER_STRICT : RRFP_ORDER_READY;
}

rrfp_injection injection_of(const std::string& name) {
  if (name == "tent") return RRFP_INJECTION_TENT;
  return name == "data" ? RRFP_INJECTION_DATA : RRFP_INJECTION_DEFAULT;
}

rrfp_placement placement_of(const std::string& name) {
  if (name == "loop") return RRFP_PLACEMENT_LOOP;
  return name == "v" ? RRFP_PLACEMENT_V : RRFP_PLACEMENT_LINEAR;
}

std::string placement_name(rrfp_placement placement) {
  if (placement == RRFP_PLACEMENT_LOOP) return "loop";
  return placement == RRFP_PLACEMENT_V ? "v" : "linear";
}

}  // namespace rrfp::cli
