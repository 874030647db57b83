// SPDX-License-Identifier: Apache-2.0
//
// Choosing a policy by simulation, and strict orders that are left when they are late.
#include "engine/sim/choose.h"

#include <algorithm>
#include <set>

#include "engine/core/named_policies.h"
#include "engine/sim/experiment.h"
#include "tests/sim/runs.h"

namespace rrfp::sim {
namespace {

using core::Order;

constexpr int32_t kRanks = 8;
constexpr int32_t kMicrobatches = 32;

struct Bed {
  Bed(std::string_view preset, const Layout& how, double cap, uint64_t seed = 1)
      : step(realization(preset, kRanks, kMicrobatches, seed)),
        layout(how),
        order(tent_order(step.sizes())) {
    family.tasks = step_tasks(step, layout, order);
    family.caps =
        caps_of(kRanks, static_cast<int64_t>(cap * static_cast<double>(native_bytes(step))));
    family.predicted = {predicted_durations(step, layout, order), predicted_links(step, order)};
  }

  [[nodiscard]] Replay replay(uint64_t noise_seed) {
    noises.push_back(
        std::make_unique<Realization>(step.preset(), kRanks, kMicrobatches, 1, noise_seed));
    return {true_durations(*noises.back(), layout, order),
            true_links(*noises.back(), layout, order)};
  }

  Realization step;
  Layout layout;
  std::vector<int32_t> order;
  Family family;
  std::vector<std::unique_ptr<Realization>> noises;  // links refer to them
};

Outcome run_on(const Candidate& candidate, const Replay& replay) {
  Scenario scenario;
  scenario.plans = candidate.plans;
  scenario.durations = replay.durations;
  scenario.links = replay.links;
  return simulate(scenario);
}

std::set<std::string> names_of(const std::vector<Candidate>& all) {
  std::set<std::string> names;
  for (const Candidate& c : all) names.insert(c.name);
  return names;
}

const Candidate& find(const std::vector<Candidate>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.name == name; });
  if (found == all.end()) throw std::runtime_error("no candidate " + std::string(name));
  return *found;
}

TEST(SimCandidates, OfTheV) {
  const Bed bed("language", kVOfTwo, 2);
  EXPECT_EQ(names_of(candidates(bed.family)),
            (std::set<std::string>{"rf-h", "rf-h2", "rf-m", "rf-mt", "rf-v", "zb-v strict",
                                   "zb-v strict until late"}));
}

TEST(SimCandidates, OfOneStageARank) {
  const auto names = names_of(candidates(Bed("language", kUncut, 4).family));
  for (const char* name : {"rf-1", "bfw-sort", "zb-h2", "zb-h1 strict", "zb-h1 strict until late",
                           "zb-h2 strict", "zb-h2 strict until late"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  const auto tight = names_of(candidates(Bed("uniform", kUncut, 1).family));
  EXPECT_TRUE(tight.contains("zb-h1 strict"));
  EXPECT_FALSE(tight.contains("zb-h2 strict")) << "holds nearly twice as much";
}

TEST(SimCandidates, OfAnyOtherLayout) {
  const auto names = names_of(candidates(Bed("language", kLoopOfTwo, 4).family));
  EXPECT_EQ(names, (std::set<std::string>{"bfw", "zb-h1", "1f1b"}));
}

TEST(SimCandidates, NoneIsAboveItsCap) {
  for (const std::string_view preset : {"uniform", "language", "multimodal"}) {
    for (const Layout& layout : {kUncut, kVOfTwo, kLoopOfTwo}) {
      for (const double cap : {1.0, 1.5, 2.0}) {
        Bed bed(preset, layout, cap);
        const auto all = candidates(bed.family);
        EXPECT_GE(all.size(), 2U);
        const Replay replay = bed.replay(7);
        for (const Candidate& c : all) {
          const Outcome outcome = run_on(c, replay);
          EXPECT_TRUE(outcome.complete) << c.name << ": " << outcome.error;
          EXPECT_LE(outcome.peak_bytes(), bed.family.caps.front().bytes) << c.name;
        }
      }
    }
  }
}

TEST(SimCandidates, ByName) {
  const Bed bed("language", kVOfTwo, 1);
  Candidate c;
  for (const core::NamedPolicy& policy : core::named_policies()) {
    EXPECT_TRUE(make_candidate(bed.family, policy.name, Order::kReady, c).ok() ||
                policy.placement != core::Placement::kV)
        << policy.name;
  }
  EXPECT_TRUE(make_candidate(bed.family, "1f1b", Order::kPaired, c).ok());
  EXPECT_EQ(c.policy.order, Order::kPaired);
  const core::Status unknown = make_candidate(bed.family, "zb-x", Order::kReady, c);
  EXPECT_EQ(unknown.code(), core::Code::kUnknownName);
}

TEST(SimChoose, TakesTheFastest) {
  for (const std::string_view preset : {"uniform", "language", "straggler"}) {
    for (const Layout& layout : {kUncut, kVOfTwo}) {
      Bed bed(preset, layout, 1);
      const std::vector<Replay> replays = {bed.replay(11), bed.replay(12), bed.replay(13)};
      const auto all = candidates(bed.family);
      const Choice choice = choose(all, replays);
      ASSERT_EQ(choice.mean_ns.size(), all.size());
      for (size_t k = 0; k < all.size(); ++k) {
        int64_t sum_ns = 0;
        for (const Replay& replay : replays) sum_ns += run_on(all[k], replay).makespan_ns;
        EXPECT_EQ(choice.mean_ns[k], sum_ns / 3) << all[k].name;
        // Up to the 0.1 % by which a later one must be better, once for each before it.
        EXPECT_LE(static_cast<double>(choice.mean_ns[choice.best]),
                  static_cast<double>(choice.mean_ns[k]) * 1.002);
      }
      EXPECT_EQ(choice.why.rfind(all[choice.best].name + " of", 0), 0U) << choice.why;
    }
  }
}

TEST(SimUntilLate, IsStrictWhileAllGoesAsPlanned) {
  for (const std::string_view preset : {"ideal", "language", "multimodal"}) {
    for (const Layout& layout : {kUncut, kVOfTwo}) {
      const Bed bed(preset, layout, 2);
      const auto all = candidates(bed.family);
      const std::string name = layout == kVOfTwo ? "zb-v strict" : "zb-h1 strict";
      const Outcome strict = run_on(find(all, name), bed.family.predicted);
      const Outcome late = run_on(find(all, name + " until late"), bed.family.predicted);
      EXPECT_TRUE(late.complete) << late.error;
      EXPECT_EQ(late.late_ranks, 0);
      EXPECT_EQ(late.makespan_ns, strict.makespan_ns);
      EXPECT_EQ(late.peak_bytes(), strict.peak_bytes());
    }
  }
}

TEST(SimUntilLate, LeavesTheOrderWhenARankIsDelayed) {
  for (const Layout& layout : {kUncut, kVOfTwo}) {
    const Bed bed("uniform", layout, 1);
    const auto all = candidates(bed.family);
    const std::string name = layout == kVOfTwo ? "zb-v strict" : "zb-h1 strict";
    // One stage in the middle takes three times as long from the tenth microbatch on.
    Replay delayed = bed.family.predicted;
    for (int32_t m = 10; m < kMicrobatches; ++m) {
      for (const auto kind : {core::TaskKind::kForward, core::TaskKind::kInputGradient,
                              core::TaskKind::kWeightGradient}) {
        delayed.durations.at({core::StageId(3), core::MicrobatchId(m), kind}) *= 3;
      }
    }
    const Outcome outcome = run_on(find(all, name + " until late"), delayed);
    EXPECT_TRUE(outcome.complete) << outcome.error;
    EXPECT_GT(outcome.late_ranks, 0);
    EXPECT_LE(outcome.peak_bytes(), bed.family.caps.front().bytes);
    EXPECT_EQ(run_on(find(all, name), delayed).late_ranks, 0);
  }
}

TEST(Experiment, AnUnknownHintIsRefusedBeforeAnythingRuns) {
  ExperimentOptions options;
  options.hint = "zb-x";
  Experiment experiment;
  const core::Status status = Experiment::create(options, experiment);
  EXPECT_EQ(status.code(), core::Code::kUnknownName);
  EXPECT_NE(status.text().find("zb-x"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace rrfp::sim
