// SPDX-License-Identifier: Apache-2.0
//
// A hint ranks the tasks of a rank: a total order, used either to choose among what is ready or,
// in strict mode, as the order itself. A hint may be a named schedule, an explicit list of tasks
// per rank, or a priority per task.
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
  // For any graph and any number of microbatches.
  kGpipe,
  k1F1B,
  kBackwardFirst,               // "bf"
  kInputGradientForwardWeight,  // "bfw"
  kZeroBubbleH1,                // "zb-h1"
  kZeroBubbleH2,                // "zb-h2"
  // Chains with stage k on rank k mod ranks.
  kInterleaved,            // "interleaved", "interleaved:<group size>"
  kLoopedBfs,              // "looped-bfs"
  kInterleavedZeroBubble,  // "interleaved-zb", "interleaved-zb:<group size>"
  // Chains of two stages a rank, in the shape of a V.
  kZeroBubbleV,  // "zb-v"
  kVHalf,        // "v-half"
  kVMin,         // "v-min"
  kDualPipe,     // "dualpipe": two chains in opposite directions instead
  kDualPipeV,    // "dualpipe-v"
};

struct PrioritizedTask {
  Task task;
  int64_t priority = 0;  // smaller = earlier
};

struct NamedPolicy;  // named_policies.h

class Hint {
 public:
  enum class Source : uint8_t { kSchedule, kLists, kText, kPriorities };

  /// The named schedules, as they are written in options and reports.
  [[nodiscard]] static std::span<const std::string_view> names();
  /// Those of them that order any graph and any number of microbatches; the others refuse a step
  /// that does not have the shape they were published for.
  [[nodiscard]] static std::span<const std::string_view> general_names();
  /// One of names() or of named_policies(); "interleaved" and "interleaved-zb" may be followed by
  /// ":<group size>".
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

  /// How this hint wants to be used, if it was made for that; null for all but named policies.
  [[nodiscard]] const NamedPolicy* policy() const { return policy_; }

  /// The lists as they were given, by rank; empty for hints without.
  [[nodiscard]] std::span<const std::vector<Task>> per_rank() const { return lists_; }

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
  const NamedPolicy* policy_ = nullptr;
  int32_t group_ = 0;  // microbatches; 0 = what the schedule takes by default
  std::string name_;
  std::vector<std::vector<Task>> lists_;
  std::vector<PrioritizedTask> priorities_;  // sorted by task
  std::vector<RankId> stage_rank_;           // lists: by stage
  std::string note_;
  uint64_t digest_ = 0;
};

[[nodiscard]] std::string_view schedule_name(Schedule schedule);

/// The order that a named schedule gives to a rank (named_schedules.cpp). `group` is the group size
/// of the interleaved schedules, 0 for their default. An error names the schedule, what it needs
/// and what the step has; whether there is one does not depend on the rank.
Status schedule_order(Schedule schedule, const StepTasks& tasks, RankId rank,
                      std::vector<Task>& out, int32_t group = 0);

}  // namespace rrfp::core
