// SPDX-License-Identifier: Apache-2.0
//
// Two stages on two ranks, for tests of what goes over the edge between them.
#pragma once

#include <cstdint>
#include <utility>

#include "toy_chain.h"

namespace rrfp::cases {

struct Pair {
  Pair(StageCode first, StageCode second, int32_t edges = 1) : toy(2), hint(make_hint("1f1b")) {
    toy.add_stage(std::move(first), 0, 0);
    toy.add_stage(std::move(second), RRFP_STAGE_LOSS, 1);
    for (int32_t e = 0; e < edges; ++e) toy.add_edge(0, 1);
    toy.quiesce = true;
    toy.open();
  }
  StepResult run(int32_t microbatches = 1, rrfp_step_mode mode = RRFP_MODE_TRAIN) {
    return toy.run({.hint = hint.get(), .microbatches = microbatches, .mode = mode});
  }
  ToyPipeline toy;
  HintPtr hint;
};

/// A vector of floats.
inline rrfp_tensor view(void* data, rrfp_buffer* buffer, int64_t count, uint32_t flags = 0) {
  rrfp_tensor tensor = {};
  tensor.data = data;
  tensor.buffer = buffer;
  tensor.ndim = 1;
  tensor.shape[0] = count;
  tensor.dtype = RRFP_F32;
  tensor.flags = flags;
  return tensor;
}

}  // namespace rrfp::cases
