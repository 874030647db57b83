// SPDX-License-Identifier: Apache-2.0
//
// A keyed permutation of 0 .. size-1 that needs no table: a balanced Feistel network over the next
// power of four, applied again while the result lies outside ("cycle walking"). The network
// permutes its whole domain, so that walking from an inside number always comes back to an inside
// number, and different ones never meet. The domain is less than four times `size`: four rounds of
// walking on average at most.
#pragma once

#include <cassert>
#include <cstdint>

namespace rrfp::data {

/// One step of splitmix64: a hash of its argument.
[[nodiscard]] constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Permutation {
 public:
  /// 1 <= size <= 2^62.
  constexpr Permutation(uint64_t size, uint64_t seed, uint64_t epoch)
      // Hashed one after the other, so that (seed, epoch) and (seed + 1, epoch - 1) differ.
      : size_(size), key_(mix(mix(seed) ^ epoch)) {
    assert(size >= 1 && size <= uint64_t{1} << 62);
    while (uint64_t{1} << (2 * half_bits_) < size) ++half_bits_;
  }

  [[nodiscard]] constexpr uint64_t operator()(uint64_t index) const {
    assert(index < size_);
    do {
      index = network(index);
    } while (index >= size_);
    return index;
  }

 private:
  // Three rounds make a good permutation from a good function of large halves; the halves of small
  // corpora have few bits, so there are more.
  static constexpr uint64_t kRounds = 8;

  [[nodiscard]] constexpr uint64_t network(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (mix(mix(key_ + round) ^ right) & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  uint64_t size_;
  uint64_t key_;
  uint32_t half_bits_ = 1;
};

}  // namespace rrfp::data
