// SPDX-License-Identifier: Apache-2.0
//
// A run that is saved, and continued by another trainer, is the run that was not interrupted: to
// the bit, whatever the pipelines of the two. And what does not fit is refused without a trace.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "ready.h"

namespace rrfp::models {
namespace {

constexpr uint64_t kSteps = 6;
constexpr uint64_t kSavedAt = 3;

BatchData data_of(uint64_t step) {
  return random_tokens(4, 2, 12, 32, 100 + step);
}

void save(rrfp_trainer* trainer, const std::string& root, uint64_t position = 0,
          const char* user_json = nullptr, int32_t keep = 0) {
  rrfp_error error = {};
  rrfp_save_options options;
  rrfp_save_options_init(&options);
  options.root = root.c_str();
  options.position = position;
  options.user_json = user_json;
  options.keep = keep;
  check(rrfp_trainer_save(trainer, &options, &error), error);
}

uint64_t load(rrfp_trainer* trainer, const std::string& path, rrfp_load_flags flags = 0) {
  rrfp_error error = {};
  uint64_t position = 0;
  check(rrfp_trainer_load(trainer, path.c_str(), flags, &position, &error), error);
  return position;
}

nlohmann::json describe(const std::string& path) {
  rrfp_error error = {};
  size_t size = 0;
  check(rrfp_checkpoint_describe(path.c_str(), nullptr, 0, &size, &error), error);
  std::string text(size, '\0');
  check(rrfp_checkpoint_describe(path.c_str(), text.data(), size, &size, &error), error);
  EXPECT_EQ(text.size(), size);
  text.pop_back();
  return nlohmann::json::parse(text);
}

/// Steps `first` .. `last` - 1.
Outcome run(rrfp_trainer* trainer, uint64_t first, uint64_t last) {
  Outcome outcome;
  for (uint64_t s = first; s < last; ++s) {
    BatchData data = data_of(s);
    const rrfp_train_report report = step(trainer, data.batch(2));
    EXPECT_EQ(report.step, static_cast<int64_t>(s + 1));
    outcome.losses.push_back(report.loss);
    outcome.norms.push_back(report.gradient_norm);
  }
  outcome.sha256 = weights_sha256(trainer);
  return outcome;
}

struct Optimizer {
  const char* name;
  rrfp_optimizer kind;
  double momentum;
  double loss_scale;
};
constexpr Optimizer kOptimizers[] = {{"adamw", RRFP_OPTIMIZER_ADAMW, 0, 0},
                                     {"adamw, scaled", RRFP_OPTIMIZER_ADAMW, 0, 1024},
                                     {"sgd", RRFP_OPTIMIZER_SGD, 0.9, 0},
                                     {"sgd, scaled", RRFP_OPTIMIZER_SGD, 0.9, 1024}};

rrfp_trainer_options options_of(const Optimizer& optimizer) {
  rrfp_trainer_options options = trainer_options();
  options.optimizer = optimizer.kind;
  options.momentum = optimizer.momentum;
  options.loss_scale = optimizer.loss_scale;
  options.loss_scale_growth = 2;
  options.warmup_steps = 2;
  options.decay = RRFP_DECAY_COSINE;
  options.decay_steps = 10;
  options.lr = 0.01;
  options.clip_norm = 1;
  return options;
}

/// Another pipeline, which gives the same results.
struct Pipeline {
  const char* name;
  int32_t stages;
  rrfp_placement placement;
  int32_t ranks;
  const char* hint;
  rrfp_trainer_flags flags;
};
constexpr Pipeline kPipelines[] = {
    {"1 stage", 1, RRFP_PLACEMENT_LINEAR, 0, "1f1b", 0},
    {"4 stages", 4, RRFP_PLACEMENT_LINEAR, 0, "gpipe", 0},
    {"V", 4, RRFP_PLACEMENT_V, 0, "bfw", 0},
    {"loop, recomputing", 5, RRFP_PLACEMENT_LOOP, 2, "zb-h1", RRFP_TRAINER_RECOMPUTE},
};

TEST(Resume, IsTheUninterruptedRun) {
  const ModelPtr model = make_gpt(small_gpt(0, 0.1));
  for (const Optimizer& optimizer : kOptimizers) {
    rrfp_trainer_options options = options_of(optimizer);
    options.stages = 2;
    const test::ScratchFolder folder;
    const TrainerPtr whole = make_trainer(model.get(), options);
    run(whole.get(), 0, kSavedAt);
    save(whole.get(), folder.path());
    const Outcome expected = run(whole.get(), kSavedAt, kSteps);
    for (const Pipeline& pipeline : kPipelines) {
      const HintPtr hint = make_hint(pipeline.hint);
      options = options_of(optimizer);
      options.stages = pipeline.stages;
      options.placement = pipeline.placement;
      options.ranks = pipeline.ranks;
      options.hint = hint.get();
      options.flags = pipeline.flags;
      options.seed = 999;  // that of the checkpoint counts
      const TrainerPtr resumed = make_trainer(model.get(), options);
      load(resumed.get(), folder.path());
      EXPECT_EQ(run(resumed.get(), kSavedAt, kSteps), expected)
          << optimizer.name << ", " << pipeline.name;
    }
  }
}

TEST(Resume, IntoATrainerThatHasDoneSomethingElse) {
  const ModelPtr model = make_gpt(small_gpt(RRFP_GPT_TIED, 0.1));
  const test::ScratchFolder folder;
  const rrfp_trainer_options options = options_of(kOptimizers[1]);
  const TrainerPtr trainer = make_trainer(model.get(), options);
  run(trainer.get(), 0, kSavedAt);
  save(trainer.get(), folder.path());
  const Outcome expected = run(trainer.get(), kSavedAt, kSteps);
  load(trainer.get(), folder.path());  // back to where it was
  EXPECT_EQ(run(trainer.get(), kSavedAt, kSteps), expected);
  BatchData data = data_of(50);
  step(trainer.get(), data.batch(2, RRFP_BATCH_KEEP_GRADIENTS));
  load(trainer.get(), folder.path());
  EXPECT_EQ(run(trainer.get(), kSavedAt, kSteps), expected) << "gradients are not kept";
}

TEST(Resume, OfAFreshTrainer) {
  const ModelPtr model = make_gpt(small_gpt(0, 0.1));
  const test::ScratchFolder folder;
  const TrainerPtr whole = make_trainer(model.get(), options_of(kOptimizers[0]));
  save(whole.get(), folder.path());
  rrfp_trainer_options options = options_of(kOptimizers[0]);
  options.seed = 4;
  const TrainerPtr resumed = make_trainer(model.get(), options);
  load(resumed.get(), folder / "step-00000000");
  EXPECT_EQ(run(resumed.get(), 0, 2), run(whole.get(), 0, 2));
}

TEST(State, ComesBack) {
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options());
  const test::ScratchFolder folder;
  save(trainer.get(), folder.path(), UINT64_MAX,
       R"({"note": "\u00e4", "deep": {"list": [1, 2.5]}})");
  EXPECT_EQ(load(trainer.get(), folder.path()), UINT64_MAX);
  const nlohmann::json first = describe(folder.path());
  EXPECT_EQ(first.at("position"), UINT64_MAX);
  EXPECT_EQ(first.at("user"), nlohmann::json::parse(R"({"note":"ä","deep":{"list":[1,2.5]}})"));
  EXPECT_EQ(first.at("optimizer"), "adamw");
  EXPECT_EQ(first.at("seed"), 7);
  EXPECT_EQ(first.at("step"), 0);
  EXPECT_EQ(first.at("model").at("layers"), 4);

  run(trainer.get(), 0, 1);
  save(trainer.get(), folder.path(), 8);
  run(trainer.get(), 1, 2);
  save(trainer.get(), folder.path(), 16, nullptr, 2);
  EXPECT_EQ(describe(folder.path()).at("step"), 2) << "the newest one";
  EXPECT_FALSE(describe(folder.path()).contains("user"));
  EXPECT_EQ(load(trainer.get(), folder / "step-00000001"), 8U);
  EXPECT_EQ(load(trainer.get(), folder.path()), 16U);
  EXPECT_FALSE(std::filesystem::exists(folder / "step-00000000")) << "two stay";
}

TEST(WeightsOnly, LeavesTheRestAlone) {
  const ModelPtr model = make_gpt(small_gpt());
  const test::ScratchFolder folder;
  const TrainerPtr trained = make_trainer(model.get(), trainer_options());
  run(trained.get(), 0, 3);
  save(trained.get(), folder.path(), 24);
  // Of another optimizer, which has other moments.
  rrfp_trainer_options options = options_of(kOptimizers[2]);
  const TrainerPtr tuned = make_trainer(model.get(), options);
  EXPECT_EQ(load(tuned.get(), folder.path(), RRFP_LOAD_WEIGHTS_ONLY), 24U);
  EXPECT_EQ(weights_sha256(tuned.get()), weights_sha256(trained.get()));
  EXPECT_EQ(run(tuned.get(), 0, 1).losses.size(), 1U) << "it begins at step 1";
}

TEST(WeightsOnly, EqualsWritingTheWeights) {
  const ModelPtr model = make_gpt(small_gpt(0, 0.1));
  const test::ScratchFolder folder;
  const TrainerPtr trained = make_trainer(model.get(), trainer_options());
  run(trained.get(), 0, 3);
  save(trained.get(), folder.path());
  const TrainerPtr loaded = make_trainer(model.get(), trainer_options());
  const TrainerPtr written = make_trainer(model.get(), trainer_options(3));
  load(loaded.get(), folder.path(), RRFP_LOAD_WEIGHTS_ONLY);
  for (int32_t p = 0; p < parameter_count(model.get()); ++p) {
    const size_t count = parameter_elements(model.get(), p);
    write(written.get(), p, read(trained.get(), p, RRFP_SLOT_WEIGHT, count));
  }
  EXPECT_EQ(run(loaded.get(), 0, 2), run(written.get(), 0, 2));
}

/// Loading fails like this and changes nothing: the trainer goes on as one that never tried.
void expect_not_loaded(const ModelPtr& model, const rrfp_trainer_options& options,
                       const std::string& path, rrfp_load_flags flags,
                       std::initializer_list<std::string_view> texts) {
  const TrainerPtr trainer = make_trainer(model.get(), options);
  const TrainerPtr untouched = make_trainer(model.get(), options);
  run(trainer.get(), 0, 1);
  run(untouched.get(), 0, 1);
  uint64_t position = 5;
  EXPECT_REFUSED(rrfp_trainer_load(trainer.get(), path.c_str(), flags, &position, &refusal.error),
                 RRFP_ERR_BAD_DATA, texts);
  EXPECT_EQ(position, 5U);
  EXPECT_EQ(run(trainer.get(), 1, 3), run(untouched.get(), 1, 3));
}

TEST(Mismatch, OfTheModelNamesATensor) {
  const test::ScratchFolder folder;
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options());
  run(trainer.get(), 0, 1);
  save(trainer.get(), folder.path());
  const auto expect_refused = [&](auto change, std::initializer_list<std::string_view> texts) {
    rrfp_gpt_options options = small_gpt();
    change(options);
    for (rrfp_load_flags flags : {0U, RRFP_LOAD_WEIGHTS_ONLY}) {
      expect_not_loaded(make_gpt(options), trainer_options(), folder.path(), flags, texts);
    }
  };
  expect_refused([](auto& o) { o.hidden = 40; },
                 {"layers.0.ffn.up.weight", "[64, 16]", "[40, 16]"});
  expect_refused([](auto& o) { o.layers = 5; }, {"layers.4."});
  expect_refused([](auto& o) { o.layers = 3; }, {"layers.3."});
  expect_refused([](auto& o) { o.flags = RRFP_GPT_TIED; }, {"head.weight"});
  expect_refused([](auto& o) { o.context = 17; }, {"positions.weight", "[17, 16]"});
}

TEST(Mismatch, OfTheOptimizer) {
  const test::ScratchFolder folder;
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options());
  run(trainer.get(), 0, 1);
  save(trainer.get(), folder.path());
  expect_not_loaded(model, options_of(kOptimizers[2]), folder.path(), 0, {"adamw", "sgd"});
  // The same kind, but without the velocities.
  const TrainerPtr sgd = make_trainer(model.get(), options_of(kOptimizers[2]));
  const test::ScratchFolder other;
  save(sgd.get(), other.path());
  rrfp_trainer_options without = options_of(kOptimizers[2]);
  without.momentum = 0;
  expect_not_loaded(model, without, other.path(), 0, {"embedding.weight"});
}

TEST(Damage, IsFoundAndChangesNothing) {
  const test::ScratchFolder folder;
  const ModelPtr model = make_gpt(small_gpt());
  const TrainerPtr trainer = make_trainer(model.get(), trainer_options());
  run(trainer.get(), 0, 1);
  save(trainer.get(), folder.path());
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string path = folder / "step-00000001/" + name;
    const std::string good = test::read_file(path);
    std::string bad = good;
    bad[bad.size() - 9] = static_cast<char>(bad[bad.size() - 9] ^ 4);
    test::write_file(path, bad);
    expect_not_loaded(model, trainer_options(), folder.path(), 0, {name, "SHA-256"});
    test::write_file(path, good.substr(0, good.size() - 4));
    expect_not_loaded(model, trainer_options(), folder.path(), 0, {name, "bytes"});
    test::write_file(path, good);
  }
  const std::string path = folder / "step-00000001/state.json";
  const std::string good = test::read_file(path);
  std::string bad = good;
  const std::string scale = "\"loss_scale\":";
  ASSERT_NE(bad.find(scale), std::string::npos) << bad;
  bad.insert(bad.find(scale) + scale.size(), "3, \"was\":");
  test::write_file(path, bad);
  expect_not_loaded(model, trainer_options(), folder.path(), 0, {"loss_scale of 3"});
  test::write_file(path, good);
  load(trainer.get(), folder.path());
}

TEST(FromCheckpoint, GivesAnEqualModel) {
  for (rrfp_gpt_flags flags : {0U, RRFP_GPT_TIED | RRFP_GPT_ROTARY,
                               RRFP_GPT_ROTARY | RRFP_GPT_RMS_NORM | RRFP_GPT_SWIGLU}) {
    rrfp_gpt_options options = small_gpt(flags, 0.1);
    options.heads = 4;
    options.kv_heads = 2;
    const ModelPtr model = make_gpt(options);
    const test::ScratchFolder folder;
    const TrainerPtr trainer = make_trainer(model.get(), trainer_options());
    run(trainer.get(), 0, 2);
    save(trainer.get(), folder.path());
    rrfp_error error = {};
    rrfp_model* made = nullptr;
    check(rrfp_model_create_from_checkpoint(folder.path().c_str(), &made, &error), error);
    const ModelPtr again(made);
    const auto text_of = [](const rrfp_model* of) {
      std::string text(1 << 16, '\0');
      size_t size = 0;
      EXPECT_EQ(rrfp_model_describe(of, text.data(), text.size(), &size, nullptr), RRFP_OK);
      return text.substr(0, size - 1);
    };
    EXPECT_EQ(text_of(again.get()), text_of(model.get()));
    EXPECT_TRUE(nlohmann::json::accept(text_of(again.get())));
    const TrainerPtr resumed = make_trainer(again.get(), trainer_options(2));
    load(resumed.get(), folder.path());
    EXPECT_EQ(run(resumed.get(), 2, 4), run(trainer.get(), 2, 4));
  }
}

}  // namespace
}  // namespace rrfp::models
