// SPDX-License-Identifier: Apache-2.0
//
// The vision-language model: what it is made of, what it refuses, and that samples that share a
// sequence, stages that share a model and runs that share a checkpoint do not notice.
#include <algorithm>
#include <climits>
#include <cmath>
#include <nlohmann/json.hpp>

#include "generating.h"
#include "ready.h"
#include "vision.h"

namespace rrfp::models {
namespace {

nlohmann::json describe(const rrfp_model* model) {
  rrfp_error error = {};
  size_t size = 0;
  check(rrfp_model_describe(model, nullptr, 0, &size, &error), error);
  std::string text(size, '\0');
  check(rrfp_model_describe(model, text.data(), size, nullptr, &error), error);
  text.pop_back();
  return nlohmann::json::parse(text);
}

std::vector<std::string> names_in(const nlohmann::json& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.at("name"));
  return names;
}

rrfp_model_info info_of(const rrfp_model* model) {
  rrfp_model_info info;
  rrfp_model_info_init(&info);
  EXPECT_EQ(rrfp_model_get_info(model, &info, nullptr), RRFP_OK);
  return info;
}

// --- What it is made of

TEST(VisionLanguage, HasInputsAndBlocks) {
  const ModelPtr model = small_vision_language();
  const nlohmann::json json = describe(model.get());
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_in(json.at("inputs")),
            (Names{"tokens", "targets", "segments", "positions", "sources", "images"}));
  EXPECT_EQ(json.at("inputs")[4].at("shape"), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(json.at("inputs")[5].at("shape"), (std::vector<int64_t>{-1, 8, 8, 3}));
  EXPECT_EQ(json.at("inputs")[5].at("type"), "f32");
  EXPECT_EQ(names_in(json.at("blocks")),
            (Names{"vision.embedding", "vision.layers.0", "vision.layers.1", "projector",
                   "embedding", "layers.0", "layers.1", "layers.2", "layers.3", "head"}));
  int32_t ndim = 0;
  int64_t shape[RRFP_DIMS_MAX] = {};
  ASSERT_EQ(rrfp_model_value_shape(model.get(), json.at("output"), &ndim, shape, nullptr), RRFP_OK);
  EXPECT_EQ(std::vector<int64_t>(shape, shape + ndim), (std::vector<int64_t>{-1, -1, 32}));
}

TEST(VisionLanguage, HasTheParametersOfItsParts) {
  const ModelPtr model = small_vision_language(RRFP_GPT_TIED, RRFP_VISION_CONV_STEM);
  const ModelPtr gpt = make_gpt(small_gpt(RRFP_GPT_TIED));
  const std::vector<std::string> names = names_in(describe(model.get()).at("parameters"));
  const std::vector<std::string> of_gpt = names_in(describe(gpt.get()).at("parameters"));
  ASSERT_GT(names.size(), of_gpt.size());
  EXPECT_EQ(std::vector<std::string>(names.end() - std::ssize(of_gpt), names.end()), of_gpt);
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const char* name :
       {"vision.embedding.convolutions.1.weight", "vision.embedding.out.bias",
        "vision.embedding.positions.weight", "vision.layers.1.attention.qkv.bias",
        "projector.norm.weight", "projector.out.weight"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  EXPECT_FALSE(has("vision.embedding.patches.weight"));
}

TEST(VisionLanguage, CanHaveAFrozenEncoder) {
  for (const rrfp_vision_flags stem : {0U, RRFP_VISION_CONV_STEM}) {
    const ModelPtr model = small_vision_language(0, RRFP_VISION_FROZEN | stem);
    int64_t frozen = 0;
    const nlohmann::json json = describe(model.get());
    for (const auto& parameter : json.at("parameters")) {
      const std::string name = parameter.at("name");
      EXPECT_EQ(parameter.at("frozen"), name.starts_with("vision.")) << name;
      int64_t elements = 1;
      for (const int64_t extent : parameter.at("shape")) elements *= extent;
      if (parameter.at("frozen")) frozen += elements;
    }
    const rrfp_model_info info = info_of(model.get());
    EXPECT_EQ(info.trainable_elements, info.parameter_elements - frozen);
  }
}

TEST(VisionLanguage, MakesRowsOfPatches) {
  rrfp_vision_options vision = small_vision(RRFP_VISION_CONV_STEM);
  for (const int32_t patch : {4, 8, 16}) {
    vision.image_size = 32;
    vision.patch = patch;
    const ModelPtr model = make_vision_language(small_gpt(), vision);
    const nlohmann::json parameters = describe(model.get()).at("parameters");
    const auto table = std::find_if(parameters.begin(), parameters.end(), [](const auto& p) {
      return p.at("name") == "vision.embedding.positions.weight";
    });
    ASSERT_NE(table, parameters.end());
    const int64_t rows = int64_t{32 / patch} * (32 / patch);
    EXPECT_EQ(table->at("shape"), (std::vector<int64_t>{rows, 8}));
  }
}

// --- What it refuses

TEST(WrongVisionLanguage, Options) {
  const auto expect_refused = [](auto change, std::initializer_list<std::string_view> texts) {
    rrfp_gpt_options language = small_gpt();
    rrfp_vision_options vision = small_vision();
    change(language, vision);
    rrfp_model* model = nullptr;
    EXPECT_REFUSED(rrfp_model_create_vision_language(&language, &vision, &model, &refusal.error),
                   kInvalid, texts);
    EXPECT_EQ(model, nullptr);
  };
  constexpr auto kConv = RRFP_VISION_CONV_STEM;
  expect_refused([](auto&, auto& v) { v.flags = 4; }, {"rrfp_vision_options.flags", "4"});
  expect_refused([](auto&, auto& v) { v.image_size = 0; },
                 {"vision image_size is 0; expected 1 to 16384"});
  expect_refused([](auto&, auto& v) { v.image_size = INT_MAX; }, {"image_size is 2147483647"});
  expect_refused([](auto&, auto& v) { v.patch = 0; }, {"vision patch is 0"});
  expect_refused([](auto&, auto& v) { v.patch = 3; }, {"image_size is 8", "by patch = 3"});
  expect_refused([](auto&, auto& v) { v.patch = 16; }, {"image_size is 8", "by patch = 16"});
  expect_refused([](auto&, auto& v) { v.patch = 2, v.flags = kConv; },
                 {"vision patch is 2", "power of two, at least 4"});
  expect_refused([](auto&, auto& v) { v.image_size = 24, v.patch = 12, v.flags = kConv; },
                 {"vision patch is 12", "power of two"});
  expect_refused([](auto&, auto& v) { v.layers = 0; }, {"vision layers is 0; expected 1 to 65536"});
  expect_refused([](auto&, auto& v) { v.layers = 1 << 24; }, {"vision layers is 16777216"});
  expect_refused([](auto&, auto& v) { v.dim = -1; }, {"vision dim is -1"});
  expect_refused([](auto&, auto& v) { v.heads = 0; }, {"vision heads is 0"});
  expect_refused([](auto&, auto& v) { v.heads = 3; }, {"vision dim is 8", "heads = 3"});
  expect_refused([](auto&, auto& v) { v.hidden = -1; }, {"vision hidden is -1"});
  // Those of the language model are checked as they are for one that is alone.
  expect_refused([](auto& l, auto&) { l.flags = 16; }, {"rrfp_gpt_options.flags", "16"});
  expect_refused([](auto& l, auto&) { l.reserved = 1; }, {"reserved is 1"});
  expect_refused([](auto& l, auto&) { l.context = 0; }, {"context is 0"});
  expect_refused([](auto& l, auto&) { l.dropout = NAN; }, {"dropout is nan"});
  expect_refused([](auto& l, auto&) { l.heads = 16, l.flags = RRFP_GPT_ROTARY; },
                 {"dim / heads is 1"});
}

TEST(WrongVisionLanguage, Arguments) {
  rrfp_gpt_options language = small_gpt();
  cases::Longer<rrfp_vision_options> vision = {small_vision(), 0};
  rrfp_model* model = nullptr;
  const auto expect_refused = [&](const rrfp_gpt_options* l, const rrfp_vision_options* v,
                                  rrfp_model** out, rrfp_status status, std::string_view text) {
    EXPECT_REFUSED(rrfp_model_create_vision_language(l, v, out, &refusal.error), status, {text});
  };
  expect_refused(nullptr, &vision.known, &model, kInvalid, "language is null");
  expect_refused(&language, nullptr, &model, kInvalid, "vision is null");
  expect_refused(&language, &vision.known, nullptr, kInvalid, "out is null");
  vision.known.struct_size = 0;
  expect_refused(&language, &vision.known, &model, RRFP_ERR_STRUCT_SIZE, "rrfp_vision_options");
  vision.known.struct_size = sizeof vision;
  vision.later_field = 1;
  expect_refused(&language, &vision.known, &model, RRFP_ERR_STRUCT_SIZE, "does not know");
  language.struct_size = 0;
  expect_refused(&language, &vision.known, &model, RRFP_ERR_STRUCT_SIZE, "rrfp_gpt_options");
  EXPECT_EQ(model, nullptr);
  rrfp_vision_options_init(nullptr);
}

TEST(WrongVisionLanguage, Batches) {
  const ModelPtr model = small_vision_language();
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options(3));
  const auto expect_refused = [&](auto change, rrfp_status status,
                                  std::initializer_list<std::string_view> texts) {
    Packed packed = pack({"a0bc", "de"});
    change(packed);
    BatchData data;
    packed.add_to(data);
    const rrfp_batch batch = data.batch(RRFP_SAMPLES_INPUTS);
    EXPECT_REFUSED(rrfp_trainer_step(trainer.get(), &batch, nullptr, &refusal.error), status,
                   texts);
  };
  expect_refused([](Packed& p) { p.tokens[0] = 32; }, kRange, {"\"tokens\"", "32", "0 to 31"});
  expect_refused([](Packed& p) { p.sources[2] = 4; }, kRange, {"\"sources\"", "4", "-1 to 3"});
  expect_refused([](Packed& p) { p.positions[3] = 16; }, kRange, {"\"positions\"", "0 to 15"});
  expect_refused([](Packed& p) { p.segments[0] = 1; }, kRange, {"\"segments\"", "runs"});
  expect_refused([](Packed& p) { p.pictures = 0; }, kRange, {"\"sources\""});
  const std::string before = weights_sha256(trainer.get());
  BatchData data;
  pack({"a0bc", "de"}).add_to(data);
  step(trainer.get(), data.batch(RRFP_SAMPLES_INPUTS));
  EXPECT_NE(weights_sha256(trainer.get()), before);
}

// --- Equal results

/// Microbatches with and without pictures, and text.
BatchData mixed_data() {
  BatchData data;
  pack({"0abc", "hello"}).add_to(data);
  pack({"text", "only"}).add_to(data);
  pack({"ab1c2d", "1x", "y2z"}).add_to(data);
  pack({"3q"}).add_to(data);
  return data;
}

struct Variant {
  const char* name;
  rrfp_gpt_flags flags;
  rrfp_vision_flags vision_flags;
  double dropout;
};
constexpr Variant kVariants[] = {
    {"Plain", 0, 0, 0},
    {"Modern", RRFP_GPT_TIED | RRFP_GPT_ROTARY | RRFP_GPT_RMS_NORM | RRFP_GPT_SWIGLU,
     RRFP_VISION_CONV_STEM, 0.1},
    {"Frozen", RRFP_GPT_TIED, RRFP_VISION_FROZEN, 0.2}};

class VisionBits : public testing::TestWithParam<Variant> {
 protected:
  [[nodiscard]] Outcome train(const rrfp_trainer_options& options) const {
    const TrainerPtr trainer = make_trainer(model_.get(), options);
    Outcome outcome;
    for (int s = 0; s < 3; ++s) {
      BatchData data = mixed_data();
      const rrfp_train_report report = step(trainer.get(), data.batch(RRFP_SAMPLES_INPUTS));
      outcome.losses.push_back(report.loss);
      outcome.norms.push_back(report.gradient_norm);
    }
    outcome.sha256 = weights_sha256(trainer.get());
    return outcome;
  }
  ModelPtr model_ =
      small_vision_language(GetParam().flags, GetParam().vision_flags, GetParam().dropout);
};

TEST_P(VisionBits, DoNotDependOnThePipeline) {
  const Outcome expected = train(trainer_options(1));
  for (const int32_t stages : {2, 3, 4, 6, 10}) {
    for (const char* name : {"1f1b", "bfw", "zb-h1"}) {
      const HintPtr hint = make_hint(name);
      rrfp_trainer_options options = trainer_options(stages);
      options.hint = hint.get();
      EXPECT_EQ(train(options), expected) << stages << " stages, " << name;
      options.flags = RRFP_TRAINER_RECOMPUTE;
      options.delay_us_max = 200;
      EXPECT_EQ(train(options), expected) << stages << " stages, recompute, " << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModel, VisionBits, testing::ValuesIn(kVariants),
                         [](const auto& p) { return std::string(p.param.name); });

/// The loss of each place of a sample that has a target, by itself.
std::vector<double> losses_of(rrfp_trainer* trainer, const Packed& packed, int32_t sample) {
  std::vector<double> losses;
  for (size_t t = 0; t < packed.targets.size(); ++t) {
    if (packed.targets[t] < 0 || packed.segments[t] != sample) continue;
    Packed one = packed;
    std::fill(one.targets.begin(), one.targets.end(), -100);
    one.targets[t] = packed.targets[t];
    BatchData data;
    one.add_to(data);
    losses.push_back(evaluate(trainer, data.batch(RRFP_SAMPLES_INPUTS)).loss);
  }
  return losses;
}

// Others of the same lengths: the rows of a product that are rounded alike stay where they are.
TEST(Packing, NoBitOfASampleDependsOnOthers) {
  const std::vector<std::string> samples = {"ab0cd", "text", "1x2yz", "q9r", "3s"};
  const std::vector<std::string> others = {"zy4xw", "else", "5a6bc", "m8n", "7t"};
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const TrainerPtr trainer = make_lively_trainer(model);
    for (size_t s = 0; s < samples.size(); ++s) {
      std::vector<std::string> among = others;
      among[s] = samples[s];
      const auto sample = static_cast<int32_t>(s);
      const std::vector<double> losses = losses_of(trainer.get(), pack(samples), sample);
      EXPECT_FALSE(losses.empty());
      EXPECT_EQ(losses_of(trainer.get(), pack(among), sample), losses) << v.name << ' ' << s;
    }
  }
}

TEST(Packing, NoBitOfTheLogitsDependsOnOtherSamples) {
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const TrainerPtr trainer = make_lively_trainer(model);
    const auto logits = [&](const std::vector<std::string>& samples) {
      const GeneratorPtr generator = make_generator(trainer.get(), 16);
      start(generator, pack(samples));
      return logits_of(generator, 32);
    };
    const std::vector<float> expected = logits({"hello", "0a", "1x"});
    EXPECT_EQ(logits({"other", "2z", "1x"}), expected) << v.name;
    EXPECT_NE(logits({"hello", "0a1x"}), expected) << v.name;
    EXPECT_NE(logits({"hello", "0a", "2x"}), expected) << v.name;
  }
}

TEST(Packing, GivesWhatSamplesGiveAlone) {
  const std::vector<std::string> samples = {"ab0cd", "text", "1x2yz", "0", "q2r"};
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags);
    const TrainerPtr trainer = make_lively_trainer(model);
    for (size_t s = 0; s < samples.size(); ++s) {
      const std::vector<double> alone = losses_of(trainer.get(), pack({samples[s]}), 0);
      const auto packed = losses_of(trainer.get(), pack(samples), static_cast<int32_t>(s));
      ASSERT_EQ(packed.size(), alone.size());
      for (size_t k = 0; k < alone.size(); ++k) EXPECT_NEAR(packed[k], alone[k], 1e-5 * alone[k]);
    }
  }
}

// --- Checkpoints

TEST(VisionCheckpoint, SaysHowToBuildTheModel) {
  for (const Variant& v : kVariants) {
    const ModelPtr model = small_vision_language(v.flags, v.vision_flags, v.dropout);
    const TrainerPtr trainer = make_trainer(model.get(), trainer_options(3));
    BatchData data = mixed_data();
    step(trainer.get(), data.batch(RRFP_SAMPLES_INPUTS));
    const test::ScratchFolder folder;
    rrfp_error error = {};
    rrfp_save_options options;
    rrfp_save_options_init(&options);
    options.root = folder.path().c_str();
    check(rrfp_trainer_save(trainer.get(), &options, &error), error);
    rrfp_model* rebuilt = nullptr;
    check(rrfp_model_create_from_checkpoint(folder.path().c_str(), &rebuilt, &error), error);
    const ModelPtr again(rebuilt);
    EXPECT_EQ(describe(again.get()), describe(model.get())) << v.name;
    const TrainerPtr other = make_trainer(again.get(), trainer_options(2));
    check(rrfp_trainer_load(other.get(), folder.path().c_str(), 0, nullptr, &error), error);
    EXPECT_EQ(weights_sha256(other.get()), weights_sha256(trainer.get()));
    EXPECT_EQ(step(other.get(), data.batch(RRFP_SAMPLES_INPUTS)).loss,
              step(trainer.get(), data.batch(RRFP_SAMPLES_INPUTS)).loss);
    EXPECT_EQ(weights_sha256(other.get()), weights_sha256(trainer.get()));
  }
}

TEST(VisionCheckpoint, NamesWhatIsWrong) {
  const ModelPtr model = small_vision_language();
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options());
  const test::ScratchFolder folder;
  rrfp_error error = {};
  rrfp_save_options options;
  rrfp_save_options_init(&options);
  options.root = folder.path().c_str();
  check(rrfp_trainer_save(trainer.get(), &options, &error), error);
  const std::string path = folder / "step-00000000/state.json";
  const auto expect_refused = [&](auto change, std::initializer_list<std::string_view> texts) {
    std::ifstream in(path);
    const nlohmann::json good = nlohmann::json::parse(in);
    nlohmann::json wrong = good;
    change(wrong.at("model"));
    test::write_file(path, wrong.dump());
    rrfp_model* out = nullptr;
    EXPECT_REFUSED(rrfp_model_create_from_checkpoint(folder.path().c_str(), &out, &refusal.error),
                   RRFP_ERR_BAD_DATA, texts);
    EXPECT_EQ(out, nullptr);
    test::write_file(path, good.dump());
  };
  expect_refused([](auto& m) { m["kind"] = "diffusion"; },
                 {"\"diffusion\"", "\"gpt\" or \"vision_language\""});
  expect_refused([](auto& m) { m.erase("vision"); }, {"vision"});
  expect_refused([](auto& m) { m["vision"].erase("patch"); }, {"patch"});
  expect_refused([](auto& m) { m["vision"]["patch"] = 3; },
                 {"vision image_size is 8", "patch = 3"});
  expect_refused([](auto& m) { m["language"]["dim"] = 0; }, {"dim is 0"});
}

}  // namespace
}  // namespace rrfp::models
