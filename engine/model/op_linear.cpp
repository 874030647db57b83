// SPDX-License-Identifier: Apache-2.0
//
// Operations with a table or matrix of weights: linear, embedding, learned positions.
#include <limits>

#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

namespace {

// --- Linear: y = x W^T + b

Status infer_linear(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 1, 2); !s.ok()) return s;
  if (Status s = check_rank(graph, op, in, 1); !s.ok()) return s;
  const Shape& weight = graph.parameter(op.parameters[0]).shape;
  if (Status s = check_parameter(graph, op, 0, {Shape::kUnknown, in[0].last()}); !s.ok()) return s;
  if (op.parameters.size() == 2) {
    if (Status s = check_parameter(graph, op, 1, {weight[0]}); !s.ok()) return s;
  }
  out = in[0];
  out[out.ndim - 1] = weight[0];
  for (int64_t extent : {in[0].rows(), in[0].last(), weight[0]}) {  // what product libraries take
    if (extent <= std::numeric_limits<int32_t>::max()) continue;
    return mismatch(graph, op,
                    "has " + std::to_string(extent) + " rows or columns; at most " +
                        std::to_string(std::numeric_limits<int32_t>::max()) + " are possible");
  }
  return {};
}

kernels::GemmShape product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k) {
  return {.transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .m = m,
          .n = n,
          .k = k,
          .lda = transpose_a ? m : k,
          .ldb = transpose_b ? k : n,
          .ldc = n};
}

void linear_forward(const OpRun& run) {
  const int64_t rows = run.out_shape->rows();
  const int64_t width = run.out_shape->last();
  const bool bias = run.op->parameters.size() == 2;
  if (bias) run.k->broadcast_rows(rows, width, run.weight[1], run.out);
  run.k->gemm(product(false, true, rows, width, run.in_shape[0]->last()), run.in[0], run.weight[0],
              bias ? 1.0F : 0.0F, run.out);
}

void linear_input_gradient(const OpRun& run) {
  const int64_t rows = run.out_shape->rows();
  run.k->gemm(product(false, false, rows, run.in_shape[0]->last(), run.out_shape->last()),
              run.out_gradient, run.weight[0], run.accumulate[0] ? 1.0F : 0.0F, run.in_gradient[0]);
}

void linear_weight_gradient(const OpRun& run) {
  const int64_t rows = run.out_shape->rows();
  const int64_t width = run.out_shape->last();
  if (run.weight_gradient[0] != nullptr) {
    run.k->gemm(product(true, false, width, run.in_shape[0]->last(), rows), run.out_gradient,
                run.in[0], 1.0F, run.weight_gradient[0]);
  }
  if (run.weight_gradient[1] != nullptr) {
    run.k->sum_rows(rows, width, run.out_gradient, run.weight_gradient[1]);
  }
}

// --- Embedding

Status infer_embedding(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 1, 1, 1); !s.ok()) return s;
  if (Status s = check_parameter(graph, op, 0, {Shape::kUnknown, Shape::kUnknown}); !s.ok()) {
    return s;
  }
  if (in[0].ndim == Shape::kDimsMax) return mismatch(graph, op, "the ids have too many axes");
  out = in[0];
  out.ndim += 1;
  out[out.ndim - 1] = graph.parameter(op.parameters[0]).shape[1];
  return {};
}

void embedding_forward(const OpRun& run) {
  run.k->gather_rows(run.out_shape->rows(), run.out_shape->last(), run.ids(0), run.weight[0],
                     run.out);
}

void embedding_weight_gradient(const OpRun& run) {
  run.k->scatter_add_rows(run.out_shape->rows(), run.out_shape->last(), run.ids(0),
                          run.out_gradient, run.weight_gradient[0]);
}

// --- Learned positions

Status infer_positions(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 1, 1); !s.ok()) return s;
  if (Status s = check_rank(graph, op, in, 2); !s.ok()) return s;
  if (Status s = check_parameter(graph, op, 0, {Shape::kUnknown, in[0].last()}); !s.ok()) return s;
  const int64_t length = in[0][in[0].ndim - 2];
  const int64_t known = graph.parameter(op.parameters[0]).shape[0];
  if (length > known) {
    return mismatch(graph, op,
                    "the sequence has " + std::to_string(length) + " positions; the table has " +
                        std::to_string(known));
  }
  out = in[0];
  return {};
}

int64_t length_of(const OpRun& run) {
  return (*run.in_shape[0])[run.in_shape[0]->ndim - 2];
}

void positions_forward(const OpRun& run) {
  run.k->add_positions(run.out_shape->rows(), run.out_shape->last(), length_of(run),
                       run.first_position, run.in[0], run.weight[0], run.out);
}

void positions_input_gradient(const OpRun& run) {
  run.k->copy(run.out_shape->elements(), run.out_gradient, run.in_gradient[0], run.accumulate[0]);
}

void positions_weight_gradient(const OpRun& run) {
  run.k->positions_gradient(run.out_shape->rows(), run.out_shape->last(), length_of(run),
                            run.out_gradient, run.weight_gradient[0]);
}

}  // namespace

const OpRules rules_of::kLinear = {.name = "linear",
                                   .infer = infer_linear,
                                   .stats_size = nullptr,
                                   .scratch_size = nullptr,
                                   .forward = linear_forward,
                                   .input_gradient = linear_input_gradient,
                                   .weight_gradient = linear_weight_gradient,
                                   .input_gradient_reads = {},
                                   .weight_gradient_reads = {.inputs = 1}};

const OpRules rules_of::kEmbedding = {.name = "embedding",
                                      .infer = infer_embedding,
                                      .stats_size = nullptr,
                                      .scratch_size = nullptr,
                                      .forward = embedding_forward,
                                      .input_gradient = nullptr,
                                      .weight_gradient = embedding_weight_gradient,
                                      .input_gradient_reads = {},
                                      .weight_gradient_reads = {.inputs = 1}};

const OpRules rules_of::kPositions = {.name = "positions",
                                      .infer = infer_positions,
                                      .stats_size = nullptr,
                                      .scratch_size = nullptr,
                                      .forward = positions_forward,
                                      .input_gradient = positions_input_gradient,
                                      .weight_gradient = positions_weight_gradient,
                                      .input_gradient_reads = {},
                                      .weight_gradient_reads = {}};

}  // namespace rrfp::model
