// SPDX-License-Identifier: Apache-2.0
#include "capi/src/guard.h"
#include "engine/trace/trace_events.h"
#include "engine/train/atomic_folder.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int64_t kWatchdogMsMax = int64_t{1000} * 3600 * 24 * 365;

Status not_negative(const char* name, int64_t value) {
  if (value >= 0) return {};
  return {Code::kInvalidArgument,
          std::string(name) + " is " + std::to_string(value) + "; it must not be negative"};
}

/// The cap of each rank: its own entry, else the common one.
Status read_caps(const char* name, int64_t common, const int64_t* by_rank,
                 int64_t core::Cap::*field, std::vector<core::Cap>& caps) {
  if (Status s = not_negative(name, common); !s.ok()) return s;
  for (size_t r = 0; r < caps.size(); ++r) {
    const int64_t own = by_rank != nullptr ? by_rank[r] : 0;
    const std::string entry = "rank_" + std::string(name) + "[" + std::to_string(r) + "]";
    if (Status s = not_negative(entry.c_str(), own); !s.ok()) return s;
    caps[r].*field = own > 0 ? own : common;
    if (caps[r].*field > core::Ledger::kUnlimited) {
      return {Code::kInvalidArgument, std::string(name) + " of rank " + std::to_string(r) + " is " +
                                          std::to_string(caps[r].*field) + "; give 0 for no limit"};
    }
  }
  return {};
}

}  // namespace

Status capi::read_pipeline_options(const rrfp_pipeline_options& o, int32_t ranks,
                                   host::PipelineOptions& out) {
  if (Status s =
          check_flags("rrfp_pipeline_options.flags", o.flags, RRFP_PIPELINE_NONDETERMINISTIC);
      !s.ok()) {
    return s;
  }
  if (Status s = check_enum("order", o.order, RRFP_ORDER_PAIRED); !s.ok()) return s;
  if (Status s = check_enum("wake", o.wake, RRFP_WAKE_PARK); !s.ok()) return s;
  if (Status s = not_negative("credits", o.credits); !s.ok()) return s;
  constexpr int32_t kHoldPermilleMax = 10000;
  if (o.hold_permille < 0 || o.hold_permille > kHoldPermilleMax) {
    return {Code::kInvalidArgument, "hold_permille is " + std::to_string(o.hold_permille) +
                                        "; expected 0 to " + std::to_string(kHoldPermilleMax)};
  }
  if (o.mailbox_capacity > host::PipelineOptions::kMailboxCapacityMax) {
    return {Code::kInvalidArgument,
            "mailbox_capacity is " + std::to_string(o.mailbox_capacity) + "; at most " +
                std::to_string(host::PipelineOptions::kMailboxCapacityMax) + " is possible"};
  }
  if (o.watchdog_ms < -1 || o.watchdog_ms > kWatchdogMsMax) {
    return {Code::kInvalidArgument, "watchdog_ms is " + std::to_string(o.watchdog_ms) +
                                        "; expected -1 (never), 0 (default) or up to " +
                                        std::to_string(kWatchdogMsMax)};
  }
  if (o.trace_steps < 0 || o.trace_steps > host::PipelineOptions::kTraceStepsMax) {
    return {Code::kInvalidArgument, "trace_steps is " + std::to_string(o.trace_steps) +
                                        "; expected 0 to " +
                                        std::to_string(host::PipelineOptions::kTraceStepsMax)};
  }
  out.trace_steps = o.trace_steps;
  out.policy.order = read_order(o.order);
  out.policy.deterministic = (o.flags & RRFP_PIPELINE_NONDETERMINISTIC) == 0;
  out.policy.credits = o.credits;
  out.policy.hold_permille = o.hold_permille;
  out.wake = static_cast<comm::WakePolicy>(o.wake);
  if (o.mailbox_capacity > 0) out.mailbox_capacity = o.mailbox_capacity;
  if (o.watchdog_ms != 0) out.watchdog_ns = o.watchdog_ms < 0 ? 0 : o.watchdog_ms * 1'000'000;
  static_assert(RRFP_LOG_ERROR == host::kError);
  out.log = o.log;
  out.log_user = o.log_user_data;
  out.caps.resize(static_cast<size_t>(ranks));
  if (Status s = read_caps("cap_slots", o.cap_slots, o.rank_cap_slots, &core::Cap::slots, out.caps);
      !s.ok()) {
    return s;
  }
  return read_caps("cap_bytes", o.cap_bytes, o.rank_cap_bytes, &core::Cap::bytes, out.caps);
}

void rrfp_pipeline_options_init(rrfp_pipeline_options* options) {
  init(options);
}

rrfp_status rrfp_pipeline_create(const rrfp_graph* graph, const rrfp_pipeline_options* options,
                                 rrfp_pipeline** out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (graph == nullptr) return null_handle("graph");
    if (out == nullptr) return null_argument("out");
    rrfp_pipeline_options o = {};
    rrfp_pipeline_options_init(&o);
    if (options != nullptr) {
      if (Status s = load(options, "rrfp_pipeline_options", o); !s.ok()) return s;
    }
    std::shared_ptr<const core::StageGraph> sealed;
    if (Status s = seal(graph, sealed); !s.ok()) return s;
    host::PipelineOptions read;
    if (Status s = read_pipeline_options(o, graph->graph.ranks(), read); !s.ok()) return s;
    auto handle = std::make_unique<rrfp_pipeline>();
    Status s =
        host::Pipeline::create(std::move(sealed), graph->specs, std::move(read), handle->pipeline);
    if (!s.ok()) return s;
    *out = handle.release();
    return {};
  });
}

void rrfp_pipeline_destroy(rrfp_pipeline* pipeline) {
  if (!usable(pipeline)) return;
  (void)guard(nullptr, [&]() -> Status {
    delete pipeline;
    return {};
  });
}

rrfp_status rrfp_pipeline_cancel(rrfp_pipeline* pipeline, const char* reason, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(pipeline)) return unusable(pipeline, "pipeline");
    pipeline->pipeline->cancel(reason != nullptr ? reason : "no reason given");
    return {};
  });
}

rrfp_status rrfp_pipeline_reset(rrfp_pipeline* pipeline, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(pipeline)) return unusable(pipeline, "pipeline");
    return pipeline->pipeline->reset();
  });
}

rrfp_status rrfp_pipeline_write_trace(rrfp_pipeline* pipeline, const char* path,
                                      rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(pipeline)) return unusable(pipeline, "pipeline");
    if (path == nullptr) return null_argument("path");
    trace::Timeline timeline;
    if (Status s = pipeline->pipeline->timeline(timeline); !s.ok()) return s;
    return train::replace_file(path, trace::to_trace_events(timeline));
  });
}

rrfp_status rrfp_pipeline_report(rrfp_pipeline* pipeline, char* buffer, size_t capacity,
                                 size_t* out_size, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(pipeline)) return unusable(pipeline, "pipeline");
    return put_text(pipeline->pipeline->report(), buffer, capacity, out_size);
  });
}
