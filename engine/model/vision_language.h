// SPDX-License-Identifier: Apache-2.0
//
// The built-in vision-language model (Liu et al. 2023, "Visual Instruction Tuning"): a vision
// transformer makes rows of pictures, a projector brings them to the width of the language model,
// and there they take the places of marked tokens. Several samples may lie in one sequence.
#pragma once

#include "engine/model/gpt.h"

namespace rrfp::model {

struct VisionOptions {
  int32_t image_size = 0;  // pixels a side
  int32_t patch = 0;       // pixels a side; divides image_size
  int32_t layers = 0;
  int32_t dim = 0;
  int32_t heads = 0;
  int32_t hidden = 0;  // 0 = 4 dim
  bool frozen = false;
  bool conv_stem = false;

  /// Rows that are made of a picture.
  [[nodiscard]] int64_t rows() const {
    const int64_t side = image_size / patch;
    return side * side;
  }
};

/// The inputs, in their order. All but the pictures, f32 [N, size, size, 3], are i32 [batch,
/// length].
enum VisionLanguageInput : size_t {
  kTokens,
  kTargets,
  kSegments,   // a number for each sample: runs of equal ones
  kPositions,  // in the sample
  kSources,    // -1, or the row of the pictures that takes this place
  kImages,
  kVisionLanguageInputs,
};
constexpr const char* kVisionLanguageNames[kVisionLanguageInputs] = {
    "tokens", "targets", "segments", "positions", "sources", "images"};

/// Blocks: "vision.embedding", "vision.layers.0" .., "projector", "embedding", "layers.0" ..,
/// "head". The output is the logits, the loss the cross-entropy of each token. Graph::recipe is
/// set.
core::Status build_vision_language(const GptOptions& language, const VisionOptions& vision,
                                   Graph& out);
/// Whether a model has those inputs.
[[nodiscard]] bool has_vision_language_inputs(const Graph& graph);

}  // namespace rrfp::model
