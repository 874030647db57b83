// SPDX-License-Identifier: Apache-2.0
//
// All states that one rank of a small pipeline can be in, for exhaustive searches.
//
// What a core does depends only on what has happened to it, not on the order in which it happened,
// so a rank's state is named by four sets: tasks started, tasks done, messages arrived, credits
// arrived. (Each time two orders lead to one name, both cores are asked and must answer alike.)
// What is in flight follows from the names of both ends, so a tuple of names is a state of the
// pipeline, and a core has to run only once per name and event.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engine/core/rank_core.h"

namespace rrfp::test {

/// One small pipeline with its policy: at most 64 messages and 21 (stage, microbatch) pairs.
struct SmallPipeline {
  std::shared_ptr<const core::StepTasks> tasks;
  std::shared_ptr<const core::Hint> hint;
  core::Policy policy;
  std::vector<core::Cap> caps;  // by rank; slots, bytes or both

  [[nodiscard]] const core::StageGraph& graph() const { return tasks->graph(); }
  [[nodiscard]] size_t columns() const { return static_cast<size_t>(tasks->microbatches()); }
  [[nodiscard]] core::RankId rank_of(core::StageId s) const { return graph().stage(s).rank; }
  [[nodiscard]] bool local(core::EdgeId e) const {
    return rank_of(graph().edge(e).from) == rank_of(graph().edge(e).to);
  }
  [[nodiscard]] uint64_t message_bit(core::EdgeId e, core::Direction d,
                                     core::MicrobatchId i) const {
    return uint64_t{1} << ((e.index() * 2 + static_cast<size_t>(d)) * columns() + i.index());
  }
};

/// Names of what can happen to a rank: its task ends, it asks for a task, a message arrives
/// (kMessage0 + its bit number), a credit arrives (kCredit0 + its edge).
struct Code {
  static constexpr size_t kDone = 0;
  static constexpr size_t kPull = 1;
  static constexpr size_t kMessage0 = 2;
  static constexpr size_t kEdgesMax = 6;
  static constexpr size_t kCredit0 = kMessage0 + 64;
  static constexpr size_t kCount = kCredit0 + kEdgesMax;
};

struct RankState {
  using PerEdge = std::array<uint8_t, Code::kEdgesMax>;
  using Name = std::tuple<uint64_t, uint64_t, uint64_t, PerEdge>;

  core::RankCore core;
  // The name: a bit for each half of each task, a bit for each message.
  uint64_t started = 0;
  uint64_t done = 0;
  uint64_t arrived = 0;
  PerEdge credits_here = {};  // arrived, as the producer of the edge
  // What follows from it.
  uint64_t sent = 0;
  PerEdge credits_given = {};  // sent, as the consumer of the edge
  uint64_t counters = 0;       // which counters have fired
  core::Amount live;
  bool can_run = false;  // idle, and a task starts when asked for

  std::vector<int32_t> next;  // by Code; -1 = not known yet

  [[nodiscard]] Name name() const { return {started, done, arrived, credits_here}; }
};

class RankStates {
 public:
  /// The first violation of a rule is written to `error`.
  RankStates(const SmallPipeline& setup, core::RankId rank, std::string& error);

  [[nodiscard]] const RankState& at(int32_t id) const { return *states_[static_cast<size_t>(id)]; }
  [[nodiscard]] size_t size() const { return states_.size(); }
  /// The state after `code`; the first one is 0.
  [[nodiscard]] int32_t step(int32_t id, size_t code);
  /// True if every task is done and every counter has fired.
  [[nodiscard]] bool at_end(int32_t id) const;

 private:
  int32_t make(int32_t id, size_t code);
  int32_t add(RankState&& state);
  void message(RankState& to, size_t index);
  void start(RankState& to);
  void check_start(const RankState& to, const core::Task& task, uint64_t bits);
  void check_credits(const RankState& to);
  void task_done(RankState& to);
  void fire(RankState& to, uint64_t which, core::StageId stage);

  /// The halves of the pair that `task` covers.
  [[nodiscard]] uint64_t bits_of(const core::Task& task) const;
  [[nodiscard]] uint64_t bit(core::StageId s, core::MicrobatchId i, core::TaskKind half) const;
  [[nodiscard]] bool inputs_here(const RankState& to, const core::Task& task) const;
  [[nodiscard]] bool weight_turn(const RankState& to, const core::Task& task) const;
  /// The counters that must have fired after `done`; `all`: every task of the rank.
  [[nodiscard]] uint64_t counters_due(uint64_t done, uint64_t& all) const;
  [[nodiscard]] bool pair_done(const core::Task& task) const;
  [[nodiscard]] core::Amount held(const core::Task& task) const;
  void violated(const std::string& text) {
    if (error_.empty()) error_ = "rank " + std::to_string(rank_.value) + ": " + text;
  }

  const SmallPipeline& setup_;
  core::RankId rank_;
  std::string& error_;
  std::array<int32_t, Code::kEdgesMax> credits_ = {};
  std::vector<std::unique_ptr<RankState>> states_;
  std::map<RankState::Name, int32_t> names_;
};

}  // namespace rrfp::test
