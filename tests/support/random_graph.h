// SPDX-License-Identifier: Apache-2.0
//
// Random stage graphs and the hints that fit them; the parts of random_case.h.
#pragma once

#include <memory>
#include <vector>

#include "engine/core/hint.h"
#include "tests/support/splitmix.h"

namespace rrfp::test {

/// A sealed graph on 1 to 6 ranks. `chunky`: at least two stages on some rank.
[[nodiscard]] std::shared_ptr<const core::StageGraph> make_random_graph(Splitmix& random,
                                                                        bool chunky);

/// A named schedule, explicit lists or priorities.
[[nodiscard]] std::shared_ptr<const core::Hint> make_random_hint(Splitmix& random,
                                                                 const core::StepTasks& tasks);

}  // namespace rrfp::test
