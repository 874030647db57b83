// SPDX-License-Identifier: Apache-2.0
//
// A simulated step in real time: the real host, one thread per rank, tasks that sleep as long as
// the realisation says, links that hold messages back as long as it says. So pipelines of many
// ranks run on two cores, and what they take can be compared with what the simulator says.
#pragma once

#include <cstdint>

#include "engine/core/status.h"
#include "engine/sim/experiment.h"
#include "engine/trace/timeline.h"

namespace rrfp::bench {

struct RealRun {
  int64_t makespan_ns = 0;
  int64_t overslept_ns = 0;  // mean per task, which the clock of the machine adds
  int64_t peak_bytes = 0;
  trace::Timeline timeline;  // of the step, if asked for
};

core::Status run_real(const sim::Experiment& experiment, const sim::Prepared& prepared, bool record,
                      RealRun& out);

}  // namespace rrfp::bench
