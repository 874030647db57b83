// SPDX-License-Identifier: Apache-2.0
//
// Layer norm, RMS norm and cross-entropy against f64, their gradients against its differences.
#include <algorithm>
#include <cmath>

#include "tests/kernels/harness.h"

namespace rrfp::kernels::testing {
namespace {

RRFP_KERNELS_SUITE(NormsTest);
RRFP_KERNELS_SUITE(CrossEntropyTest);

constexpr double kBound = 2e-6;
constexpr double kGradientBound = 1e-5;
constexpr float kEpsilon = 1e-5F;
constexpr int64_t kRows = 3;

size_t at(int64_t i) {
  return static_cast<size_t>(i);
}

struct Norm {
  Numbers y, mean, rstd;
};

/// Layer norm, or RMS norm if not centered. Empty gamma and beta stand for null.
Norm normalise(bool centered, const Numbers& x, const Numbers& gamma, const Numbers& beta) {
  const size_t cols = x.size() / at(kRows);
  Norm out;
  for (size_t r = 0; r < at(kRows) && cols > 0; ++r) {
    const double* const row = &x[r * cols];
    double mean = 0;
    for (size_t c = 0; centered && c < cols; ++c) mean += row[c] / static_cast<double>(cols);
    double variance = 0;
    for (size_t c = 0; c < cols; ++c) {
      variance += (row[c] - mean) * (row[c] - mean) / static_cast<double>(cols);
    }
    out.mean.push_back(mean);
    out.rstd.push_back(1 / std::sqrt(variance + static_cast<double>(kEpsilon)));
    for (size_t c = 0; c < cols; ++c) {
      const double xhat = (row[c] - mean) * out.rstd.back();
      out.y.push_back((gamma.empty() ? xhat : xhat * gamma[c]) + (beta.empty() ? 0 : beta[c]));
    }
  }
  return out;
}

TEST_P(NormsTest, LayerNorm) {
  for (const int64_t cols : kSizes) {
    const Numbers x = sum(numbers(kRows * cols, 1), Numbers(at(kRows * cols), 0.5));
    const Numbers gamma = numbers(cols, 2);
    const Numbers beta = numbers(cols, 3);
    const Array xs = up(x);
    const Array gs = up(gamma);
    const Array bs = up(beta);
    const Array mean = up(Numbers(kRows));
    const Array rstd = up(Numbers(kRows));
    const auto run = [&](const float* g, const float* b, float* y) {
      k().layer_norm(kRows, cols, kEpsilon, xs.data(), g, b, y, mean.data(), rstd.data());
    };
    const Norm expected = normalise(true, x, gamma, beta);
    expect_writes(expected.y, kBound, [&](float* y) { run(gs.data(), bs.data(), y); });
    if (cols == 0) continue;
    expect_close(mean.download(), expected.mean, kBound);
    // Of a single column, the variance is that of a rounding error at most.
    expect_close(rstd.download(), expected.rstd, kBound);
    expect_writes(normalise(true, x, gamma, {}).y, kBound,
                  [&](float* y) { run(gs.data(), nullptr, y); });
    expect_writes(normalise(true, x, {}, beta).y, kBound,
                  [&](float* y) { run(nullptr, bs.data(), y); });
  }
}

TEST_P(NormsTest, LayerNormGradient) {
  for (const int64_t cols : kSizes) {
    const Numbers x = numbers(kRows * cols, 1);
    const Numbers gamma = numbers(cols, 2);
    const Numbers d = numbers(kRows * cols, 4);
    if (cols == 0) continue;
    const Array xs = up(x);
    const Array gs = up(gamma);
    const Array dy = up(d);
    const Norm norm = normalise(true, x, gamma, {});
    const Array mean = up(norm.mean);
    const Array rstd = up(norm.rstd);
    const auto y_of_x = [&](const Numbers& g) {
      return [&, g](const Numbers& moved) { return normalise(true, moved, g, {}).y; };
    };
    const auto run = [&](const float* g, float* dx, bool accumulate) {
      k().layer_norm_gradient(kRows, cols, xs.data(), g, mean.data(), rstd.data(), dy.data(), dx,
                              accumulate);
    };
    if (cols > 1) {  // else 0, and what differences and f32 leave of it is all rounding
      expect_puts(differences(y_of_x(gamma), x, d), kGradientBound,
                  [&](float* dx, bool accumulate) { run(gs.data(), dx, accumulate); });
      expect_puts(differences(y_of_x({}), x, d), kGradientBound,
                  [&](float* dx, bool accumulate) { run(nullptr, dx, accumulate); });
    }
    const auto y_of_gamma = [&](const Numbers& g) { return normalise(true, x, g, {}).y; };
    const auto y_of_beta = [&](const Numbers& b) { return normalise(true, x, gamma, b).y; };
    const Array dbeta = up(Numbers(at(cols)));
    expect_adds(differences(y_of_gamma, gamma, d), kGradientBound, [&](float* dgamma) {
      k().fill(cols, 0, dbeta.data());
      k().layer_norm_weights(kRows, cols, xs.data(), mean.data(), rstd.data(), dy.data(), dgamma,
                             dbeta.data());
    });
    expect_close(dbeta.download(), differences(y_of_beta, gamma, d), kGradientBound);
    expect_adds(differences(y_of_gamma, gamma, d), kGradientBound, [&](float* dgamma) {
      k().layer_norm_weights(kRows, cols, xs.data(), mean.data(), rstd.data(), dy.data(), dgamma,
                             nullptr);
    });
  }
}

TEST_P(NormsTest, WeightsOfManyRows) {
  const int64_t rows = 257;
  const int64_t cols = 9;
  const Numbers x = numbers(rows * cols, 1);
  const Numbers d = numbers(rows * cols, 2);
  const Numbers mean = numbers(rows, 3);
  const Numbers rstd = numbers(rows, 4);
  Numbers dgamma(at(cols));
  Numbers drms(at(cols));
  Numbers dbeta(at(cols));
  for (int64_t i = 0; i < rows * cols; ++i) {
    const size_t r = at(i / cols);
    dgamma[at(i % cols)] += d[at(i)] * (x[at(i)] - mean[r]) * rstd[r];
    drms[at(i % cols)] += d[at(i)] * x[at(i)] * rstd[r];
    dbeta[at(i % cols)] += d[at(i)];
  }
  const Array beta_out = up(Numbers(at(cols)));
  expect_adds(dgamma, kGradientBound, [&](float* y) {
    k().fill(cols, 0, beta_out.data());
    k().layer_norm_weights(rows, cols, up(x).data(), up(mean).data(), up(rstd).data(), up(d).data(),
                           y, beta_out.data());
  });
  expect_close(beta_out.download(), dbeta, kGradientBound);
  expect_adds(drms, kGradientBound, [&](float* y) {
    k().rms_norm_weights(rows, cols, up(x).data(), up(rstd).data(), up(d).data(), y);
  });
}

TEST_P(NormsTest, RmsNorm) {
  for (const int64_t cols : kSizes) {
    const Numbers x = numbers(kRows * cols, 1);
    const Numbers gamma = numbers(cols, 2);
    const Numbers d = numbers(kRows * cols, 4);
    const Array xs = up(x);
    const Array gs = up(gamma);
    const Array dy = up(d);
    const Array rstd = up(Numbers(kRows));
    const Norm expected = normalise(false, x, gamma, {});
    expect_writes(expected.y, kBound, [&](float* y) {
      k().rms_norm(kRows, cols, kEpsilon, xs.data(), gs.data(), y, rstd.data());
    });
    if (cols == 0) continue;
    expect_close(rstd.download(), expected.rstd, kBound);
    const auto y_of_x = [&](const Numbers& moved) { return normalise(false, moved, gamma, {}).y; };
    const auto y_of_gamma = [&](const Numbers& g) { return normalise(false, x, g, {}).y; };
    if (cols > 1) {
      expect_puts(differences(y_of_x, x, d), kGradientBound, [&](float* dx, bool accumulate) {
        k().rms_norm_gradient(kRows, cols, xs.data(), gs.data(), rstd.data(), dy.data(), dx,
                              accumulate);
      });
    }
    expect_adds(differences(y_of_gamma, gamma, d), kGradientBound, [&](float* dgamma) {
      k().rms_norm_weights(kRows, cols, xs.data(), rstd.data(), dy.data(), dgamma);
    });
  }
}

Numbers lse_of(const Numbers& logits, int64_t classes) {
  Numbers lse;
  for (size_t start = 0; start < logits.size(); start += at(classes)) {
    const auto begin = logits.begin() + static_cast<int64_t>(start);
    const double greatest = *std::max_element(begin, begin + classes);
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(begin[c] - greatest);
    lse.push_back(greatest + std::log(total));
  }
  return lse;
}

Numbers losses(const Numbers& logits, const std::vector<int32_t>& targets, int32_t ignore) {
  const int64_t classes = static_cast<int64_t>(logits.size() / targets.size());
  Numbers loss = lse_of(logits, classes);
  for (size_t r = 0; r < loss.size(); ++r) {
    loss[r] = targets[r] == ignore ? 0 : loss[r] - logits[r * at(classes) + at(targets[r])];
  }
  return loss;
}

TEST_P(CrossEntropyTest, LossAndGradient) {
  constexpr int32_t kIgnore = -100;
  for (const int64_t classes : kSizes) {
    if (classes == 0) continue;
    for (const double scale : {1.0, 20.0}) {
      const std::vector<int32_t> targets = {0, kIgnore, static_cast<int32_t>(classes - 1),
                                            static_cast<int32_t>(classes / 2)};
      const auto rows = static_cast<int64_t>(targets.size());
      const Numbers x = numbers(rows * classes, 1, scale);
      const Numbers d = numbers(rows, 2);
      const Array logits = up(x);
      const Ids ids = up(targets);
      const Array lse = up(Numbers(at(rows)));
      expect_writes(losses(x, targets, kIgnore), kBound, [&](float* loss) {
        k().cross_entropy(rows, classes, logits.data(), ids.data(), kIgnore, loss, lse.data());
      });
      expect_close(lse.download(), lse_of(x, classes), kBound);
      const auto f = [&](const Numbers& moved) { return losses(moved, targets, kIgnore); };
      expect_puts(differences(f, x, d), kGradientBound, [&](float* dx, bool accumulate) {
        k().cross_entropy_gradient(rows, classes, logits.data(), ids.data(), kIgnore, lse.data(),
                                   up(d).data(), dx, accumulate);
      });
    }
  }
}

TEST_P(CrossEntropyTest, HugeLogits) {
  // exp of any of them alone, or of the differences, would be infinite or 0.
  const Numbers x = {1e30, -1e30, 0, 5, -3e38, -3e38, -3e38, -3e38, 1e4, 9999, 1e4, -1e4};
  const std::vector<int32_t> targets = {0, 2, 3};
  const Array logits = up(x);
  const Ids ids = up(targets);
  const Array lse = up(Numbers(3));
  const double third = std::log(2 + std::exp(-1.0));
  expect_writes({0, std::log(4.0), 2e4 + third}, kBound, [&](float* loss) {
    k().cross_entropy(3, 4, logits.data(), ids.data(), -1, loss, lse.data());
  });
  const Array out = up(Numbers(x.size()));
  k().cross_entropy_gradient(3, 4, logits.data(), ids.data(), -1, lse.data(),
                             up(Numbers(3, 1.0)).data(), out.data(), false);
  for (const float v : out.download()) EXPECT_LE(std::abs(v), 1.0F);  // not so for NaN
}

TEST_P(CrossEntropyTest, NanOfALogitReachesTheLoss) {
  Numbers x = numbers(40, 1);
  x[23] = std::nan("");
  const Array loss = up(Numbers(2));
  k().cross_entropy(2, 20, up(x).data(), up(std::vector<int32_t>{1, 1}).data(), -1, loss.data(),
                    up(Numbers(2)).data());
  EXPECT_FALSE(std::isnan(loss.download()[0]));
  EXPECT_TRUE(std::isnan(loss.download()[1]));
}

TEST_P(CrossEntropyTest, ManyClasses) {
  const int64_t classes = 50257;
  const std::vector<int32_t> targets = {50256};
  const Numbers x = numbers(classes, 1, 3);
  expect_writes(losses(x, targets, -1), kBound, [&](float* loss) {
    k().cross_entropy(1, classes, up(x).data(), up(targets).data(), -1, loss,
                      up(Numbers(1)).data());
  });
}

}  // namespace
}  // namespace rrfp::kernels::testing
