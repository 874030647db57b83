// SPDX-License-Identifier: Apache-2.0
//
// Tensors travel without a copy where they have a buffer, stay as long as a task may look at them,
// and are what they were when they were put.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "pair.h"

namespace rrfp::cases {
namespace {

TEST(Tensors, WhatIsAllocatedIsHandedOver) {
  std::array<std::atomic<void*>, 2> sent = {};
  std::array<void*, 4> seen = {};  // activation in F, in I; gradient in I, in W
  Pair pair({[&](TaskContext& c) {
               rrfp_tensor tensor = c.alloc(RRFP_F32, {3});
               EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % 64, 0u);
               EXPECT_EQ(tensor.device_type, RRFP_DEVICE_CPU);
               tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
               sent[0] = tensor.data;
               c.put(0, tensor);
             },
             [&](TaskContext& c) { seen[2] = c.input(0).at(0).data; },
             [&](TaskContext& c) { seen[3] = c.input(0).at(0).data; }},
            {[&](TaskContext& c) { seen[0] = c.input(0).at(0).data; },
             [&](TaskContext& c) {
               seen[1] = c.input(0).at(0).data;
               const rrfp_tensor tensor = c.alloc(RRFP_F32, {3});
               sent[1] = tensor.data;
               c.put(0, tensor);
             },
             {}});
  ASSERT_TRUE(done(pair.run()));
  EXPECT_EQ(seen, (std::array<void*, 4>{sent[0], sent[0], sent[1], sent[1]}));
  EXPECT_NE(sent[0], nullptr);
}

TEST(Tensors, MemoryWithoutABufferIsCopiedDuringThePut) {
  Pair pair({[](TaskContext& c) {
               std::array<float, 2> values = {1, 2};
               c.put(0, view(values.data(), nullptr, 2));
               values = {-1, -1};
             },
             {},
             {}},
            {[](TaskContext& c) {
               EXPECT_EQ(c.floats(0)[0], 1);
               EXPECT_EQ(c.floats(0)[1], 2);
             },
             [](TaskContext& c) { c.put(0, {}, nullptr); },
             {}});
  ASSERT_TRUE(done(pair.run()));
}

TEST(Tensors, OneBufferForTwoEdgesAndTwice) {
  std::atomic<void*> sent = nullptr;
  std::array<void*, 3> seen = {};
  Pair pair({[&](TaskContext& c) {
               const rrfp_tensor tensor = c.alloc(RRFP_F32, {2});
               sent = tensor.data;
               c.put(0, tensor);
               c.put(1, std::array{tensor, tensor});
             },
             {},
             {}},
            {{},
             [&](TaskContext& c) {
               seen = {c.input(0).at(0).data, c.input(1).at(0).data, c.input(1).at(1).data};
               c.put(0, {}, nullptr);
               c.put(1, {}, nullptr);
             },
             {}},
            2);
  const StepResult result = pair.run();
  ASSERT_TRUE(done(result));
  EXPECT_EQ(seen, (std::array<void*, 3>{sent, sent, sent}));
  EXPECT_EQ(result.ranks[0].report.tensor_bytes_peak, 8) << "counted once";
  EXPECT_EQ(result.ranks[0].report.tensor_bytes_live, 0);
}

TEST(Tensors, InputsStayForTheWeightGradient) {
  // In BFW order the weight gradients come last, when everything else has been recycled.
  constexpr int32_t kMicrobatches = 8;
  std::array<float, kMicrobatches> activations = {};
  std::array<float, kMicrobatches> gradients = {};
  const auto at = [](const TaskContext& c) { return static_cast<size_t>(c.task.microbatch); };
  const auto number = [](const TaskContext& c) { return static_cast<float>(c.task.microbatch); };
  Pair pair({[&](TaskContext& c) { c.put_scalar(0, 10 + number(c)); },
             [&](TaskContext& c) { EXPECT_EQ(c.scalar(0), 20 + number(c)); },
             [&](TaskContext& c) { gradients[at(c)] = c.scalar(0); }},
            {{},
             [&](TaskContext& c) { c.put_scalar(0, 20 + number(c)); },
             [&](TaskContext& c) { activations[at(c)] = c.scalar(0); }});
  pair.hint = make_hint("bfw");
  const StepResult result = pair.run(kMicrobatches);
  ASSERT_TRUE(done(result));
  for (int32_t i = 0; i < kMicrobatches; ++i) {
    EXPECT_EQ(activations[static_cast<size_t>(i)], 10 + static_cast<float>(i));
    EXPECT_EQ(gradients[static_cast<size_t>(i)], 20 + static_cast<float>(i));
  }
  for (const RankResult& rank : result.ranks) EXPECT_EQ(rank.report.tensor_bytes_live, 0);
}

TEST(Tensors, ManyAndEmptyOnesAndNoGradients) {
  // Twenty tensors, every third one without elements; of the gradients every other one is zero.
  constexpr size_t kCount = 20;
  const auto extent = [](size_t k) { return static_cast<int64_t>(k % 3); };
  const auto is_none = [](size_t k) { return k % 2 == 1; };
  std::array<int, 4> opaque = {};
  Pair pair({[&](TaskContext& c) {
               std::vector<rrfp_tensor> tensors;
               for (size_t k = 0; k < kCount; ++k) {
                 rrfp_tensor tensor = c.alloc(RRFP_F32, {2, extent(k)});
                 std::fill_n(static_cast<float*>(tensor.data), 2 * extent(k),
                             static_cast<float>(k));
                 if (extent(k) == 0) tensor.data = nullptr;  // needs none
                 tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
                 tensors.push_back(tensor);
               }
               c.put(0, tensors, &opaque[0]);
             },
             [&](TaskContext& c) {
               void* pointer = nullptr;
               const auto tensors = c.input(0, &pointer);
               EXPECT_EQ(pointer, &opaque[1]);
               ASSERT_EQ(tensors.size(), kCount);
               for (size_t k = 0; k < kCount; ++k) {
                 EXPECT_EQ(tensors[k].dtype, is_none(k) ? RRFP_NONE : RRFP_F32) << k;
                 if (is_none(k) || extent(k) == 0) continue;
                 EXPECT_EQ(*static_cast<float*>(tensors[k].data), -static_cast<float>(k));
               }
             },
             {}},
            {[&](TaskContext& c) {
               void* pointer = nullptr;
               const auto tensors = c.input(0, &pointer);
               EXPECT_EQ(pointer, &opaque[0]);
               ASSERT_EQ(tensors.size(), kCount);
               for (size_t k = 0; k < kCount; ++k) {
                 EXPECT_EQ(tensors[k].ndim, 2);
                 EXPECT_EQ(tensors[k].shape[0], 2);
                 EXPECT_EQ(tensors[k].shape[1], extent(k));
                 EXPECT_EQ(tensors[k].flags, RRFP_TENSOR_WANTS_GRADIENT);
                 if (extent(k) > 0) {
                   EXPECT_EQ(*static_cast<float*>(tensors[k].data), static_cast<float>(k));
                 }
               }
             },
             [&](TaskContext& c) {
               std::vector<rrfp_tensor> gradients(kCount);
               for (size_t k = 0; k < kCount; ++k) {
                 gradients[k] = {};
                 if (is_none(k)) continue;
                 gradients[k] = c.alloc(RRFP_F32, {2, extent(k)});
                 std::fill_n(static_cast<float*>(gradients[k].data), 2 * extent(k),
                             -static_cast<float>(k));
               }
               c.put(0, gradients, &opaque[1]);
             },
             {}});
  ASSERT_TRUE(done(pair.run()));
}

TEST(Tensors, AGradientOfNoneIsNothingElse) {
  // Whatever else stood in the view is not to reach a reader that looks at all dimensions.
  Pair pair({[](TaskContext& c) { c.put_scalar(0, 1); },
             [](TaskContext& c) {
               const rrfp_tensor none = c.input(0).at(0);
               EXPECT_EQ(none.dtype, RRFP_NONE);
               EXPECT_EQ(none.ndim, 0);
               EXPECT_EQ(none.data, nullptr);
               EXPECT_EQ(none.buffer, nullptr);
             },
             {}},
            {{},
             [](TaskContext& c) {
               rrfp_tensor none = c.alloc(RRFP_F32, {2});
               none.dtype = RRFP_NONE;
               none.ndim = 77;
               c.put(0, none);
             },
             {}});
  ASSERT_TRUE(done(pair.run()));
}

TEST(Tensors, InputSaysHowManyThereAre) {
  Pair pair({[](TaskContext& c) {
               std::vector<rrfp_tensor> tensors(5);
               for (rrfp_tensor& tensor : tensors) tensor = c.alloc(RRFP_I8, {});
               c.put(0, tensors);
             },
             {},
             {}},
            {[](TaskContext& c) {
               std::array<rrfp_tensor, 3> tensors;
               tensors[2].ndim = 77;
               size_t count = 0;
               EXPECT_EQ(rrfp_rank_input(c.rank, c.task.ticket, 0, tensors.data(), 2, &count,
                                         nullptr, nullptr),
                         RRFP_OK);
               EXPECT_EQ(count, 5u);
               EXPECT_EQ(tensors[1].dtype, RRFP_I8);
               EXPECT_EQ(tensors[1].ndim, 0);
               EXPECT_EQ(tensors[2].ndim, 77) << "beyond the capacity";
             },
             [](TaskContext& c) { c.put(0, {}, nullptr); },
             {}});
  ASSERT_TRUE(done(pair.run()));
}

TEST(Tensors, EveryTypeAndEveryNumberOfDimensions) {
  Pair pair({[](TaskContext& c) {
               std::vector<rrfp_tensor> tensors;
               for (rrfp_dtype dtype = RRFP_F32; dtype <= RRFP_BOOL; ++dtype) {
                 tensors.push_back(c.alloc(dtype, {3, 1, 2}));
               }
               tensors.push_back(c.alloc(RRFP_U8, {1, 2, 1, 2, 1, 2, 1, 2}));
               // Contiguous strides may be given; those of extents of 1 do not count.
               tensors.back().strides[0] = 1000;
               c.put(0, tensors);
             },
             {},
             {}},
            {[](TaskContext& c) {
               const auto tensors = c.input(0);
               ASSERT_EQ(tensors.size(), 14u);
               for (rrfp_dtype dtype = RRFP_F32; dtype <= RRFP_BOOL; ++dtype) {
                 const rrfp_tensor& tensor = tensors[static_cast<size_t>(dtype - 1)];
                 EXPECT_EQ(tensor.dtype, dtype);
                 EXPECT_EQ(tensor.strides[0], 2);
                 EXPECT_EQ(tensor.strides[2], 1);
               }
               EXPECT_EQ(tensors[13].ndim, 8);
               EXPECT_EQ(tensors[13].strides[1], 8);
             },
             [](TaskContext& c) { c.put(0, {}, nullptr); },
             {}});
  ASSERT_TRUE(done(pair.run()));
}

}  // namespace
}  // namespace rrfp::cases
