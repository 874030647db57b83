// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint says about itself, and which one of a folder is meant.
#pragma once

#include <cstdint>
#include <string>

#include "capi/cli/output.h"

namespace rrfp::cli {

struct CheckpointInfo {
  std::string path;        // as it was named: a checkpoint, or a folder of checkpoints
  bool is_folder = false;  // of checkpoints
  int64_t step = 0;
  Json state;     // all of state.json
  Json model;     // the options of the model, under the names that the train command gives them
  Json data;      // where it was trained by the train command: its --data, --format, ...
  Json training;  // and its --batch, --lr, ...

  [[nodiscard]] int32_t context() const { return number("context"); }
  [[nodiscard]] int32_t vocabulary() const { return number("vocabulary"); }
  /// Whether its tokens are bytes.
  [[nodiscard]] bool is_bytes() const;

 private:
  [[nodiscard]] int32_t number(const char* key) const;
};

/// Throws Failure if there is no readable checkpoint.
CheckpointInfo describe_checkpoint(const std::string& path);

/// The step of the newest checkpoint in a folder, or -1 if it has none.
int64_t newest_step(const std::string& root);
/// The folder of the checkpoint of a step.
std::string checkpoint_path(const std::string& root, int64_t step);

/// What the train command keeps with a checkpoint.
std::string user_json(const Json& data, const Json& training);

}  // namespace rrfp::cli
