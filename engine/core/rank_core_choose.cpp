// SPDX-License-Identifier: Apache-2.0
//
// The arbiter: which ready task runs now, or why none does.
#include <algorithm>
#include <cassert>

#include "engine/core/rank_core.h"

namespace rrfp::core {
namespace {

// Holding (see Policy::hold_permille): an announced task is waited for only while it is not overdue
// by more than this share of its own duration, and at most this share of the held task's duration
// beyond the time it was announced for.
constexpr int64_t kOverduePermille = 300;
constexpr int64_t kGracePermille = 150;
constexpr int kHoldCandidatesMax = 8;  // a pick stays O(1)
constexpr int64_t kForever = INT64_MAX;

int64_t share(int64_t duration_ns, int64_t permille) {
  return duration_ns / 1000 * permille;
}

}  // namespace

void RankCore::pull(int64_t now_ns) {
  const auto idle = [&](IdleReason reason, int64_t until_ns) {
    Command& command = emit(Command::Kind::kIdle);
    command.reason = reason;
    command.until_ns = until_ns;
  };
  if (running_) fail("a task was asked for while " + to_string(running_task()) + " is running");
  if (failed_) return idle(IdleReason::kFailed, kForever);
  if (unasked_sends_ > 0) {
    idle(IdleReason::kPolicy, kForever);
    return ask_for_inputs();
  }
  if (complete()) return idle(IdleReason::kComplete, kForever);
  Choice choice = strict() ? choose_strict() : choose_ready();
  if (choice.at == Bitmap::kNone && strict() && plan_->policy.late_ns > 0) {
    if (now_ns < late_at_ns()) return idle(choice.blocked, late_at_ns());
    late_ = true;
    choice = choose_ready();
  }
  if (choice.at == Bitmap::kNone) {
    idle(choice.blocked, kForever);
  } else if (!strict() && must_hold(choice.at, now_ns)) {
    return idle(IdleReason::kPolicy, hold_until_ns_);
  } else {
    start(choice.at, now_ns);
  }
  if (plan_->policy.order == Order::kPaired) ask_for_inputs();
}

bool RankCore::roomy() const {
  if (plan_->policy.roomy_permille == 0) return false;
  return plan_->fits || (plan_->roomy_above + ledger_.live() + Amount{1, 1}).within(ledger_.cap());
}

/// Backward and weight gradients are never gated. A forward is, so it is compared with the best of
/// them.
RankCore::Choice RankCore::choose_ready() const {
  const uint32_t backward = ready_backward_.first();
  const uint32_t weight = ready_weight_.first();
  if (!roomy()) return choose_forward(std::min(backward, weight));
  if (backward != Bitmap::kNone) return {backward, {}};
  const Choice forward = choose_forward(Bitmap::kNone);
  return forward.at == Bitmap::kNone && weight != Bitmap::kNone ? Choice{weight, {}} : forward;
}

/// The first admissible forward that comes before a position, or else that position.
RankCore::Choice RankCore::choose_forward(uint32_t before) const {
  Choice choice;
  choice.at = before;
  for (size_t c = 0; c < ready_forward_.size(); ++c) {
    // Only the head of each chunk is looked at, so a pick does not grow with what is ready ...
    const uint32_t head = ready_forward_[c].first();
    if (head >= choice.at) continue;  // also if there is none
    const std::optional<IdleReason> refused = refusal(c, plan_->order[head].microbatch);
    if (refused) {
      choice.blocked = *refused;
    } else {
      choice.at = head;
    }
  }
  // ... and the oldest microbatch, which is never refused room: progress rests on it.
  const MicrobatchId oldest(oldest_);
  for (size_t c = 0; c < ready_forward_.size(); ++c) {
    const uint32_t at = plan_of(c, oldest).forward_at;
    if (at >= choice.at || !ready_forward_[c].contains(at)) continue;
    if (!refusal(c, oldest)) choice.at = at;
  }
  return choice;
}

RankCore::Choice RankCore::choose_strict() const {
  // A weight half that was split off a B because its turn had not come runs as soon as it has.
  const uint32_t first = ready_weight_.first();
  if (first < strict_next_) return {first, {}};
  if (strict_next_ < plan_->order.size()) {
    const PlannedTask& next = plan_->order[strict_next_];
    const bool is_ready =
        next.kind == TaskKind::kForward          ? ready_forward_[next.chunk].contains(strict_next_)
        : next.kind == TaskKind::kWeightGradient ? ready_weight_.contains(strict_next_)
                                                 : ready_backward_.contains(strict_next_);
    if (is_ready) return {strict_next_, {}};
  }
  const bool other_ready = first != Bitmap::kNone || !ready_backward_.empty() ||
                           std::any_of(ready_forward_.begin(), ready_forward_.end(),
                                       [](const Bitmap& b) { return !b.empty(); });
  return {Bitmap::kNone, other_ready ? IdleReason::kPolicy : IdleReason::kInput};
}

std::optional<IdleReason> RankCore::refusal(size_t chunk, MicrobatchId i) const {
  const bool is_oldest = i.value == oldest_;
  const ChunkPlan& c = plan_->chunks[chunk];
  for (uint16_t e : c.out) {
    const EdgePlan& edge = plan_->edges[e];
    if (edge.credits == 0 || !plan_->tasks->active(edge.id, i)) continue;
    // The last credit is kept for the oldest microbatch.
    if (credits_used_[e] + (is_oldest ? 1 : 2) > edge.credits) return IdleReason::kCredit;
  }
  const CellPlan& p = plan_of(chunk, i);
  if (!p.backward) return std::nullopt;  // holds nothing once it is done
  const Amount amount = plan_->held(p);
  bool admitted = is_oldest || plan_->fits ||
                  ((ledger_.live() + amount + c.reserve + away_largest_).within(ledger_.cap()) &&
                   ledger_.fits(i, amount));
  if (plan_->policy.admission == AdmissionRule::kPlainCounter) {
    admitted = (ledger_.live() + amount).within(ledger_.cap());
  }
  return admitted ? std::nullopt : std::optional(IdleReason::kMemory);
}

bool RankCore::must_hold(uint32_t at, int64_t now_ns) {
  const int64_t permille = plan_->policy.hold_permille;
  if (permille == 0) return false;
  if (holding_) return at > hold_for_ && now_ns < hold_until_ns_;
  const int64_t held_ns =
      plan_->duration_ns(plan_->order[at].chunk, plan_->order[at].microbatch, kind_at(at));
  uint32_t better = announced_at_.first();
  for (int k = 0; k < kHoldCandidatesMax && better < at; ++k) {
    const PlannedTask& task = plan_->order[better];
    const bool is_forward = task.kind == TaskKind::kForward;
    const int64_t eta_ns =
        announced_[plan_->cell_index(task.chunk, task.microbatch)].eta_ns[is_forward ? 0 : 1];
    const int64_t its_ns = plan_->duration_ns(task.chunk, task.microbatch, kind_at(better));
    const int64_t due_ns = std::max(eta_ns, now_ns);
    const bool imminent = eta_ns > now_ns - share(its_ns, kOverduePermille) &&
                          due_ns < now_ns + share(held_ns, permille);
    const bool could_start = is_forward ? !refusal(task.chunk, task.microbatch)
                                        : !waits_for_turn(task.chunk, task.microbatch);
    if (imminent && could_start) {
      holding_ = true;
      hold_for_ = better;
      hold_until_ns_ = due_ns + share(held_ns, kGracePermille);
      return true;
    }
    better = announced_at_.next(better);
  }
  return false;
}

TaskKind RankCore::kind_at(uint32_t at) const {
  const PlannedTask& planned = plan_->order[at];
  if (planned.kind != TaskKind::kBackward) return planned.kind;
  if (cell(planned.chunk, planned.microbatch).input_gradient_done) {
    return TaskKind::kWeightGradient;
  }
  const bool whole =
      plan_->chunks[planned.chunk].fused_only || weight_turn(planned.chunk, planned.microbatch);
  return whole ? TaskKind::kBackward : TaskKind::kInputGradient;
}

Task RankCore::running_task() const {
  const PlannedTask& planned = plan_->order[running_at_];
  return {plan_->chunks[planned.chunk].stage, planned.microbatch, running_kind_};
}

void RankCore::start(uint32_t at, int64_t now_ns) {
  const PlannedTask& planned = plan_->order[at];
  Cell& state = cell(planned.chunk, planned.microbatch);
  running_ = true;
  running_at_ = at;
  running_kind_ = kind_at(at);
  holding_ = false;
  strict_next_ = std::max(strict_next_, at + 1);
  Command& run = emit(Command::Kind::kRun);
  run.task = running_task();
  run.ready_ns = ready_ns_.empty() ? now_ns : ready_ns_[at];
  switch (running_kind_) {
    case TaskKind::kForward:
      ready_forward_[planned.chunk].erase(at);
      state.forward_started = true;
      start_forward(planned.chunk, planned.microbatch);
      break;
    case TaskKind::kBackward: state.weight_started = true; [[fallthrough]];
    case TaskKind::kInputGradient:
      ready_backward_.erase(at);
      if (plan_->offload) kept_[planned.chunk].erase(at);
      state.backward_started = true;
      break;
    case TaskKind::kWeightGradient:
      ready_weight_.erase(at);
      state.weight_started = true;
      break;
  }
  if (plan_->policy.hold_permille > 0) {
    announce_outputs(planned.chunk, planned.microbatch, running_kind_);
  }
}

void RankCore::start_forward(size_t chunk, MicrobatchId i) {
  const CellPlan& p = plan_of(chunk, i);
  if (p.backward) ledger_.acquire(i, plan_->held(p));
  const ChunkPlan& c = plan_->chunks[chunk];
  for (uint16_t e : c.out) {
    const EdgePlan& edge = plan_->edges[e];
    if (edge.credits > 0 && plan_->tasks->active(edge.id, i)) ++credits_used_[e];
  }
  for (uint16_t e : c.in) {
    const EdgePlan& edge = plan_->edges[e];
    if (edge.credits == 0 || !plan_->tasks->active(edge.id, i)) continue;
    if (edge.local()) {
      --credits_used_[e];
      continue;
    }
    Command& credit = emit(Command::Kind::kCredit);
    credit.edge = edge.id;
    credit.peer = edge.peer;
  }
}

void RankCore::announce_outputs(size_t chunk, MicrobatchId i, TaskKind kind) {
  if (kind == TaskKind::kWeightGradient) return;
  const ChunkPlan& c = plan_->chunks[chunk];
  const bool forward = kind == TaskKind::kForward;
  for (uint16_t e : forward ? c.out : c.in) {
    const EdgePlan& edge = plan_->edges[e];
    const bool sends =
        forward ? plan_->tasks->active(edge.id, i) : plan_->tasks->returns(edge.id, i);
    if (edge.local() || !sends) continue;
    Command& command = emit(Command::Kind::kAnnounce);
    command.edge = edge.id;
    command.direction = forward ? Direction::kForward : Direction::kBackward;
    command.microbatch = i;
    command.peer = edge.peer;
    command.duration_ns = plan_->duration_ns(chunk, i, kind) + plan_->policy.hop_ns;
  }
}

int64_t RankCore::late_at_ns() const {
  return begun_ns_ + plan_->planned_ns[strict_next_] + plan_->policy.late_ns;
}

/// Paired order: asks for the messages of the task that comes next, or that has just started
/// because they were there already; each once.
void RankCore::ask_for_inputs() {
  const size_t at = running_ ? running_at_ : strict_next_;
  if (at >= plan_->order.size()) return;
  const PlannedTask& next = plan_->order[at];
  if (next.kind == TaskKind::kWeightGradient) return;
  const bool forward = next.kind == TaskKind::kForward;
  const ChunkPlan& c = plan_->chunks[next.chunk];
  for (uint16_t e : forward ? c.in : c.out) {
    const EdgePlan& edge = plan_->edges[e];
    const Direction direction = forward ? Direction::kForward : Direction::kBackward;
    const bool comes = forward ? plan_->tasks->active(edge.id, next.microbatch)
                               : plan_->tasks->returns(edge.id, next.microbatch);
    const size_t bit = message_bit(e, direction, next.microbatch);
    if (edge.local() || !comes || asked_[bit]) continue;
    asked_[bit] = true;
    Command& command = emit(Command::Kind::kReceive);
    command.edge = edge.id;
    command.direction = direction;
    command.microbatch = next.microbatch;
    command.peer = edge.peer;
  }
}

}  // namespace rrfp::core
