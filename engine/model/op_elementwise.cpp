// SPDX-License-Identifier: Apache-2.0
//
// Operations that treat every element alike.
#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

namespace {

Status infer_unary(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 0, 0); !s.ok()) return s;
  out = in[0];
  return {};
}

Status infer_binary(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 2, 0, 0); !s.ok()) return s;
  return merge_shapes(graph, op, in[0], in[1], out);
}

void gelu_forward(const OpRun& run) {
  run.k->gelu(run.out_shape->elements(), run.in[0], run.out);
}
void gelu_input_gradient(const OpRun& run) {
  run.k->gelu_gradient(run.out_shape->elements(), run.in[0], run.out_gradient, run.in_gradient[0],
                       run.accumulate[0]);
}

void silu_forward(const OpRun& run) {
  run.k->silu(run.out_shape->elements(), run.in[0], run.out);
}
void silu_input_gradient(const OpRun& run) {
  run.k->silu_gradient(run.out_shape->elements(), run.in[0], run.out_gradient, run.in_gradient[0],
                       run.accumulate[0]);
}

void swiglu_forward(const OpRun& run) {
  run.k->swiglu(run.out_shape->elements(), run.in[0], run.in[1], run.out);
}
void swiglu_input_gradient(const OpRun& run) {
  const auto gradient = [&](float* gate, float* up) {
    run.k->swiglu_gradient(run.out_shape->elements(), run.in[0], run.in[1], run.out_gradient, gate,
                           run.accumulate[0], up, run.accumulate[1]);
  };
  if (run.in_gradient[0] != run.in_gradient[1]) {
    gradient(run.in_gradient[0], run.in_gradient[1]);
  } else {  // one value is both, and its two gradients must not be stored at once
    gradient(run.in_gradient[0], nullptr);
    gradient(nullptr, run.in_gradient[1]);
  }
}

Status infer_dropout(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  const double p = op.attributes.probability;
  if (!(p >= 0 && p < 1)) {
    return mismatch(graph, op, "probability is " + std::to_string(p) + "; expected 0 <= p < 1");
  }
  return infer_unary(graph, op, in, out);
}
// Outside of training nothing is dropped.
void dropout_forward(const OpRun& run) {
  if (!run.training) {
    run.k->copy(run.out_shape->elements(), run.in[0], run.out, false);
    return;
  }
  run.k->dropout(run.out_shape->elements(), static_cast<float>(run.op->attributes.probability),
                 run.random, run.in[0], run.out, false);
}
void dropout_input_gradient(const OpRun& run) {
  run.k->dropout(run.out_shape->elements(), static_cast<float>(run.op->attributes.probability),
                 run.random, run.out_gradient, run.in_gradient[0], run.accumulate[0]);
}

void add_forward(const OpRun& run) {
  run.k->add(run.out_shape->elements(), run.in[0], run.in[1], run.out);
}
void add_input_gradient(const OpRun& run) {
  for (size_t k = 0; k < 2; ++k) {
    if (run.in_gradient[k] == nullptr) continue;
    run.k->copy(run.out_shape->elements(), run.out_gradient, run.in_gradient[k], run.accumulate[k]);
  }
}

void mul_forward(const OpRun& run) {
  run.k->multiply(run.out_shape->elements(), run.in[0], run.in[1], run.out, false);
}
void mul_input_gradient(const OpRun& run) {
  for (size_t k = 0; k < 2; ++k) {
    if (run.in_gradient[k] == nullptr) continue;
    run.k->multiply(run.out_shape->elements(), run.out_gradient, run.in[1 - k], run.in_gradient[k],
                    run.accumulate[k]);
  }
}

constexpr OpRules elementwise(const char* name, decltype(OpRules::infer) infer,
                              decltype(OpRules::forward) forward,
                              decltype(OpRules::input_gradient) input_gradient, uint32_t reads) {
  return {.name = name,
          .infer = infer,
          .stats_size = nullptr,
          .scratch_size = nullptr,
          .forward = forward,
          .input_gradient = input_gradient,
          .weight_gradient = nullptr,
          .input_gradient_reads = {.inputs = reads},
          .weight_gradient_reads = {}};
}

}  // namespace

const OpRules rules_of::kGelu =
    elementwise("gelu", infer_unary, gelu_forward, gelu_input_gradient, 1);
const OpRules rules_of::kSilu =
    elementwise("silu", infer_unary, silu_forward, silu_input_gradient, 1);
const OpRules rules_of::kSwiglu =
    elementwise("swiglu", infer_binary, swiglu_forward, swiglu_input_gradient, 3);
const OpRules rules_of::kDropout =
    elementwise("dropout", infer_dropout, dropout_forward, dropout_input_gradient, 0);
const OpRules rules_of::kAdd = elementwise("add", infer_binary, add_forward, add_input_gradient, 0);
const OpRules rules_of::kMul = elementwise("mul", infer_binary, mul_forward, mul_input_gradient, 3);

}  // namespace rrfp::model
