// SPDX-License-Identifier: Apache-2.0
#include "engine/model/graph.h"

#include <algorithm>
#include <cmath>

#include "engine/model/op_rules.h"

namespace rrfp::model {

using core::Code;
using core::Status;

namespace {

/// Extents at least `least`. One that is 0 counts as 1 in the bound: products of the others are
/// computed, too.
Status check_shape(const std::string& what, const Shape& shape, int64_t least,
                   bool may_be_unknown) {
  if (shape.ndim < 1 || shape.ndim > Shape::kDimsMax) {
    return {Code::kInvalidArgument, what + " has " + std::to_string(shape.ndim) +
                                        " axes; expected 1 to " + std::to_string(Shape::kDimsMax)};
  }
  int64_t count = 1;
  for (int32_t d = 0; d < shape.ndim; ++d) {
    if (may_be_unknown && shape[d] == Shape::kUnknown) continue;
    const int64_t factor = std::max<int64_t>(shape[d], 1);
    if (shape[d] < least || count > Shape::kElementsMax / factor) {
      return {Code::kInvalidArgument,
              what + " has shape " + to_string(shape) + "; extent " + std::to_string(d) +
                  " must be at least " + std::to_string(least) +
                  (may_be_unknown ? ", or -1 where it varies," : "") + " and not too large"};
    }
    count *= factor;
  }
  return {};
}

Status check_count(const char* what, size_t count) {
  if (count < static_cast<size_t>(Graph::kCountMax)) return {};
  return {Code::kOutOfRange, std::string("the model has too many ") + what + "; at most " +
                                 std::to_string(Graph::kCountMax) + " are possible"};
}

}  // namespace

std::string describe(const Graph& graph, const Op& op) {
  const OpRules* const found = find_rules(op.kind);
  const size_t number =
      op.output.valid() ? graph.value(op.output).producer.index() : graph.ops().size();
  std::string text = "operation " + std::to_string(number);
  if (found != nullptr) text += std::string(" (") + found->name + ")";
  if (op.block.valid()) text += " of " + graph.blocks()[op.block.index()].name;
  return text;
}

Status Graph::begin_block(Block block, BlockId& out) {
  if (Status s = check_count("blocks", blocks_.size()); !s.ok()) return s;
  if (block.name.empty()) block.name = "block" + std::to_string(blocks_.size());
  out = BlockId::of(blocks_.size());
  blocks_.push_back(std::move(block));
  return {};
}

Status Graph::check_value(const char* what, ValueId id) const {
  if (id.valid() && id.index() < values_.size()) return {};
  return {Code::kOutOfRange, std::string(what) + " is value " + std::to_string(id.value) +
                                 "; the model has values 0 to " +
                                 std::to_string(static_cast<int64_t>(values_.size()) - 1)};
}

Status Graph::add_input(std::string name, ValueType type, const Shape& shape, ValueId& out) {
  if (Status s = check_count("values", values_.size()); !s.ok()) return s;
  if (Status s = check_shape("input \"" + name + "\"", shape, 0, true); !s.ok()) return s;
  Value value;
  value.type = type;
  value.shape = shape;
  value.name = std::move(name);
  value.input = static_cast<int32_t>(inputs_.size());
  out = ValueId::of(values_.size());
  values_.push_back(std::move(value));
  inputs_.push_back(out);
  return {};
}

Status Graph::add_parameter(Parameter parameter, ParameterId& out) {
  if (Status s = check_count("parameters", parameters_.size()); !s.ok()) return s;
  if (!is_storable_name(parameter.name)) {
    return {Code::kInvalidArgument,
            "the name of parameter " + std::to_string(parameters_.size()) +
                " cannot be kept in a checkpoint; expected UTF-8 and not \"__metadata__\""};
  }
  if (parameter.name.empty()) return {Code::kInvalidArgument, "the name of a parameter is empty"};
  if (parameter_names_.contains(parameter.name)) {
    return {Code::kInvalidArgument, "a parameter named \"" + parameter.name + "\" exists already"};
  }
  const std::string what = "parameter \"" + parameter.name + "\"";
  if (Status s = check_shape(what, parameter.shape, 1, false); !s.ok()) return s;
  if (!std::isfinite(parameter.init_value) || !std::isfinite(parameter.init_scale) ||
      parameter.init_scale < 0) {
    return {Code::kInvalidArgument, what + " starts with value " +
                                        std::to_string(parameter.init_value) + " and scale " +
                                        std::to_string(parameter.init_scale) +
                                        "; expected finite numbers, and a scale of at least 0"};
  }
  out = ParameterId::of(parameters_.size());
  parameter_names_.insert(parameter.name);
  parameters_.push_back(std::move(parameter));
  return {};
}

Status Graph::add_op(Op op, ValueId& out) {
  if (Status s = check_count("values", values_.size()); !s.ok()) return s;
  if (blocks_.empty()) {
    return {Code::kBadState, "an operation needs a block; begin one first"};
  }
  op.block = BlockId::of(blocks_.size() - 1);
  op.output = {};
  const OpRules* const found = find_rules(op.kind);
  if (found == nullptr) {
    return {Code::kInvalidArgument,
            "the operation is of kind " + std::to_string(static_cast<int32_t>(op.kind)) +
                "; expected 1 to " + std::to_string(static_cast<int32_t>(kLastOpKind))};
  }
  if (op.inputs.size() > Op::kInputsMax) {
    return {Code::kInvalidArgument, describe(*this, op) + ": has " +
                                        std::to_string(op.inputs.size()) + " inputs; at most " +
                                        std::to_string(Op::kInputsMax) + " are possible"};
  }
  Value value;
  std::vector<Shape> shapes;
  for (ValueId input : op.inputs) {
    if (Status s = check_value("an input", input); !s.ok()) return s;
    shapes.push_back(this->value(input).shape);
    value.wants_gradient = value.wants_gradient || this->value(input).wants_gradient;
  }
  for (ParameterId id : op.parameters) {
    if (!id.valid() || id.index() >= parameters_.size()) {
      return {Code::kOutOfRange,
              describe(*this, op) + ": there is no parameter " + std::to_string(id.value)};
    }
    value.wants_gradient = value.wants_gradient || !parameter(id).frozen;
  }
  if (Status s = found->infer(*this, op, shapes, value.shape); !s.ok()) return s;
  const std::string what = "the output of " + describe(*this, op);
  if (Status s = check_shape(what, value.shape, 0, true); !s.ok()) return s;
  value.producer = OpId::of(ops_.size());
  out = ValueId::of(values_.size());
  op.output = out;
  values_.push_back(std::move(value));
  ops_.push_back(std::move(op));
  return {};
}

Status Graph::check_loss(ValueId value) const {
  if (Status s = check_value("the loss", value); !s.ok()) return s;
  if (!this->value(value).producer.valid()) {
    return {Code::kInvalidArgument, "the loss is an input; expected the output of an operation"};
  }
  return {};
}

Status Graph::set_loss(ValueId value) {
  if (Status s = check_loss(value); !s.ok()) return s;
  if (losses_.size() > 1) {
    return {Code::kBadState, "losses have been added to the first one; it can no longer be set"};
  }
  losses_.assign(1, {.value = value});
  return {};
}

Status Graph::add_loss(const Loss& loss) {
  if (Status s = check_loss(loss.value); !s.ok()) return s;
  if (losses_.empty()) return {Code::kBadState, "there is no first loss to add to; set it first"};
  if (losses_.size() >= kLossesMax) {
    return {Code::kOutOfRange,
            "the model has " + std::to_string(kLossesMax) + " losses, as many as are possible"};
  }
  if (!std::isfinite(loss.factor)) {
    return {Code::kInvalidArgument, "the factor of the loss is " + std::to_string(loss.factor) +
                                        "; expected a finite number"};
  }
  for (const Loss& other : losses_) {
    if (other.value != loss.value) continue;
    return {Code::kInvalidArgument,
            "value " + std::to_string(loss.value.value) + " is a loss already"};
  }
  losses_.push_back(loss);
  return {};
}

Status Graph::set_output(ValueId value) {
  if (Status s = check_value("the output", value); !s.ok()) return s;
  if (!this->value(value).producer.valid()) {
    return {Code::kInvalidArgument, "the output is an input; expected the output of an operation"};
  }
  output_ = value;
  return {};
}

Status Graph::infer(std::span<const Shape> input_shapes, std::vector<Shape>& out,
                    const std::vector<bool>* needed) const {
  const auto is_needed = [&](size_t op) { return needed == nullptr || (*needed)[op]; };
  std::vector<bool> read(values_.size(), needed == nullptr);
  for (size_t k = 0; k < ops_.size(); ++k) {
    for (ValueId input : ops_[k].inputs) read[input.index()] = read[input.index()] || is_needed(k);
  }
  out.assign(values_.size(), {});
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (!read[inputs_[k].index()]) continue;
    const Value& input = value(inputs_[k]);
    const Shape& given = input_shapes[k];
    const Status fits = check_shape("input \"" + input.name + "\"", given, 0, false);
    if (!fits.ok() || !may_equal(given, input.shape)) {
      return {Code::kTensorMismatch, "input \"" + input.name + "\" has shape " + to_string(given) +
                                         "; expected " + to_string(input.shape)};
    }
    out[inputs_[k].index()] = given;
  }
  std::vector<Shape> shapes;
  for (size_t k = 0; k < ops_.size(); ++k) {
    if (!is_needed(k)) continue;
    const Op& op = ops_[k];
    shapes.clear();
    for (ValueId input : op.inputs) shapes.push_back(out[input.index()]);
    Shape& shape = out[op.output.index()];
    if (Status s = rules(op).infer(*this, op, shapes, shape); !s.ok()) return s;
    if (Status s = check_shape(describe(*this, op), shape, 0, false); !s.ok()) return s;
  }
  return {};
}

std::vector<bool> Graph::needed_for(ValueId target) const {
  std::vector<bool> needed(ops_.size(), false);
  if (value(target).producer.valid()) needed[value(target).producer.index()] = true;
  add_needed(needed);
  return needed;
}

std::vector<bool> Graph::needed_for_losses() const {
  std::vector<bool> needed(ops_.size(), false);
  for (const Loss& loss : losses_) needed[value(loss.value).producer.index()] = true;
  add_needed(needed);
  return needed;
}

/// Adds what the needed operations depend on.
void Graph::add_needed(std::vector<bool>& needed) const {
  for (size_t k = ops_.size(); k-- > 0;) {
    if (!needed[k]) continue;
    for (ValueId input : ops_[k].inputs) {
      if (value(input).producer.valid()) needed[value(input).producer.index()] = true;
    }
  }
}

}  // namespace rrfp::model
