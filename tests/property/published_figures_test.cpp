// SPDX-License-Identifier: Apache-2.0
//
// Figures of single published schedules: group sizes, memory on a V, overlapping pairs, and the
// makespans for 16 ranks. F, I and W take one unit each unless said otherwise, B takes two;
// messages are instant.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/unit_replay.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/schedules_golden.h"

namespace rrfp::test {
namespace {

using namespace core::fixtures;
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

Status order_all(std::string_view name, const StepTasks& tasks, Lists& lists) {
  const auto hint = named_hint(name);
  lists.assign(static_cast<size_t>(tasks.graph().ranks()), {});
  for (size_t r = 0; r < lists.size(); ++r) {
    if (Status s = hint->order(tasks, RankId::of(r), lists[r]); !s.ok()) return s;
  }
  return {};
}

// --- Interleaved: the second writing, and odd numbers of microbatches

TEST(PublishedFigures, InterleavedIsWhatTheTableSays) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t v = 2; v <= kChunksMax; ++v) {
      for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
        const TasksPtr tasks = make_step(chain(p, v, Placement::kLoop), m);
        for (int32_t g = 1; g <= m + 1; ++g) {
          const bool legal = g == m || (p <= g && g <= m && (m % g == 0 || m % g >= p));
          Lists lists;
          const Status status = order_all("interleaved:" + std::to_string(g), *tasks, lists);
          ASSERT_EQ(status.ok(), legal) << "p=" << p << " m=" << m << " g=" << g;
          if (!legal) continue;
          for (int32_t r = 0; r < p; ++r) {
            ASSERT_EQ(lists[static_cast<size_t>(r)], core::golden::interleaved(p, v, r, m, g));
          }
          ASSERT_TRUE(unit_replay(*tasks, lists).done) << "p=" << p << " m=" << m << " g=" << g;
          require(order_all("interleaved-zb:" + std::to_string(g), *tasks, lists));
          ASSERT_TRUE(unit_replay(*tasks, lists).done) << "p=" << p << " m=" << m << " g=" << g;
        }
      }
    }
  }
}

TEST(PublishedFigures, InterleavedWithOddNumbersOfMicrobatches) {
  for (const auto& [m, makespan] : {std::pair{10, 69}, std::pair{3, 30}}) {
    const TasksPtr tasks = make_step(chain(4, 2, Placement::kLoop), m);
    Lists lists;
    require(order_all("interleaved", *tasks, lists));
    EXPECT_EQ(unit_replay(*tasks, lists).makespan, makespan);
  }
}

// --- ZB-V below its size

TEST(PublishedFigures, ZeroBubbleVWithFewMicrobatches) {
  const TasksPtr tasks = make_step(chain(4, 2, Placement::kV), 4);
  Lists lists;
  require(order_all("zb-v", *tasks, lists));
  const UnitReplay run = unit_replay(*tasks, lists);
  EXPECT_EQ(*std::max_element(run.span.begin(), run.span.end()), 30);
}

// --- V-Half and V-Min: memory and bubble against 1F1B

// 1F1B keeps 2p chunks of this size on rank 0 and has a bubble of 6(p - 1).
TEST(PublishedFigures, VHalfKeepsHalfAndVMinAThird) {
  for (const int32_t p : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24}) {
    for (const int32_t m : {2 * p, 3 * p + 1, 6 * p}) {
      const TasksPtr tasks = make_step(chain(p, 2, Placement::kV), m);
      const auto measure = [&](std::string_view name) {
        Lists lists;
        require(order_all(name, *tasks, lists));
        return unit_replay(*tasks, lists);
      };
      const auto largest = [](const UnitReplay& run) {
        return *std::max_element(run.peak.begin(), run.peak.end());
      };
      const UnitReplay half = measure("v-half");
      const UnitReplay third = measure("v-min");
      EXPECT_LE(largest(half), 2 * (p / 2 + 1)) << "p=" << p << " m=" << m;
      EXPECT_LE(largest(third), 2 * ((p + 4) / 3)) << "p=" << p << " m=" << m;
      if (m == 6 * p) {
        EXPECT_EQ(largest(half), 2 * (p / 2 + 1)) << "p=" << p;
        EXPECT_EQ(largest(third), 2 * ((p + 4) / 3)) << "p=" << p;
      }
      // The papers say 3(p - 1) and, with some overhead, 4(p - 1).
      EXPECT_LE(half.makespan - 6 * m, 3 * (p - 1) + p / 3 + 1) << "p=" << p << " m=" << m;
      const int64_t overhead = p % 3 == 0 ? 1 : p == 1 ? 0 : -1;
      EXPECT_EQ(third.makespan - 6 * m, 4 * (p - 1) + overhead) << "p=" << p << " m=" << m;
    }
  }
}

// --- DualPipe with forwards and backwards that overlap

struct DualCase {
  TasksPtr tasks;
  std::vector<core::golden::Cells> rows;
};

/// Makespan less what the rank computes.
int64_t bubble_of(const DualCase& c, size_t rank, const UnitCosts& costs) {
  const UnitReplay run = unit_replay(*c.tasks, c.rows, costs);
  EXPECT_TRUE(run.done) << run.stall;
  int64_t work = 0;
  for (const auto& cell : c.rows[rank]) {
    const bool whole = cell.front().kind == TaskKind::kBackward;
    work += cell.size() == 2 ? costs.pair : whole ? 20 : 10;
  }
  return run.makespan - work;
}

// In tenths of a unit. The published bubble is that of the ranks in the middle, which have the
// most pairs.
TEST(PublishedFigures, DualPipeVWithOverlap) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 2 * p; m <= kMicrobatchesMax; ++m) {
      DualCase c = {make_step(chain(p, 2, Placement::kV), m), {}};
      for (int32_t r = 0; r < p; ++r) c.rows.push_back(core::golden::dualpipe_v(p, r, m));
      Lists lists;
      require(order_all("dualpipe-v", *c.tasks, lists));
      ASSERT_EQ(core::golden::flat(c.rows), lists) << "p=" << p << " m=" << m;
      for (const int64_t pair : {30, 24}) {
        EXPECT_EQ(bubble_of(c, static_cast<size_t>(p - 1), {10, 10, 10, pair}),
                  (p - 1) * (pair + 20 - 30))
            << "p=" << p << " m=" << m;
      }
    }
  }
}

TEST(PublishedFigures, DualPipeWithOverlap) {
  for (int32_t p = 2; p <= kRanksMax; p += 2) {
    for (int32_t m = 2 * p; m <= kMicrobatchesMax; m += 2) {
      DualCase c = {make_dual_step(p, m), {}};
      for (int32_t r = 0; r < p; ++r) c.rows.push_back(core::golden::dualpipe(p, r, m));
      Lists lists;
      require(order_all("dualpipe", *c.tasks, lists));
      ASSERT_EQ(core::golden::flat(c.rows), lists) << "p=" << p << " m=" << m;
      for (const int64_t pair : {30, 24}) {
        EXPECT_EQ(bubble_of(c, static_cast<size_t>(p / 2 - 1), {10, 10, 10, pair}),
                  (p / 2 - 1) * (pair + 20 - 30))
            << "p=" << p << " m=" << m;
      }
    }
  }
}

// --- 16 ranks, 64 microbatches, tasks of 10 ms

TEST(PublishedFigures, SixteenRanks) {
  const auto makespan = [](std::string_view name, int32_t chunks, int64_t unit) {
    const TasksPtr tasks = make_step(chain(16, chunks, Placement::kLoop), 64);
    Lists lists;
    require(order_all(name, *tasks, lists));
    return unit_replay(*tasks, lists, {unit, unit, unit}).makespan;
  };
  EXPECT_EQ(makespan("gpipe", 1, 10), 2370);
  EXPECT_EQ(makespan("1f1b", 1, 10), 2370);
  EXPECT_EQ(makespan("interleaved", 2, 5), 2145);
  EXPECT_EQ(makespan("zb-h1", 1, 10), 2070);
}

}  // namespace
}  // namespace rrfp::test
