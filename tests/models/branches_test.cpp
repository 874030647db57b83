// SPDX-License-Identifier: Apache-2.0
//
// Models with branches: encoders and a text branch that feed one language model, several losses.
// Whatever the stages, where they are, and when things arrive, results are the same to the bit.
#include <cmath>

#include "two_encoders.h"

namespace rrfp::models {
namespace {

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

// The choice is made beside the steps, so that it is not known how many pass before it is there.
TEST_P(Branches, BitsDoNotDependOnAChoiceByReplay) {
  for (const int64_t cap : {0, 3, 6}) {
    const TrainerPtr one = make_trainer(model_.b.model.get(), Pipeline());
    const TrainerPtr chosen =
        make_trainer(model_.b.model.get(), Pipeline{.first_blocks = {0, 1, 2, 4, 5, 7},
                                                    .stage_ranks = {0, 1, 1, 0, 0, 1},
                                                    .flags = RRFP_TRAINER_AUTO,
                                                    .cap_slots = cap});
    const auto is_chosen = [&] {
      return described_hint(chosen.get()).find("simulated on") != std::string::npos;
    };
    int32_t steps_after = 0;
    for (uint64_t s = 1; s < 1000 && steps_after < 40; ++s) {
      steps_after += is_chosen() ? 1 : 0;
      BatchData data = random_batch(s, 6);
      const rrfp_batch batch = data.batch(kInputs);
      ASSERT_EQ(step(one.get(), batch).loss, step(chosen.get(), batch).loss) << "step " << s;
    }
    EXPECT_EQ(steps_after, 40) << described_hint(chosen.get());
    EXPECT_EQ(weights_sha256(one.get()), weights_sha256(chosen.get()));
  }
}

TEST_P(Branches, BitsAreThoseOfAStrictOrder) {
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

}  // namespace
}  // namespace rrfp::models
