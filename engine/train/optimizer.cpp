// SPDX-License-Identifier: Apache-2.0
#include "engine/train/optimizer.h"

#include <cmath>
#include <numbers>

namespace rrfp::train {

using core::Code;
using core::Status;

namespace {

Status expect(bool holds, const char* what, double value, const char* expected) {
  if (holds) return {};
  return {Code::kInvalidArgument,
          std::string(what) + " is " + std::to_string(value) + "; expected " + expected};
}

}  // namespace

Status check(const OptimizerOptions& o) {
  const auto at_least_0 = [](const char* what, double value) {
    return expect(std::isfinite(value) && value >= 0, what, value, "a finite number, at least 0");
  };
  const auto below_1 = [](const char* what, double value) {
    return expect(value >= 0 && value < 1, what, value, "0 <= value < 1");
  };
  for (const Status& s :
       {at_least_0("lr", o.lr), at_least_0("lr_min", o.lr_min), below_1("beta1", o.beta1),
        below_1("beta2", o.beta2), at_least_0("epsilon", o.epsilon),
        at_least_0("weight_decay", o.weight_decay), below_1("momentum", o.momentum),
        at_least_0("clip_norm", o.clip_norm)}) {
    if (!s.ok()) return s;
  }
  if (o.warmup_steps < 0 || o.decay_steps < 0) {
    return {Code::kInvalidArgument, "warmup_steps is " + std::to_string(o.warmup_steps) +
                                        " and decay_steps " + std::to_string(o.decay_steps) +
                                        "; expected at least 0"};
  }
  if (o.decay != Decay::kNone && o.decay_steps <= o.warmup_steps) {
    return {Code::kInvalidArgument,
            "decay_steps is " + std::to_string(o.decay_steps) +
                "; expected more than warmup_steps = " + std::to_string(o.warmup_steps)};
  }
  return {};
}

const char* name(OptimizerKind kind) {
  return kind == OptimizerKind::kSgd ? "sgd" : "adamw";
}

size_t moment_count(const OptimizerOptions& options) {
  if (options.kind == OptimizerKind::kAdamW) return 2;
  return options.momentum > 0 ? 1 : 0;
}

double learning_rate(const OptimizerOptions& o, int64_t steps_done) {
  if (steps_done < o.warmup_steps) {
    return o.lr * static_cast<double>(steps_done + 1) / static_cast<double>(o.warmup_steps);
  }
  if (o.decay == Decay::kNone) return o.lr;
  const auto length = static_cast<double>(o.decay_steps - o.warmup_steps);
  const double past = static_cast<double>(steps_done - o.warmup_steps) / length;
  if (past >= 1) return o.lr_min;
  const double share =
      o.decay == Decay::kCosine ? 0.5 * (1 + std::cos(std::numbers::pi * past)) : 1 - past;
  return o.lr_min + (o.lr - o.lr_min) * share;
}

void update_weight(const OptimizerOptions& options, const Update& update, const Weights& weights,
                   size_t parameter, bool decay, const kernels::Kernels& kernels) {
  const int64_t n = weights.elements(parameter);
  float* const w = weights.array(parameter, WeightSlot::kWeight);
  float* const gradient = weights.array(parameter, WeightSlot::kGradient);
  float* const moment1 = weights.array(parameter, WeightSlot::kMoment1);
  const double weight_decay = decay ? options.weight_decay : 0;
  if (options.kind == OptimizerKind::kSgd) {
    const kernels::SgdStep step = {.lr = static_cast<float>(update.lr),
                                   .momentum = static_cast<float>(options.momentum),
                                   .weight_decay = static_cast<float>(weight_decay),
                                   .gradient_scale = static_cast<float>(update.gradient_scale)};
    kernels.sgd(n, step, w, moment1, gradient);
    return;
  }
  const auto t = static_cast<double>(update.updates);
  const kernels::AdamWStep step = {
      .lr = static_cast<float>(update.lr),
      .beta1 = options.beta1,
      .beta2 = options.beta2,
      .epsilon = static_cast<float>(options.epsilon),
      .weight_decay = static_cast<float>(weight_decay),
      .gradient_scale = static_cast<float>(update.gradient_scale),
      .correction1 = static_cast<float>(1 / (1 - std::pow(options.beta1, t))),
      .correction2 = static_cast<float>(1 / (1 - std::pow(options.beta2, t)))};
  kernels.adamw(n, step, w, moment1, weights.array(parameter, WeightSlot::kMoment2), gradient);
}

}  // namespace rrfp::train
