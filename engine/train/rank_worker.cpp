// SPDX-License-Identifier: Apache-2.0
#include "engine/train/rank_worker.h"

#include <chrono>
#include <new>
#include <thread>

#include "engine/comm/clock.h"

namespace rrfp::train {

using comm::Tensor;
using core::Code;
using core::EdgeId;
using core::StageId;
using core::Status;
using core::Task;
using core::TaskKind;
using model::kNoSlot;
using model::ValueId;

RankWorker::RankWorker(const Setting& setting, const model::WeightTable& table,
                       host::RankHost& host)
    : setting_(setting),
      host_(host),
      memory_(setting.programs.size()),
      outgoing_(setting.cut.edges.size()),
      delay_state_(static_cast<uint64_t>(host.id().value) + 1) {
  bound_.kernels = setting.kernels;
  bound_.graph = &setting.graph;
  bound_.table = &table;
  size_t slots = 0;
  for (StageId s : setting.stages->chunks(host.id())) {
    StageMemory& memory = memory_[s.index()];
    for (EdgeId e : setting.stages->in_edges(s)) memory.in_edges.push_back(e);
    for (EdgeId e : setting.stages->out_edges(s)) memory.out_edges.push_back(e);
    const model::Program& program = setting.programs[s.index()];
    for (size_t slot = 0; slot < program.slots.size(); ++slot) {
      const bool outgoing = program.slots[slot].kind == model::SlotKind::kOutgoing;
      if (outgoing && program.kept[slot]) {
        memory.kept_outputs.push_back(static_cast<int32_t>(slot));
      }
    }
    slots = std::max(slots, program.slots.size());
  }
  bound_.pointers.assign(slots, nullptr);
  for (size_t e = 0; e < outgoing_.size(); ++e) {
    outgoing_[e].reserve(setting.cut.edges[e].values.size());
  }
}

Status RankWorker::run(const Round& round, host::StepReport& report) {
  const auto microbatches = static_cast<size_t>(round.request.shape.microbatches);
  for (StageMemory& memory : memory_) {
    if (memory.frames.size() >= microbatches) continue;
    memory.frames.resize(microbatches);
    for (Frame& frame : memory.frames) frame.outputs.resize(memory.kept_outputs.size(), nullptr);
  }
  Status status = host_.begin_step(round.request);
  while (status.ok()) {
    host::TaskInfo task;
    status = host_.next(-1, task);
    if (status.ok()) status = run_task(round, task);
  }
  if (status.code() == Code::kStepDone) return host_.end_step(report);
  // The step has failed everywhere, or could not begin here, which the others must hear of.
  return status;
}

Status RankWorker::run_task(const Round& round, const host::TaskInfo& task) {
  ticket_ = task.ticket;
  const int64_t begin_ns = comm::now_ns();
  Status status;
  try {
    status = compute(round, task);
  } catch (const std::bad_alloc&) {
    status = {Code::kNoMemory, "out of memory in " + to_string(task.task)};
  }
  if (status.failed()) {
    (void)host_.fail(task.ticket, static_cast<int32_t>(status.code()), status.text());
    return std::move(status).at(host_.id(), task.task);
  }
  delay();
  const int64_t took_ns = comm::now_ns() - begin_ns;
  StageWork& work = round.work[task.task.stage.index()];
  work.busy_ns += took_ns;
  if (task.task.kind == TaskKind::kForward) ++work.microbatches;
  if (round.durations != nullptr) round.durations->add(task.task, took_ns);
  uint32_t events = 0;
  return host_.done(task.ticket, events);
}

Status RankWorker::compute(const Round& round, const host::TaskInfo& info) {
  const Task& task = info.task;
  const model::Program& program = setting_.programs[task.stage.index()];
  const int32_t in_batch = round.microbatches[task.microbatch.index()];
  plan_ = round.plans[in_batch].get();
  const model::Layout& layout = plan_->layouts[task.stage.index()];
  Frame& frame = memory_[task.stage.index()].frames[task.microbatch.index()];

  bound_.shapes = plan_->values.data();
  bound_.training = round.training;
  const size_t loss_count = setting_.graph.losses().size();
  const size_t first_loss = static_cast<size_t>(in_batch) * loss_count;
  bound_.loss_factors = round.loss_factors + first_loss;
  bound_.random = {.seed = round.seed,
                   .step = static_cast<uint32_t>(round.step),
                   .operation = 0,
                   .microbatch = static_cast<uint32_t>(in_batch)};
  const bool forward = task.kind == TaskKind::kForward;
  const bool sends_gradients =
      task.kind == TaskKind::kBackward || task.kind == TaskKind::kInputGradient;
  if (Status s = bind_memory(task, layout, frame); !s.ok()) return s;
  bind_inputs(round, task);
  if (Status s = take_values(task); !s.ok()) return s;
  if (forward) {
    if (Status s = make_outputs(task); !s.ok()) return s;
  } else {
    if (Status s = take_gradients(task); !s.ok()) return s;
  }
  if (sends_gradients) {
    if (Status s = make_gradients(task); !s.ok()) return s;
  }

  model::run_task(program, layout, task.kind, bound_);

  for (const model::Program::Result& result : program.results) {
    if (!forward) break;
    const ValueId loss = setting_.graph.losses()[static_cast<size_t>(result.loss)].value;
    round.losses[first_loss + static_cast<size_t>(result.loss)] = setting_.kernels->sum(
        plan_->values[loss.index()].elements(), bound_.pointers[static_cast<size_t>(result.slot)]);
  }
  if (forward) {
    if (Status s = send_outputs(task, frame); !s.ok()) return s;
  } else if (sends_gradients) {
    if (Status s = send_gradients(task); !s.ok()) return s;
  }
  const core::StepTasks& step = host_.step_tasks();
  const bool last =
      forward ? !step.backward(task.stage, task.microbatch)
              : task.kind != TaskKind::kInputGradient || !step.weight(task.stage, task.microbatch);
  if (last) end_frame(frame);
  return {};
}

// --- Memory

Status RankWorker::allocate(int64_t floats, float*& out, comm::Buffer** keep) {
  Tensor tensor;
  if (Status s = host_.allocate(ticket_, comm::DType::kF32, {&floats, 1}, tensor); !s.ok()) {
    return s;
  }
  out = static_cast<float*>(tensor.data);
  if (keep != nullptr) {
    tensor.buffer->retain();
    *keep = tensor.buffer;
  }
  return {};
}

Status RankWorker::bind_memory(const Task& task, const model::Layout& layout, Frame& frame) {
  const auto kind = static_cast<size_t>(task.kind);
  if (Status s = allocate(layout.scratch[kind], bound_.scratch, nullptr); !s.ok()) return s;
  if (task.kind == TaskKind::kForward) {
    if (Status s = allocate(layout.saved, bound_.saved, &frame.saved); !s.ok()) return s;
  } else if (task.kind == TaskKind::kInputGradient && layout.kept > 0) {
    if (Status s = allocate(layout.kept, bound_.kept, &frame.kept); !s.ok()) return s;
  }
  bound_.saved = static_cast<float*>(frame.saved->data);
  bound_.kept = frame.kept != nullptr ? static_cast<float*>(frame.kept->data) : nullptr;
  const StageMemory& memory = memory_[task.stage.index()];
  for (size_t k = 0; k < memory.kept_outputs.size(); ++k) {
    if (frame.outputs[k] == nullptr) continue;
    bound_.pointers[static_cast<size_t>(memory.kept_outputs[k])] =
        static_cast<float*>(frame.outputs[k]->data);
  }
  return {};
}

void RankWorker::end_frame(Frame& frame) {
  const auto give_up = [](comm::Buffer*& buffer) {
    if (buffer != nullptr) buffer->drop();
    buffer = nullptr;
  };
  give_up(frame.saved);
  give_up(frame.kept);
  for (comm::Buffer*& buffer : frame.outputs) give_up(buffer);
}

void RankWorker::forget() {
  for (StageMemory& memory : memory_) {
    for (Frame& frame : memory.frames) end_frame(frame);
  }
}

Status RankWorker::make_tensor(ValueId value, Tensor& out) {
  return host_.allocate(ticket_, comm::DType::kF32, plan_->values[value.index()].extents(), out);
}

// --- What comes in

void RankWorker::bind_inputs(const Round& round, const Task& task) {
  const model::Program& program = setting_.programs[task.stage.index()];
  const std::span<const ValueId> inputs = setting_.graph.inputs();
  const auto row = static_cast<size_t>(round.microbatches[task.microbatch.index()]);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int32_t slot = program.value_slot[inputs[k].index()];
    if (slot == kNoSlot) continue;
    const void* const data = round.batch->inputs[row * inputs.size() + k].data;
    // Slots have one type of pointer; inputs are only read.
    bound_.pointers[static_cast<size_t>(slot)] = static_cast<float*>(const_cast<void*>(data));
  }
}

Status RankWorker::take_values(const Task& task) {
  const model::Program& program = setting_.programs[task.stage.index()];
  for (EdgeId e : memory_[task.stage.index()].in_edges) {
    const std::vector<ValueId>& values = setting_.cut.edges[e.index()].values;
    if (!host_.step_tasks().active(e, task.microbatch)) {  // the sender takes no part: all is empty
      for (ValueId v : values) {
        bound_.pointers[static_cast<size_t>(program.value_slot[v.index()])] = nullptr;
      }
      continue;
    }
    const auto bind = [&](std::span<const Tensor> tensors, void* /*opaque*/) {
      for (size_t k = 0; k < tensors.size(); ++k) {
        const int32_t slot = program.value_slot[values[k].index()];
        bound_.pointers[static_cast<size_t>(slot)] = static_cast<float*>(tensors[k].data);
      }
    };
    if (Status s = host_.input(ticket_, e, bind); !s.ok()) return s;
  }
  return {};
}

Status RankWorker::take_gradients(const Task& task) {
  const model::Program& program = setting_.programs[task.stage.index()];
  for (EdgeId e : memory_[task.stage.index()].out_edges) {
    const model::CutEdge& edge = setting_.cut.edges[e.index()];
    if (!host_.step_tasks().returns(e, task.microbatch)) {
      if (Status s = make_absent_gradients(task, edge); !s.ok()) return s;
      continue;
    }
    const auto bind = [&](std::span<const Tensor> tensors, void* /*opaque*/) {
      size_t next = 0;
      for (ValueId v : edge.values) {
        if (!setting_.graph.value(v).wants_gradient) continue;
        const int32_t slot = program.sent_gradient_slot[v.index()];
        bound_.pointers[static_cast<size_t>(slot)] = static_cast<float*>(tensors[next++].data);
      }
    };
    if (Status s = host_.input(ticket_, e, bind); !s.ok()) return s;
  }
  return {};
}

/// What a later stage, through which no gradient flows in this microbatch, would have sent.
Status RankWorker::make_absent_gradients(const Task& task, const model::CutEdge& edge) {
  const model::Program& program = setting_.programs[task.stage.index()];
  for (ValueId v : edge.values) {
    if (!setting_.graph.value(v).wants_gradient) continue;
    Tensor zeros;
    if (Status s = make_tensor(v, zeros); !s.ok()) return s;
    auto* const data = static_cast<float*>(zeros.data);
    setting_.kernels->fill(plan_->values[v.index()].elements(), 0.0F, data);
    bound_.pointers[static_cast<size_t>(program.sent_gradient_slot[v.index()])] = data;
  }
  return {};
}

// --- What goes out

Status RankWorker::make_outputs(const Task& task) {
  const model::Program& program = setting_.programs[task.stage.index()];
  for (EdgeId e : memory_[task.stage.index()].out_edges) {
    std::vector<Tensor>& tensors = outgoing_[e.index()];
    tensors.clear();
    if (!host_.step_tasks().active(e, task.microbatch)) continue;  // empty, and nobody takes it
    for (ValueId v : setting_.cut.edges[e.index()].values) {
      const int32_t slot = program.value_slot[v.index()];
      float*& data = bound_.pointers[static_cast<size_t>(slot)];
      Tensor tensor;
      bool made = false;
      // One value may leave along several edges; they share its memory.
      for (EdgeId other : memory_[task.stage.index()].out_edges) {
        if (other == e) break;
        const std::vector<ValueId>& values = setting_.cut.edges[other.index()].values;
        for (size_t k = 0; k < outgoing_[other.index()].size(); ++k) {
          if (values[k] != v) continue;
          tensor = outgoing_[other.index()][k];
          made = true;
        }
      }
      if (!made && program.slots[static_cast<size_t>(slot)].kind == model::SlotKind::kOutgoing) {
        if (Status s = make_tensor(v, tensor); !s.ok()) return s;
        data = static_cast<float*>(tensor.data);
      } else if (!made) {
        if (Status s = relay(task, v, tensor); !s.ok()) return s;
      }
      tensor.wants_gradient = setting_.graph.value(v).wants_gradient;
      tensors.push_back(tensor);
    }
  }
  return {};
}

Status RankWorker::relay(const Task& task, ValueId value, Tensor& out) {
  for (EdgeId e : memory_[task.stage.index()].in_edges) {
    const std::vector<ValueId>& values = setting_.cut.edges[e.index()].values;
    for (size_t k = 0; k < values.size(); ++k) {
      if (values[k] != value) continue;
      if (!host_.step_tasks().active(e, task.microbatch)) return make_tensor(value, out);
      return host_.input(
          ticket_, e, [&](std::span<const Tensor> tensors, void* /*opaque*/) { out = tensors[k]; });
    }
  }
  return {Code::kInternal, "value " + std::to_string(value.value) + " does not reach stage " +
                               std::to_string(task.stage.value)};
}

Status RankWorker::send_outputs(const Task& task, Frame& frame) {
  const StageMemory& memory = memory_[task.stage.index()];
  const model::Program& program = setting_.programs[task.stage.index()];
  for (EdgeId e : memory.out_edges) {
    const std::vector<Tensor>& tensors = outgoing_[e.index()];
    const std::vector<ValueId>& values = setting_.cut.edges[e.index()].values;
    for (size_t k = 0; k < tensors.size(); ++k) {
      const int32_t slot = program.value_slot[values[k].index()];
      for (size_t j = 0; j < memory.kept_outputs.size(); ++j) {
        if (memory.kept_outputs[j] != slot || frame.outputs[j] != nullptr) continue;
        tensors[k].buffer->retain();
        frame.outputs[j] = tensors[k].buffer;
      }
    }
    if (!host_.step_tasks().active(e, task.microbatch)) continue;
    if (Status s = host_.put(ticket_, e, tensors, nullptr); !s.ok()) return s;
  }
  return {};
}

Status RankWorker::make_gradients(const Task& task) {
  const model::Program& program = setting_.programs[task.stage.index()];
  for (EdgeId e : memory_[task.stage.index()].in_edges) {
    const model::CutEdge& edge = setting_.cut.edges[e.index()];
    std::vector<Tensor>& tensors = outgoing_[e.index()];
    tensors.clear();
    for (ValueId v : edge.values) {
      if (!setting_.graph.value(v).wants_gradient) continue;
      Tensor tensor;
      if (Status s = make_tensor(v, tensor); !s.ok()) return s;
      bound_.pointers[static_cast<size_t>(program.gradient_slot[v.index()])] =
          static_cast<float*>(tensor.data);
      tensors.push_back(tensor);
    }
  }
  return {};
}

Status RankWorker::send_gradients(const Task& task) {
  for (EdgeId e : memory_[task.stage.index()].in_edges) {
    if (!host_.step_tasks().returns(e, task.microbatch)) continue;
    if (Status s = host_.put(ticket_, e, outgoing_[e.index()], nullptr); !s.ok()) return s;
  }
  return {};
}

// --- Tests

void RankWorker::delay() {
  if (setting_.delay_us_max == 0) return;
  // Any numbers do: results must not depend on them.
  delay_state_ = delay_state_ * 6364136223846793005U + 1442695040888963407U;
  const auto us =
      static_cast<int64_t>((delay_state_ >> 33) % static_cast<uint64_t>(setting_.delay_us_max + 1));
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

}  // namespace rrfp::train
