// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/batches.h"

#include <algorithm>

namespace rrfp::cli {

void Batches::make_room(int32_t samples) {
  tokens_.resize(static_cast<size_t>(samples) * static_cast<size_t>(context_));
  targets_.resize(tokens_.size());
}

rrfp_batch& Batches::read(rrfp_split split, uint64_t position, int32_t samples,
                          int32_t microbatches) {
  make_room(samples);
  call(rrfp_data_read, data_, split, position, samples, tokens_.data(), targets_.data());
  return cut(samples, microbatches);
}

rrfp_batch& Batches::read(rrfp_split split, std::span<const uint64_t> positions,
                          int32_t microbatches) {
  const auto samples = static_cast<int32_t>(positions.size());
  make_room(samples);
  size_t at = 0;
  for (const uint64_t position : positions) {
    call(rrfp_data_read, data_, split, position, 1, tokens_.data() + at, targets_.data() + at);
    at += static_cast<size_t>(context_);
  }
  return cut(samples, microbatches);
}

rrfp_batch& Batches::cut(int32_t samples, int32_t microbatches) {
  const auto row = static_cast<size_t>(context_);
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

namespace {

/// k windows / samples, without the product, which may be too large.
uint64_t spread(int64_t k, int64_t windows, int64_t samples) {
  return static_cast<uint64_t>(k * (windows / samples) + k * (windows % samples) / samples);
}

}  // namespace

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
  std::vector<uint64_t> positions;
  for (int64_t run = 0, first = 0; run < runs; ++run) {
    const int64_t size = result.samples / runs + (run < result.samples % runs ? 1 : 0);
    positions.clear();
    for (int64_t k = first; k < first + size; ++k) {
      positions.push_back(spread(k, windows, result.samples));
    }
    const rrfp_batch& batch =
        batches.read(split, positions, std::min(cut.microbatches, static_cast<int32_t>(size)));
    auto report = prepared(rrfp_train_report_init);
    call(rrfp_trainer_evaluate, trainer, &batch, &report);
    loss_sum += report.loss_sum;
    loss_weight += report.loss_weight;
    busy_ns += report.busy_ns;
    total_ns += report.total_ns;
    wall_ns += report.wall_ns;
    first += size;
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
