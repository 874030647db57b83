// SPDX-License-Identifier: Apache-2.0
//
// Numbers in memory that is aligned for vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace rrfp::model {

/// The next number of floats that ends at an aligned place.
[[nodiscard]] constexpr int64_t aligned_floats(int64_t floats) {
  constexpr int64_t kStep = 16;  // 64 bytes
  return (floats + kStep - 1) / kStep * kStep;
}

class AlignedFloats {
 public:
  static constexpr std::align_val_t kAlignment{64};

  AlignedFloats() = default;
  /// Not cleared.
  explicit AlignedFloats(int64_t count)
      : count_(count),
        data_(static_cast<float*>(
            ::operator new(static_cast<size_t>(count) * sizeof(float), kAlignment))) {}

  [[nodiscard]] float* data() const { return data_.get(); }
  [[nodiscard]] int64_t size() const { return count_; }
  [[nodiscard]] std::span<float> span() const { return {data_.get(), static_cast<size_t>(count_)}; }
  /// Makes room for so many; forgets what was there.
  void reserve(int64_t count) {
    if (count > count_) *this = AlignedFloats(count);
  }

 private:
  struct Free {
    void operator()(float* data) const { ::operator delete(data, kAlignment); }
  };
  int64_t count_ = 0;
  std::unique_ptr<float, Free> data_;
};

}  // namespace rrfp::model
