// SPDX-License-Identifier: Apache-2.0
//
// Kernels in which element i of the result depends on element i of the arguments.
#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

void fill(int64_t n, float value, float* y) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR { part.store(set(value), y + i); });
}

void copy(int64_t n, const float* x, float* y, bool accumulate) {
  for_each_part(
      n, [&](int64_t i, auto part) HWY_ATTR { part.put(part.load(x + i), y + i, accumulate); });
}

void copy_block(int64_t rows, int64_t cols, const float* x, int64_t ldx, float* y, int64_t ldy,
                bool accumulate) {
  for (int64_t r = 0; r < rows; ++r) copy(cols, x + r * ldx, y + r * ldy, accumulate);
}

void add(int64_t n, const float* a, const float* b, float* y) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    part.store(hn::Add(part.load(a + i), part.load(b + i)), y + i);
  });
}

void multiply(int64_t n, const float* a, const float* b, float* y, bool accumulate) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    part.put(hn::Mul(part.load(a + i), part.load(b + i)), y + i, accumulate);
  });
}

/// e^-x. The bound keeps it finite, and its reciprocal a normal number.
HWY_INLINE V exp_of_negative(V x) {
  return exponential(hn::Min(hn::Neg(x), set(87.0F)));
}

/// 1 / (1 + e), the sigmoid of x where e = e^-x. One minus it is e times it, without cancellation.
HWY_INLINE V sigmoid_of(V e) {
  return hn::Div(set(1), hn::Add(set(1), e));
}

// With 0.5 (1 + tanh u) = sigmoid(2u) gelu is x sigmoid(2u), 2u = x (kGeluLinear + kGeluCubic x^2),
// and takes one exponential.
constexpr float kGeluLinear = 1.5957691216057308F;  // 2 sqrt(2 / pi)
constexpr float kGeluCubic = 1.5957691216057308F * 0.044715F;

HWY_INLINE V gelu_argument(V x) {
  return hn::Mul(x, hn::MulAdd(set(kGeluCubic), hn::Mul(x, x), set(kGeluLinear)));
}

void gelu(int64_t n, const float* x, float* y) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = part.load(x + i);
    part.store(hn::Mul(v, sigmoid_of(exp_of_negative(gelu_argument(v)))), y + i);
  });
}

void gelu_gradient(int64_t n, const float* x, const float* dy, float* dx, bool accumulate) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = part.load(x + i);
    const V e = exp_of_negative(gelu_argument(v));
    const V s = sigmoid_of(e);
    // The argument's derivative times x.
    const V slope = hn::Mul(v, hn::MulAdd(set(3 * kGeluCubic), hn::Mul(v, v), set(kGeluLinear)));
    const V derivative = hn::MulAdd(hn::Mul(s, hn::Mul(e, s)), slope, s);
    part.put(hn::Mul(part.load(dy + i), derivative), dx + i, accumulate);
  });
}

void silu(int64_t n, const float* x, float* y) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = part.load(x + i);
    part.store(hn::Mul(v, sigmoid_of(exp_of_negative(v))), y + i);
  });
}

HWY_INLINE V silu_derivative(V x, V e, V s) {
  return hn::MulAdd(hn::Mul(s, hn::Mul(e, s)), x, s);
}

void silu_gradient(int64_t n, const float* x, const float* dy, float* dx, bool accumulate) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = part.load(x + i);
    const V e = exp_of_negative(v);
    const V derivative = silu_derivative(v, e, sigmoid_of(e));
    part.put(hn::Mul(part.load(dy + i), derivative), dx + i, accumulate);
  });
}

void swiglu(int64_t n, const float* gate, const float* up, float* y) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V g = part.load(gate + i);
    const V s = sigmoid_of(exp_of_negative(g));
    part.store(hn::Mul(hn::Mul(g, s), part.load(up + i)), y + i);
  });
}

void swiglu_gradient(int64_t n, const float* gate, const float* up, const float* dy, float* dgate,
                     bool accumulate_gate, float* dup, bool accumulate_up) {
  for_each_part(n, [&](int64_t i, auto part) HWY_ATTR {
    const V g = part.load(gate + i);
    const V d = part.load(dy + i);
    const V e = exp_of_negative(g);
    const V s = sigmoid_of(e);
    if (dgate != nullptr) {
      const V derivative = hn::Mul(silu_derivative(g, e, s), part.load(up + i));
      part.put(hn::Mul(d, derivative), dgate + i, accumulate_gate);
    }
    if (dup != nullptr) part.put(hn::Mul(d, hn::Mul(g, s)), dup + i, accumulate_up);
  });
}

void enter_elementwise(Kernels& table) {
  table.fill = fill;
  table.copy = copy;
  table.copy_block = copy_block;
  table.add = add;
  table.multiply = multiply;
  table.gelu = gelu;
  table.gelu_gradient = gelu_gradient;
  table.silu = silu;
  table.silu_gradient = silu_gradient;
  table.swiglu = swiglu;
  table.swiglu_gradient = swiglu_gradient;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_elementwise);
void enter_elementwise(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_elementwise)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
