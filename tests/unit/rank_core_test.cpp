// SPDX-License-Identifier: Apache-2.0
//
// RankCore, command by command: a two-rank chain, messages in any order, events that cannot be, and
// why a rank is idle. Holding is in rank_core_hold_test.cpp, whole random steps are in
// rank_core_random_test.cpp.
#include "engine/core/rank_core.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/fixtures.h"
#include "tests/unit/rank_core_text.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

constexpr Policy kStrict = {.order = Order::kStrict};

Driven driven(int32_t rank, int32_t microbatches, const Policy& policy = {}, const Cap& cap = {},
              std::string_view hint = "1f1b") {
  return {make_step(chain(2), microbatches), *named_hint(hint), rank, policy, cap};
}

// --- A chain of two ranks

TEST(RankCoreChain, FirstRank) {
  for (const Order order : {Order::kReady, Order::kStrict}) {
    Driven r0 = driven(0, 2, {.order = order});
    EXPECT_EQ(r0.core.work_left(), 6);
    EXPECT_EQ(r0.pull(), "run 0F0");
    EXPECT_TRUE(r0.core.running());
    EXPECT_EQ(to_string(r0.core.running_task()), "0F0");
    EXPECT_EQ(r0.core.ledger().live(), (Amount{1, 0}));
    EXPECT_EQ(r0.done(), "send e0>0 to 1");
    EXPECT_FALSE(r0.core.running());
    EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1");
    EXPECT_EQ(r0.pull(), "idle input");
    EXPECT_EQ(r0.gradient(0, 0), "");
    EXPECT_EQ(r0.core.ledger().live(), (Amount{2, 0}));
    EXPECT_EQ(r0.step(), "run 0B0; forget 0:0");
    EXPECT_EQ(r0.core.ledger().live(), (Amount{1, 0}));
    EXPECT_EQ(r0.core.work_left(), 2);
    EXPECT_FALSE(r0.core.complete());
    EXPECT_EQ(r0.gradient(0, 1), "");
    EXPECT_EQ(r0.step(), "run 0B1; forget 0:1, gradients 0, complete");
    EXPECT_TRUE(r0.core.complete());
    EXPECT_EQ(r0.pull(), "idle complete");
    EXPECT_EQ(r0.core.ledger().live(), Amount());
    EXPECT_EQ(r0.core.ledger().peak(), (Amount{2, 0}));
    EXPECT_FALSE(r0.core.failed());
  }
}

TEST(RankCoreChain, LastRank) {
  for (const Order order : {Order::kReady, Order::kStrict}) {
    Driven r1 = driven(1, 2, {.order = order});
    EXPECT_EQ(r1.pull(), "idle input");
    EXPECT_EQ(r1.activation(0, 0), "");
    EXPECT_EQ(r1.step(), "run 1F0; ");
    EXPECT_EQ(r1.step(), "run 1B0; send e0<0 to 0, forget 1:0");
    EXPECT_EQ(r1.pull(), "idle input");
    EXPECT_EQ(r1.activation(0, 1), "");
    EXPECT_EQ(r1.step(), "run 1F1; losses 1");
    EXPECT_EQ(r1.step(), "run 1B1; send e0<1 to 0, forget 1:1, gradients 1, complete");
    EXPECT_EQ(r1.pull(), "idle complete");
  }
}

TEST(RankCoreChain, ZeroBubbleH1) {
  Driven r1 = driven(1, 2, kStrict, {}, "zb-h1");  // 1F0,1I0,1F1,1I1,1W0,1W1
  r1.activation(0, 0);
  r1.activation(0, 1);
  EXPECT_EQ(r1.step(), "run 1F0; ");
  EXPECT_EQ(r1.step(), "run 1I0; send e0<0 to 0");
  EXPECT_EQ(r1.core.ledger().live(), (Amount{1, 0})) << "held until W";
  EXPECT_EQ(r1.step(), "run 1F1; losses 1");
  EXPECT_EQ(r1.step(), "run 1I1; send e0<1 to 0");
  EXPECT_EQ(r1.step(), "run 1W0; forget 1:0");
  EXPECT_EQ(r1.step(), "run 1W1; forget 1:1, gradients 1, complete");
}

TEST(RankCoreChain, ForwardOnly) {
  const auto tasks = make_step(chain(2), 2, StepMode::kForwardOnly);
  Driven r0(tasks, *named_hint("1f1b"), 0);
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1, forget 0:0");
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1, forget 0:1, complete");
  EXPECT_EQ(r0.core.ledger().peak(), Amount());
  Driven r1(tasks, *named_hint("1f1b"), 1);
  r1.activation(0, 1);
  EXPECT_EQ(r1.step(), "run 1F1, credit e0 to 0; forget 1:1");
  r1.activation(0, 0);
  EXPECT_EQ(r1.step(), "run 1F0, credit e0 to 0; losses 1, forget 1:0, complete");
}

TEST(RankCoreChain, LocalStages) {
  Driven core(make_step(chain(1, 2, Placement::kLoop), 1), *named_hint("1f1b"), 0);
  EXPECT_EQ(core.step(), "run 0F0; deliver e0>0");
  EXPECT_EQ(core.step(), "run 1F0; losses 1");
  EXPECT_EQ(core.step(), "run 1B0; deliver e0<0, forget 1:0, gradients 1");
  EXPECT_EQ(core.step(), "run 0B0; forget 0:0, gradients 0, complete");
}

TEST(RankCoreChain, AFrozenStageHasNoWeightGradient) {
  std::vector<Stage> stages(3);
  stages[1].frozen = true;
  Driven core(make_step(sealed(chain_of(3, stages, Placement::kLinear)), 1), *named_hint("zb-h1"),
              1);
  core.activation(0, 0);
  EXPECT_EQ(core.step(), "run 1F0; send e1>0 to 2");
  core.gradient(1, 0);
  EXPECT_EQ(core.step(), "run 1I0; send e0<0 to 0, forget 1:0, complete");
  EXPECT_EQ(core.core.ledger().live(), Amount());
}

TEST(RankCoreChain, ARankWithoutTasksIsComplete) {
  const auto tasks = make_step(chain(2), {StepMode::kTrain, 2, {1, 1, /**/ 0, 0}, {}});
  Driven r0(tasks, *named_hint("1f1b"), 0);
  EXPECT_TRUE(r0.core.complete());
  EXPECT_EQ(r0.pull(), "idle complete");
  Driven r1(tasks, *named_hint("1f1b"), 1);
  EXPECT_EQ(r1.step(), "run 1F0; ");
  EXPECT_EQ(r1.step(), "run 1B0; forget 1:0");
}

TEST(RankCoreChain, ANewStepForgetsTheOldOne) {
  Driven r1 = driven(1, 2);
  r1.activation(0, 0);
  r1.pull();
  r1.activation(0, 0);  // twice: failed
  ASSERT_TRUE(r1.core.failed());
  std::shared_ptr<const RankPlan> plan;
  require(build_plan(make_step(chain(2), 1), *named_hint("gpipe"), RankId(1), {}, {}, plan));
  r1.core.begin_step(plan);
  EXPECT_FALSE(r1.core.failed());
  EXPECT_TRUE(r1.core.fault().ok());
  EXPECT_FALSE(r1.core.running());
  EXPECT_EQ(r1.pull(), "idle input");
  EXPECT_EQ(r1.activation(0, 0), "");
  EXPECT_EQ(r1.step(), "run 1F0; losses 1");
}

// --- Messages in any order

TEST(RankCoreMessages, ReadyOrderTakesWhatIsHere) {
  Driven r1 = driven(1, 3);
  r1.activation(0, 2);
  EXPECT_EQ(r1.step(), "run 1F2; ");
  r1.activation(0, 1);
  r1.activation(0, 0);
  EXPECT_EQ(r1.step(), "run 1F0; ") << "the hint ranks: 1F0,1B0,1F1,1B1,1F2,1B2";
  EXPECT_EQ(r1.step(), "run 1B0; send e0<0 to 0, forget 1:0");
  EXPECT_EQ(r1.step(), "run 1F1; losses 1");
}

TEST(RankCoreMessages, StrictOrderWaits) {
  Driven r1 = driven(1, 2, kStrict);
  EXPECT_EQ(r1.pull(), "idle input");
  r1.activation(0, 1);
  EXPECT_EQ(r1.pull(), "idle policy") << "1F1 is ready, but it is not its turn";
  r1.activation(0, 0);
  EXPECT_EQ(r1.step(), "run 1F0; ");
  EXPECT_EQ(r1.step(), "run 1B0; send e0<0 to 0, forget 1:0");
  EXPECT_EQ(r1.step(), "run 1F1; losses 1") << "the early message was kept";
}

TEST(RankCoreMessages, WhileATaskRuns) {
  Driven r1 = driven(1, 2);
  r1.activation(0, 0);
  EXPECT_EQ(r1.pull(), "run 1F0");
  EXPECT_EQ(r1.activation(0, 1), "");
  EXPECT_EQ(r1.done(), "");
  EXPECT_EQ(r1.pull(), "run 1B0");
}

TEST(RankCoreMessages, JoinWaitsForAllItsInputs) {
  StageGraph graph(3);
  for (int32_t s = 0; s < 3; ++s) add_stage(graph, {RankId(s), s == 2});
  add_edge(graph, 0, 2);
  add_edge(graph, 1, 2);
  Driven join(make_step(sealed(std::move(graph)), 2), *named_hint("1f1b"), 2);
  join.activation(1, 0);
  join.activation(0, 1);
  EXPECT_EQ(join.pull(), "idle input");
  join.activation(0, 0);
  EXPECT_EQ(join.step(), "run 2F0; ");
  EXPECT_EQ(join.step(), "run 2B0; send e0<0 to 0, send e1<0 to 1, forget 2:0");
}

TEST(RankCoreMessages, AGradientBeforeTheOwnForwardIsKept) {
  // It cannot come from a correct peer, but its arrival alone must not start a backward pass.
  Driven r0 = driven(0, 2);
  EXPECT_EQ(r0.gradient(0, 1), "");
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1");
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1");
  EXPECT_EQ(r0.pull(), "run 0I1") << "the turn of W is that of microbatch 0";
}

// --- Deterministic weight gradients

TEST(RankCoreWeights, ABackwardOutOfTurnIsCutInTwo) {
  Driven r1 = driven(1, 3, {}, {3, 0});
  r1.activation(0, 1);
  EXPECT_EQ(r1.step(), "run 1F1; ");
  EXPECT_EQ(r1.step(), "run 1I1; send e0<1 to 0");
  EXPECT_EQ(r1.pull(), "idle input") << "its W waits for microbatch 0";
  EXPECT_EQ(r1.waiting(),
            "1F0 waits e0> from 0, 1B0 waits own forward, 1W1 waits turn, "
            "1F2 waits e0> from 0, 1I2 waits own forward");
  r1.activation(0, 2);
  EXPECT_EQ(r1.step(), "run 1F2; ");
  EXPECT_EQ(r1.step(), "run 1I2; send e0<2 to 0");
  r1.activation(0, 0);
  EXPECT_EQ(r1.step(), "run 1F0; losses 1");
  EXPECT_EQ(r1.core.ledger().live(), (Amount{3, 0}));
  EXPECT_EQ(r1.step(), "run 1B0; send e0<0 to 0, forget 1:0");
  EXPECT_EQ(r1.step(), "run 1W1; forget 1:1");
  EXPECT_EQ(r1.step(), "run 1W2; forget 1:2, gradients 1, complete");
}

TEST(RankCoreWeights, AlsoInStrictOrder) {
  Driven core(make_step(chain(1), 3), *text_hint("0F0,0F1,0F2,0B2,0B1,0B0\n"), 0, kStrict);
  for (int k = 0; k < 3; ++k) core.step();
  EXPECT_EQ(core.step(), "run 0I2; ");
  EXPECT_EQ(core.step(), "run 0I1; ");
  EXPECT_EQ(text_of(*core.core.strict_next()), "0B0 ready");
  EXPECT_EQ(core.step(), "run 0B0; forget 0:0");
  EXPECT_FALSE(core.core.strict_next().has_value());
  EXPECT_EQ(core.step(), "run 0W1; forget 0:1");
  EXPECT_EQ(core.step(), "run 0W2; forget 0:2, gradients 0, complete");
}

TEST(RankCoreWeights, StrictOrderRunsAWeightHalfBeforeItGoesOn) {
  Driven core(make_step(chain(1), 3), *text_hint("0F0,0F1,0B1,0B0,0F2,0B2\n"), 0, kStrict);
  for (int k = 0; k < 4; ++k) core.step();
  EXPECT_EQ(core.step(), "run 0W1; forget 0:1");
  EXPECT_EQ(core.step(), "run 0F2; losses 0");
}

TEST(RankCoreWeights, AnyOrderWithoutDeterminism) {
  Driven r1 = driven(1, 2, {.deterministic = false});
  r1.activation(0, 1);
  r1.step();
  EXPECT_EQ(r1.step(), "run 1B1; send e0<1 to 0, forget 1:1");
}

TEST(RankCoreWeights, ExplicitHalvesWaitForTheirTurn) {
  Driven core(make_step(chain(1), 2), *text_hint("0F1,0I1,0W1,0F0,0I0,0W0\n"), 0, {}, {2, 0});
  EXPECT_EQ(core.step(), "run 0F1; ");
  EXPECT_EQ(core.step(), "run 0I1; ");
  EXPECT_EQ(core.step(), "run 0F0; losses 0");
  EXPECT_EQ(core.step(), "run 0I0; ");
  EXPECT_EQ(core.step(), "run 0W0; forget 0:0");
  EXPECT_EQ(core.step(), "run 0W1; forget 0:1, gradients 0, complete");
}

TEST(RankCoreWeights, AStageThatCannotSplitWaits) {
  const auto tasks = make_step(chain(2, 1, Placement::kLinear, fused_stage()), 2);
  Driven r1(tasks, *named_hint("zb-h1"), 1);
  r1.activation(0, 1);
  EXPECT_EQ(r1.step(), "run 1F1; ");
  EXPECT_EQ(r1.pull(), "idle input");
  EXPECT_EQ(r1.waiting(), "1F0 waits e0> from 0, 1B0 waits own forward, 1B1 waits turn");
  r1.activation(0, 0);
  EXPECT_EQ(r1.step(), "run 1F0; losses 1");
  EXPECT_EQ(r1.step(), "run 1B0; send e0<0 to 0, forget 1:0");
  EXPECT_EQ(r1.step(), "run 1B1; send e0<1 to 0, forget 1:1, gradients 1, complete");
}

TEST(RankCoreWeights, TheTurnSkipsMicrobatchesWithoutWeightGradient) {
  // Microbatches 0 and 2 skip the loss stage, so stage 0 has no backward pass for them.
  const auto tasks = make_step(chain(2), {StepMode::kTrain, 4, {0, 0, 0, 0, /**/ 1, 0, 1, 0}, {}});
  Driven r0(tasks, *named_hint("gpipe"), 0);
  for (int k = 0; k < 4; ++k) r0.step();
  r0.gradient(0, 3);
  EXPECT_EQ(r0.step(), "run 0I3; ");
  r0.gradient(0, 1);
  EXPECT_EQ(r0.step(), "run 0B1; forget 0:1");
  EXPECT_EQ(r0.step(), "run 0W3; forget 0:3, gradients 0, complete");
}

}  // namespace
}  // namespace rrfp::core
