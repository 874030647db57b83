// SPDX-License-Identifier: Apache-2.0
//
// Cutting a model into stages of equal cost.
#pragma once

#include <span>
#include <vector>

#include "engine/core/status.h"
#include "engine/model/graph.h"
#include "kernels/kernels.h"

namespace rrfp::model {

/// What blocks cost without measuring: the multiplications of a forward pass per row, from the
/// sizes of the weight matrices. Comparable with each other only.
[[nodiscard]] std::vector<int64_t> estimate_costs(const Graph& graph);

/// Forward and backward of each block in nanoseconds, on this thread: the median of a few runs.
/// `inputs` has the numbers of each input of the model (f32 or i32), `shapes` their shapes.
core::Status measure_costs(const Graph& graph, const kernels::Kernels& kernels,
                           std::span<const Shape> shapes, std::span<const float* const> inputs,
                           std::vector<int64_t>& out);

/// The first block of each stage, so that the most expensive stage is as cheap as possible (exact,
/// by dynamic programming). Every stage gets at least one block.
/// Errors: kOutOfRange (fewer blocks than stages), kInvalidArgument (a negative cost).
core::Status partition(std::span<const int64_t> costs, int32_t stages, std::vector<int32_t>& out);

}  // namespace rrfp::model
