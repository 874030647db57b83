// SPDX-License-Identifier: Apache-2.0
//
// Samples of pictures and text: the inputs of a vision-language model.
#pragma once

#include "capi/cli/batches.h"

namespace rrfp::cli {

class SampleBatches : public Batches {
 public:
  SampleBatches(const DataOptions& data, const ModelOptions& model, const VisionOptions& vision,
                uint64_t seed);

  /// Each microbatch is one sequence in which its samples lie side by side.
  rrfp_batch& read(rrfp_split split, uint64_t position, int32_t samples,
                   int32_t microbatches) override;
  rrfp_batch& read_at(rrfp_split split, std::span<const uint64_t> positions,
                      int32_t microbatches) override;

  [[nodiscard]] int64_t samples(rrfp_split split) const override {
    return split == RRFP_SPLIT_TRAIN ? info_.train_samples : info_.validation_samples;
  }
  [[nodiscard]] int32_t vocabulary() const override { return RRFP_SAMPLES_VOCABULARY; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] Amount amount() const override;
  std::span<const rrfp_tensor> read_typical(rrfp_split split, int32_t samples,
                                            int32_t microbatches) override;

 private:
  [[nodiscard]] Amount amount_of(int32_t microbatch) const;
  /// The tensors of a microbatch that was read last.
  [[nodiscard]] std::span<const rrfp_tensor> inputs(int32_t microbatch) const;

  Samples samples_;
  rrfp_samples_info info_ = prepared(rrfp_samples_info_init);
  rrfp_batch batch_ = prepared(rrfp_batch_init);
};

}  // namespace rrfp::cli
