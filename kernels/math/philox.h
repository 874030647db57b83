// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32-10, a random function of a counter and a key (Salmon, Moraes, Dror, Shaw 2011,
// "Parallel random numbers: as easy as 1, 2, 3"), and what dropout makes of it. Every device
// computes these same numbers, so a mask depends on neither the device nor the order of the work.
//
// Layout: the key is the seed; the counter of element i is (i / 4, operation, microbatch, step),
// and i mod 4 chooses a word of the block. Each field has a word of its own, so two elements share
// a random number only where seed, step, operation, microbatch and i agree. That holds for
// i < 2^34; above that the numbers repeat.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

#ifdef __CUDACC__
#define RRFP_HOST_DEVICE __host__ __device__
#else
#define RRFP_HOST_DEVICE
#endif

namespace rrfp::kernels {

struct PhiloxBlock {
  uint32_t word[4];
};

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

RRFP_HOST_DEVICE inline PhiloxBlock philox(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  uint32_t x0 = counter.word[0];
  uint32_t x1 = counter.word[1];
  uint32_t x2 = counter.word[2];
  uint32_t x3 = counter.word[3];
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kPhiloxMultiplier0) * x0;
    const uint64_t p1 = static_cast<uint64_t>(kPhiloxMultiplier1) * x2;
    x0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ key0;
    x1 = static_cast<uint32_t>(p1);
    x2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ key1;
    x3 = static_cast<uint32_t>(p0);
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return {{x0, x1, x2, x3}};
}

/// The random word of element i.
RRFP_HOST_DEVICE inline uint32_t random_word(const RandomKey& key, int64_t i) {
  const PhiloxBlock counter = {
      {static_cast<uint32_t>(i / 4), key.operation, key.microbatch, key.step}};
  return philox(counter, static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32))
      .word[i % 4];
}

/// Dropout with 0 <= p < 1 keeps the elements whose word is at least this. The probability to drop
/// is p rounded down to a multiple of 2^-32; for p >= 2^-8 every float is one already.
RRFP_HOST_DEVICE inline uint32_t dropout_threshold(float p) {
  return static_cast<uint32_t>(static_cast<double>(p) * 4294967296.0);
}

/// What a kept element is multiplied by.
RRFP_HOST_DEVICE inline float dropout_scale(float p) {
  return static_cast<float>(1.0 / (1.0 - static_cast<double>(p)));
}

}  // namespace rrfp::kernels
