// SPDX-License-Identifier: Apache-2.0
#include "tests/support/strict_replay.h"

#include <algorithm>
#include <set>
#include <vector>

namespace rrfp::test {

using core::EdgeId;
using core::MicrobatchId;
using core::RankId;
using core::StageId;
using core::Task;
using core::TaskKind;

namespace {

class Replay {
 public:
  Replay(const core::StepTasks& tasks, bool deterministic)
      : tasks_(tasks), deterministic_(deterministic) {}

  /// Does the task, or says that it has to wait.
  bool run(const Task& task) {
    const StageId s = task.stage;
    const MicrobatchId i = task.microbatch;
    const bool fused = tasks_.graph().stage(s).fused_only;
    switch (task.kind) {
      case TaskKind::kForward:
        if (!forward_inputs_done(s, i)) return false;
        done_.insert(task);
        return true;
      case TaskKind::kWeightGradient:
        if (fused) return true;  // was done by its backward
        if (!done(s, i, TaskKind::kInputGradient) || !turn(s, i)) return false;
        weight_done(s, i);
        return true;
      default: break;
    }
    if (!done(s, i, TaskKind::kForward) || !gradients_done(s, i)) return false;
    const bool weight = tasks_.weight(s, i);
    const bool whole = weight && (fused || task.kind == TaskKind::kBackward);
    if (whole && fused && !turn(s, i)) return false;
    done_.insert({s, i, TaskKind::kInputGradient});
    if (whole) owed_.insert({s, i, TaskKind::kWeightGradient});
    pay(s);
    return true;
  }

 private:
  [[nodiscard]] bool done(StageId s, MicrobatchId i, TaskKind kind) const {
    return done_.contains({s, i, kind});
  }

  [[nodiscard]] bool turn(StageId s, MicrobatchId i) const {
    for (int32_t k = 0; deterministic_ && k < i.value; ++k) {
      if (tasks_.weight(s, MicrobatchId(k)) &&
          !done(s, MicrobatchId(k), TaskKind::kWeightGradient)) {
        return false;
      }
    }
    return true;
  }

  void weight_done(StageId s, MicrobatchId i) {
    done_.insert({s, i, TaskKind::kWeightGradient});
    pay(s);
  }

  /// Weight halves of the stage that wait for nothing but their turn.
  void pay(StageId s) {
    for (int32_t k = 0; k < tasks_.microbatches(); ++k) {
      const Task task = {s, MicrobatchId(k), TaskKind::kWeightGradient};
      if (!owed_.contains(task) || !turn(s, task.microbatch)) continue;
      owed_.erase(task);
      done_.insert(task);
    }
  }

  [[nodiscard]] bool forward_inputs_done(StageId s, MicrobatchId i) const {
    const auto ins = tasks_.graph().in_edges(s);
    return std::all_of(ins.begin(), ins.end(), [&](EdgeId e) {
      return !tasks_.active(e, i) || done(tasks_.graph().edge(e).from, i, TaskKind::kForward);
    });
  }

  [[nodiscard]] bool gradients_done(StageId s, MicrobatchId i) const {
    const auto outs = tasks_.graph().out_edges(s);
    return std::all_of(outs.begin(), outs.end(), [&](EdgeId e) {
      return !tasks_.returns(e, i) || done(tasks_.graph().edge(e).to, i, TaskKind::kInputGradient);
    });
  }

  const core::StepTasks& tasks_;
  bool deterministic_;
  std::set<Task> done_;
  std::set<Task> owed_;
};

}  // namespace

bool can_be_obeyed(const core::StepTasks& tasks, const core::Hint& hint, bool deterministic) {
  std::vector<std::vector<Task>> lists(static_cast<size_t>(tasks.graph().ranks()));
  for (size_t r = 0; r < lists.size(); ++r) {
    if (!hint.order(tasks, RankId::of(r), lists[r]).ok()) return false;
  }
  Replay replay(tasks, deterministic);
  std::vector<size_t> next(lists.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < lists.size(); ++r) {
      while (next[r] < lists[r].size() && replay.run(lists[r][next[r]])) {
        ++next[r];
        moved = true;
      }
    }
  }
  for (size_t r = 0; r < lists.size(); ++r) {
    if (next[r] < lists[r].size()) return false;
  }
  return true;
}

}  // namespace rrfp::test
