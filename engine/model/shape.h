// SPDX-License-Identifier: Apache-2.0
//
// The shape of a value. While a model is built, extents that microbatches may choose are unknown;
// at run time all are known. The same rules infer both.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace rrfp::model {

struct Shape {
  static constexpr int32_t kDimsMax = 8;
  static constexpr int64_t kUnknown = -1;
  /// Bounds products of extents, so that no size computed from them overflows.
  static constexpr int64_t kElementsMax = int64_t{1} << 40;

  int32_t ndim = 0;
  std::array<int64_t, kDimsMax> dims = {};

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(std::span(extents)) {}
  explicit Shape(std::span<const int64_t> extents) : ndim(static_cast<int32_t>(extents.size())) {
    std::copy(extents.begin(), extents.end(), dims.begin());
  }

  bool operator==(const Shape&) const = default;
  [[nodiscard]] int64_t operator[](int32_t d) const { return dims[static_cast<size_t>(d)]; }
  int64_t& operator[](int32_t d) { return dims[static_cast<size_t>(d)]; }
  [[nodiscard]] std::span<const int64_t> extents() const {
    return {dims.data(), static_cast<size_t>(ndim)};
  }

  /// Product of the extents from `first` up to, not including, `last`; unknown if one is.
  [[nodiscard]] int64_t product(int32_t first, int32_t last) const {
    int64_t count = 1;
    for (int32_t d = first; d < last; ++d) {
      if ((*this)[d] == kUnknown) return kUnknown;
      count *= (*this)[d];
    }
    return count;
  }
  [[nodiscard]] int64_t elements() const { return product(0, ndim); }
  /// All axes but the last.
  [[nodiscard]] int64_t rows() const { return product(0, ndim - 1); }
  [[nodiscard]] int64_t last() const { return (*this)[ndim - 1]; }
};

/// Whether two extents can be the same: an unknown one may be anything.
[[nodiscard]] inline bool may_equal(int64_t a, int64_t b) {
  return a == Shape::kUnknown || b == Shape::kUnknown || a == b;
}
[[nodiscard]] inline bool may_equal(const Shape& a, const Shape& b) {
  if (a.ndim != b.ndim) return false;
  for (int32_t d = 0; d < a.ndim; ++d) {
    if (!may_equal(a[d], b[d])) return false;
  }
  return true;
}
[[nodiscard]] inline int64_t known_of(int64_t a, int64_t b) {
  return a == Shape::kUnknown ? b : a;
}

[[nodiscard]] inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int32_t d = 0; d < shape.ndim; ++d) {
    if (d > 0) text += ", ";
    text += shape[d] == Shape::kUnknown ? "?" : std::to_string(shape[d]);
  }
  return text + "]";
}

}  // namespace rrfp::model
