// SPDX-License-Identifier: Apache-2.0
//
// Windows of text as samples: the inputs of a language model.
#pragma once

#include <vector>

#include "capi/cli/batches.h"

namespace rrfp::cli {

class TextBatches : public Batches {
 public:
  TextBatches(const DataOptions& options, int32_t context, uint64_t seed);

  /// The sizes of the microbatches differ by at most one, the larger ones come first.
  rrfp_batch& read(rrfp_split split, uint64_t position, int32_t samples,
                   int32_t microbatches) override;
  rrfp_batch& read_at(rrfp_split split, std::span<const uint64_t> positions,
                      int32_t microbatches) override;

  [[nodiscard]] int64_t samples(rrfp_split split) const override {
    return split == RRFP_SPLIT_TRAIN ? info_.train_windows : info_.validation_windows;
  }
  [[nodiscard]] int32_t vocabulary() const override { return info_.vocabulary; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::optional<double> unigram_entropy() const override {
    return info_.unigram_entropy;
  }
  [[nodiscard]] Amount amount() const override {
    return {.tokens = static_cast<int64_t>(tokens_.size()), .images = 0};
  }
  std::span<const rrfp_tensor> read_typical(rrfp_split split, int32_t samples,
                                            int32_t microbatches) override {
    read(split, 0, samples, microbatches);
    return std::span(tensors_).first(kInputs);
  }

 private:
  static constexpr size_t kInputs = 2;  // tokens and targets

  void make_room(int32_t samples);
  rrfp_batch& cut(int32_t samples, int32_t microbatches);

  int32_t context_;
  Data data_;
  rrfp_data_info info_ = prepared(rrfp_data_info_init);
  std::vector<int32_t> tokens_;
  std::vector<int32_t> targets_;
  std::vector<rrfp_tensor> tensors_;
  rrfp_batch batch_ = prepared(rrfp_batch_init);
};

}  // namespace rrfp::cli
