// SPDX-License-Identifier: Apache-2.0
//
// What a step of training means: values that can be worked out by hand.
#include <cmath>
#include <thread>

#include "harness.h"

namespace rrfp::models {
namespace {

/// A scalar that is multiplied by one weight per entry of `weights`, each in a block of its own. A
/// negative entry -k shares the weight of entry k - 1.
struct ScalarChain {
  explicit ScalarChain(const std::vector<double>& weights, const std::vector<int>& shares = {}) {
    int32_t x = b.input("x", RRFP_F32, {-1, 1});
    for (size_t k = 0; k < weights.size(); ++k) {
      b.block();
      const bool shared = k < shares.size() && shares[k] >= 0;
      parameters.push_back(shared ? parameters[static_cast<size_t>(shares[k])]
                                  : b.parameter("w" + std::to_string(k), {1, 1}, 0, 0, weights[k]));
      x = b.op(RRFP_OP_LINEAR, {x}, {parameters.back()});
    }
    b.loss(x);
    b.output(x);
  }
  [[nodiscard]] float weight(rrfp_trainer* trainer, size_t k) const {
    return read(trainer, parameters[k], RRFP_SLOT_WEIGHT, 1)[0];
  }
  [[nodiscard]] float gradient(rrfp_trainer* trainer, size_t k) const {
    return read(trainer, parameters[k], RRFP_SLOT_GRADIENT, 1)[0];
  }
  Builder b;
  std::vector<int32_t> parameters;
};

BatchData scalars(const std::vector<float>& x) {
  BatchData data;
  for (float value : x) data.add_f32({value}, {1, 1});
  return data;
}

rrfp_trainer_options plain_sgd(int32_t stages, double lr) {
  rrfp_trainer_options options = trainer_options(stages);
  options.optimizer = RRFP_OPTIMIZER_SGD;
  options.lr = lr;
  options.weight_decay = 0;
  return options;
}

TEST(ToyChain, LossAndGradientsAreExact) {
  const ScalarChain chain({2, 3, 5, 7});
  for (int32_t stages : {1, 2, 4}) {
    const TrainerPtr trainer = make_trainer(chain.b.model.get(), plain_sgd(stages, 0));
    BatchData data = scalars({1, 2, 3, 4});
    const rrfp_train_report report = step(trainer.get(), data.batch(1, RRFP_BATCH_KEEP_GRADIENTS));
    EXPECT_EQ(report.loss, 525);
    EXPECT_EQ(report.loss_weight, 4);
    EXPECT_EQ(report.step, 0) << "nothing was updated";
    EXPECT_EQ(chain.gradient(trainer.get(), 0), 262.5F);
    EXPECT_EQ(chain.gradient(trainer.get(), 1), 175);
    EXPECT_EQ(chain.gradient(trainer.get(), 2), 105);
    EXPECT_EQ(chain.gradient(trainer.get(), 3), 75);
    // The kept gradients do not leak into the next step.
    step(trainer.get(), data.batch(1, RRFP_BATCH_KEEP_GRADIENTS));
    EXPECT_EQ(chain.gradient(trainer.get(), 3), 75);
  }
}

TEST(ToyChain, SumAndFactors) {
  const ScalarChain chain({2, 3});
  rrfp_trainer_options options = plain_sgd(2, 0);
  options.reduction = RRFP_REDUCTION_SUM;
  const TrainerPtr trainer = make_trainer(chain.b.model.get(), options);
  BatchData data = scalars({1, 2});
  rrfp_batch batch = data.batch(1, RRFP_BATCH_KEEP_GRADIENTS);
  const double factors[] = {10, 20};
  batch.loss_factors = factors;
  const rrfp_train_report report = step(trainer.get(), batch);
  EXPECT_EQ(report.loss, 10 * 6 + 20 * 12);
  EXPECT_EQ(chain.gradient(trainer.get(), 0), 150);
  EXPECT_EQ(chain.gradient(trainer.get(), 1), 100);
}

TEST(ToyChain, RoundsAverageOverAllMicrobatches) {
  const ScalarChain chain({1});
  const TrainerPtr trainer = make_trainer(chain.b.model.get(), plain_sgd(1, 0));
  BatchData data = scalars({1, 1, 1, 1, 1, 1, 1, 1});
  step(trainer.get(), data.batch(1, RRFP_BATCH_KEEP_GRADIENTS, 2));
  EXPECT_EQ(chain.gradient(trainer.get(), 0), 1);
}

TEST(GlobalNorm, CoversAllStages) {
  for (int32_t stages : {1, 2}) {
    // Gradients w1 x = 3 and w0 x = 4.
    const ScalarChain chain({4, 3});
    rrfp_trainer_options options = plain_sgd(stages, 1);
    options.clip_norm = 1;
    const TrainerPtr trainer = make_trainer(chain.b.model.get(), options);
    BatchData data = scalars({1});
    const rrfp_train_report report = step(trainer.get(), data.batch(1));
    EXPECT_EQ(report.gradient_norm, 5);
    EXPECT_FLOAT_EQ(chain.weight(trainer.get(), 0), 4 - 0.6F);
    EXPECT_FLOAT_EQ(chain.weight(trainer.get(), 1), 3 - 0.8F);
  }
}

TEST(TiedWeights, CountOnceAndStayOne) {
  std::string sha;
  for (int32_t stages : {1, 2, 3}) {
    const ScalarChain chain({3, 2, 3}, {-1, -1, 0});  // y = w (b (w x))
    const TrainerPtr trainer = make_trainer(chain.b.model.get(), plain_sgd(stages, 0.1));
    BatchData data = scalars({1});
    rrfp_train_report report = step(trainer.get(), data.batch(1, RRFP_BATCH_KEEP_GRADIENTS));
    EXPECT_EQ(report.loss, 18);
    EXPECT_EQ(chain.gradient(trainer.get(), 0), 12);
    EXPECT_EQ(chain.gradient(trainer.get(), 1), 9);
    EXPECT_EQ(report.gradient_norm, 15);
    report = step(trainer.get(), data.batch(1));
    EXPECT_FLOAT_EQ(chain.weight(trainer.get(), 0), 1.8F);
    EXPECT_FLOAT_EQ(chain.weight(trainer.get(), 1), 1.1F);
    // Small steps from here: the product has no minimum to fall into.
    if (sha.empty()) sha = weights_sha256(trainer.get());
    EXPECT_EQ(weights_sha256(trainer.get()), sha);
  }
}

TEST(TiedWeights, StayEqualForManySteps) {
  std::string expected;
  for (int32_t stages : {1, 2, 4}) {
    const ModelPtr model = make_gpt(small_gpt(RRFP_GPT_TIED));
    rrfp_trainer_options options = trainer_options(stages);
    if (stages == 4) options.placement = RRFP_PLACEMENT_V;
    const TrainerPtr trainer = make_trainer(model.get(), options);
    for (uint64_t s = 0; s < 100; ++s) {
      BatchData data = random_tokens(2, 1, 8, 32, s);
      step(trainer.get(), data.batch(2));
    }
    if (expected.empty()) expected = weights_sha256(trainer.get());
    EXPECT_EQ(weights_sha256(trainer.get()), expected) << stages;
  }
}

TEST(Frozen, StaysAsItIs) {
  for (int32_t stages : {1, 3}) {
    Builder b;
    int32_t x = b.input("x", RRFP_F32, {-1, 2});
    b.block();
    const int32_t first = b.parameter("first", {2, 2}, 0.5, RRFP_PARAMETER_FROZEN);
    x = b.op(RRFP_OP_LINEAR, {x}, {first});
    b.block();
    const int32_t second = b.parameter("second", {2, 2});
    x = b.op(RRFP_OP_LINEAR, {x}, {second});
    b.block();
    const int32_t third = b.parameter("third", {1, 2}, 0.5, RRFP_PARAMETER_FROZEN);
    b.loss(b.op(RRFP_OP_LINEAR, {x}, {third}));
    const TrainerPtr trainer = make_trainer(b.model.get(), plain_sgd(stages, 0.1));
    const std::vector<float> before[] = {read(trainer.get(), first, RRFP_SLOT_WEIGHT, 4),
                                         read(trainer.get(), second, RRFP_SLOT_WEIGHT, 4),
                                         read(trainer.get(), third, RRFP_SLOT_WEIGHT, 2)};
    BatchData data;
    for (int i = 0; i < 3; ++i) data.add_f32({1, 2}, {1, 2});
    step(trainer.get(), data.batch(1));
    EXPECT_EQ(read(trainer.get(), first, RRFP_SLOT_WEIGHT, 4), before[0]);
    EXPECT_NE(read(trainer.get(), second, RRFP_SLOT_WEIGHT, 4), before[1]);
    EXPECT_EQ(read(trainer.get(), third, RRFP_SLOT_WEIGHT, 2), before[2]);
  }
}

TEST(Evaluation, LeavesTrainingAlone) {
  const ModelPtr model = make_gpt(small_gpt(0, 0.1));
  const auto run = [&](bool evaluates) {
    const TrainerPtr trainer = make_trainer(model.get(), trainer_options(2));
    BatchData other = random_tokens(5, 3, 11, 32, 99);
    double last = 0;
    for (uint64_t s = 0; s < 4; ++s) {
      BatchData data = random_tokens(4, 2, 16, 32, s);
      last = step(trainer.get(), data.batch(2)).loss;
      if (evaluates) {
        const double once = evaluate(trainer.get(), other.batch(2)).loss;
        EXPECT_EQ(evaluate(trainer.get(), other.batch(2)).loss, once);
      }
    }
    return std::to_string(last) + weights_sha256(trainer.get());
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(TokenMean, WeighsTokensNotMicrobatches) {
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options(2));
  // One sequence of 12 tokens, alone or beside one of which only 2 count.
  BatchData one = random_tokens(1, 1, 12, 32, 1);
  const rrfp_train_report a = evaluate(trainer.get(), one.batch(2));
  BatchData both = random_tokens(1, 1, 12, 32, 1);
  std::vector<int32_t> tokens(8, 3);
  std::vector<int32_t> targets(8, -100);
  targets[2] = 5;
  targets[7] = 9;
  BatchData two;
  two.add_i32(tokens, {1, 8});
  two.add_i32(targets, {1, 8});
  const rrfp_train_report b = evaluate(trainer.get(), two.batch(2));
  EXPECT_EQ(b.loss_weight, 2);
  both.add_i32(tokens, {1, 8});
  both.add_i32(targets, {1, 8});
  const rrfp_train_report c = evaluate(trainer.get(), both.batch(2));
  EXPECT_EQ(c.loss_weight, 14);
  EXPECT_DOUBLE_EQ(c.loss, (a.loss_sum + b.loss_sum) / 14);
}

TEST(NonFinite, IsSkippedByAllRanksAlike) {
  for (int32_t stages : {1, 3}) {
    const ScalarChain chain({2, 3, 5});
    rrfp_trainer_options options = trainer_options(stages);
    options.non_finite = RRFP_NON_FINITE_SKIP;
    options.loss_scale = 65536;
    options.loss_scale_growth = 2;
    const TrainerPtr trainer = make_trainer(chain.b.model.get(), options);
    BatchData good = scalars({1, 2});
    BatchData bad = scalars({1, INFINITY});
    EXPECT_EQ(step(trainer.get(), good.batch(1)).loss_scale, 65536);
    const std::string before = weights_sha256(trainer.get());
    const std::vector<float> moment = read(trainer.get(), 1, RRFP_SLOT_MOMENT2, 1);
    const rrfp_train_report skipped = step(trainer.get(), bad.batch(1));
    EXPECT_EQ(skipped.flags, RRFP_TRAIN_SKIPPED);
    EXPECT_EQ(skipped.step, 2) << "the step counts";
    EXPECT_EQ(weights_sha256(trainer.get()), before);
    EXPECT_EQ(read(trainer.get(), 1, RRFP_SLOT_MOMENT2, 1), moment);
    const rrfp_train_report next = step(trainer.get(), good.batch(1));
    EXPECT_EQ(next.flags, 0U);
    EXPECT_EQ(next.loss_scale, 32768);
    EXPECT_NE(weights_sha256(trainer.get()), before);
    step(trainer.get(), good.batch(1));
    EXPECT_EQ(step(trainer.get(), good.batch(1)).loss_scale, 65536) << "two good steps double it";
  }
}

TEST(NonFinite, SkippingEqualsNeverHavingStepped) {
  const ScalarChain chain({2, 3, 5});
  const auto run = [&](bool disturbed) {
    rrfp_trainer_options options = trainer_options(3);
    options.non_finite = RRFP_NON_FINITE_SKIP;
    const TrainerPtr trainer = make_trainer(chain.b.model.get(), options);
    BatchData good = scalars({1, 2});
    BatchData bad = scalars({NAN, 1});
    step(trainer.get(), good.batch(1));
    if (disturbed) step(trainer.get(), bad.batch(1));
    step(trainer.get(), good.batch(1));
    return weights_sha256(trainer.get());
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(NonFinite, StopsAndLeavesTheWeights) {
  const ScalarChain chain({2, 3, 5});
  const TrainerPtr trainer = make_trainer(chain.b.model.get(), trainer_options(3));
  const std::string before = weights_sha256(trainer.get());
  BatchData bad = scalars({1, NAN});
  const rrfp_error error = failure_of([&] { step(trainer.get(), bad.batch(1)); });
  EXPECT_EQ(error.status, RRFP_ERR_NON_FINITE);
  EXPECT_EQ(weights_sha256(trainer.get()), before);
  BatchData good = scalars({1, 2});
  EXPECT_EQ(step(trainer.get(), good.batch(1)).step, 1) << "the trainer goes on";
}

TEST(LossScale, ChangesNothingThatIsExact) {
  const ModelPtr model = make_gpt(small_gpt());
  const auto run = [&](double scale) {
    rrfp_trainer_options options = trainer_options(2);
    options.loss_scale = scale;
    options.clip_norm = 1;
    const TrainerPtr trainer = make_trainer(model.get(), options);
    BatchData data = random_tokens(4, 2, 16, 32, 1);
    const rrfp_train_report report = step(trainer.get(), data.batch(2));
    step(trainer.get(), data.batch(2));
    return std::to_string(report.loss) + std::to_string(report.gradient_norm) +
           weights_sha256(trainer.get());
  };
  EXPECT_EQ(run(1024), run(0));
}

TEST(LearningRate, WarmsUpAndDecays) {
  const ScalarChain chain({1});
  rrfp_trainer_options options = plain_sgd(1, 0.1);
  options.warmup_steps = 4;
  options.decay_steps = 8;
  options.lr_min = 0.02;
  const auto rates = [&](rrfp_decay decay) {
    options.decay = decay;
    const TrainerPtr trainer = make_trainer(chain.b.model.get(), options);
    BatchData data = scalars({0});
    std::vector<double> found;
    for (int s = 0; s < 10; ++s) found.push_back(step(trainer.get(), data.batch(1)).lr);
    return found;
  };
  const auto expect = [](const std::vector<double>& found, const std::vector<double>& expected) {
    for (size_t s = 0; s < expected.size(); ++s) {
      EXPECT_NEAR(found[s], expected[s], 1e-12) << "step " << s;
    }
  };
  expect(rates(RRFP_DECAY_NONE), {0.025, 0.05, 0.075, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1});
  expect(rates(RRFP_DECAY_LINEAR), {0.025, 0.05, 0.075, 0.1, 0.1, 0.08, 0.06, 0.04, 0.02, 0.02});
  const double half = 0.5 * (1 + std::sqrt(0.5));
  expect(rates(RRFP_DECAY_COSINE), {0.025, 0.05, 0.075, 0.1, 0.1, 0.02 + 0.08 * half, 0.06,
                                    0.02 + 0.08 * (1 - half), 0.02, 0.02});
}

TEST(Optimizers, FollowTheirFormulas) {
  // The gradient of w x is x = 2 in every step.
  const ScalarChain chain({1});
  rrfp_trainer_options options = plain_sgd(1, 0.1);
  options.momentum = 0.5;
  options.weight_decay = 0.25;
  TrainerPtr trainer = make_trainer(chain.b.model.get(), options);
  BatchData data = scalars({2});
  double w = 1;
  double velocity = 0;
  for (int s = 0; s < 3; ++s) {
    step(trainer.get(), data.batch(1));
    velocity = 0.5 * velocity + (2 + 0.25 * w);
    w -= 0.1 * velocity;
    EXPECT_NEAR(chain.weight(trainer.get(), 0), w, 1e-6);
  }
  options.optimizer = RRFP_OPTIMIZER_ADAMW;
  trainer = make_trainer(chain.b.model.get(), options);
  w = 1;
  double m = 0;
  double v = 0;
  for (int t = 1; t <= 3; ++t) {
    step(trainer.get(), data.batch(1));
    m = options.beta1 * m + (1 - options.beta1) * 2;
    v = options.beta2 * v + (1 - options.beta2) * 4;
    w -= 0.1 * 0.25 * w;
    w -= 0.1 * (m / (1 - std::pow(options.beta1, t))) /
         (std::sqrt(v / (1 - std::pow(options.beta2, t))) + options.epsilon);
    EXPECT_NEAR(chain.weight(trainer.get(), 0), w, 1e-6);
  }
}

TEST(Cancel, EndsAStepAndTheTrainerGoesOn) {
  const ModelPtr model = make_gpt(small_gpt());
  rrfp_trainer_options options = trainer_options(3);
  options.delay_us_max = 20000;
  const TrainerPtr trainer = make_trainer(model.get(), options);
  const std::string before = weights_sha256(trainer.get());
  BatchData data = random_tokens(8, 1, 8, 32, 1);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(rrfp_trainer_cancel(trainer.get(), nullptr), RRFP_OK);
  });
  const rrfp_error error = failure_of([&] { step(trainer.get(), data.batch(2)); });
  other.join();
  EXPECT_EQ(error.status, RRFP_ERR_CANCELLED) << error.text;
  EXPECT_EQ(weights_sha256(trainer.get()), before);
  // As if it had never happened.
  const TrainerPtr fresh = make_trainer(model.get(), options);
  EXPECT_EQ(step(trainer.get(), data.batch(2)).loss, step(fresh.get(), data.batch(2)).loss);
  EXPECT_EQ(weights_sha256(trainer.get()), weights_sha256(fresh.get()));
}

TEST(RandomNumbers, AreNamedByTheStep) {
  const ModelPtr model = make_gpt(small_gpt(0, 0.5));
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options(2));
  BatchData data = random_tokens(2, 1, 12, 32, 3);
  const auto loss_of = [&](int64_t random_step) {
    rrfp_batch batch = data.batch(2, RRFP_BATCH_KEEP_GRADIENTS);
    batch.random_step = random_step;
    return step(trainer.get(), batch).loss;
  };
  const double zeroth = loss_of(0);
  const double first = loss_of(1);
  EXPECT_EQ(loss_of(0), zeroth) << "nothing was updated";
  EXPECT_NE(first, zeroth);
  EXPECT_NE(loss_of(2), first);
  EXPECT_EQ(loss_of(1), first);
}

TEST(Info, CountsStepsAndRanks) {
  rrfp_error error = {};
  const ModelPtr model = make_gpt(small_gpt());
  rrfp_trainer_options options = trainer_options(4);
  options.placement = RRFP_PLACEMENT_V;
  const TrainerPtr trainer = make_trainer(model.get(), options);
  BatchData data = random_tokens(2, 1, 12, 32, 3);
  step(trainer.get(), data.batch(2));
  step(trainer.get(), data.batch(2, RRFP_BATCH_KEEP_GRADIENTS));
  rrfp_trainer_info info;
  rrfp_trainer_info_init(&info);
  ASSERT_EQ(rrfp_trainer_get_info(trainer.get(), &info, &error), RRFP_OK);
  EXPECT_EQ(info.stages, 4);
  EXPECT_EQ(info.ranks, 2);
  EXPECT_EQ(info.parameters, parameter_count(model.get()));
  EXPECT_EQ(info.steps, 1);
  EXPECT_EQ(info.updates, 1);
  EXPECT_EQ(info.seed, 7U);
}

// Learns a rule, and does so as it always has: the losses of this seed, but for rounding.
TEST(Pinned, LossesOfASeed) {
  const ModelPtr model = make_gpt(small_gpt());
  rrfp_trainer_options options = trainer_options(2);
  options.lr = 1e-2;
  const TrainerPtr trainer = make_trainer(model.get(), options);
  double first = 0;
  double last = 0;
  for (int s = 0; s < 60; ++s) {
    Random random(static_cast<uint64_t>(s));
    BatchData data;
    for (int i = 0; i < 4; ++i) {  // the next token is 5 times this one plus 3
      std::vector<int32_t> tokens(16, random.below(32));
      std::vector<int32_t> targets(16);
      for (size_t t = 0; t < 16; ++t) {
        targets[t] = (5 * tokens[t] + 3) % 32;
        if (t + 1 < 16) tokens[t + 1] = targets[t];
      }
      data.add_i32(tokens, {1, 16});
      data.add_i32(targets, {1, 16});
    }
    last = step(trainer.get(), data.batch(2)).loss;
    if (s == 0) first = last;
  }
  EXPECT_NEAR(first, 3.47234, 1e-4);
  EXPECT_NEAR(last, 0.0441, 2e-3);
}

TEST(Shapes, ChangeFromStepToStep) {
  const ModelPtr model = make_gpt(small_gpt());
  const auto third_step = [&](bool evaluates) {
    const TrainerPtr trainer = make_trainer(model.get(), trainer_options(2));
    for (int64_t length : {16, 9, 12}) {
      BatchData data = random_tokens(2, 2, length, 32, 1);
      step(trainer.get(), data.batch(2));
      BatchData wide = random_tokens(1, 8, 16, 32, 2);
      if (evaluates) evaluate(trainer.get(), wide.batch(2));
    }
    return weights_sha256(trainer.get());
  };
  EXPECT_EQ(third_step(true), third_step(false));
}

TEST(Partition, LosesNoBlock) {
  rrfp_error error = {};
  for (int32_t layers : {1, 3, 7, 30}) {
    rrfp_gpt_options gpt = small_gpt();
    gpt.layers = layers;
    const ModelPtr model = make_gpt(gpt);
    const int32_t blocks = layers + 2;
    for (int32_t stages = 1; stages <= blocks; ++stages) {
      std::vector<int32_t> first(static_cast<size_t>(stages));
      ASSERT_EQ(rrfp_model_partition(model.get(), stages, nullptr, first.data(), &error), RRFP_OK);
      EXPECT_EQ(first[0], 0);
      for (size_t s = 1; s < first.size(); ++s) EXPECT_GT(first[s], first[s - 1]);
      EXPECT_LT(first.back(), blocks);
    }
    std::vector<int32_t> first(static_cast<size_t>(blocks) + 1);
    EXPECT_EQ(rrfp_model_partition(model.get(), blocks + 1, nullptr, first.data(), &error),
              RRFP_ERR_OUT_OF_RANGE);
    EXPECT_NE(std::string(error.text).find(std::to_string(blocks)), std::string::npos);
  }
}

TEST(Partition, BalancesCosts) {
  rrfp_error error = {};
  rrfp_gpt_options gpt = small_gpt();
  gpt.layers = 6;
  const ModelPtr model = make_gpt(gpt);
  const int64_t costs[] = {1, 9, 1, 1, 1, 1, 1, 10};
  int32_t first[3] = {};
  ASSERT_EQ(rrfp_model_partition(model.get(), 3, costs, first, &error), RRFP_OK);
  // 10 | 1 1 1 1 1 | 10 is the only cut whose largest part is 10.
  EXPECT_EQ(std::vector<int32_t>(first, first + 3), (std::vector<int32_t>{0, 2, 7}));
}

TEST(Measure, GivesATimeForEveryBlock) {
  rrfp_error error = {};
  const ModelPtr model = make_gpt(small_gpt());
  BatchData data = random_tokens(1, 2, 16, 32, 1);
  int64_t ns[6] = {};
  ASSERT_EQ(rrfp_model_measure(model.get(), data.batch(2).inputs, ns, &error), RRFP_OK)
      << error.text;
  for (int64_t time : ns) EXPECT_GT(time, 0);
}

// --- The hint

TEST(TrainerHint, IsNamed) {
  const ModelPtr model = make_gpt(small_gpt());
  const HintPtr hint = make_hint("rf-1");
  rrfp_trainer_options options = trainer_options(2);
  options.hint = hint.get();
  const TrainerPtr trainer = make_trainer(model.get(), options);
  EXPECT_EQ(described_hint(trainer.get()), "rf-1");
}

TEST(TrainerHint, AutoSaysWhatItChoseAndWhy) {
  const ModelPtr model = make_gpt(small_gpt());
  rrfp_trainer_options options = trainer_options(4);
  options.flags |= RRFP_TRAINER_AUTO;
  options.placement = RRFP_PLACEMENT_V;
  const TrainerPtr trainer = make_trainer(model.get(), options);
  const std::string first = described_hint(trainer.get());
  EXPECT_EQ(first.rfind("rf-m, until a step has been measured; ", 0), 0u) << first;
  EXPECT_NE(first.find("V placement of 4 stages takes "), std::string::npos) << first;
  // The choice is made while steps run, so a few may pass before it is there.
  std::string why;
  for (int k = 0; k < 1000 && why.find("simulated on") == std::string::npos; ++k) {
    BatchData data = random_tokens(4, 1, 8, 32, static_cast<uint64_t>(k));
    step(trainer.get(), data.batch(2));
    why = described_hint(trainer.get());
  }
  EXPECT_NE(why.find("simulated on"), std::string::npos) << why;
  for (const char* candidate : {"rf-m", "rf-v", "zb-v"}) {
    EXPECT_NE(why.find(candidate), std::string::npos) << why;
  }
  // What was predicted for the microbatches of a step is not for those of an evaluation.
  BatchData last = random_tokens(4, 1, 8, 32, 1);
  step(trainer.get(), last.batch(2));
  for (const int32_t microbatches : {3, 4, 9}) {
    BatchData data = random_tokens(microbatches, 1, 8, 32, 2);
    EXPECT_GT(evaluate(trainer.get(), data.batch(2)).loss, 0) << microbatches;
  }
}

TEST(TrainerHint, AutoTakesNoWishes) {
  const ModelPtr model = make_gpt(small_gpt());
  const HintPtr hint = make_hint("1f1b");
  rrfp_trainer_options options = trainer_options(2);
  options.flags |= RRFP_TRAINER_AUTO;
  options.hint = hint.get();
  const rrfp_error error = failure_of([&] { make_trainer(model.get(), options); });
  EXPECT_EQ(error.status, RRFP_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.text).find("RRFP_TRAINER_AUTO"), std::string::npos) << error.text;
}

}  // namespace
}  // namespace rrfp::models
