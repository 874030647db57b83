// SPDX-License-Identifier: Apache-2.0
//
// Dropout: the numbers of math/philox.h, computed for one block per 64-bit lane.
#include <algorithm>
#include <bit>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"
#include "kernels/math/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

using U32 = hn::ScalableTag<uint32_t>;

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE int64_t blocks_at_once() {
  return 1;
}

HWY_INLINE void philox_blocks(const RandomKey& key, uint32_t first, uint32_t* words) {
  const PhiloxBlock block =
      philox({{first, key.operation, key.microbatch, key.step}}, static_cast<uint32_t>(key.seed),
             static_cast<uint32_t>(key.seed >> 32));
  std::copy_n(block.word, 4, words);
}

#else

using U64 = hn::Repartition<uint64_t, U32>;

HWY_INLINE int64_t blocks_at_once() {
  return lanes() / 2;
}

/// The blocks `first`, `first` + 1, ..., one per 64-bit lane, to `words` in their order in memory.
///
/// A number of the state lies in the lower half of its lane, where MulEven takes it from and leaves
/// the lower half of the product. What is left in the upper half is never read.
HWY_INLINE void philox_blocks(const RandomKey& key, uint32_t first, uint32_t* words) {
  const U32 d32;
  const U64 d64;
  const auto to_32 = [](auto v) HWY_ATTR { return hn::BitCast(U32(), v); };
  const auto multiplier0 = hn::Set(d32, kPhiloxMultiplier0);
  const auto multiplier1 = hn::Set(d32, kPhiloxMultiplier1);
  auto key0 = static_cast<uint32_t>(key.seed);
  auto key1 = static_cast<uint32_t>(key.seed >> 32);
  auto x0 = to_32(hn::Add(hn::Set(d64, first), hn::Iota(d64, 0)));
  auto x1 = hn::Set(d32, key.operation);
  auto x2 = hn::Set(d32, key.microbatch);
  auto x3 = hn::Set(d32, key.step);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const auto p0 = hn::MulEven(multiplier0, x0);
    const auto p1 = hn::MulEven(multiplier1, x2);
    x0 = hn::Xor(hn::Xor(to_32(hn::ShiftRight<32>(p1)), x1), hn::Set(d32, key0));
    x1 = to_32(p1);
    x2 = hn::Xor(hn::Xor(to_32(hn::ShiftRight<32>(p0)), x3), hn::Set(d32, key1));
    x3 = to_32(p0);
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  const auto low = hn::Set(d64, 0xFFFFFFFFU);
  const auto pair = [&](auto a, auto b) HWY_ATTR {
    return hn::Or(hn::And(hn::BitCast(d64, a), low), hn::ShiftLeft<32>(hn::BitCast(d64, b)));
  };
  static_assert(std::endian::native == std::endian::little, "the first word is the lower half");
  hn::StoreInterleaved2(pair(x0, x1), pair(x2, x3), d64, reinterpret_cast<uint64_t*>(words));
}

#endif

void dropout(int64_t n, float p, const RandomKey& key, const float* x, float* y, bool accumulate) {
  const U32 d32;
  const auto threshold = hn::Set(d32, dropout_threshold(p));
  const V scale = set(dropout_scale(p));
  const int64_t step = 4 * blocks_at_once();
  HWY_ALIGN_MAX uint32_t words[std::max<size_t>(HWY_MAX_BYTES / 2, 4)];
  for (int64_t start = 0; start < n; start += step) {
    philox_blocks(key, static_cast<uint32_t>(start / 4), words);
    for_each_part(std::min(step, n - start), [&](int64_t i, auto part) HWY_ATTR {
      // Not "threshold <= word": unsigned comparisons are "less" on every instruction set.
      const auto dropped = hn::Lt(hn::Load(d32, words + i), threshold);
      const V scaled = hn::Mul(part.load(x + start + i), scale);
      const V kept = hn::IfThenZeroElse(hn::RebindMask(F32(), dropped), scaled);
      part.put(kept, y + start + i, accumulate);
    });
  }
}

void enter_dropout(Kernels& table) {
  table.dropout = dropout;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_dropout);
void enter_dropout(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_dropout)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
