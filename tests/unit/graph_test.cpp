// SPDX-License-Identifier: Apache-2.0
//
// StageGraph: placements, the topological order, and every way to get it wrong.
#include "engine/core/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

std::vector<int32_t> numbers(std::span<const StageId> stages) {
  std::vector<int32_t> values;
  for (StageId s : stages) values.push_back(s.value);
  return values;
}

std::vector<int32_t> depths(const StageGraph& graph) {
  std::vector<int32_t> values;
  for (int32_t s = 0; s < graph.stage_count(); ++s) values.push_back(graph.depth(StageId(s)));
  return values;
}

std::vector<int32_t> ranks(const StageGraph& graph) {
  std::vector<int32_t> values;
  for (int32_t s = 0; s < graph.stage_count(); ++s) {
    values.push_back(graph.stage(StageId(s)).rank.value);
  }
  return values;
}

/// `count` stages without rank.
StageGraph bare(int32_t rank_count, int32_t count) {
  StageGraph graph(rank_count);
  for (int32_t s = 0; s < count; ++s) add_stage(graph, {});
  return graph;
}

/// `count` stages on one rank.
StageGraph on_one_rank(int32_t count) {
  StageGraph graph = bare(1, count);
  require(graph.place(Placement::kLoop));
  return graph;
}

using Numbers = std::vector<int32_t>;

// --- Placement

TEST(GraphPlacement, Linear) {
  const auto graph = chain(4);
  EXPECT_EQ(ranks(*graph), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(graph->chunks_max(), 1);
  for (int32_t r = 0; r < 4; ++r) EXPECT_EQ(numbers(graph->chunks(RankId(r))), Numbers{r});
}

TEST(GraphPlacement, Loop) {
  const auto graph = chain(3, 2, Placement::kLoop);
  EXPECT_EQ(ranks(*graph), (Numbers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(graph->chunks_max(), 2);
  for (int32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(numbers(graph->chunks(RankId(r))), (Numbers{r, r + 3})) << "chunk c is c * p + r";
  }
}

TEST(GraphPlacement, LoopOfAnyNumberOfStages) {
  StageGraph graph = bare(3, 5);
  require(graph.place(Placement::kLoop));
  require(graph.seal());
  EXPECT_EQ(ranks(graph), (Numbers{0, 1, 2, 0, 1}));
  EXPECT_EQ(graph.chunks_max(), 2);
}

TEST(GraphPlacement, V) {
  const auto graph = chain(4, 2, Placement::kV);
  EXPECT_EQ(ranks(*graph), (Numbers{0, 1, 2, 3, 3, 2, 1, 0}));
  for (int32_t r = 0; r < 4; ++r) {
    EXPECT_EQ(numbers(graph->chunks(RankId(r))), (Numbers{r, 7 - r}));
  }
}

TEST(GraphPlacement, WrongCounts) {
  StageGraph graph = bare(3, 4);
  EXPECT_TRUE(fails_with(graph.place(Placement::kLinear), Code::kInvalidArgument,
                         {"linear", "4 stages", "3 ranks"}));
  EXPECT_TRUE(fails_with(graph.place(Placement::kV), Code::kInvalidArgument,
                         {"V placement", "two stages for each rank", "4 stages", "3 ranks"}));
  EXPECT_EQ(ranks(graph), (Numbers{-1, -1, -1, -1})) << "a failed placement places nothing";
}

TEST(GraphPlacement, OneStage) {
  StageGraph graph = bare(2, 3);
  require(graph.place(StageId(0), RankId(1)));
  require(graph.place(StageId(1), RankId(0)));
  require(graph.place(StageId(2), RankId(1)));
  require(graph.place(StageId(2), RankId(0)));
  require(graph.seal());
  EXPECT_EQ(ranks(graph), (Numbers{1, 0, 0}));
  EXPECT_EQ(numbers(graph.chunks(RankId(0))), (Numbers{1, 2}));
  EXPECT_TRUE(fails_with(graph.place(StageId(3), RankId(0)), Code::kOutOfRange,
                         {"stage 3", "3 stages", "from 0"}));
  EXPECT_TRUE(fails_with(graph.place(StageId(0), RankId(2)), Code::kOutOfRange,
                         {"rank 2", "2 ranks", "from 0"}));
  EXPECT_TRUE(fails_with(graph.place(StageId(0), RankId(-1)), Code::kOutOfRange, {"rank -1"}));
}

// --- Bad stages and edges

TEST(GraphErrors, NegativeValues) {
  const auto error = [](int64_t Stage::*field) {
    StageGraph graph(1);
    Stage stage;
    stage.*field = -7;
    StageId id(99);
    const Status status = graph.add_stage(stage, id);
    EXPECT_EQ(id, StageId(99)) << "outputs are written only on success";
    EXPECT_EQ(graph.stage_count(), 0);
    return status;
  };
  EXPECT_TRUE(fails_with(error(&Stage::activation_bytes), Code::kInvalidArgument,
                         {"activation_bytes is -7", "expected 0 to"}));
  EXPECT_TRUE(fails_with(error(&Stage::forward_ns), Code::kInvalidArgument, {"forward_ns is -7"}));
  EXPECT_TRUE(fails_with(error(&Stage::input_gradient_ns), Code::kInvalidArgument,
                         {"input_gradient_ns is -7"}));
  EXPECT_TRUE(fails_with(error(&Stage::weight_gradient_ns), Code::kInvalidArgument,
                         {"weight_gradient_ns is -7"}));
}

TEST(GraphErrors, DurationsWhoseSumWouldOverflow) {
  StageGraph graph(1);
  Stage stage;
  stage.input_gradient_ns = INT64_MAX;
  StageId id;
  EXPECT_TRUE(fails_with(graph.add_stage(stage, id), Code::kInvalidArgument,
                         {"input_gradient_ns is 9223372036854775807", "expected 0 to"}));
}

TEST(GraphErrors, StageThatCannotBe) {
  StageGraph graph(2);
  StageId id;
  Stage stage;
  stage.activation_bytes = StageGraph::kActivationBytesMax + 1;
  EXPECT_TRUE(fails_with(graph.add_stage(stage, id), Code::kInvalidArgument,
                         {"activation_bytes is 1125899906842625", "0 to 1125899906842624"}));
  stage = Stage();
  stage.rank = RankId(2);
  EXPECT_TRUE(fails_with(graph.add_stage(stage, id), Code::kOutOfRange, {"rank 2", "2 ranks"}));
  EXPECT_EQ(graph.stage_count(), 0);
}

TEST(GraphErrors, UnknownStage) {
  StageGraph graph = bare(1, 2);
  EdgeId id(99);
  EXPECT_TRUE(fails_with(graph.add_edge({StageId(0), StageId(2)}, id), Code::kOutOfRange,
                         {"stage 2", "2 stages"}));
  EXPECT_TRUE(fails_with(graph.add_edge({StageId(5), StageId(0)}, id), Code::kOutOfRange,
                         {"stage 5", "2 stages"}));
  EXPECT_TRUE(
      fails_with(graph.add_edge({StageId(), StageId(0)}, id), Code::kOutOfRange, {"stage -1"}));
  EXPECT_EQ(id, EdgeId(99));
  EXPECT_EQ(graph.edge_count(), 0);
}

TEST(GraphErrors, SelfEdge) {
  StageGraph graph = bare(1, 2);
  EdgeId id;
  EXPECT_TRUE(fails_with(graph.add_edge({StageId(1), StageId(1)}, id), Code::kCycle,
                         {"stage 1", "itself", "cycle"}));
  EXPECT_EQ(graph.edge_count(), 0);
}

TEST(GraphErrors, NoStages) {
  StageGraph graph(1);
  EXPECT_TRUE(fails_with(graph.seal(), Code::kInvalidArgument, {"no stages", "at least one"}));
  EXPECT_FALSE(graph.sealed());
}

TEST(GraphErrors, StageWithoutRank) {
  StageGraph graph = bare(1, 2);
  require(graph.place(StageId(0), RankId(0)));
  EXPECT_TRUE(fails_with(graph.seal(), Code::kUnplacedStage, {"stage 1", "no rank"}));
  EXPECT_FALSE(graph.sealed());
}

TEST(GraphErrors, RankWithoutStage) {
  StageGraph graph = bare(3, 2);
  require(graph.place(StageId(0), RankId(0)));
  require(graph.place(StageId(1), RankId(2)));
  EXPECT_TRUE(fails_with(graph.seal(), Code::kUnplacedStage, {"rank 1", "no stage"}));
  EXPECT_FALSE(graph.sealed());
}

TEST(GraphErrors, TooManyStages) {
  StageGraph graph = bare(1, StageGraph::kStagesMax);
  StageId id;
  EXPECT_TRUE(fails_with(graph.add_stage({}, id), Code::kOutOfRange, {"at most 1048576 stages"}));
}

// --- Cycles

TEST(GraphCycle, NamesTheStagesAlongTheArrows) {
  StageGraph graph = on_one_rank(3);
  add_edge(graph, 2, 0);
  add_edge(graph, 0, 1);
  add_edge(graph, 1, 2);
  EXPECT_TRUE(fails_with(graph.seal(), Code::kCycle, {"cycle: 0 -> 1 -> 2 -> 0"}));
  EXPECT_FALSE(graph.sealed());
}

TEST(GraphCycle, LeavesOutWhatOnlyHangsOnIt) {
  StageGraph graph = on_one_rank(5);
  add_edge(graph, 4, 1);  // before the cycle
  add_edge(graph, 1, 3);
  add_edge(graph, 3, 2);
  add_edge(graph, 2, 1);
  add_edge(graph, 2, 0);  // behind it
  const Status status = graph.seal();
  EXPECT_TRUE(fails_with(status, Code::kCycle, {"2 -> 1 -> 3 -> 2"}));
  EXPECT_EQ(status.text().find('0'), std::string::npos) << status.text();
  EXPECT_EQ(status.text().find('4'), std::string::npos) << status.text();
}

/// The stages of "...: a -> b -> a".
Numbers cycle_in(const std::string& text) {
  Numbers stages;
  size_t at = text.find(": ") + 2;
  for (;;) {
    stages.push_back(std::stoi(text.substr(at)));
    at = text.find("-> ", at);
    if (at == std::string::npos) return stages;
    at += 3;
  }
}

TEST(GraphCycle, RandomGraphs) {
  int cycles = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const int32_t count = 2 + random.below(7);
    StageGraph graph = on_one_rank(count);
    std::set<std::pair<int32_t, int32_t>> edges;
    for (int32_t k = random.below(2 * count); k > 0; --k) {
      const int32_t from = random.below(count);
      const int32_t to = random.below(count);
      if (from == to) continue;
      add_edge(graph, from, to);
      edges.emplace(from, to);
    }
    std::vector<std::vector<bool>> reach(static_cast<size_t>(count),
                                         std::vector<bool>(static_cast<size_t>(count)));
    for (const auto& [a, b] : edges) reach[size_t(a)][size_t(b)] = true;
    for (size_t k = 0; k < reach.size(); ++k) {
      for (auto& row : reach) {
        for (size_t b = 0; b < reach.size(); ++b) row[b] = row[b] || (row[k] && reach[k][b]);
      }
    }
    bool cyclic = false;
    for (size_t s = 0; s < reach.size(); ++s) cyclic = cyclic || reach[s][s];
    const Status status = graph.seal();
    ASSERT_EQ(status.ok(), !cyclic) << "seed " << seed;
    if (!cyclic) continue;
    ++cycles;
    const Numbers cycle = cycle_in(status.text());
    ASSERT_GE(cycle.size(), 3U) << status.text();
    ASSERT_EQ(cycle.front(), cycle.back()) << status.text();
    ASSERT_EQ(std::set<int32_t>(cycle.begin(), cycle.end()).size(), cycle.size() - 1)
        << "no stage stands twice inside: " << status.text();
    for (size_t k = 1; k < cycle.size(); ++k) {
      ASSERT_EQ(edges.count({cycle[k - 1], cycle[k]}), 1U) << status.text() << ", seed " << seed;
    }
  }
  EXPECT_GT(cycles, 200);
}

// --- Order and depth

TEST(GraphOrder, Diamond) {
  StageGraph graph = on_one_rank(4);
  const EdgeId last = add_edge(graph, 2, 3);
  add_edge(graph, 1, 3);
  add_edge(graph, 0, 2);
  const EdgeId first = add_edge(graph, 0, 1, false);
  require(graph.seal());
  EXPECT_EQ(numbers(graph.order()), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(depths(graph), (Numbers{0, 1, 1, 2}));
  EXPECT_EQ(graph.depth_max(), 2);
  EXPECT_EQ(graph.edge_count(), 4);
  EXPECT_EQ(graph.edge(first).to, StageId(1));
  EXPECT_FALSE(graph.edge(first).gradient);
  EXPECT_EQ(graph.in_edges(StageId(3)).front(), last);
  EXPECT_EQ(graph.in_edges(StageId(3)).size(), 2U);
  EXPECT_EQ(graph.out_edges(StageId(0)).size(), 2U);
  EXPECT_TRUE(graph.out_edges(StageId(3)).empty());
}

TEST(GraphOrder, StagesAgainstTheirNumbers) {
  StageGraph graph = on_one_rank(5);
  add_edge(graph, 1, 0);
  add_edge(graph, 3, 1);
  add_edge(graph, 4, 3);
  add_edge(graph, 4, 0);  // a short cut does not lower the depth
  require(graph.seal());
  EXPECT_EQ(numbers(graph.order()), (Numbers{2, 4, 3, 1, 0})) << "ties by number";
  EXPECT_EQ(depths(graph), (Numbers{3, 2, 0, 1, 0}));
  EXPECT_EQ(graph.depth_max(), 3);
  EXPECT_EQ(numbers(graph.chunks(RankId(0))), (Numbers{2, 4, 3, 1, 0})) << "the deepest last";
}

TEST(GraphOrder, RandomGraphs) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    StageGraph graph = random_graph(random);
    require(graph.seal());
    // Naively: again and again the lowest stage whose predecessors are all placed.
    Numbers order;
    Numbers depth(static_cast<size_t>(graph.stage_count()), -1);
    while (order.size() < depth.size()) {
      for (int32_t s = 0; s < graph.stage_count(); ++s) {
        if (depth[static_cast<size_t>(s)] >= 0) continue;
        int32_t longest = 0;
        bool ready = true;
        for (EdgeId e : graph.in_edges(StageId(s))) {
          const int32_t before = depth[graph.edge(e).from.index()];
          ready = ready && before >= 0;
          longest = std::max(longest, before + 1);
        }
        if (!ready) continue;
        depth[static_cast<size_t>(s)] = longest;
        order.push_back(s);
        break;
      }
    }
    ASSERT_EQ(numbers(graph.order()), order) << "seed " << seed;
    ASSERT_EQ(depths(graph), depth) << "seed " << seed;
    ASSERT_EQ(graph.depth_max(), *std::max_element(depth.begin(), depth.end()));
    size_t most = 0;
    for (int32_t r = 0; r < graph.ranks(); ++r) {
      Numbers mine;
      std::copy_if(order.begin(), order.end(), std::back_inserter(mine),
                   [&](int32_t s) { return graph.stage(StageId(s)).rank.value == r; });
      ASSERT_EQ(numbers(graph.chunks(RankId(r))), mine) << "seed " << seed;
      most = std::max(most, mine.size());
    }
    ASSERT_EQ(graph.chunks_max(), static_cast<int32_t>(most)) << "seed " << seed;
  }
}

// --- Changes after sealing

TEST(GraphSeal, EveryChangeBreaksIt) {
  StageGraph graph = on_one_rank(2);
  require(graph.seal());
  EXPECT_TRUE(graph.sealed());
  add_edge(graph, 1, 0);
  EXPECT_FALSE(graph.sealed());
  require(graph.seal());
  EXPECT_EQ(numbers(graph.order()), (Numbers{1, 0}));
  EXPECT_EQ(depths(graph), (Numbers{1, 0}));

  Stage stage;
  stage.rank = RankId(0);
  add_stage(graph, stage);
  EXPECT_FALSE(graph.sealed());
  require(graph.seal());
  EXPECT_EQ(numbers(graph.order()), (Numbers{1, 0, 2}));
  EXPECT_EQ(graph.chunks_max(), 3);

  require(graph.place(StageId(0), RankId(0)));
  EXPECT_FALSE(graph.sealed());
  require(graph.seal());
  require(graph.place(Placement::kLoop));
  EXPECT_FALSE(graph.sealed());
}

TEST(GraphSeal, AgainAfterMovingStages) {
  StageGraph graph = bare(2, 4);
  require(graph.place(Placement::kLoop));
  require(graph.seal());
  EXPECT_EQ(numbers(graph.chunks(RankId(0))), (Numbers{0, 2}));
  require(graph.place(Placement::kV));
  require(graph.seal());
  EXPECT_EQ(numbers(graph.chunks(RankId(0))), (Numbers{0, 3}));
  EXPECT_EQ(numbers(graph.chunks(RankId(1))), (Numbers{1, 2}));
  require(graph.place(StageId(2), RankId(0)));
  require(graph.seal());
  EXPECT_EQ(numbers(graph.chunks(RankId(0))), (Numbers{0, 2, 3}));
  EXPECT_EQ(graph.chunks_max(), 3);
}

TEST(GraphSeal, ARefusedChangeKeepsIt) {
  StageGraph graph = on_one_rank(2);
  require(graph.seal());
  EdgeId edge;
  EXPECT_FALSE(graph.add_edge({StageId(0), StageId(9)}, edge).ok());
  EXPECT_FALSE(graph.add_edge({StageId(0), StageId(0)}, edge).ok());
  EXPECT_FALSE(graph.place(Placement::kLinear).ok());
  EXPECT_FALSE(graph.place(StageId(0), RankId(4)).ok());
  EXPECT_TRUE(graph.sealed());
}

}  // namespace
}  // namespace rrfp::core
