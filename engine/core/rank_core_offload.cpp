// SPDX-License-Identifier: Apache-2.0
//
// Host offload as a readiness decision: which activations leave for the host's memory, and when
// they come back. One copy at a time in each direction, beside the computing; the driver makes it
// and reports its end.
//
// Rules (engine/ARCHITECTURE.md, "Offload"): an activation leaves only if what stands before its
// backward takes longer than bringing back everything that is away, so the way back never becomes
// the bottleneck. Its memory is given up when the copy has ended, and taken again when the copy
// back begins. To the ledger an activation that is away is a forward that has not started, so the
// proof of progress holds unchanged.
#include <algorithm>
#include <utility>

#include "engine/core/rank_core.h"

namespace rrfp::core {
namespace {

// An activation stays if its backward is the next of its chunk or close to it, and comes back when
// it is the next.
constexpr int64_t kBackwardsAheadMin = 1;
// Nothing leaves while less than this part of the memory is taken.
constexpr int64_t kTakenParts = 3;

}  // namespace

/// A forward is done: what it keeps may be worth sending away.
void RankCore::offload_after_forward(size_t chunk, MicrobatchId i) {
  const CellPlan& p = plan_of(chunk, i);
  kept_[chunk].insert(p.backward_at);
  if (leaving_at_ != Bitmap::kNone || p.held_bytes == 0) return;
  if (kTakenParts * ledger_.live().bytes <= ledger_.cap().bytes) return;
  // Its gradient comes soon if the next stage is here, or there is none.
  bool leaves = false;
  for (uint16_t e : plan_->chunks[chunk].out) {
    const EdgePlan& edge = plan_->edges[e];
    if (!plan_->tasks->returns(edge.id, i)) continue;
    if (edge.local()) return;
    leaves = true;
  }
  if (!leaves) return;
  int64_t ahead_bytes = 0;
  for (uint32_t at = kept_[chunk].first(); at < p.backward_at; at = kept_[chunk].next(at)) {
    ahead_bytes += plan_of(chunk, plan_->order[at].microbatch).held_bytes;
  }
  const auto chunks = static_cast<int64_t>(plan_->chunks.size());
  const int64_t mean = std::max<int64_t>(plan_->mean_bytes * chunks, 1);
  // In stages of mean size: x microbatches ahead take x times the stage's time.
  const int64_t hold_ns = (ahead_bytes * chunks / mean - kBackwardsAheadMin) * plan_->stage_ns;
  if (hold_ns > 2 * plan_->copy_ns(p.held_bytes) + copying_ns_) leave_next_ = p.backward_at;
}

/// Called after every event: begins the copies that are due.
void RankCore::start_transfers() {
  if (leave_next_ != Bitmap::kNone) {
    leaving_at_ = std::exchange(leave_next_, Bitmap::kNone);
    const PlannedTask& planned = plan_->order[leaving_at_];
    const int64_t copy_ns = plan_->copy_ns(plan_of(planned.chunk, planned.microbatch).held_bytes);
    copying_ns_ += copy_ns;
    Command& command = emit(Command::Kind::kOffload);
    command.task = {plan_->chunks[planned.chunk].stage, planned.microbatch, TaskKind::kForward};
    command.duration_ns = copy_ns;
  }
  if (returning_at_ != Bitmap::kNone || away_.empty()) return;
  const uint32_t at = choose_load();
  if (at == Bitmap::kNone) return;
  const PlannedTask& planned = plan_->order[at];
  const CellPlan& p = plan_of(planned.chunk, planned.microbatch);
  ledger_.acquire(planned.microbatch, plan_->held(p));
  away_.erase(at);
  measure_away();
  returning_at_ = at;
  Command& command = emit(Command::Kind::kLoad);
  command.task = {plan_->chunks[planned.chunk].stage, planned.microbatch, TaskKind::kForward};
  command.duration_ns = plan_->copy_ns(p.held_bytes);
}

void RankCore::offloaded() {
  if (leaving_at_ == Bitmap::kNone) return fail("a copy to the host has ended that never began");
  const uint32_t at = std::exchange(leaving_at_, Bitmap::kNone);
  const PlannedTask& planned = plan_->order[at];
  Cell& state = cell(planned.chunk, planned.microbatch);
  const CellPlan& p = plan_of(planned.chunk, planned.microbatch);
  if (state.gradient_missing == 0) {  // its gradient came first: it stays
    copying_ns_ -= plan_->copy_ns(p.held_bytes);
    return;
  }
  ledger_.put_away(planned.microbatch, plan_->held(p));
  state.away = true;
  ++state.gradient_missing;
  away_.insert(at);
  measure_away();
  update_announced(planned.chunk, planned.microbatch, Direction::kBackward);
}

void RankCore::loaded() {
  if (returning_at_ == Bitmap::kNone)
    return fail("a copy from the host has ended that never began");
  const uint32_t at = std::exchange(returning_at_, Bitmap::kNone);
  const PlannedTask& planned = plan_->order[at];
  copying_ns_ -= plan_->copy_ns(plan_of(planned.chunk, planned.microbatch).held_bytes);
  cell(planned.chunk, planned.microbatch).away = false;
  backward_input_here(planned.chunk, planned.microbatch);
}

void RankCore::measure_away() {
  away_largest_ = {};
  for (uint32_t at = away_.first(); at != Bitmap::kNone; at = away_.next(at)) {
    const PlannedTask& planned = plan_->order[at];
    away_largest_ =
        Amount::max(away_largest_, plan_->held(plan_of(planned.chunk, planned.microbatch)));
  }
}

bool RankCore::gradients_here_or_announced(size_t chunk, MicrobatchId i) const {
  const uint16_t missing = cell(chunk, i).gradient_missing;  // one of them is the activation itself
  if (missing == 1) return true;
  return plan_->policy.hold_permille > 0 &&
         missing - 1 == announced_[plan_->cell_index(chunk, i)].count[1];
}

/// `wanted`: its gradient is here or on its way.
bool RankCore::may_load(uint32_t at, bool wanted) const {
  const PlannedTask& planned = plan_->order[at];
  const Amount amount = plan_->held(plan_of(planned.chunk, planned.microbatch));
  if (planned.microbatch.value == oldest_) return true;
  const Amount reserve = wanted ? Amount{} : plan_->chunks[planned.chunk].reserve + away_largest_;
  return (ledger_.live() + amount + reserve).within(ledger_.cap()) &&
         ledger_.fits(planned.microbatch, amount);
}

/// The first whose gradient is here or on its way, else one of the next backwards of a chunk. The
/// oldest microbatch is never refused.
uint32_t RankCore::choose_load() const {
  for (uint32_t at = away_.first(); at != Bitmap::kNone; at = away_.next(at)) {
    const PlannedTask& planned = plan_->order[at];
    if (!gradients_here_or_announced(planned.chunk, planned.microbatch)) continue;
    if (may_load(at, true)) return at;
    break;
  }
  for (size_t c = 0; c < kept_.size(); ++c) {
    uint32_t at = kept_[c].first();
    for (int64_t k = 0; k < kBackwardsAheadMin && at != Bitmap::kNone; ++k) {
      if (away_.contains(at) && may_load(at, false)) return at;
      at = kept_[c].next(at);
    }
  }
  for (size_t c = 0; c < kept_.size(); ++c) {
    const uint32_t at = plan_of(c, MicrobatchId(oldest_)).backward_at;
    if (at != CellPlan::kNoTask && away_.contains(at)) return at;
  }
  return Bitmap::kNone;
}

}  // namespace rrfp::core
