// SPDX-License-Identifier: Apache-2.0
//
// Vision-language models, and samples of pictures and text for them.
#pragma once

#include <rrfp/multimodal.h>

#include "harness.h"

namespace rrfp::models {

ModelPtr make_vision_language(const rrfp_gpt_options& language, const rrfp_vision_options& vision);
/// Pictures of 8 x 8 pixels, which become 4 rows; 2 layers, dim 8, 2 heads.
rrfp_vision_options small_vision(rrfp_vision_flags flags = 0);
/// With small_gpt() and small_vision().
ModelPtr small_vision_language(rrfp_gpt_flags flags = 0, rrfp_vision_flags vision_flags = 0,
                               double dropout = 0);

constexpr int64_t kPictureRows = 4;  // of small_vision()

/// A microbatch: one sequence of samples, side by side.
struct Packed {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  std::vector<int32_t> segments;
  std::vector<int32_t> positions;
  std::vector<int32_t> sources;
  std::vector<float> images;
  int64_t pictures = 0;

  [[nodiscard]] int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  void add_to(BatchData& data) const;
};
/// Samples are texts: letters are tokens, a = 0, and a digit is a picture that is the same wherever
/// it appears. Targets are what follows in the sample, if that is text.
Packed pack(const std::vector<std::string>& samples);
/// Starts a generator with a microbatch as its prompt.
void start(const GeneratorPtr& generator, const Packed& prompt);
/// Of the letters of a text.
std::vector<int32_t> tokens_of(const std::string& text);

}  // namespace rrfp::models
