// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/sample_batches.h"

#include <cmath>
#include <limits>

#include "capi/cli/vision.h"

namespace rrfp::cli {
namespace {

Samples open_samples(const DataOptions& data, const ModelOptions& model,
                     const VisionOptions& vision, uint64_t seed) {
  if (data.paths.empty()) bad_input("--data is missing: a manifest of pictures and text");
  if (data.paths.size() > 1) {
    bad_input("--data has " + std::to_string(data.paths.size()) +
              " paths; for a model that reads pictures it is one manifest");
  }
  auto wanted = prepared(rrfp_samples_options_init);
  wanted.grouping = data.grouping == "cost" ? RRFP_GROUPING_COST : RRFP_GROUPING_COUNT;
  wanted.path = data.paths.front().c_str();
  wanted.image_size = vision.image_size;
  wanted.image_tokens = image_tokens(vision);
  wanted.context = model.context;
  wanted.validation_share = data.validation;
  wanted.image_cost = image_cost(vision, model);
  wanted.seed = seed;
  wanted.pixels_max = data.pixels_max;
  return create<Samples>(rrfp_samples_open, &wanted);
}

}  // namespace

SampleBatches::SampleBatches(const DataOptions& data, const ModelOptions& model,
                             const VisionOptions& vision, uint64_t seed)
    : samples_(open_samples(data, model, vision, seed)) {
  call(rrfp_samples_get_info, samples_.get(), &info_);
}

rrfp_batch& SampleBatches::read(rrfp_split split, uint64_t position, int32_t samples,
                                int32_t microbatches) {
  call(rrfp_samples_read, samples_.get(), split, position, samples, microbatches, &batch_);
  return batch_;
}

rrfp_batch& SampleBatches::read_at(rrfp_split split, std::span<const uint64_t> positions,
                                   int32_t microbatches) {
  call(rrfp_samples_read_at, samples_.get(), split, positions.data(),
       static_cast<int32_t>(positions.size()), microbatches, &batch_);
  return batch_;
}

std::string SampleBatches::description() const {
  return format(
      "%lld samples for training, %lld for validation; %lld pictures, at most %lld in a "
      "sample; %lld tokens",
      static_cast<long long>(info_.train_samples), static_cast<long long>(info_.validation_samples),
      static_cast<long long>(info_.images), static_cast<long long>(info_.images_max),
      static_cast<long long>(info_.tokens));
}

std::span<const rrfp_tensor> SampleBatches::inputs(int32_t microbatch) const {
  constexpr size_t kInputs = RRFP_SAMPLES_INPUTS;
  return {batch_.inputs + static_cast<size_t>(microbatch) * kInputs, kInputs};
}

Amount SampleBatches::amount_of(int32_t microbatch) const {
  const std::span<const rrfp_tensor> tensors = inputs(microbatch);
  return {.tokens = tensors.front().shape[0] * tensors.front().shape[1],
          .images = tensors.back().shape[0]};
}

Amount SampleBatches::amount() const {
  Amount amount;
  for (int32_t microbatch = 0; microbatch < batch_.microbatches; ++microbatch) {
    const Amount part = amount_of(microbatch);
    amount.tokens += part.tokens;
    amount.images += part.images;
  }
  return amount;
}

std::span<const rrfp_tensor> SampleBatches::read_typical(rrfp_split split, int32_t samples,
                                                         int32_t microbatches) {
  read(split, 0, samples, microbatches);
  const int64_t end = info_.images > 0 ? this->samples(split) : 0;
  for (int64_t at = samples; at < end && amount().images == 0; at += samples) {
    read(split, static_cast<uint64_t>(at), samples, microbatches);
  }
  // Of those that have pictures, the one whose share of them is nearest to that of the batch.
  const auto share_of = [](const Amount& part) {
    return static_cast<double>(part.images) / static_cast<double>(part.tokens);
  };
  const double share = share_of(amount());
  int32_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int32_t microbatch = 0; microbatch < batch_.microbatches; ++microbatch) {
    const Amount part = amount_of(microbatch);
    const double distance = std::abs(share_of(part) - share);
    if (part.images == 0 || distance >= least) continue;
    best = microbatch;
    least = distance;
  }
  return inputs(best);
}

}  // namespace rrfp::cli
