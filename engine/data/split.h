// SPDX-License-Identifier: Apache-2.0
//
// Which item of a data set is sample p: items are numbered by their place in the data. Some
// validate, spread evenly; the others train, every epoch in another order. A function of the
// options and the position alone, without a list of items.
#pragma once

#include <cstdint>
#include <string>

#include "engine/core/status.h"

namespace rrfp::data {

enum class Split : uint8_t { kTrain, kValidation };

/// kInvalidArgument unless 0 <= share < 1.
core::Status check_validation_share(double share);

class SplitOrder {
 public:
  /// Of no items: to be assigned to.
  SplitOrder() = default;

  /// `share` of `items` items validate, rounded down; the share itself is rounded up to a multiple
  /// of 2^-32, so that a tenth of ten items is one. It must be valid. Errors: kBadData if none is
  /// left to train with, or none to validate with although a share was asked for; `items_are` is
  /// what the text calls the items.
  static core::Status make(uint64_t items, const std::string& items_are, double share,
                           uint64_t seed, SplitOrder& out);

  [[nodiscard]] uint64_t count(Split split) const {
    return split == Split::kTrain ? training_ : validation_;
  }
  /// Training: position p is sample p of an endless run through the training items, each epoch in
  /// another order. Validation: item p mod count(), which must not be 0, in the order of the data.
  [[nodiscard]] uint64_t item(Split split, uint64_t position) const;

 private:
  [[nodiscard]] uint64_t validation_item(uint64_t index) const;
  [[nodiscard]] uint64_t training_item(uint64_t index) const;

  uint64_t seed_ = 0;
  uint64_t share_ = 0;  // in units of 2^-32
  uint64_t validation_ = 0;
  uint64_t training_ = 0;
};

}  // namespace rrfp::data
