// SPDX-License-Identifier: Apache-2.0
#include "engine/core/rank_core.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace rrfp::core {
namespace {

std::string name_of(const Event& event) {
  return std::string(event.direction == Direction::kForward ? "activation" : "gradient") +
         " of edge " + std::to_string(event.edge.value) + ", microbatch " +
         std::to_string(event.microbatch.value);
}

}  // namespace
void RankCore::begin_step(std::shared_ptr<const RankPlan> plan, int64_t now_ns) {
  assert(plan != nullptr);
  now_ns_ = begun_ns_ = now_ns;
  plan_ = std::move(plan);
  const auto n = static_cast<uint32_t>(plan_->order.size());
  const size_t m = plan_->needs.size();
  const size_t chunk_count = plan_->chunks.size();

  cells_.assign(plan_->cells.size(), {});
  ready_backward_.reset(n);
  ready_weight_.reset(n);
  ready_ns_.assign(plan_->policy.record_ready ? n : 0, now_ns);
  ready_forward_.resize(chunk_count);
  for (Bitmap& b : ready_forward_) b.reset(n);
  strict_next_ = 0;
  running_ = false;
  failed_ = false;
  fault_ = {};
  ledger_.reset(plan_->needs, plan_->cap);

  tasks_left_.assign(m, 0);
  forwards_left_.assign(chunk_count, 0);
  weights_left_.assign(chunk_count, 0);
  weight_next_.assign(chunk_count, 0);
  credits_used_.assign(plan_->edges.size(), 0);
  arrived_.assign(plan_->edges.size() * m * 2, false);
  holding_ = false;
  const bool hold = plan_->policy.hold_permille > 0;
  message_announced_.assign(hold ? arrived_.size() : 0, false);
  announced_.assign(hold ? cells_.size() : 0, {});
  announced_at_.reset(hold ? n : 0);
  const bool paired = plan_->policy.order == Order::kPaired;
  asked_.assign(paired ? arrived_.size() : 0, false);
  sent_.assign(paired ? arrived_.size() : 0, false);
  unasked_sends_ = 0;
  late_ = false;
  leaving_at_ = returning_at_ = leave_next_ = Bitmap::kNone;
  copying_ns_ = 0;
  away_largest_ = {};
  away_.reset(plan_->offload ? n : 0);
  kept_.resize(plan_->offload ? chunk_count : 0);
  for (Bitmap& b : kept_) b.reset(n);
  work_left_ = plan_->work_count;

  size_t outputs_max = 0;
  for (const ChunkPlan& c : plan_->chunks) {
    outputs_max = std::max(outputs_max, 2 * (c.in.size() + c.out.size()));
  }
  commands_.assign(outputs_max + 8, {});
  command_count_ = 0;

  begin_chunks();
}

/// What is left to do, and what is ready at once.
void RankCore::begin_chunks() {
  const size_t m = plan_->needs.size();
  for (size_t c = 0; c < plan_->chunks.size(); ++c) {
    forwards_left_[c] = plan_->chunks[c].forward_count;
    weights_left_[c] = plan_->chunks[c].weight_count;
    for (size_t k = 0; k < m; ++k) {
      const MicrobatchId i = MicrobatchId::of(k);
      const CellPlan& p = plan_of(c, i);
      if (p.forward_at == CellPlan::kNoTask) continue;
      tasks_left_[k] += 1 + (p.backward ? 1 : 0) + (p.weight ? 1 : 0);
      cell(c, i).forward_missing = p.forward_inputs;
      cell(c, i).gradient_missing = static_cast<uint16_t>(p.gradient_inputs + 1);
      if (p.forward_inputs == 0) ready_forward(c, i);
    }
    while (weight_next_[c] < plan_->microbatches() &&
           !plan_of(c, MicrobatchId(weight_next_[c])).weight) {
      ++weight_next_[c];
    }
  }
  oldest_ = 0;
  while (oldest_ < plan_->microbatches() && tasks_left_[static_cast<size_t>(oldest_)] == 0) {
    ++oldest_;
  }
}

std::span<const Command> RankCore::apply(const Event& event, int64_t now_ns) {
  assert(plan_ != nullptr);
  command_count_ = 0;
  now_ns_ = now_ns;
  switch (event.kind) {
    case Event::Kind::kPull: pull(now_ns); break;
    case Event::Kind::kTaskDone: task_done(); break;
    case Event::Kind::kMessage: message_arrived(event); break;
    case Event::Kind::kCredit: credit_arrived(event); break;
    case Event::Kind::kAnnounce: announce_arrived(event, now_ns); break;
    case Event::Kind::kReceiving: receiving(event); break;
    case Event::Kind::kOffloaded: offloaded(); break;
    case Event::Kind::kLoaded: loaded(); break;
    case Event::Kind::kPeerFailed: failed_ = true; break;
  }
  if (plan_->offload && !failed_) start_transfers();
  return {commands_.data(), command_count_};
}

// --- A task is done

void RankCore::task_done() {
  if (!running_) return fail("a task was reported done while none is running");
  const size_t chunk = plan_->order[running_at_].chunk;
  const MicrobatchId i = plan_->order[running_at_].microbatch;
  running_ = false;
  switch (running_kind_) {
    case TaskKind::kForward: forward_done(chunk, i); break;
    case TaskKind::kInputGradient: input_gradient_done(chunk, i); break;
    case TaskKind::kBackward:
      input_gradient_done(chunk, i);
      if (plan_of(chunk, i).weight) weight_done(chunk, i);
      break;
    case TaskKind::kWeightGradient: weight_done(chunk, i); break;
  }
  if (work_left_ == 0) emit(Command::Kind::kStepComplete);
}

void RankCore::forward_done(size_t chunk, MicrobatchId i) {
  cell(chunk, i).forward_done = true;
  for (uint16_t e : plan_->chunks[chunk].out) {
    if (plan_->tasks->active(plan_->edges[e].id, i)) emit_output(e, Direction::kForward, i);
  }
  if (--forwards_left_[chunk] == 0 && plan_->chunks[chunk].loss) {
    emit(Command::Kind::kLosses).task.stage = plan_->chunks[chunk].stage;
  }
  if (plan_of(chunk, i).backward) {
    if (plan_->offload) offload_after_forward(chunk, i);
    backward_input_here(chunk, i);
  } else {
    pair_done(chunk, i);
  }
  work_done(i);
}

void RankCore::input_gradient_done(size_t chunk, MicrobatchId i) {
  Cell& state = cell(chunk, i);
  state.input_gradient_done = true;
  for (uint16_t e : plan_->chunks[chunk].in) {
    if (plan_->tasks->returns(plan_->edges[e].id, i)) emit_output(e, Direction::kBackward, i);
  }
  if (!plan_of(chunk, i).weight) {
    release(chunk, i);
    pair_done(chunk, i);
  } else if (!state.weight_started && weight_turn(chunk, i)) {
    ready_weight(plan_of(chunk, i).weight_at);
  }
  work_done(i);
}

void RankCore::weight_done(size_t chunk, MicrobatchId i) {
  cell(chunk, i).weight_done = true;
  release(chunk, i);
  pair_done(chunk, i);
  if (--weights_left_[chunk] == 0) {
    emit(Command::Kind::kStageGradients).task.stage = plan_->chunks[chunk].stage;
  }
  if (plan_->policy.deterministic) advance_turn(chunk);
  work_done(i);
}

void RankCore::release(size_t chunk, MicrobatchId i) {
  ledger_.release(i, plan_->held(plan_of(chunk, i)));
}

void RankCore::pair_done(size_t chunk, MicrobatchId i) {
  Command& forget = emit(Command::Kind::kForget);
  forget.task.stage = plan_->chunks[chunk].stage;
  forget.task.microbatch = i;
}

void RankCore::work_done(MicrobatchId i) {
  --work_left_;
  if (--tasks_left_[i.index()] > 0) return;
  while (oldest_ < plan_->microbatches() && tasks_left_[static_cast<size_t>(oldest_)] == 0) {
    ++oldest_;
  }
}

void RankCore::advance_turn(size_t chunk) {
  int32_t& next = weight_next_[chunk];
  do {
    ++next;
  } while (next < plan_->microbatches() && !plan_of(chunk, MicrobatchId(next)).weight);
  if (next == plan_->microbatches()) return;
  const MicrobatchId i(next);
  if (cell(chunk, i).input_gradient_done) {
    ready_weight(plan_of(chunk, i).weight_at);
  } else {
    ready_backward_if_due(chunk, i);  // a stage that cannot split B waited for its turn
  }
}

// --- Something has arrived

size_t RankCore::message_bit(size_t edge, Direction direction, MicrobatchId i) const {
  return (edge * 2 + static_cast<size_t>(direction)) * plan_->needs.size() + i.index();
}

/// True if another rank may send this message to us.
bool RankCore::message_expected(size_t edge, const Event& event) const {
  if (edge == plan_->edges.size() || !event.microbatch.valid() ||
      event.microbatch.value >= plan_->microbatches()) {
    return false;
  }
  const EdgePlan& e = plan_->edges[edge];
  if (e.local()) return false;
  return event.direction == Direction::kForward
             ? e.to_chunk != EdgePlan::kRemote && plan_->tasks->active(e.id, event.microbatch)
             : e.from_chunk != EdgePlan::kRemote && plan_->tasks->returns(e.id, event.microbatch);
}

void RankCore::message_arrived(const Event& event) {
  const size_t edge = plan_->find_edge(event.edge);
  if (!message_expected(edge, event))
    return fail("a message that is not of this step: " + name_of(event));
  const size_t bit = message_bit(edge, event.direction, event.microbatch);
  if (arrived_[bit]) return fail("a message arrived twice: " + name_of(event));
  arrived_[bit] = true;
  if (event.late && plan_->policy.late_ns > 0) late_ = true;
  input_here(edge, event.direction, event.microbatch);
}

void RankCore::input_here(size_t edge, Direction direction, MicrobatchId i) {
  const bool forward = direction == Direction::kForward;
  const size_t chunk = forward ? plan_->edges[edge].to_chunk : plan_->edges[edge].from_chunk;
  if (plan_->policy.hold_permille > 0 && message_announced_[message_bit(edge, direction, i)]) {
    --announced_[plan_->cell_index(chunk, i)].count[static_cast<size_t>(direction)];
  }
  if (!forward) return backward_input_here(chunk, i);
  if (--cell(chunk, i).forward_missing == 0) ready_forward(chunk, i);
  update_announced(chunk, i, Direction::kForward);
}

void RankCore::backward_input_here(size_t chunk, MicrobatchId i) {
  --cell(chunk, i).gradient_missing;
  ready_backward_if_due(chunk, i);
  update_announced(chunk, i, Direction::kBackward);
}

void RankCore::ready_forward(size_t chunk, MicrobatchId i) {
  const uint32_t at = plan_of(chunk, i).forward_at;
  ready_forward_[chunk].insert(at);
  note_ready(at);
}

void RankCore::ready_weight(uint32_t at) {
  ready_weight_.insert(at);
  note_ready(at);
}

void RankCore::ready_backward_if_due(size_t chunk, MicrobatchId i) {
  if (cell(chunk, i).gradient_missing > 0) return;
  if (waits_for_turn(chunk, i)) return;
  ready_backward_.insert(plan_of(chunk, i).backward_at);
  note_ready(plan_of(chunk, i).backward_at);
}

void RankCore::credit_arrived(const Event& event) {
  const size_t edge = plan_->find_edge(event.edge);
  if (edge == plan_->edges.size() || credits_used_[edge] == 0) {
    return fail("a credit that was not owed: edge " + std::to_string(event.edge.value));
  }
  --credits_used_[edge];
}

void RankCore::announce_arrived(const Event& event, int64_t now_ns) {
  if (plan_->policy.hold_permille == 0) return;
  const size_t edge = plan_->find_edge(event.edge);
  if (!message_expected(edge, event)) {
    return fail("an announcement that is not of this step: " + name_of(event));
  }
  const size_t bit = message_bit(edge, event.direction, event.microbatch);
  if (arrived_[bit] || message_announced_[bit]) return;  // overtaken by its message, or repeated
  message_announced_[bit] = true;
  const bool forward = event.direction == Direction::kForward;
  const size_t chunk = forward ? plan_->edges[edge].to_chunk : plan_->edges[edge].from_chunk;
  Announced& announced = announced_[plan_->cell_index(chunk, event.microbatch)];
  const auto side = static_cast<size_t>(event.direction);
  ++announced.count[side];
  announced.eta_ns[side] = std::max(announced.eta_ns[side], now_ns + event.duration_ns);
  update_announced(chunk, event.microbatch, event.direction);
}

void RankCore::update_announced(size_t chunk, MicrobatchId i, Direction direction) {
  if (plan_->policy.hold_permille == 0) return;
  const bool forward = direction == Direction::kForward;
  const CellPlan& p = plan_of(chunk, i);
  const Cell& state = cell(chunk, i);
  const uint16_t missing = forward ? state.forward_missing : state.gradient_missing;
  const uint16_t announced =
      announced_[plan_->cell_index(chunk, i)].count[static_cast<size_t>(direction)];
  const uint32_t at = forward ? p.forward_at : p.backward_at;
  if (missing > 0 && missing == announced) {
    announced_at_.insert(at);
  } else {
    announced_at_.erase(at);
  }
}

// --- Commands

Command& RankCore::emit(Command::Kind kind) {
  assert(command_count_ < commands_.size());
  Command& command = commands_[command_count_++];
  command = {};
  command.kind = kind;
  return command;
}

void RankCore::emit_output(size_t edge, Direction direction, MicrobatchId i) {
  const EdgePlan& e = plan_->edges[edge];
  Command& command = emit(e.local() ? Command::Kind::kDeliver : Command::Kind::kSend);
  command.edge = e.id;
  command.direction = direction;
  command.microbatch = i;
  command.peer = e.peer;
  command.late = late_;
  if (e.local()) return input_here(edge, direction, i);
  if (plan_->policy.order != Order::kPaired) return;
  const size_t bit = message_bit(edge, direction, i);
  sent_[bit] = true;
  unasked_sends_ += asked_[bit] ? 0 : 1;
}

/// Paired order: the receiver of one of our messages asks for it.
void RankCore::receiving(const Event& event) {
  const size_t edge = plan_->find_edge(event.edge);
  if (plan_->policy.order != Order::kPaired || edge == plan_->edges.size() ||
      !event.microbatch.valid() || event.microbatch.value >= plan_->microbatches()) {
    return fail("a message was asked for that is not of this step: " + name_of(event));
  }
  const size_t bit = message_bit(edge, event.direction, event.microbatch);
  if (asked_[bit]) return fail("a message was asked for twice: " + name_of(event));
  asked_[bit] = true;
  unasked_sends_ -= sent_[bit] ? 1 : 0;
}

void RankCore::fail(std::string text) {
  failed_ = true;
  if (fault_.ok()) fault_ = {Code::kInternal, std::move(text)};
}

}  // namespace rrfp::core
