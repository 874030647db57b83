// SPDX-License-Identifier: Apache-2.0
//
// What the policies must reach on the workloads of the presets, as medians over seeds that
// nothing was tuned on: how near the lower bound, how much faster than the fixed schedules.
// The figures, and how they came about: engine/sim/STUDY.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/sim/experiment.h"

namespace rrfp::sim {
namespace {

using core::Order;

constexpr uint64_t kFirstSeed = 50'000;
constexpr int kSeeds = 30;
constexpr int kManySeeds = 60;  // where the limit is close

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Runs {
  std::vector<double> ratio;        // to the lower bound
  std::vector<double> makespan_ms;  // by seed
};

Runs run(const ExperimentOptions& options, int seeds = kSeeds) {
  Experiment experiment;
  const core::Status made = Experiment::create(options, experiment);
  EXPECT_TRUE(made.ok()) << made.text();
  Runs runs;
  for (int k = 0; k < seeds; ++k) {
    StepResult result;
    const core::Status s = experiment.run(kFirstSeed + static_cast<uint64_t>(k), result);
    EXPECT_TRUE(s.ok()) << s.text();
    EXPECT_TRUE(result.outcome.complete) << result.outcome.error;
    if (options.order == Order::kReady && options.cap > 0) {
      EXPECT_LE(result.peak_ratio(), options.cap * 1.000001);
    }
    runs.ratio.push_back(result.ratio());
    runs.makespan_ms.push_back(static_cast<double>(result.makespan_ns) / 1e6);
  }
  return runs;
}

ExperimentOptions cell(const char* preset, const char* hint, Order order = Order::kReady) {
  ExperimentOptions options;
  options.preset = *find_preset(preset);
  options.hint = hint;
  options.order = order;
  options.deterministic = false;
  return options;
}

/// Median over the seeds of how much faster b is than a.
double speedup(const Runs& a, const Runs& b) {
  std::vector<double> each;
  for (size_t k = 0; k < a.makespan_ms.size(); ++k) {
    each.push_back(a.makespan_ms[k] / b.makespan_ms[k]);
  }
  return median(each);
}

struct Target {
  const char* preset;
  double cap1;
  double cap1_offload;  // 0 = none
  double cap2;
};
constexpr Target kTargets[] = {{"uniform", 1.02, 0, 1.01},
                               {"language", 1.12, 1.055, 1.03},
                               {"multimodal", 1.38, 1.28, 1.25},
                               {"straggler", 1.08, 1.06, 1.025},
                               {"slow-link", 1.20, 1.11, 1.07}};

class SimTargets : public testing::TestWithParam<Target> {};

TEST_P(SimTargets, AutoIsNearTheBoundAtTheMemoryOf1F1B) {
  EXPECT_LE(median(run(cell(GetParam().preset, "auto"), kManySeeds).ratio), GetParam().cap1);
}

class SimOffloadTargets : public SimTargets {};

TEST_P(SimOffloadTargets, AutoIsNearTheBoundWithHostOffload) {
  ExperimentOptions options = cell(GetParam().preset, "auto");
  options.offload_ms = 20;
  EXPECT_LE(median(run(options, kManySeeds).ratio), GetParam().cap1_offload);
}

TEST_P(SimTargets, AutoIsNearTheBoundAtTwiceTheMemory) {
  ExperimentOptions options = cell(GetParam().preset, "auto");
  options.cap = 2;
  EXPECT_LE(median(run(options, kManySeeds).ratio), GetParam().cap2);
}

TEST_P(SimTargets, AutoIsNotBehindTheBestFixedScheduleOfEqualMemory) {
  const Runs mine = run(cell(GetParam().preset, "auto"));
  for (const char* fixed : {"1f1b", "zb-h1", "zb-v"}) {
    EXPECT_GE(speedup(run(cell(GetParam().preset, fixed, Order::kStrict)), mine), 0.99) << fixed;
  }
}

std::string name_of(const testing::TestParamInfo<Target>& info) {
  std::string name = info.param.preset;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Presets, SimTargets, testing::ValuesIn(kTargets), name_of);
// The first has nothing to gain from it.
INSTANTIATE_TEST_SUITE_P(Presets, SimOffloadTargets,
                         testing::ValuesIn(std::begin(kTargets) + 1, std::end(kTargets)), name_of);

/// How much faster `auto` is than 1F1B as systems run it, with weight gradients in order as the
/// trainer has them.
double gain_over_paired(const char* preset, int32_t devices, int32_t microbatches, int seeds) {
  ExperimentOptions paired = cell(preset, "1f1b", Order::kPaired);
  ExperimentOptions chosen = cell(preset, "auto");
  for (ExperimentOptions* options : {&paired, &chosen}) {
    options->devices = devices;
    options->microbatches = microbatches;
    options->deterministic = true;
  }
  return speedup(run(paired, seeds), run(chosen, seeds));
}

TEST(SimSpeedups, OverPaired1F1B) {
  EXPECT_GE(gain_over_paired("language", 16, 64, kSeeds), 2.1);
  EXPECT_GE(gain_over_paired("multimodal", 16, 64, kSeeds), 2.25);
}

TEST(SimSpeedups, OverPaired1F1BOn64Ranks) {
  constexpr int kFewSeeds = 15;  // each takes seconds
  EXPECT_GE(gain_over_paired("multimodal", 64, 256, kFewSeeds), 2.77);
}

/// Against a plan on known sizes that is obeyed: the same layout, injection and memory.
TEST(SimSpeedups, OfReadinessAlone) {
  const auto gain = [](const char* preset) {
    return speedup(run(cell(preset, "plan:rf-v", Order::kStrict)), run(cell(preset, "rf-v")));
  };
  EXPECT_GE(gain("language"), 1.05);
  EXPECT_GE(gain("straggler"), 1.15);
  EXPECT_GE(gain("slow-link"), 1.3);
}

}  // namespace
}  // namespace rrfp::sim
