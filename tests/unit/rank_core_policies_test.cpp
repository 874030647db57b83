// SPDX-License-Identifier: Apache-2.0
//
// RankCore under the policies beside plain ready and strict order: ranking by kind while memory is
// roomy, reserves, paired messages, strict order until it is late, activations in the host's
// memory, and when tasks became ready.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/core/rank_core.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/rank_core_text.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

constexpr Direction kForward = Direction::kForward;
constexpr Direction kBackward = Direction::kBackward;

std::shared_ptr<const RankPlan> plan_of(const std::shared_ptr<const StepTasks>& tasks,
                                        const Policy& policy, const Cap& cap) {
  std::shared_ptr<const RankPlan> plan;
  require(build_plan(tasks, *named_hint("1f1b"), RankId(0), policy, cap, plan));
  return plan;
}

// --- Roomy

/// Rank 1 of two, where all stands in the order of microbatches; F and I of 0 are done and the
/// activation of 1 is here.
Driven one_forward_held(const Policy& policy, int64_t slots) {
  Driven r1(make_step(chain(2), 4),
            *text_hint("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n"
                       "1F0,1I0,1W0,1F1,1I1,1W1,1F2,1I2,1W2,1F3,1I3,1W3\n"),
            1, policy, {slots, 0});
  r1.activation(0, 0);
  r1.step();
  r1.step();
  r1.activation(0, 1);
  return r1;
}

TEST(RankCoreRoomy, ForwardsGoBeforeWeightGradientsWhileThereIsRoom) {
  EXPECT_EQ(one_forward_held({}, 3).pull(), "run 1W0") << "as the hint has it";
  // 1F1B would hold 2 slots here, so half of it is 1: roomy with more than 1 slot left.
  const Policy roomy = {.roomy_permille = 500};
  EXPECT_EQ(one_forward_held(roomy, 3).pull(), "run 1F1");
  EXPECT_EQ(one_forward_held(roomy, 2).pull(), "run 1W0") << "tight: 1 slot left";
  EXPECT_EQ(one_forward_held({.roomy_permille = 2000}, 4).pull(), "run 1F1") << "the step fits";
}

TEST(RankCoreRoomy, BackwardsGoFirst) {
  for (const bool is_roomy : {false, true}) {
    Driven r1(make_step(chain(2), 4), *named_hint("gpipe"), 1,
              {.roomy_permille = is_roomy ? 500 : 0}, {4, 0});
    r1.activation(0, 0);
    r1.step();
    r1.activation(0, 1);
    EXPECT_EQ(r1.pull(), is_roomy ? "run 1B0" : "run 1F1");
  }
}

TEST(RankCoreRoomy, AWeightGradientRunsIfNoForwardMay) {
  Driven r1 = one_forward_held({.roomy_permille = 500}, 3);
  r1.step();  // F1
  EXPECT_EQ(r1.pull(), "run 1W0") << "2 of 3 slots are taken: the hint ranks again";
}

// --- Reserve

TEST(RankCoreReserve, IsAShareOfTheCapOrTheLargestActivation) {
  const auto two_chunks = make_step(chain(1, 2, Placement::kLoop), 6);
  const auto reserve = [&](int32_t permille, int64_t slots) {
    const auto plan = plan_of(two_chunks, {.reserve_permille = permille}, {slots, 0});
    EXPECT_EQ(plan->chunks[1].reserve, Amount()) << "nothing is deeper";
    EXPECT_EQ(plan->chunks[0].reserve.bytes, 0) << "bytes are not limited";
    return plan->chunks[0].reserve.slots;
  };
  EXPECT_EQ(reserve(0, 20), 1);
  EXPECT_EQ(reserve(100, 20), 2);
  EXPECT_EQ(reserve(100, 5), 1) << "never less than the largest activation";
  EXPECT_EQ(reserve(1000, 20), 18) << "one activation of each chunk must find room";
  EXPECT_EQ(reserve(1000, 2), 1);
  EXPECT_EQ(reserve(Policy::kNoReserve, 20), 0);
}

TEST(RankCoreReserve, InBytes) {
  Stage stage;
  stage.activation_bytes = 1000;
  const auto tasks = make_step(chain(1, 2, Placement::kLoop, stage), 6);
  const auto reserve = [&](int32_t permille) {
    return plan_of(tasks, {.reserve_permille = permille}, {0, 50'000})->chunks[0].reserve;
  };
  EXPECT_EQ(reserve(0), (Amount{1, 1000}));
  EXPECT_EQ(reserve(100), (Amount{0, 5000})) << "slots are not limited";
  EXPECT_EQ(reserve(Policy::kNoReserve), Amount());
}

TEST(RankCoreReserve, KeepsForwardsOfTheFirstChunkOut) {
  const auto tasks = make_step(chain(1, 2, Placement::kLoop), 3);
  const auto third = [&](int32_t permille) {
    Driven core(tasks, *text_hint("0F0,0F1,0F2,1F0,1F1,1F2,1B0,0B0,1B1,0B1,1B2,0B2\n"), 0,
                {.reserve_permille = permille}, {4, 0});
    EXPECT_EQ(core.step(), "run 0F0; deliver e0>0");
    EXPECT_EQ(core.step(), "run 0F1; deliver e0>1");
    return core.pull();
  };
  EXPECT_EQ(third(0), "run 0F2");
  EXPECT_EQ(third(1000), "run 1F0") << "two slots are kept for stage 1";
}

// --- When tasks became ready

TEST(RankCoreReadyTime, IsThatOfTheLastInput) {
  for (const bool record : {true, false}) {
    Driven r1(make_step(chain(2), 2), *named_hint("zb-h1"), 1, {.record_ready = record});
    const auto pull = [&](int64_t now_ns) {
      const Command run = r1.core.apply(Event::pull(), now_ns).front();
      EXPECT_EQ(run.kind, Command::Kind::kRun);
      return to_string(run.task) + " since " + std::to_string(run.ready_ns);
    };
    r1.apply(Event::message(EdgeId(0), kForward, MicrobatchId(0)), 100);
    EXPECT_EQ(pull(250), record ? "1F0 since 100" : "1F0 since 250");
    r1.apply(Event::message(EdgeId(0), kForward, MicrobatchId(1)), 300);
    r1.apply(Event::task_done(), 350);
    EXPECT_EQ(pull(400), record ? "1I0 since 350" : "1I0 since 400") << "its own forward";
    r1.apply(Event::task_done(), 500);
    EXPECT_EQ(pull(600), record ? "1F1 since 300" : "1F1 since 600");
    r1.apply(Event::task_done(), 700);
    EXPECT_EQ(pull(700), "1I1 since 700");
    r1.apply(Event::task_done(), 800);
    EXPECT_EQ(pull(900), record ? "1W0 since 500" : "1W0 since 900") << "its input gradient";
    r1.apply(Event::task_done(), 1000);
    EXPECT_EQ(pull(1100), record ? "1W1 since 1000" : "1W1 since 1100") << "its turn";
  }
}

TEST(RankCoreReadyTime, WithoutInputsTheBeginningOfTheStep) {
  std::shared_ptr<const RankPlan> plan;
  require(build_plan(make_step(chain(2), 2), *named_hint("1f1b"), RankId(0), {.record_ready = true},
                     {}, plan));
  RankCore core;
  core.begin_step(plan, 70);
  EXPECT_EQ(core.apply(Event::pull(), 90).front().ready_ns, 70);
}

// --- Paired messages

constexpr Policy kPaired = {.order = Order::kPaired};

Driven paired(int32_t rank) {
  return {make_step(chain(2), 3), *named_hint("1f1b"), rank, kPaired};
}

std::string receiving(Driven& core, int32_t edge, Direction direction, int32_t microbatch) {
  return core.apply(Event::receiving(EdgeId(edge), direction, MicrobatchId(microbatch)));
}

TEST(RankCorePaired, TheReceiverAsksOnce) {
  Driven r1 = paired(1);
  EXPECT_EQ(r1.pull(), "idle input, receive e0>0 from 0");
  EXPECT_EQ(r1.pull(), "idle input") << "it has asked";
  r1.activation(0, 0);
  EXPECT_EQ(r1.step(), "run 1F0; ") << "while it runs it asks for nothing";
  EXPECT_EQ(r1.step(), "run 1B0; send e0<0 to 0, forget 1:0");
}

TEST(RankCorePaired, TheSenderWaitsForItsReceiver) {
  Driven r0 = paired(0);
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1");
  EXPECT_EQ(r0.pull(), "idle policy") << "0F1 is ready, but the message has not been asked for";
  EXPECT_EQ(receiving(r0, 0, kForward, 0), "");
  EXPECT_EQ(receiving(r0, 0, kForward, 1), "") << "asked for before it is sent";
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1");
  EXPECT_EQ(r0.pull(), "idle policy, receive e0<0 from 1") << "0F2 is ready, 0B0 comes first";
}

TEST(RankCorePaired, ABlockedSenderAsksForWhatItNeedsNext) {
  Driven r0 = paired(0);
  receiving(r0, 0, kForward, 0);
  r0.step();
  r0.step();
  EXPECT_EQ(r0.pull(), "idle policy, receive e0<0 from 1") << "both at once, as Megatron-LM does";
  EXPECT_EQ(r0.gradient(0, 0), "");
  EXPECT_EQ(r0.pull(), "idle policy");
  receiving(r0, 0, kForward, 1);
  EXPECT_EQ(r0.step(), "run 0B0; forget 0:0");
}

TEST(RankCorePaired, WhatIsAskedForTwiceFails) {
  Driven r0 = paired(0);
  receiving(r0, 0, kForward, 0);
  receiving(r0, 0, kForward, 0);
  EXPECT_TRUE(fails_with(r0.core.fault(), Code::kInternal,
                         {"asked for twice", "activation of edge 0, microbatch 0"}));
}

TEST(RankCorePaired, WhatIsNotOfTheStepFails) {
  for (const int32_t microbatch : {-1, 3}) {
    Driven r0 = paired(0);
    receiving(r0, 0, kForward, microbatch);
    EXPECT_TRUE(fails_with(r0.core.fault(), Code::kInternal, {"asked for", "not of this step"}));
  }
  Driven unknown = paired(0);
  receiving(unknown, 5, kForward, 0);
  EXPECT_TRUE(unknown.core.failed());
  Driven ready(make_step(chain(2), 3), *named_hint("1f1b"), 0);
  receiving(ready, 0, kForward, 0);
  EXPECT_TRUE(ready.core.failed()) << "nobody asks in ready order";
}

// --- Strict until late

constexpr Policy kLate = {.order = Order::kStrict, .late_ns = 50};

/// Two stages; each task of microbatch i is planned to start at 100 (i + 1), whatever it is.
std::shared_ptr<const StepTasks> timed_step(int32_t microbatches, StepMode mode = StepMode::kTrain,
                                            std::vector<uint8_t> skip = {}) {
  StepShape shape;
  shape.mode = mode;
  shape.microbatches = microbatches;
  shape.skip = std::move(skip);
  for (int s = 0; s < 2; ++s) {
    for (int64_t i = 0; i < microbatches; ++i) {
      shape.planned_ns.insert(shape.planned_ns.end(), 3, 100 * (i + 1));
    }
  }
  return make_step(chain(2), std::move(shape));
}

Driven until_late(const Policy& policy = kLate) {
  return {timed_step(2), *named_hint("1f1b"), 1, policy};
}

TEST(RankCoreLate, LeavesTheOrderWhenItsTaskIsLate) {
  Driven r1 = until_late();
  EXPECT_EQ(r1.pull(0), "idle input until 150");
  r1.activation(0, 1);
  EXPECT_EQ(r1.pull(149), "idle policy until 150");
  EXPECT_FALSE(r1.core.late());
  EXPECT_EQ(r1.pull(150), "run 1F1");
  EXPECT_TRUE(r1.core.late());
  r1.done();
  EXPECT_EQ(r1.pull(160), "run 1I1") << "its weight gradient waits for its turn";
  const auto answer = r1.core.apply(Event::task_done(), 170);
  EXPECT_EQ(text_of(answer), "send e0<1 to 0");
  EXPECT_TRUE(answer.front().late) << "the others hear of it";
}

TEST(RankCoreLate, HearsOfItFromOthers) {
  Driven r1 = until_late();
  r1.apply(Event::message(EdgeId(0), kForward, MicrobatchId(1), true));
  EXPECT_TRUE(r1.core.late());
  EXPECT_EQ(r1.pull(0), "run 1F1");
  Driven strict = until_late({.order = Order::kStrict});
  strict.apply(Event::message(EdgeId(0), kForward, MicrobatchId(1), true));
  EXPECT_EQ(strict.pull(1'000'000), "idle policy") << "strict to the end";
}

TEST(RankCoreLate, StaysStrictWhileItIsOnTime) {
  Driven r1 = until_late();
  r1.activation(0, 1);
  r1.activation(0, 0);
  EXPECT_EQ(r1.pull(10'000), "run 1F0") << "late, but what the order wants is ready";
  const auto answer = r1.core.apply(Event::task_done(), 10'000);
  EXPECT_EQ(text_of(answer), "");
  EXPECT_EQ(r1.pull(10'000), "run 1B0");
  EXPECT_FALSE(r1.core.late());
}

TEST(RankCoreLate, CountsFromTheBeginningOfTheStep) {
  std::shared_ptr<const RankPlan> plan;
  require(build_plan(timed_step(2), *named_hint("1f1b"), RankId(1), kLate, {}, plan));
  RankCore core;
  core.begin_step(plan, 1000);
  EXPECT_EQ(text_of(core.apply(Event::pull(), 1000)), "idle input until 1150");
  core.begin_step(plan, 5000);
  EXPECT_EQ(text_of(core.apply(Event::pull(), 5000)), "idle input until 5150");
}

TEST(RankCoreLate, KeepsItsCapOnceItHasLeft) {
  Driven r0(timed_step(4), *named_hint("1f1b"), 0, kLate, {2, 0});
  r0.step();
  r0.step();
  EXPECT_EQ(r0.pull(0), "idle policy until 150") << "0B0 comes next";
  EXPECT_EQ(r0.pull(150), "idle memory");
  EXPECT_TRUE(r0.core.late());
}

TEST(RankCoreLate, WhatCannotBeLeft) {
  std::shared_ptr<const RankPlan> plan;
  const auto build = [&](const std::shared_ptr<const StepTasks>& tasks, const Hint& hint,
                         const Cap& cap = {}) {
    return build_plan(tasks, hint, RankId(0), kLate, cap, plan);
  };
  EXPECT_TRUE(fails_with(build(make_step(chain(2), 2), *named_hint("1f1b")), Code::kInvalidArgument,
                         {"late_ns is 50", "planned_ns"}));
  EXPECT_TRUE(fails_with(build(timed_step(2, StepMode::kForwardOnly), *named_hint("1f1b")),
                         Code::kInvalidArgument, {"credits", "edge 0"}));
  EXPECT_TRUE(
      fails_with(build(timed_step(2), *text_hint("0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n"), {2, 0}),
                 Code::kBadOrder, {"0B0", "after microbatch 1"}));
  EXPECT_TRUE(fails_with(build(timed_step(3), *named_hint("gpipe"), {2, 0}), Code::kCapTooSmall,
                         {"rank 0", "0F2", "2 slots"}));
  EXPECT_TRUE(build(timed_step(3), *named_hint("gpipe"), {3, 0}).ok());
}

// A rank whose stages are all skipped has no planned starts of its own.
TEST(RankCoreLate, ARankWithoutTasks) {
  std::shared_ptr<const RankPlan> plan;
  const auto tasks = timed_step(2, StepMode::kTrain, {1, 1, 0, 0});
  EXPECT_TRUE(build_plan(tasks, *named_hint("1f1b"), RankId(0), kLate, {}, plan).ok());
}

}  // namespace
}  // namespace rrfp::core
