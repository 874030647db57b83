// SPDX-License-Identifier: Apache-2.0
//
// Names of hints, orders and placements as they are written on the command line.
#pragma once

#include <string>
#include <vector>

#include "capi/cli/api.h"

namespace rrfp::cli {

/// The names that rrfp_hint_create knows.
const std::vector<std::string>& known_hints();
/// Whether a name is one of `names`, or one of the interleaved schedules with a group size, such as
/// interleaved:3. Whether the size is a good one is for the library to say.
bool is_hint_name(const std::string& name, const std::vector<std::string>& names);
/// "a, b, c"
std::string joined(const std::vector<std::string>& words);

/// A named hint, or one that a file of schedule text spells. `label` is what errors call it, such
/// as "--hint zb-h1".
Hint load_hint(const std::string& label, const std::string& name);

/// What ran, from the line in which the library says so. Where it has chosen among several ways the
/// line goes on after the name.
std::string chosen_hint(const std::string& description);
inline bool is_choice(const std::string& description) {
  return chosen_hint(description) != description;
}

rrfp_order order_of(const std::string& name);
rrfp_injection injection_of(const std::string& name);
rrfp_placement placement_of(const std::string& name);
std::string placement_name(rrfp_placement placement);

}  // namespace rrfp::cli
