// SPDX-License-Identifier: Apache-2.0
//
// The JSON header of a safetensors file: text to entries, without a look at whether they make sense
// together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/train/safetensors.h"

namespace rrfp::train {

/// Empty if `header` has the form of one; else what is wrong with it, naming the tensor concerned.
/// Sees no deeper than the form is, so that nesting costs nothing. Duplicate names of tensors are
/// left to the caller.
std::string parse_safetensors_header(std::string_view header,
                                     std::vector<SafetensorsEntry>& entries,
                                     SafetensorsMetadata& metadata);

}  // namespace rrfp::train
