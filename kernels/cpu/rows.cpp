// SPDX-License-Identifier: Apache-2.0
//
// Kernels that move, add up or rotate the rows of a matrix.
//
// Sums over rows take the rows in their order, so that the sum over all rows in one call and in
// several calls, one after the other, is the same to the bit.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Below the others: it is compiled for each target, too.
#include <hwy/contrib/math/math-inl.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

/// Rows that a sum over rows takes at once: the sums are loaded and stored once for so many.
constexpr int64_t kRowsAtOnce = 8;

void broadcast_rows(int64_t rows, int64_t cols, const float* bias, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(bias, cols, y + r * cols);
  }
}

void sum_rows(int64_t rows, int64_t cols, const float* x, float* y) {
  for (int64_t first = 0; first < rows; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, rows - first);
    const float* const block = x + first * cols;
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      V sum = part.load(y + c);
      for (int64_t r = 0; r < count; ++r) sum = hn::Add(sum, part.load(block + r * cols + c));
      part.store(sum, y + c);
    });
  }
}

HWY_INLINE void add_row(int64_t cols, const float* x, float* y) {
  for_each_part(cols,
                [&](int64_t c, auto part) HWY_ATTR { part.put(part.load(x + c), y + c, true); });
}

void add_positions(int64_t rows, int64_t cols, int64_t length, int64_t first, const float* x,
                   const float* table, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const position = table + (first + r % length) * cols;
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      part.store(hn::Add(part.load(x + r * cols + c), part.load(position + c)), y + r * cols + c);
    });
  }
}

void positions_gradient(int64_t rows, int64_t cols, int64_t length, const float* dy,
                        float* dtable) {
  for (int64_t r = 0; r < rows; ++r) add_row(cols, dy + r * cols, dtable + r % length * cols);
}

void gather_rows(int64_t rows, int64_t cols, const int32_t* ids, const float* table, float* y) {
  for (int64_t r = 0; r < rows; ++r) std::copy_n(table + ids[r] * cols, cols, y + r * cols);
}

void scatter_add_rows(int64_t rows, int64_t cols, const int32_t* ids, const float* dy,
                      float* dtable) {
  for (int64_t r = 0; r < rows; ++r) add_row(cols, dy + r * cols, dtable + ids[r] * cols);
}

void merge_rows(int64_t rows, int64_t cols, const float* x, const float* table,
                const int32_t* sources, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = sources[r] < 0 ? x + r * cols : table + sources[r] * cols;
    std::copy_n(row, cols, y + r * cols);
  }
}

void merge_rows_gradient(int64_t rows, int64_t cols, const int32_t* sources, const float* dy,
                         float* dx, bool accumulate) {
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = dx + r * cols;
    if (sources[r] >= 0) {
      if (!accumulate) std::fill_n(row, cols, 0.0F);
    } else if (accumulate) {
      add_row(cols, dy + r * cols, row);
    } else {
      std::copy_n(dy + r * cols, cols, row);
    }
  }
}

void merge_rows_table_gradient(int64_t rows, int64_t cols, const int32_t* sources, const float* dy,
                               int64_t table_rows, float* dtable, bool accumulate) {
  if (!accumulate) std::fill_n(dtable, table_rows * cols, 0.0F);
  for (int64_t r = 0; r < rows; ++r) {
    if (sources[r] >= 0) add_row(cols, dy + r * cols, dtable + sources[r] * cols);
  }
}

/// Sine and cosine of the angles of a few pairs of a head at one position.
struct Rotation {
  static constexpr int64_t kPairs = 64;
  HWY_ALIGN_MAX double frequency[kPairs];
  HWY_ALIGN_MAX float sine[kPairs];
  HWY_ALIGN_MAX float cosine[kPairs];

  /// For the pairs first .. first + count - 1.
  void set_frequencies(const RotaryShape& shape, int64_t first, int64_t count) {
    for (int64_t j = 0; j < count; ++j) {
      const auto exponent = static_cast<double>(2 * (first + j));
      frequency[j] = std::pow(shape.base, -exponent / static_cast<double>(shape.head_dim));
    }
  }
  /// The angle is reduced in f64: position times frequency may be many turns, of which f32 would
  /// leave few digits.
  HWY_INLINE void set_position(int64_t position, int64_t count, bool inverse) {
    constexpr double kTurn = 6.283185307179586;
    for (int64_t j = 0; j < count; ++j) {
      const double angle = static_cast<double>(inverse ? -position : position) * frequency[j];
      const double turns = angle / kTurn;
      const auto nearest = static_cast<int64_t>(turns < 0 ? turns - 0.5 : turns + 0.5);
      sine[j] = static_cast<float>(angle - kTurn * static_cast<double>(nearest));
    }
    for_each_part(count, [&](int64_t j, auto part) HWY_ATTR {
      const V angle = part.load(sine + j);
      part.store(hn::Cos(F32(), angle), cosine + j);
      part.store(hn::Sin(F32(), angle), sine + j);
    });
  }
  /// Rotates `count` pairs (low[j], high[j]).
  HWY_INLINE void apply(int64_t count, const float* low, const float* high, float* y_low,
                        float* y_high, bool accumulate) const {
    for_each_part(count, [&](int64_t j, auto part) HWY_ATTR {
      const V a = part.load(low + j);
      const V b = part.load(high + j);
      const V s = part.load(sine + j);
      const V c = part.load(cosine + j);
      part.put(hn::NegMulAdd(b, s, hn::Mul(a, c)), y_low + j, accumulate);
      part.put(hn::MulAdd(a, s, hn::Mul(b, c)), y_high + j, accumulate);
    });
  }
};

/// Turns `count` pairs from `first` on of all heads of a row.
HWY_INLINE void rotate_row(const RotaryShape& shape, const Rotation& rotation, int64_t row,
                           int64_t first, int64_t count, const float* x, float* y,
                           bool accumulate) {
  const int64_t half = shape.head_dim / 2;
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t low = row * shape.width + h * shape.head_dim + first;
    rotation.apply(count, x + low, x + low + half, y + low, y + low + half, accumulate);
  }
}

void rotary(const RotaryShape& shape, const float* x, float* y, bool accumulate) {
  const int64_t half = shape.head_dim / 2;
  Rotation rotation;
  for (int64_t first = 0; first < half; first += Rotation::kPairs) {
    const int64_t count = std::min(Rotation::kPairs, half - first);
    rotation.set_frequencies(shape, first, count);
    if (shape.positions != nullptr) {
      for (int64_t r = 0; r < shape.rows; ++r) {
        rotation.set_position(shape.positions[r], count, shape.inverse);
        rotate_row(shape, rotation, r, first, count, x, y, accumulate);
      }
      continue;
    }
    for (int64_t t = 0; t < std::min(shape.length, shape.rows); ++t) {
      rotation.set_position(shape.first_position + t, count, shape.inverse);
      for (int64_t r = t; r < shape.rows; r += shape.length) {
        rotate_row(shape, rotation, r, first, count, x, y, accumulate);
      }
    }
  }
  const int64_t rotated = shape.heads * shape.head_dim;
  for (int64_t r = 0; r < shape.rows; ++r) {
    for_each_part(shape.width - rotated, [&](int64_t c, auto part) HWY_ATTR {
      const int64_t i = r * shape.width + rotated + c;
      part.put(part.load(x + i), y + i, accumulate);
    });
  }
}

void mean(int64_t outer, int64_t extent, int64_t inner, const float* x, float* y) {
  const float share = extent == 0 ? 0 : 1 / static_cast<float>(extent);
  for (int64_t o = 0; o < outer; ++o) {
    const float* const block = x + o * extent * inner;
    if (inner == 1) {
      y[o] = share *
             sum_parts(extent, [&](int64_t e, auto part) HWY_ATTR { return part.load(block + e); });
      continue;
    }
    for_each_part(inner, [&](int64_t i, auto part) HWY_ATTR {
      V sum = zero();
      for (int64_t e = 0; e < extent; ++e) sum = hn::Add(sum, part.load(block + e * inner + i));
      part.store(hn::Mul(sum, set(share)), y + o * inner + i);
    });
  }
}

void mean_gradient(int64_t outer, int64_t extent, int64_t inner, const float* dy, float* dx,
                   bool accumulate) {
  const float share = extent == 0 ? 0 : 1 / static_cast<float>(extent);
  for (int64_t o = 0; o < outer; ++o) {
    float* const block = dx + o * extent * inner;
    if (inner == 1) {
      const V value = set(share * dy[o]);
      for_each_part(extent,
                    [&](int64_t e, auto part) HWY_ATTR { part.put(value, block + e, accumulate); });
      continue;
    }
    for (int64_t e = 0; e < extent; ++e) {
      for_each_part(inner, [&](int64_t i, auto part) HWY_ATTR {
        const V value = hn::Mul(part.load(dy + o * inner + i), set(share));
        part.put(value, block + e * inner + i, accumulate);
      });
    }
  }
}

void enter_rows(Kernels& table) {
  table.broadcast_rows = broadcast_rows;
  table.sum_rows = sum_rows;
  table.add_positions = add_positions;
  table.positions_gradient = positions_gradient;
  table.gather_rows = gather_rows;
  table.scatter_add_rows = scatter_add_rows;
  table.merge_rows = merge_rows;
  table.merge_rows_gradient = merge_rows_gradient;
  table.merge_rows_table_gradient = merge_rows_table_gradient;
  table.rotary = rotary;
  table.mean = mean;
  table.mean_gradient = mean_gradient;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_rows);
void enter_rows(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_rows)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
