// SPDX-License-Identifier: Apache-2.0
//
// Products of the tiles of attention. For a product of 64 rows by 64 or 128 columns the calls to
// cblas_sgemm took a third of their time to copy the operands into their own order, for one use;
// here the operands are copied once for all the tiles that they are used in, and the left one not
// at all. Compiled once per instruction set, as simd-inl.h, which it is included after.
#if defined(RRFP_KERNELS_CPU_TILE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RRFP_KERNELS_CPU_TILE_PRODUCT_INL_H_
#undef RRFP_KERNELS_CPU_TILE_PRODUCT_INL_H_
#else
#define RRFP_KERNELS_CPU_TILE_PRODUCT_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

/// C (+)= scale A B, with A m x k, B k x n. Element (i, l) of A is at i * a_row + l * a_col, so A
/// may be transposed. A row of B can be read beyond n, to a multiple of kPanelMax; what is there
/// does not matter.
struct Product {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t a_row;
  int64_t a_col;
  int64_t b_row;
  int64_t c_row;
  float scale;
  bool accumulate;
};

/// Columns that are computed at once: two vectors. kPanelMax is that for vectors of 16 numbers, the
/// longest of the instruction sets in simd.h.
constexpr int64_t kPanelMax = 32;
HWY_INLINE int64_t panel() {
  return 2 * lanes();
}

/// Stores a row of the result, `width` numbers of the two vectors.
HWY_INLINE void put_row(const Product& s, V v0, V v1, int64_t width, float* c) {
  v0 = hn::Mul(v0, set(s.scale));
  v1 = hn::Mul(v1, set(s.scale));
  if (width >= panel()) {
    Whole().put(v0, c, s.accumulate);
    Whole().put(v1, c + lanes(), s.accumulate);
  } else if (width > lanes()) {
    Whole().put(v0, c, s.accumulate);
    Rest{static_cast<size_t>(width - lanes())}.put(v1, c + lanes(), s.accumulate);
  } else {
    Rest{static_cast<size_t>(width)}.put(v0, c, s.accumulate);
  }
}

/// kRows rows of one panel. Six rows by two vectors are twelve sums, enough to keep two multipliers
/// busy for the four or five cycles that one takes, and fit into 16 registers with what they need.
template <int kRows>
HWY_INLINE void panel_rows(const Product& s, const float* a, const float* b, int64_t width,
                           float* c) {
  V c00 = zero(), c10 = zero(), c20 = zero(), c30 = zero(), c40 = zero(), c50 = zero();
  V c01 = zero(), c11 = zero(), c21 = zero(), c31 = zero(), c41 = zero(), c51 = zero();
  for (int64_t l = 0; l < s.k; ++l, a += s.a_col, b += s.b_row) {
    const V b0 = hn::LoadU(F32(), b);
    const V b1 = hn::LoadU(F32(), b + lanes());
    const auto add = [&](int64_t row, V& sum0, V& sum1) HWY_ATTR {
      const V factor = set(a[row * s.a_row]);
      sum0 = hn::MulAdd(factor, b0, sum0);
      sum1 = hn::MulAdd(factor, b1, sum1);
    };
    add(0, c00, c01);
    if constexpr (kRows > 1) add(1, c10, c11);
    if constexpr (kRows > 2) add(2, c20, c21);
    if constexpr (kRows > 3) add(3, c30, c31);
    if constexpr (kRows > 4) add(4, c40, c41);
    if constexpr (kRows > 5) add(5, c50, c51);
  }
  put_row(s, c00, c01, width, c);
  if constexpr (kRows > 1) put_row(s, c10, c11, width, c + s.c_row);
  if constexpr (kRows > 2) put_row(s, c20, c21, width, c + 2 * s.c_row);
  if constexpr (kRows > 3) put_row(s, c30, c31, width, c + 3 * s.c_row);
  if constexpr (kRows > 4) put_row(s, c40, c41, width, c + 4 * s.c_row);
  if constexpr (kRows > 5) put_row(s, c50, c51, width, c + 5 * s.c_row);
}

HWY_NOINLINE void multiply_tile(const Product& s, const float* a, const float* b, float* c) {
  for (int64_t j = 0; j < s.n; j += panel()) {
    const int64_t width = std::min(panel(), s.n - j);
    int64_t i = 0;
    for (; i + 6 <= s.m; i += 6) {
      panel_rows<6>(s, a + i * s.a_row, b + j, width, c + i * s.c_row + j);
    }
    const float* const a_rest = a + i * s.a_row;
    float* const c_rest = c + i * s.c_row + j;
    switch (s.m - i) {
      case 5: panel_rows<5>(s, a_rest, b + j, width, c_rest); break;
      case 4: panel_rows<4>(s, a_rest, b + j, width, c_rest); break;
      case 3: panel_rows<3>(s, a_rest, b + j, width, c_rest); break;
      case 2: panel_rows<2>(s, a_rest, b + j, width, c_rest); break;
      case 1: panel_rows<1>(s, a_rest, b + j, width, c_rest); break;
      default: break;
    }
  }
}

/// Rows of a right operand side by side, each filled up with zeros.
HWY_INLINE void pack(int64_t rows, int64_t cols, const float* x, int64_t x_row, float* y,
                     int64_t y_row) {
  for (int64_t r = 0; r < rows; ++r) {
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      hn::StoreU(part.load(x + r * x_row + c), F32(), y + r * y_row + c);
    });
    for (int64_t c = (cols + lanes() - 1) / lanes() * lanes(); c < y_row; ++c) y[r * y_row + c] = 0;
  }
}

/// The same of x^T: row c of y is column c of x.
HWY_INLINE void pack_transposed(int64_t rows, int64_t cols, const float* x, int64_t x_row, float* y,
                                int64_t y_row) {
  int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  // In squares of 4 x 4 numbers, by two rounds of interleaving: of numbers, then of pairs.
  const hn::CappedTag<float, 4> d4;
  const hn::Repartition<uint64_t, decltype(d4)> d2;
  const auto pairs = [=](auto v) HWY_ATTR { return hn::BitCast(d2, v); };
  for (; r + 4 <= rows; r += 4) {
    const float* const from = x + r * x_row;
    int64_t c = 0;
    for (; c + 4 <= cols; c += 4) {
      const auto v0 = hn::LoadU(d4, from + c);
      const auto v1 = hn::LoadU(d4, from + x_row + c);
      const auto v2 = hn::LoadU(d4, from + 2 * x_row + c);
      const auto v3 = hn::LoadU(d4, from + 3 * x_row + c);
      const auto low01 = pairs(hn::InterleaveLower(d4, v0, v1));
      const auto low23 = pairs(hn::InterleaveLower(d4, v2, v3));
      const auto high01 = pairs(hn::InterleaveUpper(d4, v0, v1));
      const auto high23 = pairs(hn::InterleaveUpper(d4, v2, v3));
      float* const to = y + c * y_row + r;
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, low01, low23)), d4, to);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, low01, low23)), d4, to + y_row);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, high01, high23)), d4, to + 2 * y_row);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, high01, high23)), d4, to + 3 * y_row);
    }
    for (; c < cols; ++c) {
      for (int64_t i = 0; i < 4; ++i) y[c * y_row + r + i] = from[i * x_row + c];
    }
  }
#endif
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t i = r; i < rows; ++i) y[c * y_row + i] = x[i * x_row + c];
    std::fill(y + c * y_row + rows, y + (c + 1) * y_row, 0.0F);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
