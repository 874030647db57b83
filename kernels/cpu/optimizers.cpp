// SPDX-License-Identifier: Apache-2.0
//
// Updates of parameters, and the sums that a loss or a gradient norm is made of.
#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optimizers.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

using F64 = hn::ScalableTag<double>;
using W = hn::Vec<F64>;

/// The sum in f64 over all elements of term(x[i]), with term for a W and for a double.
template <class Term>
HWY_INLINE double sum_in_f64(int64_t n, const float* x, const Term& term) {
  const F64 d64;
  const hn::Rebind<float, F64> d32;
  const auto width = static_cast<int64_t>(hn::Lanes(d64));
  const auto load = [&](int64_t i)
                        HWY_ATTR { return term(hn::PromoteTo(d64, hn::LoadU(d32, x + i))); };
  W sum0 = hn::Zero(d64);
  W sum1 = sum0;
  W sum2 = sum0;
  W sum3 = sum0;
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    sum0 = hn::Add(sum0, load(i));
    sum1 = hn::Add(sum1, load(i + width));
    sum2 = hn::Add(sum2, load(i + 2 * width));
    sum3 = hn::Add(sum3, load(i + 3 * width));
  }
  const W all = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  double sum = hn::GetLane(hn::SumOfLanes(d64, all));
  for (; i < n; ++i) sum += hn::GetLane(term(hn::Set(d64, static_cast<double>(x[i]))));
  return sum;
}

double sum(int64_t n, const float* x) {
  return sum_in_f64(n, x, [](W v) HWY_ATTR { return v; });
}

double sum_squares(int64_t n, const float* x) {
  return sum_in_f64(n, x, [](W v) HWY_ATTR { return hn::Mul(v, v); });
}

void adamw(int64_t n, const AdamWStep& step, float* w, float* m, float* v, float* gradient) {
  // 1 - beta is rounded once, from the exact beta: the caller's bias correction uses that too.
  const auto beta1 = static_cast<float>(step.beta1);
  const auto beta2 = static_cast<float>(step.beta2);
  const auto rest1 = static_cast<float>(1 - step.beta1);
  const auto rest2 = static_cast<float>(1 - step.beta2);
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V g = hn::Mul(part.load(gradient + i), set(step.gradient_scale));
    const V first = hn::MulAdd(set(beta1), part.load(m + i), hn::Mul(set(rest1), g));
    const V second = hn::MulAdd(set(beta2), part.load(v + i), hn::Mul(set(rest2), hn::Mul(g, g)));
    const V root = hn::Sqrt(hn::Mul(second, set(step.correction2)));
    const V direction =
        hn::Div(hn::Mul(first, set(step.correction1)), hn::Add(root, set(step.epsilon)));
    const V old = part.load(w + i);
    const V change = hn::MulAdd(set(step.weight_decay), old, direction);
    part.store(hn::NegMulAdd(set(step.lr), change, old), w + i);
    part.store(first, m + i);
    part.store(second, v + i);
    part.store(zero(), gradient + i);
  });
}

void sgd(int64_t n, const SgdStep& step, float* w, float* velocity, float* gradient) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V old = part.load(w + i);
    const V g = hn::Mul(part.load(gradient + i), set(step.gradient_scale));
    V change = hn::MulAdd(set(step.weight_decay), old, g);
    if (velocity != nullptr) {
      change = hn::MulAdd(set(step.momentum), part.load(velocity + i), change);
      part.store(change, velocity + i);
    }
    part.store(hn::NegMulAdd(set(step.lr), change, old), w + i);
    part.store(zero(), gradient + i);
  });
}

void enter_optimizers(Kernels& table) {
  table.sum = sum;
  table.sum_squares = sum_squares;
  table.adamw = adamw;
  table.sgd = sgd;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_optimizers);
void enter_optimizers(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_optimizers)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
