// SPDX-License-Identifier: Apache-2.0
//
// RankCore with activations in the host's memory: what leaves, when it comes back, and what it
// leaves room for.
#include <gtest/gtest.h>

#include <string>

#include "engine/core/rank_core.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/rank_core_text.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

constexpr int64_t kMib = 1 << 20;
// A stage takes 3 ms, a copy 0.1 ms.
constexpr Policy kOffload = {.offload_ns_per_mib = 100'000};

std::shared_ptr<const StepTasks> heavy_step(int32_t microbatches) {
  Stage stage;
  stage.activation_bytes = kMib;
  stage.forward_ns = stage.input_gradient_ns = stage.weight_gradient_ns = 1'000'000;
  return make_step(chain(2, 1, Placement::kLinear, stage), microbatches);
}

Driven rank_0(const Policy& policy = kOffload, int64_t mib = 5) {
  return {heavy_step(8), *named_hint("bf"), 0, policy, {0, mib * kMib}};
}

int64_t live_mib(const Driven& core) {
  return core.core.ledger().live().bytes / kMib;
}

std::string offloaded(Driven& core) {
  return core.apply(Event::offloaded());
}

/// Three forwards are done, and the last of them leaves.
Driven one_leaves() {
  Driven r0 = rank_0();
  for (int k = 0; k < 2; ++k) r0.step();
  EXPECT_EQ(r0.step(), "run 0F2; send e0>2 to 1, offload 0F2 in 100000");
  return r0;
}

TEST(RankCoreOffload, LeavesWhenMuchIsHeldAndItsBackwardIsFar) {
  Driven r0 = rank_0();
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1") << "little is held";
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1") << "its backward is the second from now";
  EXPECT_EQ(r0.step(), "run 0F2; send e0>2 to 1, offload 0F2 in 100000");
  EXPECT_EQ(live_mib(r0), 3) << "it is there until the copy has ended";
  EXPECT_EQ(offloaded(r0), "");
  EXPECT_EQ(live_mib(r0), 2);
}

TEST(RankCoreOffload, MakesRoomForForwards) {
  for (const bool offload : {false, true}) {
    Driven r0 = rank_0(offload ? kOffload : Policy{});
    int forwards = 0;
    for (std::string answer = r0.pull(); answer.rfind("run", 0) == 0; answer = r0.pull()) {
      ++forwards;
      if (r0.done().find("offload") != std::string::npos) offloaded(r0);
    }
    EXPECT_EQ(forwards, offload ? 8 : 5);
    EXPECT_LE(r0.core.ledger().peak().bytes, 5 * kMib);
  }
}

TEST(RankCoreOffload, OneCopyAtATime) {
  Driven r0 = one_leaves();
  EXPECT_EQ(r0.step(), "run 0F3; send e0>3 to 1") << "the copy of 2 has not ended";
  EXPECT_EQ(offloaded(r0), "");
  EXPECT_EQ(live_mib(r0), 3);
}

TEST(RankCoreOffload, ComesBackForItsGradient) {
  Driven r0 = one_leaves();
  offloaded(r0);
  EXPECT_EQ(r0.gradient(0, 2), "load 0F2 in 100000");
  EXPECT_EQ(live_mib(r0), 3) << "its room is taken when the copy begins";
  EXPECT_EQ(r0.pull(), "run 0F3") << "2 has its gradient, but is not here";
  r0.done();
  EXPECT_EQ(r0.apply(Event::loaded()), "");
  EXPECT_EQ(r0.pull(), "run 0I2");
}

TEST(RankCoreOffload, ComesBackBeforeItsTurn) {
  Driven r0 = one_leaves();
  offloaded(r0);
  r0.gradient(0, 0);
  EXPECT_EQ(r0.pull(), "run 0B0") << "1 comes next";
  r0.done();
  r0.gradient(0, 1);
  EXPECT_EQ(r0.pull(), "run 0B1, load 0F2 in 100000") << "2 comes next, and is away";
}

TEST(RankCoreOffload, StaysIfItsGradientComesFirst) {
  Driven r0 = one_leaves();
  EXPECT_EQ(r0.gradient(0, 2), "");
  EXPECT_EQ(r0.pull(), "run 0I2") << "what is being copied can be read";
  EXPECT_EQ(offloaded(r0), "");
  EXPECT_EQ(live_mib(r0), 3);
  r0.done();
  EXPECT_FALSE(r0.core.failed());
}

TEST(RankCoreOffload, TheOldestIsNeverRefused) {
  Driven r0 = rank_0();
  for (int k = 0; k < 8; ++k) {
    if (r0.step().find("offload") != std::string::npos) offloaded(r0);
  }
  // Everything comes back in the end, one gradient after the other.
  for (int32_t k = 0; k < 8; ++k) {
    std::string answer = r0.gradient(0, k);
    for (int turn = 0; turn < 4; ++turn) {
      if (answer.find("load") != std::string::npos) r0.apply(Event::loaded());
      answer = r0.step();
    }
  }
  EXPECT_TRUE(r0.core.complete());
  EXPECT_EQ(r0.core.ledger().live(), Amount());
  EXPECT_LE(r0.core.ledger().peak().bytes, 5 * kMib);
}

TEST(RankCoreOffload, OnlyWhereItPays) {
  const auto offloads = [](const Policy& policy, const Cap& cap) {
    std::shared_ptr<const RankPlan> plan;
    require(build_plan(heavy_step(8), *named_hint("bf"), RankId(0), policy, cap, plan));
    return plan->offload;
  };
  EXPECT_TRUE(offloads(kOffload, {0, 5 * kMib}));
  EXPECT_FALSE(offloads(kOffload, {0, 8 * kMib})) << "the step fits";
  EXPECT_FALSE(offloads(kOffload, {0, kMib})) << "nothing could come back beside another";
  EXPECT_FALSE(offloads({.offload_ns_per_mib = 2'500'000}, {0, 5 * kMib})) << "slow";
  EXPECT_FALSE(offloads({.order = Order::kStrict, .offload_ns_per_mib = 100'000}, {0, 5 * kMib}));
}

TEST(RankCoreOffload, CopiesThatNeverBegan) {
  Driven out = rank_0();
  offloaded(out);
  EXPECT_TRUE(fails_with(out.core.fault(), Code::kInternal, {"to the host", "never began"}));
  Driven in = one_leaves();
  in.apply(Event::loaded());
  EXPECT_TRUE(fails_with(in.core.fault(), Code::kInternal, {"from the host", "never began"}));
}

TEST(RankCoreOffload, EndsWithItsStep) {
  Driven r0 = one_leaves();
  std::shared_ptr<const RankPlan> plan;
  require(build_plan(heavy_step(8), *named_hint("bf"), RankId(0), kOffload, {0, 5 * kMib}, plan));
  r0.core.begin_step(plan);
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1");
  offloaded(r0);
  EXPECT_TRUE(r0.core.failed()) << "the copy belonged to the step before";
}

}  // namespace
}  // namespace rrfp::core
