// SPDX-License-Identifier: Apache-2.0
//
// How fast a step could be at best.
#pragma once

#include <cstdint>

#include "engine/sim/workload.h"

namespace rrfp::sim {

/// A lower bound of the makespan, in nanoseconds: for each device, Jackson's preemptive schedule of
/// its tasks (Jackson, 1955; Carlier, 1982), each released after the shortest way to it and
/// followed by the shortest way from it to the end; the largest over the devices. True durations
/// and message times, but no contention of links, no slow episodes and no limit of memory. The
/// model is cut into two chunks per device in the V placement, which bounds the work of the
/// uncut placement too, on average a little more weakly.
[[nodiscard]] int64_t lower_bound_ns(const Realization& step);

}  // namespace rrfp::sim
