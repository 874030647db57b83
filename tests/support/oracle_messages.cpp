// SPDX-License-Identifier: Apache-2.0
//
// The oracle's view of messages, credits, idle ranks and the end of the run.
#include <algorithm>

#include "tests/support/oracle.h"

namespace rrfp::test {

using core::Command;
using core::Direction;
using core::EdgeId;
using core::IdleReason;
using core::MicrobatchId;
using core::Order;
using core::RankId;
using core::StageId;
using core::TaskKind;

bool Oracle::local(EdgeId e) const {
  return graph_.stage(graph_.edge(e).from).rank == graph_.stage(graph_.edge(e).to).rank;
}

bool Oracle::travels(EdgeId e, Direction direction, MicrobatchId i) const {
  return direction == Direction::kForward ? tasks_.active(e, i) : tasks_.returns(e, i);
}

RankId Oracle::producer(EdgeId e, Direction direction) const {
  const core::Edge& edge = graph_.edge(e);
  return graph_.stage(direction == Direction::kForward ? edge.from : edge.to).rank;
}

size_t Oracle::bit(EdgeId e, Direction direction, MicrobatchId i) const {
  return (e.index() * 2 + static_cast<size_t>(direction)) * columns_ + i.index();
}

void Oracle::check_output(RankId rank, const Command& command, bool is_local) {
  const EdgeId e = command.edge;
  const bool forward = command.direction == Direction::kForward;
  const core::Edge& edge = graph_.edge(e);
  const bool expected = (forward ? edge.from : edge.to) == due_.task.stage &&
                        due_.task.microbatch == command.microbatch &&
                        travels(e, command.direction, command.microbatch) && local(e) == is_local &&
                        producer(e, command.direction) == rank &&
                        consumer(e, command.direction) == command.peer &&
                        due_.task.kind != TaskKind::kWeightGradient &&
                        (due_.task.kind == TaskKind::kForward) == forward &&
                        !sent_[bit(e, command.direction, command.microbatch)];
  if (!expected) {
    violated("rank " + std::to_string(rank.value) + " sends on edge " + std::to_string(e.value) +
             " for microbatch " + std::to_string(command.microbatch.value) +
             " what it should not, at the end of " + core::to_string(due_.task));
  }
  sent_[bit(e, command.direction, command.microbatch)] = true;
}

void Oracle::sent(RankId rank, const Command& command) {
  check_output(rank, command, false);
}

void Oracle::delivered(RankId rank, const Command& command) {
  check_output(rank, command, true);
  arrived_[bit(command.edge, command.direction, command.microbatch)] = true;
}

void Oracle::message_arrived(EdgeId edge, Direction direction, MicrobatchId i) {
  arrived_[bit(edge, direction, i)] = true;
}

void Oracle::announcement_arrived(EdgeId edge, Direction direction, MicrobatchId i) {
  announced_[bit(edge, direction, i)] = true;
}

void Oracle::announced(RankId rank, const Command& command) {
  const EdgeId e = command.edge;
  if (policy_.hold_permille == 0 || policy_.order == Order::kStrict || local(e) ||
      !travels(e, command.direction, command.microbatch) ||
      producer(e, command.direction) != rank || consumer(e, command.direction) != command.peer ||
      sent_[bit(e, command.direction, command.microbatch)]) {
    violated("rank " + std::to_string(rank.value) + " announces on edge " +
             std::to_string(e.value) + " what will not come");
  }
}

void Oracle::credit_sent(RankId rank, const Command& command) {
  const EdgeId e = command.edge;
  if (local(e) || consumer(e, Direction::kForward) != rank ||
      producer(e, Direction::kForward) != command.peer || --credits_owed_[e.index()] < 0) {
    violated("rank " + std::to_string(rank.value) + " gives a credit for edge " +
             std::to_string(e.value) + " that is not owed");
  }
}

void Oracle::credit_arrived(EdgeId edge) {
  --credits_used_[edge.index()];
}

// --- Readiness

bool Oracle::input_here(EdgeId e, Direction direction, MicrobatchId i) const {
  if (!travels(e, direction, i)) return true;
  if (!local(e)) return arrived_[bit(e, direction, i)];
  const core::Edge& edge = graph_.edge(e);
  return direction == Direction::kForward ? cell(edge.from, i).forward_done
                                          : cell(edge.to, i).input_gradient_done;
}

bool Oracle::forward_ready(StageId s, MicrobatchId i) const {
  if (!tasks_.takes_part(s, i) || cell(s, i).forward_started) return false;
  const auto ins = graph_.in_edges(s);
  return std::all_of(ins.begin(), ins.end(),
                     [&](EdgeId e) { return input_here(e, Direction::kForward, i); });
}

/// A backward that cannot be split goes when its weight half may.
bool Oracle::waits_for_turn(StageId s, MicrobatchId i) const {
  return graph_.stage(s).fused_only && tasks_.weight(s, i) && policy_.deterministic &&
         stages_[s.index()].turn != i.value;
}

bool Oracle::backward_ready(StageId s, MicrobatchId i) const {
  const Cell& c = cell(s, i);
  if (!tasks_.backward(s, i) || c.input_gradient_started || !c.forward_done) return false;
  if (waits_for_turn(s, i)) return false;
  const auto outs = graph_.out_edges(s);
  return std::all_of(outs.begin(), outs.end(),
                     [&](EdgeId e) { return input_here(e, Direction::kBackward, i); });
}

bool Oracle::weight_ready(StageId s, MicrobatchId i) const {
  const Cell& c = cell(s, i);
  return tasks_.weight(s, i) && c.input_gradient_done && !c.weight_started &&
         (!policy_.deterministic || stages_[s.index()].turn == i.value);
}

uint32_t Oracle::first_ready(RankId rank, bool forwards) const {
  uint32_t first = kNowhere;
  for (StageId s : graph_.chunks(rank)) {
    for (size_t k = 0; k < columns_; ++k) {
      const MicrobatchId i = MicrobatchId::of(k);
      const Cell& c = cell(s, i);
      if (c.backward_at < first && backward_ready(s, i)) first = c.backward_at;
      if (c.weight_at < first && weight_ready(s, i)) first = c.weight_at;
      if (forwards && c.forward_at < first && forward_ready(s, i)) first = c.forward_at;
    }
  }
  return first;
}

bool Oracle::oldest_forward_ready(RankId rank) const {
  for (size_t k = 0; k < columns_; ++k) {
    const MicrobatchId i = MicrobatchId::of(k);
    bool unfinished = false;
    bool startable = false;
    for (StageId s : graph_.chunks(rank)) {
      if (!tasks_.takes_part(s, i)) continue;
      unfinished = unfinished || !pair_done(s, i);
      const auto outs = graph_.out_edges(s);
      const bool credit = std::all_of(outs.begin(), outs.end(), [&](EdgeId e) {
        return credits_[e.index()] == 0 || !tasks_.active(e, i) ||
               credits_used_[e.index()] < credits_[e.index()];
      });
      startable = startable || (credit && forward_ready(s, i));
    }
    if (unfinished) return startable;
  }
  return false;
}

void Oracle::idle(RankId rank, const Command& command, int64_t now_ns) {
  Rank& mine = state(rank);
  if (mine.running) violated("rank " + std::to_string(rank.value) + " is idle while it runs");
  if ((command.reason == IdleReason::kComplete) != complete(rank)) {
    return violated("rank " + std::to_string(rank.value) +
                    " misjudges whether its part of the step is complete");
  }
  if (policy_.order == Order::kStrict || complete(rank)) return;
  if (command.reason != IdleReason::kPolicy) {
    // While a rank holds a ready forward, an older one of the same chunk may arrive that there is
    // no room for; only the first of a chunk is considered, so the rank then waits for room
    // instead.
    if (mine.hold_until_ns >= 0 && command.reason == IdleReason::kInput) {
      violated("rank " + std::to_string(rank.value) + " had a ready task to hold, but lost it");
    }
    return check_idle_reason(rank, command.reason);
  }
  check_hold(rank, command.until_ns, now_ns);
}

void Oracle::check_hold(RankId rank, int64_t until_ns, int64_t now_ns) {
  Rank& mine = state(rank);
  const std::string name = "rank " + std::to_string(rank.value) + " at " + std::to_string(now_ns) +
                           " ns holds until " + std::to_string(until_ns) + " ns, ";
  const int64_t longest_ns = (policy_.hold_permille + 150) * mine.longest_ns / 1000;
  if (first_ready(rank, true) == kNowhere) violated(name + "although nothing is ready");
  if (until_ns <= now_ns || until_ns - now_ns > longest_ns) violated(name + "past or too far");
  const bool begins = mine.hold_until_ns < 0;
  if (!begins && until_ns != mine.hold_until_ns) violated(name + "which has moved");
  if (begins && first_imminent(rank) >= first_ready(rank, false)) {
    violated(name + "although nothing better is announced");
  }
  mine.hold_until_ns = until_ns;
}

uint32_t Oracle::first_imminent(RankId rank) const {
  uint32_t first = kNowhere;
  for (StageId s : graph_.chunks(rank)) {
    for (size_t k = 0; k < columns_; ++k) {
      const MicrobatchId i = MicrobatchId::of(k);
      const Cell& c = cell(s, i);
      const auto imminent = [&](std::span<const EdgeId> edges, Direction direction) {
        bool missing = false;
        for (EdgeId e : edges) {
          if (input_here(e, direction, i)) continue;
          missing = true;
          if (local(e) || !announced_[bit(e, direction, i)]) return false;
        }
        return missing;
      };
      const bool backward = c.forward_done && tasks_.backward(s, i) && !waits_for_turn(s, i);
      if (c.forward_at < first && imminent(graph_.in_edges(s), Direction::kForward)) {
        first = c.forward_at;
      }
      if (backward && c.backward_at < first &&
          imminent(graph_.out_edges(s), Direction::kBackward)) {
        first = c.backward_at;
      }
    }
  }
  return first;
}

void Oracle::check_idle_reason(RankId rank, IdleReason reason) {
  const std::string name = "rank " + std::to_string(rank.value);
  if (first_ready(rank, false) != kNowhere) {
    violated(name + " idles although a backward task is ready");
  }
  if (oldest_forward_ready(rank) && policy_.admission == core::AdmissionRule::kOrdered) {
    violated(name + " idles although a forward of its oldest microbatch is ready");
  }
  const bool forward_ready_here = first_ready(rank, true) != kNowhere;
  const bool blocked = reason == IdleReason::kMemory || reason == IdleReason::kCredit;
  if (blocked != forward_ready_here) {
    violated(name +
             " gives the wrong reason for idling: " + std::to_string(static_cast<int>(reason)));
  }
  if (state(rank).roomy && blocked) violated(name + " is held back although there is room");
}

void Oracle::ended() {
  for (int32_t e = 0; e < graph_.edge_count(); ++e) {
    for (size_t k = 0; k < columns_; ++k) {
      for (Direction d : {Direction::kForward, Direction::kBackward}) {
        const size_t at = bit(EdgeId(e), d, MicrobatchId::of(k));
        const bool due = travels(EdgeId(e), d, MicrobatchId::of(k));
        if (sent_[at] != due || arrived_[at] != due) {
          violated("edge " + std::to_string(e) + " has a message lost or too many");
        }
      }
    }
    if (credits_used_[static_cast<size_t>(e)] != 0 || credits_owed_[static_cast<size_t>(e)] != 0) {
      violated("edge " + std::to_string(e) + " ends with credits outstanding");
    }
  }
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].work_left != 0 || ranks_[r].live != core::Amount()) {
      violated("rank " + std::to_string(r) + " says that it is complete, but it is not");
    }
  }
}

}  // namespace rrfp::test
