// SPDX-License-Identifier: Apache-2.0
//
// From an order that may name more than a step has to the order of the tasks that it has. Lists,
// priorities and the published schedules all go through here, so a skipped microbatch or a frozen
// stage means the same for each of them.
#pragma once

#include <vector>

#include "engine/core/step_tasks.h"

namespace rrfp::core {

/// Which of the kinds of one (stage, microbatch) have been seen.
struct Seen {
  bool kind[4] = {};

  [[nodiscard]] bool has(TaskKind k) const { return kind[static_cast<size_t>(k)]; }
  void add(TaskKind k) { kind[static_cast<size_t>(k)] = true; }
};

class OrderBinder {
 public:
  OrderBinder(const StepTasks& tasks, RankId rank);

  /// Appends the task as the step has it: not at all if it is skipped or frozen away, as I where
  /// there is no weight gradient. Refuses what does not belong to the rank or to the step.
  Status add(const Task& task, std::vector<Task>& out);
  /// That every task which the step has on this rank was added.
  [[nodiscard]] Status check_complete() const;

 private:
  static constexpr size_t kElsewhere = SIZE_MAX;

  [[nodiscard]] size_t cell(StageId s, MicrobatchId i) const {
    return slot_[s.index()] * static_cast<size_t>(tasks_.microbatches()) + i.index();
  }
  [[nodiscard]] Status missing(StageId s, MicrobatchId i, const char* what) const;

  const StepTasks& tasks_;
  RankId rank_;
  std::vector<size_t> slot_;  // [stage]: which chunk of the rank it is
  std::vector<Seen> seen_;    // [chunk][microbatch]
};

}  // namespace rrfp::core
