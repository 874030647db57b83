// SPDX-License-Identifier: Apache-2.0
#include "engine/core/order_binder.h"

#include <string>

namespace rrfp::core {

OrderBinder::OrderBinder(const StepTasks& tasks, RankId rank) : tasks_(tasks), rank_(rank) {
  const auto m = static_cast<size_t>(tasks.microbatches());
  slot_.assign(static_cast<size_t>(tasks.graph().stage_count()), kElsewhere);
  size_t count = 0;
  for (StageId s : tasks.graph().chunks(rank)) slot_[s.index()] = count++;
  seen_.assign(count * m, {});
}

Status OrderBinder::add(const Task& task, std::vector<Task>& out) {
  if (Status s = tasks_.graph().check_stage(task.stage); !s.ok()) {
    return {s.code(), to_string(task) + ": " + s.text()};
  }
  if (task.microbatch.value >= tasks_.microbatches()) {
    return {Code::kOutOfRange, to_string(task) + ": the step has " +
                                   std::to_string(tasks_.microbatches()) +
                                   " microbatches, numbered from 0"};
  }
  if (slot_[task.stage.index()] == kElsewhere) {
    return {Code::kBadOrder, to_string(task) + " stands in the list of rank " +
                                 std::to_string(rank_.value) + ", but stage " +
                                 std::to_string(task.stage.value) + " is placed on rank " +
                                 std::to_string(tasks_.graph().stage(task.stage).rank.value)};
  }
  seen_[cell(task.stage, task.microbatch)].add(task.kind);
  const bool has_weight = tasks_.weight(task.stage, task.microbatch);
  switch (task.kind) {
    case TaskKind::kForward:
      if (tasks_.takes_part(task.stage, task.microbatch)) out.push_back(task);
      break;
    case TaskKind::kBackward:
    case TaskKind::kInputGradient:
      if (!tasks_.backward(task.stage, task.microbatch)) break;
      out.push_back(task);
      if (!has_weight) out.back().kind = TaskKind::kInputGradient;
      break;
    case TaskKind::kWeightGradient:
      if (has_weight) out.push_back(task);
      break;
  }
  return {};
}

Status OrderBinder::check_complete() const {
  for (StageId s : tasks_.graph().chunks(rank_)) {
    for (int32_t i = 0; i < tasks_.microbatches(); ++i) {
      const MicrobatchId mb(i);
      const Seen& pair = seen_[cell(s, mb)];
      if (tasks_.takes_part(s, mb) && !pair.has(TaskKind::kForward)) {
        return missing(s, mb, "forward");
      }
      if (!tasks_.backward(s, mb) || pair.has(TaskKind::kBackward)) continue;
      if (!pair.has(TaskKind::kInputGradient)) return missing(s, mb, "backward");
      if (tasks_.weight(s, mb) && !pair.has(TaskKind::kWeightGradient)) {
        return missing(s, mb, "weight gradient");
      }
    }
  }
  return {};
}

Status OrderBinder::missing(StageId s, MicrobatchId i, const char* what) const {
  return {Code::kBadOrder, "rank " + std::to_string(rank_.value) + ": the hint names no " + what +
                               " of stage " + std::to_string(s.value) + ", microbatch " +
                               std::to_string(i.value)};
}

}  // namespace rrfp::core
