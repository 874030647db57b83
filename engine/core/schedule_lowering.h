// SPDX-License-Identifier: Apache-2.0
//
// From a schedule of tasks to one that says everything, in the form that
// torch.distributed.pipelining runs: who sends and receives what when, and optionally when the
// parameters of a stage are gathered and its gradients reduced. The engine does not need it (it
// sends when something is done); it is for exporting schedules, and it shows whether an order can
// be obeyed by ranks that exchange messages in the order written.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/core/schedule_action.h"
#include "engine/core/status.h"

namespace rrfp::core {

struct LoweringOptions {
  bool fsdp = false;    // UNSHARD before a stage is needed, RESHARD when others take its place
  bool reduce = false;  // REDUCE_GRAD after the last backward task of a stage
};

/// Adds the actions to the tasks of each rank, as PyTorch's own passes do. Stage s feeds stage s +
/// 1; a task whose neighbour has no task for the microbatch sends nothing. An error where a stage
/// stands on two rows, and where no rank can advance; that one says what each rank waits for.
Status lower_schedule(std::span<const std::vector<Task>> per_rank, const LoweringOptions& options,
                      std::vector<std::vector<Action>>& out);

/// One row per rank, rows ended by LF; the complete flavour of schedule_text.h.
[[nodiscard]] std::string print_schedule_actions(std::span<const std::vector<Action>> per_rank);

}  // namespace rrfp::core
