// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/batches.h"

#include <algorithm>

namespace rrfp::cli {

rrfp_batch& Batches::read(rrfp_split split, uint64_t position, int32_t samples,
                          int32_t microbatches) {
  const auto row = static_cast<size_t>(context_);
  tokens_.resize(static_cast<size_t>(samples) * row);
  targets_.resize(tokens_.size());
  call(rrfp_data_read, data_, split, position, samples, tokens_.data(), targets_.data());

  tensors_.assign(static_cast<size_t>(microbatches) * kInputs, rrfp_tensor{});
  size_t sample = 0;
  for (int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    const int32_t size = samples / microbatches + (microbatch < samples % microbatches ? 1 : 0);
    for (size_t input = 0; input < kInputs; ++input) {
      rrfp_tensor& tensor = tensors_[static_cast<size_t>(microbatch) * kInputs + input];
      tensor.data = (input == 0 ? tokens_ : targets_).data() + sample * row;
      tensor.dtype = RRFP_I32;
      tensor.ndim = 2;
      tensor.shape[0] = size;
      tensor.shape[1] = context_;
    }
    sample += static_cast<size_t>(size);
  }
  batch_.microbatches = microbatches;
  batch_.rounds = 0;
  batch_.inputs = tensors_.data();
  return batch_;
}

Evaluation evaluate(rrfp_trainer* trainer, Batches& batches, rrfp_split split, int64_t windows,
                    int64_t samples, Cut cut) {
  Evaluation result;
  result.samples = std::min(samples, windows);
  // Runs of nearly equal length, so that none has fewer samples than microbatches.
  const int64_t runs = std::max<int64_t>(1, result.samples / cut.samples);
  double loss_sum = 0;
  double loss_weight = 0;
  int64_t busy_ns = 0;
  int64_t total_ns = 0;
  int64_t wall_ns = 0;
  for (int64_t run = 0, position = 0; run < runs; ++run) {
    const int64_t size = result.samples / runs + (run < result.samples % runs ? 1 : 0);
    const auto count = static_cast<int32_t>(size);
    const rrfp_batch& batch = batches.read(split, static_cast<uint64_t>(position), count,
                                           std::min(cut.microbatches, count));
    auto report = prepared(rrfp_train_report_init);
    call(rrfp_trainer_evaluate, trainer, &batch, &report);
    loss_sum += report.loss_sum;
    loss_weight += report.loss_weight;
    busy_ns += report.busy_ns;
    total_ns += report.total_ns;
    wall_ns += report.wall_ns;
    position += size;
  }
  const auto tokens = static_cast<double>(result.samples) * batches.context();
  result.loss = loss_sum / loss_weight;
  if (total_ns > 0) {
    result.idle_share = 1 - static_cast<double>(busy_ns) / static_cast<double>(total_ns);
  }
  if (wall_ns > 0) result.tokens_per_s = tokens * 1e9 / static_cast<double>(wall_ns);
  return result;
}

}  // namespace rrfp::cli
