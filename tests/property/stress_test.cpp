// SPDX-License-Identifier: Apache-2.0
//
// Thousands of random pipelines on the virtual clock: whatever the graph, the hint, the caps, the
// timing and the order of arrivals, no run stalls and the oracle finds nothing wrong.
//
// RRFP_STRESS_SEED=<n>   runs just the case of that seed and describes it
// RRFP_STRESS_CASES=<n>  runs so many cases instead of the default
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "engine/core/rank_core.h"
#include "tests/support/random_case.h"
#include "tests/support/strict_replay.h"

namespace rrfp::test {
namespace {

using core::Code;
using core::IdleReason;
using core::Order;

std::optional<uint64_t> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

/// What a run of many cases has covered.
struct Coverage {
  int64_t cases = 0;
  int64_t tasks = 0;
  int64_t chunked = 0;  // cases with several stages on a rank
  int64_t joins = 0;
  int64_t skips = 0;
  int64_t tight = 0;
  int64_t memory_blocked = 0;  // cases in which a forward waited for memory
  int64_t credit_blocked = 0;
  int64_t held = 0;
  int64_t reordered = 0;
  int64_t strict_run = 0;
  int64_t strict_refused = 0;
  int64_t stalls = 0;

  void add(const RandomCase& random_case, const VirtualResult& result) {
    tasks += result.tasks_run;
    chunked += random_case.chunks_max > 1 ? 1 : 0;
    joins += random_case.join ? 1 : 0;
    skips += random_case.skips ? 1 : 0;
    tight += random_case.tight ? 1 : 0;
    reordered += result.overtakings > 0 ? 1 : 0;
    stalls += result.stalled ? 1 : 0;
    bool memory = false;
    bool credit = false;
    bool hold = false;
    for (const RankRecord& rank : result.ranks) {
      memory = memory || rank.idle(IdleReason::kMemory) > 0;
      credit = credit || rank.idle(IdleReason::kCredit) > 0;
      hold = hold || rank.holds > 0;
    }
    memory_blocked += memory ? 1 : 0;
    credit_blocked += credit ? 1 : 0;
    held += hold ? 1 : 0;
  }
};

std::ostream& operator<<(std::ostream& out, const Coverage& c) {
  return out << c.cases << " cases, " << c.tasks << " tasks; cases with several chunks "
             << c.chunked << ", joins " << c.joins << ", skips " << c.skips << ", least caps "
             << c.tight << ", waits for memory " << c.memory_blocked << ", waits for credits "
             << c.credit_blocked << ", holds " << c.held << ", overtaking " << c.reordered
             << ", strict " << c.strict_run << ", strict refused " << c.strict_refused
             << ", stalls " << c.stalls;
}

std::string replay_hint(uint64_t seed, const RandomCase& random_case) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return "\nreplay: RRFP_STRESS_SEED=" + std::to_string(seed) + " " RRFP_STRESS_BINARY +
         " --gtest_filter=" + test->test_suite_name() + "." + test->name() + "\n  " +
         describe(random_case);
}

/// What check_strict has to say about a case.
struct Verdict {
  std::string wrong;
  bool must_stall = false;
};

/// Compares check_strict with a second opinion. A plan that only lacks memory becomes a hint.
Verdict check_strict_case(VirtualPipeline& setup, Coverage& coverage) {
  const core::Status strict =
      core::check_strict(setup.tasks, *setup.hint, setup.policy, setup.caps);
  const bool possible = can_be_obeyed(*setup.tasks, *setup.hint, setup.policy.deterministic);
  if (possible != (strict.code() != Code::kBadOrder)) {
    return {"check_strict is mistaken: " + strict.text()};
  }
  if (strict.ok()) {
    ++coverage.strict_run;
    return {};
  }
  ++coverage.strict_refused;
  if (strict.text().find("rank ") == std::string::npos) {
    return {"check_strict names no rank: " + strict.text()};
  }
  if (strict.code() == Code::kCapTooSmall) {
    setup.policy.order = Order::kReady;
    return {};
  }
  setup.caps.clear();  // the order alone must stop it
  return {"", true};
}

/// Runs the case as it must run; returns what is wrong, if anything.
std::string run_case(RandomCase& random_case, Coverage& coverage) {
  VirtualPipeline& setup = random_case.setup;
  ++coverage.cases;
  Verdict verdict;
  if (setup.policy.order == Order::kStrict) verdict = check_strict_case(setup, coverage);
  if (!verdict.wrong.empty()) return verdict.wrong;
  const VirtualResult result = run_virtual(setup);
  if (verdict.must_stall) {
    return result.stalled ? "" : "an order that cannot be obeyed did not stall: " + result.error;
  }
  coverage.add(random_case, result);
  return result.ok ? "" : result.error;
}

TEST(Stress, EveryCaseCompletesByTheRules) {
  const std::optional<uint64_t> only = number_from("RRFP_STRESS_SEED");
  const uint64_t count = only ? 1 : number_from("RRFP_STRESS_CASES").value_or(20'000);
  Coverage coverage;
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t seed = only.value_or(k + 1);
    RandomCase random_case = make_random_case(seed);
    const std::string wrong = run_case(random_case, coverage);
    ASSERT_EQ(wrong, "") << replay_hint(seed, random_case);
    if (only) std::cout << describe(random_case) << "\n";
  }
  std::cout << coverage << "\n";
  if (count < 2000) return;  // too few to ask for coverage
  const auto cases = static_cast<int64_t>(count);
  EXPECT_GT(coverage.tasks, 50 * cases);
  EXPECT_GT(coverage.chunked, cases / 2);
  EXPECT_GT(coverage.joins, cases / 4);
  EXPECT_GT(coverage.skips, cases / 5);
  EXPECT_GT(coverage.tight, cases / 4);
  EXPECT_GT(coverage.memory_blocked, cases / 10);
  EXPECT_GT(coverage.credit_blocked, cases / 20);
  EXPECT_GT(coverage.held, cases / 20);
  EXPECT_GT(coverage.reordered, cases / 10);
  EXPECT_GT(coverage.strict_run, cases / 50);
  EXPECT_GT(coverage.strict_refused, cases / 50);
}

/// The oracle and the driver can see a stall: the rule that other systems use does stall.
TEST(Stress, PlainCounterStalls) {
  const std::optional<uint64_t> only = number_from("RRFP_STRESS_SEED");
  const uint64_t count = only ? 1 : 2000;
  Coverage coverage;
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t seed = only.value_or(k + 1);
    RandomCase random_case = make_random_case(seed, CaseKind::kTight);
    // The same case with the rule of the engine completes ...
    const VirtualResult ordered = run_virtual(random_case.setup);
    ASSERT_EQ(ordered.error, "") << replay_hint(seed, random_case);
    // ... and with the plain counter may do nothing worse than stall.
    random_case.setup.policy.admission = core::AdmissionRule::kPlainCounter;
    const VirtualResult plain = run_virtual(random_case.setup);
    ASSERT_TRUE(plain.ok || plain.stalled) << plain.error << replay_hint(seed, random_case);
    if (plain.stalled) {
      ASSERT_NE(plain.error.find("rank "), std::string::npos) << plain.error;
    }
    if (only) std::cout << describe(random_case) << "\n" << plain.error << "\n";
    ++coverage.cases;
    coverage.add(random_case, plain);
  }
  std::cout << coverage << "\n";
  if (!only) {
    EXPECT_GT(coverage.stalls, static_cast<int64_t>(count) / 5);
  }
}

}  // namespace
}  // namespace rrfp::test
