// SPDX-License-Identifier: Apache-2.0
//
// How a rank spent its step: waits are booked under what was waited for. That the shares add up is
// checked wherever a step is done (see done()).
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

constexpr int kSleepMs = 240;
// A wait for a sleeping rank, less what the waiting one may come late on a busy machine; and a wait
// for a rank that does not sleep.
constexpr int64_t kLongNs = 140'000'000;
constexpr int64_t kShortNs = 100'000'000;
// Less than two sleeps.
constexpr int64_t kOneSleepNs = 440'000'000;

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

void relay(TaskContext& context, int32_t edge) {
  context.put_scalar(edge, 1);
}

/// Two stages on two ranks with an edge between; what they do takes no time but where it is said.
struct Pair {
  explicit Pair(std::function<void(TaskContext&)> first, std::function<void(TaskContext&)> second)
      : toy(2) {
    toy.add_stage({[first](TaskContext& c) {
                     first(c);
                     relay(c, 0);
                   },
                   first,
                   {}});
    toy.add_stage({second,
                   [second](TaskContext& c) {
                     second(c);
                     relay(c, 0);
                   },
                   {}},
                  RRFP_STAGE_LOSS);
    toy.add_edge(0, 1);
    toy.place(RRFP_PLACEMENT_LINEAR);
  }
  ToyPipeline toy;
};

void nothing(TaskContext&) {}

void slow_forward(TaskContext& context) {
  if (context.task.kind == RRFP_FORWARD) sleep_ms(kSleepMs);
}

TEST(Report, WaitingForInput) {
  Pair pair(slow_forward, nothing);
  pair.toy.open();
  const HintPtr hint = make_hint("1f1b");
  const StepResult result = pair.toy.run({.hint = hint.get(), .microbatches = 2});
  ASSERT_TRUE(done(result));
  const rrfp_step_report& busy = result.ranks[0].report;
  const rrfp_step_report& waiting = result.ranks[1].report;
  EXPECT_GE(busy.busy_ns, 2 * kLongNs);
  EXPECT_LT(busy.wait_input_ns, kShortNs);
  EXPECT_GE(waiting.wait_input_ns, 2 * kLongNs);
  EXPECT_LT(waiting.busy_ns, kShortNs);
  EXPECT_EQ(waiting.wait_memory_ns + waiting.wait_credit_ns + waiting.wait_policy_ns, 0);
}

TEST(Report, WaitingForMemory) {
  Pair pair(nothing, slow_forward);
  pair.toy.options.cap_slots = 1;
  pair.toy.open();
  const HintPtr hint = make_hint("1f1b");
  const StepResult result = pair.toy.run({.hint = hint.get(), .microbatches = 2});
  ASSERT_TRUE(done(result));
  const rrfp_step_report& report = result.ranks[0].report;
  EXPECT_GE(report.wait_memory_ns, kLongNs);  // F1 is ready, but F0's slot is not free
  EXPECT_GE(report.wait_input_ns, kLongNs);   // then only B1 is left
  EXPECT_LT(report.wait_memory_ns, kOneSleepNs);
  EXPECT_EQ(report.wait_credit_ns + report.wait_policy_ns, 0);
  EXPECT_EQ(report.peak_slots, 1);
}

TEST(Report, WaitingForCredit) {
  Pair pair(nothing, slow_forward);
  pair.toy.options.credits = 1;
  pair.toy.open();
  const HintPtr hint = make_hint("1f1b");
  const StepResult result =
      pair.toy.run({.hint = hint.get(), .microbatches = 3, .mode = RRFP_MODE_FORWARD});
  ASSERT_TRUE(done(result));
  const rrfp_step_report& report = result.ranks[0].report;
  EXPECT_GE(report.wait_credit_ns, kLongNs);  // F2 may start when rank 1 has started F1
  EXPECT_LT(report.wait_credit_ns, kOneSleepNs);
  EXPECT_EQ(report.wait_input_ns + report.wait_memory_ns + report.wait_policy_ns, 0);
}

TEST(Report, WaitingBecauseOfStrictOrder) {
  Pair pair(nothing, slow_forward);
  pair.toy.options.order = RRFP_ORDER_STRICT;
  pair.toy.open();
  const HintPtr hint = make_text_hint("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  const StepResult result = pair.toy.run({.hint = hint.get(), .microbatches = 2});
  ASSERT_TRUE(done(result));
  const rrfp_step_report& report = result.ranks[0].report;
  EXPECT_GE(report.wait_policy_ns, kLongNs);  // F1 could run, but B0 comes first
  EXPECT_GE(report.wait_input_ns, kLongNs);
  EXPECT_LT(report.wait_policy_ns, kOneSleepNs);
  EXPECT_EQ(report.wait_memory_ns + report.wait_credit_ns, 0);
}

/// Rank 1 owns stage 1, which waits for a slow stage 0, and stage 2, which is ready at once but
/// comes later in the hint.
StepResult run_with_holding(int32_t permille) {
  // Long beside what rank 1 may be late on a loaded machine.
  constexpr int kAnnouncedMs = 400;
  ToyPipeline toy(2);
  std::atomic<bool> announced{false};
  toy.add_stage({[&](TaskContext& c) {
                   announced = true;
                   sleep_ms(kAnnouncedMs);
                   relay(c, 0);
                 },
                 {},
                 {}},
                0, 0, 0, kAnnouncedMs * 1'000'000);
  toy.add_stage({nothing, [](TaskContext& c) { relay(c, 0); }, {}}, RRFP_STAGE_LOSS, 1, 0,
                1'000'000);
  toy.add_stage({nothing, {}, {}}, RRFP_STAGE_LOSS, 1, 0, 1'000'000'000);
  toy.add_edge(0, 1);
  toy.options.hold_permille = permille;
  toy.before_begin = [&](int32_t rank, const Step&) {
    while (rank == 1 && !announced) std::this_thread::yield();
  };
  toy.open();
  const HintPtr hint = make_text_hint("0F0,0B0\n1F0,1B0,2F0,2B0\n");
  return toy.run({.hint = hint.get(), .microbatches = 1});
}

TEST(Report, WaitingBecauseABetterTaskIsAnnounced) {
  const StepResult held = run_with_holding(500);
  ASSERT_TRUE(done(held));
  EXPECT_EQ(held.order(1).substr(0, 3), "1F0");
  EXPECT_GE(held.ranks[1].report.wait_policy_ns, kLongNs);
  const StepResult not_held = run_with_holding(0);
  ASSERT_TRUE(done(not_held));
  EXPECT_EQ(not_held.order(1).substr(0, 3), "2F0");
  EXPECT_EQ(not_held.ranks[1].report.wait_policy_ns, 0);
  EXPECT_GE(not_held.ranks[1].report.wait_input_ns, kLongNs);
}

TEST(Report, NamesItsRankAndStep) {
  ChainPipeline p(ToyChain::t1());
  p.toy.open();
  const HintPtr hint = make_hint("1f1b");
  Step step = p.step(hint);
  step.number = -7;
  step.order = RRFP_ORDER_STRICT;  // then what is held at once is no matter of timing
  const StepResult result = p.run(step);
  ASSERT_TRUE(done(result));
  for (int32_t r = 0; r < 4; ++r) {
    const rrfp_step_report& report = result.ranks[static_cast<size_t>(r)].report;
    EXPECT_EQ(report.rank, r);
    EXPECT_EQ(report.step, -7);
    EXPECT_EQ(report.tasks, 8);
    EXPECT_EQ(report.peak_slots, 4 - r);
    EXPECT_EQ(report.struct_size, sizeof report);
  }
}

TEST(Report, BusyIsTheTimeInTheCallersHands) {
  // The caller dawdles between done and next: that is other time, not a wait.
  Pair pair(nothing, nothing);
  pair.toy.after_done = [](const rrfp_task& task, rrfp_events) {
    if (task.stage == 0 && task.microbatch == 0 && task.kind == RRFP_FORWARD) sleep_ms(kSleepMs);
  };
  pair.toy.open();
  const HintPtr hint = make_hint("1f1b");
  const StepResult result = pair.toy.run({.hint = hint.get(), .microbatches = 2});
  ASSERT_TRUE(done(result));
  EXPECT_GE(result.ranks[0].report.other_ns, kLongNs);
  EXPECT_LT(result.ranks[0].report.busy_ns, kShortNs);
}

}  // namespace
}  // namespace rrfp::cases
