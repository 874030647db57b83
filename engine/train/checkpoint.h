// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints on disk. A checkpoint is a folder:
//
//   ROOT/step-00000300/model.safetensors      the weights, by name, in canonical order
//   ROOT/step-00000300/optimizer.safetensors  what the optimizer keeps, "<slot>.<weight>" each
//   ROOT/step-00000300/state.json             everything else, and the digests of both files
//   ROOT/latest                               the name of the newest one, for people and scripts
//
// A checkpoint is written under another name, flushed to the disk and renamed: at every moment a
// folder named step-* is complete, whatever happens to the process or the disk. Nothing in it
// depends on stages, placement or hint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/status.h"
#include "engine/train/named_tensor.h"

namespace rrfp::train {

/// What state.json holds.
struct CheckpointState {
  int64_t step = 0;        // steps that are done
  uint64_t position = 0;   // samples that have been used
  uint64_t seed = 0;       // the random numbers of a step are a function of this and the step
  double loss_scale = 1;   // finite
  int64_t good_steps = 0;  // since the loss scale last changed
  int64_t updates = 0;     // steps that changed the weights: t of AdamW
  std::string optimizer;   // "adamw" or "sgd"
  // JSON objects; may be empty. They come back as the same values, not as the same text: the names
  // are sorted, and whole numbers beyond 64 bits become doubles.
  std::string model;  // how to build the model again
  std::string user;   // the caller's
};

/// Writes a checkpoint for state.step below `root` (made if missing) and then removes all but the
/// newest `keep` checkpoints (0 = all stay) and what broken-off attempts left. Newest is the
/// greatest step; the one just written stays in any case. An existing checkpoint of the same step
/// is replaced only once the new one is complete on disk; a file system that cannot exchange two
/// names (some network file systems) refuses that with kIo. Errors: kIo names the file and the
/// reason (disk full, ...); nothing finished is lost. kInvalidArgument names the value that cannot
/// be stored.
core::Status save_checkpoint(const std::string& root, const CheckpointState& state,
                             std::span<const NamedTensor> weights,
                             std::span<const NamedTensor> optimizer, int32_t keep);

class Checkpoint {
 public:
  /// `path` is a checkpoint or a folder of checkpoints: then the newest step counts. Reads
  /// state.json and the headers, and checks the files against them; their bytes are checked when
  /// they are read. The files stay open, so that the checkpoint can be read even if it is removed.
  /// Errors: kIo; kBadData names the file, and the tensor where one is wrong.
  static core::Status open(const std::string& path, std::shared_ptr<const Checkpoint>& out);

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const CheckpointState& state() const;
  [[nodiscard]] std::vector<std::string> weight_names() const;

  /// Fills the tensors from the file. kBadData names the tensor that is missing, has another shape
  /// or type, or stands in the file but is not wanted; or says that the digest does not match.
  /// Checks everything, also the digest, before it writes to any tensor. Any thread.
  [[nodiscard]] core::Status read_weights(std::span<const NamedTensor> tensors) const;
  [[nodiscard]] core::Status read_optimizer(std::span<const NamedTensor> tensors) const;

  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

 private:
  struct Files;

  Checkpoint();

  std::unique_ptr<Files> files_;
};

}  // namespace rrfp::train
