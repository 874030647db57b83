// SPDX-License-Identifier: Apache-2.0
//
// One rank in real time. Its owner pulls tasks; the host feeds the RankCore with what has arrived,
// moves tensors and keeps time. It starts no thread.
//
// Threads: one owner at a time; a second thread inside a call at once is refused with kBusy. The
// state is also guarded by a mutex, which the owner gives up while it waits, so that another rank's
// watchdog can look at it.
#pragma once

#include <atomic>
#include <cassert>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "engine/comm/clock.h"
#include "engine/comm/transport.h"
#include "engine/core/rank_core.h"
#include "engine/host/options.h"
#include "engine/trace/timeline.h"

namespace rrfp::host {

class Pipeline;

struct TaskInfo {
  core::Task task;
  uint64_t ticket = 0;  // names this hand-out; never used again
  bool loss = false;    // of a loss stage
};

/// What a finished task completed, as bits. Values as in the C ABI.
enum DoneEvent : uint32_t {
  kStageGradientsDone = 1,  // all weight gradients of its stage are in
  kStageLossesDone = 2,     // all forwards of its stage, a loss stage, are done
  kStepDone = 4,            // it was the last task of this rank
};

class RankHost {
 public:
  RankHost(Pipeline& pipeline, core::RankId rank, comm::Transport& transport);
  ~RankHost();

  [[nodiscard]] core::RankId id() const { return rank_; }

  /// A step like the last one allocates nothing.
  core::Status begin_step(const StepRequest& request);
  /// Hands out a task (kOk), or says kAgain at the time-out or after wake(), or kStepDone.
  /// timeout_ns < 0: no time-out.
  core::Status next(int64_t timeout_ns, TaskInfo& out);
  /// Calls use(tensors, opaque) with what arrived along an edge of the running task's stage, or
  /// returns kAbsent. The tensors' memory stays until the last task of its (stage, microbatch) is
  /// done.
  template <class Use>
  core::Status input(uint64_t ticket, core::EdgeId edge, Use use) {
    const Entry entry(*this);
    if (entry.refused()) return busy();
    const std::lock_guard lock(mutex_);
    const comm::Payload* payload = nullptr;
    if (core::Status s = find_input(ticket, edge, payload); !s.ok()) return s;
    use(std::span<const comm::Tensor>(payload->tensors), payload->opaque);
    return {};
  }
  /// A tensor in memory of the engine. The running task holds it until it is done.
  core::Status allocate(uint64_t ticket, comm::DType dtype, std::span<const int64_t> shape,
                        comm::Tensor& out);
  /// The same for memory of the caller.
  core::Status wrap(uint64_t ticket, void* data, size_t bytes, comm::Buffer::ReleaseFn release,
                    void* user, comm::Buffer*& out);
  /// Gives the running task's output for an edge. Tensors without a buffer are copied.
  core::Status put(uint64_t ticket, core::EdgeId edge, std::span<const comm::Tensor> tensors,
                   void* opaque);
  /// Whether the running task must put an output for the edge: kOk or kAbsent.
  core::Status output_wanted(uint64_t ticket, core::EdgeId edge);
  core::Status done(uint64_t ticket, uint32_t& events);
  /// Which tasks and messages the step that was begun has. Owner only, in a step.
  [[nodiscard]] const core::StepTasks& step_tasks() const { return *plan_->tasks; }
  /// The running task failed: so does the step, everywhere.
  core::Status fail(uint64_t ticket, int32_t user_code, std::string_view text);
  /// Ends a complete or a failed step.
  core::Status end_step(StepReport& out);

  /// Adds what the owner did outside of tasks, or what it waited for. Owner only.
  void trace(const trace::TaskSpan& span) { timeline_.add_task(span); }
  void trace(const trace::IdleSpan& span) { timeline_.add_idle(span); }
  /// What has been recorded. The rank must be in no call.
  [[nodiscard]] const trace::RankTimeline& timeline() const { return timeline_; }

  /// Ends the current or the next wait of next(), which then returns kAgain. Any thread.
  void wake();

  // For Pipeline:
  /// Makes a waiting owner look again. Any thread.
  void nudge() { transport_.wake(); }
  /// Claims the rank for a handle; false if it has one. Any thread.
  [[nodiscard]] bool open();
  /// The handle is given up: fails a running step, sends a waiting owner home and waits until it
  /// has left. False if there was no handle. Any thread, but not from inside a call on this rank.
  bool close();
  [[nodiscard]] bool is_open() const { return handle_.load(std::memory_order_acquire) == kOpen; }
  /// It had a handle, and has none any more.
  [[nodiscard]] bool gone() const { return handle_.load(std::memory_order_acquire) == kGone; }
  /// Who is inside. An owner's call is refused by kOwner, but waits for kLooker, who is quick.
  enum Claim : uint8_t { kFree, kOwner, kLooker };
  /// Claims the rank; false if a call is under way.
  [[nodiscard]] bool try_claim(Claim as) {
    Claim held = kFree;
    return claimed_.compare_exchange_strong(held, as, std::memory_order_acquire);
  }
  void unclaim() { claimed_.store(kFree, std::memory_order_release); }
  /// Drops everything of the step. The caller has claimed the rank.
  void reset();
  [[nodiscard]] int64_t progress_ns() const { return progress_ns_.load(std::memory_order_relaxed); }
  /// Lines for a report: what the rank does, what it waits for, what it holds. Any thread.
  [[nodiscard]] std::string describe(int64_t now_ns);
  /// The running task and since when, if there is one. Any thread.
  [[nodiscard]] bool running_since(core::Task& task, int64_t& since_ns);

 private:
  /// Owner's entry into a call.
  class Entry {
   public:
    explicit Entry(RankHost& host) : host_(host), claimed_(host.enter()) {}
    ~Entry() {
      if (claimed_) host_.unclaim();
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    [[nodiscard]] bool refused() const { return !claimed_; }

   private:
    RankHost& host_;
    const bool claimed_;
  };

  enum class State : uint8_t { kNoStep, kInStep, kStepFailed };
  enum HandleState : uint8_t { kNeverOpened, kOpen, kClosing, kGone };

  // rank_host.cpp
  [[nodiscard]] bool enter();
  [[nodiscard]] core::Status busy() const;
  [[nodiscard]] core::Status check_usable() const;
  [[nodiscard]] core::Status check_in_step() const;
  [[nodiscard]] core::Status check_ticket(uint64_t ticket) const;
  core::Status plan_step(const StepRequest& request, std::shared_ptr<const core::RankPlan>& out);
  void start_step(const StepRequest& request, std::shared_ptr<const core::RankPlan> plan);
  core::Status look_for_task(int64_t now_ns, TaskInfo& out, int64_t& until_ns);
  void hand_out(const core::Command& run, int64_t now_ns, TaskInfo& out);
  void obey(const core::Command& command);
  void release_pair(const core::Task& pair);
  core::Status raise(core::Status failure);
  /// Runs a body that leaves the step half-done if it throws; then the step fails everywhere.
  template <class Body>
  core::Status all_or_fail(Body body) {
    try {
      return body();
    } catch (...) {
      (void)raise({core::Code::kNoMemory, "out of memory in the middle of a step"});
      throw;
    }
  }
  core::Status step_failed();
  [[nodiscard]] core::Status check_gone_peers() const;
  void note_idle(core::IdleReason reason, int64_t now_ns);
  void note_busy(int64_t now_ns);
  void clear_step();

  // rank_messages.cpp
  [[nodiscard]] comm::StepHeader make_header(const StepRequest& request) const;
  void send(core::RankId to, comm::Message message);
  void send_headers();
  void flush_outbox();
  void drop_hints();
  /// True while the step may not end although all tasks are done: something is still to be sent, or
  /// a peer has not begun the step. The latter makes sure that the ranks agree about it, and that
  /// no rank is ever more than one step ahead of a peer.
  [[nodiscard]] bool unfinished() const { return !outbox_.empty() || !awaited_.empty(); }
  core::Status drain();
  core::Status handle(const comm::Message& message);
  core::Status check_header(const comm::Message& message);
  core::Status feed(const core::Event& event);
  core::Status replay_early();
  [[nodiscard]] bool delayed(const comm::Message& message);
  [[nodiscard]] bool take_due(comm::Message& out);
  static bool due_later(const comm::Message& a, const comm::Message& b);
  void stamp(comm::Message& message) const;
  void begin_trace();
  [[nodiscard]] core::MicrobatchId traced(core::MicrobatchId i) const;
  void trace_task(int64_t now_ns);
  void trace_message(const comm::Message& message);

  // rank_tensors.cpp
  [[nodiscard]] size_t slot(size_t edge, core::Direction direction, core::MicrobatchId i) const;
  core::Status find_input(uint64_t ticket, core::EdgeId edge, const comm::Payload*& out) const;
  core::Status find_output(core::EdgeId edge, size_t& index) const;
  [[nodiscard]] bool output_due(core::EdgeId edge) const;
  core::Status check_outputs_put() const;
  core::Status check_output(size_t edge, std::span<const comm::Tensor> tensors) const;
  core::Status check_against_specs(core::EdgeId edge, std::span<const comm::Tensor> tensors) const;
  core::Status check_gradients(size_t edge, std::span<const comm::Tensor> tensors) const;
  core::Status take_tensor(comm::Tensor& tensor);
  void discard(comm::Payload* payload);
  void discard_scratch();
  void take_out_rubbish();

  Pipeline& pipeline_;
  const core::RankId rank_;
  comm::Transport& transport_;
  std::vector<core::RankId> peers_;
  comm::MemoryPool* const memory_;
  trace::RankTimeline timeline_;
  bool tracing_ = false;  // this step
  int64_t traced_step_ = -1;

  std::atomic<Claim> claimed_{kFree};
  std::atomic<HandleState> handle_{kNeverOpened};
  std::atomic<bool> wake_requested_{false};
  std::atomic<int64_t> progress_ns_{0};

  std::mutex mutex_;  // of everything below
  State state_ = State::kNoStep;
  core::RankCore core_;
  std::shared_ptr<const core::RankPlan> plan_;
  StepRequest request_;
  comm::StepHeader header_;
  uint32_t sequence_ = 0;  // steps begun since the last reset

  bool running_ = false;
  uint64_t ticket_ = 0;
  core::Task task_;
  std::vector<comm::Payload*> inbox_;     // by slot(): what has arrived
  std::vector<comm::Payload*> outgoing_;  // by edge: what the running task has put
  std::vector<comm::Buffer*> scratch_;    // references that the running task holds
  // What is to be given up once the mutex is free, for that may run release functions. Owner only.
  comm::Payload* rubbish_ = nullptr;  // a list through Payload::next
  std::vector<comm::Buffer*> rubbish_buffers_;
  struct Queued {
    core::RankId to;
    comm::Message message;
  };
  std::vector<Queued> outbox_;          // sends for which there was no room, oldest first
  std::vector<bool> full_;              // by rank, while the outbox is flushed
  core::RankId gone_seen_;              // a peer that was gone when a message of it was missing
  std::vector<core::RankId> awaited_;   // peers that have not begun this step
  std::vector<comm::Message> early_;    // messages of steps that have not begun here
  std::vector<core::Command> orders_;   // of the core, while they are obeyed
  std::vector<comm::Message> delayed_;  // on emulated links, a heap: the next one due is first

  StepReport report_;
  uint32_t events_ = 0;
  int64_t begun_ns_ = 0;
  int64_t running_since_ns_ = 0;
  int64_t ready_ns_ = 0;       // of the running task
  int64_t idle_since_ns_ = 0;  // 0 = not idle
  core::IdleReason idle_reason_ = core::IdleReason::kInput;
};

}  // namespace rrfp::host
