// SPDX-License-Identifier: Apache-2.0
//
// Which branch of a model the ranks worked for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "capi/cli/api.h"

namespace rrfp::cli {

/// The share of each branch in the time that ranks computed, by the timeline that a trainer keeps:
/// "vision", "text", "language", or a join such as "vision+text" where a stage has blocks of both.
/// In the order of the stages.
std::vector<std::pair<std::string, double>> branch_shares(rrfp_trainer* trainer,
                                                          const rrfp_model* model);

}  // namespace rrfp::cli
