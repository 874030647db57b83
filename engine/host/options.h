// SPDX-License-Identifier: Apache-2.0
//
// What the creator of a pipeline chooses, and what a step is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/comm/inproc/mailbox.h"
#include "engine/comm/memory.h"
#include "engine/core/plan.h"

namespace rrfp::host {

/// Passed to the log callback. Values as in the C ABI.
enum LogLevel : int32_t { kInfo = 0, kWarning = 1, kError = 2 };

/// Emulated links, for experiments on one machine: when a message that is sent now arrives. Called
/// on the sender's thread; messages of one pair of ranks must keep their order.
struct LinkModel {
  int64_t (*arrival_ns)(void* user, core::EdgeId edge, core::Direction direction,
                        core::MicrobatchId microbatch, int64_t now_ns) = nullptr;
  void* user = nullptr;
};

struct PipelineOptions {
  static constexpr uint32_t kMailboxCapacityDefault = 1024;
  static constexpr uint32_t kMailboxCapacityMax = 1u << 20;
  static constexpr int32_t kTraceStepsMax = 1 << 16;
  static constexpr int64_t kWatchdogDefaultNs = int64_t{600} * 1'000'000'000;

  core::Policy policy;          // of a step whose caller has no own wishes
  std::vector<core::Cap> caps;  // by rank
  comm::WakePolicy wake = comm::WakePolicy::kYield;
  uint32_t mailbox_capacity = kMailboxCapacityDefault;
  /// The step fails when no task has finished anywhere for this long; 0 = never.
  int64_t watchdog_ns = kWatchdogDefaultNs;
  /// Steps whose timeline is kept; 0 = none is recorded.
  int32_t trace_steps = 0;
  LinkModel links;
  /// Called on the thread that called in, without locks held.
  void (*log)(void* user, int32_t level, const char* text) = nullptr;
  void* log_user = nullptr;
};

/// What a forward message of an edge must look like; checked when it is put.
struct TensorSpec {
  static constexpr int64_t kAnyExtent = -1;

  comm::DType dtype = comm::DType::kNone;
  std::vector<int64_t> shape;  // kAnyExtent where the extent may vary
  bool wants_gradient = false;
};

/// By edge; an empty list = not checked.
using EdgeSpecs = std::vector<std::vector<TensorSpec>>;

struct StepRequest {
  int64_t step = 0;
  core::StepShape shape;
  std::shared_ptr<const core::Hint> hint;
  core::Policy policy;
  /// How the timeline shows this step.
  struct Trace {
    bool record = true;
    bool joins = false;  // kept as one with the step before
    int64_t step = -1;   // < 0: as `step` above
    const int32_t* microbatches =
        nullptr;  // their numbers there, valid during the step; null: as is
  };
  Trace trace;
};

/// How one rank spent a step. Times in nanoseconds; they add up to `total_ns`.
struct StepReport {
  int64_t step = 0;
  int64_t total_ns = 0;        // from begin_step to the last task's end
  int64_t busy_ns = 0;         // a task was in the caller's hands
  int64_t wait_input_ns = 0;   // nothing was ready
  int64_t wait_memory_ns = 0;  // a forward was ready but the cap did not admit it
  int64_t wait_credit_ns = 0;  // a forward was ready but its consumer was too far behind
  int64_t wait_policy_ns = 0;  // a task was ready but strict order or a hold forbade it
  int64_t other_ns = 0;        // the engine itself, and the caller between its calls
  int64_t tasks = 0;
  int64_t messages_sent = 0;
  core::Amount peak;             // of activations
  size_t tensor_bytes_peak = 0;  // of memory made by this rank
  size_t tensor_bytes_live = 0;  // of it, still referred to at the end
};

}  // namespace rrfp::host
