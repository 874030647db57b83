// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracle.h"

#include <algorithm>
#include <utility>

namespace rrfp::test {

using core::Amount;
using core::Command;
using core::Direction;
using core::EdgeId;
using core::IdleReason;
using core::MicrobatchId;
using core::Order;
using core::RankId;
using core::StageId;
using core::Task;
using core::TaskKind;
using core::to_string;

namespace {

bool fits(const Amount& amount, const Amount& cap) {  // not Amount::within, which is under test
  return amount.slots <= cap.slots && amount.bytes <= cap.bytes;
}

}  // namespace

Oracle::Oracle(const VirtualPipeline& setup)
    : tasks_(*setup.tasks),
      graph_(setup.tasks->graph()),
      policy_(setup.policy),
      columns_(static_cast<size_t>(setup.tasks->microbatches())),
      cells_(static_cast<size_t>(graph_.stage_count()) * columns_),
      ranks_(static_cast<size_t>(graph_.ranks())),
      stages_(static_cast<size_t>(graph_.stage_count())),
      sent_(static_cast<size_t>(graph_.edge_count()) * 2 * columns_, false),
      arrived_(sent_.size(), false),
      announced_(sent_.size(), false),
      credits_(static_cast<size_t>(graph_.edge_count()), 0),
      credits_used_(credits_.size(), 0),
      credits_owed_(credits_.size(), 0) {
  for (int32_t s = 0; s < graph_.stage_count(); ++s) add_stage(StageId(s));
  for (int32_t e = 0; e < graph_.edge_count(); ++e) add_credits(EdgeId(e));
  for (int32_t r = 0; r < graph_.ranks(); ++r) {
    add_order(setup, RankId(r));
    set_limits(setup, RankId(r));
  }
}

void Oracle::add_stage(StageId s) {
  StageState& stage = stages_[s.index()];
  Rank& rank = state(graph_.stage(s).rank);
  const core::Stage& fixed = graph_.stage(s);
  rank.longest_ns = std::max(
      {rank.longest_ns, fixed.forward_ns, fixed.input_gradient_ns + fixed.weight_gradient_ns});
  for (size_t k = 0; k < columns_; ++k) {
    const MicrobatchId i = MicrobatchId::of(k);
    if (!tasks_.takes_part(s, i)) continue;
    ++stage.forwards_left;
    stage.weights_left += tasks_.weight(s, i) ? 1 : 0;
    rank.work_left += 1 + (tasks_.backward(s, i) ? 1 : 0) + (tasks_.weight(s, i) ? 1 : 0);
  }
}

void Oracle::add_credits(EdgeId e) {
  if (policy_.order == Order::kStrict) return;
  int64_t& credits = credits_[e.index()];
  credits = policy_.credits;
  if (credits > 0) return;
  // By default counted only where a message can outlive the activation of its sender.
  for (size_t k = 0; k < columns_; ++k) {
    const MicrobatchId i = MicrobatchId::of(k);
    if (!tasks_.active(e, i) || tasks_.returns(e, i)) continue;
    credits = int64_t{graph_.ranks()} * graph_.chunks_max() + 1;
  }
}

void Oracle::add_order(const VirtualPipeline& setup, RankId rank) {
  std::vector<Task> order;
  if (core::Status s = setup.hint->order(tasks_, rank, order); !s.ok()) return violated(s.text());
  for (size_t k = 0; k < order.size(); ++k) {
    const auto at = static_cast<uint32_t>(k);
    Cell& c = cell(order[k].stage, order[k].microbatch);
    switch (order[k].kind) {
      case TaskKind::kForward: c.forward_at = at; break;
      case TaskKind::kBackward: c.whole = true; [[fallthrough]];
      case TaskKind::kInputGradient: c.backward_at = at; break;
      case TaskKind::kWeightGradient: c.weight_at = at; break;
    }
    const bool fused = graph_.stage(order[k].stage).fused_only;
    if (c.whole || (fused && c.backward_at != kNowhere)) c.weight_at = c.backward_at;
  }
}

void Oracle::set_limits(const VirtualPipeline& setup, RankId rank) {
  constexpr int64_t kNoLimit = INT64_MAX / 4;
  Rank& mine = state(rank);
  const core::Cap cap = setup.caps.empty() ? core::Cap() : setup.caps[rank.index()];
  mine.cap = {cap.slots, cap.bytes};
  if (cap.slots == 0 && cap.bytes == 0 && policy_.order == Order::kReady) {
    mine.cap.slots = int64_t{graph_.ranks()} * static_cast<int64_t>(graph_.chunks(rank).size());
  }
  if (mine.cap.slots == 0) mine.cap.slots = kNoLimit;
  if (mine.cap.bytes == 0) mine.cap.bytes = kNoLimit;

  Amount all;
  bool counted = false;
  for (StageId s : graph_.chunks(rank)) {
    for (size_t k = 0; k < columns_; ++k) {
      const MicrobatchId i = MicrobatchId::of(k);
      if (tasks_.backward(s, i)) all += {1, tasks_.held_bytes(s, i)};
    }
    for (EdgeId e : graph_.out_edges(s)) counted = counted || credits_[e.index()] > 0;
  }
  // Twice the whole step leaves room for whatever a rule keeps in reserve.
  mine.roomy = !counted && fits({2 * all.slots, 2 * all.bytes}, mine.cap);
}

// --- Tasks

void Oracle::started(RankId rank, const Task& task) {
  Rank& mine = state(rank);
  const auto bad = [&](const std::string& why) {
    violated("rank " + std::to_string(rank.value) + " starts " + to_string(task) + ", " + why);
  };
  if (graph_.stage(task.stage).rank != rank) return bad("whose stage is elsewhere");
  if (mine.running) return bad("but it runs another task");
  if (!tasks_.takes_part(task.stage, task.microbatch)) return bad("which the step does not have");
  mine.running = true;
  mine.hold_until_ns = -1;
  check_position(rank, task);
  Cell& c = cell(task.stage, task.microbatch);
  switch (task.kind) {
    case TaskKind::kForward:
      check_forward(task);
      c.forward_started = true;
      acquire(rank, task);
      take_credits(task);
      break;
    case TaskKind::kBackward:
      check_backward(task);
      if (tasks_.weight(task.stage, task.microbatch)) check_weight_start(task);
      c.input_gradient_started = c.weight_started = true;
      break;
    case TaskKind::kInputGradient:
      check_backward(task);
      c.input_gradient_started = true;
      break;
    case TaskKind::kWeightGradient:
      if (!c.input_gradient_done) bad("before its input gradient");
      check_weight_start(task);
      c.weight_started = true;
      break;
  }
}

void Oracle::check_forward(const Task& task) {
  if (cell(task.stage, task.microbatch).forward_started) violated(to_string(task) + " ran twice");
  if (!forward_ready(task.stage, task.microbatch)) {
    violated(to_string(task) + " started before its inputs were there");
  }
}

void Oracle::check_backward(const Task& task) {
  const Cell& c = cell(task.stage, task.microbatch);
  const core::Stage& stage = graph_.stage(task.stage);
  const bool weight = tasks_.weight(task.stage, task.microbatch);
  if (!tasks_.backward(task.stage, task.microbatch)) {
    return violated(to_string(task) + " is no task of this step");
  }
  if (c.input_gradient_started) violated(to_string(task) + " ran twice");
  if (!backward_ready(task.stage, task.microbatch)) {
    violated(to_string(task) + " started before its inputs were there");
  }
  const bool turn =
      !policy_.deterministic || stages_[task.stage.index()].turn == task.microbatch.value;
  const bool must_be_whole = stage.fused_only || (c.whole && turn && weight);
  if (must_be_whole != (task.kind == TaskKind::kBackward)) {
    violated(to_string(task) + " ran where the other form of the backward was due");
  }
}

void Oracle::check_weight_start(const Task& task) {
  const Cell& c = cell(task.stage, task.microbatch);
  if (!tasks_.weight(task.stage, task.microbatch)) {
    return violated(to_string(task) + " is no task of this step");
  }
  if (c.weight_started) violated(to_string(task) + " ran twice");
  if (policy_.deterministic && stages_[task.stage.index()].turn != task.microbatch.value) {
    violated(to_string(task) + " started out of turn");
  }
}

void Oracle::check_position(RankId rank, const Task& task) {
  const Cell& c = cell(task.stage, task.microbatch);
  uint32_t at = task.kind == TaskKind::kForward ? c.forward_at : c.backward_at;
  if (task.kind == TaskKind::kWeightGradient) at = c.weight_at;
  Rank& mine = state(rank);
  const std::string name = "rank " + std::to_string(rank.value) + ": " + to_string(task);
  if (at == kNowhere) return violated(name + " is not in the hint's order");
  if (policy_.order == Order::kReady) {
    const uint32_t first = first_ready(rank, mine.roomy);
    if (first < at) {
      violated(name + " (position " + std::to_string(at) +
               ") was chosen before the ready task at " + std::to_string(first));
    }
    return;
  }
  // Strict: onwards only, except for a W that was split off its B. What lies between is what a
  // stage that cannot split leaves out.
  if (at < mine.strict_next) {
    if (task.kind != TaskKind::kWeightGradient || !c.whole) violated(name + " went back");
    return;
  }
  const uint32_t first = first_ready(rank, false);
  if (first < mine.strict_next) violated(name + " ran although a split-off W was ready");
  mine.strict_next = at + 1;
  for (StageId s : graph_.chunks(rank)) {
    for (size_t k = 0; k < columns_; ++k) {
      const Cell& other = cell(s, MicrobatchId::of(k));
      if ((!other.forward_started && other.forward_at < at) ||
          (!other.input_gradient_started && other.backward_at < at)) {
        violated(name + " ran although the strict order has other tasks before it");
      }
    }
  }
}

void Oracle::acquire(RankId rank, const Task& task) {
  if (!tasks_.backward(task.stage, task.microbatch)) return;
  Rank& mine = state(rank);
  mine.live += {1, tasks_.held_bytes(task.stage, task.microbatch)};
  mine.peak = Amount::max(mine.peak, mine.live);
  if (!fits(mine.live, mine.cap)) {
    violated("rank " + std::to_string(rank.value) + " exceeds its cap with " + to_string(task) +
             ": " + std::to_string(mine.live.slots) + " slots, " + std::to_string(mine.live.bytes) +
             " bytes");
  }
}

void Oracle::take_credits(const Task& task) {
  for (EdgeId e : graph_.out_edges(task.stage)) {
    if (credits_[e.index()] == 0 || !tasks_.active(e, task.microbatch)) continue;
    if (++credits_used_[e.index()] > credits_[e.index()]) {
      violated(to_string(task) + " started without a credit on edge " + std::to_string(e.value));
    }
  }
  for (EdgeId e : graph_.in_edges(task.stage)) {
    if (credits_[e.index()] == 0 || !tasks_.active(e, task.microbatch)) continue;
    if (local(e)) {
      --credits_used_[e.index()];
    } else {
      ++credits_owed_[e.index()];
    }
  }
}

void Oracle::finished(RankId rank, const Task& task) {
  Rank& mine = state(rank);
  Cell& c = cell(task.stage, task.microbatch);
  StageState& stage = stages_[task.stage.index()];
  due_ = {};
  due_.task = task;
  mine.running = false;
  --mine.work_left;
  switch (task.kind) {
    case TaskKind::kForward:
      c.forward_done = true;
      due_.losses = --stage.forwards_left == 0 && graph_.stage(task.stage).loss;
      break;
    case TaskKind::kInputGradient: c.input_gradient_done = true; break;
    case TaskKind::kBackward:
      c.input_gradient_done = true;
      if (!tasks_.weight(task.stage, task.microbatch)) break;
      --mine.work_left;
      [[fallthrough]];
    case TaskKind::kWeightGradient:
      c.weight_done = true;
      due_.gradients = --stage.weights_left == 0;
      break;
  }
  while (stage.turn < tasks_.microbatches() &&
         (cell(task.stage, MicrobatchId(stage.turn)).weight_done ||
          !tasks_.weight(task.stage, MicrobatchId(stage.turn)))) {
    ++stage.turn;
  }
  due_.forget = pair_done(task.stage, task.microbatch);
  due_.complete = mine.work_left == 0;
  release_if_done(rank, task);
}

bool Oracle::pair_done(StageId s, MicrobatchId i) const {
  const Cell& c = cell(s, i);
  return c.forward_done && (c.input_gradient_done || !tasks_.backward(s, i)) &&
         (c.weight_done || !tasks_.weight(s, i));
}

void Oracle::release_if_done(RankId rank, const Task& task) {
  if (!tasks_.backward(task.stage, task.microbatch) || !due_.forget) return;
  state(rank).live -= {1, tasks_.held_bytes(task.stage, task.microbatch)};
}

void Oracle::counter(RankId rank, const Command& command) {
  const StageId s = command.task.stage;
  bool expected = false;
  switch (command.kind) {
    case Command::Kind::kForget:
      expected = std::exchange(due_.forget, false) && s == due_.task.stage &&
                 command.task.microbatch == due_.task.microbatch;
      break;
    case Command::Kind::kLosses:
      expected = std::exchange(due_.losses, false) && s == due_.task.stage;
      break;
    case Command::Kind::kStageGradients:
      expected = std::exchange(due_.gradients, false) && s == due_.task.stage;
      break;
    case Command::Kind::kStepComplete: expected = std::exchange(due_.complete, false); break;
    default: break;
  }
  if (!expected) {
    violated("rank " + std::to_string(rank.value) + " reports command " +
             std::to_string(static_cast<int>(command.kind)) + " on the end of " +
             to_string(due_.task) + ", where it is not due");
  }
}

void Oracle::finished_end() {
  if (due_.forget || due_.losses || due_.gradients || due_.complete) {
    violated("the end of " + to_string(due_.task) + " did not bring about all that is due");
  }
}

}  // namespace rrfp::test
