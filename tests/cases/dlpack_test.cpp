// SPDX-License-Identifier: Apache-2.0
//
// Tensors that go to other libraries and come from them, without a copy.
#include "capi/src/dlpack.h"

#include <array>
#include <vector>

#include "misuse.h"
#include "pair.h"

namespace rrfp::cases {
namespace {

/// A tensor of another library, which counts how often it is given back.
struct Theirs {
  std::vector<float> memory = std::vector<float>(6, 2.5F);
  std::array<int64_t, 2> shape = {2, 3};
  std::array<int64_t, 2> strides = {3, 1};
  int deleted = 0;
  DLManagedTensor managed = {
      {memory.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0},
      this,
      [](DLManagedTensor* self) { ++static_cast<Theirs*>(self->manager_ctx)->deleted; }};
};

TEST(Dlpack, ViewsSeeTheSameMemory) {
  Theirs theirs;
  rrfp_tensor view = {};
  ASSERT_EQ(rrfp_tensor_from_dlpack(&theirs.managed, &view, nullptr), RRFP_OK);
  EXPECT_EQ(view.data, theirs.memory.data());
  EXPECT_EQ(view.buffer, nullptr);
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.shape[0], 2);
  EXPECT_EQ(view.shape[1], 3);
  EXPECT_EQ(view.dtype, RRFP_F32);
  EXPECT_EQ(view.device_type, RRFP_DEVICE_CPU);
  EXPECT_EQ(theirs.deleted, 0);

  theirs.managed.dl_tensor.byte_offset = 2 * sizeof(float);
  theirs.managed.dl_tensor.strides = nullptr;
  ASSERT_EQ(rrfp_tensor_from_dlpack(&theirs.managed, &view, nullptr), RRFP_OK);
  EXPECT_EQ(view.data, theirs.memory.data() + 2);
}

TEST(Dlpack, EveryKindOfElement) {
  struct {
    uint8_t code, bits;
    rrfp_dtype dtype;
  } const kinds[] = {{kDLFloat, 32, RRFP_F32},   {kDLFloat, 64, RRFP_F64}, {kDLFloat, 16, RRFP_F16},
                     {kDLBfloat, 16, RRFP_BF16}, {kDLInt, 8, RRFP_I8},     {kDLInt, 16, RRFP_I16},
                     {kDLInt, 32, RRFP_I32},     {kDLInt, 64, RRFP_I64},   {kDLUInt, 8, RRFP_U8},
                     {kDLUInt, 16, RRFP_U16},    {kDLUInt, 32, RRFP_U32},  {kDLUInt, 64, RRFP_U64},
                     {kDLBool, 8, RRFP_BOOL}};
  for (const auto& kind : kinds) {
    Theirs theirs;
    theirs.managed.dl_tensor.dtype = {kind.code, kind.bits, 1};
    rrfp_tensor view = {};
    ASSERT_EQ(rrfp_tensor_from_dlpack(&theirs.managed, &view, nullptr), RRFP_OK);
    EXPECT_EQ(view.dtype, kind.dtype);
  }
}

TEST(Dlpack, WhatCannotBeSeenIsRefused) {
  const auto refused = [](auto change, std::initializer_list<std::string_view> parts) {
    Theirs theirs;
    change(theirs.managed.dl_tensor);
    rrfp_tensor view = {};
    EXPECT_REFUSED(rrfp_tensor_from_dlpack(&theirs.managed, &view, &refusal.error),
                   RRFP_ERR_TENSOR_MISMATCH, parts);
    EXPECT_EQ(view.data, nullptr);
  };
  refused([](DLTensor& t) { t.device.device_type = 2; }, {"device of type 2", "CPU"});
  refused([](DLTensor& t) { t.dtype = {5, 64, 1}; }, {"code 5", "64 bits"});
  refused([](DLTensor& t) { t.dtype.lanes = 4; }, {"4 lanes"});
  refused([](DLTensor& t) { t.ndim = 9; }, {"9 dimensions", "0 to 8"});
  refused([](DLTensor& t) { t.ndim = -1; }, {"-1 dimensions"});
  refused([](DLTensor& t) { t.shape[1] = -3; }, {"extent -3", "dimension 1"});
  refused([](DLTensor& t) { t.shape[0] = t.shape[1] = int64_t{1} << 40; }, {"impossible extent"});
  refused([](DLTensor& t) { t.strides[0] = 1; }, {"strides", "contiguous"});
  refused([](DLTensor& t) { t.data = nullptr; }, {"no memory"});
  refused([](DLTensor& t) { t.shape = nullptr; }, {"no shape"});

  rrfp_tensor view = {};
  EXPECT_REFUSED(rrfp_tensor_from_dlpack(nullptr, &view, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"managed is null"});
}

TEST(Dlpack, StridesOfOneElementAndOfNoneSayNothing) {
  Theirs theirs;
  rrfp_tensor view = {};
  theirs.shape = {1, 3};
  theirs.strides = {77, 1};
  EXPECT_EQ(rrfp_tensor_from_dlpack(&theirs.managed, &view, nullptr), RRFP_OK);
  theirs.shape = {0, 3};
  theirs.strides = {1, 1};
  theirs.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(rrfp_tensor_from_dlpack(&theirs.managed, &view, nullptr), RRFP_OK);
  EXPECT_EQ(view.shape[0], 0);
  // The product of the other extents need not fit.
  theirs.shape = {0, INT64_MAX};
  EXPECT_EQ(rrfp_tensor_from_dlpack(&theirs.managed, &view, nullptr), RRFP_OK);
}

TEST(Dlpack, WrappedMemoryTravelsAndIsGivenBackOnce) {
  Theirs theirs;
  const void* arrived = nullptr;
  Pair pair({[&](TaskContext& c) {
               rrfp_tensor tensor = {};
               EXPECT_REFUSED(rrfp_rank_wrap_dlpack(c.rank, c.task.ticket + 1, &theirs.managed,
                                                    &tensor, &refusal.error),
                              RRFP_ERR_BAD_STATE, {"ticket"});
               EXPECT_EQ(theirs.deleted, 0);
               rrfp_error error = {};
               check(rrfp_rank_wrap_dlpack(c.rank, c.task.ticket, &theirs.managed, &tensor, &error),
                     error);
               c.put(0, tensor);
             },
             {},
             {}},
            {[&](TaskContext& c) {
               arrived = c.input(0).front().data;
               EXPECT_EQ(theirs.deleted, 0);
             },
             {},
             {}});
  ASSERT_TRUE(done(pair.run(1, RRFP_MODE_FORWARD)));
  EXPECT_EQ(arrived, theirs.memory.data());
  EXPECT_EQ(theirs.deleted, 1);
}

TEST(Dlpack, WhatArrivedOutlivesTheStepInOtherHands) {
  DLManagedTensor* lent = nullptr;
  const void* sent = nullptr;
  Pair pair({[&](TaskContext& c) {
               const rrfp_tensor tensor = c.alloc(RRFP_F32, {2, 3});
               static_cast<float*>(tensor.data)[5] = 9;
               sent = tensor.data;
               c.put(0, tensor);
             },
             {},
             {}},
            {[&](TaskContext& c) {
               const rrfp_tensor arrived = c.input(0).front();
               rrfp_error error = {};
               check(rrfp_tensor_to_dlpack(&arrived, &lent, &error), error);
             },
             {},
             {}});
  const StepResult result = pair.run(1, RRFP_MODE_FORWARD);
  ASSERT_TRUE(done(result));
  EXPECT_EQ(result.ranks[0].report.tensor_bytes_live, 6 * int64_t{sizeof(float)});

  ASSERT_NE(lent, nullptr);
  const DLTensor& seen = lent->dl_tensor;
  EXPECT_EQ(seen.data, sent);
  EXPECT_EQ(static_cast<float*>(seen.data)[5], 9);
  ASSERT_EQ(seen.ndim, 2);
  EXPECT_EQ(seen.shape[0], 2);
  EXPECT_EQ(seen.shape[1], 3);
  EXPECT_EQ(seen.strides[0], 3);
  EXPECT_EQ(seen.strides[1], 1);
  EXPECT_EQ(seen.dtype.code, kDLFloat);
  EXPECT_EQ(seen.dtype.bits, 32);
  EXPECT_EQ(seen.device.device_type, kDLCPU);
  lent->deleter(lent);  // the second step lends once more, and only that is alive at its end
  EXPECT_EQ(pair.run(1, RRFP_MODE_FORWARD).ranks[0].report.tensor_bytes_live,
            6 * int64_t{sizeof(float)});
  lent->deleter(lent);
}

TEST(Dlpack, OnlyWhatHasABufferIsLent) {
  float memory = 0;
  DLManagedTensor* lent = nullptr;
  const rrfp_tensor borrowed = view(&memory, nullptr, 1);
  EXPECT_REFUSED(rrfp_tensor_to_dlpack(&borrowed, &lent, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"no buffer"});
  EXPECT_EQ(lent, nullptr);
}

}  // namespace
}  // namespace rrfp::cases
