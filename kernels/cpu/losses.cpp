// SPDX-License-Identifier: Apache-2.0
//
// Losses and their gradients.
#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/losses.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

void cross_entropy(int64_t rows, int64_t classes, const float* logits, const int32_t* targets,
                   int32_t ignore, float* loss, float* lse) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = logits + r * classes;
    const float greatest = max_of(classes, row);
    const float sum = sum_parts(classes, [&](int64_t c, auto part) HWY_ATTR {
      return exponential(hn::Sub(part.load(row + c), set(greatest)));
    });
    const float log_sum = std::log(sum);
    lse[r] = greatest + log_sum;
    // Not lse - logit: where logits are large, lse has lost the digits of log_sum.
    loss[r] = targets[r] == ignore ? 0 : (greatest - row[targets[r]]) + log_sum;
  }
}

void cross_entropy_gradient(int64_t rows, int64_t classes, const float* logits,
                            const int32_t* targets, int32_t ignore, const float* lse,
                            const float* dloss, float* dlogits, bool accumulate) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = logits + r * classes;
    float* const out = dlogits + r * classes;
    if (targets[r] == ignore) {
      if (!accumulate) {
        for_each_part(classes, [&](int64_t c, auto part) HWY_ATTR { part.store(zero(), out + c); });
      }
      continue;
    }
    for_each_part(classes, [&](int64_t c, auto part) HWY_ATTR {
      const V p = exponential(hn::Sub(part.load(row + c), set(lse[r])));
      part.put(hn::Mul(p, set(dloss[r])), out + c, accumulate);
    });
    out[targets[r]] -= dloss[r];
  }
}

void squared_error(int64_t n, const float* a, const float* b, float* loss) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V difference = hn::Sub(part.load(a + i), part.load(b + i));
    part.store(hn::Mul(difference, difference), loss + i);
  });
}

void squared_error_gradient(int64_t n, const float* a, const float* b, const float* dloss,
                            float sign, float* da, bool accumulate) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V difference = hn::Sub(part.load(a + i), part.load(b + i));
    const V slope = hn::Mul(set(2 * sign), difference);
    part.put(hn::Mul(slope, part.load(dloss + i)), da + i, accumulate);
  });
}

void enter_losses(Kernels& table) {
  table.cross_entropy = cross_entropy;
  table.cross_entropy_gradient = cross_entropy_gradient;
  table.squared_error = squared_error;
  table.squared_error_gradient = squared_error_gradient;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_losses);
void enter_losses(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_losses)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
