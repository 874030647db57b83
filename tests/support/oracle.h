// SPDX-License-Identifier: Apache-2.0
//
// Checks a run of a pipeline against the rules, with books of its own that are kept from StepTasks
// and the hint's order alone. It knows nothing of how a RankCore or a plan works. The first
// violation is kept.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/event.h"
#include "engine/core/plan.h"
#include "tests/support/virtual_pipeline.h"

namespace rrfp::test {

class Oracle {
 public:
  explicit Oracle(const VirtualPipeline& setup);

  void started(core::RankId rank, const core::Task& task);
  /// Followed by sent(), delivered() and counter() for what the rank does on that, then by
  /// finished_end().
  void finished(core::RankId rank, const core::Task& task);
  void sent(core::RankId rank, const core::Command& command);
  void delivered(core::RankId rank, const core::Command& command);
  void counter(core::RankId rank, const core::Command& command);
  void finished_end();

  void announced(core::RankId rank, const core::Command& command);
  void announcement_arrived(core::EdgeId edge, core::Direction direction, core::MicrobatchId i);
  void credit_sent(core::RankId rank, const core::Command& command);
  void credit_arrived(core::EdgeId edge);
  void message_arrived(core::EdgeId edge, core::Direction direction, core::MicrobatchId i);
  /// A rank asked for a task and got none.
  void idle(core::RankId rank, const core::Command& command, int64_t now_ns);
  /// The run is over and every rank says that it is complete.
  void ended();

  [[nodiscard]] bool complete(core::RankId rank) const { return state(rank).work_left == 0; }
  [[nodiscard]] const core::Amount& peak(core::RankId rank) const { return state(rank).peak; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  /// One (stage, microbatch).
  struct Cell {
    bool forward_started = false;
    bool forward_done = false;
    bool input_gradient_started = false;
    bool input_gradient_done = false;
    bool weight_started = false;
    bool weight_done = false;
    bool whole = false;  // the hint lists B
    uint32_t forward_at = kNowhere;
    uint32_t backward_at = kNowhere;
    uint32_t weight_at = kNowhere;
  };
  struct Rank {
    core::Amount live;
    core::Amount peak;
    core::Amount cap;
    bool roomy = false;  // neither the cap nor credits can ever refuse a forward
    bool running = false;
    int64_t work_left = 0;
    uint32_t strict_next = 0;
    int64_t hold_until_ns = -1;
    int64_t longest_ns = 0;  // longest predicted task
  };
  struct StageState {
    int64_t forwards_left = 0;
    int64_t weights_left = 0;
    int32_t turn = 0;  // lowest microbatch whose weight gradient is missing
  };
  /// What the end of a task must bring about.
  struct Due {
    bool forget = false;
    bool losses = false;
    bool gradients = false;
    bool complete = false;
    core::Task task;
  };

  void add_stage(core::StageId s);
  void add_credits(core::EdgeId e);
  void add_order(const VirtualPipeline& setup, core::RankId rank);
  void set_limits(const VirtualPipeline& setup, core::RankId rank);

  void check_forward(const core::Task& task);
  void check_backward(const core::Task& task);
  void check_weight_start(const core::Task& task);
  void check_position(core::RankId rank, const core::Task& task);
  void check_idle_reason(core::RankId rank, core::IdleReason reason);
  void check_hold(core::RankId rank, int64_t until_ns, int64_t now_ns);
  void acquire(core::RankId rank, const core::Task& task);
  void take_credits(const core::Task& task);
  void release_if_done(core::RankId rank, const core::Task& task);

  [[nodiscard]] bool forward_ready(core::StageId s, core::MicrobatchId i) const;
  [[nodiscard]] bool waits_for_turn(core::StageId s, core::MicrobatchId i) const;
  [[nodiscard]] bool backward_ready(core::StageId s, core::MicrobatchId i) const;
  [[nodiscard]] bool weight_ready(core::StageId s, core::MicrobatchId i) const;
  /// Lowest position of a ready task; forwards count only if `forwards`.
  [[nodiscard]] uint32_t first_ready(core::RankId rank, bool forwards) const;
  /// Lowest position of a task that lacks nothing but inputs that have been announced.
  [[nodiscard]] uint32_t first_imminent(core::RankId rank) const;
  [[nodiscard]] bool oldest_forward_ready(core::RankId rank) const;
  [[nodiscard]] bool input_here(core::EdgeId e, core::Direction direction,
                                core::MicrobatchId i) const;
  [[nodiscard]] bool pair_done(core::StageId s, core::MicrobatchId i) const;
  [[nodiscard]] bool local(core::EdgeId e) const;
  [[nodiscard]] bool travels(core::EdgeId e, core::Direction direction, core::MicrobatchId i) const;
  [[nodiscard]] core::RankId producer(core::EdgeId e, core::Direction direction) const;
  [[nodiscard]] core::RankId consumer(core::EdgeId e, core::Direction direction) const {
    return producer(e, direction == core::Direction::kForward ? core::Direction::kBackward
                                                              : core::Direction::kForward);
  }
  [[nodiscard]] size_t bit(core::EdgeId e, core::Direction direction, core::MicrobatchId i) const;
  void check_output(core::RankId rank, const core::Command& command, bool is_local);

  [[nodiscard]] Cell& cell(core::StageId s, core::MicrobatchId i) {
    return cells_[s.index() * columns_ + i.index()];
  }
  [[nodiscard]] const Cell& cell(core::StageId s, core::MicrobatchId i) const {
    return cells_[s.index() * columns_ + i.index()];
  }
  [[nodiscard]] Rank& state(core::RankId r) { return ranks_[r.index()]; }
  [[nodiscard]] const Rank& state(core::RankId r) const { return ranks_[r.index()]; }
  void violated(const std::string& text) {
    if (error_.empty()) error_ = text;
  }

  const core::StepTasks& tasks_;
  const core::StageGraph& graph_;
  core::Policy policy_;
  size_t columns_;
  std::vector<Cell> cells_;  // [stage][microbatch]
  std::vector<Rank> ranks_;
  std::vector<StageState> stages_;
  std::vector<bool> sent_;             // by message
  std::vector<bool> arrived_;          // by message
  std::vector<bool> announced_;        // by message; the announcement has arrived
  std::vector<int64_t> credits_;       // by edge; 0 = not counted
  std::vector<int64_t> credits_used_;  // by edge, as the producer sees it
  std::vector<int64_t> credits_owed_;  // by edge: consumed, but not yet reported
  Due due_;
  std::string error_;
};

}  // namespace rrfp::test
