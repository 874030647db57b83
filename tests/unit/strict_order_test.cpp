// SPDX-License-Identifier: Apache-2.0
//
// check_strict: which orders can be obeyed, at what peak, and what is said about the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/plan.h"
#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;
using TasksPtr = std::shared_ptr<const StepTasks>;

constexpr Policy kStrict = {.order = Order::kStrict};
constexpr Policy kAnyWeightOrder = {.order = Order::kStrict, .deterministic = false};

Status check(const TasksPtr& tasks, const Hint& hint, const Policy& policy = kStrict,
             const std::vector<Cap>& caps = {}) {
  return check_strict(tasks, hint, policy, caps);
}

::testing::AssertionResult accepted(const Status& status) {
  return fails_with(status, Code::kOk, {});
}

constexpr std::string_view kOrders[] = {"gpipe", "1f1b", "zb-h1"};

// --- Accepted

TEST(StrictOrder, NamedSchedulesOnChains) {
  for (const Placement placement : {Placement::kLinear, Placement::kLoop, Placement::kV}) {
    for (int32_t p = 1; p <= 5; ++p) {
      for (int32_t m = 1; m <= 9; ++m) {
        const int32_t v = placement == Placement::kLinear ? 1 : placement == Placement::kV ? 2 : 3;
        const auto tasks = make_step(chain(p, v, placement), m);
        for (std::string_view name : kOrders) {
          ASSERT_TRUE(accepted(check(tasks, *named_hint(name))))
              << name << ", p " << p << ", m " << m << ", v " << v;
        }
      }
    }
  }
}

TEST(StrictOrder, NamedSchedulesOnAnyGraph) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const auto graph = sealed(random_graph(random));
    const auto tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(6)));
    for (std::string_view name : kOrders) {
      ASSERT_TRUE(accepted(check(tasks, *named_hint(name)))) << name << ", seed " << seed;
      ASSERT_TRUE(accepted(check(tasks, *named_hint(name), kAnyWeightOrder)))
          << name << ", seed " << seed;
    }
  }
}

TEST(StrictOrder, TextsOfSchedulesWithoutAName) {
  // ZB-V and DualPipeV, p = 2, m = 4 (SCHEDULES.md c.7 and c.8).
  const auto tasks = make_step(chain(2, 2, Placement::kV), 4);
  EXPECT_TRUE(accepted(
      check(tasks, *text_hint("0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,"
                              "3F3,3I3,3W3,0I2,0W2,0I3,0W3\n"
                              "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,"
                              "2W2,1I2,2I3,1I3,1W2,2W3,1W3\n"))));
  EXPECT_TRUE(accepted(check(
      tasks, *text_hint("0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
                        "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
                        "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
                        "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n"))));
  // Looped BFS runs backwards in descending order, c.4. B whose turn has not come runs as I, then
  // W.
  EXPECT_TRUE(accepted(check(make_step(chain(2, 2, Placement::kLoop), 2),
                             *text_hint("0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n"
                                        "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n"))));
}

// --- Refused

TEST(StrictOrder, BackwardFirstCannotBeObeyed) {
  for (const std::string name : {"bf", "bfw"}) {
    const Status status = check(make_step(chain(2), 2), *named_hint(name));
    const std::string first = name == "bf" ? "B0" : "I0";
    EXPECT_TRUE(fails_with(status, Code::kBadOrder,
                           {"\"" + name + "\"", "cannot be obeyed strictly",
                            "rank 0 waits at 0" + first + " for its forward, which comes later",
                            "rank 1 waits at 1" + first + " for its forward, which comes later"}));
  }
}

TEST(StrictOrder, RanksThatWaitForEachOther) {
  const Status status = check(make_step(chain(2), 2), *text_hint("0F0,0B0,0F1,0B1\n"
                                                                 "1F0,1F1,1B0,1B1\n"));
  EXPECT_TRUE(fails_with(status, Code::kBadOrder,
                         {"\"text\"", "rank 0 waits at 0B0 for the gradient of stage 1 on rank 1",
                          "rank 1 waits at 1F1 for the activation of stage 0 on rank 0"}));
}

TEST(StrictOrder, OnlyStuckRanksAreNamed) {
  // Rank 2 waits for rank 1, which waits for itself; rank 0 has a frozen stage and is through.
  std::vector<Stage> stages(3);
  stages[0].frozen = true;
  const auto tasks = make_step(sealed(chain_of(3, stages, Placement::kLinear)), 1);
  std::shared_ptr<const Hint> hint;
  require(Hint::priorities({{task_of(0, TaskKind::kForward, 0), 0},
                            {task_of(1, TaskKind::kBackward, 0), 0},
                            {task_of(1, TaskKind::kForward, 0), 1},
                            {task_of(2, TaskKind::kForward, 0), 0},
                            {task_of(2, TaskKind::kBackward, 0), 1}},
                           hint));
  const Status status = check(tasks, *hint);
  EXPECT_TRUE(fails_with(status, Code::kBadOrder,
                         {"\"priorities\"", "rank 1 waits at 1B0 for its forward",
                          "rank 2 waits at 2F0 for the activation of stage 1 on rank 1"}));
  EXPECT_EQ(status.text().find("rank 0"), std::string::npos) << status.text();
}

TEST(StrictOrder, WrongOrderBetweenStagesOfOneRank) {
  const auto tasks = make_step(chain(1, 2, Placement::kLoop), 1);
  EXPECT_TRUE(fails_with(check(tasks, *text_hint("1F0,0F0,1B0,0B0\n")), Code::kBadOrder,
                         {"rank 0 waits at 1F0 for the activation of stage 0 on rank 0"}));
  EXPECT_TRUE(fails_with(check(tasks, *text_hint("0F0,1F0,0B0,1B0\n")), Code::kBadOrder,
                         {"rank 0 waits at 0B0 for the gradient of stage 1 on rank 0"}));
}

TEST(StrictOrder, WeightGradientBeforeItsInputGradient) {
  std::shared_ptr<const Hint> hint;
  require(Hint::priorities({{task_of(0, TaskKind::kForward, 0), 0},
                            {task_of(0, TaskKind::kWeightGradient, 0), 1},
                            {task_of(0, TaskKind::kInputGradient, 0), 2}},
                           hint));
  EXPECT_TRUE(fails_with(check(make_step(chain(1), 1), *hint), Code::kBadOrder,
                         {"rank 0 waits at 0W0", "own rank that comes later"}));
}

TEST(StrictOrder, WeightGradientsOutOfInjectionOrder) {
  const auto tasks = make_step(chain(1), 2);
  const auto hint = text_hint("0F0,0F1,0I0,0I1,0W1,0W0\n");
  EXPECT_TRUE(fails_with(check(tasks, *hint), Code::kBadOrder,
                         {"rank 0 waits at 0W1", "older weight gradient", "deterministic"}));
  EXPECT_TRUE(accepted(check(tasks, *hint, kAnyWeightOrder)));
  // B1 before B0 can be cut in two, unless the stage cannot.
  const auto backwards = text_hint("0F0,0F1,0B1,0B0\n");
  EXPECT_TRUE(accepted(check(tasks, *backwards)));
  const auto fused = make_step(chain(1, 1, Placement::kLinear, fused_stage()), 2);
  EXPECT_TRUE(fails_with(check(fused, *backwards), Code::kBadOrder,
                         {"rank 0 waits at 0B1", "older weight gradient"}));
  EXPECT_TRUE(accepted(check(fused, *backwards, kAnyWeightOrder)));
}

TEST(StrictOrder, AHintThatDoesNotFitTheStep) {
  EXPECT_TRUE(fails_with(check(make_step(chain(2), 1), *text_hint("0F0,0B0\n1F0\n")),
                         Code::kBadOrder, {"rank 1", "no backward of stage 1"}));
}

// --- Peaks

/// The smallest cap in slots that check_strict accepts for `rank`; the other ranks have no cap.
int64_t peak_slots(const TasksPtr& tasks, const Hint& hint, int32_t rank) {
  std::vector<Cap> caps(static_cast<size_t>(tasks->graph().ranks()));
  for (int64_t slots = 1;; ++slots) {
    caps[static_cast<size_t>(rank)].slots = slots;
    const Status status = check(tasks, hint, kStrict, caps);
    if (status.ok()) return slots;
    if (status.code() != Code::kCapTooSmall) return -1;
  }
}

TEST(StrictPeak, ClosedForms) {
  for (int32_t p = 1; p <= 6; ++p) {
    for (const int32_t m : {1, 2, 3, 5, 8}) {
      const auto tasks = make_step(chain(p), m);
      for (int32_t r = 0; r < p; ++r) {
        SCOPED_TRACE("p " + std::to_string(p) + ", m " + std::to_string(m) + ", r " +
                     std::to_string(r));
        ASSERT_EQ(peak_slots(tasks, *named_hint("1f1b"), r), std::min(m, p - r));
        ASSERT_EQ(peak_slots(tasks, *named_hint("gpipe"), r), m);
        ASSERT_EQ(peak_slots(tasks, *named_hint("zb-h1"), r), std::min(m, p));
      }
    }
  }
}

TEST(StrictPeak, TheErrorNamesRankValueAndMinimum) {
  Stage stage;
  stage.activation_bytes = 100;
  const auto tasks = make_step(chain(4, 1, Placement::kLinear, stage), 8);
  const auto hint = named_hint("1f1b");
  EXPECT_TRUE(fails_with(check(tasks, *hint, kStrict, {{4, 0}, {2, 0}, {2, 0}, {1, 0}}),
                         Code::kCapTooSmall,
                         {"cap of rank 1 is 2 slots", "minimum is 3", "peak of the strict order"}));
  EXPECT_TRUE(fails_with(check(tasks, *hint, kStrict, {{0, 399}, {}, {}, {}}), Code::kCapTooSmall,
                         {"cap of rank 0 is 399 bytes", "minimum is 400"}));
  EXPECT_TRUE(accepted(check(tasks, *hint, kStrict, {{4, 400}, {3, 0}, {0, 200}, {1, 100}})));
  EXPECT_TRUE(accepted(check(tasks, *hint, kStrict, {{}, {}, {}, {}})))
      << "0 is no limit: a strict plan brings its own peak";
}

}  // namespace
}  // namespace rrfp::core
