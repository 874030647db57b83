// SPDX-License-Identifier: Apache-2.0
//
// Continues a sequence with a language model, one token after the other. Keys and values of what
// has been read are kept, so a token costs one position, not the whole sequence.
//
// A model has one input, of tokens, on the way to its output, or reads the inputs of the
// vision-language model as that one does. Of these, the prompt gives all; what follows is text that
// continues the last segment, so only the keys and values of that one are kept.
#pragma once

#include <map>
#include <vector>

#include "engine/model/vision_language.h"
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
  /// The same with all inputs of the vision-language model, for one sequence. Targets are not
  /// looked at.
  core::Status start_inputs(std::span<const InputArray> inputs);
  /// Draws a token from the current logits and reads it.
  /// Errors: kBadState (the context is full, and pictures cannot be forgotten), kNonFinite.
  core::Status next(const Sampling& sampling, int32_t& token);
  /// For the token that follows; empty before start().
  [[nodiscard]] std::span<const float> logits() const { return logits_; }
  [[nodiscard]] int64_t vocabulary() const { return vocabulary_; }

 private:
  Generator(const Trainer& trainer, int32_t context)
      : trainer_(trainer), graph_(trainer.graph()), context_(context) {}
  using Arrays = std::vector<InputArray>;  // by input of the model

  core::Status prepare();
  core::Status find_inputs();
  core::Status check_operations();
  [[nodiscard]] bool reads_as_expected(const model::Op& op) const;
  [[nodiscard]] int64_t cache_width(const model::Op& op) const;
  void make_caches();
  void forget();
  /// Reads tokens of text that fit behind those in the caches.
  core::Status read_text(std::span<const int32_t> tokens);
  void read(const Arrays& inputs, const ShapePlan& plan);
  void reserve_scratch(const ShapePlan& plan);
  /// Of a prompt that has been read; no other is attended to any more.
  void keep_last_segment(const Arrays& prompt);
  core::Status make_room();
  int32_t draw(const Sampling& sampling);
  core::Status plan_for(const Arrays& inputs, const ShapePlan*& out);

  const Trainer& trainer_;
  const model::Graph& graph_;
  int32_t context_;
  int64_t vocabulary_ = 0;
  int64_t ids_max_ = 0;          // tokens are below this
  size_t tokens_input_ = 0;      // its number among the inputs of the model
  bool with_pictures_ = false;   // reads the inputs of the vision-language model
  int64_t positions_max_ = 0;    // places are below this
  std::vector<bool> needed_;     // by operation: for the output
  std::vector<bool> is_cached_;  // by operation: attention to tokens
  model::Program program_;
  std::map<std::vector<int64_t>, ShapePlan> plans_;  // by extents of the inputs
  model::AlignedFloats scratch_;
  model::AlignedFloats cache_memory_;
  std::vector<model::KeyValueCache> caches_;  // by operation
  model::Bindings bound_;
  std::vector<int32_t> seen_;  // what the caches stand for
  bool seen_pictures_ = false;
  int32_t segment_ = 0;   // of what is read next
  int64_t position_ = 0;  // in its segment
  std::vector<float> logits_;
  uint64_t drawn_ = 0;  // tokens since start(): the place in the stream of random numbers
  std::vector<std::pair<float, int32_t>> ranked_;
};

}  // namespace rrfp::train
