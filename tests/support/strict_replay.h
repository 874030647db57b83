// SPDX-License-Identifier: Apache-2.0
//
// Whether a strict order can be obeyed, found without a RankCore: a second opinion on
// core::check_strict.
#pragma once

#include "engine/core/hint.h"
#include "engine/core/step_tasks.h"

namespace rrfp::test {

/// Repeats "some rank does the next task of its list" until nothing moves; true if all lists are
/// then done. `deterministic`: weight gradients of a stage go in injection order, and a B whose
/// turn has not come runs as I, its W following as soon as it may.
[[nodiscard]] bool can_be_obeyed(const core::StepTasks& tasks, const core::Hint& hint,
                                 bool deterministic);

}  // namespace rrfp::test
