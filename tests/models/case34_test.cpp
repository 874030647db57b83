// SPDX-License-Identifier: Apache-2.0
//
// CASES 34: text-only microbatches in a pipeline with an encoder, and its kin: frozen encoders,
// batches without a picture, with nothing else, with nothing at all.
#include <array>

#include "vision.h"

namespace rrfp::models {
namespace {

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

/// The hints, caps and delays under which the same must come out.
template <class Body>
void for_every_timing(int32_t stages, Body body) {
  for (const char* name : {"1f1b", "gpipe", "bf", "bfw", "zb-h1"}) {
    const HintPtr hint = make_hint(name);
    for (const int64_t cap : {1, 3, 4}) {
      for (const int64_t delay_us : {0, 2000}) {
        rrfp_trainer_options options = sum_of(stages);
        options.hint = hint.get();
        options.cap_slots = cap;
        options.delay_us_max = delay_us;
        body(options,
             name + (", cap " + std::to_string(cap)) + ", delay " + std::to_string(delay_us));
      }
    }
  }
}

TEST(Case34, TextOnlyMicrobatchesPassTheEncoderBy) {
  ToyBranches toy(false);
  for_every_timing(3, [&](const rrfp_trainer_options& options, const std::string& what) {
    const TrainerPtr trainer = make_trainer(toy.b.model.get(), options);
    BatchData data = ToyBranches::data(kCase34);
    for (int k = 0; k < 3; ++k) {
      const rrfp_train_report report =
          step(trainer.get(), data.batch(2, RRFP_BATCH_KEEP_GRADIENTS));
      EXPECT_EQ(report.loss, 48) << what;
      EXPECT_EQ(read(trainer.get(), toy.language, RRFP_SLOT_GRADIENT, 1), std::vector<float>{16});
      EXPECT_EQ(read(trainer.get(), toy.encoder, RRFP_SLOT_GRADIENT, 1), std::vector<float>{9});
    }
  });
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

// The same of the built-in model, with an encoder of two stages.
TEST(Case34, AFrozenEncoderGetsNoGradients) {
  const ModelPtr model = small_vision_language(0, RRFP_VISION_FROZEN);
  const std::vector<int32_t> first_blocks = {0, 2, 3, 4, 5};
  rrfp_trainer_options options = trainer_options(5);
  options.first_blocks = first_blocks.data();
  const TrainerPtr trainer = make_trainer(model.get(), options);
  BatchData data;
  for (const char* sample : {"ab0cd", "1ef2", "ghi"}) pack({sample}).add_to(data);
  step(trainer.get(), data.batch(RRFP_SAMPLES_INPUTS));
  const std::vector<int64_t> tasks = rank_tasks(trainer.get(), 5);
  // Forwards of those with pictures; a gradient that came would fail the step.
  EXPECT_EQ(tasks[0], 2);
  EXPECT_EQ(tasks[1], 2);
  EXPECT_GE(tasks[2], 4);  // the projector is trained
}

/// Values that are known of batches that lack something.
void expect_sparse_batches(const ToyBranches& toy, bool frozen, const rrfp_trainer_options& options,
                           const std::string& what) {
  SCOPED_TRACE(what + ", " + std::to_string(options.stages) + " stages");
  const TrainerPtr trainer = make_trainer(toy.b.model.get(), options);
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

TEST(Case34, BatchesWithoutPicturesAndWithNothingElse) {
  for (const bool frozen : {false, true}) {
    ToyBranches toy(frozen);
    for (const int32_t stages : {1, 2, 3}) {
      for_every_timing(stages, [&](const rrfp_trainer_options& options, const std::string& what) {
        expect_sparse_batches(toy, frozen, options, what);
      });
    }
  }
}

}  // namespace
}  // namespace rrfp::models
