// SPDX-License-Identifier: Apache-2.0
//
// RankCore: memory and credits, why a rank is idle, what it reports, and events that cannot be.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/core/rank_core.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/rank_core_text.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

constexpr Policy kStrict = {.order = Order::kStrict};

Driven driven(int32_t rank, int32_t microbatches, const Policy& policy = {}, const Cap& cap = {}) {
  return {make_step(chain(2), microbatches), *named_hint("1f1b"), rank, policy, cap};
}

// --- Memory

TEST(RankCoreMemory, ACapOfOneSlot) {
  Driven r0 = driven(0, 3, {}, {1, 0});
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1");
  EXPECT_EQ(r0.pull(), "idle memory");
  r0.gradient(0, 0);
  EXPECT_EQ(r0.step(), "run 0B0; forget 0:0");
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1");
  EXPECT_EQ(r0.pull(), "idle memory");
}

TEST(RankCoreMemory, BytesOfEachMicrobatch) {
  const auto tasks = make_step(chain(2), {StepMode::kTrain, 3, {}, {6, 5, 4, 0, 0, 0}});
  Driven r0(tasks, *named_hint("1f1b"), 0, {}, {0, 10});
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1");
  EXPECT_EQ(r0.pull(), "idle memory") << "6 + 5 exceed 10, and only the head is looked at";
  r0.gradient(0, 0);
  r0.step();
  EXPECT_EQ(r0.core.ledger().live(), Amount());
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1");
  EXPECT_EQ(r0.step(), "run 0F2; send e0>2 to 1");
  EXPECT_EQ(r0.core.ledger().live(), (Amount{2, 9}));
}

TEST(RankCoreMemory, RoomForTheDeeperChunkIsKept) {
  // Rank 0 has stages 0 and 3 of four (V). With two slots microbatch 1 must not take the second.
  const auto tasks = make_step(chain(2, 2, Placement::kV), 2);
  Driven r0(tasks, *named_hint("gpipe"), 0, {}, {2, 0});
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1");
  EXPECT_EQ(r0.pull(), "idle memory");
  r0.activation(2, 0);
  EXPECT_EQ(r0.step(), "run 3F0; ");
  EXPECT_EQ(r0.step(), "run 3B0; send e2<0 to 1, forget 3:0");
  EXPECT_EQ(r0.pull(), "idle memory") << "one slot is the reserve of stage 3";
  r0.gradient(0, 0);
  EXPECT_EQ(r0.step(), "run 0B0; forget 0:0");
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1") << "now the oldest";
  // A plain counter lets it in.
  Driven plain(tasks, *named_hint("gpipe"), 0, {.admission = AdmissionRule::kPlainCounter}, {2, 0});
  plain.step();
  EXPECT_EQ(plain.step(), "run 0F1; send e0>1 to 1");
  plain.activation(2, 0);
  EXPECT_EQ(plain.pull(), "idle memory") << "and is stuck";
}

TEST(RankCoreMemory, TheOldestIsNotShadowedByTheHeadOfItsChunk) {
  // The hint prefers microbatch 1, which must not start: 0 needs the only slot.
  Driven core(make_step(chain(2), 2), *text_hint("0F1,0F0,0B1,0B0\n1F1,1B1,1F0,1B0\n"), 0, {},
              {1, 0});
  EXPECT_EQ(core.step(), "run 0F0; send e0>0 to 1");
  EXPECT_EQ(core.pull(), "idle memory");
}

TEST(RankCoreMemory, BackwardTasksAreNeverGated) {
  Driven r1 = driven(1, 2, {}, {1, 0});
  r1.activation(0, 0);
  r1.activation(0, 1);
  r1.step();
  EXPECT_EQ(r1.pull(), "run 1B0");
}

// --- Credits

TEST(RankCoreCredits, TheLastOneIsForTheOldest) {
  const auto tasks = make_step(chain(2), 4, StepMode::kForwardOnly);
  const auto hint = named_hint("1f1b");
  Driven two(tasks, *hint, 0, {.credits = 2});
  EXPECT_EQ(two.step(), "run 0F0; send e0>0 to 1, forget 0:0");
  EXPECT_EQ(two.step(), "run 0F1; send e0>1 to 1, forget 0:1") << "the oldest once 0 is done";
  EXPECT_EQ(two.pull(), "idle credit");
  EXPECT_EQ(two.credit(0), "");
  EXPECT_EQ(two.step(), "run 0F2; send e0>2 to 1, forget 0:2");
  EXPECT_EQ(two.pull(), "idle credit");
}

TEST(RankCoreCredits, HeldBackWhileAnOlderMicrobatchIsUnfinished) {
  // In a train step 0F0 leaves microbatch 0 unfinished, so one of two credits is kept for it.
  Driven r0 = driven(0, 3, {.credits = 2}, {3, 0});
  EXPECT_EQ(r0.step(), "run 0F0; send e0>0 to 1");
  EXPECT_EQ(r0.pull(), "idle credit");
  r0.credit(0);
  EXPECT_EQ(r0.step(), "run 0F1; send e0>1 to 1");
  EXPECT_EQ(r0.pull(), "idle credit");
}

TEST(RankCoreCredits, AnswersWhenTheForwardStarts) {
  Driven r1 = driven(1, 2, {.credits = 2});
  EXPECT_EQ(r1.activation(0, 0), "");
  EXPECT_EQ(r1.pull(), "run 1F0, credit e0 to 0");
  EXPECT_EQ(r1.done(), "");
}

TEST(RankCoreCredits, InsideARankNoneIsSent) {
  const auto tasks = make_step(chain(1, 2, Placement::kLoop), 3, StepMode::kForwardOnly);
  Driven core(tasks, *named_hint("gpipe"), 0, {.credits = 1});
  EXPECT_EQ(core.step(), "run 0F0; deliver e0>0, forget 0:0");
  EXPECT_EQ(core.step(), "run 1F0; forget 1:0") << "0F1 would be first, but has no credit";
  EXPECT_EQ(core.step(), "run 0F1; deliver e0>1, forget 0:1");
}

// --- Idle

TEST(RankCoreIdle, Reasons) {
  EXPECT_EQ(driven(1, 1).pull(), "idle input");
  EXPECT_EQ(driven(1, 1, kStrict).pull(), "idle input");
  Driven failed = driven(0, 1);
  EXPECT_EQ(failed.apply(Event::peer_failed()), "");
  EXPECT_TRUE(failed.core.failed());
  EXPECT_TRUE(failed.core.fault().ok()) << "the fault is elsewhere";
  EXPECT_EQ(failed.pull(), "idle failed");
}

TEST(RankCoreIdle, PeerFailedWhileRunning) {
  Driven r0 = driven(0, 2);
  r0.pull();
  r0.apply(Event::peer_failed());
  EXPECT_TRUE(r0.core.running());
  EXPECT_EQ(r0.done(), "send e0>0 to 1");
  EXPECT_EQ(r0.pull(), "idle failed");
}

// --- Reports

TEST(RankCoreWaiting, ReadyTasksFirstThenByHint) {
  Driven r0 = driven(0, 3, {}, {1, 0});
  r0.step();
  EXPECT_EQ(r0.waiting(),
            "0F1 ready, 0F2 ready, 0B0 waits e0< from 1, "
            "0I1 waits e0< from 1 own forward, 0I2 waits e0< from 1 own forward");
  EXPECT_EQ(r0.waiting(3), "0F1 ready, 0F2 ready, 0B0 waits e0< from 1");
  EXPECT_EQ(r0.waiting(1), "0F1 ready");
  EXPECT_EQ(r0.waiting(0), "");
  r0.gradient(0, 0);
  r0.pull();
  EXPECT_EQ(r0.waiting(2), "0F1 ready, 0F2 ready") << "what runs does not wait";
}

TEST(RankCoreWaiting, NamesOnlyMissingInputs) {
  StageGraph graph(2);
  for (int32_t s = 0; s < 4; ++s) add_stage(graph, {RankId(s == 0 ? 0 : 1), s == 3});
  add_edge(graph, 0, 3);
  add_edge(graph, 1, 3);
  add_edge(graph, 2, 3);
  Driven r1(make_step(sealed(std::move(graph)), 1), *named_hint("1f1b"), 1);
  EXPECT_EQ(r1.step(), "run 1F0; deliver e1>0");
  EXPECT_EQ(r1.waiting(),
            "2F0 ready, 3F0 waits e0> from 0 e2> from 1, 3B0 waits own forward, "
            "2B0 waits e2< from 1 own forward, 1B0 waits e1< from 1");
  r1.activation(0, 0);
  r1.step();
  EXPECT_EQ(r1.waiting(1), "3F0 ready");
}

TEST(RankCoreWaiting, StrictNext) {
  Driven r1 = driven(1, 2, kStrict);
  EXPECT_EQ(text_of(*r1.core.strict_next()), "1F0 waits e0> from 0");
  r1.activation(0, 0);
  EXPECT_EQ(text_of(*r1.core.strict_next()), "1F0 ready");
  r1.pull();
  EXPECT_EQ(text_of(*r1.core.strict_next()), "1B0 waits own forward");
  r1.done();
  r1.step();
  EXPECT_EQ(text_of(*r1.core.strict_next()), "1F1 waits e0> from 0");
  r1.activation(0, 1);
  r1.step();
  r1.step();
  EXPECT_FALSE(r1.core.strict_next().has_value());
}

TEST(RankCoreWaiting, BeforeAnyStep) {
  const RankCore core;
  EXPECT_TRUE(core.waiting(5).empty());
  EXPECT_FALSE(core.strict_next().has_value());
  EXPECT_FALSE(core.complete());
}

// --- Events that cannot be

void expect_failed(Driven& core, std::initializer_list<std::string_view> parts) {
  EXPECT_TRUE(core.core.failed());
  EXPECT_TRUE(fails_with(core.core.fault(), Code::kInternal, parts));
  if (!core.core.running()) {
    EXPECT_EQ(core.pull(), "idle failed");
  }
}

TEST(RankCoreFaults, MessageTwice) {
  Driven r1 = driven(1, 2);
  r1.activation(0, 1);
  EXPECT_EQ(r1.activation(0, 1), "");
  expect_failed(r1, {"twice", "activation of edge 0, microbatch 1"});
  Driven r0 = driven(0, 2);
  r0.gradient(0, 0);
  r0.gradient(0, 0);
  expect_failed(r0, {"twice", "gradient of edge 0, microbatch 0"});
}

TEST(RankCoreFaults, MessageAfterItsTaskRan) {
  Driven r1 = driven(1, 2);
  r1.activation(0, 0);
  r1.step();
  r1.activation(0, 0);
  expect_failed(r1, {"twice", "edge 0, microbatch 0"});
}

TEST(RankCoreFaults, MessagesThatAreNotOfThisStep) {
  const auto fault = [](int32_t rank, auto send) {
    Driven core = driven(rank, 2);
    send(core);
    EXPECT_TRUE(core.core.failed());
    return core.core.fault();
  };
  const auto not_of_step = [](const Status& status, std::string_view name) {
    return fails_with(status, Code::kInternal, {"not of this step", name});
  };
  EXPECT_TRUE(not_of_step(fault(1, [](Driven& c) { c.activation(5, 0); }),
                          "activation of edge 5, microbatch 0"));
  EXPECT_TRUE(not_of_step(fault(1, [](Driven& c) { c.activation(-1, 0); }), "edge -1"));
  EXPECT_TRUE(not_of_step(fault(1, [](Driven& c) { c.activation(0, 2); }), "microbatch 2"));
  EXPECT_TRUE(not_of_step(fault(1, [](Driven& c) { c.activation(0, -1); }), "microbatch -1"));
  EXPECT_TRUE(not_of_step(fault(0, [](Driven& c) { c.activation(0, 0); }), "activation of edge 0"));
  EXPECT_TRUE(not_of_step(fault(1, [](Driven& c) { c.gradient(0, 0); }), "gradient of edge 0"));
}

TEST(RankCoreFaults, MessagesOfSkippedFrozenAndLocalEdges) {
  const auto fault = [](std::shared_ptr<const StepTasks> tasks, int32_t rank, auto send) {
    Driven core(tasks, *named_hint("1f1b"), rank);
    send(core);
    return core.core.failed();
  };
  const auto skipping = make_step(chain(2), {StepMode::kTrain, 2, {0, 1, /**/ 0, 0}, {}});
  EXPECT_FALSE(fault(skipping, 1, [](Driven& c) { c.activation(0, 0); }));
  EXPECT_TRUE(fault(skipping, 1, [](Driven& c) { c.activation(0, 1); }));
  const auto forward_only = make_step(chain(2), 1, StepMode::kForwardOnly);
  EXPECT_TRUE(fault(forward_only, 0, [](Driven& c) { c.gradient(0, 0); }));
  const auto local = make_step(chain(1, 2, Placement::kLoop), 1);
  EXPECT_TRUE(fault(local, 0, [](Driven& c) { c.activation(0, 0); }));
}

TEST(RankCoreFaults, DoneWithoutRunning) {
  Driven r0 = driven(0, 1);
  EXPECT_EQ(r0.done(), "");
  expect_failed(r0, {"done while none is running"});
}

TEST(RankCoreFaults, PullWhileRunning) {
  Driven r0 = driven(0, 2);
  r0.pull();
  EXPECT_EQ(r0.pull(), "idle failed");
  expect_failed(r0, {"0F0 is running"});
}

TEST(RankCoreFaults, CreditThatIsNotOwed) {
  Driven none_used = driven(0, 2, {.credits = 2});
  none_used.credit(0);
  expect_failed(none_used, {"credit that was not owed", "edge 0"});

  Driven one_used = driven(0, 2, {.credits = 2});
  one_used.step();
  one_used.credit(0);
  EXPECT_FALSE(one_used.core.failed());
  one_used.credit(0);
  EXPECT_TRUE(one_used.core.failed());

  Driven not_counted = driven(0, 2);
  not_counted.step();
  not_counted.credit(0);
  EXPECT_TRUE(not_counted.core.failed());

  Driven unknown = driven(0, 2, {.credits = 2});
  unknown.credit(3);
  expect_failed(unknown, {"edge 3"});
}

TEST(RankCoreFaults, TheFirstFaultStays) {
  Driven r0 = driven(0, 1);
  r0.done();
  r0.credit(9);
  expect_failed(r0, {"none is running"});
}

}  // namespace
}  // namespace rrfp::core
