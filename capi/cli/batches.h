// SPDX-License-Identifier: Apache-2.0
//
// Samples cut into microbatches, and the loss over many samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capi/cli/api.h"

namespace rrfp::cli {

/// The batches of a language model. The memory of a batch is used again for the next one.
class Batches {
 public:
  Batches(const rrfp_data* data, int32_t context) : data_(data), context_(context) {}

  /// Samples position .. position + samples - 1, in microbatches whose sizes differ by at most one,
  /// the larger ones first. samples >= microbatches. Valid until the next call.
  rrfp_batch& read(rrfp_split split, uint64_t position, int32_t samples, int32_t microbatches);
  /// The same for samples from anywhere.
  rrfp_batch& read(rrfp_split split, std::span<const uint64_t> positions, int32_t microbatches);

  /// The tensors of the first microbatch that was read last.
  [[nodiscard]] std::span<const rrfp_tensor> first_microbatch() const {
    return std::span(tensors_).first(kInputs);
  }
  [[nodiscard]] int32_t context() const { return context_; }

 private:
  static constexpr size_t kInputs = 2;  // tokens and targets

  void make_room(int32_t samples);
  rrfp_batch& cut(int32_t samples, int32_t microbatches);

  const rrfp_data* data_;
  int32_t context_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> targets_;
  std::vector<rrfp_tensor> tensors_;
  rrfp_batch batch_ = prepared(rrfp_batch_init);
};

/// How training cuts what goes through the pipeline in one run. Sums of losses depend on it in
/// their last bits, so evaluation does the same.
struct Cut {
  int32_t samples = 0;
  int32_t microbatches = 0;
};

struct Evaluation {
  int64_t samples = 0;
  double loss = 0;  // mean per token
  double idle_share = 0;
  double tokens_per_s = 0;
};

/// The loss over so many samples of a split, evenly spread over its windows: neighbours are from
/// the same file. All windows if there are no more.
Evaluation evaluate(rrfp_trainer* trainer, Batches& batches, rrfp_split split, int64_t windows,
                    int64_t samples, Cut cut);

}  // namespace rrfp::cli
