// SPDX-License-Identifier: Apache-2.0
//
// Inputs and outputs of the running task.
#include <cstring>
#include <utility>

#include "engine/host/pipeline.h"
#include "engine/host/rank_host.h"

namespace rrfp::host {

using comm::Tensor;
using core::Code;
using core::Direction;
using core::Status;
using core::TaskKind;

namespace {

constexpr int32_t kDeviceCpu = 1;

std::string shape_text(const Tensor& tensor) {
  std::string text = std::string(comm::name(tensor.dtype)) + "[";
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    text += (d > 0 ? "," : "") + std::to_string(tensor.shape[static_cast<size_t>(d)]);
  }
  return text + "]";
}

std::string shape_text(const TensorSpec& spec) {
  std::string text = std::string(comm::name(spec.dtype)) + "[";
  for (size_t d = 0; d < spec.shape.size(); ++d) {
    const bool any = spec.shape[d] == TensorSpec::kAnyExtent;
    text += (d > 0 ? "," : "") + (any ? std::string("?") : std::to_string(spec.shape[d]));
  }
  return text + "]";
}

std::string edge_text(const core::StageGraph& graph, core::EdgeId id) {
  const core::Edge& edge = graph.edge(id);
  return "edge " + std::to_string(id.value) + " (stage " + std::to_string(edge.from.value) +
         " -> " + std::to_string(edge.to.value) + ")";
}

Status check_shape(comm::DType dtype, std::span<const int64_t> shape) {
  if (static_cast<int32_t>(dtype) < 1 || static_cast<int32_t>(dtype) >= comm::kDTypeCount) {
    return {Code::kTensorMismatch,
            "dtype " + std::to_string(static_cast<int32_t>(dtype)) + " is unknown"};
  }
  if (shape.size() > Tensor::kDimsMax) {
    return {Code::kTensorMismatch, "ndim is " + std::to_string(shape.size()) + "; at most " +
                                       std::to_string(Tensor::kDimsMax) + " are possible"};
  }
  // Bounds the product, so that no size computed from it overflows.
  constexpr int64_t kElementsMax = int64_t{1} << 48;
  int64_t count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 || (shape[d] > 0 && count > kElementsMax / shape[d])) {
      return {Code::kTensorMismatch, "extent " + std::to_string(d) + " of the shape is " +
                                         std::to_string(shape[d]) +
                                         "; it is negative or too large"};
    }
    count *= shape[d];
  }
  return {};
}

Status check_layout(const Tensor& tensor) {
  if (tensor.ndim < 0) {
    return {Code::kTensorMismatch, "ndim is " + std::to_string(tensor.ndim) + "; it is negative"};
  }
  const auto dims = static_cast<size_t>(std::min(tensor.ndim, Tensor::kDimsMax + 1));
  if (dims > Tensor::kDimsMax) {
    return {Code::kTensorMismatch, "ndim is " + std::to_string(tensor.ndim) + "; at most " +
                                       std::to_string(Tensor::kDimsMax) + " are possible"};
  }
  if (Status s = check_shape(tensor.dtype, {tensor.shape.data(), dims}); !s.ok()) return s;
  if (tensor.element_count() == 0) return {};
  if (tensor.data == nullptr) return {Code::kTensorMismatch, "data is null"};
  // All zero = contiguous. The stride of an extent of 1 is never used, so it may be anything.
  bool given = false;
  for (size_t d = 0; d < dims; ++d) given = given || tensor.strides[d] != 0;
  int64_t expected = 1;
  for (size_t d = dims; given && d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) {
      return {Code::kTensorMismatch, "stride " + std::to_string(d) + " of " + shape_text(tensor) +
                                         " is " + std::to_string(tensor.strides[d]) +
                                         "; expected the contiguous " + std::to_string(expected)};
    }
    expected *= tensor.shape[d];
  }
  return {};
}

}  // namespace

size_t RankHost::slot(size_t edge, Direction direction, core::MicrobatchId i) const {
  return (edge * 2 + static_cast<size_t>(direction)) * plan_->needs.size() + i.index();
}

// --- Inputs

Status RankHost::find_input(uint64_t ticket, core::EdgeId edge, const comm::Payload*& out) const {
  if (Status s = check_ticket(ticket); !s.ok()) return s;
  const core::StageGraph& graph = pipeline_.graph();
  const size_t index = plan_->find_edge(edge);
  const bool local = index < plan_->edges.size();
  const bool enters = local && graph.edge(edge).to == task_.stage;
  const bool leaves = local && graph.edge(edge).from == task_.stage;
  if (!enters && !leaves) {
    return Status(Code::kInvalidArgument, "edge " + std::to_string(edge.value) +
                                              " does not touch stage " +
                                              std::to_string(task_.stage.value))
        .at(rank_, task_);
  }
  if (leaves && task_.kind == TaskKind::kForward) {
    return Status(Code::kBadState, "task " + to_string(task_) + " has no gradient on " +
                                       edge_text(graph, edge) + "; only B, I and W have")
        .at(rank_, task_);
  }
  const Direction direction = enters ? Direction::kForward : Direction::kBackward;
  out = inbox_[slot(index, direction, task_.microbatch)];
  return out != nullptr ? Code::kOk : Code::kAbsent;
}

// --- Memory

Status RankHost::allocate(uint64_t ticket, comm::DType dtype, std::span<const int64_t> shape,
                          Tensor& out) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  take_out_rubbish();
  const std::lock_guard lock(mutex_);
  if (Status s = check_ticket(ticket); !s.ok()) return s;
  if (Status s = check_shape(dtype, shape); !s.ok()) return std::move(s).at(rank_, task_);
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.ndim = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.shape.begin());
  tensor.set_contiguous_strides();
  scratch_.reserve(scratch_.size() + 1);
  tensor.buffer = memory_->allocate(tensor.byte_size());
  if (tensor.buffer == nullptr) {
    return Status(Code::kNoMemory, "no memory for " + std::to_string(tensor.byte_size()) +
                                       " bytes, " + shape_text(tensor))
        .at(rank_, task_);
  }
  tensor.data = tensor.buffer->data;
  scratch_.push_back(tensor.buffer);
  out = tensor;
  return {};
}

Status RankHost::wrap(uint64_t ticket, void* data, size_t bytes, comm::Buffer::ReleaseFn release,
                      void* user, comm::Buffer*& out) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  take_out_rubbish();
  const std::lock_guard lock(mutex_);
  if (Status s = check_ticket(ticket); !s.ok()) return s;
  scratch_.reserve(scratch_.size() + 1);
  out = memory_->wrap(data, bytes, release, user);
  scratch_.push_back(out);
  return {};
}

void RankHost::discard(comm::Payload* payload) {
  payload->next = std::exchange(rubbish_, payload);
}

void RankHost::discard_scratch() {
  if (rubbish_buffers_.empty()) {
    rubbish_buffers_.swap(scratch_);
    return;
  }
  rubbish_buffers_.insert(rubbish_buffers_.end(), scratch_.begin(), scratch_.end());
  scratch_.clear();
}

/// Gives up what has been discarded and takes back what came home. Both may run release functions,
/// so the mutex must be free.
void RankHost::take_out_rubbish() {
  while (rubbish_ != nullptr) std::exchange(rubbish_, rubbish_->next)->drop();
  for (comm::Buffer* buffer : rubbish_buffers_) buffer->drop();
  rubbish_buffers_.clear();
  memory_->collect();
}

// --- Outputs

/// The index of an edge along which the running task must give an output.
Status RankHost::find_output(core::EdgeId edge, size_t& index) const {
  const core::StageGraph& graph = pipeline_.graph();
  index = plan_->find_edge(edge);
  const auto refuse = [&](const std::string& why) {
    return Status(Code::kInvalidArgument, "task " + to_string(task_) + " " + why).at(rank_, task_);
  };
  if (index == plan_->edges.size()) {
    return refuse("has no output on edge " + std::to_string(edge.value) +
                  ", which does not touch its stage");
  }
  const bool forward = task_.kind == TaskKind::kForward;
  const core::Edge& e = graph.edge(edge);
  if (task_.kind == TaskKind::kWeightGradient) return refuse("has no outputs");
  if ((forward ? e.from : e.to) != task_.stage) {
    return refuse("has no output on " + edge_text(graph, edge) +
                  (forward ? "; a forward gives activations to edges that leave its stage"
                           : "; a backward gives gradients to edges that enter its stage"));
  }
  return {};
}

/// Whether something travels along an edge of find_output for this microbatch.
bool RankHost::output_due(core::EdgeId edge) const {
  return task_.kind == TaskKind::kForward ? plan_->tasks->active(edge, task_.microbatch)
                                          : plan_->tasks->returns(edge, task_.microbatch);
}

Status RankHost::output_wanted(uint64_t ticket, core::EdgeId edge) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  const std::lock_guard lock(mutex_);
  if (Status s = check_ticket(ticket); !s.ok()) return s;
  size_t index = 0;
  if (Status s = find_output(edge, index); !s.ok()) return s;
  return output_due(edge) ? Code::kOk : Code::kAbsent;
}

Status RankHost::put(uint64_t ticket, core::EdgeId edge, std::span<const Tensor> tensors,
                     void* opaque) {
  const Entry entry(*this);
  if (entry.refused()) return busy();
  const std::lock_guard lock(mutex_);
  if (Status s = check_ticket(ticket); !s.ok()) return s;
  size_t index = 0;
  if (Status s = find_output(edge, index); !s.ok()) return s;
  const auto name = [&](size_t k) {
    return "tensor " + std::to_string(k) + " of " + edge_text(pipeline_.graph(), edge) +
           ", microbatch " + std::to_string(task_.microbatch.value) + ": ";
  };
  if (!output_due(edge)) {
    const bool forward = task_.kind == TaskKind::kForward;
    return Status(Code::kInvalidArgument,
                  "task " + to_string(task_) + " has no output on " +
                      edge_text(pipeline_.graph(), edge) +
                      (forward ? ": the microbatch skips the stage at its end"
                               : ": nothing before it needs a gradient of this microbatch"))
        .at(rank_, task_);
  }
  if (outgoing_[index] != nullptr) {
    return Status(Code::kBadState, "task " + to_string(task_) + " has already put its output for " +
                                       edge_text(pipeline_.graph(), edge))
        .at(rank_, task_);
  }
  for (size_t k = 0; k < tensors.size(); ++k) {
    const bool no_gradient =
        task_.kind != TaskKind::kForward && tensors[k].dtype == comm::DType::kNone;
    if (no_gradient) continue;
    if (Status s = check_layout(tensors[k]); !s.ok()) {
      return Status(s.code(), name(k) + s.text()).at(rank_, task_);
    }
  }
  if (Status s = check_output(index, tensors); !s.ok()) return std::move(s).at(rank_, task_);
  comm::Payload* payload = memory_->allocate_payload();
  outgoing_[index] = payload;
  payload->opaque = opaque;
  payload->tensors.reserve(tensors.size());
  for (size_t k = 0; k < tensors.size(); ++k) {
    Tensor tensor = tensors[k];
    if (Status s = take_tensor(tensor); !s.ok()) {
      discard(std::exchange(outgoing_[index], nullptr));
      return Status(s.code(), name(k) + s.text()).at(rank_, task_);
    }
    payload->tensors.push_back(tensor);
  }
  return {};
}

/// Gives the tensor a buffer reference of its own, copying what has no buffer yet.
Status RankHost::take_tensor(Tensor& tensor) {
  if (tensor.dtype == comm::DType::kNone) {
    tensor = {};
    return {};
  }
  if (tensor.element_count() == 0) {
    tensor.set_contiguous_strides();
    tensor.data = nullptr;
    tensor.buffer = nullptr;
    return {};
  }
  tensor.set_contiguous_strides();
  const size_t bytes = tensor.byte_size();
  if (tensor.buffer != nullptr) {
    const auto* begin = static_cast<const std::byte*>(tensor.buffer->data);
    const auto* data = static_cast<const std::byte*>(tensor.data);
    if (data < begin || bytes > tensor.buffer->bytes ||
        static_cast<size_t>(data - begin) > tensor.buffer->bytes - bytes) {
      return {Code::kTensorMismatch, shape_text(tensor) + " needs " + std::to_string(bytes) +
                                         " bytes and does not lie within its buffer of " +
                                         std::to_string(tensor.buffer->bytes)};
    }
    tensor.buffer->retain();
    return {};
  }
  if (tensor.device_type != kDeviceCpu) {
    return {Code::kTensorMismatch, "memory of device type " + std::to_string(tensor.device_type) +
                                       " cannot be copied; wrap it in a buffer"};
  }
  comm::Buffer* const buffer = memory_->allocate(bytes);
  if (buffer == nullptr) {
    return {Code::kNoMemory, "no memory for " + std::to_string(bytes) + " bytes"};
  }
  std::memcpy(buffer->data, tensor.data, bytes);
  tensor.buffer = buffer;
  tensor.data = buffer->data;
  return {};
}

Status RankHost::check_outputs_put() const {
  if (task_.kind == TaskKind::kWeightGradient) return {};
  const core::ChunkPlan& chunk = plan_->chunks[plan_->find_chunk(task_.stage)];
  const bool forward = task_.kind == TaskKind::kForward;
  for (uint16_t e : forward ? chunk.out : chunk.in) {
    const core::EdgeId id = plan_->edges[e].id;
    if (!output_due(id) || outgoing_[e] != nullptr) continue;
    return Status(Code::kBadState, "task " + to_string(task_) + " has not put its output for " +
                                       edge_text(pipeline_.graph(), id))
        .at(rank_, task_);
  }
  return {};
}

Status RankHost::check_output(size_t edge, std::span<const Tensor> tensors) const {
  if (task_.kind != TaskKind::kForward) return check_gradients(edge, tensors);
  const core::EdgeId id = plan_->edges[edge].id;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (!tensors[k].wants_gradient) continue;
    const char* why = !pipeline_.graph().edge(id).gradient ? "the edge carries no gradients"
                      : !comm::is_float(tensors[k].dtype)  ? "only floating-point tensors have one"
                                                           : nullptr;
    if (why == nullptr) continue;
    return {Code::kTensorMismatch,
            "tensor " + std::to_string(k) + " of " + edge_text(pipeline_.graph(), id) + ", " +
                shape_text(tensors[k]) + ", asks for a gradient, but " + why};
  }
  return check_against_specs(id, tensors);
}

Status RankHost::check_against_specs(core::EdgeId edge, std::span<const Tensor> tensors) const {
  const std::vector<TensorSpec>& specs = pipeline_.specs(edge);
  if (specs.empty()) return {};
  // Texts are made only when something is wrong: a step must not allocate.
  const auto where = [&] { return edge_text(pipeline_.graph(), edge); };
  if (tensors.size() != specs.size()) {
    return {Code::kTensorMismatch, where() + " got " + std::to_string(tensors.size()) +
                                       " tensors; it is declared with " +
                                       std::to_string(specs.size())};
  }
  for (size_t k = 0; k < tensors.size(); ++k) {
    const Tensor& tensor = tensors[k];
    const TensorSpec& spec = specs[k];
    bool fits = tensor.dtype == spec.dtype && static_cast<size_t>(tensor.ndim) == spec.shape.size();
    for (size_t d = 0; fits && d < spec.shape.size(); ++d) {
      fits = spec.shape[d] == TensorSpec::kAnyExtent || spec.shape[d] == tensor.shape[d];
    }
    if (!fits) {
      return {Code::kTensorMismatch, "tensor " + std::to_string(k) + " of " + where() + " is " +
                                         shape_text(tensor) + "; it is declared as " +
                                         shape_text(spec)};
    }
    if (tensor.wants_gradient != spec.wants_gradient) {
      return {Code::kTensorMismatch,
              "tensor " + std::to_string(k) + " of " + where() +
                  (spec.wants_gradient ? " does not ask for a gradient; it is declared to"
                                       : " asks for a gradient; it is declared not to")};
    }
  }
  return {};
}

/// A gradient message holds exactly the tensors that the forward message flagged, in its order.
Status RankHost::check_gradients(size_t edge, std::span<const Tensor> tensors) const {
  const comm::Payload* forward = inbox_[slot(edge, Direction::kForward, task_.microbatch)];
  assert(forward != nullptr && "the backward of a stage comes after its inputs");
  const auto where = [&] { return edge_text(pipeline_.graph(), plan_->edges[edge].id); };
  size_t given = 0;
  size_t wanted = 0;
  for (size_t k = 0; k < forward->tensors.size(); ++k) {
    const Tensor& activation = forward->tensors[k];
    if (!activation.wants_gradient) continue;
    ++wanted;
    if (given == tensors.size()) continue;
    const Tensor& gradient = tensors[given++];
    const bool none = gradient.dtype == comm::DType::kNone;
    if (none || (gradient.dtype == activation.dtype && gradient.same_shape(activation))) continue;
    return {Code::kTensorMismatch, "gradient " + std::to_string(given - 1) + " for " + where() +
                                       " is " + shape_text(gradient) + "; its activation, tensor " +
                                       std::to_string(k) + ", is " + shape_text(activation)};
  }
  if (tensors.size() == wanted) return {};
  return {Code::kTensorMismatch, std::to_string(tensors.size()) + " gradients were given for " +
                                     where() + "; the forward message asked for " +
                                     std::to_string(wanted)};
}

}  // namespace rrfp::host
