// SPDX-License-Identifier: Apache-2.0
//
// Samples of pictures and text from a manifest (manifest.h), as microbatches. What a position gives
// is a function of the options and the files; that pictures are decoded ahead of their use on
// another thread changes only when.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/status.h"
#include "engine/data/decode_ahead.h"
#include "engine/data/manifest.h"
#include "engine/data/packing.h"
#include "engine/data/picture.h"
#include "engine/data/split.h"

namespace rrfp::data {

constexpr int32_t kAheadDefault = 64;
/// Bounds the list of samples that are decoded ahead.
constexpr int32_t kAheadMax = 1 << 20;
constexpr double kImageCostMax = 1e12;

struct SamplesOptions {
  std::string path;
  Grouping grouping = Grouping::kCount;
  int32_t image_size = 0;
  int32_t image_tokens = 0;
  int32_t context = 0;
  int32_t ahead = 0;              // samples; 0 = kAheadDefault
  double validation_share = 0.1;  // see SplitOrder
  double image_cost = 0;          // of a picture in the encoder, in tokens; 0 = image_tokens
  uint64_t seed = 0;
  int64_t pixels_max = kPixelsMaxDefault;
};

class Samples {
 public:
  /// Errors: kInvalidArgument, those of Manifest::open and of SplitOrder::make.
  static core::Status open(const SamplesOptions& options, std::unique_ptr<Samples>& out);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] int32_t image_size() const { return options_.image_size; }
  [[nodiscard]] uint64_t count(Split split) const { return order_.count(split); }
  /// The number of the manifest's sample at a position.
  [[nodiscard]] size_t item(Split split, uint64_t position) const {
    return static_cast<size_t>(order_.item(split, position));
  }

  /// Samples position .. position + count - 1, grouped into microbatches; then decodes those that
  /// follow. One thread at a time. Errors name the line and leave the object usable, but nothing in
  /// particular in `out`: kInvalidArgument (counts), kBadState (the split is empty), kIo and
  /// kBadData (a picture).
  core::Status read(Split split, uint64_t position, int32_t count, int32_t microbatches,
                    std::vector<Microbatch>& out);
  /// The same for samples from anywhere; nothing is decoded ahead.
  core::Status read_at(Split split, std::span<const uint64_t> positions, int32_t microbatches,
                       std::vector<Microbatch>& out);

  /// Of decoding ahead; for tests.
  [[nodiscard]] DecodeAhead::Stats ahead_stats() const { return ahead_->stats(); }

  ~Samples() = default;
  Samples(const Samples&) = delete;
  Samples& operator=(const Samples&) = delete;

 private:
  struct Destination;

  explicit Samples(const SamplesOptions& options) : options_(options) {}

  core::Status pack(Split split, std::span<const uint64_t> positions, int32_t microbatches,
                    std::vector<Microbatch>& out, std::vector<Destination>& images) const;
  [[nodiscard]] std::vector<std::vector<size_t>> group(std::span<const size_t> items,
                                                       size_t groups) const;
  [[nodiscard]] size_t image_floats(size_t item) const;
  core::Status decode(size_t item, std::span<float> out) const;

  const SamplesOptions options_;
  Manifest manifest_;
  SplitOrder order_;
  std::unique_ptr<DecodeAhead> ahead_;  // last: its thread uses the rest
};

}  // namespace rrfp::data
