// SPDX-License-Identifier: Apache-2.0
#include "engine/train/batch.h"

#include <algorithm>
#include <unordered_set>

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

InputChecks::InputChecks(const Graph& graph, const std::vector<bool>* needed) : graph_(graph) {
  using Kind = Limit::Kind;
  const auto add = [&](const Op& op, size_t input, Limit limit) {
    limit.input = graph.value(op.inputs[input]).input;
    if (limit.input < 0) return;
    // Every layer reads the same segments and positions.
    if (std::find(limits_.begin(), limits_.end(), limit) == limits_.end()) limits_.push_back(limit);
  };
  for (size_t k = 0; k < graph.ops().size(); ++k) {
    if (needed != nullptr && !(*needed)[k]) continue;
    const Op& op = graph.ops()[k];
    switch (op.kind) {
      case OpKind::kEmbedding: add(op, 0, {.table = op.parameters[0]}); break;
      case OpKind::kCrossEntropy:
        add(op, 1,
            {.kind = Kind::kClasses, .value = op.inputs[0], .also = op.attributes.ignore_index});
        break;
      case OpKind::kMergeRows: add(op, 2, {.kind = Kind::kValueRows, .value = op.inputs[1]}); break;
      case OpKind::kRotary:
        if (op.inputs.size() == 2) add(op, 1, {.kind = Kind::kPositions});
        break;
      case OpKind::kAttention:
        if (op.inputs.size() % 2 == 0) add(op, op.inputs.size() - 1, {.kind = Kind::kSegments});
        break;
      default: break;
    }
  }
}

namespace {

/// The first place in rows of `length` numbers where one comes back after another one; -1 if there
/// is none. Numbers that grow, as they mostly do, are new without a search.
int64_t find_broken_run(std::span<const int32_t> numbers, int64_t length) {
  for (int64_t row = 0; row < std::ssize(numbers); row += length) {
    const std::span<const int32_t> all =
        numbers.subspan(static_cast<size_t>(row), static_cast<size_t>(length));
    if (std::is_sorted(all.begin(), all.end())) continue;
    std::unordered_set<int32_t> before = {all[0]};
    for (size_t t = 1; t < all.size(); ++t) {
      if (all[t] == all[t - 1]) continue;
      if (!before.insert(all[t]).second) return row + static_cast<int64_t>(t);
    }
  }
  return -1;
}

}  // namespace

int64_t InputChecks::find_bad(const Limit& limit, const InputArray& input, const ShapePlan& plan,
                              std::string& expected) const {
  using Kind = Limit::Kind;
  const std::span<const int32_t> numbers(static_cast<const int32_t*>(input.data),
                                         static_cast<size_t>(input.shape.elements()));
  if (limit.kind == Kind::kSegments) {
    const int64_t bad = find_broken_run(numbers, input.shape.last());
    if (bad >= 0) expected = "runs of equal numbers, and this one was there before another one";
    return bad;
  }
  int64_t count = int64_t{1} << 32;
  if (limit.kind == Kind::kTableRows) count = graph_.parameter(limit.table).shape[0];
  if (limit.kind == Kind::kClasses) count = plan.values[limit.value.index()].last();
  if (limit.kind == Kind::kValueRows) count = plan.values[limit.value.index()].rows();
  const bool has_value = limit.value.valid();
  const auto bad = std::find_if(numbers.begin(), numbers.end(), [&](int32_t number) {
    return (number < 0 || number >= count) && !(has_value && number == limit.also);
  });
  if (bad == numbers.end()) return -1;
  const std::string least = limit.kind == Kind::kValueRows ? "-1" : "0";
  const bool bounded = limit.kind != Kind::kPositions;
  expected = least + (bounded ? " to " + std::to_string(count - 1) : " or more");
  if (limit.kind == Kind::kClasses) {
    expected += ", or " + std::to_string(limit.also) + " for what does not count";
  }
  return bad - numbers.begin();
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
    if (inputs[k].data == nullptr && inputs[k].shape.elements() > 0) {
      return {Code::kTensorMismatch, where(k) + " has no data"};
    }
  }
  std::string expected;
  for (const Limit& limit : limits_) {
    const auto k = static_cast<size_t>(limit.input);
    const int64_t bad = find_bad(limit, inputs[k], plan, expected);
    if (bad < 0) continue;
    return {Code::kOutOfRange,
            where(k) + " has " + std::to_string(static_cast<const int32_t*>(inputs[k].data)[bad]) +
                " at position " + std::to_string(bad) + "; expected " + expected};
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
