// SPDX-License-Identifier: Apache-2.0
//
// Models that make no sense. Each refusal has a status and a text that names the wrong value and
// what was expected, and changes nothing.
#include <climits>
#include <cmath>

#include "harness.h"
#include "tests/cases/misuse.h"

namespace rrfp::models {
namespace {

testing::AssertionResult refused(const std::function<void()>& body, rrfp_status status,
                                 std::initializer_list<std::string_view> parts) {
  cases::Refusal refusal;
  refusal.error = failure_of(body);
  return refusal.is(refusal.error.status, status, parts);
}

/// A model to add operations to.
struct Parts {
  Builder b;
  int32_t ids = b.input("ids", RRFP_I32, {-1, -1});
  int32_t x = b.input("x", RRFP_F32, {-1, -1, 8});
  int32_t y = b.input("y", RRFP_F32, {-1, -1, 6});
  int32_t fixed = b.input("fixed", RRFP_F32, {2, 9, 8});
  int32_t other = b.input("other", RRFP_F32, {2, 5, 8});
  int32_t flat = b.input("flat", RRFP_F32, {8});
  int32_t wide_ids = b.input("wide_ids", RRFP_I32, {-1, -1, -1});
  int32_t w38 = b.parameter("w38", {3, 8});
  int32_t w46 = b.parameter("w46", {4, 6});
  int32_t w48 = b.parameter("w48", {4, 8});
  int32_t v4 = b.parameter("v4", {4});
  int32_t v8 = b.parameter("v8", {8});
  Parts() { b.block("body"); }

  testing::AssertionResult op_refused(rrfp_op kind, const std::vector<int32_t>& inputs,
                                      const std::vector<int32_t>& parameters,
                                      std::initializer_list<std::string_view> texts,
                                      const Builder::Extra& extra = {},
                                      rrfp_status status = RRFP_ERR_TENSOR_MISMATCH) {
    return refused([&] { b.op(kind, inputs, parameters, extra); }, status, texts);
  }
};

#define EXPECT_OP_REFUSED(...) EXPECT_TRUE(parts.op_refused(__VA_ARGS__))

TEST(WrongOperations, Linear) {
  Parts parts;
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {}, {parts.w38},
                    {"operation 0 (linear) of body", "has 0 inputs; expected 1"});
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {parts.x}, {}, {"has 0 parameters; expected 1 to 2"});
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {parts.ids}, {parts.w38}, {"input 0 is i32; expected f32"});
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {parts.x}, {parts.w46},
                    {"parameter w46 has shape [4, 6]; expected [?, 8]"});
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {parts.x}, {parts.v8},
                    {"parameter v8 has shape [8]; expected [?, 8]"});
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {parts.x}, {parts.w38, parts.v4},
                    {"parameter v4 has shape [4]; expected [3]"});
}

TEST(WrongOperations, TablesAndPositions) {
  Parts parts;
  EXPECT_OP_REFUSED(RRFP_OP_EMBEDDING, {parts.x}, {parts.w38}, {"input 0 is f32; expected i32"});
  EXPECT_OP_REFUSED(RRFP_OP_EMBEDDING, {parts.ids}, {parts.v4}, {"v4 has shape [4]"});
  EXPECT_OP_REFUSED(RRFP_OP_EMBEDDING, {parts.ids}, {}, {"has 0 parameters; expected 1"});
  EXPECT_OP_REFUSED(RRFP_OP_POSITIONS, {parts.fixed}, {parts.w48},
                    {"(positions)", "9 positions; the table has 4"});
  EXPECT_OP_REFUSED(RRFP_OP_POSITIONS, {parts.flat}, {parts.w48}, {"[8]; expected at least 2"});
  EXPECT_OP_REFUSED(RRFP_OP_POSITIONS, {parts.x}, {parts.w46}, {"[4, 6]; expected [?, 8]"});
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {parts.x}, {}, {"heads is 0", "head_dim 0"});
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {parts.x}, {}, {"head_dim 3"}, {.heads = 1, .head_dim = 3});
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {parts.x}, {}, {"last extent is 8; the heads need 12"},
                    {.heads = 3, .head_dim = 4});
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {parts.x}, {}, {"base -2"},
                    {.heads = 1, .head_dim = 2, .base = -2});
  const Builder::Extra turn = {.heads = 1, .head_dim = 2};
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {}, {}, {"has 0 inputs; expected 1, and perhaps i32 positions"},
                    turn);
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {parts.x, parts.ids, parts.ids}, {}, {"has 3 inputs"}, turn);
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {parts.x, parts.x}, {}, {"input 1 is f32; expected i32"}, turn);
  EXPECT_OP_REFUSED(RRFP_OP_ROTARY, {parts.x, parts.wide_ids}, {},
                    {"input 1 has shape [?, ?, ?]; expected [?, ?]"}, turn);
}

TEST(WrongOperations, Norms) {
  Parts parts;
  EXPECT_OP_REFUSED(RRFP_OP_LAYER_NORM, {parts.x}, {}, {"has 0 parameters; expected 1 to 2"});
  EXPECT_OP_REFUSED(RRFP_OP_LAYER_NORM, {parts.x}, {parts.v4}, {"[4]; expected [8]"});
  EXPECT_OP_REFUSED(RRFP_OP_LAYER_NORM, {parts.x}, {parts.v8}, {"epsilon is 0"}, {.epsilon = 0});
  EXPECT_OP_REFUSED(RRFP_OP_LAYER_NORM, {parts.x}, {parts.v8}, {"epsilon is nan"},
                    {.epsilon = NAN});
  EXPECT_OP_REFUSED(RRFP_OP_RMS_NORM, {parts.x}, {parts.v8, parts.v8},
                    {"(rms_norm)", "has 2 parameters; expected 1"});
}

TEST(WrongOperations, Elementwise) {
  Parts parts;
  for (rrfp_op kind : {RRFP_OP_GELU, RRFP_OP_SILU}) {
    EXPECT_OP_REFUSED(kind, {parts.x, parts.x}, {}, {"has 2 inputs; expected 1"});
    EXPECT_OP_REFUSED(kind, {parts.ids}, {}, {"input 0 is i32; expected f32"});
    EXPECT_OP_REFUSED(kind, {parts.x}, {parts.v8}, {"has 1 parameters; expected 0"});
  }
  for (rrfp_op kind : {RRFP_OP_SWIGLU, RRFP_OP_ADD, RRFP_OP_MUL, RRFP_OP_SQUARED_ERROR}) {
    EXPECT_OP_REFUSED(kind, {parts.x}, {}, {"has 1 inputs; expected 2"});
    EXPECT_OP_REFUSED(kind, {parts.x, parts.y}, {}, {"shapes [?, ?, 8] and [?, ?, 6]"});
    EXPECT_OP_REFUSED(kind, {parts.x, parts.flat}, {}, {"shapes [?, ?, 8] and [8]"});
    EXPECT_OP_REFUSED(kind, {parts.x, parts.wide_ids}, {}, {"input 1 is i32; expected f32"});
  }
  EXPECT_OP_REFUSED(RRFP_OP_DROPOUT, {parts.x}, {}, {"probability is 1.0"}, {.probability = 1});
  EXPECT_OP_REFUSED(RRFP_OP_DROPOUT, {parts.x}, {}, {"probability is -0.1"}, {.probability = -0.1});
  EXPECT_OP_REFUSED(RRFP_OP_DROPOUT, {parts.x}, {}, {"probability is nan"}, {.probability = NAN});
}

TEST(WrongOperations, Attention) {
  Parts parts;
  const rrfp_op op = RRFP_OP_ATTENTION;
  EXPECT_OP_REFUSED(op, {parts.x}, {}, {"heads is 0"});
  EXPECT_OP_REFUSED(op, {parts.x}, {}, {"heads is 3 and kv_heads 2"}, {.heads = 3, .kv_heads = 2});
  EXPECT_OP_REFUSED(op, {parts.x}, {}, {"kv_heads -1"}, {.heads = 2, .kv_heads = -1});
  EXPECT_OP_REFUSED(op, {parts.x}, {}, {"[?, ?, 8]", "divisible by 9"}, {.heads = 3});
  EXPECT_OP_REFUSED(op, {}, {}, {"has 0 inputs; expected 1 or 3, and perhaps i32 segments"},
                    {.heads = 2});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x, parts.x, parts.ids, parts.ids}, {}, {"has 5 inputs"},
                    {.heads = 2});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x}, {}, {"input 1 is f32; expected i32"}, {.heads = 2});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x, parts.ids}, {}, {"input 2 is i32; expected f32"},
                    {.heads = 2});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x, parts.x, parts.x}, {}, {"input 3 is f32; expected i32"},
                    {.heads = 2});
  EXPECT_OP_REFUSED(op, {parts.flat}, {}, {"[8]; expected [batch, length, width]"}, {.heads = 2});
  EXPECT_OP_REFUSED(op, {parts.x, parts.y, parts.y}, {}, {"input 1", "[?, ?, 6]; expected"},
                    {.heads = 2});
  EXPECT_OP_REFUSED(op, {parts.fixed, parts.other, parts.other}, {},
                    {"input 1 has shape [2, 5, 8]; expected [2, 9, 8]"},
                    {.flags = RRFP_OP_CAUSAL, .heads = 2});
  EXPECT_OP_REFUSED(op, {parts.fixed, parts.wide_ids}, {},
                    {"input 1 has shape [?, ?, ?]; expected [2, 9]"}, {.heads = 2, .kv_heads = 1});
  const int32_t segments = parts.b.input("segments", RRFP_I32, {2, 5});
  EXPECT_OP_REFUSED(op, {parts.fixed, parts.fixed, parts.fixed, segments}, {},
                    {"input 3 has shape [2, 5]; expected [2, 9]"}, {.heads = 2});
  // With segments, there are as many keys as queries.
  EXPECT_OP_REFUSED(op, {parts.fixed, parts.other, parts.other, parts.ids}, {},
                    {"input 1 has shape [2, 5, 8]; expected [2, 9, 8]"}, {.heads = 2});
}

TEST(WrongOperations, Patches) {
  Parts parts;
  const rrfp_op op = RRFP_OP_PATCHES;
  const int32_t pictures = parts.b.input("pictures", RRFP_F32, {-1, 10, -1, 3});
  const int32_t wide = parts.b.input("wide", RRFP_F32, {1, 1, 1, 1 << 20});
  const int32_t none = parts.b.input("none", RRFP_F32, {0, 10, 10, 3});
  const Builder::Extra good = {.kernel = 2, .stride = 2};
  EXPECT_OP_REFUSED(op, {}, {}, {"(patches)", "has 0 inputs; expected 1"}, good);
  EXPECT_OP_REFUSED(op, {pictures}, {parts.w38}, {"has 1 parameters; expected 0"}, good);
  EXPECT_OP_REFUSED(op, {parts.ids}, {}, {"input 0 is i32; expected f32"}, good);
  EXPECT_OP_REFUSED(op, {parts.x}, {}, {"[?, ?, 8]; expected [pictures, height, width, channels]"},
                    good);
  EXPECT_OP_REFUSED(op, {pictures}, {},
                    {"kernel is 0, stride 0, padding 0; expected kernel >= 1, stride >= 1, "
                     "padding >= 0"});
  EXPECT_OP_REFUSED(op, {pictures}, {}, {"stride 0"}, {.kernel = 2});
  EXPECT_OP_REFUSED(op, {pictures}, {}, {"padding -1"}, {.kernel = 2, .stride = 1, .padding = -1});
  EXPECT_OP_REFUSED(op, {pictures}, {},
                    {"has shape [?, 10, ?, 3]; with a padding of 1 expected at least 13 pixels"},
                    {.kernel = 13, .stride = 1, .padding = 1});
  EXPECT_OP_REFUSED(op, {wide}, {}, {"kernel is 2000; a patch is too large"},
                    {.kernel = 2000, .stride = 1, .padding = 1000});
  EXPECT_OP_REFUSED(op, {wide}, {}, {"kernel is 2147483647; a patch is too large"},
                    {.kernel = INT_MAX, .stride = 1, .padding = INT_MAX});
  parts.b.op(op, {pictures}, {}, {.kernel = 12, .stride = 1, .padding = 1});
  parts.b.op(op, {none}, {}, {.kernel = 13, .stride = 1});  // of no pictures, all are large enough
}

TEST(WrongOperations, MergeRows) {
  Parts parts;
  const rrfp_op op = RRFP_OP_MERGE_ROWS;
  const int32_t sources = parts.b.input("sources", RRFP_I32, {2, 8});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x}, {}, {"(merge_rows)", "has 2 inputs; expected 3"});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x, parts.x}, {}, {"input 2 is f32; expected i32"});
  EXPECT_OP_REFUSED(op, {parts.x, parts.ids, parts.ids}, {}, {"input 1 is i32; expected f32"});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x, parts.ids}, {parts.v8},
                    {"has 1 parameters; expected 0"});
  EXPECT_OP_REFUSED(op, {parts.flat, parts.x, parts.ids}, {}, {"[8]; expected at least 2 axes"});
  EXPECT_OP_REFUSED(
      op, {parts.x, parts.y, parts.ids}, {},
      {"input 1 has shape [?, ?, 6]; expected a last extent of 8, as that of input 0"});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x, parts.wide_ids}, {},
                    {"input 2 has shape [?, ?, ?]; expected [?, ?]"});
  EXPECT_OP_REFUSED(op, {parts.fixed, parts.flat, sources}, {},
                    {"input 2 has shape [2, 8]; expected [2, 9]"});
}

TEST(WrongOperations, Shapes) {
  Parts parts;
  EXPECT_OP_REFUSED(RRFP_OP_CONCAT, {}, {}, {"has no inputs"});
  EXPECT_OP_REFUSED(RRFP_OP_CONCAT, {parts.x}, {}, {"axis is 3; expected -3 to 2"}, {.axis = 3});
  EXPECT_OP_REFUSED(RRFP_OP_CONCAT, {parts.x, parts.y}, {},
                    {"input 1 has shape [?, ?, 6]; expected [?, ?, 8] but for axis 0"},
                    {.axis = 0});
  EXPECT_OP_REFUSED(RRFP_OP_CONCAT, {parts.ids}, {}, {"i32; expected f32"});
  const auto reshape = [&](const std::vector<int64_t>& shape,
                           std::initializer_list<std::string_view> texts,
                           rrfp_status status = RRFP_ERR_TENSOR_MISMATCH) {
    return parts.op_refused(RRFP_OP_RESHAPE, {parts.fixed}, {}, texts, {.shape = shape}, status);
  };
  EXPECT_TRUE(reshape({2, 7}, {"cannot make [2, 7] of [2, 9, 8]", "elements differ"}));
  EXPECT_TRUE(reshape({5, -1}, {"[5, ?]", "elements differ"}));
  EXPECT_TRUE(reshape({-1, -1}, {"two extents are -1"}));
  EXPECT_TRUE(reshape({-2}, {"below -1"}));
  EXPECT_TRUE(reshape({2, 9, 8, 0}, {"axis 3 does not exist"}));
  EXPECT_TRUE(reshape({INT64_MAX, 2}, {"too large"}));
  EXPECT_TRUE(reshape({}, {"shape has 0 axes; expected 1 to 8"}, RRFP_ERR_INVALID_ARGUMENT));
  EXPECT_OP_REFUSED(RRFP_OP_MEAN, {parts.x}, {}, {"axis is 5; expected -3 to 2"}, {.axis = 5});
  EXPECT_OP_REFUSED(RRFP_OP_MEAN, {parts.flat}, {}, {"[8]; expected at least 2 axes"});
}

TEST(WrongOperations, Losses) {
  Parts parts;
  const rrfp_op op = RRFP_OP_CROSS_ENTROPY;
  EXPECT_OP_REFUSED(op, {parts.x}, {}, {"(cross_entropy)", "has 1 inputs; expected 2"});
  EXPECT_OP_REFUSED(op, {parts.x, parts.x}, {}, {"input 1 is f32; expected i32"});
  EXPECT_OP_REFUSED(op, {parts.x, parts.wide_ids}, {}, {"shapes [?, ?] and [?, ?, ?]"});
  EXPECT_OP_REFUSED(op, {parts.flat, parts.ids}, {}, {"[8]; expected at least 2 axes"});
}

TEST(WrongOperations, WhatTheyReferTo) {
  Parts parts;
  for (rrfp_op kind : {0, 21, -1, INT32_MIN}) {
    EXPECT_OP_REFUSED(kind, {parts.x}, {}, {"kind " + std::to_string(kind), "expected 1 to 20"}, {},
                      RRFP_ERR_INVALID_ARGUMENT);
  }
  const rrfp_status range = RRFP_ERR_OUT_OF_RANGE;
  EXPECT_OP_REFUSED(RRFP_OP_GELU, {99}, {}, {"input is value 99", "values 0 to 6"}, {}, range);
  EXPECT_OP_REFUSED(RRFP_OP_GELU, {-1}, {}, {"value -1"}, {}, range);
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {parts.x}, {99}, {"no parameter 99"}, {}, range);
  EXPECT_OP_REFUSED(RRFP_OP_LINEAR, {parts.x}, {-7}, {"no parameter -7"}, {}, range);

  const rrfp_status invalid = RRFP_ERR_INVALID_ARGUMENT;
  rrfp_operation o;
  rrfp_operation_init(&o);
  o.op = RRFP_OP_GELU;
  o.inputs = &parts.x;
  o.input_count = 1;
  rrfp_model* const model = parts.b.model.get();
  int32_t value = -5;
  const auto with = [&](auto change) {
    rrfp_operation changed = o;
    change(changed);
    return changed;
  };
  const auto expect_refused = [&](const rrfp_operation& wrong, std::string_view text) {
    EXPECT_REFUSED(rrfp_model_add_operation(model, &wrong, &value, &refusal.error), invalid,
                   {text});
  };
  expect_refused(with([](auto& c) { c.flags = 6; }), "unknown bits 6");
  expect_refused(with([](auto& c) { c.input_count = -1; }), "input_count is -1; expected 0 to 16");
  expect_refused(with([](auto& c) { c.input_count = 17; }), "input_count is 17");
  expect_refused(with([](auto& c) { c.inputs = nullptr; }), "input is null");
  expect_refused(with([](auto& c) { c.parameter_count = 3; }), "parameter_count is 3");
  expect_refused(with([](auto& c) { c.parameter_count = 1; }), "parameter is null");
  expect_refused(with([](auto& c) { c.op = RRFP_OP_RESHAPE, c.ndim = 9; }), "shape has 9 axes");
  expect_refused(with([](auto& c) { c.op = RRFP_OP_RESHAPE, c.ndim = 1; }), "shape is null");
  EXPECT_EQ(value, -5);
  rrfp_model_info info;
  rrfp_model_info_init(&info);
  ASSERT_EQ(rrfp_model_get_info(model, &info, nullptr), RRFP_OK);
  EXPECT_EQ(info.values, 7) << "nothing was added";

  Builder empty;
  const int32_t x = empty.input("x", RRFP_F32, {1});
  EXPECT_TRUE(refused([&] { empty.op(RRFP_OP_GELU, {x}); }, RRFP_ERR_BAD_STATE, {"needs a block"}));
}

TEST(WrongModels, Inputs) {
  Builder b;
  const int64_t shape[] = {2, -1, 2, 2, 2, 2, 2, 2, 2};
  rrfp_model* const model = b.model.get();
  const auto add = [&](const char* name, rrfp_dtype dtype, int32_t ndim, const int64_t* extents,
                       std::initializer_list<std::string_view> texts) {
    EXPECT_REFUSED(rrfp_model_add_input(model, name, dtype, ndim, extents, nullptr, &refusal.error),
                   RRFP_ERR_INVALID_ARGUMENT, texts);
  };
  add(nullptr, RRFP_F32, 1, shape, {"name is null"});
  add("x", RRFP_F64, 1, shape, {"dtype is " + std::to_string(RRFP_F64)});
  add("x", 99, 1, shape, {"dtype is 99"});
  add("x", RRFP_F32, 0, shape, {"shape has 0 axes"});
  add("x", RRFP_F32, 9, shape, {"shape has 9 axes; expected 1 to 8"});
  add("x", RRFP_F32, 1, nullptr, {"shape is null"});
  const int64_t huge[] = {0, int64_t{1} << 40, 2};
  add("x", RRFP_F32, 3, huge, {"input \"x\" has shape [0, 1099511627776, 2]; extent 2"});
  const int64_t below[] = {-2};
  add("x", RRFP_F32, 1, below, {"[-2]", "at least 0, or -1"});
  const int64_t zero[] = {3, 0};
  EXPECT_EQ(rrfp_model_add_input(model, "x", RRFP_F32, 2, zero, nullptr, nullptr), RRFP_OK);
  EXPECT_REFUSED(rrfp_model_begin_block(model, "b", 2, nullptr, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"flags", "2"});
}

TEST(WrongModels, Parameters) {
  Builder b;
  b.parameter("taken", {2});
  const int64_t shape[] = {2, 3};
  rrfp_parameter_options good;
  rrfp_parameter_options_init(&good);
  good.name = "w";
  good.shape = shape;
  good.ndim = 2;
  const auto expect_refused = [&](auto change, std::initializer_list<std::string_view> texts) {
    rrfp_parameter_options wrong = good;
    change(wrong);
    int32_t parameter = -5;
    EXPECT_REFUSED(rrfp_model_add_parameter(b.model.get(), &wrong, &parameter, &refusal.error),
                   RRFP_ERR_INVALID_ARGUMENT, texts);
    EXPECT_EQ(parameter, -5);
  };
  expect_refused([](auto& o) { o.flags = 4; }, {"flags", "4"});
  expect_refused([](auto& o) { o.name = nullptr; }, {"name is null"});
  expect_refused([](auto& o) { o.name = ""; }, {"name of a parameter is empty"});
  expect_refused([](auto& o) { o.name = "taken"; }, {"\"taken\" exists already"});
  expect_refused([](auto& o) { o.ndim = 0; }, {"0 axes"});
  expect_refused([](auto& o) { o.shape = nullptr; }, {"shape is null"});
  expect_refused([](auto& o) { o.init = 3; }, {"init is 3; expected 0 to 2"});
  expect_refused([](auto& o) { o.init_scale = -1; }, {"\"w\"", "scale -1"});
  expect_refused([](auto& o) { o.init_value = NAN; }, {"\"w\"", "value nan"});
  const int64_t unknown[] = {2, -1};
  expect_refused([&](auto& o) { o.shape = unknown; }, {"\"w\"", "extent 1 must be at least 1"});
  const int64_t huge[] = {INT64_MAX, 2};
  expect_refused([&](auto& o) { o.shape = huge; }, {"\"w\"", "too large"});
  const int64_t zero[] = {2, 0};
  expect_refused([&](auto& o) { o.shape = zero; }, {"\"w\"", "extent 1 must be at least 1"});
  EXPECT_EQ(parameter_count(b.model.get()), 1);
}

TEST(WrongModels, LossAndOutput) {
  Parts parts;
  rrfp_model* const model = parts.b.model.get();
  EXPECT_REFUSED(rrfp_model_set_loss(model, 99, &refusal.error), RRFP_ERR_OUT_OF_RANGE,
                 {"the loss is value 99", "0 to 6"});
  EXPECT_REFUSED(rrfp_model_set_output(model, -1, &refusal.error), RRFP_ERR_OUT_OF_RANGE,
                 {"the output is value -1"});
  EXPECT_REFUSED(rrfp_model_set_loss(model, parts.x, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"the loss is an input"});
  EXPECT_REFUSED(rrfp_model_set_output(model, parts.x, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"the output is an input"});
}

TEST(WrongModels, Gpt) {
  const auto expect_refused = [&](auto change, std::initializer_list<std::string_view> texts) {
    rrfp_gpt_options options = small_gpt();
    change(options);
    rrfp_model* model = nullptr;
    EXPECT_REFUSED(rrfp_model_create_gpt(&options, &model, &refusal.error),
                   RRFP_ERR_INVALID_ARGUMENT, texts);
    EXPECT_EQ(model, nullptr);
  };
  expect_refused([](auto& o) { o.flags = 16; }, {"flags", "16"});
  expect_refused([](auto& o) { o.reserved = 1; }, {"reserved is 1"});
  expect_refused([](auto& o) { o.vocabulary = 0; }, {"vocabulary is 0"});
  expect_refused([](auto& o) { o.context = -1; }, {"context is -1"});
  expect_refused([](auto& o) { o.layers = 0; }, {"layers is 0"});
  expect_refused([](auto& o) { o.layers = INT32_MAX; }, {"layers is 2147483647"});
  expect_refused([](auto& o) { o.layers = 1 << 24; }, {"layers is 16777216", "1 to 65536"});
  expect_refused([](auto& o) { o.dim = 0; }, {"dim is 0"});
  expect_refused([](auto& o) { o.heads = 0; }, {"heads is 0"});
  expect_refused([](auto& o) { o.heads = 3; }, {"dim is 16", "heads = 3"});
  expect_refused([](auto& o) { o.heads = 4, o.kv_heads = 3; }, {"kv_heads is 3", "heads = 4"});
  expect_refused([](auto& o) { o.kv_heads = -1; }, {"kv_heads is -1"});
  expect_refused([](auto& o) { o.heads = 16, o.flags = RRFP_GPT_ROTARY; }, {"dim / heads is 1"});
  expect_refused([](auto& o) { o.hidden = -1; }, {"hidden is -1"});
  expect_refused([](auto& o) { o.dropout = 1; }, {"dropout is 1.0"});
  expect_refused([](auto& o) { o.dropout = NAN; }, {"dropout is nan"});
  expect_refused([](auto& o) { o.vocabulary = o.dim = 1 << 24, o.heads = 1; },
                 {"embedding.weight"});
}

TEST(WrongModels, Looking) {
  Parts parts;
  const rrfp_model* const model = parts.b.model.get();
  int32_t ndim = -5;
  int64_t shape[RRFP_DIMS_MAX] = {};
  const rrfp_status range = RRFP_ERR_OUT_OF_RANGE;
  EXPECT_REFUSED(rrfp_model_value_shape(model, 7, &ndim, shape, &refusal.error), range,
                 {"value is 7", "0 to 6"});
  EXPECT_REFUSED(rrfp_model_value_shape(model, -1, &ndim, shape, &refusal.error), range, {"-1"});
  EXPECT_REFUSED(rrfp_model_parameter_shape(model, 5, &ndim, shape, &refusal.error), range,
                 {"parameter is 5", "0 to 4"});
  EXPECT_REFUSED(rrfp_model_parameter_name(model, -1, nullptr, 0, nullptr, &refusal.error), range,
                 {"parameter is -1"});
  EXPECT_EQ(ndim, -5);
  EXPECT_REFUSED(rrfp_model_parameter_name(model, 0, nullptr, 8, nullptr, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"buffer is null"});
  EXPECT_REFUSED(rrfp_model_describe(model, nullptr, 8, nullptr, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"buffer is null"});
  // A model with nothing in it can be described.
  Builder empty;
  size_t size = 0;
  EXPECT_EQ(rrfp_model_describe(empty.model.get(), nullptr, 0, &size, nullptr), RRFP_OK);
  EXPECT_GT(size, 2U);
}

TEST(WrongModels, Cutting) {
  const ModelPtr model = make_gpt(small_gpt());
  int32_t first[8] = {};
  const rrfp_status range = RRFP_ERR_OUT_OF_RANGE;
  for (int32_t stages : {0, -1, 7, INT32_MAX}) {
    EXPECT_REFUSED(rrfp_model_partition(model.get(), stages, nullptr, first, &refusal.error), range,
                   {"stages is " + std::to_string(stages), "expected 1 to 6"});
  }
  const int64_t costs[] = {1, 1, -3, 1, 1, 1};
  EXPECT_REFUSED(rrfp_model_partition(model.get(), 2, costs, first, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"cost of block 2 is -3"});

  BatchData data = random_tokens(1, 2, 8, 32, 1);
  const rrfp_tensor* const inputs = data.batch(2).inputs;
  int64_t ns[6] = {};
  std::vector<rrfp_tensor> wrong(inputs, inputs + 2);
  wrong[1].ndim = 1;
  EXPECT_REFUSED(rrfp_model_measure(model.get(), wrong.data(), ns, &refusal.error),
                 RRFP_ERR_TENSOR_MISMATCH, {"\"targets\" has shape [2]; expected [?, ?]"});
  wrong.assign(inputs, inputs + 2);
  static_cast<int32_t*>(wrong[0].data)[3] = 32;
  EXPECT_REFUSED(rrfp_model_measure(model.get(), wrong.data(), ns, &refusal.error), range,
                 {"\"tokens\"", "has 32 at position 3; expected 0 to 31"});
  wrong[0].data = nullptr;
  EXPECT_REFUSED(rrfp_model_measure(model.get(), wrong.data(), ns, &refusal.error),
                 RRFP_ERR_TENSOR_MISMATCH, {"\"tokens\"", "no data"});

  Builder without_loss;
  const int32_t x = without_loss.input("x", RRFP_F32, {1});
  without_loss.block();
  without_loss.op(RRFP_OP_GELU, {x});
  BatchData one;
  one.add_f32({1}, {1});
  EXPECT_REFUSED(
      rrfp_model_measure(without_loss.model.get(), one.batch(1).inputs, ns, &refusal.error),
      RRFP_ERR_BAD_STATE, {"no loss"});
  Builder empty;
  EXPECT_REFUSED(rrfp_model_measure(empty.model.get(), nullptr, ns, &refusal.error), range,
                 {"0 blocks"});
}

}  // namespace
}  // namespace rrfp::models
