// SPDX-License-Identifier: Apache-2.0
#include "tests/support/unit_replay.h"

#include <algorithm>

namespace rrfp::test {

using core::EdgeId;
using core::MicrobatchId;
using core::StageId;
using core::Task;
using core::TaskKind;

namespace {

constexpr int64_t kNotDone = -1;

class Times {
 public:
  Times(const core::StepTasks& tasks, const UnitCosts& costs)
      : tasks_(tasks),
        costs_(costs),
        end_(static_cast<size_t>(tasks.graph().stage_count()) *
                 static_cast<size_t>(tasks.microbatches()) * 2,
             kNotDone) {}

  /// The earliest time by which all that the task needs is done; kNotDone if that is unknown.
  [[nodiscard]] int64_t ready(const Task& task) const {
    const auto& graph = tasks_.graph();
    int64_t at = 0;
    const auto need = [&](StageId s, bool forward) {
      const int64_t end = end_[cell(s, task.microbatch, forward)];
      at = end == kNotDone || at == kNotDone ? kNotDone : std::max(at, end);
    };
    if (task.kind == TaskKind::kForward) {
      for (EdgeId e : graph.in_edges(task.stage)) {
        if (tasks_.active(e, task.microbatch)) need(graph.edge(e).from, true);
      }
      return at;
    }
    if (task.kind == TaskKind::kWeightGradient) {
      need(task.stage, false);
      return at;
    }
    need(task.stage, true);
    for (EdgeId e : graph.out_edges(task.stage)) {
      if (tasks_.returns(e, task.microbatch)) need(graph.edge(e).to, false);
    }
    return at;
  }

  [[nodiscard]] int64_t cost(const Task& task) const {
    switch (task.kind) {
      case TaskKind::kForward: return costs_.forward;
      case TaskKind::kInputGradient: return costs_.input_gradient;
      case TaskKind::kBackward: return costs_.input_gradient + costs_.weight_gradient;
      case TaskKind::kWeightGradient: return costs_.weight_gradient;
    }
    return 0;
  }

  /// Returns when the cell ends.
  int64_t run(const std::vector<Task>& cell_tasks, int64_t start) {
    const int64_t end = start + (cell_tasks.size() == 2 ? costs_.pair : cost(cell_tasks.front()));
    for (const Task& task : cell_tasks) {
      if (task.kind == TaskKind::kWeightGradient) continue;
      end_[cell(task.stage, task.microbatch, task.kind == TaskKind::kForward)] = end;
    }
    return end;
  }

 private:
  [[nodiscard]] size_t cell(StageId s, MicrobatchId i, bool forward) const {
    return (s.index() * static_cast<size_t>(tasks_.microbatches()) + i.index()) * 2 +
           (forward ? 0 : 1);
  }

  const core::StepTasks& tasks_;
  UnitCosts costs_;
  std::vector<int64_t> end_;  // [stage][microbatch][F, B or I]
};

int64_t peak_of(const std::vector<std::vector<Task>>& row) {
  int64_t held = 0;
  int64_t peak = 0;
  for (const auto& cell : row) {
    for (const Task& task : cell) {
      held += task.kind == TaskKind::kForward ? 1 : 0;
      peak = std::max(peak, held);
      held -= task.kind == TaskKind::kBackward || task.kind == TaskKind::kWeightGradient ? 1 : 0;
    }
  }
  return peak;
}

/// When the tasks of the cell can all start; kNotDone if that is unknown.
int64_t ready_at(const Times& times, const std::vector<Task>& cell) {
  int64_t at = 0;
  for (const Task& task : cell) {
    const int64_t ready = times.ready(task);
    if (ready == kNotDone) return kNotDone;
    at = std::max(at, ready);
  }
  return at;
}

}  // namespace

UnitReplay unit_replay(const core::StepTasks& tasks, std::span<const std::vector<Task>> lists,
                       const UnitCosts& costs) {
  std::vector<std::vector<std::vector<Task>>> rows(lists.size());
  for (size_t r = 0; r < lists.size(); ++r) {
    for (const Task& task : lists[r]) rows[r].push_back({task});
  }
  return unit_replay(tasks, rows, costs);
}

UnitReplay unit_replay(const core::StepTasks& tasks,
                       std::span<const std::vector<std::vector<Task>>> rows,
                       const UnitCosts& costs) {
  UnitReplay replay;
  Times times(tasks, costs);
  std::vector<size_t> next(rows.size(), 0);
  std::vector<int64_t> free(rows.size(), 0);
  std::vector<int64_t> first(rows.size(), kNotDone);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (; next[r] < rows[r].size(); ++next[r]) {
        const int64_t ready = ready_at(times, rows[r][next[r]]);
        if (ready == kNotDone) break;
        const int64_t start = std::max(ready, free[r]);
        if (first[r] == kNotDone) first[r] = start;
        free[r] = times.run(rows[r][next[r]], start);
        moved = true;
      }
    }
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    replay.span.push_back(free[r] - std::max(first[r], int64_t{0}));
    replay.peak.push_back(peak_of(rows[r]));
    replay.makespan = std::max(replay.makespan, free[r]);
    if (next[r] == rows[r].size()) continue;
    replay.stall += (replay.stall.empty() ? "rank " : ", rank ") + std::to_string(r) + " at " +
                    to_string(rows[r][next[r]].front());
  }
  replay.done = replay.stall.empty();
  return replay;
}

}  // namespace rrfp::test
