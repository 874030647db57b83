// SPDX-License-Identifier: Apache-2.0
//
// Products and the kernels on rows against plain f64 loops.
#include <cmath>
#include <limits>
#include <thread>

#include "tests/kernels/harness.h"

namespace rrfp::kernels::testing {
namespace {

RRFP_KERNELS_SUITE(GemmTest);
RRFP_KERNELS_SUITE(RowsTest);

constexpr double kBound = 2e-6;

size_t at(int64_t i) {
  return static_cast<size_t>(i);
}

/// One product, with rows longer than needed; the columns beyond must stay as they are.
void check_product(const Device& device, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                   int64_t k, float beta) {
  SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << ", transposed "
                                    << transpose_a << transpose_b << ", beta " << beta);
  const int64_t lda = (transpose_a ? m : k) + 3;
  const int64_t ldb = (transpose_b ? k : n) + 2;
  const int64_t ldc = n + 1;
  const Numbers a = numbers((transpose_a ? k : m) * lda, 1);
  const Numbers b = numbers((transpose_b ? n : k) * ldb, 2);
  Numbers c = numbers(m * ldc, 3);
  Numbers expected = c;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += a[at(transpose_a ? l * lda + i : i * lda + l)] *
               b[at(transpose_b ? j * ldb + l : l * ldb + j)];
      }
      double& out = expected[at(i * ldc + j)];
      out = sum + static_cast<double>(beta) * out;
      if (beta == 0) c[at(i * ldc + j)] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  const Array out(device, c);
  const GemmShape shape = {transpose_a, transpose_b, m, n, k, lda, ldb, ldc};
  device.kernels.gemm(shape, Array(device, a).data(), Array(device, b).data(), beta, out.data());
  expect_close(out.download(), expected, kBound);
}

TEST_P(GemmTest, ThreadsGetTheSameBits) {
  // With a row and a column of their own: other routines, too.
  for (const GemmShape& shape : {GemmShape{false, false, 65, 130, 257, 257, 130, 130},
                                 GemmShape{true, false, 1, 130, 257, 1, 130, 130},
                                 GemmShape{false, true, 65, 1, 257, 257, 257, 1}}) {
    const Array a = up(numbers(shape.m * shape.k, 1));
    const Array b = up(numbers(shape.n * shape.k, 2));
    std::vector<Array> results;
    for (int i = 0; i < 4; ++i) results.push_back(up(Numbers(at(shape.m * shape.n))));
    {
      std::vector<std::jthread> threads;
      for (const Array& c : results) {
        threads.emplace_back([&] {
          for (int i = 0; i < 10; ++i) k().gemm(shape, a.data(), b.data(), 0, c.data());
        });
      }
    }
    for (const Array& c : results) EXPECT_EQ(c.download(), results[0].download());
  }
}

TEST_P(GemmTest, AgainstPlainLoops) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const float beta : {0.0F, 1.0F, 0.5F}) {
        for (const int64_t m : {0, 1, 2, 65}) {
          for (const int64_t n : {0, 1, 3, 64, 130}) {
            for (const int64_t k : {0, 1, 9, 257}) {
              check_product(device(), transpose_a, transpose_b, m, n, k, beta);
            }
          }
        }
      }
    }
  }
}

TEST_P(RowsTest, BroadcastAndSum) {
  for (const int64_t cols : kSizes) {
    for (const int64_t rows : {0, 1, 7, 8, 9, 20}) {
      const Numbers x = numbers(rows * cols, 1);
      const Numbers bias = numbers(cols, 2);
      Numbers repeated;
      for (int64_t r = 0; r < rows; ++r) repeated.insert(repeated.end(), bias.begin(), bias.end());
      Numbers total(at(cols));
      for (int64_t i = 0; i < rows * cols; ++i) total[at(i % cols)] += x[at(i)];
      expect_writes(repeated, 0,
                    [&](float* y) { k().broadcast_rows(rows, cols, up(bias).data(), y); });
      expect_adds(total, kBound, [&](float* y) { k().sum_rows(rows, cols, up(x).data(), y); });
    }
  }
}

TEST_P(RowsTest, SumOfRowsMayBeSplit) {
  const int64_t rows = 37;
  const int64_t cols = 19;
  const Array x = up(numbers(rows * cols, 1));
  const Array whole = up(numbers(cols, 2));
  const Array parts = up(numbers(cols, 2));
  k().sum_rows(rows, cols, x.data(), whole.data());
  k().sum_rows(11, cols, x.data(), parts.data());
  k().sum_rows(rows - 11, cols, x.data() + 11 * cols, parts.data());
  EXPECT_EQ(whole.download(), parts.download());
}

TEST_P(RowsTest, Positions) {
  for (const int64_t cols : kSizes) {
    const int64_t length = 5;
    const int64_t rows = 3 * length;
    const int64_t first = 2;
    const Numbers x = numbers(rows * cols, 1);
    const Numbers table = numbers((first + length) * cols, 2);
    Numbers y = x;
    Numbers dtable(at(length * cols));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        y[at(r * cols + c)] += table[at((first + r % length) * cols + c)];
        dtable[at(r % length * cols + c)] += x[at(r * cols + c)];
      }
    }
    expect_writes(y, kBound, [&](float* out) {
      k().add_positions(rows, cols, length, first, up(x).data(), up(table).data(), out);
    });
    expect_adds(dtable, kBound,
                [&](float* out) { k().positions_gradient(rows, cols, length, up(x).data(), out); });
  }
}

TEST_P(RowsTest, GatherAndScatter) {
  const std::vector<int32_t> ids = {3, 0, 3, 9, 1, 3, 9};
  const auto rows = static_cast<int64_t>(ids.size());
  for (const int64_t cols : kSizes) {
    const Numbers table = numbers(10 * cols, 1);
    const Numbers dy = numbers(rows * cols, 2);
    Numbers y;
    Numbers dtable(table.size());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        y.push_back(table[at(ids[at(r)] * cols + c)]);
        dtable[at(ids[at(r)] * cols + c)] += dy[at(r * cols + c)];
      }
    }
    expect_writes(y, 0, [&](float* out) {
      k().gather_rows(rows, cols, up(ids).data(), up(table).data(), out);
    });
    expect_adds(dtable, kBound, [&](float* out) {
      k().scatter_add_rows(rows, cols, up(ids).data(), up(dy).data(), out);
    });
  }
}

/// With `positions`, those of the rows; else they follow the first one.
Numbers rotate(const RotaryShape& s, const Numbers& x, const std::vector<int32_t>& positions = {}) {
  Numbers y = x;
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t j = 0; j < s.head_dim / 2; ++j) {
        const double frequency =
            std::pow(s.base, -2 * static_cast<double>(j) / static_cast<double>(s.head_dim));
        const int64_t position =
            positions.empty() ? s.first_position + r % s.length : positions[at(r)];
        const double angle = static_cast<double>(position) * frequency;
        const double sine = std::sin(s.inverse ? -angle : angle);
        const size_t low = at(r * s.width + h * s.head_dim + j);
        const size_t high = low + at(s.head_dim / 2);
        y[low] = x[low] * std::cos(angle) - x[high] * sine;
        y[high] = x[high] * std::cos(angle) + x[low] * sine;
      }
    }
  }
  return y;
}

TEST_P(RowsTest, Rotary) {
  for (const int64_t dim : {2, 6, 16, 64, 80, 200}) {
    for (const int64_t first : {0, 5, 1000000}) {
      for (const int64_t rest : {0, 5}) {
        RotaryShape s = {6, 3, 2 * dim + rest, 2, dim, first};
        const Numbers x = numbers(s.rows * s.width, 1);
        expect_puts(rotate(s, x), kBound,
                    [&](float* y, bool accumulate) { k().rotary(s, up(x).data(), y, accumulate); });
        // The gradient: a rotation is linear.
        s.inverse = true;
        expect_puts(rotate(s, x), kBound,
                    [&](float* y, bool accumulate) { k().rotary(s, up(x).data(), y, accumulate); });
      }
    }
  }
  const RotaryShape s = {4, 2, 8, 1, 6, 7};
  RotaryShape back = s;
  back.inverse = true;
  const Numbers dy = numbers(32, 2);
  const Numbers dx =
      differences([&](const Numbers& x) { return rotate(s, x); }, numbers(32, 1), dy);
  expect_puts(dx, kBound,
              [&](float* y, bool accumulate) { k().rotary(back, up(dy).data(), y, accumulate); });
  k().rotary({0, 0, 8, 1, 8}, nullptr, nullptr, false);
}

TEST_P(RowsTest, RotaryWithPositions) {
  const std::vector<int32_t> given = {0, 1, 2, 0, 0, 1000000, 7, 3, 2};
  const Ids positions = up(given);
  for (const int64_t dim : {2, 6, 64, 200}) {
    // The first position has no meaning then, and neither has the length.
    RotaryShape s = {9, 3, 2 * dim + 5, 2, dim, 77};
    s.positions = positions.data();
    const Numbers x = numbers(s.rows * s.width, 1);
    for (const bool inverse : {false, true}) {
      s.inverse = inverse;
      expect_puts(rotate(s, x, given), kBound,
                  [&](float* y, bool accumulate) { k().rotary(s, up(x).data(), y, accumulate); });
    }
  }
  k().rotary({0, 0, 8, 1, 8, 0, 10000, false, positions.data()}, nullptr, nullptr, false);
}

TEST_P(RowsTest, RotaryWithThePositionsThatFollowHasTheSameBits) {
  const Ids positions = up(std::vector<int32_t>{5, 6, 7, 5, 6, 7});
  RotaryShape s = {6, 3, 2 * 80, 2, 80, 5};
  const Array x = up(numbers(s.rows * s.width, 1));
  const Array followed = up(Numbers(at(s.rows * s.width)));
  const Array given = up(Numbers(at(s.rows * s.width)));
  k().rotary(s, x.data(), followed.data(), false);
  s.positions = positions.data();
  k().rotary(s, x.data(), given.data(), false);
  EXPECT_EQ(followed.download(), given.download());
}

TEST_P(RowsTest, Mean) {
  for (const int64_t inner : kSizes) {
    for (const int64_t extent : {1, 2, 9, 257}) {
      const int64_t outer = 3;
      const Numbers x = numbers(outer * extent * inner, 1);
      const Numbers dy = numbers(outer * inner, 2);
      Numbers y(at(outer * inner));
      Numbers dx(x.size());
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t e = 0; e < extent; ++e) {
          for (int64_t i = 0; i < inner; ++i) {
            const size_t element = at((o * extent + e) * inner + i);
            y[at(o * inner + i)] += x[element] / static_cast<double>(extent);
            dx[element] = dy[at(o * inner + i)] / static_cast<double>(extent);
          }
        }
      }
      expect_writes(y, kBound,
                    [&](float* out) { k().mean(outer, extent, inner, up(x).data(), out); });
      expect_puts(dx, kBound, [&](float* out, bool accumulate) {
        k().mean_gradient(outer, extent, inner, up(dy).data(), out, accumulate);
      });
    }
  }
}

}  // namespace
}  // namespace rrfp::kernels::testing
