// SPDX-License-Identifier: Apache-2.0
//
// The simulator against closed forms, the lower bound against the simulator, and the numbers that
// workloads are drawn with.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "engine/sim/bound.h"
#include "engine/sim/random.h"
#include "tests/sim/runs.h"

namespace rrfp::sim {
namespace {

using core::Order;
using core::TaskKind;

// --- Strict orders without jitter and hops

TEST(SimClosedForms, SixteenRanksSixtyFourMicrobatches) {
  const Realization step = realization("ideal", 16, 64);
  EXPECT_EQ(strict_ns(step, kUncut, "gpipe"), 2370 * kMs);
  EXPECT_EQ(strict_ns(step, kUncut, "1f1b"), 2370 * kMs);
  EXPECT_EQ(strict_ns(step, kLoopOfTwo, "interleaved"), 2145 * kMs);
  EXPECT_EQ(strict_ns(step, kUncut, "zb-h1"), 2070 * kMs);
}

TEST(SimClosedForms, OfAnySize) {
  for (const int32_t p : {1, 2, 3, 5, 8}) {
    for (const int32_t m : {8, 16, 24}) {
      const Realization step = realization("ideal", p, m);
      EXPECT_EQ(strict_ns(step, kUncut, "1f1b"), (m + p - 1) * 30 * kMs) << p << " x " << m;
      EXPECT_EQ(strict_ns(step, kUncut, "zb-h1"), (m * 30 + (p - 1) * 10) * kMs) << p << " x " << m;
      // Two chunks of 5 ms a task: the first forward reaches the last rank after p - 1 of them, and
      // from then on no rank waits.
      if (m < 2 * p) continue;
      EXPECT_EQ(strict_ns(step, kVOfTwo, "zb-v"), (m * 30 + (p - 1) * 5) * kMs) << p << " x " << m;
    }
  }
}

TEST(SimClosedForms, APairedRankWaitsForItsReceiver) {
  const Realization step = realization("ideal", 16, 64);
  const Outcome paired = run(step, kUncut, "1f1b", in_order(Order::kPaired));
  ASSERT_TRUE(paired.complete) << paired.error;
  EXPECT_EQ(paired.makespan_ns, 2370 * kMs);
}

// --- The lower bound

TEST(SimBound, NoPolicyIsFaster) {
  const std::string_view names[] = {"uniform",   "language",  "multimodal",
                                    "straggler", "slow-link", "multimodal-heavy"};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Key key(seed, Draw::kCase, {});
    const auto p = static_cast<int32_t>(1 + key.below(5, 0));
    const auto m = static_cast<int32_t>(1 + key.below(9, 1));
    const Realization step = realization(names[seed % std::size(names)], p, m, seed);
    const int64_t bound_ns = lower_bound_ns(step);
    for (const std::string_view hint : {"gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-v"}) {
      for (const bool deterministic : {false, true}) {
        core::Policy policy;
        policy.deterministic = deterministic;
        const Outcome outcome = run(step, kVOfTwo, hint, policy);
        ASSERT_TRUE(outcome.complete) << outcome.error;
        EXPECT_LE(bound_ns, outcome.makespan_ns) << hint << ", seed " << seed;
      }
    }
  }
}

TEST(SimBound, OfTheUncutModelWithoutNoise) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Realization step = realization(seed % 2 == 0 ? "ideal" : "uniform",
                                         static_cast<int32_t>(1 + seed % 6), 8, seed);
    for (const std::string_view hint : {"gpipe", "1f1b", "bf", "bfw", "zb-h1"}) {
      EXPECT_LE(lower_bound_ns(step), run(step, kUncut, hint, {}).makespan_ns) << hint;
    }
  }
}

TEST(SimBound, OneDeviceIsNeverIdle) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Realization step = realization("language", 1, 7, seed);
    EXPECT_EQ(lower_bound_ns(step), run(step, kVOfTwo, "bfw", {}).makespan_ns);
  }
}

// Two devices, four chunks of 5 ms a task: one microbatch goes down and up the V, 40 ms, and the
// weight gradient of the first chunk follows. With two, the first device has 60 ms of work and
// nothing to do between 10 and 15 ms.
TEST(SimBound, ByHand) {
  EXPECT_EQ(lower_bound_ns(realization("ideal", 2, 1)), 45 * kMs);
  EXPECT_EQ(lower_bound_ns(realization("ideal", 2, 2)), 65 * kMs);
}

// --- Injection order

TEST(SimTent, ShortLongShort) {
  const std::vector<double> sizes = {5, 1, 4, 2, 3};
  EXPECT_EQ(tent_order(sizes), (std::vector<int32_t>{1, 4, 0, 2, 3}));
  EXPECT_EQ(tent_order(std::vector<double>{2, 1}), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(tent_order(std::vector<double>{7}), (std::vector<int32_t>{0}));
  EXPECT_TRUE(tent_order({}).empty());
}

TEST(SimTent, RisesAndFalls) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Realization step = realization("multimodal", 4, static_cast<int32_t>(1 + seed), seed);
    const std::vector<int32_t> order = tent_order(step.sizes());
    EXPECT_EQ(std::set<int32_t>(order.begin(), order.end()).size(), order.size());
    std::vector<double> sizes;
    for (const int32_t m : order) sizes.push_back(step.size(m));
    const auto top = std::max_element(sizes.begin(), sizes.end());
    EXPECT_TRUE(std::is_sorted(sizes.begin(), top));
    EXPECT_TRUE(std::is_sorted(top, sizes.end(), std::greater<>()));
    EXPECT_EQ(order, tent_order(step.sizes())) << "the sizes alone decide";
  }
}

// --- Random numbers

TEST(SimKeys, TheKeyIsTheNumber) {
  const Key key(7, Draw::kNoise, {1, 2, 3});
  const double first = key.uniform();
  for (uint64_t n = 1; n < 10; ++n) EXPECT_NE(key.uniform(n), first);
  EXPECT_EQ(Key(7, Draw::kNoise, {1, 2, 3}).uniform(), first) << "whatever was drawn before";
  EXPECT_NE(Key(8, Draw::kNoise, {1, 2, 3}).uniform(), first);
  EXPECT_NE(Key(7, Draw::kHop, {1, 2, 3}).uniform(), first);
  EXPECT_NE(Key(7, Draw::kNoise, {1, 3, 2}).uniform(), first);
  const Realization step = realization("straggler", 4, 8, 3);
  const Realization same = realization("straggler", 4, 8, 3);
  for (int32_t m = 8; m-- > 0;) {
    EXPECT_EQ(step.noise(TaskKind::kForward, m, 2), same.noise(TaskKind::kForward, m, 2));
  }
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

template <class Draw>
Moments moments(Draw draw) {
  constexpr int64_t kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  for (int64_t k = 0; k < kDraws; ++k) {
    const double x = draw(k);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean)};
}

TEST(SimKeys, Distributions) {
  const auto key = [](int64_t k) { return Key(1, Draw::kNoise, {k}); };
  for (const double sigma : {0.2, 0.5, 1.0}) {
    EXPECT_NEAR(moments([&](int64_t k) { return key(k).lognormal(sigma); }).mean, 1, 0.02) << sigma;
    const Moments log = moments([&](int64_t k) { return std::log(key(k).lognormal(sigma)); });
    EXPECT_NEAR(log.deviation, sigma, 0.01 * sigma);
    EXPECT_NEAR(log.mean, -sigma * sigma / 2, 0.01);
  }
  EXPECT_EQ(key(0).lognormal(0), 1);
  const Moments uniform = moments([&](int64_t k) { return key(k).uniform(); });
  EXPECT_NEAR(uniform.mean, 0.5, 0.003);
  EXPECT_NEAR(uniform.deviation, std::sqrt(1.0 / 12), 0.003);
  const Moments exponential = moments([&](int64_t k) { return key(k).exponential(); });
  EXPECT_NEAR(exponential.mean, 1, 0.01);
  EXPECT_NEAR(exponential.deviation, 1, 0.02);
}

TEST(SimWorkload, MeanSizesAreOne) {
  for (const Preset& preset : presets()) {
    double sum = 0;
    constexpr int32_t kSteps = 200;
    for (uint64_t seed = 0; seed < kSteps; ++seed) {
      const Realization step(preset, 16, 256, seed);
      sum += std::accumulate(step.sizes().begin(), step.sizes().end(), 0.0) / 256;
    }
    EXPECT_NEAR(sum / kSteps, 1, 0.03) << preset.name;
  }
}

TEST(SimWorkload, OtherNoiseMeetsTheSameSizes) {
  const Preset& preset = *find_preset("multimodal");
  const Realization a(preset, 8, 16, 5, 100);
  const Realization b(preset, 8, 16, 5, 101);
  for (int32_t m = 0; m < 16; ++m) EXPECT_EQ(a.size(m), b.size(m));
  EXPECT_NE(a.noise(TaskKind::kForward, 0, 0), b.noise(TaskKind::kForward, 0, 0));
}

TEST(SimWorkload, NativeBytesAreThePeakOf1F1B) {
  for (const std::string_view preset : {"ideal", "language", "multimodal"}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const Realization step = realization(preset, 8, 20, seed);
      const Outcome outcome = run(step, kUncut, "1f1b", in_order(Order::kStrict));
      EXPECT_EQ(native_bytes(step), outcome.peak_bytes()) << preset << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace rrfp::sim
