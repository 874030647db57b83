// SPDX-License-Identifier: Apache-2.0
//
// When each rank would run each task of its list, with instant messages and given costs: a model of
// strict order without a RankCore, by which orders can be measured and compared with closed forms.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/step_tasks.h"

namespace rrfp::test {

struct UnitCosts {
  int64_t forward = 1;
  int64_t input_gradient = 1;
  int64_t weight_gradient = 1;
  int64_t pair = 2;  // of a forward and a backward that overlap: they start and end together
};

struct UnitReplay {
  bool done = false;  // false: some rank waits for ever
  std::string stall;  // then: the first task of each list that could not start
  int64_t makespan = 0;
  std::vector<int64_t> span;  // by rank: from the start of its first task to the end of its last
  std::vector<int64_t> peak;  // by rank: most forwards whose B or W was not done
};

/// One list for each rank; every task starts as soon as its rank is free and what it needs is done.
[[nodiscard]] UnitReplay unit_replay(const core::StepTasks& tasks,
                                     std::span<const std::vector<core::Task>> lists,
                                     const UnitCosts& costs = {});
/// The same with cells of one or two tasks; two tasks of a cell are a pair.
[[nodiscard]] UnitReplay unit_replay(const core::StepTasks& tasks,
                                     std::span<const std::vector<std::vector<core::Task>>> rows,
                                     const UnitCosts& costs = {});

}  // namespace rrfp::test
