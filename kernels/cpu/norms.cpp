// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm. With xhat = (x - mean) rstd and g = gamma dy, the gradient of a row is
//   dx = rstd (g - mean(g) - xhat mean(g xhat)),
// without the term mean(g) for RMS norm, where nothing is subtracted from x.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norms.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

/// Rows that a sum over rows takes at once: the sums are loaded and stored once for so many.
constexpr int64_t kRowsAtOnce = 8;

HWY_INLINE float share_of(int64_t cols) {
  return cols == 0 ? 0 : 1 / static_cast<float>(cols);
}

/// v times gamma, where there is one.
template <class Part>
HWY_INLINE V weighted(Part part, V v, const float* gamma, int64_t c) {
  return gamma == nullptr ? v : hn::Mul(v, part.load(gamma + c));
}

void layer_norm(int64_t rows, int64_t cols, float epsilon, const float* x, const float* gamma,
                const float* beta, float* y, float* mean, float* rstd) {
  const float share = share_of(cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = x + r * cols;
    float* const out = y + r * cols;
    mean[r] =
        share * sum_parts(cols, [&](int64_t c, auto part) HWY_ATTR { return part.load(row + c); });
    const V center = set(mean[r]);
    // The mean of squared differences: that of the squares, less the squared mean, cancels.
    const float variance = share * sum_parts(cols, [&](int64_t c, auto part) HWY_ATTR {
                             const V difference = hn::Sub(part.load(row + c), center);
                             return hn::Mul(difference, difference);
                           });
    rstd[r] = 1 / std::sqrt(variance + epsilon);
    const V factor = set(rstd[r]);
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      const V xhat = hn::Mul(hn::Sub(part.load(row + c), center), factor);
      const V scaled = weighted(part, xhat, gamma, c);
      part.store(beta == nullptr ? scaled : hn::Add(scaled, part.load(beta + c)), out + c);
    });
  }
}

void layer_norm_gradient(int64_t rows, int64_t cols, const float* x, const float* gamma,
                         const float* mean, const float* rstd, const float* dy, float* dx,
                         bool accumulate) {
  const float share = share_of(cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = x + r * cols;
    const float* const drow = dy + r * cols;
    const V center = set(mean[r]);
    const V factor = set(rstd[r]);
    V sum_gx = zero();
    const float sum_g = sum_parts(cols, [&](int64_t c, auto part) HWY_ATTR {
      const V g = weighted(part, part.load(drow + c), gamma, c);
      const V xhat = hn::Mul(hn::Sub(part.load(row + c), center), factor);
      sum_gx = hn::MulAdd(g, xhat, sum_gx);  // g is zero in the lanes that do not count
      return g;
    });
    const V mean_g = set(share * sum_g);
    const V mean_gx = set(share * sum_of_lanes(sum_gx));
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      const V g = weighted(part, part.load(drow + c), gamma, c);
      const V xhat = hn::Mul(hn::Sub(part.load(row + c), center), factor);
      const V value = hn::NegMulAdd(xhat, mean_gx, hn::Sub(g, mean_g));
      part.put(hn::Mul(factor, value), dx + r * cols + c, accumulate);
    });
  }
}

void layer_norm_weights(int64_t rows, int64_t cols, const float* x, const float* mean,
                        const float* rstd, const float* dy, float* dgamma, float* dbeta) {
  for (int64_t first = 0; first < rows; first += kRowsAtOnce) {
    const int64_t end = std::min(first + kRowsAtOnce, rows);
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      V sum_gamma = part.load(dgamma + c);
      V sum_beta = dbeta == nullptr ? zero() : part.load(dbeta + c);
      for (int64_t r = first; r < end; ++r) {
        const V d = part.load(dy + r * cols + c);
        const V difference = hn::Sub(part.load(x + r * cols + c), set(mean[r]));
        sum_gamma = hn::MulAdd(d, hn::Mul(difference, set(rstd[r])), sum_gamma);
        sum_beta = hn::Add(sum_beta, d);
      }
      part.store(sum_gamma, dgamma + c);
      if (dbeta != nullptr) part.store(sum_beta, dbeta + c);
    });
  }
}

void rms_norm(int64_t rows, int64_t cols, float epsilon, const float* x, const float* gamma,
              float* y, float* rstd) {
  const float share = share_of(cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = x + r * cols;
    const float mean_square = share * sum_parts(cols, [&](int64_t c, auto part) HWY_ATTR {
                                const V v = part.load(row + c);
                                return hn::Mul(v, v);
                              });
    rstd[r] = 1 / std::sqrt(mean_square + epsilon);
    const V factor = set(rstd[r]);
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      const V xhat = hn::Mul(part.load(row + c), factor);
      part.store(weighted(part, xhat, gamma, c), y + r * cols + c);
    });
  }
}

void rms_norm_gradient(int64_t rows, int64_t cols, const float* x, const float* gamma,
                       const float* rstd, const float* dy, float* dx, bool accumulate) {
  const float share = share_of(cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = x + r * cols;
    const float* const drow = dy + r * cols;
    const V factor = set(rstd[r]);
    const float sum = sum_parts(cols, [&](int64_t c, auto part) HWY_ATTR {
      const V g = weighted(part, part.load(drow + c), gamma, c);
      return hn::Mul(g, hn::Mul(part.load(row + c), factor));
    });
    const V mean_gx = set(share * sum);
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      const V g = weighted(part, part.load(drow + c), gamma, c);
      const V xhat = hn::Mul(part.load(row + c), factor);
      part.put(hn::Mul(factor, hn::NegMulAdd(xhat, mean_gx, g)), dx + r * cols + c, accumulate);
    });
  }
}

void rms_norm_weights(int64_t rows, int64_t cols, const float* x, const float* rstd,
                      const float* dy, float* dgamma) {
  for (int64_t first = 0; first < rows; first += kRowsAtOnce) {
    const int64_t end = std::min(first + kRowsAtOnce, rows);
    for_each_part(cols, [&](int64_t c, auto part) HWY_ATTR {
      V sum = part.load(dgamma + c);
      for (int64_t r = first; r < end; ++r) {
        const V xhat = hn::Mul(part.load(x + r * cols + c), set(rstd[r]));
        sum = hn::MulAdd(part.load(dy + r * cols + c), xhat, sum);
      }
      part.store(sum, dgamma + c);
    });
  }
}

void enter_norms(Kernels& table) {
  table.layer_norm = layer_norm;
  table.layer_norm_gradient = layer_norm_gradient;
  table.layer_norm_weights = layer_norm_weights;
  table.rms_norm = rms_norm;
  table.rms_norm_gradient = rms_norm_gradient;
  table.rms_norm_weights = rms_norm_weights;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_norms);
void enter_norms(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_norms)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
