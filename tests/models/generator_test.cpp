// SPDX-License-Identifier: Apache-2.0
//
// Token by token, with keys and values kept, a generator computes what reading everything again
// does; and it draws what its options say.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "generating.h"
#include "ready.h"

namespace rrfp::models {
namespace {

/// One attention whose queries, keys and values are values of their own.
ModelPtr make_unpacked() {
  Builder b;
  const int32_t tokens = b.input("tokens", RRFP_I32, {-1, -1});
  const int32_t targets = b.input("targets", RRFP_I32, {-1, -1});
  b.block();
  const int32_t x = b.op(RRFP_OP_EMBEDDING, {tokens}, {b.parameter("table", {32, 16}, 0.1)});
  int32_t q = b.op(RRFP_OP_LINEAR, {x}, {b.parameter("q", {16, 16}, 0.1)});
  int32_t k = b.op(RRFP_OP_LINEAR, {x}, {b.parameter("k", {8, 16}, 0.1)});
  const int32_t v = b.op(RRFP_OP_LINEAR, {x}, {b.parameter("v", {8, 16}, 0.1)});
  q = b.op(RRFP_OP_ROTARY, {q}, {}, {.heads = 4, .head_dim = 4});
  k = b.op(RRFP_OP_ROTARY, {k}, {}, {.heads = 2, .head_dim = 4});
  b.block();
  const int32_t y =
      b.op(RRFP_OP_ATTENTION, {q, k, v}, {}, {.flags = RRFP_OP_CAUSAL, .heads = 4, .kv_heads = 2});
  const int32_t logits = b.op(RRFP_OP_LINEAR, {y}, {b.parameter("out", {32, 16}, 0.1)});
  b.loss(b.op(RRFP_OP_CROSS_ENTROPY, {logits, targets}));
  b.output(logits);
  return std::move(b.model);
}

std::vector<std::pair<const char*, ModelPtr>> all_models() {
  std::vector<std::pair<const char*, ModelPtr>> models;
  models.emplace_back("plain", make_gpt(small_gpt()));
  models.emplace_back("tied, dropout", make_gpt(small_gpt(RRFP_GPT_TIED, 0.2)));
  rrfp_gpt_options options = small_gpt(RRFP_GPT_ROTARY);
  options.heads = 4;
  options.kv_heads = 2;
  models.emplace_back("rotary, grouped", make_gpt(options));
  options = small_gpt(RRFP_GPT_ROTARY | RRFP_GPT_RMS_NORM | RRFP_GPT_SWIGLU);
  options.heads = 4;
  options.kv_heads = 1;
  models.emplace_back("rotary, rms, swiglu, one key head", make_gpt(options));
  models.emplace_back("unpacked", make_unpacked());
  return models;
}

TEST(Cache, GivesTheLogitsOfReadingAllAgain) {
  for (const auto& [name, model] : all_models()) {
    const TrainerPtr trainer = make_lively_trainer(model);
    const GeneratorPtr cached = make_generator(trainer.get(), 16);
    const GeneratorPtr again = make_generator(trainer.get(), 16);
    std::vector<int32_t> tokens = {3, 14, 15};
    start(cached, tokens);
    while (tokens.size() < 16) {
      tokens.push_back(next(cached, sampling_of(1)));
      start(again, tokens);
      expect_near(logits_of(cached, 32), logits_of(again, 32),
                  name + std::string(" at ") + std::to_string(tokens.size()));
    }
  }
}

TEST(Cache, AgreesWithTheLossOfAnEvaluation) {
  for (const auto& [name, model] : all_models()) {
    const TrainerPtr trainer = make_lively_trainer(model, 2);
    const std::vector<int32_t> tokens = {5, 1, 30, 7, 7, 22, 9, 0, 31};
    const GeneratorPtr generator = make_generator(trainer.get(), 16);
    double loss = 0;
    for (size_t k = 1; k < tokens.size(); ++k) {
      start(generator, std::vector<int32_t>(tokens.begin(), tokens.begin() + static_cast<long>(k)));
      const std::vector<float> logits = logits_of(generator, 32);
      double sum = 0;
      for (const float logit : logits) sum += std::exp(logit);
      loss += std::log(sum) - logits[static_cast<size_t>(tokens[k])];
    }
    BatchData data;
    data.add_i32({tokens.begin(), tokens.end() - 1}, {1, 8});
    data.add_i32({tokens.begin() + 1, tokens.end()}, {1, 8});
    EXPECT_NEAR(evaluate(trainer.get(), data.batch(2)).loss, loss / 8, 1e-5 * loss) << name;
  }
}

TEST(Cache, GoesOnBeyondTheContext) {
  for (const auto& [name, model] : all_models()) {
    const TrainerPtr trainer = make_lively_trainer(model);
    const GeneratorPtr generator = make_generator(trainer.get(), 8);
    const GeneratorPtr again = make_generator(trainer.get(), 8);
    std::vector<int32_t> seen = {1, 2, 3, 4, 5};
    start(generator, seen);
    for (int k = 0; k < 40; ++k) {
      // A full context loses its older half before the next token is read.
      if (seen.size() == 8) seen.erase(seen.begin(), seen.begin() + 4);
      seen.push_back(next(generator, sampling_of(1)));
      ASSERT_LE(seen.size(), 8U);
      start(again, seen);
      expect_near(logits_of(generator, 32), logits_of(again, 32), name);
    }
  }
}

TEST(Cache, ReadsTheEndOfALongPrompt) {
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_lively_trainer(model);
  const GeneratorPtr generator = make_generator(trainer.get(), 6);
  start(generator, {9, 9, 9, 9, 1, 2, 3, 4, 5, 6});
  const std::vector<float> logits = logits_of(generator, 32);
  const std::vector<int32_t> tokens = next(generator, sampling_of(1), 5);
  start(generator, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(logits_of(generator, 32), logits);
  EXPECT_EQ(next(generator, sampling_of(1), 5), tokens);
}

TEST(Cache, OfOneTokenRemembersNothing) {
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_lively_trainer(model);
  const GeneratorPtr generator = make_generator(trainer.get(), 1);
  const GeneratorPtr again = make_generator(trainer.get(), 1);
  start(generator, {1, 2, 3});
  for (int k = 0; k < 5; ++k) {
    start(again, {next(generator, sampling_of(1))});
    EXPECT_EQ(logits_of(generator, 32), logits_of(again, 32));
  }
}

TEST(Weights, AreThoseOfTheTrainer) {
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options(3));
  const GeneratorPtr generator = make_generator(trainer.get(), 16);
  start(generator, {1, 2});
  const std::vector<float> before = logits_of(generator, 32);
  const std::string sha = weights_sha256(trainer.get());
  next(generator, sampling_of(1), 20);
  EXPECT_EQ(weights_sha256(trainer.get()), sha);
  BatchData data = random_tokens(2, 1, 8, 32, 1);
  step(trainer.get(), data.batch(2));
  start(generator, {1, 2});
  EXPECT_NE(logits_of(generator, 32), before);
}

TEST(Sampling, CanBeForcedToTheLikeliest) {
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_lively_trainer(model);
  for (const rrfp_sampling& sampling :
       {sampling_of(0), sampling_of(0, 5, 0.5), sampling_of(1, 1), sampling_of(5, 1),
        sampling_of(1, 0, 1e-9), sampling_of(5, 0, 1e-9), sampling_of(1e-9)}) {
    const GeneratorPtr generator = make_generator(trainer.get(), 16);
    start(generator, {3, 1, 4});
    for (int k = 0; k < 20; ++k) {
      const int32_t likeliest = argmax(logits_of(generator, 32));
      EXPECT_EQ(next(generator, sampling), likeliest);
    }
  }
}

TEST(Sampling, IsAFunctionOfTheSeed) {
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options());
  const auto sequence = [&](uint64_t seed) {
    const GeneratorPtr generator = make_generator(trainer.get(), 16);
    start(generator, {3});
    const std::vector<int32_t> tokens = next(generator, sampling_of(1, 0, 1, seed), 30);
    start(generator, {3});
    EXPECT_EQ(next(generator, sampling_of(1, 0, 1, seed), 30), tokens) << "start() begins anew";
    return tokens;
  };
  EXPECT_EQ(sequence(1), sequence(1));
  EXPECT_NE(sequence(1), sequence(2));
  EXPECT_NE(sequence(1), sequence(uint64_t{1} << 32));
  const GeneratorPtr generator = make_generator(trainer.get(), 16);
  start(generator, {3});
  int32_t token = -1;
  EXPECT_EQ(rrfp_generator_next(generator.get(), nullptr, &token, nullptr), RRFP_OK);
  EXPECT_EQ(token, sequence(0)[0]) << "without options: temperature 1, seed 0";
}

/// After any token, the next one has the probabilities 0.5, 0.25, 0.15, 0.1.
class Dice : public testing::Test {
 protected:
  Dice() {
    const int32_t tokens = b.input("tokens", RRFP_I32, {-1, -1});
    const int32_t targets = b.input("targets", RRFP_I32, {-1, -1});
    b.block();
    const int32_t table = b.parameter("table", {4, 4});
    const int32_t logits = b.op(RRFP_OP_EMBEDDING, {tokens}, {table});
    b.loss(b.op(RRFP_OP_CROSS_ENTROPY, {logits, targets}));
    b.output(logits);
    trainer = make_trainer(b.model.get(), trainer_options());
    std::vector<float> rows;
    for (int row = 0; row < 4; ++row) {
      // Any constant may be added to logits.
      for (double p : {0.15, 0.5, 0.1, 0.25}) {
        rows.push_back(static_cast<float>(std::log(p) + row));
      }
    }
    write(trainer.get(), table, rows);
  }
  void expect_shares(const rrfp_sampling& sampling, const std::vector<double>& expected) {
    constexpr int kDraws = 20000;
    const GeneratorPtr generator = make_generator(trainer.get(), 8);
    start(generator, {0});
    std::vector<int> counts(4, 0);
    for (int k = 0; k < kDraws; ++k) ++counts[static_cast<size_t>(next(generator, sampling))];
    for (size_t k = 0; k < 4; ++k) {
      const double p = expected[k];
      const double deviation = std::sqrt(p * (1 - p) / kDraws);
      EXPECT_NEAR(static_cast<double>(counts[k]) / kDraws, p, 4 * deviation) << "token " << k;
    }
  }
  Builder b;
  TrainerPtr trainer;
};

TEST_F(Dice, FallAsTheProbabilitiesSay) {
  expect_shares(sampling_of(1), {0.15, 0.5, 0.1, 0.25});
  expect_shares(sampling_of(1, 0, 1, 77), {0.15, 0.5, 0.1, 0.25});
  const double sum = std::sqrt(0.15) + std::sqrt(0.5) + std::sqrt(0.1) + std::sqrt(0.25);
  expect_shares(sampling_of(2), {std::sqrt(0.15) / sum, std::sqrt(0.5) / sum, std::sqrt(0.1) / sum,
                                 std::sqrt(0.25) / sum});
  expect_shares(sampling_of(1, 2), {0, 2.0 / 3, 0, 1.0 / 3});
  expect_shares(sampling_of(1, 3), {0.15 / 0.9, 0.5 / 0.9, 0, 0.25 / 0.9});
  expect_shares(sampling_of(1, 99), {0.15, 0.5, 0.1, 0.25});
  expect_shares(sampling_of(1, 0, 0.7), {0, 2.0 / 3, 0, 1.0 / 3});
  expect_shares(sampling_of(1, 0, 0.8), {0.15 / 0.9, 0.5 / 0.9, 0, 0.25 / 0.9});
  // Of the two likeliest, those that make up 60 % of what they have together.
  expect_shares(sampling_of(1, 2, 0.6), {0, 1, 0, 0});
}

TEST(Models, ThatCannotGenerate) {
  const auto expect_refused = [](auto build, std::string_view text) {
    Builder b;
    const int32_t tokens = b.input("tokens", RRFP_I32, {-1, -1});
    b.block();
    const int32_t table = b.parameter("table", {6, 4});
    const int32_t x = b.op(RRFP_OP_EMBEDDING, {tokens}, {table});
    const int32_t y = build(b, x, table);
    b.loss(y);
    b.output(y);
    const TrainerPtr trainer = make_trainer(b.model.get(), trainer_options());
    rrfp_generator* made = nullptr;
    EXPECT_REFUSED(rrfp_generator_create(trainer.get(), 4, &made, &refusal.error), kInvalid,
                   {"cannot generate", text});
    EXPECT_EQ(made, nullptr);
  };
  using B = Builder;
  expect_refused(
      [](B& b, int32_t x, int32_t) {
        return b.op(RRFP_OP_ATTENTION, {x, x, x}, {}, {.heads = 2});
      },
      "looks ahead");
  expect_refused(
      [](B& b, int32_t x, int32_t) {
        return b.op(RRFP_OP_CONCAT, {x, x}, {}, {.axis = 1});
      },
      "mix positions");
  expect_refused(
      [](B& b, int32_t x, int32_t) {
        return b.op(RRFP_OP_RESHAPE, {x}, {}, {.shape = {0, 0, 4}});
      },
      "mix positions");
  expect_refused([](B& b, int32_t x, int32_t) { return b.op(RRFP_OP_MEAN, {x}, {}, {.axis = 1}); },
                 "[?, 4]");
  expect_refused(
      [](B& b, int32_t x, int32_t table) {
        const int32_t more = b.input("more", RRFP_I32, {-1, -1});
        return b.op(RRFP_OP_ADD, {x, b.op(RRFP_OP_EMBEDDING, {more}, {table})});
      },
      "one input");
}

}  // namespace
}  // namespace rrfp::models
