// SPDX-License-Identifier: Apache-2.0
//
// The text of state.json, to and from.
#pragma once

#include <string>
#include <string_view>

#include "engine/core/status.h"
#include "engine/train/checkpoint.h"
#include "engine/train/files.h"

namespace rrfp::train {

constexpr size_t kStateBytesMax = size_t{16} << 20;
/// Of the JSON that a caller may add. Deeper texts would cost a reader's stack.
constexpr int kJsonDepthMax = 100;

struct StateFile {
  CheckpointState state;
  FileDigest weights;
  FileDigest optimizer;
};

/// kInvalidArgument names the field whose value cannot be kept: model or user is no JSON object,
/// the loss scale is not finite, a count is negative, ...
core::Status check_state(const CheckpointState& state);
/// kInvalidArgument: the text would be longer than kStateBytesMax. The state must have been
/// checked.
core::Status print_state(const StateFile& file, std::string& out);
/// `path` is for the errors only: kBadData names it and the field.
core::Status parse_state(const std::string& path, std::string_view text, StateFile& out);

}  // namespace rrfp::train
