// SPDX-License-Identifier: Apache-2.0
#include "tests/property/rank_states.h"

#include <utility>

namespace rrfp::test {

using core::Command;
using core::Direction;
using core::EdgeId;
using core::Event;
using core::MicrobatchId;
using core::RankCore;
using core::StageId;
using core::Task;
using core::TaskKind;
using core::to_string;

RankStates::RankStates(const SmallPipeline& setup, core::RankId rank, std::string& error)
    : setup_(setup), rank_(rank), error_(error) {
  std::shared_ptr<const core::RankPlan> plan;
  const core::Status status = core::build_plan(setup.tasks, *setup.hint, rank, setup.policy,
                                               setup.caps[rank.index()], plan);
  if (!status.ok()) {
    violated(status.text());
    return;
  }
  RankState first;
  first.core.begin_step(plan);
  for (const core::EdgePlan& e : plan->edges) credits_[e.id.index()] = e.credits;
  add(std::move(first));
}

int32_t RankStates::step(int32_t id, size_t code) {
  const int32_t known = at(id).next[code];
  if (known >= 0) return known;
  const int32_t to = make(id, code);
  states_[static_cast<size_t>(id)]->next[code] = to;
  return to;
}

int32_t RankStates::make(int32_t id, size_t code) {
  RankState to = at(id);
  if (code == Code::kDone) {
    task_done(to);
  } else if (code == Code::kPull) {
    start(to);
  } else if (code < Code::kCredit0) {
    message(to, code - Code::kMessage0);
  } else {
    const size_t edge = code - Code::kCredit0;
    ++to.credits_here[edge];
    if (!to.core.apply(Event::credit(EdgeId::of(edge)), 0).empty()) {
      violated("a credit has an answer");
    }
  }
  if (to.core.failed()) violated("failed: " + to.core.fault().text());
  return add(std::move(to));
}

int32_t RankStates::add(RankState&& state) {
  const auto [known, fresh] = names_.emplace(state.name(), static_cast<int32_t>(states_.size()));
  const auto ask = [](RankCore core) {  // a copy: asking is not part of the state
    const Command answer = core.apply(Event::pull(), 0).front();
    return std::tuple(answer.kind, answer.task, answer.reason);
  };
  state.can_run = false;
  if (!state.core.running()) {
    const auto answer = ask(state.core);
    state.can_run = std::get<0>(answer) == Command::Kind::kRun;
    if (!fresh && answer != ask(at(known->second).core)) {
      violated("the answer depends on the order of past events");
    }
  }
  if (!fresh) return known->second;
  state.next.assign(Code::kCount, -1);
  states_.push_back(std::make_unique<RankState>(std::move(state)));
  return known->second;
}

void RankStates::message(RankState& to, size_t index) {
  const size_t m = setup_.columns();
  const Direction direction = (index / m) % 2 == 0 ? Direction::kForward : Direction::kBackward;
  to.arrived |= uint64_t{1} << index;
  const Event event =
      Event::message(EdgeId::of(index / m / 2), direction, MicrobatchId::of(index % m));
  if (!to.core.apply(event, 0).empty()) violated("a message has an answer");
}

// --- Tasks

uint64_t RankStates::bit(StageId s, MicrobatchId i, TaskKind half) const {
  const size_t place = half == TaskKind::kForward ? 0 : half == TaskKind::kInputGradient ? 1 : 2;
  return uint64_t{1} << ((s.index() * setup_.columns() + i.index()) * 3 + place);
}

uint64_t RankStates::bits_of(const Task& task) const {
  if (task.kind != TaskKind::kBackward) return bit(task.stage, task.microbatch, task.kind);
  uint64_t bits = bit(task.stage, task.microbatch, TaskKind::kInputGradient);
  if (setup_.tasks->weight(task.stage, task.microbatch)) {
    bits |= bit(task.stage, task.microbatch, TaskKind::kWeightGradient);
  }
  return bits;
}

void RankStates::start(RankState& to) {
  const auto commands = to.core.apply(Event::pull(), 0);
  const Task task = commands.front().task;
  const uint64_t bits = bits_of(task);
  check_start(to, task, bits);
  to.started |= bits;
  if (task.kind == TaskKind::kForward) to.live += held(task);
  const core::Cap& cap = setup_.caps[rank_.index()];
  if (setup_.policy.order == core::Order::kReady &&
      ((cap.slots > 0 && to.live.slots > cap.slots) ||
       (cap.bytes > 0 && to.live.bytes > cap.bytes))) {
    violated(to_string(task) + " exceeds the cap");
  }
  for (const Command& c : commands.subspan(1)) {
    if (c.kind == Command::Kind::kCredit) ++to.credits_given[c.edge.index()];
  }
  check_credits(to);
}

void RankStates::check_start(const RankState& to, const Task& task, uint64_t bits) {
  const auto bad = [&](const char* why) { violated(to_string(task) + why); };
  const bool weight = task.kind == TaskKind::kWeightGradient ||
                      (bits & bit(task.stage, task.microbatch, TaskKind::kWeightGradient)) != 0;
  if ((to.started & bits) != 0) bad(" starts twice");
  if (!inputs_here(to, task)) bad(" starts without its inputs");
  if (weight && !setup_.tasks->weight(task.stage, task.microbatch)) bad(" is no task of the step");
  if (weight && setup_.policy.deterministic && !weight_turn(to, task)) bad(" starts out of turn");
}

bool RankStates::inputs_here(const RankState& to, const Task& task) const {
  const core::StepTasks& tasks = *setup_.tasks;
  const MicrobatchId i = task.microbatch;
  const auto done = [&](StageId s, TaskKind half) { return (to.done & bit(s, i, half)) != 0; };
  const auto here = [&](EdgeId e, Direction d, bool local_done) {
    return setup_.local(e) ? local_done : (to.arrived & setup_.message_bit(e, d, i)) != 0;
  };
  bool all = true;
  switch (task.kind) {
    case TaskKind::kWeightGradient: return done(task.stage, TaskKind::kInputGradient);
    case TaskKind::kForward:
      for (EdgeId e : setup_.graph().in_edges(task.stage)) {
        const bool fed = done(setup_.graph().edge(e).from, TaskKind::kForward);
        all = all && (!tasks.active(e, i) || here(e, Direction::kForward, fed));
      }
      return all && tasks.takes_part(task.stage, i);
    default:
      for (EdgeId e : setup_.graph().out_edges(task.stage)) {
        const bool fed = done(setup_.graph().edge(e).to, TaskKind::kInputGradient);
        all = all && (!tasks.returns(e, i) || here(e, Direction::kBackward, fed));
      }
      return all && done(task.stage, TaskKind::kForward) && tasks.backward(task.stage, i);
  }
}

bool RankStates::weight_turn(const RankState& to, const Task& task) const {
  for (int32_t k = 0; k < task.microbatch.value; ++k) {
    const MicrobatchId i(k);
    const bool done = (to.done & bit(task.stage, i, TaskKind::kWeightGradient)) != 0;
    if (setup_.tasks->weight(task.stage, i) && !done) return false;
  }
  return true;
}

void RankStates::check_credits(const RankState& to) {
  for (StageId s : setup_.graph().chunks(rank_)) {
    for (EdgeId e : setup_.graph().out_edges(s)) {
      if (credits_[e.index()] == 0) continue;
      int64_t used = -int64_t{to.credits_here[e.index()]};
      for (size_t k = 0; k < setup_.columns(); ++k) {
        const MicrobatchId i = MicrobatchId::of(k);
        if (!setup_.tasks->active(e, i)) continue;
        used += (to.started & bit(s, i, TaskKind::kForward)) != 0 ? 1 : 0;
        if (!setup_.local(e)) continue;
        const StageId consumer = setup_.graph().edge(e).to;
        used -= (to.started & bit(consumer, i, TaskKind::kForward)) != 0 ? 1 : 0;
      }
      if (used > credits_[e.index()]) {
        violated("more messages than credits on edge " + std::to_string(e.value));
      }
    }
  }
}

/// True if the end of `task` is the end of all that its (stage, microbatch) has to do.
bool RankStates::pair_done(const Task& task) const {
  switch (task.kind) {
    case TaskKind::kForward: return !setup_.tasks->backward(task.stage, task.microbatch);
    case TaskKind::kInputGradient: return !setup_.tasks->weight(task.stage, task.microbatch);
    default: return true;
  }
}

core::Amount RankStates::held(const Task& task) const {
  if (!setup_.tasks->backward(task.stage, task.microbatch)) return {};
  return {1, setup_.tasks->held_bytes(task.stage, task.microbatch)};
}

void RankStates::task_done(RankState& to) {
  const Task task = to.core.running_task();
  to.done = to.started;  // a rank runs one task at a time
  const bool last = pair_done(task);
  if (last && task.kind != TaskKind::kForward) to.live -= held(task);
  int forgets = 0;
  for (const Command& c : to.core.apply(Event::task_done(), 0)) {
    switch (c.kind) {
      case Command::Kind::kSend: {
        const uint64_t message = setup_.message_bit(c.edge, c.direction, c.microbatch);
        if ((to.sent & message) != 0) violated("a message is sent twice");
        to.sent |= message;
        break;
      }
      case Command::Kind::kForget: ++forgets; break;
      case Command::Kind::kStepComplete: fire(to, 0, StageId(0)); break;
      case Command::Kind::kLosses: fire(to, 1, c.task.stage); break;
      case Command::Kind::kStageGradients: fire(to, 2, c.task.stage); break;
      default: break;
    }
  }
  if (forgets != (last ? 1 : 0)) violated(to_string(task) + " forgets too early or too late");
  uint64_t all = 0;
  if (to.counters != counters_due(to.done, all)) {
    violated("at the end of " + to_string(task) + " a counter fires too early or too late");
  }
}

void RankStates::fire(RankState& to, uint64_t which, StageId stage) {
  const uint64_t counter = uint64_t{1} << (which * 16 + stage.index());
  if ((to.counters & counter) != 0) violated("a counter fires twice");
  to.counters |= counter;
}

uint64_t RankStates::counters_due(uint64_t done, uint64_t& all) const {
  uint64_t due = 0;
  all = 0;
  for (StageId s : setup_.graph().chunks(rank_)) {
    uint64_t forwards = 0;
    uint64_t gradients = 0;
    uint64_t weights = 0;
    for (size_t k = 0; k < setup_.columns(); ++k) {
      const MicrobatchId i = MicrobatchId::of(k);
      if (setup_.tasks->takes_part(s, i)) forwards |= bit(s, i, TaskKind::kForward);
      if (setup_.tasks->backward(s, i)) gradients |= bit(s, i, TaskKind::kInputGradient);
      if (setup_.tasks->weight(s, i)) weights |= bit(s, i, TaskKind::kWeightGradient);
    }
    const bool losses = forwards != 0 && setup_.graph().stage(s).loss;
    if (losses && (forwards & ~done) == 0) due |= uint64_t{1} << (16 + s.index());
    if (weights != 0 && (weights & ~done) == 0) due |= uint64_t{1} << (32 + s.index());
    all |= forwards | gradients | weights;
  }
  if ((all & ~done) == 0) due |= 1;
  return due;
}

bool RankStates::at_end(int32_t id) const {
  const RankState& state = at(id);
  uint64_t all = 0;
  const uint64_t due = counters_due(state.done, all);
  return state.core.complete() && state.done == all && state.counters == due &&
         state.live == core::Amount();
}

}  // namespace rrfp::test
