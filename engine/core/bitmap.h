// SPDX-License-Identifier: Apache-2.0
//
// A set of small integers that answers "which is the smallest?" in a few find-first-set
// instructions, whatever its size: a tree of 64-bit words in which a bit of a level says that the
// word below it is not empty. Four levels cover 16 million members.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rrfp::core {

class Bitmap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Makes the set empty and able to hold 0 .. size-1. The only member that may allocate.
  void reset(uint32_t size) {
    size_ = size;
    levels_ = 0;
    size_t words = 0;
    size_t count = size;
    do {
      assert(levels_ < kLevelsMax);
      count = (count + 63) / 64;
      offset_[levels_++] = words;
      words += count;
    } while (count > 1);
    words_.assign(words == 0 ? 1 : words, 0);
  }

  void insert(uint32_t member) {
    assert(member < size_);
    size_t at = member;
    for (size_t level = 0; level < levels_; ++level) {
      uint64_t& word = words_[offset_[level] + at / 64];
      const bool was_empty = word == 0;
      word |= uint64_t{1} << (at % 64);
      if (!was_empty) return;
      at /= 64;
    }
  }

  void erase(uint32_t member) {
    assert(member < size_);
    size_t at = member;
    for (size_t level = 0; level < levels_; ++level) {
      uint64_t& word = words_[offset_[level] + at / 64];
      word &= ~(uint64_t{1} << (at % 64));
      if (word != 0) return;
      at /= 64;
    }
  }

  [[nodiscard]] bool contains(uint32_t member) const {
    assert(member < size_);
    return ((words_[member / 64] >> (member % 64)) & 1) != 0;
  }

  /// The smallest member, or kNone.
  [[nodiscard]] uint32_t first() const {
    size_t at = 0;
    for (size_t level = levels_; level-- > 0;) {
      const uint64_t word = words_[offset_[level] + at];
      if (word == 0) return kNone;  // only the root can be empty
      at = at * 64 + static_cast<size_t>(std::countr_zero(word));
    }
    return static_cast<uint32_t>(at);
  }

  /// The smallest member that is larger than `member`, or kNone.
  [[nodiscard]] uint32_t next(uint32_t member) const {
    size_t at = member;
    for (size_t level = 0; level < levels_; ++level) {
      const size_t bit = at % 64;
      const uint64_t word =
          bit == 63 ? 0 : words_[offset_[level] + at / 64] & (~uint64_t{0} << (bit + 1));
      at /= 64;
      if (word == 0) continue;
      at = at * 64 + static_cast<size_t>(std::countr_zero(word));
      while (level-- > 0) {
        at = at * 64 + static_cast<size_t>(std::countr_zero(words_[offset_[level] + at]));
      }
      return static_cast<uint32_t>(at);
    }
    return kNone;
  }

  [[nodiscard]] bool empty() const { return words_[offset_[levels_ - 1]] == 0; }
  [[nodiscard]] uint32_t size() const { return size_; }

 private:
  static constexpr size_t kLevelsMax = 6;  // 64^6 exceeds any 32-bit size

  uint32_t size_ = 0;
  size_t levels_ = 1;
  size_t offset_[kLevelsMax] = {};
  std::vector<uint64_t> words_ = {0};
};

}  // namespace rrfp::core
