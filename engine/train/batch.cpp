// SPDX-License-Identifier: Apache-2.0
#include "engine/train/batch.h"

#include <algorithm>

namespace rrfp::train {

using core::Code;
using core::Status;
using model::Graph;
using model::Op;
using model::OpKind;
using model::Shape;
using model::ValueType;

Status ShapePlans::find(std::span<const InputArray> inputs, std::shared_ptr<const ShapePlan>& out) {
  // Newest first: a microbatch is most often like the one before it.
  for (auto plan = plans_.rbegin(); plan != plans_.rend(); ++plan) {
    const auto same = [](const Shape& shape, const InputArray& input) {
      return shape == input.shape;
    };
    if (std::equal((*plan)->inputs.begin(), (*plan)->inputs.end(), inputs.begin(), inputs.end(),
                   same)) {
      out = *plan;
      return {};
    }
  }
  if (Status s = make(inputs, out); !s.ok()) return s;
  if (plans_.size() == kPlansMax) plans_.pop_front();
  plans_.push_back(out);
  return {};
}

Status ShapePlans::make(std::span<const InputArray> inputs, std::shared_ptr<const ShapePlan>& out) {
  auto plan = std::make_shared<ShapePlan>();
  for (const InputArray& input : inputs) plan->inputs.push_back(input.shape);
  if (Status s = graph_.infer(plan->inputs, plan->values); !s.ok()) return s;
  for (const model::Shape& value : plan->values) plan->elements += value.elements();
  for (const model::Program& program : programs_) {
    plan->layouts.push_back(make_layout(graph_, program, plan->values, kernels_));
    const model::Layout& layout = plan->layouts.back();
    int64_t floats = layout.saved;
    for (size_t slot = 0; slot < program.slots.size(); ++slot) {
      const bool own = program.slots[slot].kind == model::SlotKind::kOwn;
      if (program.kept[slot] && !own) floats += layout.sizes[slot];
    }
    plan->activation_bytes.push_back(floats * static_cast<int64_t>(sizeof(float)));
  }
  measure_stages(*plan);
  out = std::move(plan);
  return {};
}

void ShapePlans::measure_stages(ShapePlan& plan) const {
  plan.stage_elements.assign(cut_.stages.size(), 0);
  for (size_t k = 0; k < graph_.ops().size(); ++k) {
    const core::StageId stage = cut_.stage_of[k];
    if (!stage.valid()) continue;
    plan.stage_elements[stage.index()] += plan.values[graph_.ops()[k].output.index()].elements();
  }
  for (const int64_t made : plan.stage_elements) plan.skips.push_back(made == 0);
  for (const model::CutEdge& edge : cut_.edges) {
    for (model::ValueId v : edge.values) {
      if (plan.values[v.index()].elements() > 0) plan.skips[edge.to.index()] = false;
    }
  }
  plan.any_skip = std::find(plan.skips.begin(), plan.skips.end(), true) != plan.skips.end();
}

InputChecks::InputChecks(const Graph& graph) : graph_(graph) {
  for (const Op& op : graph.ops()) {
    if (op.kind == OpKind::kEmbedding) {
      limits_.push_back(
          {.input = graph.value(op.inputs[0]).input, .table = op.parameters[0], .logits = {}});
    } else if (op.kind == OpKind::kCrossEntropy) {
      limits_.push_back({.input = graph.value(op.inputs[1]).input,
                         .table = {},
                         .logits = op.inputs[0],
                         .ignore_index = op.attributes.ignore_index});
    }
  }
}

Status InputChecks::check(int32_t microbatch, std::span<const InputArray> inputs,
                          const ShapePlan& plan) const {
  const auto where = [&](size_t k) {
    return "input \"" + graph_.value(graph_.inputs()[k]).name + "\" of microbatch " +
           std::to_string(microbatch);
  };
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ValueType wanted = graph_.value(graph_.inputs()[k]).type;
    if (inputs[k].type != wanted) {
      const bool i32 = wanted == ValueType::kI32;
      return {Code::kTensorMismatch,
              where(k) + (i32 ? " is f32; expected i32" : " is i32; expected f32")};
    }
    if (inputs[k].data == nullptr) return {Code::kTensorMismatch, where(k) + " has no data"};
  }
  for (const Limit& limit : limits_) {
    const auto k = static_cast<size_t>(limit.input);
    const bool is_target = limit.logits.valid();
    const int64_t count = is_target ? plan.values[limit.logits.index()].last()
                                    : graph_.parameter(limit.table).shape[0];
    const std::span<const int32_t> ids(static_cast<const int32_t*>(inputs[k].data),
                                       static_cast<size_t>(inputs[k].shape.elements()));
    const auto bad = std::find_if(ids.begin(), ids.end(), [&](int32_t id) {
      return (id < 0 || id >= count) && !(is_target && id == limit.ignore_index);
    });
    if (bad == ids.end()) continue;
    return {Code::kOutOfRange, where(k) + " has " + std::to_string(*bad) + " at position " +
                                   std::to_string(bad - ids.begin()) + "; expected 0 to " +
                                   std::to_string(count - 1)};
  }
  return {};
}

int64_t loss_weight(const Graph& graph, model::ValueId loss, std::span<const InputArray> inputs,
                    const ShapePlan& plan) {
  const Op& op = graph.op(graph.value(loss).producer);
  const int64_t elements = plan.values[loss.index()].elements();
  if (op.kind != OpKind::kCrossEntropy || elements == 0) return elements;
  const auto k = static_cast<size_t>(graph.value(op.inputs[1]).input);
  const auto* const targets = static_cast<const int32_t*>(inputs[k].data);
  return elements - std::count(targets, targets + elements, op.attributes.ignore_index);
}

}  // namespace rrfp::train
