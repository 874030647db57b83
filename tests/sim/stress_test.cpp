// SPDX-License-Identifier: Apache-2.0
//
// Thousands of random steps on the virtual clock of engine/sim, with all that the scheduler offers
// switched on at random: none stalls, exceeds a cap, loses a task or fails without a fault.
//
// RRFP_STRESS_SEED=<n>   runs just the case of that seed and describes it
// RRFP_STRESS_CASES=<n>  runs so many cases instead of the default
#include "engine/sim/stress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include "engine/sim/stress_case.h"

namespace rrfp::sim {
namespace {

std::optional<uint64_t> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

void print(const StressReport& report, double seconds) {
  std::cout << report.cases << " cases, " << report.tasks << " tasks, "
            << static_cast<int64_t>(static_cast<double>(report.cases) / seconds)
            << " cases a second; refused " << report.refused << ", strict orders that deadlock "
            << report.unobeyable << "\n";
  for (size_t c = 0; c < kCovers; ++c) {
    std::cout << (c == 0 ? "" : ", ") << name_of(static_cast<Cover>(c)) << " " << report.covered[c];
  }
  std::cout << "\n";
}

/// Nothing is rarer than this, in thousandths of the cases; the rarest by design are named.
int64_t floor_permille(Cover cover) {
  switch (cover) {
    case Cover::kTightJoins: return 10;
    case Cover::kLeftStrict: return 30;
    case Cover::kOffloaded:
    case Cover::kForwardOnly:
    case Cover::kRankFailure: return 20;
    default: return 40;
  }
}

TEST(SimStress, NoRuleIsEverBroken) {
  const std::optional<uint64_t> only = number_from("RRFP_STRESS_SEED");
  const auto cases =
      only ? 1 : static_cast<int64_t>(number_from("RRFP_STRESS_CASES").value_or(20'000));
  const auto begin = std::chrono::steady_clock::now();
  const StressReport report = run_stress(only.value_or(1), cases);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (only) std::cout << describe_stress_case(*only) << "\n";
  print(report, taken.count());
  EXPECT_EQ(report.stalls, 0);
  EXPECT_EQ(report.cap_violations, 0);
  EXPECT_EQ(report.wrong_tasks, 0);
  EXPECT_EQ(report.wrong_failures, 0);
  EXPECT_EQ(report.first_bad, "") << "replay: RRFP_STRESS_SEED=" << report.first_bad_seed
                                  << " " RRFP_STRESS_BINARY;
  if (cases < 5000) return;  // too few to ask for coverage
  EXPECT_EQ(report.cases, cases);
  EXPECT_GT(report.tasks, 50 * cases);
  EXPECT_LT(report.refused, cases / 20);
  EXPECT_LT(report.unobeyable, cases / 10);
  for (size_t c = 0; c < kCovers; ++c) {
    const auto cover = static_cast<Cover>(c);
    EXPECT_GT(report.covered[c], cases * floor_permille(cover) / 1000) << name_of(cover);
  }
}

// The hardest for memory: branches that join, where no rank has room for more than one microbatch
// of its largest. As many of these as cases above.
TEST(SimStress, BranchesThatJoinDoNotStallWithTheLeastRoom) {
  constexpr int64_t kBatch = 10'000;
  const int64_t wanted = number_from("RRFP_STRESS_CASES").value_or(20'000);
  if (const auto only = number_from("RRFP_STRESS_SEED")) {
    const StressReport report = run_stress(*only, 1, {}, StressFocus::kTightGraphs);
    std::cout << describe_stress_case(*only, StressFocus::kTightGraphs) << "\n";
    EXPECT_EQ(report.first_bad, "");
    return;
  }
  StressReport all;
  int64_t joins = 0;
  int64_t waited = 0;
  for (uint64_t seed = 1; joins < wanted; seed += kBatch) {
    const StressReport report = run_stress(seed, kBatch, {}, StressFocus::kTightGraphs);
    const int64_t found = report.covered[static_cast<size_t>(Cover::kTightJoins)];
    joins += found;
    waited += report.covered[static_cast<size_t>(Cover::kWaitedForMemory)];
    all.cases += report.cases;
    all.tasks += report.tasks;
    ASSERT_EQ(report.bad(), 0) << report.first_bad
                               << "; replay: RRFP_STRESS_SEED=" << report.first_bad_seed
                               << " " RRFP_STRESS_BINARY;
    ASSERT_GT(found, kBatch / 10);
  }
  EXPECT_GT(waited, all.cases / 4);
  std::cout << joins << " cases in which branches join; " << all.cases << " in all, " << all.tasks
            << " tasks, " << waited << " waited for room\n";
}

/// Of the cases of so many seeds that `counts`, those that stall by the rule that other systems
/// use: a counter.
int64_t stalls_of_a_counter(uint64_t seeds, StressFocus focus,
                            const std::function<bool(const StressCase&)>& counts) {
  int64_t stalls = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    StressCase c = make_stress_case(seed, focus);
    if (!c.status.ok() || !counts(c)) continue;
    c.policy.admission = core::AdmissionRule::kPlainCounter;
    EXPECT_TRUE(make_plans(c.tasks, *c.hint, c.policy, c.caps, c.scenario.plans).ok());
    const Outcome outcome = simulate(c.scenario);
    EXPECT_TRUE(outcome.complete || outcome.stalled) << outcome.error;
    stalls += outcome.stalled ? 1 : 0;
  }
  std::cout << stalls << " of the cases of " << seeds << " seeds stall\n";
  return stalls;
}

// What finds nothing must be able to find something.
TEST(SimStress, APlainCounterStalls) {
  const auto ready = [](const StressCase& c) {
    const Faults& faults = c.scenario.faults;
    return !c.policy.strict() && faults.failing_rank < 0 && faults.lose_message < 0;
  };
  EXPECT_GT(stalls_of_a_counter(3000, StressFocus::kAll, ready), 50);
}

// Joins alone are enough for that, with a stage on each rank.
TEST(SimStress, APlainCounterStallsWhereBranchesJoin) {
  const auto joins = [](const StressCase& c) {
    return joins_tightly(c) && c.tasks->graph().chunks_max() == 1;
  };
  EXPECT_GT(stalls_of_a_counter(20'000, StressFocus::kTightGraphs, joins), 20);
}

TEST(SimStress, ASeedIsAlwaysTheSameCase) {
  const StressReport once = run_stress(100, 200);
  const StressReport again = run_stress(100, 200);
  EXPECT_EQ(once.tasks, again.tasks);
  EXPECT_EQ(once.covered, again.covered);
  EXPECT_EQ(describe_stress_case(107), describe_stress_case(107));
  EXPECT_NE(describe_stress_case(107), describe_stress_case(108));
}

TEST(SimStress, ProgressStops) {
  const StressReport report = run_stress(1, 1000, [](int64_t done) { return done < 10; });
  EXPECT_EQ(report.cases, 10);
}

}  // namespace
}  // namespace rrfp::sim
