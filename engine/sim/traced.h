// SPDX-License-Identifier: Apache-2.0
//
// A workload that was measured: the tasks of a timeline, to be run again in another way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/core/step_tasks.h"
#include "engine/sim/scenario.h"
#include "engine/trace/timeline.h"

namespace rrfp::sim {

/// The steps of a timeline. Its stages must form a chain, each on one rank, and every step must
/// have the same stages and microbatches, whole.
struct Traced {
  std::shared_ptr<const core::StageGraph> graph;  // with the mean durations as predictions
  int32_t microbatches = 0;
  std::vector<Durations> steps;  // a B is halved
  Durations predicted;           // mean over the steps
  int64_t message_ns = 0;        // the shortest
};

/// Errors: kBadData, which says what is missing or is not a chain.
core::Status read_traced(const trace::Timeline& timeline, Traced& out);

}  // namespace rrfp::sim
