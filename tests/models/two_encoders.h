// SPDX-License-Identifier: Apache-2.0
//
// A model of every kind of branch: two encoders and a text branch, packed samples, two losses, and
// batches for it that have nothing for a branch or a lot.
#pragma once

#include <array>

#include "harness.h"

namespace rrfp::models {

constexpr int32_t kDim = 6;
constexpr int32_t kVocabulary = 11;
constexpr size_t kInputs = 8;
constexpr int32_t kBlocks = 9;

/// Blocks: sight.0, sight.1, sound.0, sound.1 | text | join, language | head. The second loss is at
/// the end of the second encoder.
struct TwoEncoders {
  explicit TwoEncoders(rrfp_parameter_flags sight_flags = 0, double second_factor = 0.25) {
    const int32_t images = b.input("images", RRFP_F32, {-1, 4, 4, 2});
    const int32_t sounds = b.input("sounds", RRFP_F32, {-1, 5});
    const int32_t goals = b.input("goals", RRFP_F32, {-1, kDim});
    const int32_t tokens = b.input("tokens", RRFP_I32, {1, -1});
    const int32_t targets = b.input("targets", RRFP_I32, {1, -1});
    const int32_t segments = b.input("segments", RRFP_I32, {1, -1});
    const int32_t sights_at = b.input("sights_at", RRFP_I32, {1, -1});
    const int32_t sounds_at = b.input("sounds_at", RRFP_I32, {1, -1});
    b.block("sight.0");
    int32_t x = b.op(RRFP_OP_PATCHES, {images}, {}, {.kernel = 2, .stride = 2});
    x = b.op(RRFP_OP_RESHAPE, {x}, {}, {.shape = {0, 4, 8}});
    x = b.op(RRFP_OP_LINEAR, {x}, {b.parameter("sight.in", {kDim, 8}, 0.5, sight_flags)});
    b.block("sight.1");
    const int32_t gain = b.parameter("sight.gain", {kDim}, 0.5, sight_flags, 1);
    const int32_t n = b.op(RRFP_OP_RMS_NORM, {x}, {gain});
    x = b.op(RRFP_OP_ADD, {x, attention(n, "sight.qkv", 0, -1, sight_flags)});
    b.block("sound.0");
    int32_t y = b.op(RRFP_OP_LINEAR, {sounds}, {b.parameter("sound.in", {kDim, 5})});
    y = b.op(RRFP_OP_GELU, {y});
    b.block("sound.1");
    y = b.op(RRFP_OP_LINEAR, {y}, {b.parameter("sound.out", {kDim, kDim})});
    const int32_t heard = b.op(RRFP_OP_SQUARED_ERROR, {y, goals});
    b.block("text");
    const int32_t table = b.parameter("table", {kVocabulary, kDim});
    int32_t z = b.op(RRFP_OP_EMBEDDING, {tokens}, {table});
    b.block("join");
    z = b.op(RRFP_OP_MERGE_ROWS, {z, x, sights_at});
    z = b.op(RRFP_OP_MERGE_ROWS, {z, y, sounds_at});
    z = b.op(RRFP_OP_DROPOUT, {z}, {}, {.probability = 0.1});
    for (int32_t k = 0; k < 2; ++k) {
      if (k > 0) b.block("language");
      const std::string name = "language." + std::to_string(k);
      z = b.op(RRFP_OP_ADD, {z, attention(z, name, RRFP_OP_CAUSAL, segments, 0)});
    }
    b.block("late");  // both encoders are read again far behind the join
    z = b.op(RRFP_OP_MERGE_ROWS, {z, x, sights_at});
    z = b.op(RRFP_OP_MERGE_ROWS, {z, y, sounds_at});
    b.block("head");
    const int32_t logits = b.op(RRFP_OP_LINEAR, {z}, {table});
    b.loss(b.op(RRFP_OP_CROSS_ENTROPY, {logits, targets}));
    rrfp_error error = {};
    check(rrfp_model_add_loss(b.model.get(), heard, second_factor, &error), error);
  }
  int32_t attention(int32_t x, const std::string& name, rrfp_op_flags flags, int32_t segments,
                    rrfp_parameter_flags parameter_flags) {
    const int32_t w = b.parameter(name, {3 * kDim, kDim}, 0.5, parameter_flags);
    const int32_t qkv = b.op(RRFP_OP_LINEAR, {x}, {w});
    std::vector<int32_t> inputs = {qkv};
    if (segments >= 0) inputs.push_back(segments);
    return b.op(RRFP_OP_ATTENTION, inputs, {}, {.flags = flags, .heads = 2});
  }

  Builder b;
};

inline std::vector<float> random_floats(Random& random, size_t count) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = random.number();
  return numbers;
}

/// One microbatch: a packed sequence of two samples, with so many pictures and sounds.
inline void add_microbatch(BatchData& data, Random& random, int64_t pictures, int64_t sounds,
                           int64_t words) {
  const int64_t length = 4 * pictures + sounds + words;
  data.add_f32(random_floats(random, static_cast<size_t>(pictures * 4 * 4 * 2)),
               {pictures, 4, 4, 2});
  data.add_f32(random_floats(random, static_cast<size_t>(sounds * 5)), {sounds, 5});
  data.add_f32(random_floats(random, static_cast<size_t>(sounds * kDim)), {sounds, kDim});
  std::vector<int32_t> tokens(static_cast<size_t>(length));
  std::vector<int32_t> targets(tokens.size());
  std::vector<int32_t> segments(tokens.size(), 0);
  std::vector<int32_t> sights_at(tokens.size(), -1);
  std::vector<int32_t> sounds_at(tokens.size(), -1);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto at = static_cast<int32_t>(t);
    tokens[t] = random.below(kVocabulary);
    targets[t] = random.below(4) == 0 ? -100 : random.below(kVocabulary);
    if (2 * t >= tokens.size()) segments[t] = 1;
    if (at < 4 * pictures) sights_at[t] = at;
    if (at >= 4 * pictures && at < 4 * pictures + sounds) {
      sounds_at[t] = at - static_cast<int32_t>(4 * pictures);
    }
  }
  for (const auto* ids : {&tokens, &targets, &segments, &sights_at, &sounds_at}) {
    data.add_i32(*ids, {1, length});
  }
}

/// Long-tailed: often nothing, sometimes a lot.
inline int64_t long_tailed(Random& random) {
  constexpr std::array<int64_t, 8> kCounts = {0, 0, 0, 1, 1, 2, 3, 9};
  return kCounts.at(static_cast<size_t>(random.below(8)));
}

inline BatchData random_batch(uint64_t seed, int32_t microbatches) {
  Random random(seed);
  BatchData data;
  for (int32_t i = 0; i < microbatches; ++i) {
    const int64_t pictures = long_tailed(random);
    const int64_t sounds = long_tailed(random);
    const int64_t words = pictures + sounds == 0 ? 1 + random.below(8) : random.below(8);
    add_microbatch(data, random, pictures, sounds, words);
  }
  return data;
}

struct Pipeline {
  std::vector<int32_t> first_blocks = {0};
  std::vector<int32_t> stage_ranks = {};
  std::string hint = "zb-h1";
  rrfp_placement placement = RRFP_PLACEMENT_LINEAR;
  rrfp_order order = RRFP_ORDER_READY;
  rrfp_trainer_flags flags = 0;
  int64_t cap_slots = 0;
  int64_t delay_us_max = 0;
  int32_t steps = 3;
};

inline TrainerPtr make_trainer(rrfp_model* model, const Pipeline& p) {
  const HintPtr hint = make_hint(p.hint);
  const bool choose = (p.flags & RRFP_TRAINER_AUTO) != 0;
  rrfp_trainer_options options = trainer_options(static_cast<int32_t>(p.first_blocks.size()));
  options.first_blocks = p.first_blocks.data();
  if (!p.stage_ranks.empty()) options.stage_ranks = p.stage_ranks.data();
  options.flags = p.flags;
  options.hint = choose ? nullptr : hint.get();
  options.order = choose ? RRFP_ORDER_DEFAULT : p.order;
  options.placement = p.placement;
  options.cap_slots = p.cap_slots;
  options.delay_us_max = p.delay_us_max;
  options.clip_norm = 1;
  options.lr = 1e-2;
  return make_trainer(model, options);
}

inline Outcome train(rrfp_model* model, const Pipeline& p) {
  const TrainerPtr trainer = make_trainer(model, p);
  Outcome outcome;
  for (int32_t s = 0; s < p.steps; ++s) {
    BatchData data = random_batch(static_cast<uint64_t>(s) + 1, 6);
    const rrfp_train_report report = step(trainer.get(), data.batch(kInputs));
    outcome.losses.push_back(report.loss);
    outcome.norms.push_back(report.gradient_norm);
  }
  outcome.sha256 = weights_sha256(trainer.get());
  return outcome;
}

}  // namespace rrfp::models
