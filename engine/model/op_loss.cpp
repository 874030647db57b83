// SPDX-License-Identifier: Apache-2.0
//
// Losses: one number per row or element; the loss of a microbatch is their sum.
#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

namespace {

// --- Cross-entropy of a softmax

Status infer_cross_entropy(const Graph& graph, const Op& op, std::span<const Shape> in,
                           Shape& out) {
  if (Status s = check_operands(graph, op, 2, 0, 0, 2); !s.ok()) return s;
  if (Status s = check_rank(graph, op, in.first(1), 2); !s.ok()) return s;
  if (in[0].last() == 0) return mismatch(graph, op, "the logits have no classes");
  Shape rows = in[0];
  rows.ndim -= 1;
  rows[rows.ndim] = 0;
  return merge_shapes(graph, op, rows, in[1], out);
}

int64_t cross_entropy_stats(const OpRun& run) {
  return run.out_shape->elements();
}

void cross_entropy_forward(const OpRun& run) {
  run.k->cross_entropy(run.out_shape->elements(), run.in_shape[0]->last(), run.in[0], run.ids(1),
                       run.op->attributes.ignore_index, run.out, run.stats);
}
void cross_entropy_input_gradient(const OpRun& run) {
  run.k->cross_entropy_gradient(run.out_shape->elements(), run.in_shape[0]->last(), run.in[0],
                                run.ids(1), run.op->attributes.ignore_index, run.stats,
                                run.out_gradient, run.in_gradient[0], run.accumulate[0]);
}

// --- Squared error

Status infer_squared_error(const Graph& graph, const Op& op, std::span<const Shape> in,
                           Shape& out) {
  if (Status s = check_operands(graph, op, 2, 0, 0); !s.ok()) return s;
  return merge_shapes(graph, op, in[0], in[1], out);
}

void squared_error_forward(const OpRun& run) {
  run.k->squared_error(run.out_shape->elements(), run.in[0], run.in[1], run.out);
}
void squared_error_input_gradient(const OpRun& run) {
  for (size_t k = 0; k < 2; ++k) {
    if (run.in_gradient[k] == nullptr) continue;
    run.k->squared_error_gradient(run.out_shape->elements(), run.in[0], run.in[1], run.out_gradient,
                                  k == 0 ? 1.0F : -1.0F, run.in_gradient[k], run.accumulate[k]);
  }
}

}  // namespace

const OpRules rules_of::kCrossEntropy = {
    .name = "cross_entropy",
    .infer = infer_cross_entropy,
    .stats_size = cross_entropy_stats,
    .scratch_size = nullptr,
    .forward = cross_entropy_forward,
    .input_gradient = cross_entropy_input_gradient,
    .weight_gradient = nullptr,
    .input_gradient_reads = {.inputs = 3, .output = false, .stats = true},
    .weight_gradient_reads = {}};

const OpRules rules_of::kSquaredError = {.name = "squared_error",
                                         .infer = infer_squared_error,
                                         .stats_size = nullptr,
                                         .scratch_size = nullptr,
                                         .forward = squared_error_forward,
                                         .input_gradient = squared_error_input_gradient,
                                         .weight_gradient = nullptr,
                                         .input_gradient_reads = {.inputs = 3},
                                         .weight_gradient_reads = {}};

}  // namespace rrfp::model
