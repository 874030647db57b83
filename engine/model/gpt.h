// SPDX-License-Identifier: Apache-2.0
//
// The built-in language model: a decoder-only transformer (Radford et al. 2019, "Language Models
// are Unsupervised Multitask Learners": pre-norm blocks, GELU), with the choices that later models
// made.
#pragma once

#include <string>

#include "engine/model/transformer.h"

namespace rrfp::model {

struct GptOptions {
  int32_t vocabulary = 0;
  int32_t context = 0;
  int32_t layers = 0;
  int32_t dim = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;  // 0 = heads
  int32_t hidden = 0;    // 0 = 4 dim, with swiglu 8/3 dim rounded up to a multiple of 8
  double dropout = 0;
  bool tied = false;
  bool rotary = false;
  bool rms_norm = false;
  bool swiglu = false;
};

/// Inputs "tokens" and "targets", i32 [batch, length]. Blocks: "embedding", "layers.0" .., "head".
/// The output is the logits, the loss the cross-entropy of each token. Graph::recipe is set.
core::Status build_gpt(const GptOptions& options, Graph& out);

// For models that have a language model as a part of them.
constexpr int32_t kLayersMax = 1 << 16;  // each adds up to 14 values: fewer than Graph::kCountMax
core::Status check_range(const std::string& name, int32_t value, int32_t least = 1,
                         int32_t most = 1 << 24);
core::Status check(const GptOptions& options);
[[nodiscard]] LayerStack stack_of(const GptOptions& options);

}  // namespace rrfp::model
