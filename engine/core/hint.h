// SPDX-License-Identifier: Apache-2.0
//
// A hint ranks the tasks of a rank: a total order, used either to choose among what is ready or,
// in strict mode, as the order itself. A hint may be a named schedule (for any graph and any number
// of microbatches), an explicit list of tasks per rank, or a priority per task.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/graph.h"
#include "engine/core/step_tasks.h"

namespace rrfp::core {

enum class Schedule : uint8_t {
  kGpipe,
  k1F1B,
  kBackwardFirst,               // "bf"
  kInputGradientForwardWeight,  // "bfw"
  kZeroBubbleH1,                // "zb-h1"
};

struct PrioritizedTask {
  Task task;
  int64_t priority = 0;  // smaller = earlier
};

class Hint {
 public:
  enum class Source : uint8_t { kSchedule, kLists, kText, kPriorities };

  /// The named schedules, as they are written in options and reports.
  [[nodiscard]] static std::span<const std::string_view> names();
  static Status named(std::string_view name, std::shared_ptr<const Hint>& out);
  /// One list per rank. Checks what can be checked without a graph: each stage in one list only, no
  /// task twice, B or I after F, W after I, not both B and I of one microbatch.
  static Status lists(std::vector<std::vector<Task>> per_rank, std::shared_ptr<const Hint>& out);
  static Status priorities(std::vector<PrioritizedTask> tasks, std::shared_ptr<const Hint>& out);
  /// Schedule text (schedule_text.h).
  static Status text(std::string_view text, std::shared_ptr<const Hint>& out);

  /// The order of the tasks that `rank` has in this step. Each pair (stage, microbatch) with a
  /// backward pass stands there either as B or as I and W; without a W half it stands as I. Entries
  /// for tasks that this step does not have (skipped, frozen, forward-only) are left out; a task of
  /// the step that the hint does not name is an error.
  Status order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) const;

  /// The rank whose list names the stage; lists and text only, invalid id otherwise.
  [[nodiscard]] RankId rank_of(StageId stage) const;

  [[nodiscard]] Source source() const { return source_; }
  /// A name for reports: that of the schedule, or "lists", "text", "priorities".
  [[nodiscard]] std::string_view name() const;
  /// Equal hints have equal digests; used to check that ranks agree.
  [[nodiscard]] uint64_t digest() const { return digest_; }
  /// What the reader of a schedule text had to assume; empty if nothing.
  [[nodiscard]] const std::string& note() const { return note_; }

 private:
  Hint() = default;
  [[nodiscard]] Status check_lists() const;
  void compute_digest();

  Source source_ = Source::kSchedule;
  Schedule schedule_ = Schedule::kGpipe;
  std::vector<std::vector<Task>> lists_;
  std::vector<PrioritizedTask> priorities_;  // sorted by task
  std::vector<RankId> stage_rank_;           // lists: by stage
  std::string note_;
  uint64_t digest_ = 0;
};

/// The order that a named schedule gives to a rank (named_schedules.cpp).
[[nodiscard]] std::vector<Task> schedule_order(Schedule schedule, const StepTasks& tasks,
                                               RankId rank);

}  // namespace rrfp::core
