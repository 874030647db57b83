// SPDX-License-Identifier: Apache-2.0
//
// Trainers that make no sense, and batches that do not fit. Each refusal has a status and a text
// that names the wrong value and what was expected; afterwards everything is as before and can go
// on.
#include <climits>
#include <cmath>

#include "ready.h"

namespace rrfp::models {
namespace {

// --- Making a trainer

class TrainerOptions : public testing::Test {
 protected:
  template <class Change>
  void expect_refused(Change change, std::initializer_list<std::string_view> texts,
                      rrfp_status status = kInvalid) {
    rrfp_trainer_options options = trainer_options(2);
    change(options);
    rrfp_trainer* trainer = nullptr;
    EXPECT_REFUSED(rrfp_trainer_create(model.get(), &options, &trainer, &refusal.error), status,
                   texts);
    EXPECT_EQ(trainer, nullptr);
    rrfp_trainer_destroy(trainer);
  }
  ModelPtr model = make_gpt(small_gpt());
};

TEST_F(TrainerOptions, UnknownValues) {
  expect_refused([](auto& o) { o.flags = 8; }, {"flags", "8"});
  expect_refused([](auto& o) { o.injection = 3; }, {"injection is 3"});
  expect_refused([](auto& o) { o.placement = 3; }, {"placement is 3; expected 0 to 2"});
  expect_refused([](auto& o) { o.order = 4; }, {"order is 4"});
  expect_refused([](auto& o) { o.wake = -1; }, {"wake is -1"});
  expect_refused([](auto& o) { o.optimizer = 2; }, {"optimizer is 2"});
  expect_refused([](auto& o) { o.decay = 3; }, {"decay is 3"});
  expect_refused([](auto& o) { o.reduction = -1; }, {"reduction is -1"});
  expect_refused([](auto& o) { o.non_finite = 2; }, {"non_finite is 2"});
}

TEST_F(TrainerOptions, OptimizerNumbers) {
  expect_refused([](auto& o) { o.lr = -1; }, {"lr is -1"});
  expect_refused([](auto& o) { o.lr = NAN; }, {"lr is nan"});
  expect_refused([](auto& o) { o.lr_min = INFINITY; }, {"lr_min is inf"});
  expect_refused([](auto& o) { o.warmup_steps = -3; }, {"warmup_steps is -3"});
  expect_refused([](auto& o) { o.decay_steps = -4; }, {"decay_steps -4"});
  expect_refused([](auto& o) { o.decay = RRFP_DECAY_COSINE, o.warmup_steps = 5; },
                 {"decay_steps is 0", "warmup_steps = 5"});
  expect_refused([](auto& o) { o.beta1 = 1; }, {"beta1 is 1"});
  expect_refused([](auto& o) { o.beta2 = -0.5; }, {"beta2 is -0.5"});
  expect_refused([](auto& o) { o.epsilon = -1; }, {"epsilon is -1"});
  expect_refused([](auto& o) { o.weight_decay = NAN; }, {"weight_decay is nan"});
  expect_refused([](auto& o) { o.momentum = 1; }, {"momentum is 1"});
  expect_refused([](auto& o) { o.clip_norm = -2; }, {"clip_norm is -2"});
  expect_refused([](auto& o) { o.loss_scale = 3; }, {"loss_scale is 3", "power of two"});
  expect_refused([](auto& o) { o.loss_scale = -2; }, {"loss_scale is -2"});
  expect_refused([](auto& o) { o.loss_scale = INFINITY; }, {"loss_scale is inf"});
  expect_refused([](auto& o) { o.loss_scale = NAN; }, {"loss_scale is nan"});
  expect_refused([](auto& o) { o.loss_scale_growth = -1; }, {"loss_scale_growth is -1"});
  expect_refused([](auto& o) { o.trace_steps = -1; }, {"trace_steps is -1"});
  expect_refused([](auto& o) { o.trace_steps = INT32_MAX; }, {"trace_steps is 2147483647"});
  expect_refused([](auto& o) { o.delay_us_max = -6; }, {"delay_us_max is -6"});
}

TEST_F(TrainerOptions, Pipeline) {
  expect_refused([](auto& o) { o.stages = -1; }, {"stages is -1"});
  expect_refused([](auto& o) { o.stages = 7; }, {"stages is 7", "6 blocks"}, kRange);
  expect_refused([](auto& o) { o.stages = INT32_MAX; }, {"stages is 2147483647"}, kRange);
  expect_refused([](auto& o) { o.ranks = -1; }, {"ranks is -1; expected 1 to"});
  expect_refused([](auto& o) { o.ranks = INT32_MAX; }, {"ranks is 2147483647"});
  expect_refused([](auto& o) { o.ranks = 3; }, {"2 stages and 3 ranks"});
  expect_refused([](auto& o) { o.stages = 3, o.placement = RRFP_PLACEMENT_V; },
                 {"3 stages and 2 ranks"});
  expect_refused([](auto& o) { o.ranks = 3, o.placement = RRFP_PLACEMENT_LOOP; },
                 {"rank 2 owns no stage"}, RRFP_ERR_UNPLACED_STAGE);
  expect_refused([](auto& o) { o.hold_permille = -1; }, {"hold_permille is -1"});
  expect_refused([](auto& o) { o.cap_slots = -1; }, {"cap_slots is -1"});
  expect_refused([](auto& o) { o.cap_bytes = -9; }, {"cap_bytes is -9"});
  expect_refused([](auto& o) { o.watchdog_ms = -2; }, {"watchdog_ms is -2"});
  expect_refused([](auto& o) { o.stages = 4, o.placement = RRFP_PLACEMENT_V, o.cap_slots = 1; },
                 {"cap of rank 0 is 1 slots", "minimum is 2"}, RRFP_ERR_CAP_TOO_SMALL);
  const int32_t blocks[][2] = {{1, 2}, {0, 0}, {0, 6}, {0, -1}};
  const char* const texts[] = {"stage 0 is 1; expected 0 to 0", "stage 1 is 0; expected 1 to 5",
                               "stage 1 is 6; expected 1 to 5", "stage 1 is -1"};
  for (int k = 0; k < 4; ++k) {
    expect_refused([&](auto& o) { o.first_blocks = blocks[k]; }, {texts[k]}, kRange);
  }
}

TEST_F(TrainerOptions, Models) {
  Builder b;
  const int32_t x = b.input("x", RRFP_F32, {1});
  b.block();
  const int32_t y = b.op(RRFP_OP_GELU, {x});
  b.block();
  b.op(RRFP_OP_GELU, {y});
  model = std::move(b.model);
  expect_refused([](auto&) {}, {"no loss"}, RRFP_ERR_BAD_STATE);
  ASSERT_EQ(rrfp_model_set_loss(model.get(), y, nullptr), RRFP_OK);
  expect_refused([](auto&) {}, {"stage 1 (blocks 1 to 1)", "no operation that the loss needs"});
  model = std::move(Builder().model);
  expect_refused([](auto& o) { o.stages = 1; }, {"stages is 1", "0 blocks"}, kRange);
}

TEST_F(TrainerOptions, WhatOnlyAStepCanSee) {
  BatchData data = random_tokens(4, 1, 8, 32, 1);
  const rrfp_batch batch = data.batch(2);
  const auto step_refused = [&](auto change, rrfp_status status,
                                std::initializer_list<std::string_view> texts) {
    rrfp_trainer_options options = trainer_options(2);
    change(options);
    const TrainerPtr trainer = make_trainer(model.get(), options);
    const std::string before = weights_sha256(trainer.get());
    for (int k = 0; k < 2; ++k) {
      EXPECT_REFUSED(rrfp_trainer_step(trainer.get(), &batch, nullptr, &refusal.error), status,
                     texts);
    }
    EXPECT_EQ(weights_sha256(trainer.get()), before);
  };
  step_refused([](auto& o) { o.cap_bytes = 8; }, RRFP_ERR_CAP_TOO_SMALL, {"is 8 bytes", "minimum"});
  rrfp_hint* made = nullptr;
  const char text[] = "0F0,0B0\n1F0,1B0\n";
  ASSERT_EQ(rrfp_hint_create_from_text(text, sizeof text - 1, &made, nullptr), RRFP_OK);
  const HintPtr hint(made);
  step_refused([&](auto& o) { o.hint = hint.get(), o.order = RRFP_ORDER_STRICT; },
               RRFP_ERR_BAD_ORDER, {"microbatch 1"});
}

// --- Batches

TEST(Batches, ThatAreWrong) {
  Ready ready;
  rrfp_trainer* const trainer = ready.trainer.get();
  const std::string before = weights_sha256(trainer);
  BatchData data = random_tokens(4, 1, 8, 32, 1);
  const rrfp_batch good = data.batch(2);
  std::vector<rrfp_tensor> tensors;
  const auto expect_refused = [&](auto change, rrfp_status status,
                                  std::initializer_list<std::string_view> texts) {
    tensors.assign(good.inputs, good.inputs + 8);
    rrfp_batch batch = good;
    batch.inputs = tensors.data();
    change(batch);
    EXPECT_REFUSED(rrfp_trainer_step(trainer, &batch, nullptr, &refusal.error), status, texts);
    EXPECT_REFUSED(rrfp_trainer_evaluate(trainer, &batch, nullptr, &refusal.error), status, texts);
  };
  expect_refused([](auto& b) { b.flags = 2; }, kInvalid, {"flags", "2"});
  for (int32_t count : {0, -1, INT32_MAX}) {
    expect_refused([&](auto& b) { b.microbatches = count; }, kInvalid,
                   {"microbatches is " + std::to_string(count)});
  }
  expect_refused([](auto& b) { b.inputs = nullptr; }, kInvalid, {"rrfp_batch.inputs is null"});
  const auto change_tensor = [&](auto change, rrfp_status status,
                                 std::initializer_list<std::string_view> texts) {
    expect_refused([&](rrfp_batch&) { change(tensors[2]); }, status, texts);  // microbatch 1
  };
  const auto tensor_refused = [&](auto change, std::initializer_list<std::string_view> texts) {
    change_tensor(change, kMismatch, texts);
  };
  tensor_refused([](auto& t) { t.data = nullptr; }, {"\"tokens\" of microbatch 1 has no data"});
  tensor_refused([](auto& t) { t.dtype = RRFP_F32; }, {"microbatch 1 is f32; expected i32"});
  tensor_refused([](auto& t) { t.dtype = RRFP_I64; },
                 {"input 0 of microbatch 1", "dtype is " + std::to_string(RRFP_I64)});
  tensor_refused([](auto& t) { t.ndim = 0; }, {"ndim is 0"});
  tensor_refused([](auto& t) { t.ndim = 9; }, {"ndim is 9"});
  tensor_refused([](auto& t) { t.ndim = 3, t.shape[2] = 1; },
                 {"microbatch 1", "\"tokens\" has shape [1, 8, 1]; expected [?, ?]"});
  tensor_refused([](auto& t) { t.shape[1] = 7; },
                 {"microbatch 1", "(cross_entropy)", "[1, 7] and [1, 8]"});
  tensor_refused([](auto& t) { t.shape[1] = 17; }, {"17 positions; the table has 16"});
  tensor_refused([](auto& t) { t.shape[1] = -1; }, {"microbatch 1", "extent 1 is -1"});
  tensor_refused([](auto& t) { t.shape[0] = 0, t.data = nullptr; },
                 {"microbatch 1", "(cross_entropy)", "[0, 8] and [1, 8]"});
  tensor_refused([](auto& t) { t.shape[0] = t.shape[1] = INT64_MAX; }, {"too large"});
  tensor_refused([](auto& t) { t.strides[0] = 8, t.strides[1] = 2; },
                 {"stride 1 is 2", "contiguous 1"});
  tensor_refused([](auto& t) { t.device_type = 2; }, {"on the CPU"});
  tensor_refused([](auto& t) { t.buffer = reinterpret_cast<rrfp_buffer*>(&t); }, {"a buffer"});
  std::vector<int32_t> ids(8, 3);
  ids[5] = 32;
  change_tensor([&](auto& t) { t.data = ids.data(); }, kRange,
                {"\"tokens\" of microbatch 1 has 32 at position 5; expected 0 to 31"});
  ids[5] = -1;
  expect_refused([&](auto&) { tensors[7].data = ids.data(); }, kRange,
                 {"\"targets\" of microbatch 3 has -1 at position 5"});
  ids.assign(8, -100);
  expect_refused(
      [&](auto&) {
        for (size_t k = 1; k < 8; k += 2) tensors[k].data = ids.data();
      },
      kInvalid, {"no element of the loss counts"});
  const double factors[] = {1, 1, NAN, 1};
  expect_refused([&](auto& b) { b.loss_factors = factors; }, kInvalid, {"microbatch 2", "nan"});

  const auto evaluate_refused = [&](int32_t rounds, rrfp_batch_flags flags, std::string_view text) {
    rrfp_batch batch = good;
    batch.rounds = rounds;
    batch.flags = flags;
    EXPECT_REFUSED(rrfp_trainer_evaluate(trainer, &batch, nullptr, &refusal.error), kInvalid,
                   {text});
  };
  evaluate_refused(2, 0, "rounds is 2");
  evaluate_refused(0, RRFP_BATCH_KEEP_GRADIENTS, "flags 1");
  for (int32_t rounds : {3, -1, 5}) {
    rrfp_batch batch = good;
    batch.rounds = rounds;
    EXPECT_REFUSED(rrfp_trainer_step(trainer, &batch, nullptr, &refusal.error), kInvalid,
                   {"rounds is " + std::to_string(rounds), "microbatches = 4"});
  }

  EXPECT_EQ(weights_sha256(trainer), before);
  const TrainerPtr fresh = make_trainer(ready.model.get(), trainer_options(2));
  EXPECT_EQ(step(trainer, good).loss, step(fresh.get(), good).loss);
  EXPECT_EQ(weights_sha256(trainer), weights_sha256(fresh.get()));
}

}  // namespace
}  // namespace rrfp::models
