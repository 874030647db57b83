// SPDX-License-Identifier: Apache-2.0
#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

Status check_operands(const Graph& graph, const Op& op, size_t inputs, size_t parameters_min,
                      size_t parameters_max, uint32_t i32_inputs) {
  if (op.inputs.size() != inputs) {
    return mismatch(
        graph, op,
        "has " + std::to_string(op.inputs.size()) + " inputs; expected " + std::to_string(inputs));
  }
  if (op.parameters.size() < parameters_min || op.parameters.size() > parameters_max) {
    std::string expected = std::to_string(parameters_min);
    if (parameters_max > parameters_min) expected += " to " + std::to_string(parameters_max);
    return mismatch(
        graph, op,
        "has " + std::to_string(op.parameters.size()) + " parameters; expected " + expected);
  }
  for (size_t k = 0; k < inputs; ++k) {
    const bool wants_i32 = ((i32_inputs >> k) & 1) != 0;
    const bool is_i32 = graph.value(op.inputs[k]).type == ValueType::kI32;
    if (wants_i32 == is_i32) continue;
    return mismatch(graph, op,
                    "input " + std::to_string(k) + " is " + (is_i32 ? "i32" : "f32") +
                        "; expected " + (wants_i32 ? "i32" : "f32"));
  }
  return {};
}

Status check_rank(const Graph& graph, const Op& op, std::span<const Shape> shapes,
                  int32_t ndim_min) {
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (shapes[k].ndim >= ndim_min) continue;
    return mismatch(graph, op,
                    "input " + std::to_string(k) + " has shape " + to_string(shapes[k]) +
                        "; expected at least " + std::to_string(ndim_min) + " axes");
  }
  return {};
}

Status check_parameter(const Graph& graph, const Op& op, size_t index, const Shape& expected) {
  const Parameter& parameter = graph.parameter(op.parameters[index]);
  if (may_equal(parameter.shape, expected)) return {};
  return mismatch(graph, op,
                  "parameter " + parameter.name + " has shape " + to_string(parameter.shape) +
                      "; expected " + to_string(expected));
}

Status merge_shapes(const Graph& graph, const Op& op, const Shape& a, const Shape& b, Shape& out) {
  if (!may_equal(a, b)) {
    return mismatch(
        graph, op,
        "inputs have shapes " + to_string(a) + " and " + to_string(b) + "; expected the same");
  }
  out = a;
  for (int32_t d = 0; d < a.ndim; ++d) out[d] = known_of(a[d], b[d]);
  return {};
}

Status match_rows(const Graph& graph, const Op& op, std::span<const Shape> in, size_t index,
                  Shape& out) {
  Shape rows = out;
  rows.ndim -= 1;
  rows[rows.ndim] = 0;
  if (!may_equal(in[index], rows)) {
    return mismatch(graph, op,
                    "input " + std::to_string(index) + " has shape " + to_string(in[index]) +
                        "; expected " + to_string(rows));
  }
  for (int32_t d = 0; d < rows.ndim; ++d) out[d] = known_of(out[d], in[index][d]);
  return {};
}

Status resolve_axis(const Graph& graph, const Op& op, int32_t ndim, int32_t& out) {
  const int32_t axis = op.attributes.axis;
  if (axis < -ndim || axis >= ndim) {
    return mismatch(graph, op,
                    "axis is " + std::to_string(axis) + "; expected " + std::to_string(-ndim) +
                        " to " + std::to_string(ndim - 1));
  }
  out = axis < 0 ? axis + ndim : axis;
  return {};
}

}  // namespace rrfp::model
