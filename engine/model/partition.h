// SPDX-License-Identifier: Apache-2.0
//
// Cutting a model into stages of equal cost, and spreading these over ranks.
#pragma once

#include <span>
#include <vector>

#include "engine/core/status.h"
#include "engine/model/graph.h"
#include "kernels/kernels.h"

namespace rrfp::model {

/// What blocks cost without measuring: the multiplications of forward and backward, from the sizes
/// of the weight matrices, for one sample: of as many rows as are known, or else as the largest
/// known number between blocks. Comparable with each other only, and where branches have unlike
/// numbers of rows (pictures, words) a coarse guess. 0 for what no loss needs.
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

/// The branch of each block, ascending from 0. A branch is a run of blocks of which each reads the
/// one before it; a block at which it meets another branch for the first time begins a new one.
[[nodiscard]] std::vector<int32_t> find_branches(const Graph& graph);

struct Placed {
  std::vector<int32_t> first_blocks;  // by stage
  std::vector<int32_t> stage_ranks;   // by stage
};

/// Stages that have blocks of one branch each, cut as by partition(), and a rank for each, so that
/// the busiest rank has as little to do as the rule of Graham (1969), longest processing time
/// first, achieves: at most 4/3 of the optimum.
/// Errors: kOutOfRange (unless branches <= stages <= blocks and 1 <= ranks <= stages),
/// kInvalidArgument (a cost).
core::Status place(std::span<const int64_t> costs, std::span<const int32_t> branches,
                   int32_t stages, int32_t ranks, Placed& out);

}  // namespace rrfp::model
