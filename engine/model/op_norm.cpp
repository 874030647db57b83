// SPDX-License-Identifier: Apache-2.0
//
// Normalisation over the last axis.
#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

namespace {

Status infer_norm(const Graph& graph, const Op& op, std::span<const Shape> in,
                  size_t parameters_max, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 1, parameters_max); !s.ok()) return s;
  if (Status s = check_rank(graph, op, in, 1); !s.ok()) return s;
  for (size_t k = 0; k < op.parameters.size(); ++k) {
    if (Status s = check_parameter(graph, op, k, {in[0].last()}); !s.ok()) return s;
  }
  if (!(op.attributes.epsilon > 0)) {
    return mismatch(graph, op,
                    "epsilon is " + std::to_string(op.attributes.epsilon) + "; expected above 0");
  }
  out = in[0];
  return {};
}

Status infer_layer_norm(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  return infer_norm(graph, op, in, 2, out);
}

Status infer_rms_norm(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  return infer_norm(graph, op, in, 1, out);
}

// Layer norm keeps mean and 1 / deviation of each row, one array after the other.
int64_t layer_norm_stats(const OpRun& run) {
  return 2 * run.in_shape[0]->rows();
}

void layer_norm_forward(const OpRun& run) {
  const int64_t rows = run.in_shape[0]->rows();
  const bool bias = run.op->parameters.size() == 2;
  run.k->layer_norm(rows, run.in_shape[0]->last(), static_cast<float>(run.op->attributes.epsilon),
                    run.in[0], run.weight[0], bias ? run.weight[1] : nullptr, run.out, run.stats,
                    run.stats + rows);
}

void layer_norm_input_gradient(const OpRun& run) {
  const int64_t rows = run.in_shape[0]->rows();
  run.k->layer_norm_gradient(rows, run.in_shape[0]->last(), run.in[0], run.weight[0], run.stats,
                             run.stats + rows, run.out_gradient, run.in_gradient[0],
                             run.accumulate[0]);
}

void layer_norm_weight_gradient(const OpRun& run) {
  const int64_t rows = run.in_shape[0]->rows();
  if (run.weight_gradient[0] == nullptr) {  // gamma is frozen, beta is not
    run.k->sum_rows(rows, run.in_shape[0]->last(), run.out_gradient, run.weight_gradient[1]);
    return;
  }
  run.k->layer_norm_weights(rows, run.in_shape[0]->last(), run.in[0], run.stats, run.stats + rows,
                            run.out_gradient, run.weight_gradient[0], run.weight_gradient[1]);
}

int64_t rms_norm_stats(const OpRun& run) {
  return run.in_shape[0]->rows();
}

void rms_norm_forward(const OpRun& run) {
  run.k->rms_norm(run.in_shape[0]->rows(), run.in_shape[0]->last(),
                  static_cast<float>(run.op->attributes.epsilon), run.in[0], run.weight[0], run.out,
                  run.stats);
}

void rms_norm_input_gradient(const OpRun& run) {
  run.k->rms_norm_gradient(run.in_shape[0]->rows(), run.in_shape[0]->last(), run.in[0],
                           run.weight[0], run.stats, run.out_gradient, run.in_gradient[0],
                           run.accumulate[0]);
}

void rms_norm_weight_gradient(const OpRun& run) {
  run.k->rms_norm_weights(run.in_shape[0]->rows(), run.in_shape[0]->last(), run.in[0], run.stats,
                          run.out_gradient, run.weight_gradient[0]);
}

}  // namespace

const OpRules rules_of::kLayerNorm = {.name = "layer_norm",
                                      .infer = infer_layer_norm,
                                      .stats_size = layer_norm_stats,
                                      .scratch_size = nullptr,
                                      .forward = layer_norm_forward,
                                      .input_gradient = layer_norm_input_gradient,
                                      .weight_gradient = layer_norm_weight_gradient,
                                      .input_gradient_reads = {.inputs = 1, .stats = true},
                                      .weight_gradient_reads = {.inputs = 1, .stats = true}};

const OpRules rules_of::kRmsNorm = {.name = "rms_norm",
                                    .infer = infer_rms_norm,
                                    .stats_size = rms_norm_stats,
                                    .scratch_size = nullptr,
                                    .forward = rms_norm_forward,
                                    .input_gradient = rms_norm_input_gradient,
                                    .weight_gradient = rms_norm_weight_gradient,
                                    .input_gradient_reads = {.inputs = 1, .stats = true},
                                    .weight_gradient_reads = {.inputs = 1, .stats = true}};

}  // namespace rrfp::model
