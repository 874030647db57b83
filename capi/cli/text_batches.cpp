// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/text_batches.h"

namespace rrfp::cli {
namespace {

rrfp_data_format format_of(const std::string& name) {
  if (name == "u16") return RRFP_DATA_U16;
  return name == "u32" ? RRFP_DATA_U32 : RRFP_DATA_BYTES;
}

Data open_data(const DataOptions& options, int32_t context, uint64_t seed) {
  if (options.paths.empty()) bad_input("--data is missing: files or folders with text");
  if (options.format == "bytes" && options.vocabulary > 0 && options.vocabulary != 256) {
    bad_input("--vocabulary " + std::to_string(options.vocabulary) +
              " does not fit --format bytes, whose vocabulary is 256");
  }
  if (options.format != "bytes" && options.vocabulary < 0) {
    bad_input("--format " + options.format + " needs --vocabulary, the number of token ids");
  }
  std::vector<const char*> paths;
  for (const std::string& path : options.paths) paths.push_back(path.c_str());
  auto wanted = prepared(rrfp_data_options_init);
  wanted.format = format_of(options.format);
  wanted.paths = paths.data();
  wanted.path_count = static_cast<int32_t>(paths.size());
  wanted.vocabulary = options.format == "bytes" ? 0 : options.vocabulary;
  wanted.context = context;
  wanted.validation_share = options.validation;
  wanted.seed = seed;
  return create<Data>(rrfp_data_open, &wanted);
}

}  // namespace

TextBatches::TextBatches(const DataOptions& options, int32_t context, uint64_t seed)
    : context_(context), data_(open_data(options, context, seed)) {
  call(rrfp_data_get_info, data_.get(), &info_);
}

std::string TextBatches::description() const {
  return format("%lld tokens, %lld samples of %d for training, %lld for validation",
                static_cast<long long>(info_.tokens), static_cast<long long>(info_.train_windows),
                context_, static_cast<long long>(info_.validation_windows));
}

void TextBatches::make_room(int32_t samples) {
  tokens_.resize(static_cast<size_t>(samples) * static_cast<size_t>(context_));
  targets_.resize(tokens_.size());
}

rrfp_batch& TextBatches::read(rrfp_split split, uint64_t position, int32_t samples,
                              int32_t microbatches) {
  make_room(samples);
  call(rrfp_data_read, data_.get(), split, position, samples, tokens_.data(), targets_.data());
  return cut(samples, microbatches);
}

rrfp_batch& TextBatches::read_at(rrfp_split split, std::span<const uint64_t> positions,
                                 int32_t microbatches) {
  const auto samples = static_cast<int32_t>(positions.size());
  make_room(samples);
  size_t at = 0;
  for (const uint64_t position : positions) {
    call(rrfp_data_read, data_.get(), split, position, 1, tokens_.data() + at,
         targets_.data() + at);
    at += static_cast<size_t>(context_);
  }
  return cut(samples, microbatches);
}

rrfp_batch& TextBatches::cut(int32_t samples, int32_t microbatches) {
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

}  // namespace rrfp::cli
