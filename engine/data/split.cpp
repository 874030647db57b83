// SPDX-License-Identifier: Apache-2.0
//
// Of the first i items, floor(i * share) validate, so they are spread evenly, and both kinds can be
// counted and found with a division; in integers, so that every machine finds the same ones.
#include "engine/data/split.h"

#include <cassert>
#include <cmath>

#include "engine/data/permutation.h"

namespace rrfp::data {

using core::Code;
using core::Status;

namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr uint64_t kOne = uint64_t{1} << 32;  // a share of 1

/// floor(a * b / divisor)
uint64_t scaled(uint64_t a, uint64_t b, uint64_t divisor) {
  return static_cast<uint64_t>(static_cast<Uint128>(a) * b / divisor);
}

}  // namespace

Status check_validation_share(double share) {
  // Written so that it refuses NaN, too.
  if (share >= 0 && share < 1) return {};
  return {Code::kInvalidArgument, "the validation share is " + std::to_string(share) +
                                      ", expected at least 0 and less than 1"};
}

Status SplitOrder::make(uint64_t items, const std::string& items_are, double share, uint64_t seed,
                        SplitOrder& out) {
  SplitOrder order;
  order.seed_ = seed;
  // Rounded up: 0.7 is stored as a little less, and yet 0.7 of 10 items should be 7.
  order.share_ = static_cast<uint64_t>(std::ceil(share * static_cast<double>(kOne)));
  order.validation_ = scaled(items, order.share_, kOne);
  order.training_ = items - order.validation_;
  if (order.training_ > 0 && (order.validation_ > 0 || share == 0)) {
    out = order;
    return {};
  }
  const std::string without = order.training_ == 0 ? "train" : "validate";
  return {Code::kBadData, "a validation share of " + std::to_string(share) + " of " +
                              std::to_string(items) + " " + items_are + " leaves none to " +
                              without + " with"};
}

uint64_t SplitOrder::validation_item(uint64_t index) const {
  // The smallest i with floor((i + 1) * share) = index + 1: i + 1 is (index + 1) / share, rounded
  // up.
  const auto numerator = static_cast<Uint128>(index + 1) * kOne + share_ - 1;
  return static_cast<uint64_t>(numerator / share_) - 1;
}

uint64_t SplitOrder::training_item(uint64_t index) const {
  // Of the first i items, i - floor(i * share) = ceil(i * (1 - share)) train. The smallest i for
  // which ceil((i + 1) * (1 - share)) exceeds index is index / (1 - share), rounded down.
  return scaled(index, kOne, kOne - share_);
}

uint64_t SplitOrder::item(Split split, uint64_t position) const {
  assert(count(split) > 0);
  if (split == Split::kValidation) return validation_item(position % validation_);
  const Permutation order(training_, seed_, position / training_);
  return training_item(order(position % training_));
}

}  // namespace rrfp::data
