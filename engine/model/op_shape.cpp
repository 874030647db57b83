// SPDX-License-Identifier: Apache-2.0
//
// Operations that move or average along axes.
#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

namespace {

// The axis has been checked when the shape was inferred.
int32_t axis_of(const OpRun& run) {
  const int32_t axis = run.op->attributes.axis;
  return axis < 0 ? axis + run.in_shape[0]->ndim : axis;
}

// --- Concatenation

Status infer_concat(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (op.inputs.empty()) return mismatch(graph, op, "has no inputs; expected 1 or more");
  if (Status s = check_operands(graph, op, op.inputs.size(), 0, 0); !s.ok()) return s;
  int32_t axis = 0;
  if (Status s = resolve_axis(graph, op, in[0].ndim, axis); !s.ok()) return s;
  out = in[0];
  for (size_t k = 1; k < in.size(); ++k) {
    Shape expected = out;
    if (in[k].ndim == out.ndim) expected[axis] = in[k][axis];
    if (!may_equal(in[k], expected)) {
      return mismatch(graph, op,
                      "input " + std::to_string(k) + " has shape " + to_string(in[k]) +
                          "; expected " + to_string(out) + " but for axis " + std::to_string(axis));
    }
    for (int32_t d = 0; d < out.ndim; ++d) {
      if (d != axis) out[d] = known_of(out[d], in[k][d]);
    }
    const bool known = out[axis] != Shape::kUnknown && in[k][axis] != Shape::kUnknown;
    out[axis] = known ? out[axis] + in[k][axis] : Shape::kUnknown;
  }
  return {};
}

/// Calls use(input, its width, its offset in a row of the output): everything behind the axis,
/// and the axis itself, is contiguous in both.
template <class Use>
void for_each_part(const OpRun& run, Use use) {
  const int32_t axis = axis_of(run);
  int64_t offset = 0;
  for (size_t k = 0; k < run.op->inputs.size(); ++k) {
    const int64_t width = run.in_shape[k]->product(axis, run.in_shape[k]->ndim);
    use(k, width, offset);
    offset += width;
  }
}

void concat_forward(const OpRun& run) {
  const int32_t axis = axis_of(run);
  const int64_t rows = run.out_shape->product(0, axis);
  const int64_t width_out = run.out_shape->product(axis, run.out_shape->ndim);
  for_each_part(run, [&](size_t k, int64_t width, int64_t offset) {
    run.k->copy_block(rows, width, run.in[k], width, run.out + offset, width_out, false);
  });
}

void concat_input_gradient(const OpRun& run) {
  const int32_t axis = axis_of(run);
  const int64_t rows = run.out_shape->product(0, axis);
  const int64_t width_out = run.out_shape->product(axis, run.out_shape->ndim);
  for_each_part(run, [&](size_t k, int64_t width, int64_t offset) {
    if (run.in_gradient[k] == nullptr) return;
    run.k->copy_block(rows, width, run.out_gradient + offset, width_out, run.in_gradient[k], width,
                      run.accumulate[k]);
  });
}

// --- Reshape. A copy: values never share memory, which keeps plans simple; it is rarely used.

Status infer_reshape(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 0, 0); !s.ok()) return s;
  const Shape& wanted = op.attributes.shape;
  const auto wrong = [&](const std::string& why) {
    return mismatch(graph, op,
                    "cannot make " + to_string(wanted) + " of " + to_string(in[0]) + ": " + why);
  };
  if (wanted.ndim < 1) return wrong("the new shape has no axes");
  out = wanted;
  // Extents that stay count on neither side: they may be unknown, or 0, and say nothing of the
  // rest.
  Shape counted = in[0];
  int64_t others = 1;
  int32_t rest = -1;
  for (int32_t d = 0; d < wanted.ndim; ++d) {
    if (wanted[d] < -1) return wrong("an extent is below -1");
    if (wanted[d] == 0) {
      if (d >= in[0].ndim) return wrong("axis " + std::to_string(d) + " does not exist");
      out[d] = in[0][d];
      counted[d] = 1;
    } else if (wanted[d] == -1) {
      if (rest >= 0) return wrong("two extents are -1");
      rest = d;
    } else {
      if (others > Shape::kElementsMax / wanted[d]) return wrong("it is too large");
      others *= wanted[d];
    }
  }
  const int64_t count = counted.elements();
  if (count == Shape::kUnknown) return {};  // the rest is, too
  if (rest >= 0) out[rest] = count / others;
  if (count != others * (rest >= 0 ? out[rest] : 1)) return wrong("the numbers of elements differ");
  return {};
}

void reshape_forward(const OpRun& run) {
  run.k->copy(run.out_shape->elements(), run.in[0], run.out, false);
}
void reshape_input_gradient(const OpRun& run) {
  run.k->copy(run.out_shape->elements(), run.out_gradient, run.in_gradient[0], run.accumulate[0]);
}

// --- Mean over an axis

Status infer_mean(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 0, 0); !s.ok()) return s;
  if (Status s = check_rank(graph, op, in, 2); !s.ok()) return s;
  int32_t axis = 0;
  if (Status s = resolve_axis(graph, op, in[0].ndim, axis); !s.ok()) return s;
  out = {};
  for (int32_t d = 0; d < in[0].ndim; ++d) {
    if (d != axis) out[out.ndim++] = in[0][d];
  }
  if (in[0][axis] == 0 && out.elements() > 0) return mismatch(graph, op, "the mean of no elements");
  return {};
}

void mean_forward(const OpRun& run) {
  const Shape& x = *run.in_shape[0];
  const int32_t axis = axis_of(run);
  run.k->mean(x.product(0, axis), x[axis], x.product(axis + 1, x.ndim), run.in[0], run.out);
}
void mean_input_gradient(const OpRun& run) {
  const Shape& x = *run.in_shape[0];
  const int32_t axis = axis_of(run);
  run.k->mean_gradient(x.product(0, axis), x[axis], x.product(axis + 1, x.ndim), run.out_gradient,
                       run.in_gradient[0], run.accumulate[0]);
}

constexpr OpRules move(const char* name, decltype(OpRules::infer) infer,
                       decltype(OpRules::forward) forward,
                       decltype(OpRules::input_gradient) input_gradient) {
  return {.name = name,
          .infer = infer,
          .stats_size = nullptr,
          .scratch_size = nullptr,
          .forward = forward,
          .input_gradient = input_gradient,
          .weight_gradient = nullptr,
          .input_gradient_reads = {},
          .weight_gradient_reads = {}};
}

}  // namespace

const OpRules rules_of::kConcat =
    move("concat", infer_concat, concat_forward, concat_input_gradient);
const OpRules rules_of::kReshape =
    move("reshape", infer_reshape, reshape_forward, reshape_input_gradient);
const OpRules rules_of::kMean = move("mean", infer_mean, mean_forward, mean_input_gradient);

}  // namespace rrfp::model
