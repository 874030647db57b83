// SPDX-License-Identifier: Apache-2.0
//
// Schedules whose makespan and memory are known exactly, on a pipeline with equal costs and instant
// messages. F, I and W take one unit each unless said otherwise, B takes two.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/rank_core.h"
#include "tests/support/chains.h"

namespace rrfp::test {
namespace {

using core::Cap;
using core::Hint;
using core::MicrobatchId;
using core::Order;
using core::Placement;
using core::StageId;
using core::Task;
using core::TaskKind;

constexpr int32_t kRanksMax = 8;
constexpr int32_t kMicrobatchesMax = 24;

VirtualPipeline chain(int32_t ranks, int32_t chunks, int32_t microbatches, std::string_view hint,
                      Order order, Placement placement = Placement::kLoop) {
  VirtualPipeline setup;
  setup.tasks = chain_of(std::vector<core::Stage>(static_cast<size_t>(ranks * chunks)), ranks,
                         microbatches, placement);
  setup.hint = named_hint(hint);
  setup.policy.order = order;
  setup.timing = Timing::steady(1, 1, 1);
  return setup;
}

/// c.2, written out as the text says it.
std::vector<Task> one_f_one_b(int32_t ranks, int32_t rank, int32_t m) {
  std::vector<Task> order;
  const auto add = [&](TaskKind kind, int32_t i) {
    order.push_back({StageId(rank), MicrobatchId(i), kind});
  };
  const int32_t w = std::min(m, ranks - 1 - rank);
  for (int32_t i = 0; i < w; ++i) add(TaskKind::kForward, i);
  for (int32_t j = 0; j < m - w; ++j) {
    add(TaskKind::kForward, w + j);
    add(TaskKind::kBackward, j);
  }
  for (int32_t i = m - w; i < m; ++i) add(TaskKind::kBackward, i);
  return order;
}

/// c.5, likewise.
std::vector<Task> zero_bubble_h1(int32_t ranks, int32_t rank, int32_t m) {
  std::vector<Task> order;
  const auto add = [&](TaskKind kind, int32_t i) {
    order.push_back({StageId(rank), MicrobatchId(i), kind});
  };
  const int32_t w = std::min(m, ranks - 1 - rank);
  for (int32_t i = 0; i < w; ++i) add(TaskKind::kForward, i);
  for (int32_t j = 0; j < m; ++j) {
    if (w + j < m) add(TaskKind::kForward, w + j);
    add(TaskKind::kInputGradient, j);
    if (j >= rank) add(TaskKind::kWeightGradient, j - rank);
  }
  for (int32_t i = std::max(0, m - rank); i < m; ++i) add(TaskKind::kWeightGradient, i);
  return order;
}

TEST(ClosedForms, Gpipe) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
      const VirtualResult run = run_virtual(chain(p, 1, m, "gpipe", Order::kStrict));
      ASSERT_TRUE(run.ok) << run.error;
      EXPECT_EQ(run.makespan_ns, (m + p - 1) * 3) << "p=" << p << " m=" << m;
      for (const RankRecord& rank : run.ranks) EXPECT_EQ(rank.peak.slots, m);
    }
  }
}

TEST(ClosedForms, OneForwardOneBackward) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
      const VirtualResult run = run_virtual(chain(p, 1, m, "1f1b", Order::kStrict));
      ASSERT_TRUE(run.ok) << run.error;
      EXPECT_EQ(run.makespan_ns, (m + p - 1) * 3) << "p=" << p << " m=" << m;
      for (int32_t r = 0; r < p; ++r) {
        const RankRecord& rank = run.ranks[static_cast<size_t>(r)];
        EXPECT_EQ(rank.peak.slots, std::min(m, p - r)) << "p=" << p << " m=" << m << " r=" << r;
        EXPECT_EQ(text_of(tasks_of(rank)), text_of(one_f_one_b(p, r, m)));
      }
    }
  }
}

TEST(ClosedForms, ZeroBubbleH1) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
      const VirtualResult run = run_virtual(chain(p, 1, m, "zb-h1", Order::kStrict));
      ASSERT_TRUE(run.ok) << run.error;
      if (m >= p) {
        EXPECT_EQ(run.makespan_ns, 3 * m + p - 1) << "p=" << p << " m=" << m;
      }
      for (int32_t r = 0; r < p; ++r) {
        const RankRecord& rank = run.ranks[static_cast<size_t>(r)];
        if (m >= p) {
          EXPECT_EQ(rank.peak.slots, p) << "p=" << p << " m=" << m << " r=" << r;
        }
        EXPECT_EQ(text_of(tasks_of(rank)), text_of(zero_bubble_h1(p, r, m)));
      }
    }
  }
}

/// c.12, item 3: whatever the number of chunks, complete orders can be obeyed.
TEST(ClosedForms, StrictOrdersNeverStall) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
      for (std::string_view hint : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
        for (int32_t v = 1; v <= 3; ++v) {
          const VirtualResult run = run_virtual(chain(p, v, m, hint, Order::kStrict));
          ASSERT_TRUE(run.ok) << hint << " p=" << p << " m=" << m << " v=" << v << run.error;
        }
        const VirtualResult run = run_virtual(chain(p, 2, m, hint, Order::kStrict, Placement::kV));
        ASSERT_TRUE(run.ok) << hint << " p=" << p << " m=" << m << " V" << run.error;
      }
    }
  }
}

/// CASES 1: fewer microbatches than stages.
TEST(ClosedForms, FewerMicrobatchesThanStages) {
  for (int32_t m = 1; m <= 3; ++m) {
    for (const Order order : {Order::kStrict, Order::kReady}) {
      const VirtualResult run = run_virtual(chain(4, 1, m, "1f1b", order));
      ASSERT_TRUE(run.ok) << run.error;
      EXPECT_EQ(run.makespan_ns, (m + 3) * 3) << "m=" << m;
    }
  }
}

/// CASES 3: as many microbatches as stages.
TEST(ClosedForms, AsManyMicrobatchesAsStages) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (std::string_view hint : Hint::general_names()) {
      for (const int64_t slots : {0, 1}) {
        VirtualPipeline setup = chain(p, 1, p, hint, Order::kReady);
        setup.caps.assign(static_cast<size_t>(p), Cap{slots, 0});
        const VirtualResult run = run_virtual(setup);
        EXPECT_TRUE(run.ok) << hint << " p=m=" << p << ": " << run.error;
      }
    }
  }
}

/// c.10: with steady costs and the memory of 1F1B, backward-first readiness is 1F1B.
TEST(ClosedForms, BackwardFirstReproducesOneForwardOneBackward) {
  for (int32_t p = 1; p <= kRanksMax; ++p) {
    for (int32_t m = 1; m <= kMicrobatchesMax; ++m) {
      VirtualPipeline setup = chain(p, 1, m, "bf", Order::kReady);
      for (int32_t r = 0; r < p; ++r) setup.caps.push_back({p - r, 0});
      const VirtualResult run = run_virtual(setup);
      ASSERT_TRUE(run.ok) << run.error;
      EXPECT_EQ(run.makespan_ns, (m + p - 1) * 3) << "p=" << p << " m=" << m;
      for (int32_t r = 0; r < p; ++r) {
        EXPECT_EQ(text_of(tasks_of(run.ranks[static_cast<size_t>(r)])),
                  text_of(one_f_one_b(p, r, m)));
      }
    }
  }
}

// --- CASES 16

/// c.3: interleaved 1F1B with groups of `g` microbatches, which is not legal for g < p.
std::shared_ptr<const Hint> interleaved(int32_t p, int32_t v, int32_t m, int32_t g) {
  std::vector<std::pair<int32_t, int32_t>> table;  // chunk, microbatch
  for (int32_t first = 0; first < m; first += g) {
    for (int32_t c = 0; c < v; ++c) {
      for (int32_t i = first; i < std::min(m, first + g); ++i) table.emplace_back(c, i);
    }
  }
  const int32_t n = m * v;
  std::vector<std::vector<Task>> lists;
  for (int32_t r = 0; r < p; ++r) {
    std::vector<Task>& list = lists.emplace_back();
    const auto forward = [&](int32_t k) {
      const auto [c, i] = table[static_cast<size_t>(k)];
      list.push_back({StageId(c * p + r), MicrobatchId(i), TaskKind::kForward});
    };
    const auto backward = [&](int32_t k) {
      const auto [c, i] = table[static_cast<size_t>(k)];
      list.push_back({StageId((v - 1 - c) * p + r), MicrobatchId(i), TaskKind::kBackward});
    };
    const int32_t w = std::min(n, (v - 1) * g + 2 * (p - 1 - r));
    for (int32_t k = 0; k < w; ++k) forward(k);
    for (int32_t k = 0; k < n - w; ++k) forward(w + k), backward(k);
    for (int32_t k = n - w; k < n; ++k) backward(k);
  }
  std::shared_ptr<const Hint> hint;
  const core::Status status = Hint::lists(std::move(lists), hint);
  EXPECT_TRUE(status.ok()) << status.text();
  return hint;
}

VirtualPipeline interleaved_pipeline(int32_t g, Order order, int64_t slots) {
  VirtualPipeline setup = chain(4, 2, 8, "bf", order);
  setup.hint = interleaved(4, 2, 8, g);
  if (slots > 0) setup.caps.assign(4, Cap{slots, 0});
  return setup;
}

TEST(ClosedForms, Interleaved) {
  // A legal group size first, which shows that the order above is the published one.
  const VirtualResult run = run_virtual(interleaved_pipeline(4, Order::kStrict, 0));
  ASSERT_TRUE(run.ok) << run.error;
  EXPECT_EQ(run.makespan_ns, 8 * 2 * 3 + 3 * 3);  // m v (tF + tB) + (p-1)(tF + tB)
  for (int32_t r = 0; r < 4; ++r) {
    EXPECT_EQ(run.ranks[static_cast<size_t>(r)].peak.slots, std::min(16, 4 + 2 * (3 - r) + 1));
  }
}

TEST(ClosedForms, InterleavedWithSmallGroupsStrictly) {
  VirtualPipeline setup = interleaved_pipeline(2, Order::kStrict, 0);
  const core::Status status =
      core::check_strict(setup.tasks, *setup.hint, setup.policy, setup.caps);
  EXPECT_EQ(status.code(), core::Code::kBadOrder);
  for (const char* named :
       {"rank 0 waits at ", "rank 1 waits at ", "rank 2 waits at ", "rank 3 waits at "}) {
    EXPECT_NE(status.text().find(named), std::string::npos) << status.text();
  }
  const VirtualResult run = run_virtual(setup);
  EXPECT_TRUE(run.stalled) << run.error;
  EXPECT_EQ(run.error.find("stall at 18 ns"), 0u) << run.error;  // the time that CASES 16 gives
}

TEST(ClosedForms, InterleavedWithSmallGroupsByReadiness) {
  struct Expected {
    int32_t group;
    int64_t slots;
    int64_t makespan_max;
  };
  // CASES 16 gives 61 and 57 where memory is ample, and the engine reaches them. At a cap of 7
  // slots it gives 69 for g = 2 from a throw-away model; the engine takes 70, because it keeps a
  // reserve for deeper chunks (without that reserve: 62). The 65 is measured; g = 4 wants 11 slots
  // on rank 0, and reaches 57 from a cap of 9 on.
  for (const Expected& e : {Expected{2, 16, 61}, {4, 16, 57}, {2, 7, 70}, {4, 7, 65}}) {
    const VirtualResult run = run_virtual(interleaved_pipeline(e.group, Order::kReady, e.slots));
    ASSERT_TRUE(run.ok) << run.error;
    EXPECT_LE(run.makespan_ns, e.makespan_max) << "g=" << e.group << " cap " << e.slots;
    for (const RankRecord& rank : run.ranks) EXPECT_LE(rank.peak.slots, e.slots);
  }
}

// --- CASES 37

VirtualPipeline uneven_memory(const std::vector<Cap>& caps) {
  VirtualPipeline setup = chain(4, 1, 8, "bfw", Order::kReady);
  std::vector<core::Stage> stages(4);
  for (size_t s = 0; s < 4; ++s) stages[s].activation_bytes = std::array{4, 2, 2, 6}[s];
  setup.tasks = chain_of(stages, 4, 8, Placement::kLinear);
  setup.caps = caps;
  return setup;
}

TEST(ClosedForms, UnevenMemory) {
  const std::vector<Cap> caps = {{0, 12}, {0, 8}, {0, 8}, {0, 12}};
  const VirtualResult run = run_virtual(uneven_memory(caps));
  ASSERT_TRUE(run.ok) << run.error;
  for (size_t r = 0; r < caps.size(); ++r) {
    EXPECT_LE(run.ranks[r].peak.bytes, caps[r].bytes) << "rank " << r;
  }
  // BFW ranks W last. On rank 0 every F is ready from the beginning, so a W that starts before the
  // last F has started was chosen because the cap held that F back.
  const std::vector<Task> order = tasks_of(run.ranks[0]);
  const auto last_forward = std::find_if(order.rbegin(), order.rend(), [](const Task& t) {
                              return t.kind == TaskKind::kForward;
                            }).base();
  EXPECT_GT(std::count_if(order.begin(), last_forward,
                          [](const Task& t) { return t.kind == TaskKind::kWeightGradient; }),
            0)
      << text_of(order);
}

TEST(ClosedForms, CapBelowTheMinimum) {
  const VirtualResult run = run_virtual(uneven_memory({{0, 12}, {0, 8}, {0, 8}, {0, 5}}));
  EXPECT_FALSE(run.ok);
  EXPECT_EQ(run.code, core::Code::kCapTooSmall);
  EXPECT_NE(run.error.find("the minimum is 6"), std::string::npos) << run.error;
  EXPECT_NE(run.error.find("rank 3"), std::string::npos) << run.error;

  // Two chunks a rank need a slot each.
  VirtualPipeline setup = chain(2, 2, 4, "bf", Order::kReady);
  setup.caps = {{2, 0}, {1, 0}};
  const VirtualResult slots = run_virtual(setup);
  EXPECT_EQ(slots.code, core::Code::kCapTooSmall);
  EXPECT_NE(slots.error.find("the minimum is 2"), std::string::npos) << slots.error;
}

}  // namespace
}  // namespace rrfp::test
