// SPDX-License-Identifier: Apache-2.0
#include "engine/model/execute.h"

namespace rrfp::model {

namespace {

float* at(const Bindings& bound, int32_t slot) {
  return slot == kNoSlot ? nullptr : bound.pointers[static_cast<size_t>(slot)];
}

void bind_op(const Instruction& i, Bindings& bound, OpRun& run) {
  const Op& op = *run.op;
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    run.in[k] = at(bound, i.in[k]);
    run.in_gradient[k] = at(bound, i.in_gradient[k]);
    run.accumulate[k] = ((i.accumulate >> k) & 1) != 0;
  }
  for (size_t k = 0; k < op.parameters.size(); ++k) {
    run.weight[k] = bound.table->weights[op.parameters[k].index()];
    if (i.action == Action::kWeightGradient) {
      run.weight_gradient[k] = bound.table->gradients[i.op.index() * Op::kParametersMax + k];
    }
  }
  run.out = at(bound, i.out);
  run.stats = at(bound, i.stats);
  run.out_gradient = at(bound, i.out_gradient);
  run.random = bound.random;
  run.random.operation = static_cast<uint32_t>(i.op.value);
  run.training = bound.training;
  run.first_position = bound.first_position;
  if (bound.caches != nullptr) {
    KeyValueCache& cache = (*bound.caches)[i.op.index()];
    if (cache.keys != nullptr) run.cache = &cache;
  }
}

void run_op(const Instruction& i, Bindings& bound, float* op_scratch) {
  const Graph& graph = *bound.graph;
  const std::span<const Shape> shapes(bound.shapes, graph.values().size());
  OpRun run = describe_run(graph.op(i.op), shapes, *bound.kernels);
  bind_op(i, bound, run);
  run.scratch = op_scratch;
  const OpRules& its = rules(*run.op);
  if (i.action == Action::kForward) its.forward(run);
  if (i.action == Action::kInputGradient) its.input_gradient(run);
  if (i.action == Action::kWeightGradient) its.weight_gradient(run);
}

}  // namespace

void bind_slots(const Layout& layout, core::TaskKind kind, Bindings& bound) {
  const std::vector<Place>& places = layout.places[static_cast<size_t>(kind)];
  for (size_t s = 0; s < places.size(); ++s) {
    switch (places[s].region) {
      case Region::kSaved: bound.pointers[s] = bound.saved + places[s].offset; break;
      case Region::kKept: bound.pointers[s] = bound.kept + places[s].offset; break;
      case Region::kScratch: bound.pointers[s] = bound.scratch + places[s].offset; break;
      case Region::kNone:
      case Region::kExternal: break;
    }
  }
}

OpRun describe_run(const Op& op, std::span<const Shape> shapes, const kernels::Kernels& kernels) {
  OpRun run;
  run.k = &kernels;
  run.op = &op;
  for (size_t k = 0; k < op.inputs.size(); ++k) run.in_shape[k] = &shapes[op.inputs[k].index()];
  run.out_shape = &shapes[op.output.index()];
  return run;
}

void run_instruction(const Program& program, const Layout& layout, core::TaskKind kind,
                     const Instruction& instruction, Bindings& bound) {
  const Instruction& i = instruction;
  if (i.op.valid()) {
    run_op(i, bound, bound.scratch + layout.op_scratch_at[static_cast<size_t>(kind)]);
    return;
  }
  const int32_t slot = i.in_gradient[0];
  const ValueId value = program.slots[static_cast<size_t>(slot)].value;
  const int64_t count = bound.shapes[value.index()].elements();
  if (i.action == Action::kTakeGradient) {
    bound.kernels->copy(count, at(bound, i.out_gradient), at(bound, slot), false);
  } else {
    bound.kernels->fill(count, bound.loss_factors[i.loss], at(bound, slot));
  }
}

void run_task(const Program& program, const Layout& layout, core::TaskKind kind, Bindings& bound) {
  bind_slots(layout, kind, bound);
  for (const Instruction& i : program.code(kind)) {
    run_instruction(program, layout, kind, i, bound);
  }
}

}  // namespace rrfp::model
