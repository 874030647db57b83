// SPDX-License-Identifier: Apache-2.0
//
// Sums and updates of parameters against f64; dropout against philox.h, and that against the
// numbers that its authors published.
#include <cmath>

#include "kernels/math/philox.h"
#include "tests/kernels/harness.h"

namespace rrfp::kernels::testing {
namespace {

RRFP_KERNELS_SUITE(SumTest);
RRFP_KERNELS_SUITE(OptimizerTest);
RRFP_KERNELS_SUITE(DropoutTest);

constexpr double kBound = 1e-6;

double wide(float x) {
  return static_cast<double>(x);
}

TEST_P(SumTest, SumAndSumOfSquares) {
  for (const int64_t n : kSizes) {
    const Numbers x = numbers(n, 1);
    double expected = 0;
    double squares = 0;
    for (const double v : x) expected += v;
    for (const double v : x) squares += v * v;
    const Array xs = up(x);
    EXPECT_NEAR(k().sum(n, xs.data()), expected, 1e-13);
    EXPECT_NEAR(k().sum_squares(n, xs.data()), squares, 1e-13);
    EXPECT_EQ(k().sum(n, xs.data()), k().sum(n, xs.data()));
  }
  // In f32 each of these would be lost beside the first one.
  Numbers x(1001, 0.25);
  x[0] = 1e9;
  EXPECT_EQ(k().sum(1001, up(x).data()), 1e9 + 250);
}

TEST_P(OptimizerTest, AdamW) {
  const AdamWStep s = {0.01F, 0.9F, 0.999F, 1e-8F, 0.1F, 0.5F, 1.5F, 20.0F};
  for (const int64_t n : kSizes) {
    Numbers w = numbers(n, 1);
    Numbers m = numbers(n, 2);
    Numbers v = numbers(n, 3);
    for (double& x : v) x *= x;
    const Numbers g = numbers(n, 4);
    const Array ws = up(w);
    const Array ms = up(m);
    const Array vs = up(v);
    const Array gs = up(g);
    k().adamw(n, s, ws.data(), ms.data(), vs.data(), gs.data());
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[i] * wide(s.gradient_scale);
      m[i] = s.beta1 * m[i] + (1 - s.beta1) * gradient;
      v[i] = s.beta2 * v[i] + (1 - s.beta2) * gradient * gradient;
      const double direction =
          m[i] * wide(s.correction1) / (std::sqrt(v[i] * wide(s.correction2)) + wide(s.epsilon));
      w[i] -= wide(s.lr) * (direction + wide(s.weight_decay) * w[i]);
    }
    expect_close(ws.download(), w, kBound);
    expect_close(ms.download(), m, kBound);
    expect_close(vs.download(), v, kBound);
    expect_close(gs.download(), Numbers(g.size()), 0);
  }
}

TEST_P(OptimizerTest, SameBitsAgain) {
  const int64_t n = 257;
  std::vector<float> adamw[2];
  std::vector<float> sgd[2];
  for (int i = 0; i < 2; ++i) {
    const Array w = up(numbers(n, 1));
    const Array m = up(numbers(n, 2));
    const Array v = up(Numbers(n, 0.5));
    k().adamw(n, {0.01F, 0.9F, 0.999F, 1e-8F, 0.1F, 0.5F, 1.5F, 20.0F}, w.data(), m.data(),
              v.data(), up(numbers(n, 3)).data());
    adamw[i] = w.download();
    k().sgd(n, {0.01F, 0.9F, 0.1F, 0.5F}, w.data(), m.data(), up(numbers(n, 4)).data());
    sgd[i] = w.download();
  }
  EXPECT_EQ(adamw[0], adamw[1]);
  EXPECT_EQ(sgd[0], sgd[1]);
}

TEST_P(OptimizerTest, AdamWOfNoGradientStaysFinite) {
  const Array w = up(Numbers{1});
  const Array m = up(Numbers{0});
  const Array v = up(Numbers{0});
  const Array g = up(Numbers{0});
  k().adamw(1, {0.1F, 0.9F, 0.999F, 1e-8F, 0, 1, 10, 1000}, w.data(), m.data(), v.data(), g.data());
  EXPECT_EQ(w.download()[0], 1);
}

TEST_P(OptimizerTest, Sgd) {
  for (const float momentum : {0.0F, 0.9F}) {
    const SgdStep s = {0.01F, momentum, 0.1F, 0.5F};
    for (const int64_t n : kSizes) {
      Numbers w = numbers(n, 1);
      Numbers velocity = numbers(n, 2);
      const Numbers g = numbers(n, 4);
      const Array ws = up(w);
      const Array velocities = up(velocity);
      const Array gs = up(g);
      k().sgd(n, s, ws.data(), momentum == 0 ? nullptr : velocities.data(), gs.data());
      for (size_t i = 0; i < w.size(); ++i) {
        const double change = wide(momentum) * velocity[i] + g[i] * wide(s.gradient_scale) +
                              wide(s.weight_decay) * w[i];
        w[i] -= wide(s.lr) * change;
        if (momentum != 0) velocity[i] = change;
      }
      expect_close(ws.download(), w, kBound);
      expect_close(velocities.download(), velocity, kBound);
      expect_close(gs.download(), Numbers(g.size()), 0);
    }
  }
}

TEST(Philox, PublishedNumbers) {
  // kat_vectors of the authors' library Random123, philox4x32 with 10 rounds.
  const auto expect = [](PhiloxBlock counter, uint32_t key0, uint32_t key1, PhiloxBlock expected) {
    const PhiloxBlock actual = philox(counter, key0, key1);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(actual.word[i], expected.word[i]);
  };
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  expect({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect({{kOnes, kOnes, kOnes, kOnes}}, kOnes, kOnes,
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, EveryFieldOfTheKeyCounts) {
  const RandomKey base = {0x123456789, 1, 1, 1};
  std::vector<RandomKey> keys(6, base);
  keys[1].seed ^= 1;
  keys[2].seed ^= uint64_t{1} << 40;
  keys[3].step = 2;
  keys[4].operation = 2;
  keys[5].microbatch = 2;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(random_word(keys[i], 5), random_word(keys[j], 5)) << i << " " << j;
    }
  }
  // Up to 2^34 elements there is a counter for each block of four.
  EXPECT_NE(random_word(base, 0), random_word(base, (int64_t{1} << 34) - 4));
}

Numbers drop(const Numbers& x, float p, const RandomKey& key) {
  Numbers y = x;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool kept = random_word(key, static_cast<int64_t>(i)) >= dropout_threshold(p);
    y[i] = kept ? x[i] * wide(dropout_scale(p)) : 0;
  }
  return y;
}

TEST_P(DropoutTest, MaskOfPhilox) {
  const RandomKey key = {0xFEDCBA9876543210, 0x89ABCDEF, 3, 0xFFFFFFFF};
  for (const int64_t n : kSizes) {
    const Numbers x = sum(numbers(n, 1), Numbers(static_cast<size_t>(n), 2));  // never 0
    for (const float p : {0.0F, 0.1F, 0.5F, 0.999F}) {
      const Array xs = up(x);
      expect_puts(drop(x, p, key), kBound, [&](float* y, bool accumulate) {
        k().dropout(n, p, key, xs.data(), y, accumulate);
      });
      // What was dropped is 0 and nothing else is: forward and gradient share the mask.
      const Array y = up(Numbers(x.size()));
      k().dropout(n, p, key, xs.data(), y.data(), false);
      const std::vector<float> actual = y.download();
      const Numbers expected = drop(x, p, key);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(actual[i] == 0, expected[i] == 0);
    }
  }
  const Numbers x = numbers(257, 2);
  expect_writes(x, 0, [&](float* y) { k().dropout(257, 0, key, up(x).data(), y, false); });
}

TEST_P(DropoutTest, KeepRate) {
  const int64_t n = 1 << 20;
  const Array ones = up(Numbers(n, 1));
  const Array y = up(Numbers(n));
  for (const float p : {0.1F, 0.5F}) {
    k().dropout(n, p, {7, 1, 2, 3}, ones.data(), y.data(), false);
    int64_t kept = 0;
    for (const float v : y.download()) kept += v != 0 ? 1 : 0;
    // Five standard deviations.
    const double deviation = std::sqrt(static_cast<double>(n) * wide(p) * (1 - wide(p)));
    EXPECT_NEAR(static_cast<double>(kept), static_cast<double>(n) * (1 - wide(p)), 5 * deviation);
  }
}

TEST(DropoutThreshold, IsExact) {
  EXPECT_EQ(dropout_threshold(0), 0U);
  EXPECT_EQ(dropout_threshold(0.5F), 1U << 31);
  EXPECT_EQ(dropout_threshold(0.25F), 1U << 30);
  EXPECT_EQ(dropout_threshold(0x1p-32F), 1U);
  EXPECT_EQ(dropout_threshold(0x1.fffffep-1F), 0xFFFFFF00U);
}

}  // namespace
}  // namespace rrfp::kernels::testing
