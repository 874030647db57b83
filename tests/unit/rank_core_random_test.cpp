// SPDX-License-Identifier: Apache-2.0
//
// RankCore over whole random steps: every task and every counter exactly once, copies are
// snapshots, nothing is allocated. tests/property stresses the same with faults and time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/core/rank_core.h"
#include "tests/unit/count_allocations.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/rank_core_cluster.h"
#include "tests/unit/rank_core_text.h"
#include "tests/unit/schedules_golden.h"

namespace rrfp::core {
namespace {

using namespace fixtures;

Cluster cluster_of(const RandomStep& step) {
  return {step.tasks, *step.hint, step.policy, step.caps};
}

// --- Every task and every counter exactly once

/// What the commands of all ranks must add up to.
class Tally {
 public:
  explicit Tally(const RandomStep& step) : step_(step), tasks_(*step.tasks) {}

  void operator()(RankId rank, const Command& c) {
    switch (c.kind) {
      case Command::Kind::kRun:
        started_.push_back(c.task);
        ++count_["run " + to_string(c.task)];
        check_kind(c.task);
        break;
      case Command::Kind::kForget:
      case Command::Kind::kLosses:
      case Command::Kind::kStageGradients: ++count_[text_of(c)]; break;
      case Command::Kind::kStepComplete: ++count_["complete " + std::to_string(rank.value)]; break;
      default: break;
    }
    if (c.kind == Command::Kind::kForget) check_forget(c.task.stage, c.task.microbatch);
  }

  void check_all(std::span<const RankCore> cores) {
    for (int32_t s = 0; s < tasks_.graph().stage_count(); ++s) check_stage(StageId(s));
    for (size_t r = 0; r < cores.size(); ++r) {
      EXPECT_EQ(take("complete " + std::to_string(r)), cores[r].plan().order.empty() ? 0 : 1);
      EXPECT_EQ(cores[r].ledger().live(), Amount());
      EXPECT_TRUE(cores[r].ledger().peak().within(cores[r].plan().cap));
      EXPECT_EQ(cores[r].work_left(), 0);
    }
    EXPECT_TRUE(count_.empty()) << "also saw: " << count_.begin()->first;
  }

 private:
  int take(const std::string& what) {
    const auto at = count_.find(what);
    const int n = at == count_.end() ? 0 : at->second;
    if (at != count_.end()) count_.erase(at);
    return n;
  }

  void check_kind(const Task& task) const {
    const Stage& stage = tasks_.graph().stage(task.stage);
    if (!stage.fused_only) return;
    EXPECT_TRUE(task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward)
        << to_string(task) << " of a stage that cannot split";
  }

  void check_forget(StageId s, MicrobatchId i) const {
    const bool weight = tasks_.weight(s, i);
    const bool done = std::any_of(started_.begin(), started_.end(), [&](const Task& t) {
      if (t.stage != s || t.microbatch != i) return false;
      if (!tasks_.backward(s, i)) return t.kind == TaskKind::kForward;
      return t.kind == TaskKind::kBackward ||
             t.kind == (weight ? TaskKind::kWeightGradient : TaskKind::kInputGradient);
    });
    EXPECT_TRUE(done) << "forgotten before its last task: " << s.value << ":" << i.value;
  }

  void check_stage(StageId s) {
    int forwards = 0;
    int weights = 0;
    const auto name = [&](TaskKind kind, int32_t i) {
      return "run " + to_string(Task{s, MicrobatchId(i), kind});
    };
    for (int32_t i = 0; i < tasks_.microbatches(); ++i) {
      const MicrobatchId mb(i);
      const bool part = tasks_.takes_part(s, mb);
      const bool weight = tasks_.weight(s, mb);
      forwards += part ? 1 : 0;
      weights += weight ? 1 : 0;
      EXPECT_EQ(take(name(TaskKind::kForward, i)), part ? 1 : 0) << name(TaskKind::kForward, i);
      const int b = take(name(TaskKind::kBackward, i));
      const int ig = take(name(TaskKind::kInputGradient, i));
      const int wg = take(name(TaskKind::kWeightGradient, i));
      EXPECT_EQ(b + ig, tasks_.backward(s, mb) ? 1 : 0) << name(TaskKind::kBackward, i);
      if (!tasks_.graph().stage(s).fused_only) {
        EXPECT_EQ(b + wg, weight ? 1 : 0) << name(TaskKind::kWeightGradient, i);
      }
      EXPECT_EQ(take("forget " + std::to_string(s.value) + ":" + std::to_string(i)), part ? 1 : 0);
    }
    const bool loss = tasks_.graph().stage(s).loss;
    EXPECT_EQ(take("losses " + std::to_string(s.value)), loss && forwards > 0 ? 1 : 0);
    EXPECT_EQ(take("gradients " + std::to_string(s.value)), weights > 0 ? 1 : 0);
    if (step_.policy.deterministic) check_weight_order(s);
  }

  void check_weight_order(StageId s) const {
    int32_t last = -1;
    for (const Task& t : started_) {
      if (t.stage != s || !tasks_.weight(s, t.microbatch)) continue;
      if (t.kind != TaskKind::kBackward && t.kind != TaskKind::kWeightGradient) continue;
      EXPECT_GT(t.microbatch.value, last) << to_string(t) << " is out of injection order";
      last = t.microbatch.value;
    }
  }

  const RandomStep& step_;
  const StepTasks& tasks_;
  std::vector<Task> started_;
  std::map<std::string, int> count_;
};

void run_and_tally(const RandomStep& step, uint64_t seed) {
  Cluster cluster = cluster_of(step);
  cluster.begin_step();
  Tally tally(step);
  Random random(seed);
  while (cluster.advance(random, [&](RankId r, const Command& c) { tally(r, c); })) {
  }
  for (const RankCore& core : cluster.cores()) ASSERT_FALSE(core.failed()) << core.fault().text();
  ASSERT_TRUE(cluster.complete()) << "the step stalled";
  tally.check_all(cluster.cores());
}

TEST(RankCoreRandom, EveryTaskAndCounterOnce) {
  for (uint64_t seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run_and_tally(random_step(seed), seed);
  }
}

TEST(RankCoreRandom, AlsoInStrictOrder) {
  for (uint64_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStep step = random_step(seed);
    constexpr std::string_view kOrders[] = {"gpipe", "1f1b", "zb-h1"};
    step.hint = named_hint(kOrders[seed % 3]);
    step.policy.order = Order::kStrict;
    run_and_tally(step, seed);
  }
}

// --- Copies

std::vector<std::string> continue_and_log(Cluster& cluster, Random random) {
  std::vector<std::string> log;
  const auto observe = [&](RankId r, const Command& c) {
    log.push_back(std::to_string(r.value) + ": " + text_of(c));
  };
  while (cluster.advance(random, observe)) {
  }
  return log;
}

TEST(RankCoreRandom, ACopyIsASnapshot) {
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomStep step = random_step(seed);
    Cluster cluster = cluster_of(step);
    cluster.begin_step();
    Random random(seed);
    const auto ignore = [](RankId, const Command&) {};
    for (int k = random.below(60); k > 0 && cluster.advance(random, ignore);) --k;
    Cluster copy = cluster;
    Cluster second_copy(copy);
    const std::vector<std::string> log = continue_and_log(copy, random);
    EXPECT_EQ(continue_and_log(cluster, random), log) << "the copy must not have touched it";
    EXPECT_EQ(continue_and_log(second_copy, random), log);
    EXPECT_TRUE(cluster.complete());
  }
}

// --- Allocations

TEST(RankCoreRandom, NothingIsAllocatedDuringAStep) {
  const int64_t before_probe = allocation_count();
  ::operator delete(::operator new(1));  // a new-expression could be optimized away
  ASSERT_GT(allocation_count(), before_probe) << "the counter counts";
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    const RandomStep step = random_step(seed);
    Cluster cluster = cluster_of(step);
    Random random(seed);
    for (int repeat = 0; repeat < 2; ++repeat) {
      cluster.begin_step();
      const int64_t before = allocation_count();
      while (cluster.advance(random, [](RankId, const Command&) {})) {
      }
      EXPECT_EQ(allocation_count(), before) << "seed " << seed;
      EXPECT_TRUE(cluster.complete()) << "seed " << seed;
    }
  }
}

TEST(RankCoreRandom, ACopyDoesNotAllocateLater) {
  const RandomStep step = random_step(3);
  Cluster cluster = cluster_of(step);
  cluster.begin_step();
  std::vector<RankCore> copies(cluster.cores());
  const int64_t before = allocation_count();
  for (RankCore& core : copies) {
    for (;;) {
      if (core.apply(Event::pull(), 0).front().kind != Command::Kind::kRun) break;
      core.apply(Event::task_done(), 0);
    }
  }
  EXPECT_EQ(allocation_count(), before);
}

// --- Readiness with a plain priority finds 1F1B

/// Runs a step in slots: all tasks take one slot and all messages arrive at its end.
std::vector<std::vector<Task>> run_in_slots(const std::shared_ptr<const StepTasks>& tasks,
                                            const Hint& hint, std::span<const Cap> caps) {
  std::vector<RankCore> cores(caps.size());
  std::vector<std::vector<Task>> orders(caps.size());
  for (size_t r = 0; r < cores.size(); ++r) {
    std::shared_ptr<const RankPlan> plan;
    require(build_plan(tasks, hint, RankId::of(r), {}, caps[r], plan));
    cores[r].begin_step(std::move(plan));
  }
  for (bool any = true; any;) {
    any = false;
    for (size_t r = 0; r < cores.size(); ++r) {
      if (cores[r].apply(Event::pull(), 0).front().kind != Command::Kind::kRun) continue;
      orders[r].push_back(cores[r].running_task());
      any = true;
    }
    for (RankCore& core : cores) {
      if (!core.running()) continue;
      for (const Command& c : core.apply(Event::task_done(), 0)) {
        if (c.kind != Command::Kind::kSend) continue;
        cores[c.peer.index()].apply(Event::message(c.edge, c.direction, c.microbatch), 0);
      }
    }
  }
  return orders;
}

TEST(RankCoreSlots, BackwardFirstReproduces1F1B) {
  for (int32_t p = 1; p <= 6; ++p) {
    for (int32_t m = 1; m <= 12; ++m) {
      std::vector<Cap> caps;
      for (int32_t r = 0; r < p; ++r) caps.push_back({p - r, 0});
      const auto orders = run_in_slots(make_step(chain(p), m), *named_hint("bf"), caps);
      for (int32_t r = 0; r < p; ++r) {
        ASSERT_EQ(text_of(orders[static_cast<size_t>(r)]), text_of(golden::one_f_one_b(p, r, m)))
            << "p " << p << ", m " << m;
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::core
