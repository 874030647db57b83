// SPDX-License-Identifier: Apache-2.0
//
// Patches of pictures and merged rows against plain f64 loops over pixels and rows.
#include <tuple>

#include "tests/kernels/harness.h"

namespace rrfp::kernels::testing {
namespace {

RRFP_KERNELS_SUITE(PicturesTest);
RRFP_KERNELS_SUITE(MergeRowsTest);

constexpr double kBound = 2e-6;

size_t at(int64_t i) {
  return static_cast<size_t>(i);
}

int64_t pixels(const PatchShape& s) {
  return s.pictures * s.height * s.width * s.channels;
}

/// Calls body(place in the pictures, place in the patches) for the pixels of patches that are in
/// the pictures.
template <class Body>
void for_each_pixel(const PatchShape& s, const Body& body) {
  int64_t place = 0;
  for (int64_t n = 0; n < s.pictures; ++n) {
    for (int64_t i = 0; i + s.kernel <= s.height + 2 * s.padding; i += s.stride) {
      for (int64_t j = 0; j + s.kernel <= s.width + 2 * s.padding; j += s.stride) {
        for (int64_t k = 0; k < s.kernel * s.kernel; ++k) {
          const int64_t y = i + k / s.kernel - s.padding;
          const int64_t x = j + k % s.kernel - s.padding;
          for (int64_t c = 0; c < s.channels; ++c, ++place) {
            if (y < 0 || y >= s.height || x < 0 || x >= s.width) continue;
            body(at(((n * s.height + y) * s.width + x) * s.channels + c), at(place));
          }
        }
      }
    }
  }
}

int64_t patch_numbers(const PatchShape& s) {
  if (s.pictures == 0) return 0;
  return s.pictures * s.along(s.height) * s.along(s.width) * s.kernel * s.kernel * s.channels;
}

Numbers cut(const PatchShape& s, const Numbers& x) {
  Numbers y(at(patch_numbers(s)));
  for_each_pixel(s, [&](size_t pixel, size_t place) { y[place] = x[pixel]; });
  return y;
}

void check_patches(
    const Device& device, const PatchShape& s,
    const std::function<void(const Numbers&, const std::function<void(float*)>&)>& expect_copies,
    const std::function<void(const Numbers&, const std::function<void(float*, bool)>&)>&
        expect_puts) {
  SCOPED_TRACE(::testing::Message()
               << s.pictures << " x " << s.height << " x " << s.width << " x " << s.channels
               << ", kernel " << s.kernel << ", stride " << s.stride << ", padding " << s.padding);
  const Numbers x = numbers(pixels(s), 1);
  expect_copies(cut(s, x),
                [&](float* y) { device.kernels.patches(s, Array(device, x).data(), y); });
  const Numbers dy = numbers(patch_numbers(s), 2);
  Numbers dx(x.size());
  for_each_pixel(s, [&](size_t pixel, size_t place) { dx[pixel] += dy[place]; });
  expect_puts(dx, [&](float* out, bool accumulate) {
    device.kernels.patches_gradient(s, Array(device, dy).data(), out, accumulate);
  });
}

TEST_P(PicturesTest, PatchesAndTheirGradient) {
  for (const int64_t channels : {1, 3, 8, 20}) {
    for (const auto& [kernel, stride, padding] :
         {std::tuple{1, 1, 0}, {2, 2, 0}, {3, 1, 1}, {3, 2, 0}, {2, 3, 1}, {4, 1, 5}, {5, 7, 2}}) {
      for (const auto& [pictures, height, width] :
           {std::tuple{2, 5, 6}, {1, 7, 5}, {3, 11, 8}, {0, 5, 5}}) {
        check_patches(
            device(), {pictures, height, width, channels, kernel, stride, padding},
            [&](const Numbers& y, const auto& run) { expect_writes(y, 0, run); },
            [&](const Numbers& dx, const auto& run) { expect_puts(dx, kBound, run); });
      }
    }
  }
}

TEST_P(PicturesTest, EmptyExtents) {
  // Pictures without pixels have patches of padding; no pictures may have any size.
  for (const PatchShape& s :
       {PatchShape{2, 0, 3, 4, 3, 1, 2}, PatchShape{2, 3, 0, 4, 3, 2, 3}, {2, 3, 4, 0, 2, 1, 0}}) {
    check_patches(
        device(), s, [&](const Numbers& y, const auto& run) { expect_writes(y, 0, run); },
        [&](const Numbers& dx, const auto& run) { expect_puts(dx, 0, run); });
  }
  EXPECT_GT(patch_numbers({2, 0, 3, 4, 3, 1, 2}), 0);
  k().patches({0, 0, 0, 3, 14, 14, 0}, nullptr, nullptr);
  k().patches_gradient({0, 0, 0, 3, 14, 14, 0}, nullptr, nullptr, false);
}

TEST_P(PicturesTest, GradientEqualsFiniteDifferences) {
  const PatchShape s = {2, 4, 5, 3, 3, 2, 1};
  const Numbers dy = numbers(patch_numbers(s), 2);
  const Numbers dx =
      differences([&](const Numbers& x) { return cut(s, x); }, numbers(pixels(s), 1), dy);
  expect_puts(dx, kBound, [&](float* out, bool accumulate) {
    k().patches_gradient(s, up(dy).data(), out, accumulate);
  });
}

// A product of patches with weights [out, kernel, kernel, channels] is a convolution.
TEST_P(PicturesTest, ProductIsConvolution) {
  const PatchShape s = {2, 9, 7, 3, 3, 2, 1};
  const int64_t width = 5;
  const int64_t size = s.kernel * s.kernel * s.channels;
  const int64_t down = s.along(s.height);
  const int64_t across = s.along(s.width);
  const int64_t rows = s.pictures * down * across;
  const Numbers x = numbers(pixels(s), 1);
  const Numbers w = numbers(width * size, 2);
  Numbers expected;
  for (int64_t n = 0; n < s.pictures; ++n) {
    for (int64_t i = 0; i < down; ++i) {
      for (int64_t j = 0; j < across; ++j) {
        for (int64_t out = 0; out < width; ++out) {
          double sum = 0;
          for (int64_t a = 0; a < s.kernel; ++a) {
            for (int64_t b = 0; b < s.kernel; ++b) {
              const int64_t row = i * s.stride + a - s.padding;
              const int64_t col = j * s.stride + b - s.padding;
              if (row < 0 || row >= s.height || col < 0 || col >= s.width) continue;
              for (int64_t c = 0; c < s.channels; ++c) {
                sum += x[at(((n * s.height + row) * s.width + col) * s.channels + c)] *
                       w[at(((out * s.kernel + a) * s.kernel + b) * s.channels + c)];
              }
            }
          }
          expected.push_back(sum);
        }
      }
    }
  }
  expect_writes(expected, kBound, [&](float* y) {
    const Array patches = up(Numbers(at(rows * size)));
    k().patches(s, up(x).data(), patches.data());
    k().gemm({false, true, rows, width, size, size, size, width}, patches.data(), up(w).data(), 0,
             y);
  });
}

struct Merge {
  Numbers x, table, dy, y, dx, dtable;
};

Merge merge(const std::vector<int32_t>& sources, int64_t table_rows, int64_t cols) {
  const auto rows = static_cast<int64_t>(sources.size());
  Merge m;
  m.x = numbers(rows * cols, 1);
  m.table = numbers(table_rows * cols, 2);
  m.dy = numbers(rows * cols, 3);
  m.dx.assign(m.x.size(), 0);
  m.dtable.assign(m.table.size(), 0);
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int32_t source = sources[at(i / cols)];
    const size_t from = at(source * cols + i % cols);
    m.y.push_back(source < 0 ? m.x[at(i)] : m.table[from]);
    (source < 0 ? m.dx[at(i)] : m.dtable[from]) += m.dy[at(i)];
  }
  return m;
}

TEST_P(MergeRowsTest, RowsAndTheirGradients) {
  // Rows of the table that are read once, several times and never.
  for (const std::vector<int32_t>& sources :
       {std::vector<int32_t>{-1, 4, -1, 0, 4, 4, 2, -1}, {-1, -1}, {1, 0}, {}}) {
    for (const int64_t cols : kSizes) {
      const auto rows = static_cast<int64_t>(sources.size());
      const Merge m = merge(sources, 6, cols);
      const Ids ids = up(sources);
      expect_writes(m.y, 0, [&](float* y) {
        k().merge_rows(rows, cols, up(m.x).data(), up(m.table).data(), ids.data(), y);
      });
      expect_puts(m.dx, kBound, [&](float* dx, bool accumulate) {
        k().merge_rows_gradient(rows, cols, ids.data(), up(m.dy).data(), dx, accumulate);
      });
      expect_puts(m.dtable, kBound, [&](float* dtable, bool accumulate) {
        k().merge_rows_table_gradient(rows, cols, ids.data(), up(m.dy).data(), 6, dtable,
                                      accumulate);
      });
    }
  }
}

TEST_P(MergeRowsTest, TheTableMayBeEmpty) {
  const std::vector<int32_t> sources = {-1, -1, -1};
  const Merge m = merge(sources, 0, 9);
  expect_writes(m.x, 0, [&](float* y) {
    k().merge_rows(3, 9, up(m.x).data(), nullptr, up(sources).data(), y);
  });
  k().merge_rows_table_gradient(3, 9, up(sources).data(), up(m.dy).data(), 0, nullptr, false);
}

TEST_P(MergeRowsTest, GradientsEqualFiniteDifferences) {
  const std::vector<int32_t> sources = {2, -1, 2, 0, -1};
  const int64_t cols = 3;
  const Merge m = merge(sources, 4, cols);
  const auto forward = [&](const Numbers& x, const Numbers& table) {
    Numbers y;
    for (int64_t i = 0; i < 5 * cols; ++i) {
      const int32_t source = sources[at(i / cols)];
      y.push_back(source < 0 ? x[at(i)] : table[at(source * cols + i % cols)]);
    }
    return y;
  };
  const Numbers dx = differences([&](const Numbers& x) { return forward(x, m.table); }, m.x, m.dy);
  const Numbers dtable =
      differences([&](const Numbers& table) { return forward(m.x, table); }, m.table, m.dy);
  expect_puts(dx, kBound, [&](float* out, bool accumulate) {
    k().merge_rows_gradient(5, cols, up(sources).data(), up(m.dy).data(), out, accumulate);
  });
  expect_puts(dtable, kBound, [&](float* out, bool accumulate) {
    k().merge_rows_table_gradient(5, cols, up(sources).data(), up(m.dy).data(), 4, out, accumulate);
  });
}

}  // namespace
}  // namespace rrfp::kernels::testing
