// SPDX-License-Identifier: Apache-2.0
//
// Attention and rotary positions.
#include <cmath>

#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

namespace {

// --- Rotary positions

Status infer_rotary(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  const bool positions = op.inputs.size() == 2;
  if (op.inputs.empty() || op.inputs.size() > 2) {
    return mismatch(graph, op,
                    "has " + std::to_string(op.inputs.size()) +
                        " inputs; expected 1, and perhaps i32 positions");
  }
  if (Status s = check_operands(graph, op, op.inputs.size(), 0, 0, 2); !s.ok()) return s;
  if (Status s = check_rank(graph, op, in.first(1), 2); !s.ok()) return s;
  const OpAttributes& a = op.attributes;
  if (a.heads < 1 || a.head_dim < 2 || a.head_dim % 2 != 0 ||
      !(a.base >= 1 && std::isfinite(a.base))) {
    return mismatch(graph, op,
                    "heads is " + std::to_string(a.heads) + ", head_dim " +
                        std::to_string(a.head_dim) + ", base " + std::to_string(a.base) +
                        "; expected heads >= 1, an even head_dim >= 2, a finite base >= 1");
  }
  const int64_t turned = int64_t{a.heads} * a.head_dim;
  if (in[0].last() != Shape::kUnknown && in[0].last() < turned) {
    return mismatch(graph, op,
                    "the last extent is " + std::to_string(in[0].last()) + "; the heads need " +
                        std::to_string(turned));
  }
  out = in[0];
  return positions ? match_rows(graph, op, in, 1, out) : Status();
}

kernels::RotaryShape rotary_shape(const OpRun& run, bool inverse) {
  const Shape& x = *run.in_shape[0];
  return {.rows = x.rows(),
          .length = x[x.ndim - 2],
          .width = x.last(),
          .heads = run.op->attributes.heads,
          .head_dim = run.op->attributes.head_dim,
          .first_position = run.first_position,
          .base = run.op->attributes.base,
          .inverse = inverse,
          .positions = run.op->inputs.size() == 2 ? run.ids(1) : nullptr};
}

void rotary_forward(const OpRun& run) {
  run.k->rotary(rotary_shape(run, false), run.in[0], run.out, false);
}
void rotary_input_gradient(const OpRun& run) {
  run.k->rotary(rotary_shape(run, true), run.out_gradient, run.in_gradient[0], run.accumulate[0]);
}

// --- Attention

int64_t kv_heads(const Op& op) {
  return op.attributes.kv_heads != 0 ? op.attributes.kv_heads : op.attributes.heads;
}

/// q, k and v in one input.
bool is_packed(const Op& op) {
  return op.inputs.size() <= 2;
}
/// The input with the segments, behind the others; 0 if there is none.
size_t segments_input(const Op& op) {
  return op.inputs.size() % 2 == 0 ? op.inputs.size() - 1 : 0;
}

/// k and v, if they are apart from q.
Status check_keys(const Graph& graph, const Op& op, std::span<const Shape> in, int64_t width) {
  const bool as_long_as_q = op.attributes.causal || segments_input(op) != 0;
  const Shape expected = {known_of(in[0][0], in[1][0]),
                          as_long_as_q ? in[0][1] : known_of(in[1][1], in[2][1]), width};
  for (size_t k = 1; k < 3; ++k) {
    if (may_equal(in[k], expected)) continue;
    return mismatch(graph, op,
                    "input " + std::to_string(k) + " has shape " + to_string(in[k]) +
                        "; expected " + to_string(expected));
  }
  return {};
}

Status infer_attention(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (op.inputs.empty() || op.inputs.size() > 4) {
    return mismatch(graph, op,
                    "has " + std::to_string(op.inputs.size()) +
                        " inputs; expected 1 or 3, and perhaps i32 segments");
  }
  const bool packed = is_packed(op);
  const size_t segments = segments_input(op);
  const uint32_t i32_inputs = segments == 0 ? 0 : 1U << segments;
  if (Status s = check_operands(graph, op, op.inputs.size(), 0, 0, i32_inputs); !s.ok()) return s;
  const int64_t heads = op.attributes.heads;
  const int64_t keys = kv_heads(op);
  if (heads < 1 || keys < 1 || heads % keys != 0) {
    return mismatch(graph, op,
                    "heads is " + std::to_string(heads) + " and kv_heads " + std::to_string(keys) +
                        "; expected heads >= 1, a multiple of kv_heads");
  }
  for (size_t k = 0; k < in.size(); ++k) {
    if (in[k].ndim == 3 || (k != 0 && k == segments)) continue;
    return mismatch(graph, op,
                    "input " + std::to_string(k) + " has shape " + to_string(in[k]) +
                        "; expected [batch, length, width]");
  }
  const int64_t parts = packed ? heads + 2 * keys : heads;
  if (in[0].last() == Shape::kUnknown || in[0].last() % parts != 0 || in[0].last() == 0) {
    return mismatch(graph, op,
                    "input 0 has shape " + to_string(in[0]) +
                        "; expected a last extent divisible by " + std::to_string(parts) +
                        " heads");
  }
  const int64_t head_dim = in[0].last() / parts;
  out = in[0];
  out[2] = heads * head_dim;
  if (!packed) {
    if (Status s = check_keys(graph, op, in, keys * head_dim); !s.ok()) return s;
  }
  return segments == 0 ? Status() : match_rows(graph, op, in, segments, out);
}

kernels::AttentionShape attention_shape(const OpRun& run) {
  const Shape& q = *run.in_shape[0];
  const Shape& kv = is_packed(*run.op) ? q : *run.in_shape[1];
  const size_t segments = segments_input(*run.op);
  const int64_t heads = run.op->attributes.heads;
  const int64_t keys = kv_heads(*run.op);
  return {.batch = q[0],
          .q_length = q[1],
          .kv_length = kv[1],
          .heads = heads,
          .kv_heads = keys,
          .head_dim = run.out_shape->last() / heads,
          .q_stride = q[2],
          .k_stride = kv[2],
          .v_stride = kv[2],
          .y_stride = run.out_shape->last(),
          .causal = run.op->attributes.causal,
          .segments = segments == 0 ? nullptr : run.ids(segments)};
}

template <class Number>
struct Operands {
  Number* q;
  Number* k;
  Number* v;
};

/// Where q, k and v lie in the inputs, or their gradients in the gradients of the inputs.
template <class Number>
Operands<Number> operands(const OpRun& run, const kernels::AttentionShape& shape,
                          const std::array<Number*, Op::kInputsMax>& in) {
  if (!is_packed(*run.op)) return {in[0], in[1], in[2]};
  Number* const k = in[0] + shape.heads * shape.head_dim;
  return {in[0], k, k + shape.kv_heads * shape.head_dim};
}

int64_t attention_stats(const OpRun& run) {
  return run.in_shape[0]->rows() * run.op->attributes.heads;
}

int64_t attention_scratch(const OpRun& run) {
  kernels::AttentionShape shape = attention_shape(run);
  if (run.cache != nullptr) shape.kv_length += run.cache->length;
  return run.k->attention_scratch(shape);
}

void attention_forward(const OpRun& run) {
  kernels::AttentionShape shape = attention_shape(run);
  Operands<const float> x = operands(run, shape, run.in);
  if (run.cache != nullptr) {  // one sequence; its new keys and values join those seen before
    // What is in the cache is of one segment, which goes on.
    if (run.cache->length > 0) shape.segments = nullptr;
    const int64_t width = shape.kv_heads * shape.head_dim;
    float* const keys = run.cache->keys + run.cache->length * width;
    float* const values = run.cache->values + run.cache->length * width;
    run.k->copy_block(shape.kv_length, width, x.k, shape.k_stride, keys, width, false);
    run.k->copy_block(shape.kv_length, width, x.v, shape.v_stride, values, width, false);
    shape.kv_length += run.cache->length;
    shape.k_stride = shape.v_stride = width;
    x.k = run.cache->keys;
    x.v = run.cache->values;
  }
  run.k->attention(shape, x.q, x.k, x.v, run.out, run.stats, run.scratch);
}

void attention_input_gradient(const OpRun& run) {
  const kernels::AttentionShape shape = attention_shape(run);
  const Operands<const float> x = operands(run, shape, run.in);
  if (is_packed(*run.op)) {
    const Operands<float> dx = operands(run, shape, run.in_gradient);
    run.k->attention_gradient(shape, x.q, x.k, x.v, run.out, run.stats, run.out_gradient, dx.q,
                              dx.k, dx.v, run.accumulate[0], run.scratch);
    return;
  }
  // The kernel has one flag for all: inputs whose gradients differ in it are done apart.
  for (const bool accumulate : {false, true}) {
    std::array<float*, 3> dx = {};
    bool any = false;
    for (size_t i = 0; i < 3; ++i) {
      if (run.accumulate[i] == accumulate) dx[i] = run.in_gradient[i];
      any = any || dx[i] != nullptr;
    }
    if (!any) continue;
    run.k->attention_gradient(shape, x.q, x.k, x.v, run.out, run.stats, run.out_gradient, dx[0],
                              dx[1], dx[2], accumulate, run.scratch);
  }
}

}  // namespace

const OpRules rules_of::kRotary = {.name = "rotary",
                                   .infer = infer_rotary,
                                   .stats_size = nullptr,
                                   .scratch_size = nullptr,
                                   .forward = rotary_forward,
                                   .input_gradient = rotary_input_gradient,
                                   .weight_gradient = nullptr,
                                   .input_gradient_reads = {.inputs = 2},
                                   .weight_gradient_reads = {}};

const OpRules rules_of::kAttention = {
    .name = "attention",
    .infer = infer_attention,
    .stats_size = attention_stats,
    .scratch_size = attention_scratch,
    .forward = attention_forward,
    .input_gradient = attention_input_gradient,
    .weight_gradient = nullptr,
    .input_gradient_reads = {.inputs = 15, .output = true, .stats = true},
    .weight_gradient_reads = {}};

}  // namespace rrfp::model
