// SPDX-License-Identifier: Apache-2.0
//
// Simulated steps as timelines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/hint.h"
#include "engine/core/status.h"
#include "engine/core/step_tasks.h"
#include "engine/sim/layout.h"
#include "engine/sim/scenario.h"
#include "engine/sim/workload.h"
#include "engine/trace/timeline.h"

namespace rrfp::sim {

/// Simulates, and adds what happened to the ranks of the timeline. `numbers`: those of the
/// microbatches in the timeline, by number in the pipeline. The plans must have record_ready.
Outcome record(const Scenario& scenario, std::span<const int32_t> numbers, int64_t step,
               trace::Timeline& out);

/// Those of a model with an encoder: "encoder.0", "language.2"; none for other models.
[[nodiscard]] std::vector<trace::StageName> stage_names(const Realization& step,
                                                        const Layout& layout);

/// What a schedule looks like when everything takes as long as planned: obeyed strictly, or, if it
/// cannot be, as a ranking without a limit of memory. F, I and W take a millisecond each, messages
/// no time.
core::Status draw_hint(const std::shared_ptr<const core::StepTasks>& tasks, const core::Hint& hint,
                       trace::Timeline& out);

}  // namespace rrfp::sim
