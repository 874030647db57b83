// SPDX-License-Identifier: Apache-2.0
//
// The update of weights from gradients, and the learning rate over time.
#pragma once

#include "engine/core/status.h"
#include "engine/train/weights.h"

namespace rrfp::train {

enum class OptimizerKind : int32_t { kAdamW = 0, kSgd = 1 };
enum class Decay : int32_t { kNone = 0, kCosine = 1, kLinear = 2 };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  Decay decay = Decay::kNone;
  double lr = 1e-3;
  double lr_min = 0;
  int64_t warmup_steps = 0;
  int64_t decay_steps = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double momentum = 0;
  double clip_norm = 0;
};

[[nodiscard]] core::Status check(const OptimizerOptions& options);
[[nodiscard]] const char* name(OptimizerKind kind);
/// Arrays that the optimizer keeps for each weight.
[[nodiscard]] size_t moment_count(const OptimizerOptions& options);
/// Of the step that follows `steps_done` steps: a linear rise to lr during warm-up, then the decay
/// down to lr_min at decay_steps, where it stays.
[[nodiscard]] double learning_rate(const OptimizerOptions& options, int64_t steps_done);

/// What all parameters of a step share.
struct Update {
  double lr = 0;
  double gradient_scale = 1;  // clipping and loss scale
  int64_t updates = 1;        // this one included: t of AdamW
};

/// Updates one parameter from its gathered gradient, which is cleared.
void update_weight(const OptimizerOptions& options, const Update& update, const Weights& weights,
                   size_t parameter, bool decay, const kernels::Kernels& kernels);

}  // namespace rrfp::train
