// SPDX-License-Identifier: Apache-2.0
//
// The named hints: their names, and those that work on any graph with exact lists, the closed forms
// for many sizes, and what must hold on any graph. The others are in published_schedules_test.cpp.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/core/hint.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/schedules_golden.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

constexpr int32_t kRanksMax = 8;
constexpr int32_t kMicrobatchesMax = 24;

std::vector<std::string> rows_of(std::string_view name, const StepTasks& tasks) {
  std::vector<std::string> rows;
  for (int32_t r = 0; r < tasks.graph().ranks(); ++r) {
    rows.push_back(text_of(order_of(*named_hint(name), tasks, r)));
  }
  return rows;
}

using Rows = std::vector<std::string>;

TEST(NamedSchedules, Names) {
  const auto names = Hint::names();
  EXPECT_EQ(std::vector<std::string_view>(names.begin(), names.end()),
            (std::vector<std::string_view>{"gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2",
                                           "interleaved", "looped-bfs", "interleaved-zb", "zb-v",
                                           "v-half", "v-min", "dualpipe", "dualpipe-v"}));
  const auto general = Hint::general_names();
  EXPECT_EQ(std::vector<std::string_view>(general.begin(), general.end()),
            (std::vector<std::string_view>{"gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2"}));
  for (std::string_view name : names) {
    const auto hint = named_hint(name);
    EXPECT_EQ(hint->name(), name);
    EXPECT_EQ(hint->source(), Hint::Source::kSchedule);
    EXPECT_EQ(hint->note(), "");
    EXPECT_FALSE(hint->rank_of(StageId(0)).valid()) << "a named schedule places nothing";
  }
}

TEST(NamedSchedules, UnknownNameListsTheKnownOnes) {
  std::shared_ptr<const Hint> hint;
  EXPECT_TRUE(fails_with(Hint::named("1F1B", hint), Code::kUnknownName,
                         {"\"1F1B\"", "gpipe", "1f1b", "bf", "bfw", "zb-h1"}));
  EXPECT_TRUE(fails_with(Hint::named("", hint), Code::kUnknownName, {"\"\""}));
  EXPECT_EQ(hint, nullptr);
}

TEST(NamedSchedules, GroupSizes) {
  const auto hint = named_hint("interleaved:3");
  EXPECT_EQ(hint->name(), "interleaved:3");
  EXPECT_EQ(named_hint("interleaved-zb:16777216")->name(), "interleaved-zb:16777216");
  EXPECT_NE(hint->digest(), named_hint("interleaved")->digest());
  EXPECT_NE(hint->digest(), named_hint("interleaved:4")->digest());
  EXPECT_EQ(hint->digest(), named_hint("interleaved:3")->digest());
}

TEST(NamedSchedules, BadGroupSizes) {
  std::shared_ptr<const Hint> hint;
  for (const std::string group : {"", "0", "-1", "+3", "03", " 3", "3 ", "3x", "3:4", "3.0", "x",
                                  "16777217", "4294967299", "99999999999999999999"}) {
    const std::string name = "interleaved:" + group;
    EXPECT_TRUE(fails_with(Hint::named(name, hint), Code::kUnknownName,
                           {"\"" + name + "\"", "group size", "\"" + group + "\"", "from 1 to"}));
  }
  for (const std::string name : {"gpipe:3", "zb-v:1", "bf:", "looped-bfs:2"}) {
    EXPECT_TRUE(fails_with(Hint::named(name, hint), Code::kUnknownName,
                           {"\"" + name + "\"", "only interleaved and interleaved-zb"}));
  }
  EXPECT_TRUE(fails_with(Hint::named("inter:3", hint), Code::kUnknownName, {"unknown", "inter:3"}));
  EXPECT_TRUE(fails_with(Hint::named(":3", hint), Code::kUnknownName, {"unknown", "\":3\""}));
  EXPECT_EQ(hint, nullptr);
}

// --- Exact lists

TEST(NamedSchedules, Golden1F1B) {
  EXPECT_EQ(rows_of("1f1b", *make_step(chain(4), 2)),
            (Rows{"0F0,0F1,0B0,0B1", "1F0,1F1,1B0,1B1", "2F0,2F1,2B0,2B1", "3F0,3B0,3F1,3B1"}));
}

TEST(NamedSchedules, GoldenGpipe) {
  EXPECT_EQ(rows_of("gpipe", *make_step(chain(2), 3)),
            (Rows{"0F0,0F1,0F2,0B0,0B1,0B2", "1F0,1F1,1F2,1B0,1B1,1B2"}));
}

TEST(NamedSchedules, GoldenZeroBubbleH1) {
  EXPECT_EQ(rows_of("zb-h1", *make_step(chain(3), 4)),
            (Rows{"0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3",
                  "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3",
                  "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3"}));
}

TEST(NamedSchedules, GoldenOneRank) {
  const auto tasks = make_step(chain(1), 3);
  EXPECT_EQ(rows_of("1f1b", *tasks), Rows{"0F0,0B0,0F1,0B1,0F2,0B2"});
  EXPECT_EQ(rows_of("gpipe", *tasks), Rows{"0F0,0F1,0F2,0B0,0B1,0B2"});
  EXPECT_EQ(rows_of("zb-h1", *tasks), Rows{"0F0,0I0,0W0,0F1,0I1,0W1,0F2,0I2,0W2"});
}

TEST(NamedSchedules, GoldenPriorities) {
  const auto tasks = make_step(chain(1, 2, Placement::kLoop), 2);
  EXPECT_EQ(rows_of("bf", *tasks), Rows{"1B0,0B0,1B1,0B1,1F0,0F0,1F1,0F1"});
  EXPECT_EQ(rows_of("bfw", *tasks), Rows{"1I0,0I0,1I1,0I1,1F0,0F0,1F1,0F1,1W0,0W0,1W1,0W1"});
}

TEST(NamedSchedules, ForwardOnly) {
  const auto tasks = make_step(chain(2), 3, StepMode::kForwardOnly);
  for (std::string_view name : Hint::general_names()) {
    EXPECT_EQ(rows_of(name, *tasks), (Rows{"0F0,0F1,0F2", "1F0,1F1,1F2"})) << name;
  }
}

TEST(NamedSchedules, FrozenStagesHaveNoWeightGradient) {
  std::vector<Stage> stages(3);
  stages[0].frozen = true;
  stages[2].frozen = true;
  const auto tasks = make_step(sealed(chain_of(3, stages, Placement::kLinear)), 2);
  EXPECT_EQ(rows_of("1f1b", *tasks), (Rows{"0F0,0F1", "1F0,1F1,1B0,1B1", "2F0,2I0,2F1,2I1"}));
  EXPECT_EQ(rows_of("zb-h1", *tasks),
            (Rows{"0F0,0F1", "1F0,1F1,1I0,1I1,1W0,1W1", "2F0,2I0,2F1,2I1"}));
  EXPECT_EQ(rows_of("bfw", *tasks),
            (Rows{"0F0,0F1", "1I0,1I1,1F0,1F1,1W0,1W1", "2I0,2I1,2F0,2F1"}));
}

TEST(NamedSchedules, SkippedPairsAreLeftOut) {
  StepShape shape;
  shape.microbatches = 3;
  shape.skip = {0, 1, 0, /**/ 0, 0, 0};
  const auto tasks = make_step(chain(2), shape);
  EXPECT_EQ(rows_of("1f1b", *tasks), (Rows{"0F0,0B0,0F2,0B2", "1F0,1B0,1F1,1B1,1F2,1B2"}));
}

// --- Closed forms

TEST(NamedSchedules, Linear) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
      const auto tasks = make_step(chain(p), m);
      for (int32_t r = 0; r < p; ++r) {
        SCOPED_TRACE("p " + std::to_string(p) + ", m " + std::to_string(m) + ", rank " +
                     std::to_string(r));
        const auto order = [&](std::string_view name) {
          return text_of(order_of(*named_hint(name), *tasks, r));
        };
        ASSERT_EQ(order("1f1b"), text_of(golden::one_f_one_b(p, r, m)));
        ASSERT_EQ(order("1f1b"), text_of(golden::one_f_one_b_by_clock(p, r, m)));
        ASSERT_EQ(order("zb-h1"), text_of(golden::zb_h1(p, r, m)));
        ASSERT_EQ(order("zb-h2"), text_of(golden::zb_h2(p, r, m)));
        ASSERT_EQ(order("gpipe"), text_of(golden::gpipe(r, m)));
      }
    }
  }
}

// --- Any graph

/// The tasks of a rank in the step, each as B (or I) or as I and W.
std::map<Task, int> expected_tasks(const StepTasks& tasks, int32_t rank, bool split) {
  std::map<Task, int> expected;
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    if (tasks.graph().stage(StageId(s)).rank.value != rank) continue;
    for (int32_t i = 0; i < tasks.microbatches(); ++i) {
      const auto add = [&](TaskKind kind) { expected[task_of(s, kind, i)] = 1; };
      if (tasks.takes_part(StageId(s), MicrobatchId(i))) add(TaskKind::kForward);
      if (!tasks.backward(StageId(s), MicrobatchId(i))) continue;
      const bool weight = tasks.weight(StageId(s), MicrobatchId(i));
      add(weight && !split ? TaskKind::kBackward : TaskKind::kInputGradient);
      if (weight && split) add(TaskKind::kWeightGradient);
    }
  }
  return expected;
}

void expect_before(const std::map<Task, size_t>& at, const Task& first, TaskKind then) {
  Task second = first;
  second.kind = then;
  if (at.count(first) == 0 || at.count(second) == 0) return;
  ASSERT_LT(at.at(first), at.at(second)) << to_string(first) << " before " << to_string(second);
}

TEST(NamedSchedules, EachTaskOnceAndInALegalOrder) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const auto graph = sealed(random_graph(random));
    const auto tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(6)));
    for (std::string_view name : Hint::general_names()) {
      const bool split = name == "bfw" || name == "zb-h1" || name == "zb-h2";
      const bool ranks_only = name == "bf" || name == "bfw";
      for (int32_t r = 0; r < graph->ranks(); ++r) {
        SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
        const std::vector<Task> order = order_of(*named_hint(name), *tasks, r);
        std::map<Task, int> found;
        std::map<Task, size_t> at;
        for (size_t k = 0; k < order.size(); ++k) {
          ++found[order[k]];
          at[order[k]] = k;
        }
        ASSERT_EQ(found, expected_tasks(*tasks, r, split)) << text_of(order);
        for (const Task& task : order) {
          if (task.kind == TaskKind::kForward && !ranks_only) {
            expect_before(at, task, TaskKind::kBackward);
            expect_before(at, task, TaskKind::kInputGradient);
          }
          if (task.kind == TaskKind::kInputGradient) {
            expect_before(at, task, TaskKind::kWeightGradient);
          }
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(NamedSchedules, BackwardFirstKeys) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto graph = sealed(random_graph(random));
    const auto tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(6)));
    for (const std::string_view name : {"bf", "bfw"}) {
      // Input gradients and whole backwards, then forwards, then weight gradients.
      const auto key = [](const Task& t) {
        const int group = t.kind == TaskKind::kForward          ? 1
                          : t.kind == TaskKind::kWeightGradient ? 2
                                                                : 0;
        return std::tuple(group, t.microbatch.value, -t.stage.value);
      };
      for (int32_t r = 0; r < graph->ranks(); ++r) {
        const std::vector<Task> order = order_of(*named_hint(name), *tasks, r);
        for (size_t k = 1; k < order.size(); ++k) {
          ASSERT_LT(key(order[k - 1]), key(order[k])) << name << ": " << text_of(order);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::core
