// SPDX-License-Identifier: Apache-2.0
//
// Models with branches: encoders and a text branch that feed one language model, microbatches that
// have nothing for a branch or a lot, frozen branches, several losses. Whatever the stages, where
// they are, and when things arrive, results are the same to the bit.
#include <array>
#include <cmath>
#include <numeric>

#include "harness.h"
#include "vision.h"

namespace rrfp::models {
namespace {

// --- CASES 34: text-only microbatches in a pipeline with an encoder

/// y = w_l (w_e img + txt) as rows of one number, which are the losses: blocks "encoder", "text",
/// "language".
struct ToyBranches {
  explicit ToyBranches(bool frozen) {
    const int32_t images = b.input("images", RRFP_F32, {-1, 1});
    const int32_t text = b.input("text", RRFP_F32, {-1, 1});
    b.block("encoder");
    encoder = b.parameter("w_e", {1, 1}, 0, frozen ? RRFP_PARAMETER_FROZEN : 0, 2);
    const int32_t e = b.op(RRFP_OP_LINEAR, {images}, {encoder});
    b.block("text");
    const int32_t t = b.op(RRFP_OP_RESHAPE, {text}, {}, {.shape = {-1, 1}});
    b.block("language");
    language = b.parameter("w_l", {1, 1}, 0, 0, 3);
    const int32_t both = b.op(RRFP_OP_CONCAT, {e, t}, {}, {.axis = 0});
    b.loss(b.op(RRFP_OP_LINEAR, {both}, {language}));
  }
  /// Of each microbatch: its pictures and its texts.
  static BatchData data(const std::vector<std::array<std::vector<float>, 2>>& microbatches) {
    BatchData data;
    for (const auto& microbatch : microbatches) {
      for (const std::vector<float>& numbers : microbatch) {
        data.add_f32(numbers, {static_cast<int64_t>(numbers.size()), 1});
      }
    }
    return data;
  }

  Builder b;
  int32_t encoder = -1;
  int32_t language = -1;
};

const std::vector<std::array<std::vector<float>, 2>> kCase34 = {
    {{{1}, {1}}}, {{{}, {2}}}, {{{2}, {3}}}, {{{}, {4}}}};

std::vector<int64_t> rank_tasks(rrfp_trainer* trainer, int32_t ranks) {
  std::vector<int64_t> tasks;
  for (int32_t r = 0; r < ranks; ++r) {
    rrfp_step_report report;
    rrfp_step_report_init(&report);
    rrfp_error error = {};
    check(rrfp_trainer_rank_report(trainer, r, &report, &error), error);
    tasks.push_back(report.tasks);
  }
  return tasks;
}

rrfp_trainer_options sum_of(int32_t stages) {
  rrfp_trainer_options options = trainer_options(stages);
  options.reduction = RRFP_REDUCTION_SUM;
  options.optimizer = RRFP_OPTIMIZER_SGD;
  options.weight_decay = 0;
  return options;
}

TEST(Case34, TextOnlyMicrobatchesPassTheEncoderBy) {
  ToyBranches toy(false);
  for (const char* name : {"1f1b", "gpipe", "bf", "bfw", "zb-h1"}) {
    for (const int64_t delay_us : {0, 2000}) {
      const HintPtr hint = make_hint(name);
      rrfp_trainer_options options = sum_of(3);
      options.hint = hint.get();
      options.delay_us_max = delay_us;
      const TrainerPtr trainer = make_trainer(toy.b.model.get(), options);
      BatchData data = ToyBranches::data(kCase34);
      const rrfp_train_report report =
          step(trainer.get(), data.batch(2, RRFP_BATCH_KEEP_GRADIENTS));
      EXPECT_EQ(report.loss, 48) << name;
      EXPECT_EQ(read(trainer.get(), toy.language, RRFP_SLOT_GRADIENT, 1), std::vector<float>{16});
      EXPECT_EQ(read(trainer.get(), toy.encoder, RRFP_SLOT_GRADIENT, 1), std::vector<float>{9});
    }
  }
}

TEST(Case34, StagesHaveTasksOnlyForWhatTheyGet) {
  ToyBranches toy(false);
  const HintPtr hint = make_hint("zb-h1");
  rrfp_trainer_options options = sum_of(3);
  options.hint = hint.get();
  const TrainerPtr trainer = make_trainer(toy.b.model.get(), options);
  BatchData data = ToyBranches::data(kCase34);
  step(trainer.get(), data.batch(2));
  const std::vector<int64_t> tasks = rank_tasks(trainer.get(), 3);
  // The encoder: F, I, W (or B) of two microbatches. The text branch trains nothing: F of four.
  EXPECT_GE(tasks[0], 4);
  EXPECT_LE(tasks[0], 6);
  EXPECT_EQ(tasks[1], 4);
  EXPECT_GE(tasks[2], 8);
}

TEST(Case34, AFrozenEncoderHasForwardsOnly) {
  ToyBranches toy(true);
  const TrainerPtr trainer = make_trainer(toy.b.model.get(), sum_of(3));
  BatchData data = ToyBranches::data(kCase34);
  EXPECT_EQ(step(trainer.get(), data.batch(2, RRFP_BATCH_KEEP_GRADIENTS)).loss, 48);
  EXPECT_EQ(read(trainer.get(), toy.language, RRFP_SLOT_GRADIENT, 1), std::vector<float>{16});
  const std::vector<int64_t> tasks = rank_tasks(trainer.get(), 3);
  // A gradient that came nevertheless would fail the step: no task waits for it.
  EXPECT_EQ(tasks[0], 2);  // forwards of the two microbatches with pictures
  EXPECT_EQ(tasks[1], 4);  // forwards of the text
}

TEST(Case34, BatchesWithoutPicturesAndWithNothingElse) {
  for (const bool frozen : {false, true}) {
    ToyBranches toy(frozen);
    for (const int32_t stages : {1, 2, 3}) {
      const TrainerPtr trainer = make_trainer(toy.b.model.get(), sum_of(stages));
      BatchData none = ToyBranches::data({{{{}, {1}}}, {{{}, {2, 3}}}});
      EXPECT_EQ(step(trainer.get(), none.batch(2, RRFP_BATCH_KEEP_GRADIENTS)).loss, 18);
      if (!frozen) {
        EXPECT_EQ(read(trainer.get(), toy.encoder, RRFP_SLOT_GRADIENT, 1), std::vector<float>{0});
      }
      BatchData all = ToyBranches::data({{{{1, 2}, {}}}, {{{3}, {}}}});
      EXPECT_EQ(step(trainer.get(), all.batch(2, RRFP_BATCH_KEEP_GRADIENTS)).loss, 36);
      EXPECT_EQ(read(trainer.get(), toy.language, RRFP_SLOT_GRADIENT, 1), std::vector<float>{12});
      BatchData some = ToyBranches::data({{{{}, {}}}, {{{1}, {1}}}, {{{}, {}}}});
      EXPECT_EQ(step(trainer.get(), some.batch(2, RRFP_BATCH_KEEP_GRADIENTS)).loss, 9);
      EXPECT_EQ(evaluate(trainer.get(), some.batch(2)).loss, 9);
      BatchData nothing = ToyBranches::data({{{{}, {}}}, {{{}, {}}}});
      EXPECT_EQ(step(trainer.get(), nothing.batch(2)).loss, 0);
    }
  }
}

// --- Two encoders, a text branch, packed samples, two losses

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

std::vector<float> random_floats(Random& random, size_t count) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = random.number();
  return numbers;
}

/// One microbatch: a packed sequence of two samples, with so many pictures and sounds.
void add_microbatch(BatchData& data, Random& random, int64_t pictures, int64_t sounds,
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
int64_t long_tailed(Random& random) {
  constexpr std::array<int64_t, 8> kCounts = {0, 0, 0, 1, 1, 2, 3, 9};
  return kCounts.at(static_cast<size_t>(random.below(8)));
}

BatchData random_batch(uint64_t seed, int32_t microbatches) {
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

Outcome train(rrfp_model* model, const Pipeline& p) {
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
  const TrainerPtr trainer = make_trainer(model, options);
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

/// A cut and a place for each stage, from a seed.
Pipeline random_pipeline(uint64_t seed) {
  Random random(seed);
  Pipeline p;
  for (int32_t b = 1; b < kBlocks; ++b) {
    if (random.below(2) == 0) p.first_blocks.push_back(b);
  }
  const auto stages = static_cast<int32_t>(p.first_blocks.size());
  const int32_t ranks = 1 + random.below(stages);
  for (int32_t s = 0; s < stages; ++s) {
    p.stage_ranks.push_back(s < ranks ? s : random.below(ranks));
  }
  for (int32_t s = stages - 1; s > 0; --s) {
    std::swap(p.stage_ranks[static_cast<size_t>(s)],
              p.stage_ranks[static_cast<size_t>(random.below(s + 1))]);
  }
  constexpr std::array<const char*, 5> kHints = {"gpipe", "1f1b", "bf", "bfw", "zb-h1"};
  p.hint = kHints.at(static_cast<size_t>(random.below(5)));
  p.delay_us_max = random.below(2) * 300;
  if (random.below(3) == 0) p.flags |= RRFP_TRAINER_RECOMPUTE;
  return p;
}

class Branches : public testing::TestWithParam<rrfp_parameter_flags> {
 protected:
  TwoEncoders model_{GetParam()};
  Outcome expected_ = train(model_.b.model.get(), {});
};

TEST_P(Branches, BitsDoNotDependOnCutPlaceHintAndTiming) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    EXPECT_EQ(train(model_.b.model.get(), random_pipeline(seed)), expected_) << "seed " << seed;
  }
}

TEST_P(Branches, BitsDoNotDependOnThePlacementsWithNames) {
  const std::vector<int32_t> every = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<int32_t> branches = {0, 2, 4, 5};
  for (const rrfp_placement placement :
       {RRFP_PLACEMENT_LINEAR, RRFP_PLACEMENT_LOOP, RRFP_PLACEMENT_V}) {
    for (const std::vector<int32_t>& cut : {every, branches}) {
      for (const char* hint : {"1f1b", "bfw"}) {
        const Pipeline p = {.first_blocks = cut, .hint = hint, .placement = placement};
        EXPECT_EQ(train(model_.b.model.get(), p), expected_)
            << cut.size() << " stages, placement " << placement << ", " << hint;
      }
    }
  }
}

TEST_P(Branches, SmallestCapsDoNotStall) {
  for (const std::vector<int32_t>& ranks :
       {std::vector<int32_t>{0, 1, 2, 3}, {0, 1, 1, 0}, {0, 0, 0, 0}, {1, 0, 1, 0}}) {
    const auto of_rank_0 = std::count(ranks.begin(), ranks.end(), 0);
    const auto of_rank_1 = std::count(ranks.begin(), ranks.end(), 1);
    const Pipeline p = {.first_blocks = {0, 2, 4, 5},
                        .stage_ranks = ranks,
                        .hint = "bf",
                        .cap_slots = std::max(of_rank_0, of_rank_1),
                        .delay_us_max = 500};
    EXPECT_EQ(train(model_.b.model.get(), p), expected_);
  }
}

TEST_P(Branches, BitsDoNotDependOnAChoiceByReplay) {
  const Pipeline one = {.steps = 10};
  const Pipeline chosen = {.first_blocks = {0, 2, 4, 5},
                           .stage_ranks = {0, 1, 1, 0},
                           .flags = RRFP_TRAINER_AUTO,
                           .steps = 10};
  EXPECT_EQ(train(model_.b.model.get(), chosen), train(model_.b.model.get(), one));
}

TEST_P(Branches, StrictOrderIsObeyedWhereStagesSitOut) {
  const Pipeline p = {.first_blocks = {0, 2, 4, 5}, .hint = "1f1b", .order = RRFP_ORDER_STRICT};
  EXPECT_EQ(train(model_.b.model.get(), p), expected_);
}

INSTANTIATE_TEST_SUITE_P(TrainedAndFrozen, Branches,
                         testing::Values(rrfp_parameter_flags{0}, RRFP_PARAMETER_FROZEN),
                         [](const auto& p) { return p.param == 0 ? "Trained" : "Frozen"; });

// --- Losses

std::vector<double> losses(rrfp_trainer* trainer, size_t count) {
  std::vector<double> values(count);
  rrfp_error error = {};
  check(rrfp_trainer_losses(trainer, values.data(), count, &error), error);
  return values;
}

TEST(Losses, EachIsReducedByItself) {
  TwoEncoders model;
  const TrainerPtr trainer = make_trainer(model.b.model.get(), trainer_options(1));
  BatchData data = random_batch(1, 6);
  const rrfp_train_report report = evaluate(trainer.get(), data.batch(kInputs));
  const std::vector<double> values = losses(trainer.get(), 2);
  EXPECT_DOUBLE_EQ(report.loss, values[0] + 0.25 * values[1]);
  EXPECT_DOUBLE_EQ(report.loss_sum / report.loss_weight, values[0]);
  EXPECT_GT(values[1], 0);
}

TEST(Losses, GradientsAreThoseOfTheSum) {
  // The gradient is linear in the factor: at 1 it is that at 0.25 plus 0.75 / 0.25 of the rest.
  std::vector<std::vector<float>> gradients;
  for (const double factor : {0.0, 0.25, 1.0}) {
    TwoEncoders model(0, factor);
    const TrainerPtr trainer = make_trainer(model.b.model.get(), trainer_options(4));
    BatchData data = random_batch(1, 6);
    step(trainer.get(), data.batch(kInputs, RRFP_BATCH_KEEP_GRADIENTS));
    for (int32_t p = 0; p < parameter_count(model.b.model.get()); ++p) {
      if (parameter_name(model.b.model.get(), p) != "sound.out") continue;
      gradients.push_back(read(trainer.get(), p, RRFP_SLOT_GRADIENT, size_t{kDim} * kDim));
    }
  }
  double moved = 0;
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    const float quarter = gradients[1][i] - gradients[0][i];
    EXPECT_NEAR(gradients[2][i], gradients[0][i] + 4 * quarter, 1e-5) << i;
    moved += std::abs(quarter);
  }
  EXPECT_GT(moved, 1e-3);
}

TEST(Losses, OneThatCountsNothingAddsNothing) {
  TwoEncoders model;
  const TrainerPtr trainer = make_trainer(model.b.model.get(), trainer_options(3));
  Random random(5);
  BatchData data;
  add_microbatch(data, random, 1, 0, 4);
  add_microbatch(data, random, 0, 0, 4);
  const rrfp_train_report report = step(trainer.get(), data.batch(kInputs));
  const std::vector<double> values = losses(trainer.get(), 2);
  EXPECT_EQ(report.loss, values[0]);
  EXPECT_TRUE(std::isnan(values[1]));
}

TEST(Losses, MisuseIsToldApart) {
  TwoEncoders model;
  const auto add = [&](int32_t value, double factor) {
    return failure_of([&] {
      rrfp_error error = {};
      check(rrfp_model_add_loss(model.b.model.get(), value, factor, &error), error);
    });
  };
  const int32_t images = 0;
  EXPECT_STREQ(add(images, 1).text, "the loss is an input; expected the output of an operation");
  EXPECT_EQ(add(1000, 1).status, RRFP_ERR_OUT_OF_RANGE);
  EXPECT_EQ(add(-1, 1).status, RRFP_ERR_OUT_OF_RANGE);
  EXPECT_STREQ(add(8, NAN).text, "the factor of the loss is nan; expected a finite number");
  Builder empty;
  empty.block();
  const int32_t x = empty.input("x", RRFP_F32, {-1, 2});
  const int32_t y = empty.op(RRFP_OP_GELU, {x});
  rrfp_error error = {};
  EXPECT_EQ(rrfp_model_add_loss(empty.model.get(), y, 1, &error), RRFP_ERR_BAD_STATE);
  EXPECT_STREQ(error.text, "there is no first loss to add to; set it first");
  empty.loss(y);
  EXPECT_EQ(rrfp_model_add_loss(empty.model.get(), y, 1, &error), RRFP_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "value 1 is a loss already");
  const int32_t z = empty.op(RRFP_OP_SILU, {y});
  check(rrfp_model_add_loss(empty.model.get(), z, 1, &error), error);
  EXPECT_EQ(rrfp_model_set_loss(empty.model.get(), z, &error), RRFP_ERR_BAD_STATE);
  rrfp_trainer* trainer = nullptr;
  const rrfp_trainer_options options = trainer_options(1);
  EXPECT_EQ(rrfp_trainer_create(empty.model.get(), &options, &trainer, &error),
            RRFP_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.text).find("reads value 1, a loss"), std::string::npos) << error.text;

  rrfp_model_info info;
  rrfp_model_info_init(&info);
  check(rrfp_model_get_info(model.b.model.get(), &info, &error), error);
  EXPECT_EQ(info.losses, 2);
  const TrainerPtr made = make_trainer(model.b.model.get(), trainer_options(1));
  double values[2] = {};
  EXPECT_EQ(rrfp_trainer_losses(made.get(), values, 2, &error), RRFP_ERR_BAD_STATE);
  EXPECT_EQ(rrfp_trainer_losses(made.get(), values, 1, &error), RRFP_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "count is 1; the model has 2 losses");
  EXPECT_EQ(rrfp_trainer_losses(made.get(), nullptr, 2, &error), RRFP_ERR_INVALID_ARGUMENT);
}

// --- Placing

struct Placed {
  std::vector<int32_t> first_blocks;
  std::vector<int32_t> ranks;
};
Placed place(const rrfp_model* model, int32_t stages, int32_t ranks,
             const std::vector<int64_t>& costs) {
  Placed placed = {std::vector<int32_t>(static_cast<size_t>(stages)),
                   std::vector<int32_t>(static_cast<size_t>(stages))};
  rrfp_error error = {};
  check(rrfp_model_place(model, stages, ranks, costs.empty() ? nullptr : costs.data(),
                         placed.first_blocks.data(), placed.ranks.data(), &error),
        error);
  return placed;
}

TEST(Place, StagesKeepToTheirBranchAndRanksAreBalanced) {
  TwoEncoders model;
  //                                 sight    sound   text  join language late head
  const std::vector<int64_t> costs = {40, 20, 10, 5, 1, 30, 30, 4, 10};
  const Placed least = place(model.b.model.get(), 4, 2, costs);
  EXPECT_EQ(least.first_blocks, (std::vector<int32_t>{0, 2, 4, 5}));
  // 60 + 15 and 1 + 74.
  EXPECT_EQ(least.ranks, (std::vector<int32_t>{0, 0, 1, 1}));
  const Placed more = place(model.b.model.get(), 6, 3, costs);
  EXPECT_EQ(more.first_blocks, (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
  std::vector<int64_t> load(3, 0);
  const std::vector<int64_t> stage_costs = {40, 20, 15, 1, 30, 44};
  for (size_t s = 0; s < stage_costs.size(); ++s) {
    load.at(static_cast<size_t>(more.ranks[s])) += stage_costs[s];
  }
  EXPECT_EQ(*std::max_element(load.begin(), load.end()), 55);  // 44 + ..; 150 / 3 = 50 at best
  EXPECT_EQ(more.ranks[0], 0);
}

TEST(Place, WhatItGivesTrains) {
  TwoEncoders model;
  const Outcome expected = train(model.b.model.get(), {});
  for (int32_t stages = 4; stages <= kBlocks; ++stages) {
    for (int32_t ranks = 1; ranks <= stages; ++ranks) {
      const Placed placed = place(model.b.model.get(), stages, ranks, {});
      const Pipeline p = {
          .first_blocks = placed.first_blocks, .stage_ranks = placed.ranks, .hint = "bfw"};
      EXPECT_EQ(train(model.b.model.get(), p), expected) << stages << " on " << ranks;
    }
  }
}

// Pictures have known numbers of rows, texts have not: an estimate must take a text neither for one
// row nor for as many as the first convolution has.
TEST(Place, EstimatesGiveEachBranchItsShare) {
  for (const rrfp_vision_flags flags : {0U, RRFP_VISION_CONV_STEM}) {
    rrfp_gpt_options language = small_gpt();
    language.layers = 8;
    rrfp_vision_options vision = small_vision(flags);
    vision.image_size = 64;
    vision.patch = 8;
    vision.layers = 8;
    vision.dim = language.dim;
    const ModelPtr model = make_vision_language(language, vision);
    // Blocks: 9 of vision, the projector, the embedding, 8 layers, the head.
    const Placed placed = place(model.get(), 10, 2, {});
    const auto of_language = std::count_if(placed.first_blocks.begin(), placed.first_blocks.end(),
                                           [](int32_t first) { return first >= 11; });
    EXPECT_EQ(of_language, 4) << "of 10 stages, flags " << flags;
  }
}

TEST(Place, AChainIsCutAsBefore) {
  const ModelPtr model = make_gpt(small_gpt());
  for (int32_t stages = 1; stages <= 6; ++stages) {
    std::vector<int32_t> cut(static_cast<size_t>(stages));
    rrfp_error error = {};
    check(rrfp_model_partition(model.get(), stages, nullptr, cut.data(), &error), error);
    const Placed placed = place(model.get(), stages, stages, {});
    EXPECT_EQ(placed.first_blocks, cut);
    std::vector<int32_t> own(static_cast<size_t>(stages));
    std::iota(own.begin(), own.end(), 0);
    EXPECT_EQ(placed.ranks, own);
  }
}

TEST(Place, MisuseIsToldApart) {
  TwoEncoders model;
  const auto failure = [&](int32_t stages, int32_t ranks, const std::vector<int64_t>& costs) {
    return std::string(failure_of([&] { place(model.b.model.get(), stages, ranks, costs); }).text);
  };
  EXPECT_EQ(failure(3, 1, {}),
            "stages is 3; the model has 4 branches and 9 blocks: expected 4 to 9");
  EXPECT_EQ(failure(10, 1, {}),
            "stages is 10; the model has 4 branches and 9 blocks: expected 4 to 9");
  EXPECT_EQ(failure(4, 0, {}), "ranks is 0; expected 1 to stages = 4");
  EXPECT_EQ(failure(4, 5, {}), "ranks is 5; expected 1 to stages = 4");
  std::vector<int64_t> costs(kBlocks, 1);
  costs[3] = -1;
  EXPECT_EQ(failure(4, 2, costs),
            "the cost of block 3 is -1; expected 0 to " + std::to_string(int64_t{1} << 40));
}

TEST(StageRanks, MisuseIsToldApart) {
  TwoEncoders model;
  const auto failure = [&](std::vector<int32_t> ranks, rrfp_placement placement) {
    rrfp_trainer_options options = trainer_options(2);
    options.stage_ranks = ranks.data();
    options.placement = placement;
    return failure_of([&] { make_trainer(model.b.model.get(), options); });
  };
  EXPECT_STREQ(failure({0, 1}, RRFP_PLACEMENT_V).text,
               "both stage_ranks and a placement are given; expected one of them");
  EXPECT_EQ(failure({0, -1}, 0).status, RRFP_ERR_OUT_OF_RANGE);
  EXPECT_EQ(failure({0, 2}, 0).status, RRFP_ERR_UNPLACED_STAGE);
  EXPECT_EQ(failure({-5, -5}, 0).status, RRFP_ERR_OUT_OF_RANGE);
}

}  // namespace
}  // namespace rrfp::models
