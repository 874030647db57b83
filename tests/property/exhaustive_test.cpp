// SPDX-License-Identifier: Apache-2.0
//
// Small pipelines, every order of events: any message or credit in flight may arrive next, any
// running task may end next, any idle rank may ask for a task next. In every state that can be
// reached the rules hold, and a state in which nothing can happen any more is the end of the step.
//
// The search has no reduction: it visits each reachable state once and follows every event out of
// it. A state is a tuple of the states of the ranks (rank_states.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iostream>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/property/rank_states.h"
#include "tests/support/random_graph.h"
#include "tests/support/splitmix.h"

namespace rrfp::test {
namespace {

using core::AdmissionRule;
using core::Direction;
using core::EdgeId;
using core::Hint;
using core::MicrobatchId;
using core::Order;
using core::Placement;
using core::RankId;
using core::StageGraph;
using core::StageId;

struct Found {
  uint64_t states = 0;
  uint64_t stalls = 0;  // states without a way on that are not the end
  std::string error;
};

class Explorer {
 public:
  static constexpr uint64_t kStatesMax = 8'000'000;

  explicit Explorer(const SmallPipeline& setup)
      : setup_(setup),
        bits_per_rank_(std::min(31u, 62u / static_cast<unsigned>(setup.graph().ranks()))) {
    const auto ranks = static_cast<size_t>(setup.graph().ranks());
    into_.assign(ranks, 0);
    for (size_t r = 0; r < ranks; ++r) ranks_.emplace_back(setup_, RankId::of(r), found_.error);
    for (int32_t k = 0; k < setup.graph().edge_count(); ++k) {
      const EdgeId e(k);
      const core::Edge& edge = setup.graph().edge(e);
      producer_.push_back(setup.rank_of(edge.from).index());
      consumer_.push_back(setup.rank_of(edge.to).index());
      for (size_t i = 0; i < setup.columns(); ++i) {
        const MicrobatchId mb = MicrobatchId::of(i);
        into_[consumer_.back()] |= setup.message_bit(e, Direction::kForward, mb);
        into_[producer_.back()] |= setup.message_bit(e, Direction::kBackward, mb);
      }
    }
  }

  Found explore() {
    if (!found_.error.empty()) return found_;
    visit(std::vector<int32_t>(ranks_.size(), 0), 0);
    while (!open_.empty() && found_.error.empty() && found_.stalls == 0) {
      const uint64_t key = open_.back();
      open_.pop_back();
      expand(key);
    }
    found_.states = parent_.size();
    return found_;
  }

  /// How the stall came about: the tasks in the order in which they started.
  [[nodiscard]] std::string stall_story() const {
    std::vector<std::string> starts;
    for (uint64_t key = last_stall_; key != 0; key = parent_.at(key)) {
      const auto now = ids_of(key);
      const auto before = ids_of(parent_.at(key));
      for (size_t r = 0; r < now.size(); ++r) {
        const core::RankCore& core = ranks_[r].at(now[r]).core;
        if (now[r] == before[r] || !core.running() || ranks_[r].at(before[r]).core.running()) {
          continue;
        }
        starts.push_back(to_string(core.running_task()));
      }
    }
    std::string text = "starts:";
    for (size_t k = starts.size(); k-- > 0;) text += " " + starts[k];
    return text;
  }

 private:
  void visit(const std::vector<int32_t>& ids, uint64_t from) {
    uint64_t key = 0;
    for (int32_t id : ids) {
      if (id >> bits_per_rank_ != 0) found_.error = "too many states of one rank";
      key = key << bits_per_rank_ | static_cast<uint64_t>(id);
    }
    if (!parent_.emplace(key, from).second) return;
    if (parent_.size() > kStatesMax) found_.error = "too many states to visit them all";
    open_.push_back(key);
  }

  [[nodiscard]] std::vector<int32_t> ids_of(uint64_t key) const {
    std::vector<int32_t> ids(ranks_.size());
    for (size_t r = ids.size(); r-- > 0; key >>= bits_per_rank_) {
      ids[r] = static_cast<int32_t>(key & ((uint64_t{1} << bits_per_rank_) - 1));
    }
    return ids;
  }

  void expand(uint64_t key) {
    std::vector<int32_t> ids = ids_of(key);
    uint64_t sent = 0;
    for (size_t r = 0; r < ids.size(); ++r) sent |= ranks_[r].at(ids[r]).sent;
    bool moved = false;
    for (size_t r = 0; r < ids.size(); ++r) {
      const int32_t here = ids[r];
      const auto take = [&](size_t code) {
        moved = true;
        ids[r] = ranks_[r].step(here, code);
        visit(ids, key);
        ids[r] = here;
      };
      if (ranks_[r].at(here).core.running()) take(Code::kDone);
      if (ranks_[r].at(here).can_run) take(Code::kPull);
      for (uint64_t due = sent & into_[r] & ~ranks_[r].at(here).arrived; due != 0; due &= due - 1) {
        take(Code::kMessage0 + static_cast<size_t>(std::countr_zero(due)));
      }
      for (size_t e = 0; e < producer_.size(); ++e) {
        if (producer_[e] != r) continue;
        const uint8_t given = ranks_[consumer_[e]].at(ids[consumer_[e]]).credits_given[e];
        if (given > ranks_[r].at(here).credits_here[e]) take(Code::kCredit0 + e);
      }
    }
    if (!moved) check_end(key, ids);
  }

  void check_end(uint64_t key, const std::vector<int32_t>& ids) {
    bool complete = true;
    for (size_t r = 0; r < ids.size(); ++r) complete = complete && ranks_[r].at_end(ids[r]);
    if (complete) return;
    ++found_.stalls;
    last_stall_ = key;
  }

  const SmallPipeline& setup_;
  unsigned bits_per_rank_;
  std::vector<RankStates> ranks_;
  std::vector<uint64_t> into_;    // by rank: messages that it receives
  std::vector<size_t> producer_;  // by edge: ranks
  std::vector<size_t> consumer_;
  std::unordered_map<uint64_t, uint64_t> parent_;  // of every state visited
  std::vector<uint64_t> open_;
  uint64_t last_stall_ = 0;
  Found found_;
};

using Links = std::vector<std::pair<int32_t, int32_t>>;

const Links kChain3 = {{0, 1}, {1, 2}};
const Links kJoin3 = {{0, 2}, {1, 2}};
const Links kChain4 = {{0, 1}, {1, 2}, {2, 3}};
// An encoder (0) and a text embedding (1) feed a language stage (2), which feeds the head (3).
const Links kJoin4 = {{0, 2}, {1, 2}, {2, 3}};
const Links kChain6 = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};

struct Shape {
  std::string name;
  int32_t ranks = 0;
  int32_t stages = 0;
  int32_t microbatches = 0;
  Links links;
  Placement placement = Placement::kLinear;
  int32_t frozen = -1;              // this stage has no weight gradient
  int32_t fused = -1;               // this stage cannot split its backward
  int32_t skipped = -1;             // every second microbatch skips this stage
  std::vector<int64_t> bytes = {};  // by microbatch; then the cap is one of bytes
};

std::vector<Shape> required_shapes() {
  using enum Placement;
  return {
      {"p=3 v=1 m=4 chain", 3, 3, 4, kChain3},
      {"p=3 v=1 m=4 join", 3, 3, 4, kJoin3},
      {"p=2 v=2 m=3 loop chain", 2, 4, 3, kChain4, kLoop},
      {"p=2 v=2 m=3 V chain", 2, 4, 3, kChain4, kV},
      {"p=2 v=2 m=3 loop join", 2, 4, 3, kJoin4, kLoop},
      {"p=2 v=2 m=3 V join", 2, 4, 3, kJoin4, kV},
  };
}

std::vector<Shape> further_shapes() {
  using enum Placement;
  return {
      {"p=2 v=2 m=4 loop join, text frozen", 2, 4, 4, kJoin4, kLoop, 1},
      {"p=2 v=2 m=4 V join, encoder skipped", 2, 4, 4, kJoin4, kV, -1, -1, 0},
      {"p=2 v=2 m=4 loop chain, stage 1 fused", 2, 4, 4, kChain4, kLoop, -1, 1},
      {"p=2 v=2 m=4 V join, uneven bytes", 2, 4, 4, kJoin4, kV, -1, -1, -1, {3, 7, 1, 5}},
      {"p=2 v=2 m=4 loop chain, uneven bytes", 2, 4, 4, kChain4, kLoop, -1, -1, -1, {7, 1, 3, 2}},
      {"p=3 v=2 m=3 V chain", 3, 6, 3, kChain6, kV},
      {"p=3 v=2 m=3 loop chain", 3, 6, 3, kChain6, kLoop},
      {"p=3 v=1 m=6 join", 3, 3, 6, kJoin3},
      {"p=4 v=1 m=5 chain", 4, 4, 5, kChain4},
      {"p=4 v=1 m=5 join", 4, 4, 5, kJoin4},
      {"p=2 v=2 m=5 V join", 2, 4, 5, kJoin4, kV},
  };
}

std::shared_ptr<const StageGraph> make_graph(const Shape& shape) {
  auto graph = std::make_shared<StageGraph>(shape.ranks);
  for (int32_t s = 0; s < shape.stages; ++s) {
    core::Stage stage;
    stage.loss = s == shape.stages - 1;
    stage.frozen = s == shape.frozen;
    stage.fused_only = s == shape.fused;
    StageId id;
    EXPECT_TRUE(graph->add_stage(stage, id).ok());
  }
  for (const auto& [from, to] : shape.links) {
    EdgeId id;
    EXPECT_TRUE(graph->add_edge({StageId(from), StageId(to), true}, id).ok());
  }
  EXPECT_TRUE(graph->place(shape.placement).ok());
  EXPECT_TRUE(graph->seal().ok());
  return graph;
}

/// `room`: microbatches that the cap of each rank leaves room for.
SmallPipeline make_pipeline(const Shape& shape, std::string_view hint, int64_t room) {
  SmallPipeline setup;
  const auto graph = make_graph(shape);
  const auto m = static_cast<size_t>(shape.microbatches);
  core::StepShape step;
  step.microbatches = shape.microbatches;
  int64_t largest = 0;
  for (size_t k = 0; k < static_cast<size_t>(shape.stages) * m; ++k) {
    const auto stage = static_cast<int32_t>(k / m);
    if (shape.skipped >= 0) {
      step.skip.push_back(stage == shape.skipped && (k % m) % 2 == 1 ? 1 : 0);
    }
    if (shape.bytes.empty()) continue;
    step.activation_bytes.push_back(shape.bytes[k % m]);
    largest = std::max(largest, shape.bytes[k % m]);
  }
  EXPECT_TRUE(core::StepTasks::create(graph, step, setup.tasks).ok());
  EXPECT_TRUE(Hint::named(hint, setup.hint).ok());
  for (int32_t r = 0; r < shape.ranks; ++r) {
    const auto chunks = static_cast<int64_t>(graph->chunks(RankId(r)).size());
    setup.caps.push_back(shape.bytes.empty() ? core::Cap{room * chunks, 0}
                                             : core::Cap{0, room * chunks * largest});
  }
  return setup;
}

/// Explores the shape under every policy; returns the number of states visited.
uint64_t explore_all(const Shape& shape, int64_t room) {
  uint64_t states = 0;
  uint64_t largest = 0;
  for (std::string_view hint : Hint::general_names()) {
    for (const bool deterministic : {true, false}) {
      for (const int32_t credits : {0, 1}) {
        SmallPipeline setup = make_pipeline(shape, hint, room);
        setup.policy.deterministic = deterministic;
        setup.policy.credits = credits;
        Explorer explorer(setup);
        const Found found = explorer.explore();
        EXPECT_EQ(found.error, "") << shape.name << ", " << hint << ", deterministic "
                                   << deterministic << ", credits " << credits;
        EXPECT_EQ(found.stalls, 0u) << shape.name << ", " << hint << ", deterministic "
                                    << deterministic << ", credits " << credits << "\n"
                                    << explorer.stall_story();
        states += found.states;
        largest = std::max(largest, found.states);
      }
    }
  }
  std::cout << shape.name << ", room for " << room << ": " << states << " states, at most "
            << largest << " under one policy\n";
  return states;
}

// The floors are a third of what there was to visit when the test was written: far fewer would mean
// that events or policies are not tried any more.

TEST(Exhaustive, RequiredShapesWithTheLeastMemory) {
  uint64_t states = 0;
  for (const Shape& shape : required_shapes()) states += explore_all(shape, 1);
  EXPECT_GT(states, 24'000u);
}

TEST(Exhaustive, RequiredShapesWithRoomForTwo) {
  uint64_t states = 0;
  for (const Shape& shape : required_shapes()) states += explore_all(shape, 2);
  EXPECT_GT(states, 480'000u);
}

TEST(Exhaustive, FurtherShapes) {
  uint64_t states = 0;
  for (const Shape& shape : further_shapes()) states += explore_all(shape, 1);
  EXPECT_GT(states, 700'000u);
}

/// A strict order that check_strict accepts is obeyed to its end, whatever the timing.
TEST(Exhaustive, StrictOrders) {
  uint64_t states = 0;
  for (const auto& shapes : {required_shapes(), further_shapes()}) {
    for (const Shape& shape : shapes) {
      for (std::string_view hint : {"gpipe", "1f1b", "zb-h1"}) {
        SmallPipeline setup = make_pipeline(shape, hint, shape.microbatches);
        setup.policy.order = Order::kStrict;
        const core::Status can = core::check_strict(setup.tasks, *setup.hint, setup.policy, {});
        ASSERT_TRUE(can.ok()) << shape.name << ", " << hint << ": " << can.text();
        Explorer explorer(setup);
        const Found found = explorer.explore();
        ASSERT_EQ(found.error, "") << shape.name << ", " << hint;
        ASSERT_EQ(found.stalls, 0u) << shape.name << ", " << hint << explorer.stall_story();
        states += found.states;
      }
    }
  }
  std::cout << "strict: " << states << " states\n";
  EXPECT_GT(states, 170'000u);
}

/// Orders that make no sense are no less safe than good ones.
TEST(Exhaustive, RandomHintsWithTheLeastMemory) {
  uint64_t states = 0;
  for (const auto& shapes : {required_shapes(), further_shapes()}) {
    for (const Shape& shape : shapes) {
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        SmallPipeline setup = make_pipeline(shape, "bf", 1);
        Splitmix random(mix(seed));
        setup.hint = make_random_hint(random, *setup.tasks);
        setup.policy.deterministic = random.percent(50);
        setup.policy.credits = random.between32(0, 2);
        Explorer explorer(setup);
        const Found found = explorer.explore();
        ASSERT_EQ(found.error, "") << shape.name << ", seed " << seed;
        ASSERT_EQ(found.stalls, 0u) << shape.name << ", seed " << seed << explorer.stall_story();
        states += found.states;
      }
    }
  }
  std::cout << "random hints: " << states << " states\n";
  EXPECT_GT(states, 1'100'000u);
}

/// The search can find a stall: counting alone stalls as soon as a rank has several chunks.
TEST(Exhaustive, PlainCounterStalls) {
  int several_chunks = 0;
  int stalled = 0;
  for (const auto& shapes : {required_shapes(), further_shapes()}) {
    for (const Shape& shape : shapes) {
      several_chunks += shape.stages > shape.ranks ? 1 : 0;
      SmallPipeline setup = make_pipeline(shape, "1f1b", 1);
      setup.policy.admission = AdmissionRule::kPlainCounter;
      Explorer explorer(setup);
      const Found found = explorer.explore();
      ASSERT_EQ(found.error, "") << shape.name;
      if (found.stalls == 0) continue;
      ++stalled;
      std::cout << shape.name << " stalls after " << explorer.stall_story() << "\n";
    }
  }
  EXPECT_EQ(stalled, several_chunks);
}

}  // namespace
}  // namespace rrfp::test
