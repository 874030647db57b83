// SPDX-License-Identifier: Apache-2.0
//
// A small random generator (splitmix64) whose numbers are the same on every platform and with every
// standard library, so that a seed printed by one machine replays on another.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <utility>

namespace rrfp::test {

/// One step of splitmix64, also good as a hash of its argument.
[[nodiscard]] constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Splitmix {
 public:
  explicit Splitmix(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    const uint64_t value = mix(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return value;
  }
  /// lowest .. highest, both included. The tiny bias of the remainder does not matter here.
  int64_t between(int64_t lowest, int64_t highest) {
    assert(lowest <= highest);
    const auto width = static_cast<uint64_t>(highest - lowest) + 1;
    return lowest + static_cast<int64_t>(next() % width);
  }
  int32_t between32(int32_t lowest, int32_t highest) {
    return static_cast<int32_t>(between(lowest, highest));
  }
  bool percent(int64_t chance) { return between(0, 99) < chance; }
  template <class T>
  const T& pick(std::span<const T> from) {
    return from[static_cast<size_t>(between(0, static_cast<int64_t>(from.size()) - 1))];
  }
  template <class T, size_t N>
  T pick(const T (&from)[N]) {
    return from[static_cast<size_t>(between(0, static_cast<int64_t>(N) - 1))];
  }
  template <class Container>
  void shuffle(Container& all) {
    for (size_t k = all.size(); k > 1; --k) {
      std::swap(all[k - 1], all[static_cast<size_t>(between(0, static_cast<int64_t>(k) - 1))]);
    }
  }
  /// Many small values, few up to `highest`: every factor of two is as likely as the next.
  int64_t heavy_tailed(int64_t highest) {
    int64_t limit = 1;
    while (limit < highest && percent(75)) limit *= 2;
    return between(0, limit < highest ? limit : highest);
  }

 private:
  uint64_t state_;
};

}  // namespace rrfp::test
