// SPDX-License-Identifier: Apache-2.0
//
// Timelines to write, read and draw: a small greedy pipeline in virtual time, with noise.
#pragma once

#include <cstdint>

#include "engine/trace/timeline.h"

namespace rrfp::test {

struct SampleOptions {
  int32_t ranks = 4;
  int32_t stages_per_rank = 1;
  int32_t microbatches = 8;
  int32_t steps = 1;
  bool split_backward = true;  // I and W instead of B
  uint64_t seed = 1;
  int32_t branches = 0;  // how many the stages are of, one after the other; 0: no names
};

/// Has tasks of every kind that the options allow, every idle reason, gaps and messages; begins at
/// 0, and all in it can be written and read without loss.
[[nodiscard]] trace::Timeline sample_timeline(const SampleOptions& options);

}  // namespace rrfp::test
