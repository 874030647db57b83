// SPDX-License-Identifier: Apache-2.0
//
// What operations with inputs for packed samples do when a sequence is generated part by part.
#include <gtest/gtest.h>

#include "engine/model/aligned.h"
#include "engine/model/execute.h"

namespace rrfp::model {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

constexpr int64_t kWidth = 24;  // 2 heads of 4 numbers, 2 of keys, 2 of values

/// A graph of one operation on x [1, length, kWidth] and perhaps i32 numbers [1, length].
struct OneOp {
  Graph graph;
  Shape in, numbers;
  std::vector<Shape> shapes;

  OneOp(OpKind kind, int64_t length, bool with_numbers, const OpAttributes& attributes)
      : in({1, length, kWidth}), numbers({1, length}) {
    BlockId block;
    ValueId x;
    ValueId n;
    ValueId out;
    EXPECT_TRUE(graph.begin_block({}, block).ok());
    EXPECT_TRUE(graph.add_input("x", ValueType::kF32, in, x).ok());
    EXPECT_TRUE(graph.add_input("n", ValueType::kI32, numbers, n).ok());
    Op op = {.kind = kind, .inputs = {x}, .attributes = attributes};
    if (with_numbers) op.inputs.push_back(n);
    EXPECT_TRUE(graph.add_op(op, out).ok());
    const Shape given[] = {in, numbers};
    EXPECT_TRUE(graph.infer(given, shapes).ok());
  }

  Floats run(const float* x, const Ints& n, int64_t first_position, KeyValueCache* cache) const {
    const Op& op = graph.ops()[0];
    OpRun run = describe_run(op, shapes, kernels::cpu_kernels());
    Floats y(static_cast<size_t>(run.out_shape->elements()));
    run.cache = cache;
    run.first_position = first_position;
    const auto size = [&](auto* function) { return function == nullptr ? 0 : function(run); };
    const AlignedFloats stats(size(rules(op).stats_size));
    const AlignedFloats scratch(size(rules(op).scratch_size));
    run.in[0] = x;
    if (op.inputs.size() == 2) run.in[1] = reinterpret_cast<const float*>(n.data());
    run.out = y.data();
    run.stats = stats.data();
    run.scratch = scratch.data();
    rules(op).forward(run);
    return y;
  }
};

Floats some_numbers(int64_t count) {
  Floats x;
  for (int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
  return x;
}

void expect_near(const Floats& a, const float* b) {
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
}

TEST(Generating, WhatFollowsAPromptContinuesItWhateverTheNumbersSay) {
  OpAttributes attributes;
  attributes.heads = 2;
  attributes.causal = true;
  const Floats x = some_numbers(5 * kWidth);
  const Floats whole =
      OneOp(OpKind::kAttention, 5, false, attributes).run(x.data(), {}, 0, nullptr);
  const OneOp packed(OpKind::kAttention, 5, true, attributes);
  const Floats apart = packed.run(x.data(), {0, 0, 1, 1, 2}, 0, nullptr);
  EXPECT_NE(apart, whole);

  Floats keys(40);
  Floats values(40);
  KeyValueCache cache = {.keys = keys.data(), .values = values.data(), .length = 0};
  const OneOp first(OpKind::kAttention, 3, true, attributes);
  // A prompt may be packed: while nothing is kept, segments count.
  expect_near(first.run(x.data(), {0, 0, 1}, 0, &cache), apart.data());
  expect_near(first.run(x.data(), {1, 1, 1}, 0, &cache), whole.data());
  cache.length = 3;
  const OneOp second(OpKind::kAttention, 2, true, attributes);
  expect_near(second.run(x.data() + 3 * kWidth, {1, 2}, 3, &cache), whole.data() + 3 * 8);
}

TEST(Generating, GivenPositionsTakeThePlaceOfThoseThatFollow) {
  OpAttributes attributes;
  attributes.heads = 2;
  attributes.head_dim = 4;
  const Floats x = some_numbers(3 * kWidth);
  const OneOp given(OpKind::kRotary, 3, true, attributes);
  const OneOp followed(OpKind::kRotary, 3, false, attributes);
  const Floats expected = followed.run(x.data(), {}, 7, nullptr);
  EXPECT_EQ(given.run(x.data(), {7, 8, 9}, 2, nullptr), expected);
  EXPECT_NE(given.run(x.data(), {2, 3, 4}, 7, nullptr), expected);
}

TEST(Describing, NamesTheAttributesOfAnOperation) {
  OpAttributes attributes;
  attributes.heads = 2;
  attributes.causal = true;
  const OneOp one(OpKind::kAttention, 3, true, attributes);
  std::string text = describe(one.graph);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_NE(text.find(R"("attributes":{"heads":2,"kv_heads":2,"causal":true})"), text.npos) << text;
}

}  // namespace
}  // namespace rrfp::model
