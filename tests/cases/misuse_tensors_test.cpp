// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are wrong. A refusal leaves the task running, so that the right one can follow.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "handles.h"
#include "misuse.h"
#include "pair.h"

namespace rrfp::cases {
namespace {

rrfp_status put(const TaskContext& c, int32_t edge, const std::vector<rrfp_tensor>& tensors,
                rrfp_error* error) {
  return rrfp_rank_put(c.rank, c.task.ticket, edge, tensors.data(), tensors.size(), nullptr, error);
}

/// Runs a step of a pair in which the forward of rank 0 and the backward of rank 1 try what must be
/// refused before they do what is right.
void run_pair(const std::function<void(TaskContext&)>& forward,
              const std::function<void(TaskContext&)>& backward = {}) {
  bool tried = false;
  Pair pair({[&](TaskContext& c) {
               forward(c);
               tried = true;
               rrfp_tensor tensor = c.alloc(RRFP_F32, {2, 3});
               tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
               c.put(0, tensor);
             },
             {},
             {}},
            {{},
             [&](TaskContext& c) {
               if (backward) backward(c);
               c.put(0, c.alloc(RRFP_F32, {2, 3}));
             },
             {}});
  ASSERT_TRUE(done(pair.run()));
  EXPECT_TRUE(tried);
}

TEST(MisuseTensors, Layout) {
  run_pair([](TaskContext& c) {
    const rrfp_tensor good = c.alloc(RRFP_F32, {2, 3});
    const auto refused = [&](const rrfp_tensor& bad, rrfp_status status,
                             std::initializer_list<std::string_view> parts) {
      // Behind a good one, so that the number of the wrong one shows.
      EXPECT_REFUSED(put(c, 0, {good, bad}, &refusal.error), status, parts);
    };
    constexpr rrfp_status kMismatch = RRFP_ERR_TENSOR_MISMATCH;
    rrfp_tensor bad = good;
    bad.strides[0] = 4;
    refused(bad, kMismatch, {"tensor 1 of edge 0", "stride 0", "is 4", "contiguous 3"});
    bad = good;
    bad.strides[0] = 3;
    bad.strides[1] = 2;
    refused(bad, kMismatch, {"stride 1", "is 2", "contiguous 1"});
    bad = good;
    bad.ndim = -1;
    refused(bad, kMismatch, {"ndim is -1"});
    bad.ndim = 9;
    refused(bad, kMismatch, {"ndim is 9", "8"});
    bad = good;
    bad.shape[1] = -3;
    refused(bad, kMismatch, {"extent 1", "-3"});
    bad.shape[0] = bad.shape[1] = int64_t{1} << 40;
    refused(bad, kMismatch, {"extent 1", "too large"});
    bad = good;
    bad.dtype = 14;
    refused(bad, kMismatch, {"dtype 14"});
    bad.dtype = -1;
    refused(bad, kMismatch, {"dtype -1"});
    bad.dtype = RRFP_NONE;
    refused(bad, kMismatch, {"dtype 0"});
    bad = good;
    bad.data = nullptr;
    refused(bad, kMismatch, {"data is null"});
    bad = good;
    bad.flags = 6;
    refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"tensors[1].flags", "6"});
  });
}

TEST(MisuseTensors, OutsideTheBuffer) {
  run_pair([](TaskContext& c) {
    const rrfp_tensor good = c.alloc(RRFP_F32, {2, 3});
    const auto refused = [&](const rrfp_tensor& bad) {
      EXPECT_REFUSED(put(c, 0, {bad}, &refusal.error), RRFP_ERR_TENSOR_MISMATCH,
                     {"tensor 0 of edge 0", "bytes", "buffer of 24"});
    };
    rrfp_tensor bad = good;
    bad.shape[0] = 3;
    bad.strides[0] = bad.strides[1] = 0;
    refused(bad);
    bad = good;
    bad.data = static_cast<float*>(good.data) + 1;
    refused(bad);
    bad.data = static_cast<float*>(good.data) - 1;
    refused(bad);
    bad = good;
    bad.shape[0] = 1;
    bad.data = static_cast<float*>(good.data) + 4;
    refused(bad);
  });
}

TEST(MisuseTensors, GradientsThatCannotBe) {
  run_pair([](TaskContext& c) {
    rrfp_tensor integers = c.alloc(RRFP_I32, {2});
    integers.flags = RRFP_TENSOR_WANTS_GRADIENT;
    EXPECT_REFUSED(put(c, 0, {integers}, &refusal.error), RRFP_ERR_TENSOR_MISMATCH,
                   {"tensor 0 of edge 0", "i32[2]", "floating-point"});
    rrfp_tensor foreign = view(&integers, nullptr, 2);
    foreign.device_type = 2;  // CUDA
    EXPECT_REFUSED(put(c, 0, {foreign}, &refusal.error), RRFP_ERR_TENSOR_MISMATCH,
                   {"device type 2", "buffer"});
  });
}

TEST(MisuseTensors, GradientsThatDoNotFitTheirActivation) {
  run_pair([](TaskContext&) {},
           [](TaskContext& c) {
             const auto refused = [&](const std::vector<rrfp_tensor>& bad,
                                      std::initializer_list<std::string_view> parts) {
               EXPECT_REFUSED(put(c, 0, bad, &refusal.error), RRFP_ERR_TENSOR_MISMATCH, parts);
             };
             const rrfp_tensor good = c.alloc(RRFP_F32, {2, 3});
             refused({c.alloc(RRFP_F32, {3, 2})},
                     {"gradient 0 for edge 0", "f32[3,2]", "tensor 0, is f32[2,3]"});
             refused({c.alloc(RRFP_F32, {6})}, {"f32[6]", "f32[2,3]"});
             refused({c.alloc(RRFP_F64, {2, 3})}, {"f64[2,3]", "f32[2,3]"});
             refused({}, {"0 gradients", "asked for 1"});
             refused({good, good}, {"2 gradients", "asked for 1"});
           });
}

TEST(MisuseTensors, EdgesOfTheTask) {
  ToyPipeline toy(2);
  const auto refused = [](const TaskContext& c, int32_t edge,
                          std::initializer_list<std::string_view> parts) {
    EXPECT_REFUSED(put(c, edge, {c.alloc(RRFP_F32, {})}, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                   parts);
    EXPECT_REFUSED(rrfp_rank_output_wanted(c.rank, c.task.ticket, edge, &refusal.error),
                   RRFP_ERR_INVALID_ARGUMENT, parts);
  };
  const auto no_input = [](const TaskContext& c, int32_t edge, rrfp_status status,
                           std::initializer_list<std::string_view> parts) {
    size_t count = 77;
    EXPECT_REFUSED(
        rrfp_rank_input(c.rank, c.task.ticket, edge, nullptr, 0, &count, nullptr, &refusal.error),
        status, parts);
    EXPECT_EQ(count, 77u);
  };
  const auto done_too_early = [](const TaskContext& c, const char* edge) {
    EXPECT_REFUSED(rrfp_rank_done(c.rank, c.task.ticket, nullptr, &refusal.error),
                   RRFP_ERR_BAD_STATE, {task_text(c.task), "has not put its output", edge});
  };
  toy.add_stage({[&](TaskContext& c) {
                   refused(c, 1, {"0F0", "edge 1"});
                   refused(c, -1, {"0F0", "edge -1"});
                   refused(c, 99, {"0F0", "edge 99"});
                   no_input(c, 1, RRFP_ERR_INVALID_ARGUMENT, {"edge 1", "stage 0"});
                   no_input(c, 0, RRFP_ERR_BAD_STATE, {"0F0", "no gradient", "edge 0"});
                   done_too_early(c, "edge 0");
                   c.put_scalar(0, 1);
                   EXPECT_REFUSED(put(c, 0, {c.alloc(RRFP_F32, {})}, &refusal.error),
                                  RRFP_ERR_BAD_STATE, {"0F0", "already put", "edge 0"});
                 },
                 [&](TaskContext& c) {
                   refused(c, 0, {"edge 0", "backward"});
                 },
                 {}});
  toy.add_stage({[&](TaskContext& c) {
                   refused(c, 0, {"1F0", "edge 0", "forward"});
                   c.put_scalar(1, c.scalar(0));
                 },
                 [&](TaskContext& c) {
                   refused(c, 1, {"edge 1", "backward"});
                   done_too_early(c, "edge 0");
                   c.put_scalar(0, c.scalar(1));
                 },
                 [&](TaskContext& c) {
                   EXPECT_EQ(c.task.kind, RRFP_WEIGHT_GRADIENT);
                   refused(c, 0, {"1W0", "no outputs"});
                 }});
  toy.add_stage({[&](TaskContext& c) { EXPECT_EQ(c.scalar(1), 1); },
                 [&](TaskContext& c) { c.put_scalar(1, 1); },
                 {}},
                RRFP_STAGE_LOSS);
  toy.add_edge(0, 1);
  toy.add_edge(1, 2);
  toy.place(RRFP_PLACEMENT_LOOP);
  toy.open();
  const HintPtr hint = make_hint("bfw");
  ASSERT_TRUE(done(toy.run({.hint = hint.get(), .microbatches = 1})));
}

TEST(MisuseTensors, EdgesThatCarryNothing) {
  // Stage 0 is frozen, so nothing flows back to it; microbatch 1 skips stage 1.
  const auto absent = [](const TaskContext& c, std::initializer_list<std::string_view> parts) {
    EXPECT_EQ(rrfp_rank_output_wanted(c.rank, c.task.ticket, 0, nullptr), RRFP_ABSENT);
    EXPECT_REFUSED(put(c, 0, {c.alloc(RRFP_F32, {})}, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                   parts);
  };
  ToyPipeline toy(2);
  toy.add_stage({[&](TaskContext& c) {
                   if (c.task.microbatch == 1) return absent(c, {"0F1", "edge 0", "skips"});
                   c.put(0, c.alloc(RRFP_F32, {}));
                 },
                 {},
                 {}},
                RRFP_STAGE_FROZEN);
  toy.add_stage({{},
                 [&](TaskContext& c) {
                   absent(c, {"1B0", "edge 0", "gradient"});
                 },
                 {}},
                RRFP_STAGE_LOSS);
  toy.add_edge(0, 1);
  toy.place(RRFP_PLACEMENT_LINEAR);
  toy.open();
  const HintPtr hint = make_hint("1f1b");
  const StepResult result = toy.run({.hint = hint.get(), .microbatches = 2, .skip = {0, 0, 0, 1}});
  ASSERT_TRUE(done(result));
  EXPECT_EQ(result.order(0), "0F0 0F1");
  EXPECT_EQ(result.order(1), "1F0 1B0");
}

TEST(MisuseTensors, Declared) {
  ToyPipeline toy(2);
  const auto refused = [](const TaskContext& c, const std::vector<rrfp_tensor>& bad,
                          std::initializer_list<std::string_view> parts) {
    EXPECT_REFUSED(put(c, 0, bad, &refusal.error), RRFP_ERR_TENSOR_MISMATCH, parts);
  };
  toy.add_stage({[&](TaskContext& c) {
                   rrfp_tensor good = c.alloc(RRFP_F32, {7, 3});
                   good.flags = RRFP_TENSOR_WANTS_GRADIENT;
                   const rrfp_tensor ids = c.alloc(RRFP_I64, {7});
                   refused(c, {good}, {"edge 0", "1 tensors", "declared with 2"});
                   refused(c, {c.alloc(RRFP_F32, {7, 4}), ids},
                           {"tensor 0 of edge 0", "f32[7,4]", "f32[?,3]"});
                   refused(c, {c.alloc(RRFP_F32, {3}), ids}, {"f32[3]", "f32[?,3]"});
                   refused(c, {c.alloc(RRFP_F64, {7, 3}), ids}, {"f64[7,3]", "f32[?,3]"});
                   refused(c, {good, c.alloc(RRFP_I32, {7})}, {"tensor 1", "i32[7]", "i64[?]"});
                   rrfp_tensor no_gradient = good;
                   no_gradient.flags = 0;
                   refused(c, {no_gradient, ids}, {"tensor 0", "does not ask", "declared"});
                   c.put(0, std::array{good, ids});
                 },
                 {},
                 {}});
  toy.add_stage({{},
                 [](TaskContext& c) {
                   c.put(0, c.alloc(RRFP_F32, {7, 3}));
                 },
                 {}},
                RRFP_STAGE_LOSS);
  toy.add_edge(0, 1);
  toy.add_edge(0, 1, RRFP_EDGE_NO_GRADIENT);
  const std::array<int64_t, 2> shape = {-1, 3};
  ASSERT_EQ(rrfp_graph_declare_tensor(toy.graph(), 0, RRFP_F32, 2, shape.data(),
                                      RRFP_TENSOR_WANTS_GRADIENT, nullptr),
            RRFP_OK);
  ASSERT_EQ(rrfp_graph_declare_tensor(toy.graph(), 0, RRFP_I64, 1, shape.data(), 0, nullptr),
            RRFP_OK);
  toy.place(RRFP_PLACEMENT_LINEAR);
  toy.before_task = [](TaskContext& c) {
    if (c.task.kind != RRFP_FORWARD || c.task.stage != 0) return;
    rrfp_tensor asks = c.alloc(RRFP_F32, {});
    asks.flags = RRFP_TENSOR_WANTS_GRADIENT;
    EXPECT_REFUSED(put(c, 1, {asks}, &refusal.error), RRFP_ERR_TENSOR_MISMATCH,
                   {"tensor 0 of edge 1", "asks for a gradient", "carries no gradients"});
    c.put(1, c.alloc(RRFP_F32, {}));
  };
  toy.open();
  const HintPtr hint = make_hint("1f1b");
  ASSERT_TRUE(done(toy.run({.hint = hint.get(), .microbatches = 1})));
}

TEST(MisuseTensors, Allocations) {
  run_pair([](TaskContext& c) {
    const auto refused = [&](rrfp_dtype dtype, int32_t ndim, const std::vector<int64_t>& shape,
                             rrfp_status status, std::initializer_list<std::string_view> parts) {
      rrfp_tensor tensor = {};
      EXPECT_REFUSED(rrfp_rank_alloc(c.rank, c.task.ticket, dtype, ndim, shape.data(), &tensor,
                                     &refusal.error),
                     status, parts);
      EXPECT_EQ(tensor.buffer, nullptr);
    };
    const std::vector<int64_t> nine(9, 1);
    refused(RRFP_NONE, 1, {1}, RRFP_ERR_TENSOR_MISMATCH, {"dtype 0"});
    refused(99, 1, {1}, RRFP_ERR_TENSOR_MISMATCH, {"dtype 99"});
    refused(RRFP_F32, -1, {1}, RRFP_ERR_TENSOR_MISMATCH, {"ndim is -1"});
    refused(RRFP_F32, 9, nine, RRFP_ERR_TENSOR_MISMATCH, {"ndim is 9"});
    refused(RRFP_F32, 2, {2, -1}, RRFP_ERR_TENSOR_MISMATCH, {"extent 1", "-1"});
    refused(RRFP_F32, 2, {INT64_MAX, INT64_MAX}, RRFP_ERR_TENSOR_MISMATCH, {"too large"});
    // Zero times anything is zero, whatever comes first; nor do its strides overflow.
    rrfp_tensor empty = {};
    const std::array<int64_t, 3> shape = {0, INT64_MAX, INT64_MAX};
    EXPECT_EQ(rrfp_rank_alloc(c.rank, c.task.ticket, RRFP_F32, 3, shape.data(), &empty, nullptr),
              RRFP_OK);
  });
}

TEST(MisuseTensors, MoreMemoryThanThereIs) {
  // The sanitizers need allocator_may_return_null=1 for this.
  run_pair([](TaskContext& c) {
    rrfp_tensor tensor = {};
    const int64_t huge = int64_t{1} << 47;  // elements; more than an address space holds
    EXPECT_REFUSED(
        rrfp_rank_alloc(c.rank, c.task.ticket, RRFP_F64, 1, &huge, &tensor, &refusal.error),
        RRFP_ERR_NO_MEMORY, {"f64[140737488355328]"});
  });
}

}  // namespace
}  // namespace rrfp::cases
