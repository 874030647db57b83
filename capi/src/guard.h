// SPDX-License-Identifier: Apache-2.0
//
// The boundary between C and C++: statuses, exceptions, handles, versioned structs, text out.
#pragma once

#include <rrfp/rrfp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/core/hint.h"
#include "engine/core/status.h"
#include "engine/host/pipeline.h"

namespace rrfp::capi {

/// How often the process has been forked on the way to here; counted in fork.cpp.
extern std::atomic<uint32_t> forks;

/// A handle with threads, or whose ranks are in the hands of threads: none of them follows into the
/// child of a fork, where the handle would wait for ever.
struct ProcessBound {
  const uint32_t born = forks.load(std::memory_order_relaxed);
};

template <class Handle>
bool usable(const Handle* handle) {
  return handle != nullptr && handle->born == forks.load(std::memory_order_relaxed);
}

}  // namespace rrfp::capi

struct rrfp_graph {
  explicit rrfp_graph(int32_t ranks) : graph(ranks) {}
  rrfp::core::StageGraph graph;
  rrfp::host::EdgeSpecs specs;
};

struct rrfp_hint {
  std::shared_ptr<const rrfp::core::Hint> hint;
};

struct rrfp_pipeline : rrfp::capi::ProcessBound {
  std::shared_ptr<rrfp::host::Pipeline> pipeline;
};

struct rrfp_rank : rrfp::capi::ProcessBound {
  std::shared_ptr<rrfp::host::Pipeline> pipeline;  // keeps `host` alive
  rrfp::host::RankHost* host;
};

namespace rrfp::capi {

using core::Code;
using core::Status;

inline rrfp_status report(const Status& status, rrfp_error* error) {
  if (status.failed() && error != nullptr) {
    *error = {};
    error->status = static_cast<rrfp_status>(status.code());
    error->rank = status.rank().value;
    const bool has_task = status.task().stage.valid();
    error->stage = status.task().stage.value;
    error->microbatch = status.task().microbatch.value;
    error->kind = has_task ? static_cast<int32_t>(status.task().kind) : -1;
    error->user_code = status.user_code();
    const size_t length = std::min(status.text().size(), sizeof error->text - 1);
    std::memcpy(error->text, status.text().data(), length);
  }
  return static_cast<rrfp_status>(status.code());
}

inline rrfp_status report_exception(Code code, const char* text, rrfp_error* error) noexcept {
  if (error != nullptr) {
    *error = {};
    error->status = static_cast<rrfp_status>(code);
    error->rank = error->stage = error->microbatch = error->kind = -1;
    std::strncpy(error->text, text, sizeof error->text - 1);
  }
  return static_cast<rrfp_status>(code);
}

/// Runs the body of a C function; no exception leaves it.
template <class Body>
rrfp_status guard(rrfp_error* error, Body body) noexcept {
  try {
    return report(body(), error);
  } catch (const std::bad_alloc&) {
    return report_exception(Code::kNoMemory, "out of memory", error);
  } catch (const std::length_error&) {  // a count that no machine can hold
    return report_exception(Code::kNoMemory, "a count is too large", error);
  } catch (const std::exception& e) {
    return report_exception(Code::kInternal, e.what(), error);
  } catch (...) {  // from a callback of the caller
    return report_exception(Code::kInternal, "an exception of an unknown type", error);
  }
}

inline Status null_handle(const char* name) {
  return {Code::kNullHandle, std::string(name) + " is null"};
}
/// Why a handle is not usable().
inline Status unusable(const void* handle, const char* name) {
  if (handle == nullptr) return null_handle(name);
  return {Code::kForked,
          std::string(name) +
              " was made before fork() and belongs to the parent process; make a new "
              "one in this one"};
}
inline Status null_argument(const char* name) {
  return {Code::kInvalidArgument, std::string(name) + " is null"};
}

/// The size of a versioned struct in the first release that had it: the least that a caller can
/// mean. A struct that grows gets a specialisation here.
template <class Struct>
constexpr uint32_t kFirstSize = sizeof(Struct);

template <class Struct>
Status check_size(const Struct* value, const char* name) {
  constexpr uint32_t kSizeMax = 4096;  // far beyond any version; a larger one was never set
  if (value->struct_size >= kFirstSize<Struct> && value->struct_size <= kSizeMax) return {};
  return {Code::kBadStructSize,
          std::string(name) + ".struct_size is " + std::to_string(value->struct_size) +
              "; expected " + std::to_string(sizeof(Struct)) + ", as set by the _init function"};
}

/// Reads a versioned struct. Fields that the caller does not have stay as they are in `out`, which
/// holds the defaults; fields that this library does not have must be zero.
template <class Struct>
Status load(const Struct* in, const char* name, Struct& out) {
  if (Status s = check_size(in, name); !s.ok()) return s;
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (size_t k = sizeof(Struct); k < in->struct_size; ++k) {
    if (bytes[k] == 0) continue;
    return {Code::kBadStructSize,
            std::string(name) + " sets fields that this version of the library does not know"};
  }
  std::memcpy(&out, in, std::min<size_t>(in->struct_size, sizeof(Struct)));
  return {};
}

/// Writes a versioned struct, as much of it as the caller has room for.
template <class Struct>
void store(Struct value, Struct* out) {
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, std::min<size_t>(out->struct_size, sizeof(Struct)));
}

template <class Struct>
void init(Struct* out) {
  if (out == nullptr) return;
  *out = {};
  out->struct_size = sizeof(Struct);
}

inline Status check_flags(const char* name, uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0) return {};
  return {Code::kInvalidArgument,
          std::string(name) + " has unknown bits " + std::to_string(flags & ~known)};
}

inline Status check_reserved(const char* name, int64_t value) {
  if (value == 0) return {};
  return {Code::kInvalidArgument,
          std::string(name) + ".reserved is " + std::to_string(value) + "; it must be 0"};
}

/// What was not set is ready. The value has been checked.
inline core::Order read_order(rrfp_order order) {
  return order == RRFP_ORDER_STRICT   ? core::Order::kStrict
         : order == RRFP_ORDER_PAIRED ? core::Order::kPaired
                                      : core::Order::kReady;
}

inline Status check_enum(const char* name, int32_t value, int32_t last) {
  if (value >= 0 && value <= last) return {};
  return {Code::kInvalidArgument, std::string(name) + " is " + std::to_string(value) +
                                      "; expected 0 to " + std::to_string(last)};
}

/// In pipeline.cpp. `ranks` sizes the caps; the per-rank arrays have as many entries.
Status read_pipeline_options(const rrfp_pipeline_options& o, int32_t ranks,
                             host::PipelineOptions& out);

/// In rank.cpp.
void write_step_report(int32_t rank, const host::StepReport& report, rrfp_step_report* out);

/// A checked and sorted copy of the caller's graph.
inline Status seal(const rrfp_graph* graph, std::shared_ptr<const core::StageGraph>& out) {
  if (graph == nullptr) return null_handle("graph");
  auto copy = std::make_shared<core::StageGraph>(graph->graph);
  if (Status s = copy->seal(); !s.ok()) return s;
  out = std::move(copy);
  return {};
}

/// Text out: as much as fits, always ended; the needed size.
inline Status put_text(std::string_view text, char* buffer, size_t capacity, size_t* out_size) {
  if (buffer == nullptr && capacity > 0) return null_argument("buffer");
  if (capacity > 0) {
    const size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
  }
  if (out_size != nullptr) *out_size = text.size() + 1;
  return {};
}

}  // namespace rrfp::capi
