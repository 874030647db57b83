// SPDX-License-Identifier: Apache-2.0
//
// A microbatch may have no pictures, no positions, no rows: every kernel reads and writes nothing
// then, and what a sum over nothing is added to stays as it is.
#include <limits>

#include "tests/kernels/harness.h"

namespace rrfp::kernels::testing {
namespace {

RRFP_KERNELS_SUITE(EmptyTest);

TEST_P(EmptyTest, NoRowsChangeNothing) {
  const Array out = up(numbers(64, 1));
  const std::vector<float> before = out.download();
  float* const y = out.data();
  const Array weights = up(numbers(16, 2));
  const float* const gamma = weights.data();
  for (const bool accumulate : {false, true}) {
    k().copy(0, nullptr, y, accumulate);
    k().copy_block(0, 16, nullptr, 16, y, 16, accumulate);
    k().copy_block(4, 0, nullptr, 16, y, 16, accumulate);
    k().multiply(0, nullptr, nullptr, y, accumulate);
    k().gelu_gradient(0, nullptr, nullptr, y, accumulate);
    k().silu_gradient(0, nullptr, nullptr, y, accumulate);
    k().swiglu_gradient(0, nullptr, nullptr, nullptr, y, accumulate, y, accumulate);
    k().dropout(0, 0.5F, {}, nullptr, y, accumulate);
    k().rotary({0, 3, 16, 1, 8}, nullptr, y, accumulate);
    k().rotary({0, 0, 16, 1, 8}, nullptr, y, accumulate);
    k().merge_rows_gradient(0, 16, nullptr, nullptr, y, accumulate);
    k().merge_rows_table_gradient(0, 16, nullptr, nullptr, 0, y, accumulate);
    k().patches_gradient({0, 4, 4, 3, 2, 2, 0}, nullptr, y, accumulate);
    k().mean_gradient(0, 4, 16, nullptr, y, accumulate);
    k().mean_gradient(4, 0, 16, gamma, y, accumulate);
    k().mean_gradient(4, 4, 0, nullptr, y, accumulate);
    k().layer_norm_gradient(0, 16, nullptr, gamma, nullptr, nullptr, nullptr, y, accumulate);
    k().rms_norm_gradient(0, 16, nullptr, gamma, nullptr, nullptr, y, accumulate);
    k().cross_entropy_gradient(0, 16, nullptr, nullptr, -1, nullptr, nullptr, y, accumulate);
    k().squared_error_gradient(0, nullptr, nullptr, nullptr, 1, y, accumulate);
  }
  k().fill(0, 7, y);
  k().add(0, nullptr, nullptr, y);
  k().gelu(0, nullptr, y);
  k().silu(0, nullptr, y);
  k().swiglu(0, nullptr, nullptr, y);
  k().broadcast_rows(0, 16, gamma, y);
  k().add_positions(0, 16, 0, 0, nullptr, gamma, y);
  k().gather_rows(0, 16, nullptr, gamma, y);
  k().merge_rows(0, 16, nullptr, nullptr, nullptr, y);
  k().patches({0, 4, 4, 3, 2, 2, 0}, nullptr, y);
  k().mean(0, 4, 16, nullptr, y);
  k().layer_norm(0, 16, 1e-5F, nullptr, gamma, gamma, y, y, y);
  k().rms_norm(0, 16, 1e-5F, nullptr, gamma, y, y);
  k().cross_entropy(0, 16, nullptr, nullptr, -1, y, y);
  k().squared_error(0, nullptr, nullptr, y);
  // Gradients of weights, which add up.
  k().sum_rows(0, 16, nullptr, y);
  k().positions_gradient(0, 16, 0, nullptr, y);
  k().scatter_add_rows(0, 16, nullptr, nullptr, y);
  k().layer_norm_weights(0, 16, nullptr, nullptr, nullptr, nullptr, y, y + 16);
  k().rms_norm_weights(0, 16, nullptr, nullptr, nullptr, y);
  k().gemm({true, false, 4, 16, 0, 4, 16, 16}, nullptr, nullptr, 1, y);
  EXPECT_EQ(out.download(), before);
  EXPECT_EQ(k().sum(0, nullptr), 0);
  EXPECT_EQ(k().sum_squares(0, nullptr), 0);
}

TEST_P(EmptyTest, MeanOfNothingIsZero) {
  expect_writes(Numbers(6), 0, [&](float* y) { k().mean(3, 0, 2, nullptr, y); });
  expect_writes(Numbers(3), 0, [&](float* y) { k().mean(3, 0, 1, nullptr, y); });
}

TEST_P(EmptyTest, AttentionToNoKeysIsZero) {
  const AttentionShape s = {2, 3, 0, 2, 1, 4, 8, 4, 4, 8, false};
  const Array q = up(numbers(48, 1));
  const Array lse = up(numbers(12, 2));
  const Array scratch = up(Numbers(static_cast<size_t>(k().attention_scratch(s))));
  expect_writes(Numbers(48), 0, [&](float* y) {
    k().attention(s, q.data(), nullptr, nullptr, y, lse.data(), scratch.data());
  });
  EXPECT_EQ(lse.download(), std::vector<float>(12, -std::numeric_limits<float>::infinity()));
  const Array y = up(Numbers(48));
  expect_puts(Numbers(48), 0, [&](float* dq, bool accumulate) {
    k().attention_gradient(s, q.data(), nullptr, nullptr, y.data(), lse.data(), q.data(), dq,
                           nullptr, nullptr, accumulate, scratch.data());
  });
}

TEST_P(EmptyTest, AttentionOfNothing) {
  const Array out = up(numbers(64, 1));
  const std::vector<float> before = out.download();
  float* const y = out.data();
  const std::vector<int32_t> none;
  const Ids segments = up(none);
  for (const AttentionShape& s :
       {AttentionShape{0, 3, 3, 2, 1, 4, 8, 4, 4, 8, true},
        {2, 0, 0, 2, 1, 4, 8, 4, 4, 8, true},
        AttentionShape{2, 0, 0, 2, 1, 4, 8, 4, 4, 8, false, segments.data()},
        AttentionShape{0, 3, 3, 2, 1, 4, 8, 4, 4, 8, false, segments.data()}}) {
    const Array scratch = up(Numbers(static_cast<size_t>(k().attention_scratch(s))));
    k().attention(s, nullptr, nullptr, nullptr, y, y, scratch.data());
    for (const bool accumulate : {false, true}) {
      k().attention_gradient(s, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, y, y, y,
                             accumulate, scratch.data());
    }
  }
  EXPECT_EQ(out.download(), before);
}

}  // namespace
}  // namespace rrfp::kernels::testing
