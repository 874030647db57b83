// SPDX-License-Identifier: Apache-2.0
//
// Hints given as lists, as schedule text and as priorities: what is refused and why, how they are
// bound to a step, and their digests. The named schedules are in named_schedules_test.cpp.
#include "engine/core/hint.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/core/schedule_text.h"
#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;
using Lists = std::vector<std::vector<Task>>;

constexpr TaskKind kF = TaskKind::kForward;
constexpr TaskKind kB = TaskKind::kBackward;
constexpr TaskKind kI = TaskKind::kInputGradient;
constexpr TaskKind kW = TaskKind::kWeightGradient;

std::shared_ptr<const Hint> list_hint(Lists lists) {
  std::shared_ptr<const Hint> hint;
  require(Hint::lists(std::move(lists), hint));
  return hint;
}

std::shared_ptr<const Hint> priority_hint(std::vector<PrioritizedTask> tasks) {
  std::shared_ptr<const Hint> hint;
  require(Hint::priorities(std::move(tasks), hint));
  return hint;
}

/// The error of building lists; nothing may be written then.
Status bad_lists(Lists lists) {
  std::shared_ptr<const Hint> hint;
  Status status = Hint::lists(std::move(lists), hint);
  EXPECT_EQ(hint, nullptr);
  return status;
}

Status bad_priorities(std::vector<PrioritizedTask> tasks) {
  std::shared_ptr<const Hint> hint;
  Status status = Hint::priorities(std::move(tasks), hint);
  EXPECT_EQ(hint, nullptr);
  return status;
}

/// The error of binding a hint to a step.
Status unbound(const Hint& hint, const StepTasks& tasks, int32_t rank) {
  std::vector<Task> order;
  return hint.order(tasks, RankId(rank), order);
}

// --- Lists

TEST(HintLists, Good) {
  const auto hint = text_hint("0F0,0F1,0B1,0B0\n1F1,1I1,1F0,1I0,1W0,1W1\n");
  const auto tasks = make_step(chain(2), 2);
  EXPECT_EQ(text_of(order_of(*hint, *tasks, 0)), "0F0,0F1,0B1,0B0");
  EXPECT_EQ(text_of(order_of(*hint, *tasks, 1)), "1F1,1I1,1F0,1I0,1W0,1W1");
  EXPECT_EQ(hint->source(), Hint::Source::kText);
  EXPECT_EQ(hint->name(), "text");
  const auto lists = list_hint({{task_of(0, kF, 0)}});
  EXPECT_EQ(lists->source(), Hint::Source::kLists);
  EXPECT_EQ(lists->name(), "lists");
}

TEST(HintLists, TaskTwice) {
  EXPECT_TRUE(fails_with(bad_lists({{}, {task_of(1, kF, 0), task_of(1, kF, 0)}}), Code::kBadOrder,
                         {"rank 1", "1F0", "twice"}));
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kF, 3), task_of(0, kB, 3), task_of(0, kB, 3)}}),
                         Code::kBadOrder, {"rank 0", "0B3", "twice"}));
  EXPECT_TRUE(fails_with(
      bad_lists({{task_of(0, kF, 0), task_of(0, kI, 0), task_of(0, kW, 0), task_of(0, kW, 0)}}),
      Code::kBadOrder, {"0W0", "twice"}));
}

TEST(HintLists, BothFormsOfOneBackward) {
  const auto after_forward = [](TaskKind first, TaskKind second) {
    return bad_lists({{task_of(0, kF, 0), task_of(0, first, 0), task_of(0, second, 0)}});
  };
  EXPECT_TRUE(fails_with(after_forward(kB, kI), Code::kBadOrder, {"0I0", "B, or I and W"}));
  EXPECT_TRUE(fails_with(after_forward(kI, kB), Code::kBadOrder, {"0B0", "B, or I and W"}));
  EXPECT_TRUE(fails_with(after_forward(kB, kW), Code::kBadOrder, {"0W0", "beside B"}));
}

TEST(HintLists, WrongOrderInsideAPair) {
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kB, 0), task_of(0, kF, 0)}}), Code::kBadOrder,
                         {"rank 0", "0B0", "before its forward"}));
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kI, 0), task_of(0, kF, 0)}}), Code::kBadOrder,
                         {"0I0", "before its forward"}));
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kF, 0), task_of(0, kW, 0), task_of(0, kI, 0)}}),
                         Code::kBadOrder, {"0W0", "before its input gradient I"}));
  EXPECT_TRUE(
      fails_with(bad_lists({{task_of(0, kB, 0)}}), Code::kBadOrder, {"0B0", "before its forward"}));
}

TEST(HintLists, StageInTwoLists) {
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kF, 0)}, {task_of(1, kF, 0), task_of(0, kB, 0)}}),
                         Code::kBadOrder, {"0B0", "rank 1", "rank 0", "one rank"}));
}

TEST(HintLists, NegativeOrHugeIds) {
  EXPECT_TRUE(fails_with(bad_lists({{task_of(-1, kF, 0)}}), Code::kOutOfRange, {"-1F0"}));
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kF, -2)}}), Code::kOutOfRange, {"0F-2"}));
  EXPECT_TRUE(fails_with(bad_lists({{task_of(StageGraph::kStagesMax, kF, 0)}}), Code::kOutOfRange,
                         {"1048576F0"}));
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kF, StepTasks::kMicrobatchesMax)}}),
                         Code::kOutOfRange, {"0F16777216"}));
}

TEST(HintLists, TheErrorOfAHugeIdNamesTheLimit) {
  EXPECT_TRUE(fails_with(bad_lists({{task_of(StageGraph::kStagesMax, kF, 0)}}), Code::kOutOfRange,
                         {"1048575"}));
  EXPECT_TRUE(fails_with(bad_lists({{task_of(0, kF, StepTasks::kMicrobatchesMax)}}),
                         Code::kOutOfRange, {"16777215"}));
}

TEST(HintLists, WrongNumberOfLists) {
  const auto hint = text_hint("0F0,0B0\n1F0,1B0\n");
  EXPECT_TRUE(fails_with(unbound(*hint, *make_step(chain(3), 1), 0), Code::kBadOrder,
                         {"lists for 2 ranks", "pipeline has 3"}));
  EXPECT_TRUE(fails_with(unbound(*hint, *make_step(chain(1), 1), 0), Code::kBadOrder,
                         {"lists for 2 ranks", "pipeline has 1"}));
}

TEST(HintLists, StagePlacedElsewhere) {
  const auto hint = text_hint("1F0,1B0\n0F0,0B0\n");
  EXPECT_TRUE(fails_with(unbound(*hint, *make_step(chain(2), 1), 0), Code::kBadOrder,
                         {"1F0", "list of rank 0", "stage 1 is placed on rank 1"}));
}

TEST(HintLists, UnknownStageOrMicrobatch) {
  const auto tasks = make_step(chain(2), 2);
  EXPECT_TRUE(fails_with(unbound(*text_hint("0F0\n7F0\n"), *tasks, 1), Code::kOutOfRange,
                         {"7F0", "stage 7", "2 stages"}));
  EXPECT_TRUE(fails_with(unbound(*text_hint("0F0,0F1,0F2\n1F0\n"), *tasks, 0), Code::kOutOfRange,
                         {"0F2", "2 microbatches", "from 0"}));
}

TEST(HintLists, MissingTasks) {
  const auto tasks = make_step(chain(1), 2);
  const auto error = [&](std::string_view text) { return unbound(*text_hint(text), *tasks, 0); };
  EXPECT_TRUE(fails_with(error("0F0,0B0\n"), Code::kBadOrder,
                         {"rank 0", "no forward of stage 0, microbatch 1"}));
  EXPECT_TRUE(fails_with(error("0F0,0F1,0B0\n"), Code::kBadOrder,
                         {"no backward of stage 0, microbatch 1"}));
  EXPECT_TRUE(fails_with(error("0F0,0F1,0I0,0I1,0W1\n"), Code::kBadOrder,
                         {"no weight gradient of stage 0, microbatch 0"}));
  EXPECT_TRUE(fails_with(error("\n"), Code::kBadOrder, {"no forward of stage 0, microbatch 0"}));
  EXPECT_TRUE(error("0F0,0F1,0I0,0B1,0W0\n").ok());
}

TEST(HintLists, EntriesOfTasksThatTheStepLacksAreDropped) {
  const auto hint = text_hint("0F0,0I0,0W0,0F1,0B1\n1F0,1B0,1F1,1I1,1W1\n");
  EXPECT_EQ(text_of(order_of(*hint, *make_step(chain(2), 2, StepMode::kForwardOnly), 0)),
            "0F0,0F1");

  StepShape shape;
  shape.microbatches = 2;
  shape.skip = {0, 0, /**/ 1, 0};
  const auto skipped = make_step(chain(2), shape);
  EXPECT_EQ(text_of(order_of(*hint, *skipped, 0)), "0F0,0F1,0B1") << "no loss for microbatch 0";
  EXPECT_EQ(text_of(order_of(*hint, *skipped, 1)), "1F1,1I1,1W1");

  std::vector<Stage> stages(2);
  stages[1].frozen = true;
  const auto frozen = make_step(sealed(chain_of(2, stages, Placement::kLinear)), 2);
  EXPECT_EQ(text_of(order_of(*hint, *frozen, 1)), "1F0,1I0,1F1,1I1")
      << "without a W half a backward stands as I";
}

TEST(HintLists, RankOf) {
  const auto hint = text_hint("2F0,0F0\n\n5F0\n");
  EXPECT_EQ(hint->rank_of(StageId(2)), RankId(0));
  EXPECT_EQ(hint->rank_of(StageId(0)), RankId(0));
  EXPECT_EQ(hint->rank_of(StageId(5)), RankId(2));
  for (const int32_t unknown : {-1, 1, 3, 6, 1000}) {
    EXPECT_FALSE(hint->rank_of(StageId(unknown)).valid()) << unknown;
  }
  EXPECT_FALSE(priority_hint({{task_of(0, kF, 0), 0}})->rank_of(StageId(0)).valid());
}

TEST(HintLists, TextTellsWhatItAssumed) {
  const auto hint = text_hint("0F0,0B0,0W0\n");
  EXPECT_NE(hint->note().find("stages 0"), std::string::npos) << hint->note();
  EXPECT_EQ(text_of(order_of(*hint, *make_step(chain(1), 1), 0)), "0F0,0I0,0W0");
  std::shared_ptr<const Hint> none;
  EXPECT_TRUE(fails_with(Hint::text("0F0,0Q0\n", none), Code::kSyntax, {"row 1, column 2"}));
  EXPECT_TRUE(fails_with(Hint::text("0B0,0F0\n", none), Code::kBadOrder, {"0B0", "rank 0"}));
  EXPECT_EQ(none, nullptr);
}

// --- Priorities

TEST(HintPriorities, SortTheTasksOfTheRank) {
  const auto hint = priority_hint({{task_of(0, kF, 0), 10},
                                   {task_of(1, kF, 0), 0},
                                   {task_of(0, kF, 1), -5},
                                   {task_of(1, kF, 1), INT64_MIN},
                                   {task_of(0, kB, 0), 3},
                                   {task_of(1, kB, 0), 0},
                                   {task_of(0, kI, 1), INT64_MAX},
                                   {task_of(0, kW, 1), 4},
                                   {task_of(1, kB, 1), 0}});
  EXPECT_EQ(hint->name(), "priorities");
  EXPECT_EQ(hint->source(), Hint::Source::kPriorities);
  const auto tasks = make_step(chain(2), 2);
  EXPECT_EQ(text_of(order_of(*hint, *tasks, 0)), "0F1,0B0,0W1,0F0,0I1");
  EXPECT_EQ(text_of(order_of(*hint, *tasks, 1)), "1F1,1F0,1B0,1B1")
      << "ties by stage, microbatch, kind";
}

TEST(HintPriorities, Bad) {
  const Task f = task_of(0, kF, 0);
  EXPECT_TRUE(fails_with(bad_priorities({{f, 1}, {f, 2}}), Code::kBadOrder, {"0F0", "twice"}));
  EXPECT_TRUE(fails_with(bad_priorities({{f, 1}, {task_of(0, kI, 0), 1}, {task_of(0, kB, 0), 2}}),
                         Code::kBadOrder, {"0I0", "B, or I and W"}));
  EXPECT_TRUE(fails_with(bad_priorities({{f, 1}, {task_of(0, kW, 0), 1}, {task_of(0, kB, 0), 2}}),
                         Code::kBadOrder, {"0W0", "beside B"}));
  EXPECT_TRUE(fails_with(bad_priorities({{task_of(-3, kF, 0), 1}}), Code::kOutOfRange, {"-3F0"}));
}

TEST(HintPriorities, MustFitTheStep) {
  const auto tasks = make_step(chain(2), 1);
  const PrioritizedTask f = {task_of(0, kF, 0), 0};
  const PrioritizedTask b = {task_of(0, kB, 0), 0};
  EXPECT_TRUE(fails_with(unbound(*priority_hint({f}), *tasks, 0), Code::kBadOrder,
                         {"no backward of stage 0, microbatch 0"}));
  EXPECT_TRUE(fails_with(unbound(*priority_hint({f, b, {task_of(0, kF, 1), 0}}), *tasks, 0),
                         Code::kOutOfRange, {"0F1", "1 microbatches"}));
  EXPECT_TRUE(fails_with(unbound(*priority_hint({f, b, {task_of(4, kF, 0), 0}}), *tasks, 0),
                         Code::kOutOfRange, {"stage 4", "2 stages"}));
  EXPECT_TRUE(unbound(*priority_hint({f, b}), *tasks, 0).ok());
}

TEST(HintPriorities, ForgetTasksThatTheStepLacks) {
  const auto hint =
      priority_hint({{task_of(0, kF, 0), 3}, {task_of(0, kI, 0), 2}, {task_of(0, kW, 0), 1}});
  EXPECT_EQ(text_of(order_of(*hint, *make_step(chain(1), 1), 0)), "0W0,0I0,0F0");
  EXPECT_EQ(text_of(order_of(*hint, *make_step(chain(1), 1, StepMode::kForwardOnly), 0)), "0F0");
}

// --- Random steps: lists, text and priorities of one order are the same hint to a step

TEST(Hint, OneOrderInThreeForms) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto graph = sealed(random_graph(random));
    const auto tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(5)));
    Lists lists;
    std::vector<PrioritizedTask> priorities;
    for (int32_t r = 0; r < graph->ranks(); ++r) {
      const auto& list = lists.emplace_back(order_of(*named_hint("zb-h1"), *tasks, r));
      for (size_t k = 0; k < list.size(); ++k) {
        priorities.push_back({list[k], static_cast<int64_t>(k) - 3});
      }
    }
    const auto text = text_hint(print_schedule_text(lists));
    for (int32_t r = 0; r < graph->ranks(); ++r) {
      const std::string expected = text_of(lists[static_cast<size_t>(r)]);
      ASSERT_EQ(text_of(order_of(*list_hint(lists), *tasks, r)), expected) << "seed " << seed;
      ASSERT_EQ(text_of(order_of(*text, *tasks, r)), expected) << "seed " << seed;
      ASSERT_EQ(text_of(order_of(*priority_hint(priorities), *tasks, r)), expected)
          << "seed " << seed;
    }
  }
}

// --- Digests

TEST(HintDigest, EqualHints) {
  for (std::string_view name : Hint::names()) {
    EXPECT_EQ(named_hint(name)->digest(), named_hint(name)->digest());
  }
  const std::string text = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(text_hint(text)->digest(), text_hint(text)->digest());
  EXPECT_EQ(text_hint(" 0F0, 0F1,,0B0,0B1\r\n1F0,1B0,1F1,1B1")->digest(),
            text_hint(text)->digest());
  EXPECT_EQ(list_hint({{task_of(0, kF, 0)}})->digest(), text_hint("0F0\n")->digest())
      << "a text is the list that it spells";
  const PrioritizedTask a = {task_of(0, kF, 0), 1};
  const PrioritizedTask b = {task_of(0, kB, 0), 2};
  EXPECT_EQ(priority_hint({a, b})->digest(), priority_hint({b, a})->digest());
}

TEST(HintDigest, DifferentHints) {
  std::map<uint64_t, std::string> seen;
  const auto add = [&](const Hint& hint, const std::string& what) {
    const auto [at, first] = seen.emplace(hint.digest(), what);
    EXPECT_TRUE(first) << what << " has the digest of " << at->second;
  };
  for (std::string_view name : Hint::names()) add(*named_hint(name), std::string(name));
  for (const char* text :
       {"0F0,0F1,0B0,0B1\n", "0F0,0F1,0B1,0B0\n", "0F0,0B0,0F1,0B1\n", "0F0,0F1,0B0\n",
        "1F0,1F1,1B0,1B1\n", "0F0,0F1,0I0,0B1\n", "0F0,0F1\n1F0\n", "0F0,0F1,1F0\n",
        "0F0\n0F0,1F0\n", "0F0,0F1,0B0,0B1\n\n", "\n0F0,0F1,0B0,0B1\n"}) {
    std::shared_ptr<const Hint> hint;
    if (Hint::text(text, hint).ok()) add(*hint, text);
  }
  const Task f = task_of(0, kF, 0);
  add(*priority_hint({{f, 1}}), "F at 1");
  add(*priority_hint({{f, 2}}), "F at 2");
  add(*priority_hint({{f, 1}, {task_of(0, kB, 0), 1}}), "F and B");
}

// The same eight-byte words may stand for a schedule, for lists or for priorities.
TEST(HintDigest, TellsSchedulesListsAndPrioritiesApart) {
  EXPECT_NE(list_hint({{}})->digest(), named_hint("gpipe")->digest());
  EXPECT_NE(list_hint({})->digest(), priority_hint({})->digest());
  EXPECT_NE(list_hint({{task_of(0, kF, 0)}})->digest(),
            priority_hint({{task_of(1, kF, 0), 0}})->digest());
}

}  // namespace
}  // namespace rrfp::core
