// SPDX-License-Identifier: Apache-2.0
//
// Every operation against finite differences, as a user would use it: its inputs are computed from
// trainable tables, so that the gradients of the tables are its input gradients.
#include <cmath>

#include "harness.h"

namespace rrfp::models {
namespace {

/// An integer input of the operation.
struct Ints {
  std::vector<int32_t> data;
  std::vector<int64_t> shape;
};

struct OpCase {
  const char* name;
  /// Adds the operation and gives the value that is compared with a target by squared error.
  std::function<int32_t(Builder&)> build;
  std::vector<int64_t> output;  // its shape
  std::vector<Ints> ints = {};  // values 2, 3, ..
};

constexpr int64_t kRows = 6;

/// A value [kRows, width] that is a trainable table: the rows in order.
int32_t table(Builder& b, int32_t rows, const std::string& name, int64_t width) {
  return b.op(RRFP_OP_EMBEDDING, {rows}, {b.parameter(name, {kRows, width})});
}
int32_t sequences(Builder& b, int32_t x, int64_t width) {  // 2 sequences of 3
  return b.op(RRFP_OP_RESHAPE, {x}, {}, {.shape = {2, 3, width}});
}

class Gradients : public testing::TestWithParam<OpCase> {};

int32_t pictures(Builder& b) {  // 2 of 3 x 4 pixels with 2 channels
  return b.op(RRFP_OP_RESHAPE, {table(b, 0, "x", 8)}, {}, {.shape = {2, 3, 4, 2}});
}

// Value 0 is the row numbers, value 1 the target in every model below.
const OpCase kCases[] = {
    {"linear",
     [](Builder& b) {
       return b.op(RRFP_OP_LINEAR, {table(b, 0, "x", 5)},
                   {b.parameter("w", {4, 5}), b.parameter("b", {4})});
     },
     {kRows, 4}},
    {"linear_without_bias",
     [](Builder& b) {
       return b.op(RRFP_OP_LINEAR, {table(b, 0, "x", 5)}, {b.parameter("w", {3, 5})});
     },
     {kRows, 3}},
    {"positions",
     [](Builder& b) {
       const int32_t x = sequences(b, table(b, 0, "x", 4), 4);
       return b.op(RRFP_OP_POSITIONS, {x}, {b.parameter("p", {5, 4})});
     },
     {2, 3, 4}},
    {"rotary",
     [](Builder& b) {
       const int32_t x = sequences(b, table(b, 0, "x", 10), 10);
       return b.op(RRFP_OP_ROTARY, {x}, {}, {.heads = 2, .head_dim = 4});
     },
     {2, 3, 10}},
    {"layer_norm",
     [](Builder& b) {
       return b.op(RRFP_OP_LAYER_NORM, {table(b, 0, "x", 7)},
                   {b.parameter("g", {7}), b.parameter("b", {7})});
     },
     {kRows, 7}},
    {"layer_norm_with_frozen_gain",
     [](Builder& b) {
       return b.op(RRFP_OP_LAYER_NORM, {table(b, 0, "x", 7)},
                   {b.parameter("g", {7}, 0.5, RRFP_PARAMETER_FROZEN), b.parameter("b", {7})});
     },
     {kRows, 7}},
    {"rms_norm",
     [](Builder& b) {
       return b.op(RRFP_OP_RMS_NORM, {table(b, 0, "x", 7)}, {b.parameter("g", {7})});
     },
     {kRows, 7}},
    {"gelu", [](Builder& b) { return b.op(RRFP_OP_GELU, {table(b, 0, "x", 5)}); }, {kRows, 5}},
    {"silu", [](Builder& b) { return b.op(RRFP_OP_SILU, {table(b, 0, "x", 5)}); }, {kRows, 5}},
    {"swiglu",
     [](Builder& b) {
       return b.op(RRFP_OP_SWIGLU, {table(b, 0, "x", 5), table(b, 0, "y", 5)});
     },
     {kRows, 5}},
    {"swiglu_of_one_value",
     [](Builder& b) {
       const int32_t x = table(b, 0, "x", 5);
       return b.op(RRFP_OP_SWIGLU, {x, x});
     },
     {kRows, 5}},
    {"attention",
     [](Builder& b) {
       return b.op(RRFP_OP_ATTENTION, {sequences(b, table(b, 0, "x", 12), 12)}, {}, {.heads = 2});
     },
     {2, 3, 4}},
    {"causal_attention_with_grouped_queries",
     [](Builder& b) {
       return b.op(RRFP_OP_ATTENTION, {sequences(b, table(b, 0, "x", 16), 16)}, {},
                   {.flags = RRFP_OP_CAUSAL, .heads = 4, .kv_heads = 2});
     },
     {2, 3, 8}},
    {"attention_over_three_values",
     [](Builder& b) {
       return b.op(RRFP_OP_ATTENTION,
                   {sequences(b, table(b, 0, "q", 8), 8), sequences(b, table(b, 0, "k", 4), 4),
                    sequences(b, table(b, 0, "v", 4), 4)},
                   {}, {.heads = 2, .kv_heads = 1});
     },
     {2, 3, 8}},
    {"attention_of_one_value_to_itself",
     [](Builder& b) {
       const int32_t x = sequences(b, table(b, 0, "x", 4), 4);
       return b.op(RRFP_OP_ATTENTION, {x, x, x}, {}, {.flags = RRFP_OP_CAUSAL, .heads = 2});
     },
     {2, 3, 4}},
    {"add",
     [](Builder& b) {
       return b.op(RRFP_OP_ADD, {table(b, 0, "x", 5), table(b, 0, "y", 5)});
     },
     {kRows, 5}},
    {"add_to_itself",
     [](Builder& b) {
       const int32_t x = table(b, 0, "x", 5);
       return b.op(RRFP_OP_ADD, {x, x});
     },
     {kRows, 5}},
    {"mul",
     [](Builder& b) {
       return b.op(RRFP_OP_MUL, {table(b, 0, "x", 5), table(b, 0, "y", 5)});
     },
     {kRows, 5}},
    {"square",
     [](Builder& b) {
       const int32_t x = table(b, 0, "x", 5);
       return b.op(RRFP_OP_MUL, {x, x});
     },
     {kRows, 5}},
    {"concat_last_axis",
     [](Builder& b) {
       const int32_t x = table(b, 0, "x", 3);
       return b.op(RRFP_OP_CONCAT, {x, table(b, 0, "y", 4), x});
     },
     {kRows, 10}},
    {"concat_first_axis",
     [](Builder& b) {
       return b.op(RRFP_OP_CONCAT, {table(b, 0, "x", 3), table(b, 0, "y", 3)}, {}, {.axis = 0});
     },
     {2 * kRows, 3}},
    {"reshape",
     [](Builder& b) {
       return b.op(RRFP_OP_RESHAPE, {table(b, 0, "x", 4)}, {}, {.shape = {0, 2, -1}});
     },
     {kRows, 2, 2}},
    {"mean",
     [](Builder& b) {
       return b.op(RRFP_OP_MEAN, {sequences(b, table(b, 0, "x", 4), 4)}, {}, {.axis = 1});
     },
     {2, 4}},
    {"rotary_with_positions",
     [](Builder& b) {
       const int32_t x = sequences(b, table(b, 0, "x", 10), 10);
       return b.op(RRFP_OP_ROTARY, {x, 2}, {}, {.heads = 2, .head_dim = 4});
     },
     {2, 3, 10},
     {{{4, 0, 1, 0, 9, 0}, {2, 3}}}},
    {"attention_in_segments",
     [](Builder& b) {
       return b.op(RRFP_OP_ATTENTION, {sequences(b, table(b, 0, "x", 12), 12), 2}, {},
                   {.heads = 2});
     },
     {2, 3, 4},
     {{{5, 1, 1, 0, 0, 2}, {2, 3}}}},
    {"causal_attention_in_segments_over_three_values",
     [](Builder& b) {
       return b.op(RRFP_OP_ATTENTION,
                   {sequences(b, table(b, 0, "q", 8), 8), sequences(b, table(b, 0, "k", 4), 4),
                    sequences(b, table(b, 0, "v", 4), 4), 2},
                   {}, {.flags = RRFP_OP_CAUSAL, .heads = 2, .kv_heads = 1});
     },
     {2, 3, 8},
     {{{5, 5, 1, 1, 0, 0}, {2, 3}}}},
    {"attention_in_segments_of_one_value_to_itself",
     [](Builder& b) {
       const int32_t x = sequences(b, table(b, 0, "x", 4), 4);
       return b.op(RRFP_OP_ATTENTION, {x, x, x, 2}, {}, {.heads = 2});
     },
     {2, 3, 4},
     {{{1, 1, 2, 0, 0, 0}, {2, 3}}}},
    {"patches_that_overlap",
     [](Builder& b) {
       return b.op(RRFP_OP_PATCHES, {pictures(b)}, {}, {.kernel = 2, .stride = 1, .padding = 1});
     },
     {2, 4, 5, 8}},
    {"patches_that_leave_pixels_out",
     [](Builder& b) {
       return b.op(RRFP_OP_PATCHES, {pictures(b)}, {}, {.kernel = 2, .stride = 3});
     },
     {2, 1, 1, 8}},
    {"convolution",
     [](Builder& b) {
       const int32_t x =
           b.op(RRFP_OP_PATCHES, {pictures(b)}, {}, {.kernel = 3, .stride = 2, .padding = 1});
       return b.op(RRFP_OP_LINEAR, {x}, {b.parameter("w", {3, 18}), b.parameter("b", {3})});
     },
     {2, 2, 2, 3}},
    {"patches_added_to_another_gradient",
     [](Builder& b) {
       const int32_t x = pictures(b);
       const int32_t y = b.op(RRFP_OP_PATCHES, {x}, {}, {.kernel = 1, .stride = 1});
       return b.op(RRFP_OP_MUL, {x, y});
     },
     {2, 3, 4, 2}},
    {"merge_rows",
     [](Builder& b) {
       const int32_t x = sequences(b, table(b, 0, "x", 5), 5);
       return b.op(RRFP_OP_MERGE_ROWS, {x, table(b, 0, "y", 5), 2});
     },
     {2, 3, 5},
     {{{-1, 2, 2, -1, 0, 5}, {2, 3}}}},
    {"merge_rows_of_one_value",
     [](Builder& b) {
       const int32_t x = table(b, 0, "x", 5);
       return b.op(RRFP_OP_MERGE_ROWS, {x, x, 2});
     },
     {kRows, 5},
     {{{-1, 0, 0, -1, 5, -1}, {kRows}}}},
    {"merge_rows_added_to_other_gradients",
     [](Builder& b) {
       const int32_t x = table(b, 0, "x", 5);
       const int32_t y = table(b, 0, "y", 5);
       const int32_t merged = b.op(RRFP_OP_MERGE_ROWS, {x, y, 2});
       return b.op(RRFP_OP_MUL, {b.op(RRFP_OP_ADD, {x, y}), merged});
     },
     {kRows, 5},
     {{{-1, 0, 0, -1, 5, -1}, {kRows}}}},
};

/// Compares the gradient of every weight with a central difference of losses.
void compare(rrfp_model* model, rrfp_trainer* trainer, BatchData& data, size_t inputs) {
  step(trainer, data.batch(inputs, RRFP_BATCH_KEEP_GRADIENTS));
  const int32_t count = parameter_count(model);
  std::vector<std::vector<float>> gradients;
  for (int32_t p = 0; p < count; ++p) {
    rrfp_error error = {};
    std::vector<float> gradient(parameter_elements(model, p));
    // A frozen parameter has none.
    const rrfp_status status =
        rrfp_trainer_read(trainer, p, RRFP_SLOT_GRADIENT, gradient.data(), gradient.size(), &error);
    if (status < 0) gradient.clear();
    gradients.push_back(gradient);
  }
  // Losses are f32 numbers of about 1 that are summed in f64: noise of 1e-7 / kDelta, and an error
  // of kDelta^2 of the difference itself.
  constexpr float kDelta = 1.0F / 128;
  constexpr double kTolerance = 2e-3;
  for (int32_t p = 0; p < count; ++p) {
    const std::vector<float>& gradient = gradients[static_cast<size_t>(p)];
    std::vector<float> weights = read(trainer, p, RRFP_SLOT_WEIGHT, parameter_elements(model, p));
    double largest = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const float kept = weights[i];
      double losses[2] = {};
      for (int side = 0; side < 2; ++side) {
        weights[i] = kept + (side == 0 ? kDelta : -kDelta);
        write(trainer, p, weights);
        losses[side] = evaluate(trainer, data.batch(inputs)).loss_sum;
      }
      weights[i] = kept;
      const double expected = (losses[0] - losses[1]) / (2.0 * kDelta);
      largest = std::max(largest, std::abs(expected));
      EXPECT_NEAR(gradient[i], expected, kTolerance * (1 + std::abs(expected)))
          << parameter_name(model, p) << "[" << i << "]";
    }
    write(trainer, p, weights);
    // Far above what the tolerance would let pass.
    EXPECT_TRUE(gradient.empty() || largest > 20 * kTolerance) << parameter_name(model, p);
  }
}

TEST_P(Gradients, EqualFiniteDifferences) {
  const OpCase& c = GetParam();
  Builder b;
  const int32_t rows = b.input("rows", RRFP_I32, {kRows});
  ASSERT_EQ(rows, 0);
  const int32_t target = b.input("target", RRFP_F32, c.output);
  for (const Ints& ints : c.ints) b.input("ints", RRFP_I32, ints.shape);
  b.block();
  b.loss(b.op(RRFP_OP_SQUARED_ERROR, {c.build(b), target}));
  rrfp_trainer_options options = trainer_options();
  options.reduction = RRFP_REDUCTION_SUM;
  const TrainerPtr trainer = make_trainer(b.model.get(), options);

  Random random(3);
  size_t elements = 1;
  for (int64_t extent : c.output) elements *= static_cast<size_t>(extent);
  std::vector<float> goal(elements);
  for (float& x : goal) x = random.number();
  BatchData data;
  data.add_i32({0, 1, 2, 3, 4, 5}, {kRows});
  data.add_f32(goal, c.output);
  for (const Ints& ints : c.ints) data.add_i32(ints.data, ints.shape);
  compare(b.model.get(), trainer.get(), data, 2 + c.ints.size());
}

INSTANTIATE_TEST_SUITE_P(EveryOperation, Gradients, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(GradientsOfLosses, CrossEntropyEqualsFiniteDifferences) {
  Builder b;
  const int32_t rows = b.input("rows", RRFP_I32, {kRows});
  const int32_t targets = b.input("targets", RRFP_I32, {kRows});
  b.block();
  b.loss(b.op(RRFP_OP_CROSS_ENTROPY, {table(b, rows, "x", 5), targets}, {}, {.ignore_index = -1}));
  rrfp_trainer_options options = trainer_options();
  options.reduction = RRFP_REDUCTION_SUM;
  const TrainerPtr trainer = make_trainer(b.model.get(), options);
  BatchData data;
  data.add_i32({0, 1, 2, 3, 4, 5}, {kRows});
  data.add_i32({4, -1, 0, 2, 2, -1}, {kRows});
  compare(b.model.get(), trainer.get(), data, 2);
  EXPECT_EQ(evaluate(trainer.get(), data.batch(2)).loss_weight, 4);
}

TEST(GradientsOfLosses, AnyValueMayBeTheLoss) {
  Builder b;
  const int32_t rows = b.input("rows", RRFP_I32, {kRows});
  b.block();
  const int32_t x = table(b, rows, "x", 5);
  b.loss(b.op(RRFP_OP_MUL, {x, b.op(RRFP_OP_GELU, {x})}));
  rrfp_trainer_options options = trainer_options();
  options.reduction = RRFP_REDUCTION_SUM;
  const TrainerPtr trainer = make_trainer(b.model.get(), options);
  BatchData data;
  data.add_i32({0, 1, 2, 3, 4, 5}, {kRows});
  compare(b.model.get(), trainer.get(), data, 1);
}

// Dropout in a training step scales what it keeps and gives exactly that factor to the gradient.
TEST(GradientsOfDropout, MaskOfTheGradientIsThatOfTheValue) {
  Builder b;
  const int32_t rows = b.input("rows", RRFP_I32, {kRows});
  b.block();
  const int32_t x = table(b, rows, "x", 64);
  b.loss(b.op(RRFP_OP_DROPOUT, {x}, {}, {.probability = 0.25}));
  rrfp_trainer_options options = trainer_options();
  options.reduction = RRFP_REDUCTION_SUM;
  const TrainerPtr trainer = make_trainer(b.model.get(), options);
  BatchData data;
  data.add_i32({0, 1, 2, 3, 4, 5}, {kRows});
  const double loss = step(trainer.get(), data.batch(1, RRFP_BATCH_KEEP_GRADIENTS)).loss_sum;
  const size_t count = static_cast<size_t>(kRows) * 64;
  const std::vector<float> weights = read(trainer.get(), 0, RRFP_SLOT_WEIGHT, count);
  const std::vector<float> gradient = read(trainer.get(), 0, RRFP_SLOT_GRADIENT, count);
  double expected = 0;
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(gradient[i] == 0 || gradient[i] == 4.0F / 3) << gradient[i];
    kept += gradient[i] != 0 ? 1 : 0;
    expected += static_cast<double>(weights[i]) * static_cast<double>(gradient[i]);
  }
  EXPECT_NEAR(loss, expected, 1e-4);
  EXPECT_NEAR(static_cast<double>(kept), 0.75 * static_cast<double>(count), 40);
  // Evaluation drops nothing.
  double sum = 0;
  for (float w : weights) sum += static_cast<double>(w);
  EXPECT_NEAR(evaluate(trainer.get(), data.batch(1)).loss_sum, sum, 1e-4);
}

}  // namespace
}  // namespace rrfp::models
