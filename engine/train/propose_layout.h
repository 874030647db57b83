// SPDX-License-Identifier: Apache-2.0
//
// Which layout to train a model on. Weights do not move between steps, so this is asked once,
// before anything can be measured: from estimated costs, by simulation.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/core/graph.h"

namespace rrfp::train {

/// One line for a report: what a step would take with two stages a rank in V placement beside one
/// stage a rank, each under the best candidate of engine/sim/choose.h and in equal memory. `costs`:
/// by block (model::estimate_costs). Empty if the model has too few blocks to have a choice.
[[nodiscard]] std::string propose_layout(std::span<const int64_t> costs, int32_t ranks);

}  // namespace rrfp::train
