// SPDX-License-Identifier: Apache-2.0
//
// The life of a step on one rank: begin, next, done, end.
#include "engine/host/rank_host.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/host/pipeline.h"

namespace rrfp::host {

using core::Code;
using core::Command;
using core::Event;
using core::IdleReason;
using core::Status;

namespace {

// A full mailbox empties without telling its senders, so they look again after this long.
constexpr int64_t kOutboxRetryNs = 50'000;

std::vector<core::RankId> peers_of(const core::StageGraph& graph, core::RankId rank) {
  std::vector<core::RankId> peers;
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const core::Edge& edge = graph.edge(core::EdgeId(e));
    const core::RankId from = graph.stage(edge.from).rank;
    const core::RankId to = graph.stage(edge.to).rank;
    if (from == to || (from != rank && to != rank)) continue;
    peers.push_back(from == rank ? to : from);
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace

RankHost::RankHost(Pipeline& pipeline, core::RankId rank, comm::Transport& transport)
    : pipeline_(pipeline),
      rank_(rank),
      transport_(transport),
      peers_(peers_of(pipeline.graph(), rank)),
      memory_(comm::MemoryPool::create()),
      timeline_(pipeline.options().trace_steps) {
  full_.assign(static_cast<size_t>(pipeline.graph().ranks()), false);
}

RankHost::~RankHost() {
  reset();
  memory_->close();
}

// --- Checks

/// An owner's claim.
bool RankHost::enter() {
  while (!try_claim(kOwner)) {
    if (claimed_.load(std::memory_order_relaxed) == kOwner) return false;
    std::this_thread::yield();
  }
  return true;
}

Status RankHost::busy() const {
  return Status(Code::kBusy, "another thread is inside a call on rank " +
                                 std::to_string(rank_.value) + "; a rank has one owner at a time")
      .at(rank_);
}

Status RankHost::check_usable() const {
  if (is_open()) return {};
  return Status(Code::kClosed, "rank " + std::to_string(rank_.value) + " has been destroyed")
      .at(rank_);
}

Status RankHost::check_in_step() const {
  if (Status s = check_usable(); !s.ok()) return s;
  if (state_ == State::kInStep) return {};
  if (state_ == State::kStepFailed) return transport_.failure();
  return Status(Code::kBadState,
                "rank " + std::to_string(rank_.value) + " is in no step; call begin_step first")
      .at(rank_);
}

Status RankHost::check_ticket(uint64_t ticket) const {
  if (Status s = check_in_step(); !s.ok()) return s;
  if (running_ && ticket == ticket_) return {};
  if (!running_ && ticket == ticket_ && ticket != 0) {
    return Status(Code::kBadState, "task " + to_string(task_) + " (ticket " +
                                       std::to_string(ticket) + ") is already done")
        .at(rank_, task_);
  }
  return Status(Code::kBadState, "ticket " + std::to_string(ticket) +
                                     " is not that of a running task; " +
                                     (running_ ? "the running task " + to_string(task_) +
                                                     " has ticket " + std::to_string(ticket_)
                                               : "no task is running"))
      .at(rank_);
}

// --- Beginning

Status RankHost::plan_step(const StepRequest& request, std::shared_ptr<const core::RankPlan>& out) {
  const bool as_before = plan_ != nullptr && request.hint == request_.hint &&
                         request.policy == request_.policy && request.shape == request_.shape;
  if (as_before) {
    out = plan_;
    return {};
  }
  const PipelineOptions& options = pipeline_.options();
  core::Policy policy = request.policy;
  policy.record_ready = timeline_.enabled();
  std::shared_ptr<const core::StepTasks> tasks;
  if (Status s = core::StepTasks::create(pipeline_.shared_graph(), request.shape, tasks); !s.ok()) {
    return s;
  }
  if (policy.strict() && policy.late_ns == 0) {
    if (Status s = core::check_strict(tasks, *request.hint, policy, options.caps); !s.ok()) {
      return s;
    }
  }
  return core::build_plan(std::move(tasks), *request.hint, rank_, policy,
                          options.caps[rank_.index()], out);
}

Status RankHost::begin_step(const StepRequest& request) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  if (Status s = check_usable(); !s.ok()) return s;
  take_out_rubbish();
  if (state_ != State::kNoStep) {
    return Status(Code::kBadState, "step " + std::to_string(request_.step) +
                                       " has not ended on rank " + std::to_string(rank_.value) +
                                       "; call end_step first")
        .at(rank_);
  }
  if (transport_.failed()) return transport_.failure();
  std::shared_ptr<const core::RankPlan> plan;
  if (Status s = plan_step(request, plan); !s.ok()) return std::move(s).at(rank_);
  const std::lock_guard lock(mutex_);
  if (Status s = check_usable(); !s.ok()) return s;  // it may have been destroyed while we planned
  return all_or_fail([&] {
    start_step(request, std::move(plan));
    Status s = replay_early();
    return s.ok() ? s : raise(std::move(s));
  });
}

void RankHost::start_step(const StepRequest& request, std::shared_ptr<const core::RankPlan> plan) {
  if (plan != plan_ || header_.step != request.step) header_ = make_header(request);
  plan_ = std::move(plan);
  request_ = request;
  begun_ns_ = comm::now_ns();
  core_.begin_step(plan_, begun_ns_);
  begin_trace();
  const size_t m = plan_->needs.size();
  inbox_.assign(plan_->edges.size() * 2 * m, nullptr);
  outgoing_.assign(plan_->edges.size(), nullptr);
  awaited_ = peers_;
  ++sequence_;
  state_ = State::kInStep;
  running_ = false;
  report_ = {};
  report_.step = request_.step;
  memory_->restart_peak();
  progress_ns_.store(begun_ns_, std::memory_order_relaxed);
  idle_since_ns_ = 0;
  gone_seen_ = {};
  send_headers();
}

// --- Pulling

Status RankHost::next(int64_t timeout_ns, TaskInfo& out) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  take_out_rubbish();
  std::unique_lock lock(mutex_);
  if (Status s = check_in_step(); !s.ok()) return s;
  if (running_) {
    return Status(Code::kBadState, "task " + to_string(task_) +
                                       " has been handed out and is not done; call done or fail")
        .at(rank_, task_);
  }
  int64_t now_ns = comm::now_ns();
  const int64_t deadline_ns = timeout_ns < 0 || timeout_ns > INT64_MAX - now_ns
                                  ? comm::Transport::kForever
                                  : now_ns + timeout_ns;
  for (;;) {
    int64_t until_ns = comm::Transport::kForever;
    Status s = all_or_fail([&] { return look_for_task(now_ns, out, until_ns); });
    if (s.code() != Code::kAgain) return s;
    // The watchdog comes first: a caller that only ever polls must hear of it too.
    const int64_t watch_ns = pipeline_.watch_due_ns();
    const bool watch = now_ns >= watch_ns;
    if (!watch && (now_ns >= deadline_ns || wake_requested_.exchange(false))) {
      note_busy(now_ns);
      return s;
    }
    lock.unlock();
    if (watch) {
      pipeline_.watch(rank_, now_ns);
    } else {
      transport_.wait(std::min({deadline_ns, until_ns, watch_ns}));
    }
    take_out_rubbish();
    lock.lock();
    if (Status closed = check_usable(); !closed.ok()) return closed;
    now_ns = comm::now_ns();
  }
}

Status RankHost::look_for_task(int64_t now_ns, TaskInfo& out, int64_t& until_ns) {
  if (transport_.failed()) return step_failed();
  if (Status s = drain(); !s.ok()) return raise(std::move(s));
  flush_outbox();
  const std::span<const Command> answer = core_.apply(Event::pull(), now_ns);
  const Command first = answer.front();
  if (first.kind == Command::Kind::kRun) {
    orders_.assign(answer.begin() + 1, answer.end());
    for (const Command& order : orders_) obey(order);
    hand_out(first, now_ns, out);
    return {};
  }
  if (first.reason == IdleReason::kFailed) return raise(core_.fault());
  until_ns = first.until_ns;
  for (const Command& c : answer.subspan(1)) {  // paired order: what it asks for
    orders_.assign(1, c);
    obey(orders_.front());
  }
  if (!outbox_.empty()) until_ns = std::min(until_ns, now_ns + kOutboxRetryNs);
  if (!delayed_.empty()) until_ns = std::min(until_ns, delayed_.front().data.due_ns);
  if (first.reason == IdleReason::kComplete) {
    note_busy(now_ns);
    if (!unfinished()) return Code::kStepDone;
  } else {
    note_idle(first.reason, now_ns);
  }
  if (pipeline_.any_gone()) {
    Status s = check_gone_peers();
    // Its last message may have come between the look into the mailbox and this one; look again.
    const bool for_good = s.rank() == gone_seen_ && transport_.quiet();
    if (!s.ok() && for_good) return raise(std::move(s));
    gone_seen_ = s.rank();
    if (!s.ok()) until_ns = now_ns;
  }
  return Code::kAgain;
}

void RankHost::hand_out(const Command& run, int64_t now_ns, TaskInfo& out) {
  note_busy(now_ns);
  running_ = true;
  running_since_ns_ = now_ns;
  ready_ns_ = run.ready_ns;
  task_ = run.task;
  ++ticket_;
  out = {task_, ticket_, pipeline_.graph().stage(task_.stage).loss};
}

void RankHost::note_idle(IdleReason reason, int64_t now_ns) {
  if (idle_since_ns_ != 0 && reason == idle_reason_) return;
  note_busy(now_ns);
  idle_since_ns_ = now_ns;
  idle_reason_ = reason;
}

/// Ends an idle interval, if there is one, and books it under its reason.
void RankHost::note_busy(int64_t now_ns) {
  if (idle_since_ns_ == 0) return;
  const int64_t idle_ns = now_ns - idle_since_ns_;
  if (tracing_) {
    timeline_.add_idle({.reason = trace::idle_kind(idle_reason_),
                        .step = traced_step_,
                        .begin_ns = idle_since_ns_,
                        .end_ns = now_ns});
  }
  idle_since_ns_ = 0;
  switch (idle_reason_) {
    case IdleReason::kMemory: report_.wait_memory_ns += idle_ns; break;
    case IdleReason::kCredit: report_.wait_credit_ns += idle_ns; break;
    case IdleReason::kPolicy: report_.wait_policy_ns += idle_ns; break;
    default: report_.wait_input_ns += idle_ns; break;
  }
}

/// Names a peer whose handle is gone and that has not begun the step. A peer that has begun either
/// leaves after it has sent everything, or its leaving fails the step. Once the mailbox has been
/// emptied after this, the peer's header will never come.
Status RankHost::check_gone_peers() const {
  for (core::RankId peer : awaited_) {
    if (!pipeline_.rank(peer).gone()) continue;
    return Status(Code::kClosed, "rank " + std::to_string(peer.value) +
                                     " was destroyed before it began step " +
                                     std::to_string(request_.step))
        .at(peer);
  }
  return {};
}

// --- Finishing

Status RankHost::done(uint64_t ticket, uint32_t& events) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  {
    const std::lock_guard lock(mutex_);
    if (Status s = check_ticket(ticket); !s.ok()) return s;
    if (transport_.failed()) return step_failed();
    if (Status s = check_outputs_put(); !s.ok()) return s;
    const int64_t now_ns = comm::now_ns();
    running_ = false;
    ++report_.tasks;
    report_.busy_ns += now_ns - running_since_ns_;
    report_.total_ns = now_ns - begun_ns_;
    progress_ns_.store(now_ns, std::memory_order_relaxed);
    if (tracing_) trace_task(now_ns);
    const std::span<const Command> answer = core_.apply(Event::task_done(), now_ns);
    if (core_.failed()) return raise(core_.fault());
    Status s = all_or_fail([&]() -> Status {
      orders_.assign(answer.begin(), answer.end());
      events_ = 0;
      for (const Command& order : orders_) obey(order);
      flush_outbox();
      discard_scratch();
      return {};
    });
    if (!s.ok()) return s;
    events = events_;
  }
  take_out_rubbish();
  return {};
}

void RankHost::obey(const Command& command) {
  comm::Message message;
  message.direction = command.direction;
  message.edge = command.edge;
  message.microbatch = command.microbatch;
  switch (command.kind) {
    case Command::Kind::kSend: {
      message.kind = comm::Message::Kind::kData;
      message.late = command.late;
      message.data.payload = std::exchange(outgoing_[plan_->find_edge(command.edge)], nullptr);
      stamp(message);
      send(command.peer, message);
      break;
    }
    case Command::Kind::kDeliver: {
      const size_t edge = plan_->find_edge(command.edge);
      inbox_[slot(edge, command.direction, command.microbatch)] =
          std::exchange(outgoing_[edge], nullptr);
      break;
    }
    case Command::Kind::kAnnounce:
      message.kind = comm::Message::Kind::kAnnounce;
      message.duration_ns = command.duration_ns;
      send(command.peer, message);
      break;
    case Command::Kind::kCredit:
      message.kind = comm::Message::Kind::kCredit;
      send(command.peer, message);
      break;
    case Command::Kind::kReceive:
      message.kind = comm::Message::Kind::kReceive;
      send(command.peer, message);
      break;
    case Command::Kind::kForget: release_pair(command.task); break;
    case Command::Kind::kLosses: events_ |= kStageLossesDone; break;
    case Command::Kind::kStageGradients: events_ |= kStageGradientsDone; break;
    case Command::Kind::kStepComplete:
      events_ |= kStepDone;
      drop_hints();
      break;
    case Command::Kind::kRun:
    case Command::Kind::kIdle: assert(false && "answers to a pull, handled there"); break;
    case Command::Kind::kOffload:
    case Command::Kind::kLoad: assert(false && "no device of this host has another memory"); break;
  }
}

/// Frees what arrived for a (stage, microbatch).
void RankHost::release_pair(const core::Task& pair) {
  const core::ChunkPlan& chunk = plan_->chunks[plan_->find_chunk(pair.stage)];
  const auto release = [&](uint16_t edge, core::Direction direction) {
    comm::Payload*& payload = inbox_[slot(edge, direction, pair.microbatch)];
    if (payload != nullptr) discard(std::exchange(payload, nullptr));
  };
  for (uint16_t edge : chunk.in) release(edge, core::Direction::kForward);
  for (uint16_t edge : chunk.out) release(edge, core::Direction::kBackward);
}

Status RankHost::fail(uint64_t ticket, int32_t user_code, std::string_view text) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  const std::lock_guard lock(mutex_);
  if (Status s = check_ticket(ticket); !s.ok()) return s;
  (void)raise(Status(Code::kStageFailed, "rank " + std::to_string(rank_.value) + ", task " +
                                             to_string(task_) + " failed: " + std::string(text))
                  .at(rank_, task_)
                  .with_user_code(user_code));
  return {};
}

/// Spreads a failure found here. Returns the failure that counts, which may be an earlier one.
Status RankHost::raise(Status failure) {
  if (!failure.rank().valid()) failure = std::move(failure).at(rank_);
  transport_.raise(failure);
  return step_failed();
}

Status RankHost::step_failed() {
  state_ = State::kStepFailed;
  running_ = false;
  return transport_.failure();
}

Status RankHost::end_step(StepReport& out) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  take_out_rubbish();
  {
    const std::lock_guard lock(mutex_);
    if (Status s = check_usable(); !s.ok()) return s;
    if (state_ != State::kStepFailed) {
      if (Status s = check_in_step(); !s.ok()) return s;
    }
    if (state_ == State::kStepFailed || transport_.failed()) {
      clear_step();
      return transport_.failure();  // the rubbish goes with the next call
    }
    if (running_ || !core_.complete() || unfinished()) {
      return Status(Code::kBadState,
                    "step " + std::to_string(request_.step) + " is not complete on rank " +
                        std::to_string(rank_.value) + ": " + std::to_string(core_.work_left()) +
                        " tasks remain; call next until it says that the step is done")
          .at(rank_);
    }
    report_.other_ns = report_.total_ns - report_.busy_ns - report_.wait_input_ns -
                       report_.wait_memory_ns - report_.wait_credit_ns - report_.wait_policy_ns;
    report_.peak = core_.ledger().peak();
    report_.tensor_bytes_peak = memory_->peak_bytes();
    report_.tensor_bytes_live = memory_->live_bytes();
    out = report_;
    clear_step();
  }
  take_out_rubbish();
  // What a step needs at once depends on its timing; memory that many steps did not need is freed.
  constexpr uint32_t kStepsPerTrim = 64;
  if (sequence_ % kStepsPerTrim == 0) memory_->trim();
  return {};
}

/// Gives up everything of the step that this rank holds.
void RankHost::clear_step() {
  state_ = State::kNoStep;
  running_ = false;
  discard_scratch();
  for (auto* payloads : {&inbox_, &outgoing_}) {
    for (comm::Payload*& payload : *payloads) {
      if (payload != nullptr) discard(std::exchange(payload, nullptr));
    }
  }
  for (const Queued& queued : outbox_) {
    if (queued.message.kind == comm::Message::Kind::kData) discard(queued.message.data.payload);
  }
  outbox_.clear();
  for (const comm::Message& message : delayed_) discard(message.data.payload);
  delayed_.clear();
}

// --- From other threads

void RankHost::wake() {
  wake_requested_.store(true);
  transport_.wake();
}

bool RankHost::open() {
  HandleState state = handle_.load();
  while (state == kNeverOpened || state == kGone) {
    if (!handle_.compare_exchange_weak(state, kOpen)) continue;
    memory_->adopt();
    return true;
  }
  return false;
}

bool RankHost::close() {
  HandleState state = kOpen;
  if (!handle_.compare_exchange_strong(state, kClosing)) return false;
  bool needed = false;
  {
    const std::lock_guard lock(mutex_);
    needed = state_ == State::kInStep && !(core_.complete() && outbox_.empty());
  }
  if (needed) {
    transport_.raise(Status(Code::kClosed, "rank " + std::to_string(rank_.value) +
                                               " was destroyed in step " +
                                               std::to_string(request_.step))
                         .at(rank_));
  }
  // An owner inside a call leaves soon: its wait ends, and every other call is short.
  while (!try_claim(kOwner)) {
    transport_.wake();
    std::this_thread::yield();
  }
  {
    const std::lock_guard lock(mutex_);
    clear_step();
  }
  take_out_rubbish();
  memory_->orphan();
  handle_.store(kGone);
  unclaim();
  return true;
}

void RankHost::reset() {
  {
    const std::lock_guard lock(mutex_);
    clear_step();
    for (const comm::Message& message : early_) {
      if (message.kind == comm::Message::Kind::kData) discard(message.data.payload);
    }
    early_.clear();
    sequence_ = 0;
    wake_requested_.store(false);
  }
  take_out_rubbish();
  memory_->trim();
}

}  // namespace rrfp::host
