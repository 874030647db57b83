// SPDX-License-Identifier: Apache-2.0
//
// Policies with a name: a hint, how it is used, and the layout and injection that it was made for.
// What each gives, and when it loses: engine/sim/STUDY.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/core/graph.h"
#include "engine/core/plan.h"

namespace rrfp::core {

struct NamedPolicy {
  std::string_view name;
  std::string_view hint;  // a named schedule (hint.h)
  Policy policy;          // order, hold_permille, roomy_permille, reserve_permille
  Placement placement = Placement::kLinear;
  int32_t chunks = 1;  // stages per rank
  bool tent = false;   // made for microbatches injected by size, short ... long ... short
};

/// rf-1     one stage per rank, ranked by ZB-H1, holds
/// rf-v     two stages in V placement; backward before forward before weight gradient, keeps room
///          for the deeper stage
/// rf-m     V placement, ranked by ZB-V while memory is tight and by kind while it is roomy, holds
/// bfw-sort one stage per rank, backward before forward before weight gradient
[[nodiscard]] std::span<const NamedPolicy> named_policies();
/// Null if there is none of that name.
[[nodiscard]] const NamedPolicy* find_policy(std::string_view name);

/// The layout that a named schedule or policy was made for; those that take any are given the
/// linear one.
struct ScheduleLayout {
  Placement placement = Placement::kLinear;
  int32_t chunks = 1;   // the usual number, where any is possible
  int32_t streams = 1;  // 2: two chains that run through the ranks in opposite directions
};
[[nodiscard]] ScheduleLayout layout_of(std::string_view name);

}  // namespace rrfp::core
