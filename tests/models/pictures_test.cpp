// SPDX-License-Identifier: Apache-2.0
//
// Pictures in a sequence of text: what their inputs may be, and what becomes of a microbatch
// without any.
#include <cmath>

#include "ready.h"

namespace rrfp::models {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kLength = 5;

/// Patches of pictures, two tokens each, take the place of tokens; then one packed attention.
struct Reader {
  Builder b;
  int32_t tokens = b.input("tokens", RRFP_I32, {1, kLength});
  int32_t pictures = b.input("pictures", RRFP_F32, {-1, 4, 8, 3});
  int32_t sources = b.input("sources", RRFP_I32, {1, kLength});
  int32_t segments = b.input("segments", RRFP_I32, {1, kLength});
  int32_t positions = b.input("positions", RRFP_I32, {1, kLength});
  int32_t targets = b.input("targets", RRFP_I32, {1, kLength});
  int32_t embedding = b.parameter("embedding", {7, kWidth});
  int32_t convolution = b.parameter("convolution", {kWidth, 48});
  int32_t bias = b.parameter("bias", {kWidth});
  int32_t gain = b.parameter("gain", {kWidth});
  int32_t qkv = b.parameter("qkv", {3 * kWidth, kWidth});
  int32_t head = b.parameter("head", {7, kWidth});
  TrainerPtr trainer;

  Reader() {
    b.block();
    int32_t x = b.op(RRFP_OP_EMBEDDING, {tokens}, {embedding});
    int32_t y = b.op(RRFP_OP_PATCHES, {pictures}, {}, {.kernel = 4, .stride = 4});
    y = b.op(RRFP_OP_LINEAR, {y}, {convolution, bias});
    y = b.op(RRFP_OP_RESHAPE, {y}, {}, {.shape = {0, -1, kWidth}});
    y = b.op(RRFP_OP_GELU, {b.op(RRFP_OP_RMS_NORM, {y}, {gain})});
    x = b.op(RRFP_OP_MERGE_ROWS, {x, y, sources});
    x = b.op(RRFP_OP_LINEAR, {x}, {qkv});
    x = b.op(RRFP_OP_ROTARY, {x, positions}, {}, {.heads = 4, .head_dim = 4});
    x = b.op(RRFP_OP_ATTENTION, {x, segments}, {}, {.flags = RRFP_OP_CAUSAL, .heads = 2});
    x = b.op(RRFP_OP_LINEAR, {x}, {head});
    b.loss(b.op(RRFP_OP_CROSS_ENTROPY, {x, targets}));
    rrfp_trainer_options options = trainer_options();
    options.reduction = RRFP_REDUCTION_SUM;
    trainer = make_trainer(b.model.get(), options);
  }
  [[nodiscard]] std::vector<float> gradient(int32_t parameter) const {
    const size_t count = parameter_elements(b.model.get(), parameter);
    return read(trainer.get(), parameter, RRFP_SLOT_GRADIENT, count);
  }
};

/// A microbatch of it, with `count` pictures.
struct Microbatch {
  std::vector<int32_t> tokens = {1, 2, 3, 4, 5};
  std::vector<int32_t> sources = {-1, -1, -1, -1, -1};
  std::vector<int32_t> segments = {0, 0, 1, 1, -1};
  std::vector<int32_t> positions = {0, 1, 0, 1, 0};
  std::vector<int32_t> targets = {2, 3, 4, 5, -100};
  int64_t count = 0;

  void add_to(BatchData& data) const {
    Random random(5);
    std::vector<float> pixels(static_cast<size_t>(count) * 96);
    for (float& x : pixels) x = random.number();
    data.add_i32(tokens, {1, kLength});
    data.add_f32(pixels, {count, 4, 8, 3});
    data.add_i32(sources, {1, kLength});
    data.add_i32(segments, {1, kLength});
    data.add_i32(positions, {1, kLength});
    data.add_i32(targets, {1, kLength});
  }
};

TEST(Pictures, NoneAreNoError) {
  Reader reader;
  BatchData none;
  Microbatch().add_to(none);
  rrfp_batch batch = none.batch(6);
  std::vector<rrfp_tensor> tensors(batch.inputs, batch.inputs + 6);
  tensors[1].data = nullptr;
  // What strides there would be does not matter.
  tensors[1].strides[0] = 7;
  batch.inputs = tensors.data();
  const double loss = evaluate(reader.trainer.get(), batch).loss_sum;
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(evaluate(reader.trainer.get(), batch).loss_weight, 4);
  batch.flags = RRFP_BATCH_KEEP_GRADIENTS;
  EXPECT_EQ(step(reader.trainer.get(), batch).loss_sum, loss);
  for (const int32_t p : {reader.convolution, reader.bias, reader.gain}) {
    for (const float g : reader.gradient(p)) EXPECT_EQ(g, 0);
  }
  double sum = 0;
  for (const float g : reader.gradient(reader.embedding)) sum += std::abs(static_cast<double>(g));
  EXPECT_GT(sum, 0.01);

  // Pictures that no token stands for change nothing either.
  BatchData unused;
  Microbatch of = {};
  of.count = 2;
  of.add_to(unused);
  EXPECT_EQ(evaluate(reader.trainer.get(), unused.batch(6)).loss_sum, loss);
  // Those that are used do.
  BatchData used;
  of.sources = {-1, 3, 0, -1, -1};
  of.add_to(used);
  EXPECT_NE(evaluate(reader.trainer.get(), used.batch(6)).loss_sum, loss);
}

TEST(Pictures, OneBatchMayHaveMicrobatchesWithAndWithout) {
  Reader reader;
  Microbatch with = {};
  with.count = 1;
  with.sources = {-1, 0, 1, -1, -1};
  BatchData both;
  BatchData alone;
  with.add_to(alone);
  with.add_to(both);
  Microbatch().add_to(both);
  const double one = step(reader.trainer.get(), alone.batch(6, RRFP_BATCH_KEEP_GRADIENTS)).loss_sum;
  const std::vector<float> gradient = reader.gradient(reader.convolution);
  const double two = step(reader.trainer.get(), both.batch(6, RRFP_BATCH_KEEP_GRADIENTS)).loss_sum;
  EXPECT_GT(two, one);
  EXPECT_EQ(reader.gradient(reader.convolution), gradient);
  double sum = 0;
  for (const float g : gradient) sum += std::abs(static_cast<double>(g));
  EXPECT_GT(sum, 0.01);
}

TEST(Pictures, SegmentsDoNotSeeEachOther) {
  Reader reader;
  const auto loss = [&](const std::function<void(Microbatch&)>& change) {
    Microbatch one = {};
    change(one);
    one.targets = {2, 3, -100, -100, -100};  // of the first segment
    BatchData data;
    one.add_to(data);
    return evaluate(reader.trainer.get(), data.batch(6)).loss_sum;
  };
  const double before = loss([](Microbatch&) {});
  EXPECT_EQ(loss([](Microbatch& m) { m.tokens[2] = 0, m.positions[3] = 9; }), before);
  EXPECT_NE(loss([](Microbatch& m) { m.tokens[0] = 0; }), before);
  EXPECT_NE(loss([](Microbatch& m) { m.positions[1] = 9; }), before);
  EXPECT_NE(loss([](Microbatch& m) { m.segments = {0, 2, 1, 1, 1}; }), before);
}

TEST(Pictures, WrongNumbers) {
  Reader reader;
  const auto refused = [&](const std::function<void(Microbatch&)>& change,
                           std::initializer_list<std::string_view> texts) {
    Microbatch wrong = {};
    wrong.count = 2;
    change(wrong);
    BatchData data;
    Microbatch().add_to(data);
    wrong.add_to(data);
    const rrfp_batch batch = data.batch(6);
    EXPECT_REFUSED(rrfp_trainer_step(reader.trainer.get(), &batch, nullptr, &refusal.error), kRange,
                   texts);
    std::vector<int64_t> ns(1);
    const rrfp_tensor* const second = batch.inputs + 6;
    EXPECT_REFUSED(rrfp_model_measure(reader.b.model.get(), second, ns.data(), &refusal.error),
                   kRange, {"of microbatch 0 has"});
  };
  refused([](auto& m) { m.sources[3] = 4; },
          {"\"sources\" of microbatch 1 has 4 at position 3; expected -1 to 3"});
  refused([](auto& m) { m.sources[0] = -2; },
          {"\"sources\" of microbatch 1 has -2 at position 0; expected -1 to 3"});
  refused([](auto& m) { m.sources[1] = 0, m.count = 0; },
          {"\"sources\" of microbatch 1 has 0 at position 1; expected -1 to -1"});
  refused([](auto& m) { m.positions[2] = -1; },
          {"\"positions\" of microbatch 1 has -1 at position 2; expected 0 or more"});
  refused(
      [](auto& m) {
        m.segments = {0, 0, 1, 0, 2};
      },
      {"\"segments\" of microbatch 1 has 0 at position 3; expected runs of equal numbers, and "
       "this one was there before another one"});
  refused(
      [](auto& m) {
        m.segments = {7, -1, 9, 9, 7};
      },
      {"\"segments\" of microbatch 1 has 7 at position 4"});
  refused([](auto& m) { m.tokens[4] = 7; },
          {"\"tokens\" of microbatch 1 has 7 at position 4; expected 0 to 6"});
}

// What stays of a shape says nothing of the rest, even where it is 0.
TEST(Pictures, ReshapeOfNothingKeepsItsWidth) {
  Builder b;
  const int32_t x = b.input("x", RRFP_F32, {-1, 4, 8});
  const int32_t w = b.parameter("w", {2, 32});
  b.block();
  const int32_t flat = b.op(RRFP_OP_RESHAPE, {x}, {}, {.shape = {0, -1}});
  int64_t shape[RRFP_DIMS_MAX] = {};
  ASSERT_EQ(rrfp_model_value_shape(b.model.get(), flat, nullptr, shape, nullptr), RRFP_OK);
  EXPECT_EQ(shape[0], -1);
  EXPECT_EQ(shape[1], 32);
  const int32_t means = b.op(RRFP_OP_MEAN, {x}, {}, {.axis = 1});
  b.loss(b.op(RRFP_OP_CONCAT, {b.op(RRFP_OP_LINEAR, {flat}, {w}), means}));
  const TrainerPtr trainer = make_trainer(b.model.get(), trainer_options());
  BatchData data;
  data.add_f32({}, {0, 4, 8});
  data.add_f32(std::vector<float>(64, 1), {2, 4, 8});
  const rrfp_train_report report = step(trainer.get(), data.batch(1, RRFP_BATCH_KEEP_GRADIENTS));
  EXPECT_EQ(report.loss_weight, 20);
  EXPECT_EQ(read(trainer.get(), 0, RRFP_SLOT_GRADIENT, 64), std::vector<float>(64, 2.0F / 20));
}

TEST(Pictures, TheMeanOfNothingIsRefused) {
  Builder b;
  const int32_t x = b.input("x", RRFP_F32, {-1, 8});
  const int32_t w = b.parameter("w", {8});
  b.block();
  const int32_t y = b.op(RRFP_OP_RMS_NORM, {x}, {w});
  b.loss(b.op(RRFP_OP_MEAN, {y}, {}, {.axis = 0}));
  const TrainerPtr trainer = make_trainer(b.model.get(), trainer_options());
  BatchData data;
  data.add_f32({}, {0, 8});
  const rrfp_batch batch = data.batch(1);
  EXPECT_REFUSED(rrfp_trainer_step(trainer.get(), &batch, nullptr, &refusal.error), kMismatch,
                 {"microbatch 0", "(mean)", "the mean of no elements"});
}

}  // namespace
}  // namespace rrfp::models
