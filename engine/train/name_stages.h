// SPDX-License-Identifier: Apache-2.0
//
// The stages of a model in its own words, for timelines.
#pragma once

#include <vector>

#include "engine/model/cut.h"
#include "engine/model/graph.h"
#include "engine/trace/timeline.h"

namespace rrfp::train {

/// A stage is called as its block, or "first .. last"; a branch as its first block. A stage that
/// has blocks of several branches is of none of them, but of "first .. last".
[[nodiscard]] std::vector<trace::StageName> name_stages(const model::Graph& graph,
                                                        const model::Cut& cut);

}  // namespace rrfp::train
