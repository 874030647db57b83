// SPDX-License-Identifier: Apache-2.0
//
// What each rank did in the last steps, when, and why it did nothing in between. Recording writes
// to memory that is there already; it needs nothing but the ids, so that whatever runs a pipeline,
// in real or in virtual time, can record. A file or a picture is made only when asked for.
//
// All times are nanoseconds of one clock, which all ranks share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/event.h"
#include "engine/core/ids.h"

namespace rrfp::trace {

/// The first four are core::TaskKind.
enum class SpanKind : uint8_t { kForward, kBackward, kInputGradient, kWeightGradient, kUpdate };
constexpr size_t kSpanKinds = 5;

/// Why a rank did nothing. What is neither a task nor one of these is the engine's overhead; it is
/// derived, never recorded.
enum class IdleKind : uint8_t {
  kInput,     // nothing was ready: inputs were missing
  kMemory,    // a forward was ready, but there was no memory for it
  kCredit,    // a forward was ready, but its consumer was too far behind
  kPolicy,    // a task was ready, but the order or a hold forbade it
  kGroup,     // waited for the other ranks: a barrier, a reduction
  kComplete,  // the rank's part of the step was done
};
constexpr size_t kIdleKinds = 6;

[[nodiscard]] constexpr SpanKind span_kind(core::TaskKind kind) {
  return static_cast<SpanKind>(kind);
}
/// A rank that hears of a failure only waits for the others to end the step.
[[nodiscard]] constexpr IdleKind idle_kind(core::IdleReason reason) {
  if (reason == core::IdleReason::kInput) return IdleKind::kInput;
  if (reason == core::IdleReason::kMemory) return IdleKind::kMemory;
  if (reason == core::IdleReason::kCredit) return IdleKind::kCredit;
  if (reason == core::IdleReason::kPolicy) return IdleKind::kPolicy;
  if (reason == core::IdleReason::kComplete) return IdleKind::kComplete;
  return IdleKind::kGroup;
}

constexpr int64_t kUnknownTime = -1;

struct TaskSpan {
  SpanKind kind = SpanKind::kForward;
  core::StageId stage;            // invalid for kUpdate
  core::MicrobatchId microbatch;  // in the step; invalid for kUpdate
  int64_t step = 0;
  // When all that it needs was there, as far as the rank knew: a rank looks for messages between
  // its tasks, so what came during one is noticed at its end.
  int64_t ready_ns = kUnknownTime;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  friend bool operator==(const TaskSpan&, const TaskSpan&) = default;
};

struct IdleSpan {
  IdleKind reason = IdleKind::kInput;
  int64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  friend bool operator==(const IdleSpan&, const IdleSpan&) = default;
};

/// Kept by the rank that receives it.
struct Message {
  core::Direction direction = core::Direction::kForward;
  core::StageId from_stage;
  core::StageId to_stage;
  core::MicrobatchId microbatch;
  core::RankId from_rank;
  core::RankId to_rank;
  int64_t step = 0;
  int64_t sent_ns = kUnknownTime;
  int64_t arrived_ns = 0;

  friend bool operator==(const Message&, const Message&) = default;
};

/// Of one rank. Times may be in any order here; tasks and idle intervals do not overlap.
struct RankSpans {
  std::vector<TaskSpan> tasks;
  std::vector<IdleSpan> idles;
  std::vector<Message> messages;

  void clear() {
    tasks.clear();
    idles.clear();
    messages.clear();
  }
  void append(const RankSpans& from) {
    tasks.insert(tasks.end(), from.tasks.begin(), from.tasks.end());
    idles.insert(idles.end(), from.idles.begin(), from.idles.end());
    messages.insert(messages.end(), from.messages.begin(), from.messages.end());
  }
  friend bool operator==(const RankSpans&, const RankSpans&) = default;
};

/// Records one rank, the oldest steps dropped. One thread at a time.
class RankTimeline {
 public:
  explicit RankTimeline(int32_t steps_max) : steps_(static_cast<size_t>(steps_max)) {}

  [[nodiscard]] bool enabled() const { return !steps_.empty(); }
  void begin_step() {
    if (!enabled()) return;
    current_ = (current_ + 1) % steps_.size();
    steps_[current_].clear();
  }
  /// Makes room for so many more in the step that was begun last.
  void reserve(size_t tasks, size_t idles, size_t messages) {
    if (!enabled()) return;
    RankSpans& step = steps_[current_];
    step.tasks.reserve(step.tasks.size() + tasks);
    step.idles.reserve(step.idles.size() + idles);
    step.messages.reserve(step.messages.size() + messages);
  }
  void add_task(const TaskSpan& span) {
    if (enabled()) steps_[current_].tasks.push_back(span);
  }
  void add_idle(const IdleSpan& span) {
    if (enabled()) steps_[current_].idles.push_back(span);
  }
  void add_message(const Message& message) {
    if (enabled()) steps_[current_].messages.push_back(message);
  }
  /// All that is kept, oldest step first.
  [[nodiscard]] RankSpans spans() const {
    RankSpans all;
    for (size_t k = 1; k <= steps_.size(); ++k) {
      all.append(steps_[(current_ + k) % steps_.size()]);
    }
    return all;
  }

 private:
  std::vector<RankSpans> steps_;  // a ring; its vectors keep their memory
  size_t current_ = 0;
};

/// What a stage is in the words of its model.
struct StageName {
  std::string name;    // such as "layers.0 .. layers.3"
  std::string branch;  // of a model with branches, or its only one; empty: of none

  friend bool operator==(const StageName&, const StageName&) = default;
};

/// What is written, read and drawn.
struct Timeline {
  std::string title;                                       // what ran
  std::string source;                                      // "run" or "simulation"
  std::vector<std::pair<std::string, std::string>> facts;  // name and value, such as a hint's
  std::vector<StageName> stages;  // by number, or none; a stage past the end has no name
  std::vector<RankSpans> ranks;

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// What some of the tasks took.
struct TaskTotals {
  std::array<int64_t, kSpanKinds> task_ns{};
  int64_t computing_ns = 0;  // the sum of task_ns
  size_t tasks = 0;

  void add(const TaskSpan& span) {
    task_ns[static_cast<size_t>(span.kind)] += span.end_ns - span.begin_ns;
    computing_ns += span.end_ns - span.begin_ns;
    ++tasks;
  }
};

/// How the time of one rank went, from the first begin to the last end of all ranks.
struct RankTotals : TaskTotals {
  std::array<int64_t, kIdleKinds> idle_ns{};
  int64_t engine_ns = 0;  // the rest
};

constexpr int32_t kNoBranch = -1;

struct StageTotals : TaskTotals {
  int32_t branch = kNoBranch;  // an index
};

struct BranchTotals : TaskTotals {
  std::string name;
  double share = 0;  // of what all ranks computed, updates too; 0 if that is nothing
};

struct Totals {
  std::vector<RankTotals> ranks;
  std::vector<StageTotals> stages;     // those with names
  std::vector<BranchTotals> branches;  // by the first stage of each
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  /// Of the time of all ranks, what was not spent in tasks; 0 if there is no time at all.
  double idle_share = 0;

  [[nodiscard]] int64_t makespan_ns() const { return end_ns - begin_ns; }
  /// Whether there are branches to tell apart.
  [[nodiscard]] bool branched() const { return branches.size() > 1; }
  [[nodiscard]] int32_t branch_of(core::StageId stage) const {
    return stage.valid() && stage.index() < stages.size() ? stages[stage.index()].branch
                                                          : kNoBranch;
  }
};

[[nodiscard]] Totals summarize(const Timeline& timeline);

/// Words for people and for files: "forward", "weight gradient", "update".
[[nodiscard]] const char* name_of(SpanKind kind);
/// One word for files: "input", "memory", "credit", "policy", "group", "complete".
[[nodiscard]] const char* name_of(IdleKind kind);
/// Words for people: "nothing ready", "held by memory".
[[nodiscard]] const char* text_of(IdleKind kind);
constexpr const char* kEngineText = "engine overhead";
/// A short sign for a branch where its name does not fit: "A" to "Z" for the first ones, then "+".
constexpr int32_t kBranchLetters = 26;
[[nodiscard]] char letter_of(int32_t branch);
/// "3F4": stage 3, forward, microbatch 4; or "update".
[[nodiscard]] std::string task_name(const TaskSpan& span);

}  // namespace rrfp::trace
