// SPDX-License-Identifier: Apache-2.0
//
// Whether a schedule that was read from a text makes sense by itself, without a stage graph. As in
// torch.distributed.pipelining, stage s feeds stage s + 1 and row k is rank k.
#pragma once

#include <span>
#include <vector>

#include "engine/core/schedule_action.h"
#include "engine/core/status.h"

namespace rrfp::core {

struct ActionAt {
  Action action;
  int32_t column = 0;  // of its cell, from 1
};

/// The actions of a complete schedule: each message that the tasks need is sent once, after the
/// task that makes it, and received once, before the task that wants it; none is sent inside a rank
/// or for nothing. Parameters are gathered before a stage is computed and not twice, gradients are
/// reduced once, after the last of the stage. Errors name row and column, and the action.
Status check_actions(std::span<const std::vector<ActionAt>> rows);

/// What torch.distributed.pipelining asks of the tasks, and that none stands twice: `ranks` rows;
/// stages numbered from 0, each on exactly one row; microbatches 0 to `microbatches` - 1, in each
/// stage with one F, then one B or one I, and a W after each I. Whether ranks can wait for one
/// another for ever is not checked here (see lower_schedule and check_strict).
Status validate_schedule(std::span<const std::vector<Task>> rows, int32_t ranks,
                         int32_t microbatches);

}  // namespace rrfp::core
