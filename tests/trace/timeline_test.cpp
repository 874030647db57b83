// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/timeline.h"

#include <gtest/gtest.h>

#include "tests/trace/sample.h"
#include "tests/unit/count_allocations.h"

namespace rrfp::trace {
namespace {

using core::Direction;
using core::MicrobatchId;
using core::RankId;
using core::StageId;

TaskSpan task(int64_t step, int64_t begin_ns, int64_t end_ns) {
  return {SpanKind::kForward, StageId(0), MicrobatchId(0), step, begin_ns, begin_ns, end_ns};
}

void record_step(RankTimeline& timeline, int64_t step) {
  timeline.begin_step();
  for (int64_t k = 0; k < 8; ++k) {
    timeline.add_task(task(step, 10 * k, 10 * k + 5));
    timeline.add_idle({IdleKind::kInput, step, 10 * k + 5, 10 * k + 10});
    timeline.add_message({Direction::kForward, StageId(0), StageId(1), MicrobatchId(0), RankId(0),
                          RankId(1), step, 10 * k, 10 * k + 3});
  }
}

TEST(RankTimeline, KeepsTheLastStepsOldestFirst) {
  RankTimeline timeline(3);
  EXPECT_TRUE(timeline.enabled());
  EXPECT_EQ(timeline.spans(), RankSpans());
  for (int64_t step = 1; step <= 2; ++step) record_step(timeline, step);
  EXPECT_EQ(timeline.spans().tasks.size(), 16U);
  for (int64_t step = 3; step <= 7; ++step) record_step(timeline, step);
  const RankSpans spans = timeline.spans();
  ASSERT_EQ(spans.tasks.size(), 24U);
  ASSERT_EQ(spans.idles.size(), 24U);
  ASSERT_EQ(spans.messages.size(), 24U);
  for (size_t k = 0; k < 24; ++k) {
    const int64_t step = 5 + static_cast<int64_t>(k / 8);
    EXPECT_EQ(spans.tasks[k].step, step);
    EXPECT_EQ(spans.idles[k].step, step);
    EXPECT_EQ(spans.messages[k].step, step);
  }
}

TEST(RankTimeline, KeepsNothingIfNotEnabled) {
  RankTimeline timeline(0);
  EXPECT_FALSE(timeline.enabled());
  record_step(timeline, 1);
  EXPECT_EQ(timeline.spans(), RankSpans());
}

TEST(RankTimeline, AllocatesNothingOnceWarm) {
  RankTimeline timeline(3);
  for (int64_t step = 1; step <= 3; ++step) record_step(timeline, step);
  const int64_t before = core::fixtures::allocation_count();
  for (int64_t step = 4; step <= 20; ++step) record_step(timeline, step);
  EXPECT_EQ(core::fixtures::allocation_count(), before);
}

TEST(RankTimeline, AllocatesNothingAfterReserve) {
  constexpr size_t kRoom = 8;
  RankTimeline timeline(2);
  timeline.begin_step();
  timeline.reserve(kRoom, kRoom, kRoom);
  const int64_t before = core::fixtures::allocation_count();
  for (size_t k = 0; k < kRoom; ++k) {
    timeline.add_task({});
    timeline.add_idle({});
    timeline.add_message({});
  }
  EXPECT_EQ(core::fixtures::allocation_count(), before);
}

TEST(Names, OfTheCoreAndOfTasks) {
  EXPECT_EQ(span_kind(core::TaskKind::kForward), SpanKind::kForward);
  EXPECT_EQ(span_kind(core::TaskKind::kWeightGradient), SpanKind::kWeightGradient);
  EXPECT_EQ(idle_kind(core::IdleReason::kInput), IdleKind::kInput);
  EXPECT_EQ(idle_kind(core::IdleReason::kMemory), IdleKind::kMemory);
  EXPECT_EQ(idle_kind(core::IdleReason::kCredit), IdleKind::kCredit);
  EXPECT_EQ(idle_kind(core::IdleReason::kPolicy), IdleKind::kPolicy);
  EXPECT_EQ(idle_kind(core::IdleReason::kComplete), IdleKind::kComplete);
  EXPECT_EQ(idle_kind(core::IdleReason::kFailed), IdleKind::kGroup);
  TaskSpan span = task(0, 0, 1);
  span.stage = StageId(3);
  span.microbatch = MicrobatchId(4);
  EXPECT_EQ(task_name(span), "3F4");
  span.kind = SpanKind::kUpdate;
  EXPECT_EQ(task_name(span), "update");
}

TEST(Totals, OfNothing) {
  EXPECT_EQ(summarize({}).makespan_ns(), 0);
  Timeline timeline;
  timeline.ranks.resize(2);
  const Totals totals = summarize(timeline);
  EXPECT_EQ(totals.ranks.size(), 2U);
  EXPECT_EQ(totals.makespan_ns(), 0);
  EXPECT_EQ(totals.idle_share, 0);
}

// By hand: rank 0 computes 60 of 100 ns, rank 1 computes 20.
TEST(Totals, AddUpToTheMakespan) {
  Timeline timeline;
  timeline.ranks.resize(2);
  timeline.ranks[0].tasks = {
      task(0, 1000, 1040),
      {SpanKind::kUpdate, {}, {}, 0, kUnknownTime, 1080, 1100},
  };
  timeline.ranks[0].idles = {{IdleKind::kMemory, 0, 1040, 1070}};
  timeline.ranks[1].tasks = {
      {SpanKind::kWeightGradient, StageId(1), MicrobatchId(0), 0, 1010, 1030, 1050}};
  timeline.ranks[1].idles = {{IdleKind::kInput, 0, 1005, 1030}, {IdleKind::kInput, 0, 1050, 1060}};
  const Totals totals = summarize(timeline);
  EXPECT_EQ(totals.begin_ns, 1000);
  EXPECT_EQ(totals.end_ns, 1100);
  EXPECT_EQ(totals.ranks[0].task_ns, (std::array<int64_t, kSpanKinds>{40, 0, 0, 0, 20}));
  EXPECT_EQ(totals.ranks[0].idle_ns[static_cast<size_t>(IdleKind::kMemory)], 30);
  EXPECT_EQ(totals.ranks[0].engine_ns, 10);
  EXPECT_EQ(totals.ranks[1].task_ns[3], 20);
  EXPECT_EQ(totals.ranks[1].idle_ns[static_cast<size_t>(IdleKind::kInput)], 35);
  EXPECT_EQ(totals.ranks[1].engine_ns, 45);
  EXPECT_DOUBLE_EQ(totals.idle_share, 1 - 80.0 / 200);
}

// By hand: "text" takes 60 of 100 ns, "image" 30; an update 10.
TEST(Totals, AreToldByStageAndBranch) {
  Timeline timeline;
  timeline.ranks.resize(2);
  timeline.stages = {{"a", "image"}, {"b .. c", "text"}, {"d", ""}, {"e", "image"}, {"f", "text"}};
  const auto add = [&](size_t rank, SpanKind kind, StageId stage, int64_t length_ns) {
    timeline.ranks[rank].tasks.push_back({kind, stage, MicrobatchId(0), 0, 0, 0, length_ns});
  };
  add(0, SpanKind::kForward, StageId(0), 10);
  add(1, SpanKind::kBackward, StageId(3), 20);
  add(1, SpanKind::kForward, StageId(1), 60);
  add(0, SpanKind::kUpdate, {}, 10);
  const Totals totals = summarize(timeline);
  EXPECT_TRUE(totals.branched());
  ASSERT_EQ(totals.branches.size(), 2U);
  EXPECT_EQ(totals.branches[0].name, "image");
  EXPECT_EQ(totals.branches[0].task_ns, (std::array<int64_t, kSpanKinds>{10, 20, 0, 0, 0}));
  EXPECT_EQ(totals.branches[0].computing_ns, 30);
  EXPECT_EQ(totals.branches[0].tasks, 2U);
  EXPECT_DOUBLE_EQ(totals.branches[0].share, 0.3);
  EXPECT_EQ(totals.branches[1].name, "text");
  EXPECT_DOUBLE_EQ(totals.branches[1].share, 0.6);
  ASSERT_EQ(totals.stages.size(), 5U);
  EXPECT_EQ(totals.stages[3].computing_ns, 20);
  EXPECT_EQ(totals.branch_of(StageId(3)), 0);
  EXPECT_EQ(totals.branch_of(StageId(4)), 1);
  EXPECT_EQ(totals.branch_of(StageId(2)), kNoBranch);
  EXPECT_EQ(totals.branch_of(StageId(5)), kNoBranch);
  EXPECT_EQ(totals.branch_of({}), kNoBranch);
}

TEST(Totals, StagesWithoutNamesAndOneBranchAreNothingToTellApart) {
  Timeline timeline = test::sample_timeline({.ranks = 2, .microbatches = 2});
  EXPECT_FALSE(summarize(timeline).branched());
  timeline.stages = {{"a", "one"}};  // there are more stages than names
  const Totals one = summarize(timeline);
  EXPECT_FALSE(one.branched());
  EXPECT_LT(one.branches.at(0).share, 0.6);
  timeline.stages = {{"a", ""}, {"b", ""}};
  EXPECT_TRUE(summarize(timeline).branches.empty());
  timeline.stages = {{"a", "one"}, {"b", "two"}};
  timeline.ranks.clear();
  EXPECT_EQ(summarize(timeline).branches.at(1).share, 0);
}

TEST(Names, OfBranchesInOneLetter) {
  EXPECT_EQ(letter_of(0), 'A');
  EXPECT_EQ(letter_of(25), 'Z');
  EXPECT_EQ(letter_of(26), '+');
}

TEST(Totals, OfAPipelineLeaveNoTimeOut) {
  const Timeline timeline = test::sample_timeline({.ranks = 5, .microbatches = 9, .steps = 3});
  const Totals totals = summarize(timeline);
  for (const RankTotals& rank : totals.ranks) {
    int64_t sum = rank.engine_ns;
    for (const int64_t ns : rank.task_ns) sum += ns;
    for (const int64_t ns : rank.idle_ns) sum += ns;
    EXPECT_EQ(sum, totals.makespan_ns());
    EXPECT_GT(rank.engine_ns, 0);
  }
}

}  // namespace
}  // namespace rrfp::trace
