// SPDX-License-Identifier: Apache-2.0
//
// What the options of a model that reads pictures come to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capi/cli/api.h"
#include "capi/cli/options.h"

namespace rrfp::cli {

/// Throws if options of one kind of data or model were given for the other kind.
void check_kind(bool reads_pictures, const Settings& vision, const Settings& data);

/// The options as the library wants them, after the checks whose texts name this command's options.
rrfp_vision_options vision_options(const VisionOptions& options);

/// Rows that the model makes of a picture.
int32_t image_tokens(const VisionOptions& options);
/// What a picture costs in the encoder and the projector, in tokens of the language model: the
/// ratio of the multiplications of their products. Texts are taken to be short beside the width,
/// and a frozen encoder has no backward pass, two thirds of the work.
double image_cost(const VisionOptions& vision, const ModelOptions& model);

/// Stands for a picture in a prompt.
constexpr std::string_view kImageMark = "<image>";

/// A prompt with pictures: the inputs of a model for one sequence.
class PicturePrompt {
 public:
  /// Every mark stands for the next picture; files and marks must be equally many.
  PicturePrompt(const std::string& text, const std::vector<std::string>& files,
                const VisionOptions& vision, int64_t pixels_max);
  PicturePrompt(const PicturePrompt&) = delete;  // the tensors point into it
  PicturePrompt& operator=(const PicturePrompt&) = delete;

  [[nodiscard]] const std::vector<rrfp_tensor>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<int32_t>& tokens() const { return tokens_; }

 private:
  void set_inputs(const VisionOptions& vision, int32_t images);

  std::vector<int32_t> tokens_;
  std::vector<int32_t> targets_;
  std::vector<int32_t> segments_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> sources_;
  std::vector<float> pixels_;
  std::vector<rrfp_tensor> inputs_;
};

}  // namespace rrfp::cli
