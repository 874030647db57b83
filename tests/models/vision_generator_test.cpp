// SPDX-License-Identifier: Apache-2.0
//
// Text that goes on from pictures: token by token it is what reading everything again gives; a
// prompt of text alone is that of a language model.
#include <cmath>
#include <functional>

#include "generating.h"
#include "ready.h"
#include "vision.h"

namespace rrfp::models {
namespace {

struct Variant {
  const char* name;
  rrfp_gpt_flags flags;
  rrfp_vision_flags vision_flags;
};
constexpr Variant kVariants[] = {
    {"plain", 0, 0},
    {"conv stem, tied", RRFP_GPT_TIED, RRFP_VISION_CONV_STEM},
    {"rotary, rms, swiglu", RRFP_GPT_ROTARY | RRFP_GPT_RMS_NORM | RRFP_GPT_SWIGLU, 0}};

/// A letter for each token that small_gpt() has; those behind z are none.
char letter_of(int32_t token) {
  return static_cast<char>('a' + token);
}

TEST(Captions, AreThoseOfReadingAllAgain) {
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const TrainerPtr trainer = make_lively_trainer(model, 2);
    for (const std::string prompt : {"0", "0ab", "ab0", "a0b1c", "text"}) {
      const GeneratorPtr cached = make_generator(trainer.get(), 16);
      const GeneratorPtr again = make_generator(trainer.get(), 16);
      std::string text = prompt;
      start(cached, pack({text}));
      while (pack({text}).length() < 16) {
        const int32_t token = next(cached, sampling_of(0));
        start(again, pack({text}));
        EXPECT_EQ(token, argmax(logits_of(again, 32))) << v.name << ", " << text;
        text += letter_of(token);
        start(again, pack({text}));
        expect_near(logits_of(cached, 32), logits_of(again, 32), v.name + (", " + text));
      }
    }
  }
}

TEST(Captions, AgreeWithTheLossOfAnEvaluation) {
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const TrainerPtr trainer = make_lively_trainer(model, 3);
    const GeneratorPtr generator = make_generator(trainer.get(), 16);
    const std::string text = "a0bc1def";
    double loss = 0;
    int count = 0;
    for (size_t k = 1; k < text.size(); ++k) {
      if (text[k] < 'a') continue;
      start(generator, pack({text.substr(0, k)}));
      const std::vector<float> logits = logits_of(generator, 32);
      double sum = 0;
      for (const float logit : logits) sum += std::exp(logit);
      loss += std::log(sum) - logits[static_cast<size_t>(text[k] - 'a')];
      ++count;
    }
    BatchData data;
    pack({text}).add_to(data);
    EXPECT_NEAR(evaluate(trainer.get(), data.batch(RRFP_SAMPLES_INPUTS)).loss, loss / count,
                1e-5 * loss)
        << v.name;
  }
}

TEST(Captions, DependOnThePicture) {
  const ModelPtr model = small_vision_language();
  const TrainerPtr trainer = make_lively_trainer(model);
  const GeneratorPtr generator = make_generator(trainer.get(), 16);
  start(generator, pack({"0a"}));
  const std::vector<float> logits = logits_of(generator, 32);
  start(generator, pack({"1a"}));
  EXPECT_NE(logits_of(generator, 32), logits);
  start(generator, pack({"0a"}));
  EXPECT_EQ(logits_of(generator, 32), logits) << "nothing stays of a prompt before";
}

TEST(Captions, GoOnWithTheLastSample) {
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const TrainerPtr trainer = make_lively_trainer(model);
    const GeneratorPtr packed = make_generator(trainer.get(), 16);
    const GeneratorPtr alone = make_generator(trainer.get(), 16);
    start(packed, pack({"2x", "ab", "0c"}));  // 12 positions, of which 5 stay
    start(alone, pack({"0c"}));
    for (int k = 0; k < 11; ++k) {
      expect_near(logits_of(packed, 32), logits_of(alone, 32),
                  v.name + (" at " + std::to_string(k)));
      EXPECT_EQ(next(packed, sampling_of(0)), next(alone, sampling_of(0)));
    }
  }
}

TEST(Captions, EndWhereTheContextIsFull) {
  const ModelPtr model = small_vision_language();
  const TrainerPtr trainer = make_lively_trainer(model);
  const GeneratorPtr generator = make_generator(trainer.get(), 8);
  start(generator, pack({"0ab"}));
  next(generator, sampling_of(1), 2);
  const std::vector<float> logits = logits_of(generator, 32);
  int32_t token = -5;
  for (int k = 0; k < 2; ++k) {
    EXPECT_REFUSED(rrfp_generator_next(generator.get(), nullptr, &token, &refusal.error),
                   RRFP_ERR_BAD_STATE, {"context of 8 positions is full", "pictures"});
  }
  EXPECT_EQ(token, -5);
  EXPECT_EQ(logits_of(generator, 32), logits);
  // A picture of a sample before does not count.
  start(generator, pack({"0a", "bcd"}));
  next(generator, sampling_of(1), 20);
  // The last place that the model knows, whatever lies before it.
  Packed late = pack({"0a"});
  late.positions = {11, 12, 13, 14, 15};
  start(generator, late);
  EXPECT_REFUSED(rrfp_generator_next(generator.get(), nullptr, &token, &refusal.error),
                 RRFP_ERR_BAD_STATE, {"is full"});
}

TEST(TextAlone, IsAPromptWithoutPictures) {
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const TrainerPtr trainer = make_lively_trainer(model);
    const GeneratorPtr generator = make_generator(trainer.get(), 16);
    start(generator, tokens_of("text"));
    const std::vector<float> logits = logits_of(generator, 32);
    const std::vector<int32_t> tokens = next(generator, sampling_of(1), 30);
    start(generator, pack({"text"}));
    EXPECT_EQ(logits_of(generator, 32), logits);
    EXPECT_EQ(next(generator, sampling_of(1), 30), tokens);
  }
}

TEST(TextAlone, IsThatOfALanguageModel) {
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const ModelPtr gpt = make_gpt(small_gpt(v.flags));
    const TrainerPtr trainer = make_lively_trainer(model);
    const TrainerPtr of_gpt = make_trainer(gpt.get(), trainer_options());
    const int32_t before = parameter_count(model.get()) - parameter_count(gpt.get());
    for (int32_t p = 0; p < parameter_count(gpt.get()); ++p) {
      ASSERT_EQ(parameter_name(gpt.get(), p), parameter_name(model.get(), before + p));
      write(of_gpt.get(), p,
            read(trainer.get(), before + p, RRFP_SLOT_WEIGHT, parameter_elements(gpt.get(), p)));
    }
    const GeneratorPtr generator = make_generator(trainer.get(), 8);
    const GeneratorPtr expected = make_generator(of_gpt.get(), 8);
    for (const std::string prompt : {"text", "a", "alongerprompt"}) {
      start(generator, tokens_of(prompt));
      start(expected, tokens_of(prompt));
      for (int k = 0; k < 20; ++k) {  // beyond the context, too
        expect_near(logits_of(generator, 32), logits_of(expected, 32), v.name);
        EXPECT_EQ(next(generator, sampling_of(0)), next(expected, sampling_of(0)));
      }
    }
  }
}

class WrongPrompts : public testing::Test {
 protected:
  WrongPrompts() { start(generator, pack({"0a"})); }
  template <class Change>
  void expect_refused(Change change, rrfp_status status,
                      std::initializer_list<std::string_view> texts) {
    Packed prompt = pack({"a0b", "1c"});
    BatchData data;
    prompt.add_to(data);
    std::vector<rrfp_tensor> tensors(RRFP_SAMPLES_INPUTS);
    const rrfp_tensor* const inputs = data.batch(RRFP_SAMPLES_INPUTS).inputs;
    std::copy(inputs, inputs + RRFP_SAMPLES_INPUTS, tensors.begin());
    change(tensors);
    const std::vector<float> before = logits_of(generator, 32);
    EXPECT_REFUSED(rrfp_generator_start_inputs(generator.get(), tensors.data(), &refusal.error),
                   status, texts);
    EXPECT_EQ(logits_of(generator, 32), before);
  }
  using Tensors = std::vector<rrfp_tensor>;
  static int32_t& id(Tensors& tensors, size_t input, size_t place) {
    return static_cast<int32_t*>(tensors[input].data)[place];
  }
  ModelPtr model = small_vision_language();
  TrainerPtr trainer = make_trainer(model.get(), trainer_options());
  GeneratorPtr generator = make_generator(trainer.get(), 12);
};

TEST_F(WrongPrompts, Numbers) {
  expect_refused([](Tensors& t) { id(t, 0, 2) = 32; }, kRange, {"\"tokens\"", "32", "0 to 31"});
  expect_refused([](Tensors& t) { id(t, 2, 0) = 1; }, kRange, {"\"segments\""});
  expect_refused([](Tensors& t) { id(t, 3, 1) = -1; }, kRange, {"\"positions\"", "0 to 15"});
  expect_refused([](Tensors& t) { id(t, 4, 1) = 8; }, kRange, {"\"sources\"", "8", "-1 to 7"});
  expect_refused([](Tensors& t) { id(t, 4, 1) = -2; }, kRange, {"\"sources\"", "-2"});
}

TEST_F(WrongPrompts, Shapes) {
  expect_refused([](Tensors& t) { t[0].shape[0] = 2; }, kMismatch, {"\"tokens\"", "[2, 11]"});
  expect_refused([](Tensors& t) { t[0].ndim = 1; }, kMismatch, {"\"tokens\"", "[1]"});
  expect_refused([](Tensors& t) { t[0].shape[1] = 13; }, kInvalid, {"13 positions", "is 12"});
  expect_refused([](Tensors& t) { t[0].shape[1] = 0; }, kInvalid, {"prompt is empty"});
  expect_refused([](Tensors& t) { t[2].shape[1] = 10; }, kMismatch, {"[1, 10]"});
  expect_refused([](Tensors& t) { t[3].shape[1] = 10; }, kMismatch,
                 {"\"positions\"", "[1, 10]", "[1, 11]"});
  expect_refused([](Tensors& t) { t[4].shape[1] = 10; }, kMismatch, {"[1, 10]"});
  expect_refused([](Tensors& t) { t[5].shape[1] = 7; }, kMismatch,
                 {"\"images\"", "[2, 7, 8, 3]; expected [?, 8, 8, 3]"});
  expect_refused([](Tensors& t) { t[0].dtype = RRFP_F32; }, kMismatch, {"\"tokens\"", "f32"});
  expect_refused([](Tensors& t) { t[5].dtype = RRFP_I32; }, kMismatch, {"\"images\"", "i32"});
  expect_refused([](Tensors& t) { t[5].data = nullptr; }, kMismatch, {"\"images\"", "no data"});
  expect_refused([](Tensors& t) { t[5].ndim = 0; }, kMismatch, {"input 5: ndim is 0"});
}

TEST_F(WrongPrompts, TargetsMayBeAnything) {
  BatchData data;
  pack({"a0b"}).add_to(data);
  std::vector<rrfp_tensor> tensors(RRFP_SAMPLES_INPUTS);
  const rrfp_tensor* const inputs = data.batch(RRFP_SAMPLES_INPUTS).inputs;
  std::copy(inputs, inputs + RRFP_SAMPLES_INPUTS, tensors.begin());
  tensors[1] = {};
  EXPECT_EQ(rrfp_generator_start_inputs(generator.get(), tensors.data(), nullptr), RRFP_OK);
}

// Models with the same inputs, of which each may do something else.
struct Lookalike {
  Builder b;
  int32_t tokens = b.input("tokens", RRFP_I32, {-1, -1});
  int32_t targets = b.input("targets", RRFP_I32, {-1, -1});
  int32_t segments = b.input("segments", RRFP_I32, {-1, -1});
  int32_t positions = b.input("positions", RRFP_I32, {-1, -1});
  int32_t sources = b.input("sources", RRFP_I32, {-1, -1});
  int32_t images = -1;

  int32_t embed(int32_t ids, const char* table) {
    return b.op(RRFP_OP_EMBEDDING, {ids}, {b.parameter(table, {32, 12})});
  }
  int32_t add(int32_t x, int32_t y) { return b.op(RRFP_OP_ADD, {x, y}); }
  int32_t attend(int32_t x, const std::vector<int32_t>& within = {}) {
    std::vector<int32_t> inputs = {x, x, x};
    inputs.insert(inputs.end(), within.begin(), within.end());
    return b.op(RRFP_OP_ATTENTION, inputs, {},
                {.flags = RRFP_OP_CAUSAL, .heads = 2, .kv_heads = 2});
  }
  /// The rows of the pictures are as wide as the embeddings.
  int32_t merge(int32_t x, int32_t indices) {
    const int32_t patches = b.op(RRFP_OP_PATCHES, {images}, {}, {.kernel = 2, .stride = 2});
    const int32_t rows = b.op(RRFP_OP_RESHAPE, {patches}, {}, {.shape = {0, -1, 12}});
    return b.op(RRFP_OP_MERGE_ROWS, {x, rows, indices});
  }
  /// With an output over `x`, and a loss that may be of another head.
  TrainerPtr finish(int32_t x, int32_t classes = 32) {
    const int32_t logits = b.op(RRFP_OP_LINEAR, {x}, {b.parameter("head", {32, 12})});
    b.output(logits);
    const int32_t classified =
        classes == 32 ? logits
                      : b.op(RRFP_OP_LINEAR, {x}, {b.parameter("classifier", {classes, 12})});
    b.loss(b.op(RRFP_OP_CROSS_ENTROPY, {classified, targets}));
    return make_trainer(b.model.get(), trainer_options());
  }
  explicit Lookalike(int64_t side = 8) {
    images = b.input("images", RRFP_F32, {-1, side, side, 3});
    b.block();
  }
};

// They could not go on from a packed prompt, or would read what is not there.
TEST(Lookalikes, ThatReadTheInputsOtherwiseCannotGenerate) {
  const struct {
    const char* name;  // of the operation
    std::function<int32_t(Lookalike&)> make;
  } wrong[] = {
      {"(attention)",
       [](Lookalike& m) { return m.attend(m.merge(m.embed(m.tokens, "table"), m.sources)); }},
      {"(attention)",
       [](Lookalike& m) { return m.attend(m.embed(m.tokens, "table"), {m.positions}); }},
      {"(positions)",
       [](Lookalike& m) {
         const int32_t x = m.b.op(RRFP_OP_POSITIONS, {m.embed(m.tokens, "table")},
                                  {m.b.parameter("places", {16, 12})});
         return m.attend(x, {m.segments});
       }},
      {"(rotary)",
       [](Lookalike& m) {
         const int32_t x =
             m.b.op(RRFP_OP_ROTARY, {m.embed(m.tokens, "table")}, {}, {.heads = 2, .head_dim = 6});
         return m.attend(x, {m.segments});
       }},
      {"(embedding)",
       [](Lookalike& m) { return m.add(m.embed(m.tokens, "table"), m.embed(m.sources, "rows")); }},
      {"(embedding)",
       [](Lookalike& m) { return m.add(m.embed(m.tokens, "table"), m.embed(m.targets, "words")); }},
      {"(merge_rows)",
       [](Lookalike& m) { return m.merge(m.embed(m.tokens, "table"), m.segments); }},
      {"(merge_rows)", [](Lookalike& m) { return m.merge(m.embed(m.tokens, "table"), m.tokens); }},
  };
  for (const auto& [name, make] : wrong) {
    Lookalike m;
    const TrainerPtr trainer = m.finish(make(m));
    rrfp_generator* made = nullptr;
    EXPECT_REFUSED(rrfp_generator_create(trainer.get(), 12, &made, &refusal.error), kInvalid,
                   {"cannot generate", name, "merge_rows \"sources\""});
  }
}

TEST(Lookalikes, ThatReadTokensAloneAreLanguageModels) {
  Lookalike m;
  const TrainerPtr trainer = m.finish(m.attend(m.embed(m.tokens, "table")));
  const GeneratorPtr generator = make_generator(trainer.get(), 12);
  const std::vector<int32_t> prompt = {1, 2, 3};
  ASSERT_EQ(rrfp_generator_start(generator.get(), prompt.data(), prompt.size(), nullptr), RRFP_OK);
  EXPECT_LT(next(generator, sampling_of(0)), 32);
  BatchData data;
  pack({"a0b"}).add_to(data);
  EXPECT_REFUSED(rrfp_generator_start_inputs(
                     generator.get(), data.batch(RRFP_SAMPLES_INPUTS).inputs, &refusal.error),
                 kInvalid, {"does not depend on", "give it tokens"});
}

TEST(Lookalikes, MayReadPicturesOfAnySize) {
  Lookalike m(-1);
  const int32_t x = m.merge(m.embed(m.tokens, "table"), m.sources);
  const TrainerPtr trainer = m.finish(m.attend(x, {m.segments}));
  const GeneratorPtr generator = make_generator(trainer.get(), 16);
  start(generator, pack({"a0z"}));
  for (int k = 0; k < 3; ++k) EXPECT_LT(next(generator, sampling_of(0)), 32);
}

// The numbers of a prompt are checked for what makes the output, not for the losses.
TEST(Lookalikes, MayHaveALossOfFewerClassesThanTokens) {
  Lookalike m;
  const int32_t x = m.merge(m.embed(m.tokens, "table"), m.sources);
  const TrainerPtr trainer = m.finish(m.attend(x, {m.segments}), 2);
  const GeneratorPtr generator = make_generator(trainer.get(), 16);
  start(generator, pack({"a0z"}));
  EXPECT_LT(next(generator, sampling_of(0)), 32);
}

TEST_F(WrongPrompts, Handles) {
  const rrfp_tensor tensor = {};
  EXPECT_REFUSED(rrfp_generator_start_inputs(nullptr, &tensor, &refusal.error),
                 RRFP_ERR_NULL_HANDLE, {"generator is null"});
  EXPECT_REFUSED(rrfp_generator_start_inputs(generator.get(), nullptr, &refusal.error), kInvalid,
                 {"inputs is null"});
  rrfp_generator* made = nullptr;
  EXPECT_REFUSED(rrfp_generator_create(trainer.get(), 17, &made, &refusal.error), kInvalid,
                 {"context is 17; the model has 16 positions"});
  const ModelPtr gpt = make_gpt(small_gpt());
  const TrainerPtr of_gpt = make_trainer(gpt.get(), trainer_options());
  const GeneratorPtr text_only = make_generator(of_gpt.get(), 16);
  BatchData data;
  pack({"a0b"}).add_to(data);
  EXPECT_REFUSED(rrfp_generator_start_inputs(
                     text_only.get(), data.batch(RRFP_SAMPLES_INPUTS).inputs, &refusal.error),
                 kInvalid, {"does not depend on the inputs of the vision-language model"});
}

}  // namespace
}  // namespace rrfp::models
