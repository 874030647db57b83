// SPDX-License-Identifier: Apache-2.0
//
// Continues a sequence with a language model, one token after the other. Keys and values of what
// has been read are kept, so a token costs one position, not the whole sequence.
#pragma once

#include <map>
#include <vector>

#include "engine/train/trainer.h"

namespace rrfp::train {

struct Sampling {
  double temperature = 1;  // 0 = the most likely token
  int32_t top_k = 0;       // 0 = all
  double top_p = 1;        // nucleus sampling (Holtzman et al. 2020)
  uint64_t seed = 0;
};

class Generator {
 public:
  /// The trainer must live longer; its weights are read when tokens are.
  /// Errors: kBadState (no output set), kInvalidArgument (a model that cannot be used like this).
  static core::Status create(const Trainer& trainer, int32_t context,
                             std::unique_ptr<Generator>& out);

  /// Forgets all and reads a prompt.
  core::Status start(std::span<const int32_t> tokens);
  /// Draws a token from the current logits and reads it.
  core::Status next(const Sampling& sampling, int32_t& token);
  /// For the token that follows; empty before start().
  [[nodiscard]] std::span<const float> logits() const { return logits_; }
  [[nodiscard]] int64_t vocabulary() const { return vocabulary_; }

 private:
  Generator(const Trainer& trainer, int32_t context)
      : trainer_(trainer), graph_(trainer.graph()), context_(context) {}
  core::Status prepare();
  core::Status make_caches();
  /// Reads tokens that fit behind those in the caches.
  core::Status read(std::span<const int32_t> tokens);
  int32_t draw(const Sampling& sampling);
  core::Status layout_for(int64_t length, const ShapePlan*& out);

  const Trainer& trainer_;
  const model::Graph& graph_;
  int32_t context_;
  int64_t vocabulary_ = 0;
  int64_t ids_max_ = 0;  // tokens are below this
  int32_t tokens_slot_ = model::kNoSlot;
  std::vector<bool> needed_;  // by operation: for the output
  model::Program program_;
  std::map<int64_t, ShapePlan> plans_;  // by length: of prompts, and 1
  model::AlignedFloats scratch_;
  model::AlignedFloats cache_memory_;
  std::vector<model::KeyValueCache> caches_;  // by operation
  model::Bindings bound_;
  std::vector<int32_t> seen_;  // what the caches stand for
  std::vector<float> logits_;
  uint64_t drawn_ = 0;  // tokens since start(): the place in the stream of random numbers
  std::vector<std::pair<float, int32_t>> ranked_;
};

}  // namespace rrfp::train
