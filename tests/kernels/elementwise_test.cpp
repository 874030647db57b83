// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels against f64, and their gradients against finite differences of it.
#include <cmath>

#include "tests/kernels/harness.h"

namespace rrfp::kernels::testing {
namespace {

RRFP_KERNELS_SUITE(ElementwiseTest);

constexpr double kBound = 1e-6;
constexpr double kGradientBound = 2e-6;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double silu(double x) {
  return x * sigmoid(x);
}
double gelu(double x) {
  const double u = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

Numbers apply(double (*f)(double), const Numbers& x) {
  Numbers y;
  for (const double v : x) y.push_back(f(v));
  return y;
}

Numbers product(const Numbers& a, const Numbers& b) {
  Numbers y = a;
  for (size_t i = 0; i < y.size(); ++i) y[i] *= b[i];
  return y;
}

/// f elementwise: so the differences, too.
Numbers slopes(double (*f)(double), const Numbers& x, const Numbers& dy) {
  constexpr double kStep = 1e-5;
  Numbers dx;
  for (size_t i = 0; i < x.size(); ++i) {
    dx.push_back(dy[i] * (f(x[i] + kStep) - f(x[i] - kStep)) / (2 * kStep));
  }
  return dx;
}

TEST_P(ElementwiseTest, FillCopyAddMultiply) {
  for (const int64_t n : kSizes) {
    const Numbers a = numbers(n, 1);
    const Numbers b = numbers(n, 2);
    const Array x = up(a);
    const Array z = up(b);
    expect_writes(Numbers(a.size(), 1.5), 0, [&](float* y) { k().fill(n, 1.5F, y); });
    expect_writes(a, 0, [&](float* y) { k().copy(n, x.data(), y, false); });
    expect_adds(a, kBound, [&](float* y) { k().copy(n, x.data(), y, true); });
    expect_writes(sum(a, b), kBound, [&](float* y) { k().add(n, x.data(), z.data(), y); });
    expect_puts(product(a, b), kBound, [&](float* y, bool accumulate) {
      k().multiply(n, x.data(), z.data(), y, accumulate);
    });
  }
}

TEST_P(ElementwiseTest, CopyBlockLeavesTheRestOfEachRow) {
  for (const int64_t cols : kSizes) {
    const int64_t rows = 5;
    const int64_t ldx = cols + 3;
    const int64_t ldy = cols + 2;
    const Numbers x = numbers(rows * ldx, 1);
    for (const bool accumulate : {false, true}) {
      const Numbers before = numbers(rows * ldy, 2);
      Numbers expected = before;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          double& v = expected[static_cast<size_t>(r * ldy + c)];
          v = (accumulate ? v : 0) + x[static_cast<size_t>(r * ldx + c)];
        }
      }
      const Array y = up(before);
      k().copy_block(rows, cols, up(x).data(), ldx, y.data(), ldy, accumulate);
      expect_close(y.download(), expected, kBound);
    }
  }
}

TEST_P(ElementwiseTest, Activations) {
  for (const int64_t n : kSizes) {
    for (const double scale : {1.0, 8.0}) {
      const Numbers x = numbers(n, 3, scale);
      const Numbers d = numbers(n, 4);
      const Array xs = up(x);
      const Array dy = up(d);
      expect_writes(apply(gelu, x), kBound, [&](float* y) { k().gelu(n, xs.data(), y); });
      expect_writes(apply(silu, x), kBound, [&](float* y) { k().silu(n, xs.data(), y); });
      expect_puts(slopes(gelu, x, d), kGradientBound, [&](float* dx, bool accumulate) {
        k().gelu_gradient(n, xs.data(), dy.data(), dx, accumulate);
      });
      expect_puts(slopes(silu, x, d), kGradientBound, [&](float* dx, bool accumulate) {
        k().silu_gradient(n, xs.data(), dy.data(), dx, accumulate);
      });
    }
  }
}

TEST_P(ElementwiseTest, ActivationsOfLargeNumbers) {
  const Numbers x = {-1e30, -1e4, -200, -90, -50, 50, 90, 200, 1e4, 1e30};
  const Numbers y = {0, 0, 0, 0, 0, 50, 90, 200, 1e4, 1e30};
  const Numbers slope = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  const auto n = static_cast<int64_t>(x.size());
  const Array xs = up(x);
  const Array ones = up(Numbers(x.size(), 1));
  const auto expect_each = [&](const Numbers& expected, const std::function<void(float*)>& run) {
    const Array out = up(x);
    run(out.data());
    const std::vector<float> actual = out.download();
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(actual[i]), expected[i], 1e-7 * (std::abs(expected[i]) + 1))
          << x[i];
    }
  };
  expect_each(y, [&](float* out) { k().gelu(n, xs.data(), out); });
  expect_each(y, [&](float* out) { k().silu(n, xs.data(), out); });
  // The cube of 1e30 is not an f32: the gradient there is left out.
  expect_each(slope, [&](float* out) {
    k().fill(n, 1, out);
    k().fill(5, 0, out);
    k().gelu_gradient(n - 2, xs.data() + 1, ones.data(), out + 1, false);
  });
  expect_each(slope, [&](float* out) { k().silu_gradient(n, xs.data(), ones.data(), out, false); });
}

TEST_P(ElementwiseTest, Swiglu) {
  for (const int64_t n : kSizes) {
    const Numbers gate = numbers(n, 5, 4);
    const Numbers up_values = numbers(n, 6);
    const Numbers d = numbers(n, 7);
    const Array gs = up(gate);
    const Array us = up(up_values);
    const Array dy = up(d);
    const Numbers dgate = slopes(silu, gate, product(d, up_values));
    const Numbers dup = product(d, apply(silu, gate));
    expect_writes(product(apply(silu, gate), up_values), kBound,
                  [&](float* y) { k().swiglu(n, gs.data(), us.data(), y); });
    expect_puts(dgate, kGradientBound, [&](float* dx, bool accumulate) {
      k().swiglu_gradient(n, gs.data(), us.data(), dy.data(), dx, accumulate, nullptr, false);
    });
    expect_puts(dup, kGradientBound, [&](float* dx, bool accumulate) {
      k().swiglu_gradient(n, gs.data(), us.data(), dy.data(), nullptr, false, dx, accumulate);
    });
    const Array other = up(Numbers(gate.size(), 1));
    expect_puts(dgate, kGradientBound, [&](float* dx, bool accumulate) {
      k().swiglu_gradient(n, gs.data(), us.data(), dy.data(), dx, accumulate, other.data(), false);
    });
    expect_close(other.download(), dup, kGradientBound);
  }
}

TEST_P(ElementwiseTest, SquaredError) {
  for (const int64_t n : kSizes) {
    const Numbers a = numbers(n, 8);
    const Numbers b = numbers(n, 9);
    const Numbers d = numbers(n, 10);
    const Array as = up(a);
    const Array bs = up(b);
    const Array dloss = up(d);
    const auto loss = [](const Numbers& p, const Numbers& q) {
      Numbers y;
      for (size_t i = 0; i < p.size(); ++i) y.push_back((p[i] - q[i]) * (p[i] - q[i]));
      return y;
    };
    expect_writes(loss(a, b), kBound,
                  [&](float* y) { k().squared_error(n, as.data(), bs.data(), y); });
    const Numbers da = differences([&](const Numbers& x) { return loss(x, b); }, a, d);
    const Numbers db = differences([&](const Numbers& x) { return loss(a, x); }, b, d);
    expect_puts(da, kGradientBound, [&](float* y, bool accumulate) {
      k().squared_error_gradient(n, as.data(), bs.data(), dloss.data(), 1, y, accumulate);
    });
    expect_puts(db, kGradientBound, [&](float* y, bool accumulate) {
      k().squared_error_gradient(n, as.data(), bs.data(), dloss.data(), -1, y, accumulate);
    });
  }
}

}  // namespace
}  // namespace rrfp::kernels::testing
