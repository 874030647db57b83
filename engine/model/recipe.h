// SPDX-License-Identifier: Apache-2.0
//
// How a built-in model was made, as a JSON object in its checkpoints, and making it again from
// that.
#pragma once

#include <string>
#include <string_view>

#include "engine/model/vision_language.h"

namespace rrfp::model {

[[nodiscard]] std::string recipe_of(const GptOptions& options);
[[nodiscard]] std::string recipe_of(const GptOptions& language, const VisionOptions& vision);
/// Builds a model again from Graph::recipe. `source` is for error texts.
core::Status build_from_recipe(std::string_view recipe, std::string_view source, Graph& out);

}  // namespace rrfp::model
