// SPDX-License-Identifier: Apache-2.0
//
// Arrays, files, data and generators that are asked for what they do not have, and trainers that
// two threads use at once.
#include <climits>
#include <cmath>
#include <thread>

#include "ready.h"

namespace rrfp::models {
namespace {

TEST(Arrays, ThatDoNotFit) {
  Ready ready;
  rrfp_trainer* const trainer = ready.trainer.get();
  const std::string before = weights_sha256(trainer);
  std::vector<float> data(4096, 1.0F);
  const auto both_refused = [&](int32_t parameter, rrfp_slot slot, size_t count, rrfp_status status,
                                std::initializer_list<std::string_view> texts) {
    EXPECT_REFUSED(rrfp_trainer_read(trainer, parameter, slot, data.data(), count, &refusal.error),
                   status, texts);
    EXPECT_REFUSED(rrfp_trainer_write(trainer, parameter, slot, data.data(), count, &refusal.error),
                   status, texts);
  };
  const int32_t count = parameter_count(ready.model.get());
  both_refused(-1, 0, 512, kRange, {"parameter is -1"});
  both_refused(count, 0, 512, kRange,
               {"parameter is " + std::to_string(count), "0 to " + std::to_string(count - 1)});
  both_refused(0, 4, 512, kInvalid, {"slot is 4; expected 0 to 3"});
  both_refused(0, -1, 512, kInvalid, {"slot is -1"});
  both_refused(0, 0, 511, kInvalid, {"count is 511", "embedding.weight has 512 elements"});
  both_refused(0, 0, SIZE_MAX, kInvalid, {"count is " + std::to_string(SIZE_MAX)});
  EXPECT_EQ(weights_sha256(trainer), before);
  EXPECT_EQ(data, std::vector<float>(4096, 1.0F));

  Builder b;
  int32_t x = b.input("x", RRFP_F32, {1, 2});
  b.block();
  const int32_t frozen = b.parameter("frozen", {2, 2}, 0.5, RRFP_PARAMETER_FROZEN);
  const int32_t trained = b.parameter("trained", {2, 2});
  const int32_t unused = b.parameter("unused", {2, 2});
  x = b.op(RRFP_OP_LINEAR, {x}, {frozen});
  b.loss(b.op(RRFP_OP_LINEAR, {x}, {trained}));
  rrfp_trainer_options options = trainer_options();
  options.optimizer = RRFP_OPTIMIZER_SGD;
  const TrainerPtr sgd = make_trainer(b.model.get(), options);
  const auto missing = [&](int32_t parameter, rrfp_slot slot, std::string_view text) {
    EXPECT_REFUSED(rrfp_trainer_read(sgd.get(), parameter, slot, data.data(), 4, &refusal.error),
                   RRFP_ERR_BAD_STATE, {text, "slot " + std::to_string(slot)});
  };
  missing(trained, RRFP_SLOT_MOMENT1, "trained");
  missing(trained, RRFP_SLOT_MOMENT2, "trained");
  missing(frozen, RRFP_SLOT_GRADIENT, "frozen");
  missing(unused, RRFP_SLOT_GRADIENT, "unused");
}

TEST(Arrays, WrittenGradientsAreNotAddedToTheNextStep) {
  Ready ready;
  rrfp_trainer* const trainer = ready.trainer.get();
  const std::vector<float> large(512, 1e6F);
  ASSERT_EQ(rrfp_trainer_write(trainer, 0, RRFP_SLOT_GRADIENT, large.data(), 512, nullptr),
            RRFP_OK);
  EXPECT_EQ(read(trainer, 0, RRFP_SLOT_GRADIENT, 512), large);
  const TrainerPtr fresh = make_trainer(ready.model.get(), trainer_options(2));
  BatchData data = random_tokens(2, 1, 8, 32, 1);
  step(trainer, data.batch(2));
  step(fresh.get(), data.batch(2));
  EXPECT_EQ(weights_sha256(trainer), weights_sha256(fresh.get()));
}

TEST(Reports, OfWhatIsNotThere) {
  Ready ready;
  rrfp_trainer* const trainer = ready.trainer.get();
  rrfp_step_report report;
  rrfp_step_report_init(&report);
  for (int32_t rank : {-1, 2}) {
    EXPECT_REFUSED(rrfp_trainer_rank_report(trainer, rank, &report, &refusal.error), kRange,
                   {"rank is " + std::to_string(rank) + "; expected 0 to 1"});
  }
  EXPECT_EQ(rrfp_trainer_rank_report(trainer, 1, &report, nullptr), RRFP_OK) << "before any step";
  const std::string path = ready.folder / "trace.json";
  EXPECT_REFUSED(rrfp_trainer_write_trace(trainer, path.c_str(), &refusal.error),
                 RRFP_ERR_BAD_STATE, {"trace_steps"});
  rrfp_trainer_options options = trainer_options(2);
  options.trace_steps = 1;
  const TrainerPtr traced = make_trainer(ready.model.get(), options);
  EXPECT_EQ(rrfp_trainer_write_trace(traced.get(), path.c_str(), nullptr), RRFP_OK);
  const std::string nowhere = ready.folder / "missing/trace.json";
  EXPECT_REFUSED(rrfp_trainer_write_trace(traced.get(), nowhere.c_str(), &refusal.error),
                 RRFP_ERR_IO, {"missing", "No such file"});
  EXPECT_REFUSED(rrfp_trainer_write_trace(traced.get(), "", &refusal.error), kInvalid,
                 {"path is \"\""});
  // The name of a folder.
  EXPECT_REFUSED(
      rrfp_trainer_write_trace(traced.get(), ready.folder.path().c_str(), &refusal.error),
      RRFP_ERR_IO, {ready.folder.path()});
}

TEST(Checkpoints, ThatCannotBe) {
  Ready ready;
  rrfp_trainer* const trainer = ready.trainer.get();
  const std::string before = weights_sha256(trainer);
  const std::string root = ready.folder / "run";
  rrfp_save_options good;
  rrfp_save_options_init(&good);
  good.root = root.c_str();
  const auto save_refused = [&](auto change, std::initializer_list<std::string_view> texts,
                                rrfp_status status = kInvalid) {
    rrfp_save_options options = good;
    change(options);
    EXPECT_REFUSED(rrfp_trainer_save(trainer, &options, &refusal.error), status, texts);
  };
  save_refused([](auto& o) { o.root = nullptr; }, {"rrfp_save_options.root is null"});
  save_refused([](auto& o) { o.keep = -1; }, {"keep is -1"});
  save_refused([](auto& o) { o.user_json = "nope"; }, {"user", "not JSON"});
  save_refused([](auto& o) { o.user_json = "[1]"; }, {"user", "not a JSON object"});
  const std::string inside_a_file = ready.text + "/run";
  save_refused([&](auto& o) { o.root = inside_a_file.c_str(); }, {ready.text}, RRFP_ERR_IO);

  const auto load_refused = [&](const std::string& path, rrfp_load_flags flags, rrfp_status status,
                                std::initializer_list<std::string_view> texts) {
    uint64_t position = 5;
    rrfp_model* model = nullptr;
    EXPECT_REFUSED(rrfp_trainer_load(trainer, path.c_str(), flags, &position, &refusal.error),
                   status, texts);
    EXPECT_EQ(position, 5U);
    if (flags != 0) return;
    EXPECT_REFUSED(rrfp_model_create_from_checkpoint(path.c_str(), &model, &refusal.error), status,
                   texts);
    EXPECT_REFUSED(rrfp_checkpoint_describe(path.c_str(), nullptr, 0, nullptr, &refusal.error),
                   status, texts);
    EXPECT_EQ(model, nullptr);
  };
  load_refused(root, 0, RRFP_ERR_IO, {root, "No such file"});
  load_refused("", 0, RRFP_ERR_IO, {"\"\""});
  load_refused(ready.text, 0, RRFP_ERR_BAD_DATA, {ready.text, "not a folder"});
  load_refused(ready.folder.path(), 0, RRFP_ERR_BAD_DATA, {ready.folder.path(), "state.json"});
  ASSERT_EQ(rrfp_trainer_save(trainer, &good, nullptr), RRFP_OK);
  load_refused(root, 2, kInvalid, {"flags", "2"});
  EXPECT_EQ(weights_sha256(trainer), before);

  // Of a model that was built by hand, which a checkpoint does not describe.
  Builder b;
  const int32_t x = b.input("x", RRFP_F32, {1, 2});
  b.block();
  b.loss(b.op(RRFP_OP_LINEAR, {x}, {b.parameter("w", {1, 2})}));
  const TrainerPtr by_hand = make_trainer(b.model.get(), trainer_options());
  const std::string other = ready.folder / "other";
  good.root = other.c_str();
  ASSERT_EQ(rrfp_trainer_save(by_hand.get(), &good, nullptr), RRFP_OK);
  rrfp_model* model = nullptr;
  EXPECT_REFUSED(rrfp_model_create_from_checkpoint(other.c_str(), &model, &refusal.error),
                 RRFP_ERR_BAD_DATA, {other, "how to build the model"});
  EXPECT_EQ(model, nullptr);
}

TEST(Data, ThatCannotBe) {
  Ready ready;
  const auto expect_refused = [&](auto change, rrfp_status status,
                                  std::initializer_list<std::string_view> texts) {
    rrfp_data_options options = ready.data_options;
    change(options);
    rrfp_data* data = nullptr;
    EXPECT_REFUSED(rrfp_data_open(&options, &data, &refusal.error), status, texts);
    EXPECT_EQ(data, nullptr);
  };
  expect_refused([](auto& o) { o.format = 3; }, kInvalid, {"format is 3"});
  expect_refused([](auto& o) { o.reserved = 7; }, kInvalid, {"reserved is 7"});
  expect_refused([](auto& o) { o.path_count = 0; }, kInvalid, {"path_count is 0"});
  expect_refused([](auto& o) { o.path_count = -1; }, kInvalid, {"path_count is -1"});
  expect_refused([](auto& o) { o.paths = nullptr; }, kInvalid, {"paths is null"});
  const char* const null_path[] = {nullptr};
  expect_refused([&](auto& o) { o.paths = null_path; }, kInvalid, {"paths[0] is null"});
  const std::string missing = ready.folder / "missing";
  const char* const missing_path[] = {missing.c_str()};
  expect_refused([&](auto& o) { o.paths = missing_path; }, RRFP_ERR_IO, {missing, "No such file"});
  expect_refused([](auto& o) { o.vocabulary = 100; }, kInvalid, {"vocabulary is 100", "256"});
  expect_refused([](auto& o) { o.context = 0; }, kInvalid, {"context is 0"});
  expect_refused([](auto& o) { o.context = 101; }, RRFP_ERR_BAD_DATA,
                 {ready.text, "101 tokens", "at least 102"});
  expect_refused([](auto& o) { o.validation_share = 1; }, kInvalid, {"validation share is 1"});
  expect_refused([](auto& o) { o.validation_share = NAN; }, kInvalid, {"validation share is nan"});
  expect_refused([](auto& o) { o.context = 100, o.validation_share = 0.5; }, RRFP_ERR_BAD_DATA,
                 {"validation share of 0.5", "1 windows"});
  expect_refused([](auto& o) { o.format = RRFP_DATA_U16; }, kInvalid, {"vocabulary is 0"});
  expect_refused([](auto& o) { o.format = RRFP_DATA_U16, o.vocabulary = 9; }, RRFP_ERR_BAD_DATA,
                 {ready.text, "101 bytes", "multiple of 2"});
  const std::string ids = ready.folder / "ids";
  test::write_file(ids, std::string(100, 'a'));
  const char* const ids_path[] = {ids.c_str()};
  expect_refused([&](auto& o) { o.paths = ids_path, o.format = RRFP_DATA_U32, o.vocabulary = 9; },
                 RRFP_ERR_BAD_DATA, {ids, "token 0 is 1633771873", "vocabulary 9"});

  int32_t tokens[16] = {};
  const rrfp_data* const data = ready.data.get();
  EXPECT_REFUSED(rrfp_data_read(data, 2, 0, 1, tokens, tokens, &refusal.error), kInvalid,
                 {"split is 2"});
  EXPECT_REFUSED(rrfp_data_read(data, 0, 0, -1, tokens, tokens, &refusal.error), kInvalid,
                 {"samples is -1"});
  // The last position there is; the order of the windows goes on for ever.
  EXPECT_EQ(rrfp_data_read(data, 0, UINT64_MAX - 1, 2, tokens, tokens, nullptr), RRFP_OK);
  rrfp_data_options all = ready.data_options;
  all.validation_share = 0;
  rrfp_data* opened = nullptr;
  ASSERT_EQ(rrfp_data_open(&all, &opened, nullptr), RRFP_OK);
  const DataPtr no_validation(opened);
  EXPECT_REFUSED(
      rrfp_data_read(opened, RRFP_SPLIT_VALIDATION, 0, 1, tokens, tokens, &refusal.error),
      RRFP_ERR_BAD_STATE, {"no samples in this split"});
}

TEST(Generators, ThatAreAskedForTheImpossible) {
  Ready ready;
  rrfp_generator* const generator = ready.generator.get();
  int32_t token = -5;
  float logits[32] = {};
  const rrfp_status state = RRFP_ERR_BAD_STATE;
  EXPECT_REFUSED(rrfp_generator_next(generator, nullptr, &token, &refusal.error), state, {"start"});
  EXPECT_REFUSED(rrfp_generator_logits(generator, logits, 32, &refusal.error), state, {"start"});
  EXPECT_REFUSED(rrfp_generator_start(generator, nullptr, 0, &refusal.error), kInvalid,
                 {"prompt is empty"});
  const int32_t prompt[] = {1, 2, 32, -1};
  EXPECT_REFUSED(rrfp_generator_start(generator, prompt, 3, &refusal.error), kRange,
                 {"token 2 of the prompt is 32; expected 0 to 31"});
  EXPECT_REFUSED(rrfp_generator_start(generator, prompt + 3, 1, &refusal.error), kRange,
                 {"token 0 of the prompt is -1"});
  ASSERT_EQ(rrfp_generator_start(generator, prompt, 2, nullptr), RRFP_OK);
  EXPECT_REFUSED(rrfp_generator_logits(generator, logits, 31, &refusal.error), kInvalid,
                 {"count is 31", "32 tokens"});
  const auto sampling_refused = [&](auto change, std::string_view text) {
    rrfp_sampling sampling;
    rrfp_sampling_init(&sampling);
    change(sampling);
    EXPECT_REFUSED(rrfp_generator_next(generator, &sampling, &token, &refusal.error), kInvalid,
                   {text});
  };
  sampling_refused([](auto& s) { s.temperature = -1; }, "temperature is -1");
  sampling_refused([](auto& s) { s.temperature = NAN; }, "temperature is nan");
  sampling_refused([](auto& s) { s.temperature = INFINITY; }, "temperature is inf");
  sampling_refused([](auto& s) { s.top_k = -2; }, "top_k is -2");
  sampling_refused([](auto& s) { s.top_p = 0; }, "top_p is 0");
  sampling_refused([](auto& s) { s.top_p = 1.5; }, "top_p is 1.5");
  sampling_refused([](auto& s) { s.top_p = NAN; }, "top_p is nan");
  EXPECT_EQ(token, -5);

  rrfp_generator* made = nullptr;
  const auto create_refused = [&](rrfp_trainer* trainer, int32_t context, rrfp_status status,
                                  std::initializer_list<std::string_view> texts) {
    EXPECT_REFUSED(rrfp_generator_create(trainer, context, &made, &refusal.error), status, texts);
    EXPECT_EQ(made, nullptr);
  };
  create_refused(ready.trainer.get(), 0, kInvalid, {"context is 0"});
  create_refused(ready.trainer.get(), -3, kInvalid, {"context is -3"});
  create_refused(ready.trainer.get(), 17, kInvalid, {"context is 17", "16 positions"});
  create_refused(ready.trainer.get(), INT32_MAX, kInvalid, {"context is 2147483647"});

  Builder b;
  const int32_t x = b.input("x", RRFP_F32, {-1, -1, 2});
  b.block();
  const int32_t y = b.op(RRFP_OP_LINEAR, {x}, {b.parameter("w", {2, 2})});
  b.loss(y);
  const TrainerPtr without = make_trainer(b.model.get(), trainer_options());
  create_refused(without.get(), 4, state, {"no output"});
  b.output(y);
  const TrainerPtr of_floats = make_trainer(b.model.get(), trainer_options());
  create_refused(of_floats.get(), 4, kInvalid, {"one input", "token ids"});
}

TEST(Generators, SayThatTheWeightsAreBroken) {
  Ready ready;
  write(ready.trainer.get(), 0, std::vector<float>(512, NAN));
  const int32_t prompt = 3;
  int32_t token = 0;
  ASSERT_EQ(rrfp_generator_start(ready.generator.get(), &prompt, 1, nullptr), RRFP_OK);
  EXPECT_REFUSED(rrfp_generator_next(ready.generator.get(), nullptr, &token, &refusal.error),
                 RRFP_ERR_NON_FINITE, {"not finite"});
}

TEST(Busy, IsEveryCallButCancel) {
  Ready ready;
  rrfp_trainer_options options = trainer_options(2);
  options.delay_us_max = 1'000'000;
  const TrainerPtr trainer = make_trainer(ready.model.get(), options);
  rrfp_generator* made = nullptr;
  ASSERT_EQ(rrfp_generator_create(trainer.get(), 8, &made, nullptr), RRFP_OK);
  const GeneratorPtr generator(made);
  BatchData data = random_tokens(8, 1, 8, 32, 1);
  const rrfp_batch batch = data.batch(2);
  std::thread stepping([&] {
    rrfp_error error = {};
    do {  // the other thread looks, too
      error = failure_of([&] { step(trainer.get(), batch); });
    } while (error.status == RRFP_ERR_BUSY);
    EXPECT_EQ(error.status, RRFP_ERR_CANCELLED) << error.text;
  });
  char text[65] = {};
  while (rrfp_trainer_weights_sha256(trainer.get(), text, 65, nullptr, nullptr) != RRFP_ERR_BUSY) {
    std::this_thread::yield();
  }
  const auto expect_busy = [&](auto call) {
    EXPECT_REFUSED(call(&refusal.error), RRFP_ERR_BUSY, {"another thread"});
  };
  rrfp_trainer* const t = trainer.get();
  rrfp_save_options save;
  rrfp_save_options_init(&save);
  const std::string root = ready.folder / "run";
  save.root = root.c_str();
  float value[512] = {};
  int32_t token = 1;
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_step(t, &batch, nullptr, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_evaluate(t, &batch, nullptr, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_read(t, 0, 0, value, 512, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_write(t, 0, 0, value, 512, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_first_blocks(t, &token, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_rank_report(t, 0, nullptr, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_write_trace(t, root.c_str(), e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_save(t, &save, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_trainer_load(t, root.c_str(), 0, nullptr, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_generator_create(t, 8, &made, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_generator_start(generator.get(), &token, 1, e); });
  expect_busy(
      [&](rrfp_error* e) { return rrfp_generator_next(generator.get(), nullptr, &token, e); });
  expect_busy([&](rrfp_error* e) { return rrfp_generator_logits(generator.get(), value, 32, e); });
  EXPECT_EQ(rrfp_trainer_cancel(t, nullptr), RRFP_OK);
  stepping.join();
  EXPECT_EQ(rrfp_trainer_weights_sha256(t, text, 65, nullptr, nullptr), RRFP_OK);
}

}  // namespace
}  // namespace rrfp::models
