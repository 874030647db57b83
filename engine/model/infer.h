// SPDX-License-Identifier: Apache-2.0
//
// What the shape rules of operations share: checks with texts that name the operation.
#pragma once

#include <string>

#include "engine/model/op_rules.h"

namespace rrfp::model {

[[nodiscard]] inline core::Status mismatch(const Graph& graph, const Op& op,
                                           const std::string& what) {
  return {core::Code::kTensorMismatch, describe(graph, op) + ": " + what};
}

/// Exactly so many inputs, all f32 but for those whose bit in `i32_inputs` is set; parameters
/// between the two numbers.
[[nodiscard]] core::Status check_operands(const Graph& graph, const Op& op, size_t inputs,
                                          size_t parameters_min, size_t parameters_max,
                                          uint32_t i32_inputs = 0);
[[nodiscard]] core::Status check_rank(const Graph& graph, const Op& op,
                                      std::span<const Shape> shapes, int32_t ndim_min);
/// Parameter `index` must have this shape, as far as it is known.
[[nodiscard]] core::Status check_parameter(const Graph& graph, const Op& op, size_t index,
                                           const Shape& expected);
/// Both inputs must have one shape; `out` gets what is known of it.
[[nodiscard]] core::Status merge_shapes(const Graph& graph, const Op& op, const Shape& a,
                                        const Shape& b, Shape& out);
/// Input `index` has one number for each row of input 0, whose shape `out` has as far as it is
/// known: `out` gets what more is known of it.
[[nodiscard]] core::Status match_rows(const Graph& graph, const Op& op, std::span<const Shape> in,
                                      size_t index, Shape& out);
/// The axis that the operation names, counted from 0.
[[nodiscard]] core::Status resolve_axis(const Graph& graph, const Op& op, int32_t ndim,
                                        int32_t& out);

}  // namespace rrfp::model
