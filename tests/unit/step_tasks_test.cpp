// SPDX-License-Identifier: Apache-2.0
//
// StepTasks: the rules of its header on small graphs, and against a second evaluation of the same
// rules by paths instead of by recursion.
#include "engine/core/step_tasks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

Stage plain() {
  return {};
}
Stage frozen() {
  Stage stage;
  stage.frozen = true;
  return stage;
}
Stage loss() {
  Stage stage;
  stage.loss = true;
  return stage;
}

/// All stages on one rank; edges as given.
std::shared_ptr<const StageGraph> graph_of(std::vector<Stage> stages, std::vector<Edge> edges) {
  StageGraph graph(1);
  for (Stage& stage : stages) {
    stage.rank = RankId(0);
    add_stage(graph, stage);
  }
  for (const Edge& e : edges) add_edge(graph, e.from.value, e.to.value, e.gradient);
  return sealed(std::move(graph));
}

Edge edge(int32_t from, int32_t to, bool gradient = true) {
  return {StageId(from), StageId(to), gradient};
}

std::shared_ptr<const StageGraph> chain_with(std::vector<Stage> stages) {
  return sealed(chain_of(1, std::move(stages), Placement::kLoop));
}

/// Per stage: '-' takes no part, 'F' forward only, 'I' input gradient without weights, 'B' both.
std::string stages_of(const StepTasks& tasks, int32_t microbatch = 0) {
  std::string text;
  const MicrobatchId i(microbatch);
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    const StageId id(s);
    if (!tasks.takes_part(id, i)) {
      text += tasks.backward(id, i) || tasks.weight(id, i) ? '?' : '-';
    } else if (!tasks.backward(id, i)) {
      text += tasks.weight(id, i) ? '?' : 'F';
    } else {
      text += tasks.weight(id, i) ? 'B' : 'I';
    }
  }
  return text;
}

/// Per edge: '-' no message, '>' only forward, '=' both ways.
std::string edges_of(const StepTasks& tasks, int32_t microbatch = 0) {
  std::string text;
  const MicrobatchId i(microbatch);
  for (int32_t e = 0; e < tasks.graph().edge_count(); ++e) {
    const bool active = tasks.active(EdgeId(e), i);
    const bool returns = tasks.returns(EdgeId(e), i);
    text += active ? (returns ? '=' : '>') : (returns ? '?' : '-');
  }
  return text;
}

void expect_step(const StepTasks& tasks, const std::string& stages, const std::string& edges,
                 int32_t microbatch = 0) {
  EXPECT_EQ(stages_of(tasks, microbatch), stages) << "microbatch " << microbatch;
  EXPECT_EQ(edges_of(tasks, microbatch), edges) << "microbatch " << microbatch;
}

TEST(StepTasksRules, Chain) {
  const auto tasks = make_step(chain(4), 3);
  for (int32_t i = 0; i < 3; ++i) expect_step(*tasks, "BBBB", "===", i);
}

TEST(StepTasksRules, ForwardOnly) {
  const auto tasks = make_step(chain(3), 2, StepMode::kForwardOnly);
  for (int32_t i = 0; i < 2; ++i) expect_step(*tasks, "FFF", ">>", i);
}

TEST(StepTasksRules, FrozenStages) {
  expect_step(*make_step(chain_with({frozen(), plain(), plain()}), 1), "FBB", ">=");
  expect_step(*make_step(chain_with({plain(), frozen(), plain()}), 1), "BIB", "==");
  expect_step(*make_step(chain_with({plain(), plain(), frozen()}), 1), "BBI", "==");
  expect_step(*make_step(chain_with({frozen(), frozen(), plain(), frozen()}), 1), "FFBI", ">>=");
  expect_step(*make_step(chain_with({frozen(), frozen()}), 1), "FF", ">");
}

TEST(StepTasksRules, CallerWantsInputGradients) {
  Stage wanted = frozen();
  wanted.input_gradient = true;
  expect_step(*make_step(chain_with({wanted, frozen(), frozen()}), 1), "III", "==");
  expect_step(*make_step(chain_with({frozen(), wanted, plain()}), 1), "FIB", ">=");
}

TEST(StepTasksRules, NoLossNoGradient) {
  const auto graph = graph_of({plain(), plain()}, {edge(0, 1)});
  expect_step(*make_step(graph, 1), "FF", ">");
}

TEST(StepTasksRules, BehindTheLossNothingFlows) {
  const auto graph = graph_of({plain(), loss(), plain()}, {edge(0, 1), edge(1, 2)});
  expect_step(*make_step(graph, 1), "BBF", "=>");
}

TEST(StepTasksRules, TwoLossStages) {
  // An auxiliary loss half-way: stage 1 feeds both losses.
  const auto graph = graph_of({plain(), plain(), loss(), plain(), loss()},
                              {edge(0, 1), edge(1, 2), edge(1, 3), edge(3, 4)});
  expect_step(*make_step(graph, 1), "BBBBB", "====");
  // A loss stage that feeds another one.
  expect_step(*make_step(graph_of({plain(), loss(), loss()}, {edge(0, 1), edge(1, 2)}), 1), "BBB",
              "==");
}

TEST(StepTasksRules, Join) {
  // A frozen encoder and a trainable branch feed stage 2.
  const auto graph =
      graph_of({frozen(), plain(), plain(), loss()}, {edge(0, 2), edge(1, 2), edge(2, 3)});
  expect_step(*make_step(graph, 1), "FBBB", ">==");
}

TEST(StepTasksRules, Diamond) {
  const auto edges = {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)};
  expect_step(*make_step(graph_of({plain(), frozen(), plain(), loss()}, edges), 1), "BIBB", "====");
  expect_step(*make_step(graph_of({frozen(), frozen(), plain(), loss()}, edges), 1), "FFBB",
              ">>>=");
}

TEST(StepTasksRules, EdgeWithoutGradient) {
  // What only reaches the loss along such an edge has no backward pass.
  expect_step(*make_step(graph_of({plain(), plain(), loss()}, {edge(0, 1, false), edge(1, 2)}), 1),
              "FBB", ">=");
  // What only requires a gradient along such an edge does not require one.
  expect_step(*make_step(graph_of({plain(), frozen(),
                                   [] {
                                     Stage s = frozen();
                                     s.loss = true;
                                     return s;
                                   }()},
                                  {edge(0, 1, false), edge(1, 2)}),
                         1),
              "FFF", ">>");
  // Beside an edge with gradient it stays a forward edge.
  expect_step(
      *make_step(graph_of({plain(), plain(), loss()}, {edge(0, 1), edge(0, 2, false), edge(1, 2)}),
                 1),
      "BBB", "=>=");
  // Parallel edges between the same stages.
  expect_step(*make_step(graph_of({plain(), loss()}, {edge(0, 1, false), edge(0, 1)}), 1), "BB",
              ">=");
}

StepShape skipping(int32_t microbatches, std::vector<uint8_t> skip) {
  return {StepMode::kTrain, microbatches, std::move(skip), {}};
}

TEST(StepTasksSkip, AMiddleStageCutsItsEdges) {
  // Microbatch 1 skips stage 1 of three.
  const auto tasks =
      make_step(chain_with({plain(), plain(), plain()}), skipping(2, {0, 0, /**/ 0, 1, /**/ 0, 0}));
  expect_step(*tasks, "BBB", "==", 0);
  expect_step(*tasks, "F-B", "--", 1);
}

TEST(StepTasksSkip, AnyNonZeroByteSkips) {
  expect_step(*make_step(chain_with({plain(), plain()}), skipping(1, {255, 0})), "-B", "-");
}

TEST(StepTasksSkip, TheLossStage) {
  expect_step(*make_step(chain_with({plain(), plain()}), skipping(1, {0, 1})), "F-", "-");
}

TEST(StepTasksSkip, OneBranchOfAJoin) {
  // Text-only samples skip the encoder, stage 0.
  const auto graph =
      graph_of({plain(), plain(), plain(), loss()}, {edge(0, 2), edge(1, 2), edge(2, 3)});
  const auto tasks = make_step(graph, skipping(2, {1, 0, /**/ 0, 0, /**/ 0, 0, /**/ 0, 0}));
  expect_step(*tasks, "-BBB", "-==", 0);
  expect_step(*tasks, "BBBB", "===", 1);
}

TEST(StepTasksSkip, TheOnlyTrainableStage) {
  const auto graph = graph_of({plain(), frozen(), loss()}, {edge(0, 1), edge(1, 2)});
  const auto tasks = make_step(graph, skipping(1, {1, 0, 0}));
  expect_step(*tasks, "-FB", "->");
}

TEST(StepTasksSkip, AWholeMicrobatch) {
  const auto tasks = make_step(chain(2), skipping(2, {0, 1, /**/ 0, 1}));
  expect_step(*tasks, "BB", "=", 0);
  expect_step(*tasks, "--", "-", 1);
}

TEST(StepTasksBytes, OfTheStageOrOfTheStep) {
  Stage heavy;
  heavy.activation_bytes = 70;
  const auto graph = chain_with({frozen(), heavy, plain()});
  const auto by_stage = make_step(graph, 2);
  EXPECT_EQ(by_stage->held_bytes(StageId(1), MicrobatchId(1)), 70);
  EXPECT_EQ(by_stage->held_bytes(StageId(2), MicrobatchId(1)), 0);
  const auto by_step = make_step(graph, {StepMode::kTrain, 2, {}, {1, 2, /**/ 3, 4, /**/ 5, 6}});
  EXPECT_EQ(by_step->held_bytes(StageId(0), MicrobatchId(0)), 0) << "it has no backward pass";
  EXPECT_EQ(by_step->held_bytes(StageId(1), MicrobatchId(0)), 3);
  EXPECT_EQ(by_step->held_bytes(StageId(1), MicrobatchId(1)), 4);
  EXPECT_EQ(by_step->held_bytes(StageId(2), MicrobatchId(1)), 6);
  const auto skipped = make_step(graph, {StepMode::kTrain, 1, {0, 1, 0}, {1, 2, 3}});
  EXPECT_EQ(skipped->held_bytes(StageId(1), MicrobatchId(0)), 0);
  EXPECT_EQ(skipped->held_bytes(StageId(2), MicrobatchId(0)), 3);
}

// --- Bad shapes

Status create(StepShape shape) {
  std::shared_ptr<const StepTasks> tasks;
  const Status status = StepTasks::create(chain(3), std::move(shape), tasks);
  EXPECT_EQ(tasks != nullptr, status.ok()) << "outputs are written only on success";
  return status;
}

TEST(StepTasksErrors, Microbatches) {
  EXPECT_TRUE(fails_with(create({StepMode::kTrain, 0, {}, {}}), Code::kInvalidArgument,
                         {"microbatches is 0", "1 to 16777216"}));
  EXPECT_TRUE(fails_with(create({StepMode::kTrain, -4, {}, {}}), Code::kInvalidArgument,
                         {"microbatches is -4"}));
  EXPECT_TRUE(fails_with(create({StepMode::kTrain, (1 << 24) + 1, {}, {}}), Code::kInvalidArgument,
                         {"microbatches is 16777217", "1 to 16777216"}));
  EXPECT_TRUE(create({StepMode::kTrain, 1 << 24, {}, {}}).ok());
  EXPECT_TRUE(create({StepMode::kTrain, 1, {}, {}}).ok());
}

TEST(StepTasksErrors, SizesOfArrays) {
  EXPECT_TRUE(fails_with(create(skipping(2, std::vector<uint8_t>(5))), Code::kInvalidArgument,
                         {"skip has 5 entries", "3 stages x 2 microbatches"}));
  EXPECT_TRUE(fails_with(create({StepMode::kTrain, 2, {}, std::vector<int64_t>(7)}),
                         Code::kInvalidArgument,
                         {"activation_bytes has 7 entries", "3 stages x 2 microbatches"}));
}

TEST(StepTasksErrors, Bytes) {
  EXPECT_TRUE(fails_with(create({StepMode::kTrain, 2, {}, {0, 0, 0, 0, 0, -9}}),
                         Code::kInvalidArgument,
                         {"activation_bytes of stage 2, microbatch 1", "is -9", "expected 0 to"}));
  EXPECT_TRUE(fails_with(create({StepMode::kTrain, 1, {}, {0, 1125899906842625, 0}}),
                         Code::kInvalidArgument,
                         {"stage 1, microbatch 0 is 1125899906842625", "0 to 1125899906842624"}));
  EXPECT_TRUE(create({StepMode::kTrain, 1, {}, {0, StageGraph::kActivationBytesMax, 0}}).ok());
}

// --- All rules at once

/// paths[a][b]: b can be reached from a along active edges with gradient (a itself included).
using Paths = std::vector<std::vector<bool>>;

Paths gradient_paths(const StageGraph& graph, const std::vector<bool>& part) {
  const size_t n = part.size();
  Paths paths(n, std::vector<bool>(n));
  for (size_t s = 0; s < n; ++s) paths[s][s] = part[s];
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const Edge& edge = graph.edge(EdgeId(e));
    if (edge.gradient && part[edge.from.index()] && part[edge.to.index()]) {
      paths[edge.from.index()][edge.to.index()] = true;
    }
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        paths[a][b] = paths[a][b] || (paths[a][k] && paths[k][b]);
      }
    }
  }
  return paths;
}

void compare_with_paths(const StepTasks& tasks, MicrobatchId i) {
  const StageGraph& graph = tasks.graph();
  const StepShape& shape = tasks.shape();
  const auto n = static_cast<size_t>(graph.stage_count());
  const auto m = static_cast<size_t>(shape.microbatches);
  std::vector<bool> part(n);
  for (size_t s = 0; s < n; ++s) {
    part[s] = shape.skip.empty() || shape.skip[s * m + i.index()] == 0;
  }
  const Paths paths = gradient_paths(graph, part);
  // A stage requires a gradient if a stage that wants one lies before it or is it; the gradient
  // flows in it if a loss lies behind it or is it.
  const auto any_path = [&](auto holds) {
    std::vector<bool> result(n);
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        if (paths[a][b]) holds(result, a, b);
      }
    }
    return result;
  };
  const auto require_it = any_path([&](std::vector<bool>& result, size_t a, size_t b) {
    const Stage& from = graph.stage(StageId::of(a));
    if (!from.frozen || from.input_gradient) result[b] = true;
  });
  const auto flow = any_path([&](std::vector<bool>& result, size_t a, size_t b) {
    if (graph.stage(StageId::of(b)).loss) result[a] = true;
  });
  const bool train = shape.mode == StepMode::kTrain;
  for (size_t s = 0; s < n; ++s) {
    const StageId id = StageId::of(s);
    const bool backward = train && require_it[s] && flow[s];
    ASSERT_EQ(tasks.takes_part(id, i), part[s]) << "stage " << s;
    ASSERT_EQ(tasks.backward(id, i), backward) << "stage " << s;
    ASSERT_EQ(tasks.weight(id, i), backward && !graph.stage(id).frozen) << "stage " << s;
    const int64_t bytes = shape.activation_bytes.empty()
                              ? graph.stage(id).activation_bytes
                              : shape.activation_bytes[s * m + i.index()];
    ASSERT_EQ(tasks.held_bytes(id, i), backward ? bytes : 0) << "stage " << s;
  }
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const Edge& edge = graph.edge(EdgeId(e));
    const bool active = part[edge.from.index()] && part[edge.to.index()];
    ASSERT_EQ(tasks.active(EdgeId(e), i), active) << "edge " << e;
    ASSERT_EQ(tasks.returns(EdgeId(e), i), train && edge.gradient && active &&
                                               require_it[edge.from.index()] &&
                                               flow[edge.to.index()])
        << "edge " << e;
    // What a gradient travels along has a backward pass at both ends.
    if (!tasks.returns(EdgeId(e), i)) continue;
    ASSERT_TRUE(tasks.backward(edge.from, i) && tasks.backward(edge.to, i)) << "edge " << e;
  }
}

TEST(StepTasksRules, RandomGraphs) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto graph = sealed(random_graph(random));
    const auto tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(4)));
    for (int32_t i = 0; i < tasks->microbatches(); ++i) {
      compare_with_paths(*tasks, MicrobatchId(i));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rrfp::core
