// SPDX-License-Identifier: Apache-2.0
//
// Null where a handle or an argument is expected, and structs that were not prepared: every
// function of rrfp/train.h says so.
#include "ready.h"

namespace rrfp::models {
namespace {

#define EXPECT_NULL_HANDLE(name, call) EXPECT_REFUSED(call, RRFP_ERR_NULL_HANDLE, {name " is null"})
#define EXPECT_NULL_ARGUMENT(name, call) EXPECT_REFUSED(call, kInvalid, {name " is null"})

TEST(Nulls, WhatDestroysOrPreparesTakesNull) {
  rrfp_model_destroy(nullptr);
  rrfp_trainer_destroy(nullptr);
  rrfp_data_destroy(nullptr);
  rrfp_generator_destroy(nullptr);
  rrfp_parameter_options_init(nullptr);
  rrfp_operation_init(nullptr);
  rrfp_gpt_options_init(nullptr);
  rrfp_model_info_init(nullptr);
  rrfp_trainer_options_init(nullptr);
  rrfp_batch_init(nullptr);
  rrfp_train_report_init(nullptr);
  rrfp_save_options_init(nullptr);
  rrfp_data_options_init(nullptr);
  rrfp_data_info_init(nullptr);
  rrfp_sampling_init(nullptr);
}

TEST(Nulls, Handles) {
  rrfp_model* const model = nullptr;
  rrfp_trainer* const trainer = nullptr;
  rrfp_data* const data = nullptr;
  rrfp_generator* const generator = nullptr;
  rrfp_error* const none = nullptr;
  EXPECT_NULL_HANDLE("model", rrfp_model_begin_block(model, "b", 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE(
      "model", rrfp_model_add_input(model, "x", RRFP_F32, 0, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_add_parameter(model, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_add_operation(model, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_set_loss(model, 0, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_set_output(model, 0, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_get_info(model, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_value_shape(model, 0, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model",
                     rrfp_model_parameter_name(model, 0, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model",
                     rrfp_model_parameter_shape(model, 0, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_describe(model, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_measure(model, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_model_partition(model, 1, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("model", rrfp_trainer_create(model, nullptr, nullptr, &refusal.error));

  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_step(trainer, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_evaluate(trainer, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_cancel(trainer, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_get_info(trainer, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_rank_report(trainer, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_first_blocks(trainer, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_read(trainer, 0, 0, nullptr, 0, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_write(trainer, 0, 0, nullptr, 0, &refusal.error));
  EXPECT_NULL_HANDLE("trainer",
                     rrfp_trainer_weights_sha256(trainer, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_write_trace(trainer, "t", &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_save(trainer, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_trainer_load(trainer, "c", 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("trainer", rrfp_generator_create(trainer, 8, nullptr, &refusal.error));

  EXPECT_NULL_HANDLE("data", rrfp_data_get_info(data, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("data", rrfp_data_read(data, 0, 0, 1, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("generator", rrfp_generator_start(generator, nullptr, 0, &refusal.error));
  EXPECT_NULL_HANDLE("generator", rrfp_generator_next(generator, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("generator", rrfp_generator_logits(generator, nullptr, 0, &refusal.error));
  EXPECT_EQ(rrfp_model_set_loss(model, 0, none), RRFP_ERR_NULL_HANDLE) << "the error may be null";
  EXPECT_EQ(rrfp_trainer_step(trainer, nullptr, nullptr, none), RRFP_ERR_NULL_HANDLE);
}

TEST(Nulls, Arguments) {
  Ready ready;
  rrfp_model* const model = ready.model.get();
  rrfp_trainer* const trainer = ready.trainer.get();
  rrfp_model* out = nullptr;
  rrfp_trainer* no_trainer = nullptr;
  int32_t token = 0;
  int64_t ns[6] = {};
  rrfp_tensor tensor = {};
  const rrfp_gpt_options gpt = small_gpt();
  EXPECT_NULL_ARGUMENT("out", rrfp_model_create(nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("options", rrfp_model_create_gpt(nullptr, &out, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_model_create_gpt(&gpt, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("path", rrfp_model_create_from_checkpoint(nullptr, &out, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_model_create_from_checkpoint("c", nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("options", rrfp_model_add_parameter(model, nullptr, &token, &refusal.error));
  EXPECT_NULL_ARGUMENT("operation",
                       rrfp_model_add_operation(model, nullptr, &token, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_model_get_info(model, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("inputs", rrfp_model_measure(model, nullptr, ns, &refusal.error));
  EXPECT_NULL_ARGUMENT("block_ns", rrfp_model_measure(model, &tensor, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("first_blocks",
                       rrfp_model_partition(model, 1, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_trainer_create(model, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("batch", rrfp_trainer_step(trainer, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("batch", rrfp_trainer_evaluate(trainer, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_trainer_get_info(trainer, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_trainer_rank_report(trainer, 0, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("first_blocks", rrfp_trainer_first_blocks(trainer, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("data", rrfp_trainer_read(trainer, 0, 0, nullptr, 512, &refusal.error));
  EXPECT_NULL_ARGUMENT("data", rrfp_trainer_write(trainer, 0, 0, nullptr, 512, &refusal.error));
  EXPECT_NULL_ARGUMENT("buffer",
                       rrfp_trainer_weights_sha256(trainer, nullptr, 65, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("path", rrfp_trainer_write_trace(trainer, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("options", rrfp_trainer_save(trainer, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("path", rrfp_trainer_load(trainer, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("path",
                       rrfp_checkpoint_describe(nullptr, nullptr, 0, nullptr, &refusal.error));
  rrfp_data* no_data = nullptr;
  EXPECT_NULL_ARGUMENT("options", rrfp_data_open(nullptr, &no_data, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_data_open(&ready.data_options, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_data_get_info(ready.data.get(), nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("tokens",
                       rrfp_data_read(ready.data.get(), 0, 0, 1, nullptr, &token, &refusal.error));
  EXPECT_NULL_ARGUMENT("targets",
                       rrfp_data_read(ready.data.get(), 0, 0, 1, &token, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_generator_create(trainer, 8, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("tokens",
                       rrfp_generator_start(ready.generator.get(), nullptr, 1, &refusal.error));
  EXPECT_NULL_ARGUMENT(
      "out_token", rrfp_generator_next(ready.generator.get(), nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("logits",
                       rrfp_generator_logits(ready.generator.get(), nullptr, 32, &refusal.error));
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(no_trainer, nullptr);
}

// --- Structs

TEST(StructSizes, AreChecked) {
  Ready ready;
  rrfp_model* const model = ready.model.get();
  rrfp_trainer* const trainer = ready.trainer.get();
  BatchData tokens = random_tokens(1, 1, 8, 32, 1);
  const int32_t prompt = 1;
  ASSERT_EQ(rrfp_generator_start(ready.generator.get(), &prompt, 1, nullptr), RRFP_OK);
  rrfp_model* made = nullptr;
  rrfp_trainer* created = nullptr;
  rrfp_data* opened = nullptr;
  int32_t token = 0;
  cases::Longer<rrfp_parameter_options> parameter = {};
  cases::Longer<rrfp_operation> operation = {};
  cases::Longer<rrfp_gpt_options> gpt = {small_gpt(), 0};
  cases::Longer<rrfp_trainer_options> options = {trainer_options(), 0};
  cases::Longer<rrfp_batch> batch = {tokens.batch(2), 0};
  cases::Longer<rrfp_save_options> save = {};
  cases::Longer<rrfp_data_options> data = {ready.data_options, 0};
  cases::Longer<rrfp_sampling> sampling = {};
  const auto all_refused = [&](std::string_view part) {
    const rrfp_status status = RRFP_ERR_STRUCT_SIZE;
    EXPECT_REFUSED(rrfp_model_add_parameter(model, &parameter.known, nullptr, &refusal.error),
                   status, {"rrfp_parameter_options", part});
    EXPECT_REFUSED(rrfp_model_add_operation(model, &operation.known, nullptr, &refusal.error),
                   status, {"rrfp_operation", part});
    EXPECT_REFUSED(rrfp_model_create_gpt(&gpt.known, &made, &refusal.error), status,
                   {"rrfp_gpt_options", part});
    EXPECT_REFUSED(rrfp_trainer_create(model, &options.known, &created, &refusal.error), status,
                   {"rrfp_trainer_options", part});
    EXPECT_REFUSED(rrfp_trainer_step(trainer, &batch.known, nullptr, &refusal.error), status,
                   {"rrfp_batch", part});
    EXPECT_REFUSED(rrfp_trainer_evaluate(trainer, &batch.known, nullptr, &refusal.error), status,
                   {"rrfp_batch", part});
    EXPECT_REFUSED(rrfp_trainer_save(trainer, &save.known, &refusal.error), status,
                   {"rrfp_save_options", part});
    EXPECT_REFUSED(rrfp_data_open(&data.known, &opened, &refusal.error), status,
                   {"rrfp_data_options", part});
    EXPECT_REFUSED(
        rrfp_generator_next(ready.generator.get(), &sampling.known, &token, &refusal.error), status,
        {"rrfp_sampling", part});
  };
  const auto set_sizes = [&](bool later) {
    parameter.known.struct_size = later ? sizeof parameter : 0;
    operation.known.struct_size = later ? sizeof operation : 0;
    gpt.known.struct_size = later ? sizeof gpt : 0;
    options.known.struct_size = later ? sizeof options : 0;
    batch.known.struct_size = later ? sizeof batch : 0;
    save.known.struct_size = later ? sizeof save : 0;
    data.known.struct_size = later ? sizeof data : 0;
    sampling.known.struct_size = later ? sizeof sampling : 0;
  };
  set_sizes(false);
  all_refused("struct_size is 0");
  set_sizes(true);
  parameter.later_field = operation.later_field = gpt.later_field = options.later_field = 1;
  batch.later_field = save.later_field = data.later_field = sampling.later_field = 1;
  all_refused("does not know");
  // A later version that sets nothing new.
  batch.later_field = 0;
  EXPECT_EQ(rrfp_trainer_step(trainer, &batch.known, nullptr, nullptr), RRFP_OK);

  rrfp_model_info info = {};
  rrfp_train_report report = {};
  rrfp_step_report step_report = {};
  rrfp_data_info data_info = {};
  const rrfp_status status = RRFP_ERR_STRUCT_SIZE;
  EXPECT_REFUSED(rrfp_model_get_info(model, &info, &refusal.error), status, {"rrfp_model_info"});
  EXPECT_REFUSED(rrfp_trainer_step(trainer, &batch.known, &report, &refusal.error), status,
                 {"rrfp_train_report"});
  EXPECT_REFUSED(rrfp_trainer_evaluate(trainer, &batch.known, &report, &refusal.error), status,
                 {"rrfp_train_report"});
  EXPECT_REFUSED(rrfp_trainer_rank_report(trainer, 0, &step_report, &refusal.error), status,
                 {"rrfp_step_report"});
  EXPECT_REFUSED(rrfp_data_get_info(ready.data.get(), &data_info, &refusal.error), status,
                 {"rrfp_data_info"});
}

}  // namespace
}  // namespace rrfp::models
