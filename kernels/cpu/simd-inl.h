// SPDX-License-Identifier: Apache-2.0
//
// The loops that the kernels are made of. As every "-inl.h" of Highway it is compiled once per
// instruction set; a kernel file includes it below <hwy/foreach_target.h>.
//
// A loop hands its body an index and a part: the type Whole for a full vector, Rest for what
// remains at the end. The body is a generic lambda and loads and stores through the part, so that
// it is written once. HWY_ATTR on a lambda lets it use the instruction set, which it does not
// inherit from the function around it.
#if defined(RRFP_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RRFP_KERNELS_CPU_SIMD_INL_H_
#undef RRFP_KERNELS_CPU_SIMD_INL_H_
#else
#define RRFP_KERNELS_CPU_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;

HWY_INLINE int64_t lanes() {
  return static_cast<int64_t>(hn::Lanes(F32()));
}
HWY_INLINE V set(float value) {
  return hn::Set(F32(), value);
}
HWY_INLINE V zero() {
  return hn::Zero(F32());
}
HWY_INLINE float sum_of_lanes(V v) {
  return hn::GetLane(hn::SumOfLanes(F32(), v));
}
HWY_INLINE float max_of_lanes(V v) {
  return hn::GetLane(hn::MaxOfLanes(F32(), v));
}

/// e^x for x <= 87, to about 2e-7 of it; 0 below -87, where Highway's own, twice as long,
/// goes on to numbers that are not normal, which slow a product down on some processors. NaN stays.
///
/// e^x = 2^n e^r, with n the integer nearest to x / ln 2 and e^r by Cephes' polynomial. Adding
/// kRound, the sum being above 2^23, rounds to an integer and leaves it in the lowest bits, from
/// where a shift takes it to the exponent. Subtracting n ln 2 in two parts keeps r exact.
HWY_INLINE V exponential(V x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23
  const hn::RebindToSigned<F32> i32;
  const V shifted = hn::MulAdd(x, set(1.44269504F), set(kRound));
  const V n = hn::Sub(shifted, set(kRound));
  const V r = hn::NegMulAdd(n, set(-2.12194440e-4F), hn::NegMulAdd(n, set(0.693359375F), x));
  V p = hn::MulAdd(set(1.9875691500e-4F), r, set(1.3981999507e-3F));
  p = hn::MulAdd(p, r, set(8.3334519073e-3F));
  p = hn::MulAdd(p, r, set(4.1665795894e-2F));
  p = hn::MulAdd(p, r, set(1.6666665459e-1F));
  p = hn::MulAdd(p, r, set(5.0000001201e-1F));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), set(1.0F));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(i32, shifted));
  const V result = hn::BitCast(F32(), hn::Add(hn::BitCast(i32, p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, set(-87.0F)), result);
}

struct Whole {
  HWY_INLINE V load(const float* p) const { return hn::LoadU(F32(), p); }
  HWY_INLINE V load_or(float /*fallback*/, const float* p) const { return load(p); }
  HWY_INLINE V keep(V v) const { return v; }
  HWY_INLINE void store(V v, float* p) const { hn::StoreU(v, F32(), p); }
  HWY_INLINE void put(V v, float* p, bool accumulate) const {
    store(accumulate ? hn::Add(load(p), v) : v, p);
  }
};

/// The first `count` lanes; the others are zero after a load.
struct Rest {
  size_t count;

  // Highway's own masked operations are for instruction sets that have them: before AVX2 they
  // touch the whole vector, beyond the end of a buffer.
#if HWY_TARGET <= HWY_AVX2
  HWY_INLINE V load(const float* p) const {
    return hn::MaskedLoad(mask(), F32(), p);
  }
  HWY_INLINE void store(V v, float* p) const {
    hn::BlendedStore(v, mask(), F32(), p);
  }
#else
  HWY_INLINE V load(const float* p) const {
    HWY_ALIGN_MAX float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(buffer, p, count * sizeof(float));
    return hn::Load(F32(), buffer);
  }
  HWY_INLINE void store(V v, float* p) const {
    HWY_ALIGN_MAX float buffer[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(v, F32(), buffer);
    std::memcpy(p, buffer, count * sizeof(float));
  }
#endif
  HWY_INLINE hn::Mask<F32> mask() const {
    return hn::FirstN(F32(), count);
  }
  HWY_INLINE V load_or(float fallback, const float* p) const {
    return hn::IfThenElse(mask(), load(p), set(fallback));
  }
  /// v with zero in the lanes that do not count, for sums.
  HWY_INLINE V keep(V v) const {
    return hn::IfThenElseZero(mask(), v);
  }
  HWY_INLINE void put(V v, float* p, bool accumulate) const {
    store(accumulate ? hn::Add(load(p), v) : v, p);
  }
};

/// body(i, part) for i = 0, lanes(), 2 lanes(), ...
template <class Body>
HWY_INLINE void for_each_part(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) body(i, Whole{});
  if (i < n) body(i, Rest{static_cast<size_t>(n - i)});
}

/// The sum over all elements of what term(i, part) returns. Four sums run side by side, because an
/// addition takes several cycles and a processor can start one or two in each.
template <class Term>
HWY_INLINE float sum_parts(int64_t n, const Term& term) {
  V sum0 = zero();
  V sum1 = zero();
  V sum2 = zero();
  V sum3 = zero();
  int64_t i = 0;
  for (; i + 4 * lanes() <= n; i += 4 * lanes()) {
    sum0 = hn::Add(sum0, term(i, Whole{}));
    sum1 = hn::Add(sum1, term(i + lanes(), Whole{}));
    sum2 = hn::Add(sum2, term(i + 2 * lanes(), Whole{}));
    sum3 = hn::Add(sum3, term(i + 3 * lanes(), Whole{}));
  }
  for (; i + lanes() <= n; i += lanes()) sum0 = hn::Add(sum0, term(i, Whole{}));
  if (i < n) {
    const Rest rest{static_cast<size_t>(n - i)};
    sum1 = hn::Add(sum1, rest.keep(term(i, rest)));
  }
  return sum_of_lanes(hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

/// The greatest of n > 0 numbers.
HWY_INLINE float max_of(int64_t n, const float* x) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  V max0 = set(kLowest);
  V max1 = max0;
  int64_t i = 0;
  for (; i + 2 * lanes() <= n; i += 2 * lanes()) {
    max0 = hn::Max(max0, hn::LoadU(F32(), x + i));
    max1 = hn::Max(max1, hn::LoadU(F32(), x + i + lanes()));
  }
  for_each_part(n - i, [&](int64_t j, auto part)
                           HWY_ATTR { max0 = hn::Max(max0, part.load_or(kLowest, x + i + j)); });
  return max_of_lanes(hn::Max(max0, max1));
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
