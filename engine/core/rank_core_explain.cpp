// SPDX-License-Identifier: Apache-2.0
//
// What a rank waits for, in terms that a report can print. Not on any fast path.
#include <algorithm>
#include <utility>

#include "engine/core/rank_core.h"

namespace rrfp::core {

bool RankCore::started(uint32_t at) const {
  const PlannedTask& planned = plan_->order[at];
  const Cell& state = cell(planned.chunk, planned.microbatch);
  switch (kind_at(at)) {
    case TaskKind::kForward: return state.forward_started;
    case TaskKind::kWeightGradient: return state.weight_started;
    default: return state.backward_started;
  }
}

WaitingTask RankCore::explain(uint32_t at) const {
  const PlannedTask& planned = plan_->order[at];
  const MicrobatchId i = planned.microbatch;
  const ChunkPlan& chunk = plan_->chunks[planned.chunk];
  const Cell& state = cell(planned.chunk, i);
  const TaskKind kind = kind_at(at);
  const bool forward = kind == TaskKind::kForward;
  WaitingTask task;
  task.task = {chunk.stage, i, kind};
  task.ready = forward                             ? ready_forward_[planned.chunk].contains(at)
               : kind == TaskKind::kWeightGradient ? ready_weight_.contains(at)
                                                   : ready_backward_.contains(at);
  if (task.ready) return task;
  if (kind == TaskKind::kWeightGradient) {
    task.weight_turn_missing = state.input_gradient_done;
    return task;
  }
  task.own_forward_missing = !forward && !state.forward_done;
  task.weight_turn_missing = !forward && state.gradient_missing == 0;
  for (uint16_t e : forward ? chunk.in : chunk.out) {
    const EdgePlan& edge = plan_->edges[e];
    const Direction direction = forward ? Direction::kForward : Direction::kBackward;
    const bool due = forward ? plan_->tasks->active(edge.id, i) : plan_->tasks->returns(edge.id, i);
    if (!due || local_output_done(edge, direction, i) || arrived_[message_bit(e, direction, i)]) {
      continue;
    }
    task.missing.push_back({edge.id, direction, edge.peer});
  }
  return task;
}

bool RankCore::local_output_done(const EdgePlan& edge, Direction direction, MicrobatchId i) const {
  if (!edge.local()) return false;
  return direction == Direction::kForward ? cell(edge.from_chunk, i).forward_done
                                          : cell(edge.to_chunk, i).input_gradient_done;
}

std::vector<WaitingTask> RankCore::waiting(size_t limit) const {
  std::vector<WaitingTask> ready;
  std::vector<WaitingTask> unready;
  for (uint32_t at = 0; plan_ && at < plan_->order.size() && ready.size() < limit; ++at) {
    if (started(at)) continue;
    WaitingTask task = explain(at);
    if (task.ready) {
      ready.push_back(std::move(task));
    } else if (unready.size() < limit) {
      unready.push_back(std::move(task));
    }
  }
  const size_t room = std::min(limit - ready.size(), unready.size());
  std::move(unready.begin(), unready.begin() + static_cast<std::ptrdiff_t>(room),
            std::back_inserter(ready));
  return ready;
}

std::optional<WaitingTask> RankCore::strict_next() const {
  if (!plan_ || strict_next_ >= plan_->order.size()) return std::nullopt;
  return explain(strict_next_);
}

}  // namespace rrfp::core
