// SPDX-License-Identifier: Apache-2.0
//
// The scheduler of one rank: a state machine that is told what happened and says what to do. It has
// no clock, thread, I/O, random number or floating-point number, and allocates only in begin_step.
// The host drives it in real time, tests and simulations in virtual time. A copy is a snapshot.
//
// The states, the rules and their proofs are written down in engine/ARCHITECTURE.md.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/core/bitmap.h"
#include "engine/core/event.h"
#include "engine/core/plan.h"

namespace rrfp::core {

/// A task that has not started, for reports.
struct WaitingTask {
  struct Input {
    EdgeId edge;
    Direction direction = Direction::kForward;
    RankId from;
  };

  Task task;
  bool ready = false;                // it only waits for its turn, for memory or for credits
  bool own_forward_missing = false;  // backward: its own forward is not done
  bool weight_turn_missing = false;  // an older weight gradient of the stage comes first
  std::vector<Input> missing;
};

class RankCore {
 public:
  /// Starts a step. `plan` must come from build_plan.
  void begin_step(std::shared_ptr<const RankPlan> plan, int64_t now_ns = 0);

  /// Takes one event in and returns what to do, in order. The span is valid until the next call.
  /// `now_ns` may be any clock that does not run backwards.
  ///
  /// kPull: exactly one of kRun (perhaps followed by kCredit and kAnnounce) and kIdle.
  /// kTaskDone: kSend / kDeliver for each output, then counters.
  /// Any: kOffload and kLoad at the end; in paired order a pull also gives kReceive.
  /// An event that cannot be (a message twice, a message of an unknown edge, done without a running
  /// task) puts the core into the failed state; fault() says why.
  std::span<const Command> apply(const Event& event, int64_t now_ns);

  /// All tasks are done, and in paired order all that was sent has been asked for.
  [[nodiscard]] bool complete() const { return plan_ && work_left_ == 0 && unasked_sends_ == 0; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const Status& fault() const { return fault_; }
  [[nodiscard]] bool running() const { return running_; }
  /// Strict until late: it has given up strict order.
  [[nodiscard]] bool late() const { return late_; }
  [[nodiscard]] Task running_task() const;
  [[nodiscard]] int64_t work_left() const { return work_left_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const RankPlan& plan() const { return *plan_; }

  /// Up to `limit` tasks that have not started, in hint order, ready ones first. This and the next
  /// are for reports (rank_core_explain.cpp).
  [[nodiscard]] std::vector<WaitingTask> waiting(size_t limit) const;
  /// Strict order: the task that must run next, if any.
  [[nodiscard]] std::optional<WaitingTask> strict_next() const;

 private:
  struct Cell {
    uint16_t forward_missing = 0;
    uint16_t gradient_missing = 0;  // gradient messages, plus one for the own forward
    bool forward_started = false;
    bool forward_done = false;
    bool backward_started = false;  // B or I
    bool input_gradient_done = false;
    bool weight_started = false;
    bool weight_done = false;
    bool away = false;  // what the forward keeps is in the host's memory, or on its way back
  };
  /// What has been announced for one task and when its last input is due.
  struct Announced {
    uint16_t count[2] = {};  // by Direction of the inputs
    int64_t eta_ns[2] = {};
  };
  struct Choice {
    uint32_t at = Bitmap::kNone;
    IdleReason blocked = IdleReason::kInput;  // why nothing was chosen
  };

  void begin_chunks();
  void pull(int64_t now_ns);
  [[nodiscard]] Choice choose_ready() const;
  [[nodiscard]] Choice choose_forward(uint32_t before) const;
  [[nodiscard]] Choice choose_strict() const;
  [[nodiscard]] bool roomy() const;
  [[nodiscard]] bool strict() const { return plan_->policy.strict() && !late_; }
  /// Strict until late: gives up strict order if it is time, else says when that will be.
  [[nodiscard]] int64_t late_at_ns() const;
  void ask_for_inputs();
  /// Why the ready forward may not start now; nothing if it may.
  [[nodiscard]] std::optional<IdleReason> refusal(size_t chunk, MicrobatchId i) const;
  [[nodiscard]] bool must_hold(uint32_t at, int64_t now_ns);
  [[nodiscard]] TaskKind kind_at(uint32_t at) const;
  void start(uint32_t at, int64_t now_ns);
  void start_forward(size_t chunk, MicrobatchId i);
  void announce_outputs(size_t chunk, MicrobatchId i, TaskKind kind);

  void task_done();
  void forward_done(size_t chunk, MicrobatchId i);
  void input_gradient_done(size_t chunk, MicrobatchId i);
  void weight_done(size_t chunk, MicrobatchId i);
  void pair_done(size_t chunk, MicrobatchId i);
  void work_done(MicrobatchId i);
  void advance_turn(size_t chunk);
  void release(size_t chunk, MicrobatchId i);

  // Activations in the host's memory (rank_core_offload.cpp).
  void start_transfers();
  void offload_after_forward(size_t chunk, MicrobatchId i);
  void offloaded();
  void loaded();
  [[nodiscard]] bool may_load(uint32_t at, bool wanted) const;
  [[nodiscard]] uint32_t choose_load() const;
  void measure_away();
  [[nodiscard]] bool gradients_here_or_announced(size_t chunk, MicrobatchId i) const;

  void receiving(const Event& event);
  void message_arrived(const Event& event);
  void credit_arrived(const Event& event);
  void announce_arrived(const Event& event, int64_t now_ns);
  void input_here(size_t edge, Direction direction, MicrobatchId i);
  void backward_input_here(size_t chunk, MicrobatchId i);
  void ready_forward(size_t chunk, MicrobatchId i);
  void ready_weight(uint32_t at);
  void note_ready(uint32_t at) {
    if (!ready_ns_.empty()) ready_ns_[at] = now_ns_;
  }
  void ready_backward_if_due(size_t chunk, MicrobatchId i);
  void update_announced(size_t chunk, MicrobatchId i, Direction direction);

  void emit_output(size_t edge, Direction direction, MicrobatchId i);
  Command& emit(Command::Kind kind);
  [[nodiscard]] bool started(uint32_t at) const;
  [[nodiscard]] WaitingTask explain(uint32_t at) const;
  [[nodiscard]] bool local_output_done(const EdgePlan& edge, Direction direction,
                                       MicrobatchId i) const;
  void fail(std::string text);
  [[nodiscard]] bool message_expected(size_t edge, const Event& event) const;
  [[nodiscard]] size_t message_bit(size_t edge, Direction direction, MicrobatchId i) const;

  [[nodiscard]] const CellPlan& plan_of(size_t chunk, MicrobatchId i) const {
    return plan_->cell(chunk, i);
  }
  [[nodiscard]] Cell& cell(size_t chunk, MicrobatchId i) {
    return cells_[plan_->cell_index(chunk, i)];
  }
  [[nodiscard]] const Cell& cell(size_t chunk, MicrobatchId i) const {
    return cells_[plan_->cell_index(chunk, i)];
  }
  [[nodiscard]] bool weight_turn(size_t chunk, MicrobatchId i) const {
    return !plan_->policy.deterministic || weight_next_[chunk] == i.value;
  }
  /// The backward cannot be split, and its weight half would be out of turn.
  [[nodiscard]] bool waits_for_turn(size_t chunk, MicrobatchId i) const {
    return plan_->chunks[chunk].fused_only && plan_of(chunk, i).weight && !weight_turn(chunk, i);
  }

  std::shared_ptr<const RankPlan> plan_;
  std::vector<Cell> cells_;
  Ledger ledger_;

  // Positions of ready tasks: forwards by chunk; the others are never gated.
  Bitmap ready_backward_;
  Bitmap ready_weight_;
  std::vector<Bitmap> ready_forward_;
  uint32_t strict_next_ = 0;  // strict: everything before it has started

  bool running_ = false;
  uint32_t running_at_ = 0;
  TaskKind running_kind_ = TaskKind::kForward;

  std::vector<int32_t> tasks_left_;     // by microbatch
  int32_t oldest_ = 0;                  // lowest microbatch with tasks left
  std::vector<int32_t> forwards_left_;  // by chunk
  std::vector<int32_t> weights_left_;   // by chunk
  std::vector<int32_t> weight_next_;    // by chunk: microbatch whose weight gradient comes next
  int64_t work_left_ = 0;

  std::vector<int32_t> credits_used_;  // by edge
  std::vector<bool> arrived_;          // by message
  // Only with holding:
  std::vector<bool> message_announced_;  // by message
  std::vector<Announced> announced_;     // by cell
  Bitmap announced_at_;                  // positions whose missing inputs are all announced
  bool holding_ = false;
  uint32_t hold_for_ = 0;
  int64_t hold_until_ns_ = 0;

  int64_t now_ns_ = 0;
  std::vector<int64_t> ready_ns_;  // by position; with record_ready only
  // Only in paired order:
  std::vector<bool> asked_;  // by message: for one that leaves, by its receiver
  std::vector<bool> sent_;   // by message
  int32_t unasked_sends_ = 0;
  // Only with late_ns:
  int64_t begun_ns_ = 0;
  bool late_ = false;
  // Only with offloading: the copy in each direction, and what is in the host's memory.
  uint32_t leaving_at_ = Bitmap::kNone;  // positions of the backward task
  uint32_t returning_at_ = Bitmap::kNone;
  Bitmap away_;
  std::vector<Bitmap> kept_;  // by chunk: forward done, backward not started
  int64_t copying_ns_ = 0;    // to bring back everything that is away or leaving
  uint32_t leave_next_ = Bitmap::kNone;
  Amount away_largest_;  // room that forwards leave free, so that what is away can come back

  bool failed_ = false;
  Status fault_;
  std::vector<Command> commands_;  // sized for the largest answer, so that a copy never allocates
  size_t command_count_ = 0;
};

}  // namespace rrfp::core
