// SPDX-License-Identifier: Apache-2.0
//
// Pipelines that are chains of stages, for tests with exact expectations.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/virtual_pipeline.h"

namespace rrfp::test {

/// The stages in a row; the last one is the loss stage.
[[nodiscard]] std::shared_ptr<const core::StepTasks> chain_of(
    const std::vector<core::Stage>& stages, int32_t ranks, int32_t microbatches,
    core::Placement placement);

[[nodiscard]] std::shared_ptr<const core::Hint> named_hint(std::string_view name);

/// What a rank ran, in order.
[[nodiscard]] std::vector<core::Task> tasks_of(const RankRecord& rank);

/// Schedule text of a row.
[[nodiscard]] std::string text_of(const std::vector<core::Task>& tasks);

}  // namespace rrfp::test
