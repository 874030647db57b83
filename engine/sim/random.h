// SPDX-License-Identifier: Apache-2.0
//
// Random numbers by key, not by stream: the same key gives the same number whatever was drawn
// before. So two policies that are compared on one seed meet the same durations, message for
// message, in whatever order they run them.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace rrfp::sim {

/// What a number is for; part of its key.
enum class Draw : uint64_t {
  kSize = 1,
  kImage,
  kImageSize,
  kNoise,
  kStraggle,
  kSlowDevice,
  kHop,
  kEpisode,
  kGroup,
  kEarlyReport,
  kCase,
  kFault,
};

class Key {
 public:
  Key(uint64_t seed, Draw draw, std::initializer_list<int64_t> parts)
      : state_(mix(seed ^ mix(static_cast<uint64_t>(draw)))) {
    for (const int64_t part : parts) state_ = mix(state_ ^ static_cast<uint64_t>(part));
  }

  /// In (0, 1). `n` tells draws of one key apart.
  [[nodiscard]] double uniform(uint64_t n = 0) const {
    return (static_cast<double>(bits(n) >> 11) + 0.5) * 0x1p-53;
  }
  [[nodiscard]] uint64_t bits(uint64_t n = 0) const { return mix(state_ + n); }
  /// Standard normal (Box and Muller, 1958).
  [[nodiscard]] double normal(uint64_t n = 0) const {
    return std::sqrt(-2 * std::log(uniform(2 * n))) *
           std::cos(2 * std::numbers::pi * uniform(2 * n + 1));
  }
  /// Lognormal with mean 1; `sigma` is the deviation of its logarithm.
  [[nodiscard]] double lognormal(double sigma, uint64_t n = 0) const {
    return sigma == 0 ? 1 : std::exp(sigma * normal(n) - sigma * sigma / 2);
  }
  /// Exponential with mean 1.
  [[nodiscard]] double exponential(uint64_t n = 0) const { return -std::log(uniform(n)); }
  /// A number below `end`.
  [[nodiscard]] int64_t below(int64_t end, uint64_t n = 0) const {
    return static_cast<int64_t>(bits(n) % static_cast<uint64_t>(end));
  }

 private:
  /// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
  static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace rrfp::sim
