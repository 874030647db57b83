// SPDX-License-Identifier: Apache-2.0
//
// One step to be simulated: what the schedulers are told, and what will really happen.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/event.h"
#include "engine/core/plan.h"

namespace rrfp::sim {

/// How long tasks really take: by stage, microbatch and kind. B takes as long as I and W.
class Durations {
 public:
  Durations() = default;
  Durations(int32_t stages, int32_t microbatches)
      : microbatches_(static_cast<size_t>(microbatches)),
        ns_(3 * static_cast<size_t>(stages) * microbatches_, 0) {}

  /// Half of a B for I, half for W: what it is not told apart.
  void add(const core::Task& task, int64_t ns) {
    const size_t at = index(task);
    if (task.kind != core::TaskKind::kBackward) {
      ns_[at] = ns;
      return;
    }
    ns_[at] = ns / 2;
    ns_[at + 1] = ns - ns / 2;
  }
  /// F, I or W.
  [[nodiscard]] int64_t& at(const core::Task& task) { return ns_[index(task)]; }
  [[nodiscard]] int64_t ns(const core::Task& task) const {
    const size_t at = index(task);
    return task.kind == core::TaskKind::kBackward ? ns_[at] + ns_[at + 1] : ns_[at];
  }

 private:
  [[nodiscard]] size_t index(const core::Task& task) const {
    const size_t kind = task.kind == core::TaskKind::kForward          ? 0
                        : task.kind == core::TaskKind::kWeightGradient ? 2
                                                                       : 1;
    return 3 * (task.stage.index() * microbatches_ + task.microbatch.index()) + kind;
  }

  size_t microbatches_ = 0;
  std::vector<int64_t> ns_;
};

/// One FIFO per ordered pair of ranks: a message occupies it for `serialize_ns` x its factor, and
/// arrives `latency_ns` x its factor later. From time to time a link is slow.
struct Links {
  double serialize_ns = 0;
  double latency_ns = 0;
  /// Of one message; empty = 1.
  std::function<double(core::EdgeId, core::Direction, core::MicrobatchId)> factor;
  double episode_share = 0;
  double episode_ns = 0;
  double episode_factor = 1;
  uint64_t seed = 0;
};

/// A tensor-parallel group behind every rank: a message reaches its members at different times, and
/// a task starts when all have its inputs. The leader decides.
struct Group {
  enum class Readiness : uint8_t {
    kLeader,  // from what has reached the leader
    kAll,     // from what has reached all, which they report
  };

  int32_t size = 1;
  Readiness readiness = Readiness::kAll;
  double spread_ns = 50'000;  // a member has a message this much later, on average
  double spread_sigma = 0.5;
  double straggle_probability = 0;
  double straggle_ns = 0;
  int64_t report_ns = 50'000;  // a report to the leader and its decision back
};

/// What an imperfect runtime adds.
struct Runtime {
  int64_t dispatch_ns = 0;       // between the decision and the start of each task
  int64_t report_ns = 0;         // an arrival becomes known this much later
  double early_probability = 0;  // an arrival is reported before its time ...
  int64_t early_ns = 0;          // ... by up to so much; its task then has to wait for it
};

struct Faults {
  static constexpr int64_t kNever = INT64_MAX;

  int64_t lose_message = -1;  // the message with this number, in the order of sending
  int32_t failing_rank = -1;
  int64_t fail_at_ns = kNever;
  int64_t notice_ns = 1'000'000;  // a failure reaches the other ranks within this time
  int64_t watchdog_ns = int64_t{10} * 1'000'000'000;  // nothing has happened anywhere for this long
};

/// By rank.
using Plans = std::vector<std::shared_ptr<const core::RankPlan>>;

/// One plan for each rank. `caps`: by rank; empty = the default of each.
core::Status make_plans(const std::shared_ptr<const core::StepTasks>& tasks, const core::Hint& hint,
                        const core::Policy& policy, const std::vector<core::Cap>& caps, Plans& out);

struct Scenario {
  Plans plans;  // of one step
  Durations durations;
  Links links;
  Group group;
  Runtime runtime;
  Faults faults;
  uint64_t seed = 0;  // of what the above draw
};

/// Called as things happen, for traces and checks; all empty by default.
struct Observer {
  std::function<void(core::RankId, const core::Task&, int64_t ready_ns, int64_t begin_ns,
                     int64_t end_ns)>
      task;
  std::function<void(core::RankId, core::IdleReason, bool group, int64_t begin_ns, int64_t end_ns)>
      idle;
  std::function<void(core::EdgeId, core::Direction, core::MicrobatchId, int64_t sent_ns,
                     int64_t arrived_ns)>
      message;
};

struct RankOutcome {
  core::Amount peak;
  core::Amount cap;
  int64_t busy_ns = 0;
  int64_t end_ns = 0;                   // of its last task
  std::array<int64_t, 6> idle_ns = {};  // by IdleReason, until its last task
  int64_t group_ns = 0;                 // a task had been chosen but its inputs were not everywhere
  bool told_of_failure = false;
};

struct Outcome {
  bool complete = false;
  bool stalled = false;  // nothing moves any more though no fault was injected
  std::string error;     // the failure that reached the ranks, or why the scenario is impossible
  int64_t makespan_ns = 0;
  int64_t tasks = 0;
  int64_t messages = 0;
  int64_t offloads = 0;
  int64_t late_ranks = 0;  // strict until late: that gave up strict order
  std::vector<RankOutcome> ranks;

  /// Of the rank that held most.
  [[nodiscard]] int64_t peak_bytes() const;
};

/// Runs the step on a virtual clock, one RankCore per rank. The same scenario gives the same
/// outcome. Takes memory for the step's tasks and what is on its way; keeps no history.
[[nodiscard]] Outcome simulate(const Scenario& scenario, const Observer& observer = {});

}  // namespace rrfp::sim
