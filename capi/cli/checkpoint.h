// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint says about itself, and which one of a folder is meant.
#pragma once

#include <cstdint>
#include <string>

#include "capi/cli/options.h"
#include "capi/cli/output.h"

namespace rrfp::cli {

struct CheckpointInfo {
  std::string path;        // of the checkpoint itself, whatever comes to a folder of them later
  bool is_folder = false;  // a folder of checkpoints was named
  int64_t step = 0;
  Json state;     // all of state.json
  Json model;     // the options of the model, under the names that the train command gives them
  Json vision;    // those of --vision: of the encoder
  Json data;      // where it was trained by the train command: its --data, --format, ...
  Json training;  // and its --batch, --lr, ...

  [[nodiscard]] int32_t context() const { return number("context"); }
  [[nodiscard]] int32_t vocabulary() const { return number("vocabulary"); }
  /// Of its encoder.
  [[nodiscard]] VisionOptions vision_options() const;
  /// The largest picture that its training read, or 0.
  [[nodiscard]] int64_t pixels_max() const;
  /// Whether it reads pictures: its tokens are those of samples.
  [[nodiscard]] bool reads_pictures() const;
  /// Whether its tokens are bytes, but for those that stand for pictures and ends.
  [[nodiscard]] bool is_bytes() const;

 private:
  [[nodiscard]] int32_t number(const char* key) const;
};

/// Of a checkpoint, or the newest one in a folder of them. Throws Failure if there is none that can
/// be read.
CheckpointInfo describe_checkpoint(const std::string& path);

/// The step of the newest checkpoint in a folder, or -1 if it has none. By the rule of the library:
/// a checkpoint is a folder step-<8 digits or more> with a state.json.
int64_t newest_step(const std::string& root);
/// The folder of the checkpoint of a step.
std::string checkpoint_path(const std::string& root, int64_t step);

/// What the train command keeps with a checkpoint.
std::string user_json(const Json& data, const Json& training);

}  // namespace rrfp::cli
