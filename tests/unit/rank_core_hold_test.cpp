// SPDX-License-Identifier: Apache-2.0
//
// RankCore with holding: what is announced, what is waited for, and for how long.
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
// F and I and W of 100 us each; a ready forward is held for less than 25 us.
constexpr Policy kHold = {.hold_permille = 250};

Stage timed_stage() {
  Stage stage;
  stage.forward_ns = 100'000;
  stage.input_gradient_ns = 100'000;
  stage.weight_gradient_ns = 100'000;
  return stage;
}

std::shared_ptr<const StepTasks> timed_chain(int32_t microbatches) {
  return make_step(chain(2, 1, Placement::kLinear, timed_stage()), microbatches);
}

/// Rank 1 of two with the order 1F0,1B0,1F1,1B1,1F2,1B2, where the activation of 1 is here.
Driven waiting_rank(const Policy& policy = kHold) {
  Driven r1(timed_chain(3), *named_hint("1f1b"), 1, policy, {3, 0});
  r1.activation(0, 1);
  return r1;
}

// --- What is announced

TEST(RankCoreAnnounce, OutputsOfWhatStarts) {
  Driven r0(timed_chain(2), *named_hint("1f1b"), 0, kHold);
  EXPECT_EQ(r0.pull(), "run 0F0, announce e0>0 in 100000 to 1");
  EXPECT_EQ(r0.done(), "send e0>0 to 1");
  Driven r1(timed_chain(2), *named_hint("1f1b"), 1, kHold);
  r1.activation(0, 0);
  EXPECT_EQ(r1.pull(), "run 1F0") << "the loss stage sends nothing forward";
  r1.done();
  EXPECT_EQ(r1.pull(), "run 1B0, announce e0<0 in 200000 to 0");
  Driven split(timed_chain(1), *named_hint("zb-h1"), 1, kHold);
  split.activation(0, 0);
  split.step();
  EXPECT_EQ(split.step(), "run 1I0, announce e0<0 in 100000 to 0; send e0<0 to 0");
  EXPECT_EQ(split.pull(), "run 1W0") << "a weight gradient sends nothing";
}

TEST(RankCoreAnnounce, ABackwardOutOfTurnIsAnnouncedAsItsFirstHalf) {
  Driven r1 = waiting_rank();
  r1.step();
  EXPECT_EQ(r1.pull(), "run 1I1, announce e0<1 in 100000 to 0");
}

TEST(RankCoreAnnounce, NothingInsideARank) {
  const auto tasks = make_step(chain(1, 2, Placement::kLoop, timed_stage()), 1);
  Driven core(tasks, *named_hint("1f1b"), 0, kHold);
  EXPECT_EQ(core.step(), "run 0F0; deliver e0>0");
}

TEST(RankCoreAnnounce, WithCredits) {
  const auto tasks =
      make_step(chain(3, 1, Placement::kLinear, timed_stage()), 1, StepMode::kForwardOnly);
  Driven r1(tasks, *named_hint("1f1b"), 1, kHold);
  r1.activation(0, 0);
  EXPECT_EQ(r1.pull(), "run 1F0, credit e0 to 0, announce e1>0 in 100000 to 2");
}

TEST(RankCoreAnnounce, NotWithoutHoldingAndNotInStrictOrder) {
  Driven off(timed_chain(2), *named_hint("1f1b"), 0);
  EXPECT_EQ(off.pull(), "run 0F0");
  Driven strict(timed_chain(2), *named_hint("1f1b"), 0,
                {.order = Order::kStrict, .hold_permille = 250});
  EXPECT_EQ(strict.pull(), "run 0F0");
}

// --- What is waited for

TEST(RankCoreHold, UntilTheTaskIsHere) {
  Driven r1 = waiting_rank();
  EXPECT_EQ(r1.announce(0, kForward, 0, 20'000, 1'000), "");
  EXPECT_EQ(r1.pull(1'000), "idle policy until 36000") << "due at 21000, 15 us of grace";
  EXPECT_EQ(r1.pull(30'000), "idle policy until 36000");
  r1.activation(0, 0);
  EXPECT_EQ(r1.pull(30'500), "run 1F0");
}

TEST(RankCoreHold, UntilTheDeadline) {
  Driven r1 = waiting_rank();
  r1.announce(0, kForward, 0, 20'000, 0);
  EXPECT_EQ(r1.pull(0), "idle policy until 35000");
  EXPECT_EQ(r1.pull(34'999), "idle policy until 35000");
  EXPECT_EQ(r1.pull(35'000), "run 1F1");
}

TEST(RankCoreHold, AnythingAsGoodEndsIt) {
  // Held for 1F1; then 1F0 comes, which nobody had announced.
  Driven r1(timed_chain(3), *named_hint("1f1b"), 1, kHold, {3, 0});
  r1.activation(0, 2);
  r1.announce(0, kForward, 1, 20'000, 0);
  EXPECT_EQ(r1.pull(0), "idle policy until 35000");
  r1.activation(0, 0);
  EXPECT_EQ(r1.pull(1'000), "run 1F0");
}

TEST(RankCoreHold, StartsAfreshAfterATask) {
  Driven r1 = waiting_rank();
  r1.announce(0, kForward, 0, 20'000, 0);
  r1.pull(0);
  EXPECT_EQ(r1.pull(35'000), "run 1F1");
  r1.done();
  // 1F0 is 25 us late, less than 30 % of its duration: worth another hold before 1I1.
  EXPECT_EQ(r1.pull(45'000), "idle policy until 60000");
  EXPECT_EQ(r1.pull(60'000), "run 1I1, announce e0<1 in 100000 to 0");
}

TEST(RankCoreHold, OnlyForWhatIsDueSoon) {
  for (const int64_t in_ns : {24'999, 25'000, 25'001}) {
    Driven r1 = waiting_rank();
    r1.announce(0, kForward, 0, in_ns, 0);
    EXPECT_EQ(r1.pull(0), in_ns < 25'000 ? "idle policy until 39999" : "run 1F1") << in_ns;
  }
}

TEST(RankCoreHold, NotForWhatIsLongOverdue) {
  for (const int64_t now_ns : {49'999, 50'000, 50'001}) {
    Driven r1 = waiting_rank();
    r1.announce(0, kForward, 0, 20'000, 0);
    EXPECT_EQ(r1.pull(now_ns), now_ns < 50'000 ? "idle policy until 64999" : "run 1F1") << now_ns;
  }
}

TEST(RankCoreHold, NotForAWorseTask) {
  Driven r1 = waiting_rank();
  r1.announce(0, kForward, 2, 1'000, 0);
  EXPECT_EQ(r1.pull(0), "run 1F1");
}

TEST(RankCoreHold, WithNothingReadyThereIsNothingToHold) {
  Driven r1(timed_chain(2), *named_hint("1f1b"), 1, kHold);
  r1.announce(0, kForward, 0, 1'000, 0);
  EXPECT_EQ(r1.pull(0), "idle input");
}

TEST(RankCoreHold, TheNextCandidateIsTried) {
  // 1F0 is announced, but far away; 1F1 is near; 1F2 is ready.
  Driven r1(timed_chain(3), *named_hint("1f1b"), 1, kHold, {3, 0});
  r1.activation(0, 2);
  r1.announce(0, kForward, 0, 500'000, 0);
  r1.announce(0, kForward, 1, 10'000, 0);
  EXPECT_EQ(r1.pull(0), "idle policy until 25000");
  r1.activation(0, 1);
  EXPECT_EQ(r1.pull(10'000), "run 1F1");
}

TEST(RankCoreHold, ABackwardNeedsItsOwnForward) {
  std::shared_ptr<const Hint> hint = text_hint("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  Driven r0(timed_chain(2), *hint, 0, kHold);
  r0.announce(0, kBackward, 1, 10'000, 0);  // 0F1 has not run
  r0.step();
  EXPECT_EQ(r0.announce(0, kBackward, 0, 20'000, 0), "");
  EXPECT_EQ(r0.pull(0), "idle policy until 35000") << "0B0 before 0F1";
  r0.gradient(0, 0);
  EXPECT_EQ(r0.pull(20'000), "run 0B0");
}

TEST(RankCoreHold, ABackwardWhoseForwardHasNotRunIsNotWaitedFor) {
  // 0B1 stands before 0F0 in the order, and its gradient is announced, but 0F1 has not run.
  std::shared_ptr<const Hint> hint = text_hint("0F1,0B1,0F0,0B0\n1F1,1B1,1F0,1B0\n");
  Driven r0(timed_chain(2), *hint, 0, kHold, {1, 0});
  r0.announce(0, kBackward, 1, 10'000, 0);
  EXPECT_EQ(r0.pull(0), "run 0F0, announce e0>0 in 100000 to 1");
}

TEST(RankCoreHold, NotForAForwardThatMemoryRefuses) {
  for (const int64_t slots : {1, 2}) {
    Driven r1(timed_chain(2), *named_hint("gpipe"), 1, kHold, {slots, 0});
    r1.activation(0, 0);
    r1.step();
    r1.announce(0, kForward, 1, 10'000, 0);
    EXPECT_EQ(r1.pull(0),
              slots == 2 ? "idle policy until 40000" : "run 1B0, announce e0<0 in 200000 to 0")
        << "B takes 200 us, 15 % of it are the grace";
  }
}

TEST(RankCoreHold, AJoinIsDueWithItsLastInput) {
  StageGraph graph(3);
  for (int32_t s = 0; s < 3; ++s) {
    Stage stage = timed_stage();
    stage.rank = RankId(s);
    stage.loss = s == 2;
    add_stage(graph, stage);
  }
  add_edge(graph, 0, 2);
  add_edge(graph, 1, 2);
  const auto tasks = make_step(sealed(std::move(graph)), 2);
  const auto join = [&] {
    Driven core(tasks, *named_hint("1f1b"), 2, kHold);
    core.activation(0, 1);
    core.activation(1, 1);
    return core;
  };
  Driven one_announced = join();
  one_announced.announce(0, kForward, 0, 5'000, 0);
  EXPECT_EQ(one_announced.pull(0), "run 2F1") << "the other input is not announced";
  Driven both = join();
  both.announce(0, kForward, 0, 20'000, 0);
  both.announce(1, kForward, 0, 5'000, 0);
  EXPECT_EQ(both.pull(0), "idle policy until 35000");
  Driven one_here = join();
  one_here.announce(1, kForward, 0, 5'000, 0);
  one_here.activation(0, 0);
  EXPECT_EQ(one_here.pull(0), "idle policy until 20000");
}

TEST(RankCoreHold, RepeatedAndOvertakenAnnouncements) {
  Driven repeated = waiting_rank();
  repeated.announce(0, kForward, 0, 20'000, 0);
  repeated.announce(0, kForward, 0, 24'000, 0);
  EXPECT_EQ(repeated.pull(0), "idle policy until 35000") << "the first one counts";
  repeated.activation(0, 0);
  EXPECT_EQ(repeated.pull(0), "run 1F0");

  Driven overtaken = waiting_rank();
  overtaken.activation(0, 0);
  overtaken.announce(0, kForward, 0, 20'000, 0);
  EXPECT_EQ(overtaken.pull(0), "run 1F0");
  overtaken.done();
  EXPECT_EQ(overtaken.pull(0), "run 1B0, announce e0<0 in 200000 to 0");
}

TEST(RankCoreHold, AnnouncementsThatAreNotOfThisStep) {
  for (const int32_t microbatch : {-1, 3}) {
    Driven r1 = waiting_rank();
    r1.announce(0, kForward, microbatch, 1'000, 0);
    EXPECT_TRUE(fails_with(r1.core.fault(), Code::kInternal, {"announcement", "not of this step"}));
  }
  Driven unknown = waiting_rank();
  unknown.announce(7, kForward, 0, 1'000, 0);
  EXPECT_TRUE(unknown.core.failed());
  Driven wrong_way = waiting_rank();
  wrong_way.announce(0, kBackward, 0, 1'000, 0);
  EXPECT_TRUE(wrong_way.core.failed());
}

// The text of a fault names the value that was wrong, as those of messages and credits do.
TEST(RankCoreHold, AFaultyAnnouncementIsNamed) {
  Driven unknown = waiting_rank();
  unknown.announce(7, kForward, 0, 1'000, 0);
  EXPECT_TRUE(fails_with(unknown.core.fault(), Code::kInternal, {"edge 7", "microbatch 0"}));
}

TEST(RankCoreHold, IgnoredWithoutHolding) {
  Driven r1 = waiting_rank({});
  EXPECT_EQ(r1.announce(0, kForward, 0, 1'000, 0), "");
  EXPECT_EQ(r1.pull(0), "run 1F1");
}

TEST(RankCoreHold, EndsWithItsStep) {
  Driven r1 = waiting_rank();
  r1.announce(0, kForward, 0, 20'000, 0);
  EXPECT_EQ(r1.pull(0), "idle policy until 35000");
  std::shared_ptr<const RankPlan> plan;
  require(build_plan(timed_chain(3), *named_hint("1f1b"), RankId(1), kHold, {3, 0}, plan));
  r1.core.begin_step(plan);
  r1.activation(0, 1);
  EXPECT_EQ(r1.pull(0), "run 1F1");
}

TEST(RankCoreHold, EndsWhenAPeerFails) {
  Driven r1 = waiting_rank();
  r1.announce(0, kForward, 0, 20'000, 0);
  r1.pull(0);
  r1.apply(Event::peer_failed());
  EXPECT_EQ(r1.pull(1'000), "idle failed");
}

// A stage that cannot split B must not be waited for before its turn: its B could not run when its
// gradient arrives.
TEST(RankCoreHold, NotForAFusedBackwardOutOfTurn) {
  Stage stage = timed_stage();
  stage.fused_only = true;
  const auto tasks = make_step(chain(2, 1, Placement::kLinear, stage), 3);
  // 0B1 is preferred to 0F2, but 0B0 must come first.
  Driven r0(tasks, *text_hint("0F0,0F1,0B1,0F2,0B0,0B2\n1F0,1F1,1B1,1F2,1B0,1B2\n"), 0, kHold,
            {3, 0});
  r0.step();
  r0.step();
  r0.announce(0, kBackward, 1, 10'000, 0);
  EXPECT_EQ(r0.pull(0), "run 0F2, announce e0>2 in 100000 to 1");
}

}  // namespace
}  // namespace rrfp::core
