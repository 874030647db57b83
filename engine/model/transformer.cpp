// SPDX-License-Identifier: Apache-2.0
#include "engine/model/transformer.h"

#include <cmath>

namespace rrfp::model {

namespace {

// What ends a branch starts smaller, so that the sum over layers does not grow with their number.
double end_deviation(const LayerStack& stack) {
  return TransformerBuilder::kDeviation / std::sqrt(2.0 * stack.layers);
}

}  // namespace

ValueId TransformerBuilder::input(const std::string& name, ValueType type, const Shape& shape) {
  ValueId id;
  if (status_.ok()) status_ = graph_.add_input(name, type, shape, id);
  return id;
}

void TransformerBuilder::begin_block(const std::string& name) {
  BlockId id;
  if (status_.ok()) status_ = graph_.begin_block({.name = name}, id);
}

ParameterId TransformerBuilder::parameter(Parameter p) {
  ParameterId id;
  p.frozen = frozen_;
  if (status_.ok()) status_ = graph_.add_parameter(std::move(p), id);
  return id;
}

ParameterId TransformerBuilder::weight(const std::string& name, const Shape& shape,
                                       double deviation) {
  return parameter({.name = name, .shape = shape, .init = Init::kNormal, .init_scale = deviation});
}

// Biases and gains are not decayed.
ParameterId TransformerBuilder::vector(const std::string& name, int64_t size, double value) {
  return parameter({.name = name, .shape = {size}, .decay = false, .init_value = value});
}

ValueId TransformerBuilder::add(Op op) {
  ValueId id;
  if (status_.ok()) status_ = graph_.add_op(std::move(op), id);
  return id;
}

ValueId TransformerBuilder::linear(ValueId x, const std::string& name, int64_t in, int64_t out,
                                   double deviation) {
  const ParameterId w = weight(name + ".weight", {out, in}, deviation);
  const ParameterId b = vector(name + ".bias", out, 0);
  return add({.kind = OpKind::kLinear, .inputs = {x}, .parameters = {w, b}});
}

ValueId TransformerBuilder::norm(ValueId x, const std::string& name, int64_t dim, bool rms) {
  const ParameterId gamma = vector(name + ".weight", dim, 1);
  if (rms) return add({.kind = OpKind::kRmsNorm, .inputs = {x}, .parameters = {gamma}});
  const ParameterId beta = vector(name + ".bias", dim, 0);
  return add({.kind = OpKind::kLayerNorm, .inputs = {x}, .parameters = {gamma, beta}});
}

ValueId TransformerBuilder::dropout(ValueId x, double probability) {
  if (probability == 0) return x;
  Op op = {.kind = OpKind::kDropout, .inputs = {x}};
  op.attributes.probability = probability;
  return add(std::move(op));
}

ValueId TransformerBuilder::layer(const LayerStack& stack, ValueId x, const std::string& name) {
  const ValueId seen = norm(x, name + ".attention_norm", stack.dim, stack.rms_norm);
  x = join(stack, x, attention(stack, seen, name + ".attention"));
  const ValueId fed = norm(x, name + ".ffn_norm", stack.dim, stack.rms_norm);
  return join(stack, x, feed_forward(stack, fed, name + ".ffn"));
}

ValueId TransformerBuilder::join(const LayerStack& stack, ValueId x, ValueId branch) {
  return add({.kind = OpKind::kAdd, .inputs = {x, dropout(branch, stack.dropout)}});
}

ValueId TransformerBuilder::attention(const LayerStack& stack, ValueId x, const std::string& name) {
  const int32_t head_dim = stack.dim / stack.heads;
  const int32_t kv_heads = stack.kv_heads != 0 ? stack.kv_heads : stack.heads;
  const int64_t width = int64_t{stack.heads + 2 * kv_heads} * head_dim;
  ValueId qkv = linear(x, name + ".qkv", stack.dim, width);
  if (stack.rotary) {
    Op turn = {.kind = OpKind::kRotary, .inputs = {qkv}};
    if (stack.positions.valid()) turn.inputs.push_back(stack.positions);
    turn.attributes.heads = stack.heads + kv_heads;
    turn.attributes.head_dim = head_dim;
    qkv = add(std::move(turn));
  }
  Op op = {.kind = OpKind::kAttention, .inputs = {qkv}};
  if (stack.segments.valid()) op.inputs.push_back(stack.segments);
  op.attributes.heads = stack.heads;
  op.attributes.kv_heads = kv_heads;
  op.attributes.causal = stack.causal;
  return linear(add(std::move(op)), name + ".out", stack.dim, stack.dim, end_deviation(stack));
}

ValueId TransformerBuilder::feed_forward(const LayerStack& stack, ValueId x,
                                         const std::string& name) {
  if (stack.swiglu) {
    const int64_t hidden =
        stack.hidden != 0 ? stack.hidden : (int64_t{8} * stack.dim / 3 + 7) / 8 * 8;
    const ValueId gate = linear(x, name + ".gate", stack.dim, hidden);
    const ValueId up = linear(x, name + ".up", stack.dim, hidden);
    const ValueId y = add({.kind = OpKind::kSwiglu, .inputs = {gate, up}});
    return linear(y, name + ".down", hidden, stack.dim, end_deviation(stack));
  }
  const int64_t hidden = stack.hidden != 0 ? stack.hidden : int64_t{4} * stack.dim;
  const ValueId up = linear(x, name + ".up", stack.dim, hidden);
  const ValueId y = add({.kind = OpKind::kGelu, .inputs = {up}});
  return linear(y, name + ".down", hidden, stack.dim, end_deviation(stack));
}

void TransformerBuilder::head(const LayerStack& stack, ValueId x, ValueId targets,
                              int64_t vocabulary, ParameterId table) {
  begin_block("head");
  x = norm(x, "norm", stack.dim, stack.rms_norm);
  const ParameterId head = table.valid() ? table : weight("head.weight", {vocabulary, stack.dim});
  const ValueId logits = add({.kind = OpKind::kLinear, .inputs = {x}, .parameters = {head}});
  const ValueId loss = add({.kind = OpKind::kCrossEntropy, .inputs = {logits, targets}});
  if (status_.ok()) status_ = graph_.set_output(logits);
  if (status_.ok()) status_ = graph_.set_loss(loss);
}

}  // namespace rrfp::model
