// SPDX-License-Identifier: Apache-2.0
//
// The built-in language model: a decoder-only transformer (Radford et al. 2019, "Language Models
// are Unsupervised Multitask Learners": pre-norm blocks, GELU), with the choices that later models
// made.
#pragma once

#include <string_view>

#include "engine/model/graph.h"

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
/// Builds a model again from Graph::recipe. `source` is for error texts.
core::Status build_from_recipe(std::string_view recipe, std::string_view source, Graph& out);

}  // namespace rrfp::model
