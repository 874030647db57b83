// SPDX-License-Identifier: Apache-2.0
//
// Named tensors with memory of their own, filled by a rule that tells name and key apart.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/train/named_tensor.h"

namespace rrfp::test {

class Tensors {
 public:
  void add(const std::string& name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    memory_.push_back(std::make_unique<std::vector<float>>(static_cast<size_t>(count)));
    tensors_.push_back({name, std::move(shape), memory_.back()->data()});
  }
  [[nodiscard]] const std::vector<train::NamedTensor>& list() const { return tensors_; }
  [[nodiscard]] std::vector<float>& values(size_t index) { return *memory_[index]; }

  /// Each element another number; the same for the same key.
  void fill(uint32_t key) {
    uint32_t at = key * 2654435761U;
    for (const auto& values : memory_) {
      for (float& value : *values) value = static_cast<float>(at++ % 16777216U);
    }
  }
  /// Bit by bit.
  [[nodiscard]] bool same_as(const Tensors& other) const {
    if (memory_.size() != other.memory_.size()) return false;
    for (size_t k = 0; k < memory_.size(); ++k) {
      const auto& mine = *memory_[k];
      const auto& theirs = *other.memory_[k];
      if (mine.size() != theirs.size()) return false;
      if (!mine.empty() && std::memcmp(mine.data(), theirs.data(), mine.size() * 4) != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<std::vector<float>>> memory_;
  std::vector<train::NamedTensor> tensors_;
};

}  // namespace rrfp::test
