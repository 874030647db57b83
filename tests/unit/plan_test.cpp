// SPDX-License-Identifier: Apache-2.0
//
// RankPlan: what a rank's step looks like before it begins. Strict orders are in
// strict_order_test.cpp.
#include "engine/core/plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;
using PlanPtr = std::shared_ptr<const RankPlan>;

Status try_plan(const std::shared_ptr<const StepTasks>& tasks, const Hint& hint, int32_t rank,
                const Policy& policy, const Cap& cap, PlanPtr& out) {
  return build_plan(tasks, hint, RankId(rank), policy, cap, out);
}

PlanPtr plan_of(const std::shared_ptr<const StepTasks>& tasks, int32_t rank,
                std::string_view hint = "1f1b", const Policy& policy = {}, const Cap& cap = {}) {
  PlanPtr plan;
  require(try_plan(tasks, *named_hint(hint), rank, policy, cap, plan));
  return plan;
}

Status cap_error(const std::shared_ptr<const StepTasks>& tasks, int32_t rank, const Cap& cap) {
  PlanPtr plan;
  Status status = try_plan(tasks, *named_hint("1f1b"), rank, {}, cap, plan);
  EXPECT_EQ(plan != nullptr, status.ok());
  return status;
}

std::string order_text(const RankPlan& plan) {
  std::vector<Task> order;
  for (const PlannedTask& t : plan.order) {
    order.push_back({plan.chunks[t.chunk].stage, t.microbatch, t.kind});
  }
  return text_of(order);
}

Stage with_bytes(int64_t bytes) {
  Stage stage;
  stage.activation_bytes = bytes;
  return stage;
}

// --- Caps

TEST(PlanCap, DefaultIsRanksTimesStages) {
  const PlanPtr linear = plan_of(make_step(chain(4), 2), 1);
  EXPECT_EQ(linear->cap, (Amount{4, Ledger::kUnlimited}));
  const PlanPtr v = plan_of(make_step(chain(3, 2, Placement::kV), 2), 2);
  EXPECT_EQ(v->cap, (Amount{6, Ledger::kUnlimited}));
}

TEST(PlanCap, Explicit) {
  const auto tasks = make_step(chain(4), 2);
  EXPECT_EQ(plan_of(tasks, 0, "1f1b", {}, {3, 0})->cap, (Amount{3, Ledger::kUnlimited}));
  EXPECT_EQ(plan_of(tasks, 0, "1f1b", {}, {0, 50})->cap, (Amount{Ledger::kUnlimited, 50}))
      << "slots are unlimited where bytes are limited";
  EXPECT_EQ(plan_of(tasks, 0, "1f1b", {}, {2, 50})->cap, (Amount{2, 50}));
}

TEST(PlanCap, TooFewSlots) {
  const auto tasks = make_step(chain(2, 3, Placement::kLoop), 4);
  EXPECT_TRUE(fails_with(cap_error(tasks, 1, {2, 0}), Code::kCapTooSmall,
                         {"cap of rank 1 is 2 slots", "minimum is 3", "3 stages"}));
  EXPECT_TRUE(cap_error(tasks, 1, {3, 0}).ok());
  EXPECT_TRUE(fails_with(cap_error(tasks, 0, {-1, 0}), Code::kCapTooSmall,
                         {"cap of rank 0 is -1 slots", "minimum is 3"}));
}

TEST(PlanCap, TooFewBytes) {
  const auto graph =
      sealed(chain_of(2, {with_bytes(5), with_bytes(7), with_bytes(11), {}}, Placement::kLoop));
  EXPECT_TRUE(fails_with(cap_error(make_step(graph, 4), 0, {0, 15}), Code::kCapTooSmall,
                         {"cap of rank 0 is 15 bytes", "minimum is 16"}));
  EXPECT_TRUE(cap_error(make_step(graph, 4), 0, {0, 16}).ok());
  EXPECT_TRUE(fails_with(cap_error(make_step(graph, 4), 0, {0, -4}), Code::kCapTooSmall,
                         {"is -4 bytes", "minimum is 16"}));
  // The largest microbatch decides.
  const auto uneven =
      make_step(graph, {StepMode::kTrain, 3, {}, {1, 20, 3, 1, 1, 1, 2, 30, 5, 1, 1, 1}});
  EXPECT_TRUE(
      fails_with(cap_error(uneven, 0, {0, 49}), Code::kCapTooSmall, {"49 bytes", "minimum is 50"}));
  EXPECT_TRUE(cap_error(uneven, 0, {0, 50}).ok());
}

TEST(PlanCap, OnlyWhatTheStepHoldsCounts) {
  // Forward-only steps, frozen stages and skipped pairs hold nothing.
  EXPECT_EQ(plan_of(make_step(chain(2), 2, StepMode::kForwardOnly), 0)->needs,
            std::vector<Amount>(2));
  const auto skipping = make_step(chain(1, 2, Placement::kLoop, with_bytes(9)),
                                  {StepMode::kTrain, 2, {0, 1, /**/ 0, 0}, {}});
  EXPECT_EQ(plan_of(skipping, 0)->needs, (std::vector<Amount>{{2, 18}, {1, 9}}));
}

/// Builds a plan from sizes that no machine has. Refused somewhere on the way, or else the plan
/// must be one that the ledger can take.
void expect_refused_or_sound(int64_t bytes, int32_t chunks, const Policy& policy, const Cap& cap) {
  StageGraph graph(1);
  for (int32_t s = 0; s < chunks; ++s) {
    StageId id;
    if (graph.add_stage({RankId(0), s == chunks - 1, false, false, false, bytes}, id).failed()) {
      return;
    }
  }
  for (int32_t s = 1; s < chunks; ++s) add_edge(graph, s - 1, s);
  std::shared_ptr<const StepTasks> tasks;
  if (StepTasks::create(sealed(std::move(graph)), {StepMode::kTrain, 2, {}, {}}, tasks).failed()) {
    return;
  }
  PlanPtr plan;
  if (try_plan(tasks, *named_hint("1f1b"), 0, policy, cap, plan).failed()) return;
  for (const Amount& need : plan->needs) {
    EXPECT_GE(need.bytes, 0) << "the sum of " << chunks << " stages overflowed";
    EXPECT_TRUE(need.within(plan->cap)) << need.bytes << " bytes do not fit " << plan->cap.bytes;
  }
}

TEST(PlanCap, SizesWhoseSumOverflows) {
  expect_refused_or_sound(INT64_MAX / 2, 3, {}, {0, 1000});
  expect_refused_or_sound(INT64_MAX, 2, {}, {0, 1000});
  expect_refused_or_sound(INT64_MAX, 2, {}, {});
}

TEST(PlanCap, AllActivationsOfAStepMustBeCountable) {
  const auto graph = chain(1, 1, Placement::kLinear, with_bytes(StageGraph::kActivationBytesMax));
  EXPECT_TRUE(cap_error(make_step(graph, 1023), 0, {}).ok());
  EXPECT_TRUE(fails_with(cap_error(make_step(graph, 1024), 0, {}), Code::kOutOfRange,
                         {"rank 0", "more than 1152921504606846975 bytes"}));
}

TEST(PlanCap, SizesBeyondUnlimitedInStrictOrder) {
  expect_refused_or_sound(INT64_MAX / 4, 1, {.order = Order::kStrict}, {});
}

// --- Chunks, edges, cells

TEST(Plan, Reserves) {
  // Rank 0 has stages 0, 2, 4; what deeper chunks need at most stays free.
  const auto graph = chain(2, 3, Placement::kLoop);
  const auto tasks =
      make_step(graph, {StepMode::kTrain, 2, {}, {5, 6, 0, 0, 8, 7, 0, 0, 1, 2, 0, 0}});
  const PlanPtr plan = plan_of(tasks, 0);
  ASSERT_EQ(plan->chunks.size(), 3U);
  EXPECT_EQ(plan->chunks[0].reserve, (Amount{2, 10}));
  EXPECT_EQ(plan->chunks[1].reserve, (Amount{1, 2}));
  EXPECT_EQ(plan->chunks[2].reserve, Amount());
  EXPECT_EQ(plan->chunks[1].stage, StageId(2));
  EXPECT_FALSE(plan->chunks[2].loss);
  EXPECT_TRUE(plan_of(tasks, 1)->chunks[2].loss);
}

TEST(Plan, ChunkOfAFrozenStageReservesNothing) {
  std::vector<Stage> stages(2);
  stages[1].frozen = true;
  const auto tasks = make_step(sealed(chain_of(1, stages, Placement::kLoop)), 1);
  EXPECT_EQ(plan_of(tasks, 0)->chunks[0].reserve, (Amount{1, 0})) << "it has an input gradient";
  stages[0].frozen = true;
  const auto frozen = make_step(sealed(chain_of(1, stages, Placement::kLoop)), 1);
  EXPECT_EQ(plan_of(frozen, 0)->chunks[0].reserve, Amount());
}

TEST(Plan, EdgesAndPeers) {
  const PlanPtr plan = plan_of(make_step(chain(3, 2, Placement::kV), 1), 2);  // stages 2 and 3
  ASSERT_EQ(plan->edges.size(), 3U);
  const EdgePlan& in = plan->edges[0];
  EXPECT_EQ(in.id, EdgeId(1));
  EXPECT_EQ(in.from_chunk, EdgePlan::kRemote);
  EXPECT_EQ(in.to_chunk, 0);
  EXPECT_EQ(in.peer, RankId(1));
  EXPECT_FALSE(in.local());
  const EdgePlan& turn = plan->edges[1];
  EXPECT_TRUE(turn.local());
  EXPECT_EQ(turn.from_chunk, 0);
  EXPECT_EQ(turn.to_chunk, 1);
  EXPECT_EQ(turn.peer, RankId(2));
  const EdgePlan& out = plan->edges[2];
  EXPECT_EQ(out.from_chunk, 1);
  EXPECT_EQ(out.to_chunk, EdgePlan::kRemote);
  EXPECT_EQ(out.peer, RankId(1));
  EXPECT_EQ(plan->find_edge(EdgeId(2)), 1U);
  EXPECT_EQ(plan->find_edge(EdgeId(0)), 3U) << "not an edge of this rank";
  EXPECT_EQ(plan->find_edge(EdgeId(-1)), 3U);
  EXPECT_EQ(plan->find_edge(EdgeId(9)), 3U);
  EXPECT_EQ(plan->find_chunk(StageId(3)), 1U);
  EXPECT_EQ(plan->find_chunk(StageId(0)), 2U);
  EXPECT_EQ(plan->chunks[0].in, std::vector<uint16_t>{0});
  EXPECT_EQ(plan->chunks[0].out, std::vector<uint16_t>{1});
}

TEST(Plan, InputsAndCounts) {
  // Stage 2 joins 0 and 1; microbatch 1 skips stage 0; no gradient goes back to stage 1.
  StageGraph graph(1);
  for (int k = 0; k < 3; ++k) add_stage(graph, {RankId(0), k == 2});
  add_edge(graph, 0, 2);
  add_edge(graph, 1, 2, false);
  const auto tasks =
      make_step(sealed(std::move(graph)), {StepMode::kTrain, 2, {0, 1, /**/ 0, 0, /**/ 0, 0}, {}});
  const PlanPtr plan = plan_of(tasks, 0);
  const auto cell = [&](size_t chunk, int32_t i) { return plan->cell(chunk, MicrobatchId(i)); };
  EXPECT_EQ(cell(2, 0).forward_inputs, 2);
  EXPECT_EQ(cell(2, 1).forward_inputs, 1);
  EXPECT_EQ(cell(0, 0).gradient_inputs, 1);
  EXPECT_EQ(cell(0, 1).forward_at, CellPlan::kNoTask);
  EXPECT_EQ(cell(0, 1).backward_at, CellPlan::kNoTask);
  EXPECT_FALSE(cell(1, 0).backward);
  EXPECT_EQ(cell(1, 0).gradient_inputs, 0);
  EXPECT_EQ(cell(2, 0).gradient_inputs, 0);
  EXPECT_EQ(plan->chunks[0].forward_count, 1);
  EXPECT_EQ(plan->chunks[1].forward_count, 2);
  EXPECT_EQ(plan->chunks[0].weight_count, 1);
  EXPECT_EQ(plan->chunks[1].weight_count, 0);
  EXPECT_EQ(plan->chunks[2].weight_count, 2);
  // F, I and W of (0,0), (2,0), (2,1), and F of (1,0), (1,1).
  EXPECT_EQ(plan->work_count, 11);
}

TEST(Plan, PositionsPointIntoTheOrder) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto graph = sealed(random_graph(random));
    const auto tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(5)));
    for (std::string_view name : Hint::general_names()) {
      for (int32_t r = 0; r < graph->ranks(); ++r) {
        SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
        const PlanPtr plan = plan_of(tasks, r, name);
        for (uint32_t at = 0; at < plan->order.size(); ++at) {
          const PlannedTask& t = plan->order[at];
          const CellPlan& cell = plan->cell(t.chunk, t.microbatch);
          const uint32_t expected = t.kind == TaskKind::kForward          ? cell.forward_at
                                    : t.kind == TaskKind::kWeightGradient ? cell.weight_at
                                                                          : cell.backward_at;
          ASSERT_EQ(expected, at);
          if (t.kind != TaskKind::kBackward) continue;
          ASSERT_EQ(cell.weight_at, cell.weight ? at : CellPlan::kNoTask);
        }
        size_t tasks_expected = 0;
        for (const CellPlan& cell : plan->cells) {
          ASSERT_EQ(cell.backward, cell.backward_at != CellPlan::kNoTask);
          ASSERT_EQ(cell.weight, cell.weight_at != CellPlan::kNoTask);
          tasks_expected += cell.forward_at == CellPlan::kNoTask ? 0 : 1;
          tasks_expected += cell.backward ? 1 : 0;
          tasks_expected += cell.weight && cell.weight_at != cell.backward_at ? 1 : 0;
        }
        ASSERT_EQ(plan->order.size(), tasks_expected);
      }
    }
  }
}

TEST(Plan, StagesThatCannotSplit) {
  std::vector<Stage> stages(3);
  stages[1].fused_only = true;
  stages[2].fused_only = true;
  stages[2].frozen = true;
  const auto tasks = make_step(sealed(chain_of(1, stages, Placement::kLoop)), 2);
  const PlanPtr plan = plan_of(tasks, 0, "zb-h1");
  EXPECT_EQ(order_text(*plan), "0F0,1F0,2F0,2B0,1B0,0I0,0W0,0F1,1F1,2F1,2B1,1B1,0I1,0W1");
  EXPECT_TRUE(plan->chunks[1].fused_only);
  const CellPlan& fused = plan->cell(1, MicrobatchId(0));
  EXPECT_EQ(fused.backward_at, 4U);
  EXPECT_EQ(fused.weight_at, 4U);
  const CellPlan& frozen = plan->cell(2, MicrobatchId(0));
  EXPECT_EQ(frozen.backward_at, 3U);
  EXPECT_EQ(frozen.weight_at, CellPlan::kNoTask);
  EXPECT_EQ(plan->work_count, 2 * (3 + 3 + 2));
  // An explicit W far from its I is done by the B.
  PlanPtr listed;
  require(try_plan(make_step(chain(1, 1, Placement::kLinear, fused_stage()), 2),
                   *text_hint("0F0,0I0,0F1,0I1,0W0,0W1\n"), 0, {}, {}, listed));
  EXPECT_EQ(order_text(*listed), "0F0,0B0,0F1,0B1");
}

TEST(Plan, Durations) {
  Stage stage;
  stage.forward_ns = 5;
  stage.input_gradient_ns = 7;
  stage.weight_gradient_ns = 11;
  const PlanPtr plan = plan_of(make_step(chain(1, 1, Placement::kLinear, stage), 1), 0);
  EXPECT_EQ(plan->chunks[0].duration_ns, (std::array<int64_t, 4>{5, 18, 7, 11})) << "F B I W";
}

TEST(Plan, AHintThatDoesNotFitTheStep) {
  PlanPtr plan;
  EXPECT_TRUE(fails_with(try_plan(make_step(chain(1), 2), *text_hint("0F0,0B0\n"), 0, {}, {}, plan),
                         Code::kBadOrder, {"rank 0", "microbatch 1"}));
  EXPECT_EQ(plan, nullptr);
}

// --- Credits

std::vector<int32_t> credits_of(const RankPlan& plan) {
  std::vector<int32_t> credits;
  for (const EdgePlan& e : plan.edges) credits.push_back(e.credits);
  return credits;
}

using Credits = std::vector<int32_t>;

TEST(PlanCredits, DefaultCountsOnlyWhatTheCapDoesNotBound) {
  EXPECT_EQ(credits_of(*plan_of(make_step(chain(3), 2), 1)), (Credits{0, 0}));
  EXPECT_EQ(credits_of(*plan_of(make_step(chain(3), 2, StepMode::kForwardOnly), 1)),
            (Credits{4, 4}));
  EXPECT_EQ(
      credits_of(*plan_of(make_step(chain(3, 2, Placement::kV), 2, StepMode::kForwardOnly), 2)),
      (Credits{7, 7, 7}));
  std::vector<Stage> stages(3);
  stages[0].frozen = true;
  const auto frozen = make_step(sealed(chain_of(3, stages, Placement::kLinear)), 2);
  EXPECT_EQ(credits_of(*plan_of(frozen, 1)), (Credits{4, 0})) << "nothing flows back to stage 0";
}

TEST(PlanCredits, OneMicrobatchWithoutGradientIsEnough) {
  // Microbatch 1 skips the loss stage, so stage 0 sends to stage 1 without holding anything.
  const auto tasks = make_step(chain(3), {StepMode::kTrain, 2, {0, 0, /**/ 0, 0, /**/ 0, 1}, {}});
  EXPECT_EQ(credits_of(*plan_of(tasks, 0)), Credits{4});
  EXPECT_EQ(credits_of(*plan_of(tasks, 1)), (Credits{4, 0}));
  EXPECT_EQ(credits_of(*plan_of(tasks, 2)), Credits{0}) << "both ends count alike";
}

TEST(PlanCredits, ManyRanksTimesManyStagesDoNotOverflow) {
  constexpr int32_t kRanks = StageGraph::kRanksMax;
  StageGraph graph(kRanks);
  for (int32_t s = 0; s < 2 * kRanks - 100; ++s) {
    Stage stage;
    stage.rank = RankId(s < kRanks ? s : 0);
    add_stage(graph, stage);
  }
  add_edge(graph, 1, 2);
  const auto tasks = make_step(sealed(std::move(graph)), 1, StepMode::kForwardOnly);
  EXPECT_GT(plan_of(tasks, 1)->edges.at(0).credits, 0);
}

TEST(PlanCredits, Explicit) {
  EXPECT_EQ(credits_of(*plan_of(make_step(chain(3), 2), 1, "1f1b", {.credits = 2})),
            (Credits{2, 2}));
}

TEST(PlanCredits, StrictOrderCountsNone) {
  const Policy strict = {.order = Order::kStrict, .credits = 2, .hold_permille = 250};
  const PlanPtr plan = plan_of(make_step(chain(3), 2, StepMode::kForwardOnly), 1, "1f1b", strict);
  EXPECT_EQ(credits_of(*plan), (Credits{0, 0}));
  EXPECT_EQ(plan->policy.hold_permille, 0) << "nor does it hold";
  EXPECT_EQ(plan->cap, (Amount{Ledger::kUnlimited, Ledger::kUnlimited}));
}

TEST(PlanCredits, BothEndsOfAnEdgeAgree) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto graph = sealed(random_graph(random));
    const auto tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(5)));
    for (int32_t e = 0; e < graph->edge_count(); ++e) {
      const Edge& edge = graph->edge(EdgeId(e));
      const PlanPtr from = plan_of(tasks, graph->stage(edge.from).rank.value);
      const PlanPtr to = plan_of(tasks, graph->stage(edge.to).rank.value);
      const EdgePlan& a = from->edges[from->find_edge(EdgeId(e))];
      const EdgePlan& b = to->edges[to->find_edge(EdgeId(e))];
      ASSERT_EQ(a.credits, b.credits) << "edge " << e << ", seed " << seed;
      ASSERT_EQ(a.peer, to->rank);
      ASSERT_EQ(b.peer, from->rank);
    }
  }
}

}  // namespace
}  // namespace rrfp::core
