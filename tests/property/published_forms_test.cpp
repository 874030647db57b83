// SPDX-License-Identifier: Apache-2.0
//
// The published schedules: what must hold for every generator and every size (each task once, local
// dependencies, no stall, schedule text and lowering), and their closed forms for makespan and
// memory. F, I and W take one unit each unless said otherwise, B takes two; messages are instant.
// Figures of single schedules are in published_figures_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/plan.h"
#include "engine/core/schedule_check.h"
#include "engine/core/schedule_lowering.h"
#include "engine/core/schedule_text.h"
#include "tests/support/unit_replay.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/schedules_golden.h"

namespace rrfp::test {
namespace {

using namespace core::fixtures;
using core::Hint;
using core::Placement;
using core::RankId;
using core::Status;
using core::StepTasks;
using core::Task;
using core::TaskKind;
using Lists = std::vector<std::vector<Task>>;
using TasksPtr = std::shared_ptr<const StepTasks>;

constexpr int32_t kRanksMax = 8;
constexpr int32_t kMicrobatchesMax = 24;
constexpr int32_t kChunksMax = 3;

struct Case {
  std::string name;
  int32_t p = 1;
  int32_t v = 1;
  int32_t m = 1;
  TasksPtr tasks;
  Lists lists;

  [[nodiscard]] std::string text() const {
    return name + ", p=" + std::to_string(p) + " v=" + std::to_string(v) +
           " m=" + std::to_string(m);
  }
  /// What each rank computes.
  [[nodiscard]] int64_t work() const { return int64_t{3} * m * v; }
};

Status order_all(std::string_view name, const StepTasks& tasks, Lists& lists) {
  const auto hint = named_hint(name);
  lists.assign(static_cast<size_t>(tasks.graph().ranks()), {});
  for (size_t r = 0; r < lists.size(); ++r) {
    if (Status s = hint->order(tasks, RankId::of(r), lists[r]); !s.ok()) return s;
  }
  return {};
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The step on which the schedule is defined for p, v and m; null if it is not.
TasksPtr step_for(std::string_view name, int32_t p, int32_t v, int32_t m) {
  if (is_one_of(name, {"zb-v", "v-half", "v-min", "dualpipe-v"})) {
    if (v != 2 || (name == "dualpipe-v" && m < 2 * p)) return nullptr;
    return make_step(chain(p, 2, Placement::kV), m);
  }
  if (name == "dualpipe") {
    if (v != 1 || p % 2 != 0 || m % 2 != 0 || m < 2 * p) return nullptr;
    return make_dual_step(p, m);
  }
  return make_step(chain(p, v, Placement::kLoop), m);
}

/// Calls visit(case) for every schedule that can be obeyed strictly and every size.
void for_each_case(const std::function<void(const Case&)>& visit) {
  for (const std::string_view name : Hint::names()) {
    if (name == "bf" || name == "bfw") continue;  // priorities, not orders
    int32_t count = 0;
    for (int32_t p = 1; p <= kRanksMax; ++p) {
      for (int32_t v = 1; v <= kChunksMax; ++v) {
        for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
          Case c = {std::string(name), p, v, m, step_for(name, p, v, m), {}};
          if (c.tasks == nullptr) continue;
          const Status status = order_all(name, *c.tasks, c.lists);
          if (!status.ok()) {
            // Only the interleaved schedules may refuse, for want of a legal group size, and the
            // text names one that will do.
            ASSERT_TRUE(name.starts_with("interleaved") && m % std::max(1, m / p) != 0)
                << c.text() << ": " << status.text();
            const size_t at = status.text().rfind(std::string(name) + ":");
            ASSERT_NE(at, std::string::npos) << status.text();
            c.name = status.text().substr(at, status.text().find('"', at) - at);
            const Status advised = order_all(c.name, *c.tasks, c.lists);
            ASSERT_TRUE(advised.ok()) << c.text() << ": " << advised.text();
          }
          ++count;
          visit(c);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
    EXPECT_GT(count, 20) << name;
  }
}

// --- c.12, 1 and 2

TEST(PublishedSchedules, EachTaskOnceAndAfterWhatItNeedsOnItsRank) {
  for_each_case([](const Case& c) {
    size_t count = 0;
    std::map<Task, size_t> at;
    for (size_t r = 0; r < c.lists.size(); ++r) {
      for (const Task& task : c.lists[r]) {
        ASSERT_TRUE(at.emplace(task, count++).second) << c.text() << ": " << to_string(task);
        ASSERT_EQ(c.tasks->graph().stage(task.stage).rank, RankId::of(r)) << c.text();
      }
    }
    size_t pairs = 0;
    for (int32_t s = 0; s < c.tasks->graph().stage_count(); ++s) {
      for (int32_t i = 0; i < c.m; ++i) {
        if (!c.tasks->takes_part(core::StageId(s), core::MicrobatchId(i))) continue;
        ++pairs;
        const auto f = at.find(task_of(s, TaskKind::kForward, i));
        const auto b = at.find(task_of(s, TaskKind::kBackward, i));
        const auto in = at.find(task_of(s, TaskKind::kInputGradient, i));
        const auto w = at.find(task_of(s, TaskKind::kWeightGradient, i));
        ASSERT_NE(f, at.end()) << c.text();
        if (b != at.end()) {
          ASSERT_TRUE(in == at.end() && w == at.end()) << c.text();
          ASSERT_LT(f->second, b->second) << c.text();
          count -= 1;
        } else {
          ASSERT_TRUE(in != at.end() && w != at.end()) << c.text();
          ASSERT_LT(f->second, in->second) << c.text();
          ASSERT_LT(in->second, w->second) << c.text();
          count -= 2;
        }
      }
    }
    ASSERT_EQ(count, pairs) << c.text();
  });
}

// --- c.12, 3 and 4

/// Peak by rank, where it is stated; -1 elsewhere.
int64_t stated_peak(const Case& c, int32_t r) {
  const int32_t p = c.p;
  if (c.name == "gpipe" || c.name == "looped-bfs") return c.m * c.v;
  if (c.v == 1 && is_one_of(c.name, {"1f1b", "interleaved"})) return std::min(c.m, p - r);
  if (c.name == "zb-h1" && c.v == 1 && c.m >= p) return p;
  if (c.name == "zb-h2" && c.v == 1 && c.m >= 2 * p - 1) return 2 * p - 1;
  if (c.name == "interleaved" && c.v > 1 && c.m % p == 0) {
    return std::min(c.m * c.v, (c.v - 1) * p + 2 * (p - 1 - r) + 1);
  }
  if (c.name == "interleaved-zb" && c.m % p == 0) return std::min(c.m * c.v, p * c.v);
  if (c.name == "zb-v" && c.m >= 2 * p - 1) return 2 * p;
  if (c.name == "dualpipe-v") return 2 * p + 1;
  if (c.name == "dualpipe") return p + 1;
  return -1;
}

/// Makespan less the work of a rank, where it is stated; -1 elsewhere.
int64_t stated_bubble(const Case& c) {
  const int32_t p = c.p;
  const int64_t late = p - 1;
  if (c.v == 1 && is_one_of(c.name, {"gpipe", "1f1b", "interleaved"})) return 3 * late;
  if (c.name == "zb-h1" && c.v == 1 && c.m >= p) return late;
  if (c.name == "zb-h2" && c.v == 1 && c.m >= 2 * p - 1) return late;
  if (c.name == "interleaved" && c.m % p == 0) return 3 * late;
  if (c.name == "interleaved-zb" && c.m % p == 0) return late;
  if (c.name == "looped-bfs" && c.m >= p) return 3 * late;
  if (c.name == "zb-v" && c.m >= 2 * p - 1) return late;
  if (c.name == "dualpipe-v") return late;
  if (c.name == "dualpipe") return p / 2 - 1;
  return -1;
}

TEST(PublishedSchedules, NeverStallAndReachTheirClosedForms) {
  for_each_case([](const Case& c) {
    const UnitReplay run = unit_replay(*c.tasks, c.lists);
    ASSERT_TRUE(run.done) << c.text() << ": " << run.stall;
    if (stated_bubble(c) >= 0) {
      ASSERT_EQ(run.makespan - c.work(), stated_bubble(c)) << c.text();
    }
    for (int32_t r = 0; r < c.p; ++r) {
      if (stated_peak(c, r) < 0) continue;
      ASSERT_EQ(run.peak[static_cast<size_t>(r)], stated_peak(c, r)) << c.text() << " r=" << r;
    }
    // "Zero bubble": from the first task to the last no rank ever waits.
    if ((c.name == "zb-v" && c.m >= 2 * c.p - 1) ||
        (c.name == "zb-h2" && c.v == 1 && c.m >= 2 * c.p - 1)) {
      for (const int64_t span : run.span) ASSERT_EQ(span, c.work()) << c.text();
    }
  });
}

TEST(PublishedSchedules, NeverStallWithOtherCosts) {
  for_each_case([](const Case& c) {
    for (const UnitCosts costs : {UnitCosts{1, 3, 2}, UnitCosts{7, 2, 1}}) {
      ASSERT_TRUE(unit_replay(*c.tasks, c.lists, costs).done) << c.text();
    }
  });
}

// The engine's own opinion, on fewer sizes because it replays with whole rank cores.
TEST(PublishedSchedules, CanBeObeyedStrictly) {
  for_each_case([](const Case& c) {
    if (c.p > 4 || c.m > 12) return;
    const Status status = core::check_strict(c.tasks, *named_hint(c.name), {}, {});
    ASSERT_TRUE(status.ok()) << c.text() << ": " << status.text();
  });
}

// --- c.12, 5

TEST(PublishedSchedules, TextAndLoweringComeBack) {
  for_each_case([](const Case& c) {
    if (c.m > 12) return;
    Lists again;
    std::string note;
    Status status = core::parse_schedule_text(core::print_schedule_text(c.lists), again, note);
    ASSERT_TRUE(status.ok()) << c.text() << ": " << status.text();
    ASSERT_EQ(again, c.lists) << c.text();
    ASSERT_EQ(note, "") << c.text();
    if (c.name == "dualpipe") return;  // half of the microbatches pass each stage, in two chains
    status = core::validate_schedule(c.lists, c.p, c.m);
    ASSERT_TRUE(status.ok()) << c.text() << ": " << status.text();
    for (const core::LoweringOptions options :
         {core::LoweringOptions{false, false}, core::LoweringOptions{true, true}}) {
      std::vector<std::vector<core::Action>> lowered;
      status = core::lower_schedule(c.lists, options, lowered);
      ASSERT_TRUE(status.ok()) << c.text() << ": " << status.text();
      status = core::parse_schedule_text(core::print_schedule_actions(lowered), again, note);
      ASSERT_TRUE(status.ok()) << c.text() << ": " << status.text();
      ASSERT_EQ(again, c.lists) << c.text();
    }
  });
}

// --- c.12, 6

TEST(PublishedSchedules, OneRankIsAPlainLoop) {
  for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
    const TasksPtr tasks = make_step(chain(1), m);
    for (const std::string_view name :
         {"1f1b", "interleaved", "zb-h1", "zb-h2", "interleaved-zb"}) {
      std::string loop;
      for (int32_t i = 0; i < m; ++i) {
        const std::string n = std::to_string(i);
        loop += (i == 0 ? "" : ",");
        loop += name.starts_with("zb") || name.ends_with("zb") ? "0F" + n + ",0I" + n + ",0W" + n
                                                               : "0F" + n + ",0B" + n;
      }
      EXPECT_EQ(text_of(order_of(*named_hint(name), *tasks, 0)), loop) << name;
    }
    EXPECT_EQ(order_of(*named_hint("looped-bfs"), *tasks, 0).size(), static_cast<size_t>(2 * m));
  }
  const TasksPtr folded = make_step(chain(1, 2, Placement::kV), 2);
  const auto order = [&](std::string_view name) {
    return text_of(order_of(*named_hint(name), *folded, 0));
  };
  EXPECT_EQ(order("zb-v"), "0F0,1F0,1I0,1W0,0F1,0I0,0W0,1F1,1I1,1W1,0I1,0W1");
  EXPECT_EQ(order("v-half"), "0F0,1F0,1I0,1W0,0I0,0W0,0F1,1F1,1I1,1W1,0I1,0W1");
  EXPECT_EQ(order("v-min"), "0F0,1F0,1I0,0I0,1W0,0W0,0F1,1F1,1I1,0I1,1W1,0W1");
}

// --- One chunk a rank: the plain forms

TEST(PublishedSchedules, OneChunkIsThePlainForm) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
      const TasksPtr tasks = make_step(chain(p), m);
      Lists one, two;
      for (const auto& [general, looped] :
           {std::pair{"1f1b", "interleaved"}, std::pair{"zb-h1", "interleaved-zb"}}) {
        require(order_all(general, *tasks, one));
        require(order_all(looped, *tasks, two));
        ASSERT_EQ(one, two) << looped << " p=" << p << " m=" << m;
      }
      require(order_all("zb-h2", *tasks, one));
      for (int32_t r = 0; r < p; ++r) {
        ASSERT_EQ(text_of(one[static_cast<size_t>(r)]), text_of(core::golden::zb_h2(p, r, m)));
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::test
