// SPDX-License-Identifier: Apache-2.0
#include "engine/model/program.h"

#include <algorithm>

namespace rrfp::model {

using core::StageId;
using core::TaskKind;

namespace {

class Builder {
 public:
  Builder(const Graph& graph, Program& program) : graph_(graph), program_(program) {
    const size_t values = graph.values().size();
    program_.value_slot.assign(values, kNoSlot);
    program_.gradient_slot.assign(values, kNoSlot);
    program_.sent_gradient_slot.assign(values, kNoSlot);
    again_slot_.assign(values, kNoSlot);
    stats_slot_.assign(graph.ops().size(), kNoSlot);
    stats_again_slot_.assign(graph.ops().size(), kNoSlot);
    outgoing_.assign(values, false);
    incoming_.assign(values, false);
    kept_for_others_.assign(values, false);
    has_gradient_.assign(values, false);
  }

  void take_ops(const Cut& cut, StageId stage) {
    for (size_t k = 0; k < graph_.ops().size(); ++k) {
      if (cut.stage_of[k] == stage) ops_.push_back(OpId::of(k));
    }
    for (const CutEdge& edge : cut.edges) {
      for (ValueId v : edge.values) {
        if (edge.to == stage) incoming_[v.index()] = true;
        if (edge.from == stage) outgoing_[v.index()] = true;
      }
    }
  }
  void take_ops(std::vector<bool> needed) {
    for (size_t k = 0; k < needed.size(); ++k) {
      if (needed[k]) ops_.push_back(OpId::of(k));
    }
  }

  void build_forward() {
    for (OpId o : ops_) {
      const Op& op = graph_.op(o);
      const SlotKind kind = outgoing_[op.output.index()] ? SlotKind::kOutgoing : SlotKind::kOwn;
      program_.value_slot[op.output.index()] = new_slot({.kind = kind, .value = op.output});
      if (rules(op).stats_size != nullptr) stats_slot_[o.index()] = new_slot({.stats_of = o});
    }
    for (OpId o : ops_) emit(TaskKind::kForward, forward(o, false));
  }
  /// The value is a result if it is made here.
  void add_result(ValueId value, int32_t loss) {
    const int32_t slot = program_.value_slot[value.index()];
    if (slot != kNoSlot) program_.results.push_back({.loss = loss, .slot = slot});
  }

  void build_backward(bool recompute_all) {
    choose_recomputed(recompute_all);
    begin_gradients();
    size_t end = ops_.size();
    while (end > 0) {
      const BlockId block = graph_.op(ops_[end - 1]).block;
      size_t begin = end;
      while (begin > 0 && graph_.op(ops_[begin - 1]).block == block) --begin;
      for (size_t k = begin; k < end; ++k) {
        if (is_again_[k]) emit_backward(forward(ops_[k], true));
      }
      for (size_t k = end; k-- > begin;) emit_gradients(ops_[k]);
      end = begin;
    }
  }

  /// Slots that backward reads after forward has written them.
  void mark_kept() {
    std::vector<bool> written(program_.slots.size(), false);
    const auto ignore = [](int32_t) {};
    for (const Instruction& i : program_.code(TaskKind::kForward)) {
      i.visit(ignore, [&](int32_t slot) { written[static_cast<size_t>(slot)] = true; });
    }
    program_.kept.assign(program_.slots.size(), false);
    for (TaskKind kind :
         {TaskKind::kBackward, TaskKind::kInputGradient, TaskKind::kWeightGradient}) {
      for (const Instruction& i : program_.code(kind)) {
        i.visit(
            [&](int32_t slot) {
              const auto s = static_cast<size_t>(slot);
              if (written[s]) program_.kept[s] = true;
            },
            ignore);
      }
    }
  }

 private:
  int32_t new_slot(const Slot& slot) {
    program_.slots.push_back(slot);
    return static_cast<int32_t>(program_.slots.size()) - 1;
  }

  /// Where the forward pass finds a value.
  int32_t slot_of(ValueId v) {
    int32_t& slot = program_.value_slot[v.index()];
    if (slot == kNoSlot) {
      const bool is_input = !graph_.value(v).producer.valid();
      slot = new_slot({.kind = is_input ? SlotKind::kInput : SlotKind::kIncoming, .value = v});
    }
    return slot;
  }
  /// Where the backward pass of a block finds a value.
  int32_t slot_in_backward(ValueId v) {
    const int32_t again = again_slot_[v.index()];
    return again != kNoSlot && !kept_for_others_[v.index()] ? again : slot_of(v);
  }

  Instruction forward(OpId o, bool again) {
    const Op& op = graph_.op(o);
    Instruction result;
    result.action = Action::kForward;
    result.op = o;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      result.in[k] = again ? slot_in_backward(op.inputs[k]) : slot_of(op.inputs[k]);
    }
    result.out = again ? again_slot_[op.output.index()] : slot_of(op.output);
    result.stats = again ? stats_again_slot_[o.index()] : stats_slot_[o.index()];
    return result;
  }

  void emit(TaskKind kind, const Instruction& instruction) {
    program_.code(kind).push_back(instruction);
  }
  void emit_backward(const Instruction& instruction) {
    emit(TaskKind::kBackward, instruction);
    emit(TaskKind::kInputGradient, instruction);
  }

  // --- Recompute

  [[nodiscard]] bool wants_input_gradient(const Op& op, size_t input) const {
    return graph_.value(op.inputs[input]).wants_gradient;
  }
  [[nodiscard]] bool has_input_gradient(const Op& op) const {
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (wants_input_gradient(op, k)) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_weight_gradient(const Op& op) const {
    return std::any_of(op.parameters.begin(), op.parameters.end(),
                       [&](ParameterId p) { return !graph_.parameter(p).frozen; });
  }
  /// All that the backward pass of an operation reads.
  [[nodiscard]] Reads backward_reads(const Op& op) const {
    Reads reads;
    const auto add = [&](const Reads& more) {
      reads.inputs |= more.inputs;
      reads.output = reads.output || more.output;
      reads.stats = reads.stats || more.stats;
    };
    if (has_input_gradient(op)) add(rules(op).input_gradient_reads);
    if (has_weight_gradient(op)) add(rules(op).weight_gradient_reads);
    return reads;
  }

  /// Decides which operations run again, last block first: what later blocks read of a block is
  /// then known.
  void choose_recomputed(bool all) {
    is_again_.assign(ops_.size(), false);
    std::vector<bool> needed(graph_.values().size(), false);
    for (size_t k = ops_.size(); k-- > 0;) {
      const Op& op = graph_.op(ops_[k]);
      const bool recompute = all || graph_.blocks()[op.block.index()].recompute;
      const Reads reads = backward_reads(op);
      bool again = false;
      if (recompute) {
        const bool output = reads.output || needed[op.output.index()];
        again = (output && !kept_for_others_[op.output.index()]) || reads.stats;
        if (reads.output) needed[op.output.index()] = true;
      }
      is_again_[k] = again;
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        if (!again && ((reads.inputs >> i) & 1) == 0) continue;
        const ValueId v = op.inputs[i];
        const OpId producer = graph_.value(v).producer;
        const bool same_block = producer.valid() && graph_.op(producer).block == op.block;
        if (recompute && same_block) {
          needed[v.index()] = true;
        } else {
          kept_for_others_[v.index()] = true;
        }
      }
      if (!again) continue;
      again_slot_[op.output.index()] = new_slot({.value = op.output});
      if (rules(op).stats_size != nullptr) {
        stats_again_slot_[ops_[k].index()] = new_slot({.stats_of = ops_[k]});
      }
    }
  }

  // --- Gradients

  void begin_gradients() {
    for (size_t v = 0; v < graph_.values().size(); ++v) {
      const ValueId id = ValueId::of(v);
      if (!graph_.value(id).wants_gradient || !outgoing_[v]) continue;
      const int32_t sent = new_slot({.kind = SlotKind::kIncoming, .value = id});
      program_.sent_gradient_slot[v] = sent;
      if (!incoming_[v] && !is_read_here(id)) {
        program_.gradient_slot[v] = sent;  // nothing is added to it
        continue;
      }
      Instruction take;
      take.action = Action::kTakeGradient;
      take.out_gradient = sent;
      take.in_gradient[0] = gradient_slot(id);
      emit_backward(take);
      has_gradient_[v] = true;
    }
    for (const Program::Result& result : program_.results) {
      const ValueId loss = program_.slots[static_cast<size_t>(result.slot)].value;
      if (!graph_.value(loss).wants_gradient) continue;
      Instruction seed;
      seed.action = Action::kSeedGradient;
      seed.loss = result.loss;
      seed.in_gradient[0] = gradient_slot(loss);
      emit_backward(seed);
      has_gradient_[loss.index()] = true;
    }
  }

  [[nodiscard]] bool is_read_here(ValueId v) const {
    return std::any_of(ops_.begin(), ops_.end(), [&](OpId o) {
      const std::vector<ValueId>& inputs = graph_.op(o).inputs;
      return std::find(inputs.begin(), inputs.end(), v) != inputs.end();
    });
  }

  int32_t gradient_slot(ValueId v) {
    int32_t& slot = program_.gradient_slot[v.index()];
    if (slot == kNoSlot) {
      const SlotKind kind = incoming_[v.index()] ? SlotKind::kOutgoing : SlotKind::kOwn;
      slot = new_slot({.kind = kind, .value = v});
    }
    return slot;
  }

  void read_for_gradient(const Op& op, OpId o, const Reads& reads, Instruction& out) {
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (((reads.inputs >> k) & 1) != 0) out.in[k] = slot_in_backward(op.inputs[k]);
    }
    if (reads.output) out.out = slot_in_backward(op.output);
    const int32_t again = stats_again_slot_[o.index()];
    if (reads.stats) out.stats = again != kNoSlot ? again : stats_slot_[o.index()];
    out.out_gradient = gradient_slot(op.output);
  }

  void emit_gradients(OpId o) {
    const Op& op = graph_.op(o);
    if (!graph_.value(op.output).wants_gradient) return;
    if (has_input_gradient(op)) {
      Instruction i;
      i.action = Action::kInputGradient;
      i.op = o;
      read_for_gradient(op, o, rules(op).input_gradient_reads, i);
      for (size_t k = 0; k < op.inputs.size(); ++k) {
        if (!wants_input_gradient(op, k)) continue;
        const ValueId v = op.inputs[k];
        i.in_gradient[k] = gradient_slot(v);
        if (has_gradient_[v.index()]) i.accumulate |= 1U << k;
        has_gradient_[v.index()] = true;
      }
      emit_backward(i);
    }
    if (has_weight_gradient(op)) {
      Instruction w;
      w.action = Action::kWeightGradient;
      w.op = o;
      read_for_gradient(op, o, rules(op).weight_gradient_reads, w);
      emit(TaskKind::kBackward, w);
      emit(TaskKind::kWeightGradient, w);
    }
  }

  const Graph& graph_;
  Program& program_;
  std::vector<OpId> ops_;  // of the stage, in order
  std::vector<bool> incoming_;
  std::vector<bool> outgoing_;
  std::vector<bool> is_again_;         // by place in ops_
  std::vector<bool> kept_for_others_;  // by value: the backward of another block reads it
  std::vector<bool> has_gradient_;     // by value, while gradients are emitted
  std::vector<int32_t> again_slot_;
  std::vector<int32_t> stats_slot_;
  std::vector<int32_t> stats_again_slot_;
};

}  // namespace

Program Program::for_stage(const Graph& graph, const Cut& cut, StageId stage, bool recompute_all) {
  Program program;
  Builder builder(graph, program);
  builder.take_ops(cut, stage);
  builder.build_forward();
  for (size_t k = 0; k < graph.losses().size(); ++k) {
    builder.add_result(graph.losses()[k].value, static_cast<int32_t>(k));
  }
  builder.build_backward(recompute_all);
  builder.mark_kept();
  return program;
}

Program Program::for_value(const Graph& graph, ValueId value) {
  Program program;
  Builder builder(graph, program);
  builder.take_ops(graph.needed_for(value));
  builder.build_forward();
  builder.add_result(value, 0);
  builder.mark_kept();
  return program;
}

}  // namespace rrfp::model
