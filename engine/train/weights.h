// SPDX-License-Identifier: Apache-2.0
//
// All that belongs to the parameters of a model: their values, gradients, and what the optimizer
// keeps. One copy for all ranks, which are threads of one process.
//
// A parameter has one gradient array for each of its uses (tied weights have several), so stages
// never write to one array; gather_gradient() adds them up in the order of the operations. That
// order is the model's, not the cut's, and so are the bits of the sum.
#pragma once

#include <array>
#include <vector>

#include "engine/model/aligned.h"
#include "engine/model/execute.h"
#include "engine/train/named_tensor.h"

namespace rrfp::train {

/// The values are part of the C ABI.
enum class WeightSlot : int32_t { kWeight = 0, kGradient = 1, kMoment1 = 2, kMoment2 = 3 };

class Weights {
 public:
  /// Arrays for the parameters of `graph`, gradients for the uses that `needed` operations make of
  /// the trainable ones. `moments` = arrays per trainable parameter that the optimizer keeps.
  Weights(const model::Graph& graph, const std::vector<bool>& needed, size_t moments);

  /// Random numbers that are a function of the seed and each parameter's name.
  void initialize(uint64_t seed);

  [[nodiscard]] size_t count() const { return entries_.size(); }
  [[nodiscard]] int64_t elements(size_t p) const { return entries_[p].elements; }
  /// Has a gradient: it is trainable and the loss depends on it.
  [[nodiscard]] bool trained(size_t p) const { return !entries_[p].gradients.empty(); }
  /// The first operation that uses it; invalid if it is not trained.
  [[nodiscard]] model::OpId first_use(size_t p) const { return entries_[p].first_use; }
  /// Null if the parameter has no such array.
  [[nodiscard]] float* array(size_t p, WeightSlot slot) const;

  /// Adds the gradients of all uses up in the first one's array and clears the others.
  void gather_gradient(size_t p, const kernels::Kernels& kernels) const;
  void clear_gradient(size_t p, const kernels::Kernels& kernels) const;

  [[nodiscard]] const model::WeightTable& table() const { return table_; }
  [[nodiscard]] int64_t bytes() const;

  // Checkpoints. The names are those of the parameters; of the optimizer "<slot>.<parameter>".
  [[nodiscard]] std::vector<NamedTensor> weight_tensors() const;
  [[nodiscard]] std::vector<NamedTensor> moment_tensors() const;
  /// Memory like that of the values, the moments; filled by the caller and then taken over.
  [[nodiscard]] model::AlignedFloats like_values() const;
  [[nodiscard]] model::AlignedFloats like_moments() const;
  [[nodiscard]] std::vector<NamedTensor> weight_tensors_in(const model::AlignedFloats& of) const;
  [[nodiscard]] std::vector<NamedTensor> moment_tensors_in(const model::AlignedFloats& of) const;
  void copy_values(const model::AlignedFloats& from);
  void copy_moments(const model::AlignedFloats& from);

 private:
  struct Entry {
    int64_t elements = 0;
    int64_t value_at = 0;
    int64_t moments_at = 0;
    std::vector<float*> gradients;  // by use
    model::OpId first_use;
  };

  const model::Graph& graph_;
  size_t moments_;
  std::vector<Entry> entries_;
  model::AlignedFloats values_;
  model::AlignedFloats gradients_;
  model::AlignedFloats kept_;  // moments, all of a parameter side by side
  model::WeightTable table_;
};

}  // namespace rrfp::train
