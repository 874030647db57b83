// SPDX-License-Identifier: Apache-2.0
//
// Runs one step of a whole pipeline on a virtual clock: one RankCore per rank, tasks and messages
// that take as long as the caller says. Everything that the cores do is checked by an Oracle, which
// keeps its own books. Nothing here is random; the same setup gives the same run.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/event.h"
#include "engine/core/plan.h"

namespace rrfp::test {

/// How long things take, in virtual nanoseconds; an empty function stands for 0. Messages, credits
/// and announcements may overtake one another.
struct Timing {
  using MessageNs =
      std::function<int64_t(core::EdgeId, core::Direction, core::MicrobatchId microbatch)>;

  std::function<int64_t(const core::Task&)> task_ns;
  MessageNs message_ns;
  std::function<int64_t(core::EdgeId, int64_t serial)> credit_ns;
  MessageNs announce_ns;

  /// The same for all stages; B takes as long as I and W together. Messages take no time.
  [[nodiscard]] static Timing steady(int64_t forward_ns, int64_t input_gradient_ns,
                                     int64_t weight_gradient_ns);
};

struct VirtualPipeline {
  std::shared_ptr<const core::StepTasks> tasks;
  std::shared_ptr<const core::Hint> hint;
  core::Policy policy;
  std::vector<core::Cap> caps;  // by rank; empty = the default of every rank
  Timing timing;
  /// false: all that happens at one instant happens before any rank is asked for a task.
  /// true: a rank is asked right after each thing that happens to it.
  bool pull_at_once = false;
};

struct TaskSpan {
  core::Task task;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct RankRecord {
  std::vector<TaskSpan> spans;  // in the order in which they ran
  core::Amount peak;
  std::array<int64_t, 6> idle_pulls = {};  // by IdleReason
  int64_t holds = 0;                       // times that a ready task was held back

  [[nodiscard]] int64_t idle(core::IdleReason reason) const {
    return idle_pulls[static_cast<size_t>(reason)];
  }
};

struct VirtualResult {
  bool ok = false;
  bool stalled = false;  // nothing moves any more, but work remains
  core::Code code = core::Code::kOk;
  std::string error;  // the first thing that was wrong
  std::vector<RankRecord> ranks;
  int64_t makespan_ns = 0;
  int64_t tasks_run = 0;
  int64_t overtakings = 0;  // messages that arrived before one sent earlier on the same edge
};

[[nodiscard]] VirtualResult run_virtual(const VirtualPipeline& setup);

}  // namespace rrfp::test
