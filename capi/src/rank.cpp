// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>
#include <vector>

#include "capi/src/guard.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

// An rrfp_buffer is the engine's Buffer, seen from C.
static_assert(RRFP_DIMS_MAX == comm::Tensor::kDimsMax);
static_assert(RRFP_BOOL + 1 == comm::kDTypeCount);

namespace {

comm::Buffer* from_c(rrfp_buffer* buffer) {
  return reinterpret_cast<comm::Buffer*>(buffer);
}
rrfp_buffer* to_c(comm::Buffer* buffer) {
  return reinterpret_cast<rrfp_buffer*>(buffer);
}

Status read_tensor(const rrfp_tensor& in, size_t k, comm::Tensor& out) {
  if (in.flags > RRFP_TENSOR_WANTS_GRADIENT || in.reserved != 0) {
    const std::string name = "tensors[" + std::to_string(k) + "]";
    Status s = check_flags((name + ".flags").c_str(), in.flags, RRFP_TENSOR_WANTS_GRADIENT);
    return s.ok() ? check_reserved(name.c_str(), in.reserved) : s;
  }
  out.data = in.data;
  out.buffer = from_c(in.buffer);
  std::copy_n(in.shape, RRFP_DIMS_MAX, out.shape.begin());
  std::copy_n(in.strides, RRFP_DIMS_MAX, out.strides.begin());
  out.ndim = in.ndim;
  out.dtype = static_cast<comm::DType>(in.dtype);
  out.device_type = in.device_type == 0 ? RRFP_DEVICE_CPU : in.device_type;
  out.device_id = in.device_id;
  out.wants_gradient = (in.flags & RRFP_TENSOR_WANTS_GRADIENT) != 0;
  return {};
}

rrfp_tensor write_tensor(const comm::Tensor& in) {
  rrfp_tensor out = {};
  out.data = in.data;
  out.buffer = to_c(in.buffer);
  std::copy(in.shape.begin(), in.shape.end(), out.shape);
  std::copy(in.strides.begin(), in.strides.end(), out.strides);
  out.ndim = in.ndim;
  out.dtype = static_cast<rrfp_dtype>(in.dtype);
  out.device_type = in.device_type;
  out.device_id = in.device_id;
  out.flags = in.wants_gradient ? RRFP_TENSOR_WANTS_GRADIENT : 0;
  return out;
}

/// Copies an array of stages x microbatches. Its size is checked before it is read.
template <class Value>
void read_cells(const Value* in, int32_t stages, int32_t microbatches, std::vector<Value>& out) {
  if (in == nullptr || microbatches < 1) return;
  out.assign(in, in + static_cast<size_t>(stages) * static_cast<size_t>(microbatches));
}

Status read_step(const rrfp_step_options& o, const host::Pipeline& pipeline,
                 host::StepRequest& out) {
  if (Status s = check_enum("mode", o.mode, RRFP_MODE_FORWARD); !s.ok()) return s;
  if (Status s = check_enum("order", o.order, RRFP_ORDER_PAIRED); !s.ok()) return s;
  if (o.hint == nullptr) return null_argument("rrfp_step_options.hint");
  out.step = o.step;
  out.hint = o.hint->hint;
  out.policy = pipeline.options().policy;
  if (o.order != RRFP_ORDER_DEFAULT) out.policy.order = read_order(o.order);
  out.shape.mode = static_cast<core::StepMode>(o.mode);
  out.shape.microbatches = o.microbatches;
  if (o.microbatches > core::StepTasks::kMicrobatchesMax) return {};  // refused by StepTasks
  const int32_t stages = pipeline.graph().stage_count();
  read_cells(o.skip, stages, o.microbatches, out.shape.skip);
  read_cells(o.activation_bytes, stages, o.microbatches, out.shape.activation_bytes);
  return {};
}

}  // namespace

void capi::write_step_report(int32_t rank, const host::StepReport& report, rrfp_step_report* out) {
  rrfp_step_report filled = {};
  filled.rank = rank;
  filled.step = report.step;
  filled.total_ns = report.total_ns;
  filled.busy_ns = report.busy_ns;
  filled.wait_input_ns = report.wait_input_ns;
  filled.wait_memory_ns = report.wait_memory_ns;
  filled.wait_credit_ns = report.wait_credit_ns;
  filled.wait_policy_ns = report.wait_policy_ns;
  filled.other_ns = report.other_ns;
  filled.tasks = report.tasks;
  filled.messages_sent = report.messages_sent;
  filled.peak_slots = report.peak.slots;
  filled.peak_bytes = report.peak.bytes;
  filled.tensor_bytes_peak = static_cast<int64_t>(report.tensor_bytes_peak);
  filled.tensor_bytes_live = static_cast<int64_t>(report.tensor_bytes_live);
  store(filled, out);
}

void rrfp_step_options_init(rrfp_step_options* options) {
  init(options);
}
void rrfp_task_init(rrfp_task* task) {
  init(task);
}
void rrfp_step_report_init(rrfp_step_report* report) {
  init(report);
}

rrfp_status rrfp_rank_create(rrfp_pipeline* pipeline, int32_t rank, rrfp_rank** out,
                             rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(pipeline)) return unusable(pipeline, "pipeline");
    if (out == nullptr) return null_argument("out");
    auto handle = std::make_unique<rrfp_rank>();
    handle->pipeline = pipeline->pipeline;
    if (Status s = pipeline->pipeline->open(core::RankId(rank), handle->host); !s.ok()) return s;
    *out = handle.release();
    return {};
  });
}

void rrfp_rank_destroy(rrfp_rank* rank) {
  if (!usable(rank)) return;
  (void)guard(nullptr, [&]() -> Status {
    const std::unique_ptr<rrfp_rank> handle(rank);
    handle->pipeline->close(*handle->host);
    return {};
  });
}

rrfp_status rrfp_rank_begin_step(rrfp_rank* rank, const rrfp_step_options* options,
                                 rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    if (options == nullptr) return null_argument("options");
    rrfp_step_options o = {};
    if (Status s = load(options, "rrfp_step_options", o); !s.ok()) return s;
    host::StepRequest request;
    if (Status s = read_step(o, *rank->pipeline, request); !s.ok()) return s;
    return rank->host->begin_step(request);
  });
}

rrfp_status rrfp_rank_next(rrfp_rank* rank, int64_t timeout_us, rrfp_task* out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_task"); !s.ok()) return s;
    constexpr int64_t kNsPerUs = 1000;
    const bool forever = timeout_us < 0 || timeout_us > INT64_MAX / kNsPerUs;
    host::TaskInfo info;
    Status s = rank->host->next(forever ? -1 : timeout_us * kNsPerUs, info);
    if (!s.ok()) return s;
    rrfp_task task = {};
    task.ticket = info.ticket;
    task.stage = info.task.stage.value;
    task.microbatch = info.task.microbatch.value;
    task.kind = static_cast<rrfp_task_kind>(info.task.kind);
    task.flags = info.loss ? RRFP_TASK_LOSS : 0;
    store(task, out);
    return {};
  });
}

rrfp_status rrfp_rank_wake(rrfp_rank* rank, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    rank->host->wake();
    return {};
  });
}

rrfp_status rrfp_rank_input(rrfp_rank* rank, uint64_t ticket, int32_t edge, rrfp_tensor* tensors,
                            size_t capacity, size_t* out_count, void** out_opaque,
                            rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    if (tensors == nullptr && capacity > 0) return null_argument("tensors");
    const auto copy_out = [&](std::span<const comm::Tensor> found, void* opaque) {
      for (size_t k = 0; k < std::min(capacity, found.size()); ++k) {
        tensors[k] = write_tensor(found[k]);
      }
      if (out_count != nullptr) *out_count = found.size();
      if (out_opaque != nullptr) *out_opaque = opaque;
    };
    return rank->host->input(ticket, core::EdgeId(edge), copy_out);
  });
}

rrfp_status rrfp_rank_alloc(rrfp_rank* rank, uint64_t ticket, rrfp_dtype dtype, int32_t ndim,
                            const int64_t* shape, rrfp_tensor* out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    if (out == nullptr) return null_argument("out");
    if (ndim < 0) {
      return {Code::kTensorMismatch, "ndim is " + std::to_string(ndim) + "; it is negative"};
    }
    if (ndim > 0 && shape == nullptr) return null_argument("shape");
    comm::Tensor tensor;
    const std::span<const int64_t> extents(shape, static_cast<size_t>(ndim));
    Status s = rank->host->allocate(ticket, static_cast<comm::DType>(dtype), extents, tensor);
    if (s.ok()) *out = write_tensor(tensor);
    return s;
  });
}

rrfp_status rrfp_rank_wrap(rrfp_rank* rank, uint64_t ticket, void* data, size_t bytes,
                           rrfp_release_fn release, void* user_data, rrfp_buffer** out,
                           rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    if (out == nullptr) return null_argument("out");
    if (data == nullptr && bytes > 0) return null_argument("data");
    if (bytes > static_cast<size_t>(INT64_MAX)) {
      return {Code::kInvalidArgument,
              "bytes is " + std::to_string(bytes) + "; it is beyond any machine"};
    }
    comm::Buffer* buffer = nullptr;
    Status s = rank->host->wrap(ticket, data, bytes, release, user_data, buffer);
    if (s.ok()) *out = to_c(buffer);
    return s;
  });
}

void rrfp_buffer_retain(rrfp_buffer* buffer) {
  if (buffer != nullptr) from_c(buffer)->retain();
}

void rrfp_buffer_release(rrfp_buffer* buffer) {
  if (buffer != nullptr) from_c(buffer)->drop();  // release functions do not throw
}

rrfp_status rrfp_rank_put(rrfp_rank* rank, uint64_t ticket, int32_t edge,
                          const rrfp_tensor* tensors, size_t count, void* opaque,
                          rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    if (tensors == nullptr && count > 0) return null_argument("tensors");
    constexpr size_t kUsual = 8;  // more than this many tensors cost an allocation
    std::array<comm::Tensor, kUsual> few;
    std::vector<comm::Tensor> many(count > kUsual ? count : 0);
    const std::span<comm::Tensor> read =
        count > kUsual ? std::span(many) : std::span(few).first(count);
    for (size_t k = 0; k < count; ++k) {
      if (Status s = read_tensor(tensors[k], k, read[k]); !s.ok()) return s;
    }
    return rank->host->put(ticket, core::EdgeId(edge), read, opaque);
  });
}

rrfp_status rrfp_rank_output_wanted(rrfp_rank* rank, uint64_t ticket, int32_t edge,
                                    rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    return rank->host->output_wanted(ticket, core::EdgeId(edge));
  });
}

rrfp_status rrfp_rank_done(rrfp_rank* rank, uint64_t ticket, rrfp_events* out_events,
                           rrfp_error* error) {
  static_assert(RRFP_EVENT_STAGE_GRADIENTS == host::kStageGradientsDone &&
                RRFP_EVENT_STAGE_LOSSES == host::kStageLossesDone &&
                RRFP_EVENT_STEP_TASKS == host::kStepDone);
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    uint32_t events = 0;
    Status s = rank->host->done(ticket, events);
    if (s.ok() && out_events != nullptr) *out_events = events;
    return s;
  });
}

rrfp_status rrfp_rank_fail(rrfp_rank* rank, uint64_t ticket, int32_t code, const char* text,
                           rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    return rank->host->fail(ticket, code, text != nullptr ? text : "no reason given");
  });
}

rrfp_status rrfp_rank_end_step(rrfp_rank* rank, rrfp_step_report* out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(rank)) return unusable(rank, "rank");
    if (out != nullptr) {
      if (Status s = check_size(out, "rrfp_step_report"); !s.ok()) return s;
    }
    const int32_t id = rank->host->id().value;  // afterwards the handle may be gone
    host::StepReport report;
    Status s = rank->host->end_step(report);
    if (!s.ok() || out == nullptr) return s;
    write_step_report(id, report, out);
    return s;
  });
}
