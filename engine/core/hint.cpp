// SPDX-License-Identifier: Apache-2.0
#include "engine/core/hint.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/core/schedule_text.h"

namespace rrfp::core {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"gpipe", "1f1b", "bf", "bfw", "zb-h1"};

std::string pair_name(StageId s, MicrobatchId i) {
  return "stage " + std::to_string(s.value) + ", microbatch " + std::to_string(i.value);
}

Status check_ids(const Task& task) {
  if (task.stage.valid() && task.stage.value < StageGraph::kStagesMax && task.microbatch.valid() &&
      task.microbatch.value < StepTasks::kMicrobatchesMax) {
    return {};
  }
  return {Code::kOutOfRange, "task " + to_string(task) + " is out of range; stages go from 0 to " +
                                 std::to_string(StageGraph::kStagesMax - 1) +
                                 ", microbatches from 0 to " +
                                 std::to_string(StepTasks::kMicrobatchesMax - 1)};
}

/// Which of the kinds of one (stage, microbatch) have been seen.
struct Seen {
  bool kind[4] = {};

  [[nodiscard]] bool has(TaskKind k) const { return kind[static_cast<size_t>(k)]; }
  void add(TaskKind k) { kind[static_cast<size_t>(k)] = true; }
};

Status check_next(const Task& task, const Seen& seen) {
  const auto bad = [&](const std::string& why) {
    return Status{Code::kBadOrder, to_string(task) + " " + why};
  };
  const bool backward = seen.has(TaskKind::kBackward);
  const bool input_gradient = seen.has(TaskKind::kInputGradient);
  if (seen.has(task.kind)) return bad("is listed twice");
  switch (task.kind) {
    case TaskKind::kForward: return {};
    case TaskKind::kBackward:
    case TaskKind::kInputGradient:
      if (backward || input_gradient) {
        return bad("is listed beside the other form of the same backward; give B, or I and W");
      }
      if (!seen.has(TaskKind::kForward)) return bad("is listed before its forward");
      return {};
    case TaskKind::kWeightGradient:
      if (backward) return bad("is listed beside B; give B, or I and W");
      if (!input_gradient) return bad("is listed before its input gradient I");
      return {};
  }
  return {};
}

class Digest {
 public:
  void add(uint64_t value) {  // FNV-1a over the eight bytes
    for (int shift = 0; shift < 64; shift += 8) {
      value_ = (value_ ^ ((value >> shift) & 0xff)) * 0x100000001b3ULL;
    }
  }
  void add(const Task& task) {
    add(static_cast<uint64_t>(task.stage.value));
    add(static_cast<uint64_t>(task.microbatch.value));
    add(static_cast<uint64_t>(task.kind));
  }
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::span<const std::string_view> Hint::names() {
  return kNames;
}

Status Hint::named(std::string_view name, std::shared_ptr<const Hint>& out) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    std::string known;
    for (std::string_view n : kNames) known += (known.empty() ? "" : ", ") + std::string(n);
    return {Code::kUnknownName,
            "unknown hint \"" + std::string(name) + "\"; the known ones are " + known};
  }
  std::shared_ptr<Hint> hint(new Hint);
  hint->schedule_ = static_cast<Schedule>(found - kNames.begin());
  hint->compute_digest();
  out = std::move(hint);
  return {};
}

Status Hint::lists(std::vector<std::vector<Task>> per_rank, std::shared_ptr<const Hint>& out) {
  std::shared_ptr<Hint> hint(new Hint);
  hint->source_ = Source::kLists;
  hint->lists_ = std::move(per_rank);
  if (Status s = hint->check_lists(); !s.ok()) return s;
  for (size_t rank = 0; rank < hint->lists_.size(); ++rank) {
    for (const Task& task : hint->lists_[rank]) {
      auto& owner = hint->stage_rank_;
      if (owner.size() <= task.stage.index()) owner.resize(task.stage.index() + 1);
      owner[task.stage.index()] = RankId::of(rank);
    }
  }
  hint->compute_digest();
  out = std::move(hint);
  return {};
}

Status Hint::text(std::string_view text, std::shared_ptr<const Hint>& out) {
  std::vector<std::vector<Task>> per_rank;
  std::string note;
  if (Status s = parse_schedule_text(text, per_rank, note); !s.ok()) return s;
  std::shared_ptr<const Hint> hint;
  if (Status s = lists(std::move(per_rank), hint); !s.ok()) return s;
  std::shared_ptr<Hint> named(new Hint(*hint));
  named->source_ = Source::kText;
  named->note_ = std::move(note);
  out = std::move(named);
  return {};
}

Status Hint::priorities(std::vector<PrioritizedTask> tasks, std::shared_ptr<const Hint>& out) {
  std::shared_ptr<Hint> hint(new Hint);
  hint->source_ = Source::kPriorities;
  std::sort(tasks.begin(), tasks.end(),
            [](const PrioritizedTask& a, const PrioritizedTask& b) { return a.task < b.task; });
  std::map<std::pair<StageId, MicrobatchId>, Seen> seen;
  for (const PrioritizedTask& entry : tasks) {
    if (Status s = check_ids(entry.task); !s.ok()) return s;
    // Sorted by kind, so F, B, I, W of a pair come in an order that check_next accepts; a priority
    // says nothing about which comes first.
    Seen& pair = seen[{entry.task.stage, entry.task.microbatch}];
    if (Status s = check_next(entry.task, pair); !s.ok()) return s;
    pair.add(entry.task.kind);
  }
  hint->priorities_ = std::move(tasks);
  hint->compute_digest();
  out = std::move(hint);
  return {};
}

Status Hint::check_lists() const {
  std::map<StageId, size_t> home;
  for (size_t rank = 0; rank < lists_.size(); ++rank) {
    std::map<std::pair<StageId, MicrobatchId>, Seen> seen;
    for (const Task& task : lists_[rank]) {
      if (Status s = check_ids(task); !s.ok()) return s;
      const auto [at, first] = home.emplace(task.stage, rank);
      if (!first && at->second != rank) {
        return {Code::kBadOrder, to_string(task) + " stands in the list of rank " +
                                     std::to_string(rank) +
                                     ", but its stage is already in that of rank " +
                                     std::to_string(at->second) + "; a stage has one rank"};
      }
      Seen& pair = seen[{task.stage, task.microbatch}];
      if (Status s = check_next(task, pair); !s.ok()) {
        return {s.code(), "rank " + std::to_string(rank) + ": " + s.text()};
      }
      pair.add(task.kind);
    }
  }
  return {};
}

RankId Hint::rank_of(StageId stage) const {
  return stage.index() < stage_rank_.size() ? stage_rank_[stage.index()] : RankId();
}

std::string_view Hint::name() const {
  switch (source_) {
    case Source::kSchedule: return kNames[static_cast<size_t>(schedule_)];
    case Source::kLists: return "lists";
    case Source::kText: return "text";
    case Source::kPriorities: return "priorities";
  }
  return "?";
}

void Hint::compute_digest() {
  Digest digest;
  // A text is the list that it spells.
  digest.add(static_cast<uint64_t>(source_ == Source::kText ? Source::kLists : source_));
  if (source_ == Source::kSchedule) {
    digest.add(static_cast<uint64_t>(schedule_));
  }
  for (const auto& list : lists_) {
    digest.add(list.size());
    for (const Task& task : list) digest.add(task);
  }
  for (const PrioritizedTask& entry : priorities_) {
    digest.add(entry.task);
    digest.add(static_cast<uint64_t>(entry.priority));
  }
  digest_ = digest.value();
}

namespace {

/// Turns a list that may name too much into the order of the tasks that the step has, and checks
/// that it names enough.
class OrderBinder {
 public:
  OrderBinder(const StepTasks& tasks, RankId rank) : tasks_(tasks), rank_(rank) {
    const auto m = static_cast<size_t>(tasks.microbatches());
    slot_.assign(static_cast<size_t>(tasks.graph().stage_count()), kElsewhere);
    size_t count = 0;
    for (StageId s : tasks.graph().chunks(rank)) slot_[s.index()] = count++;
    seen_.assign(count * m, {});
  }

  Status add(const Task& task, std::vector<Task>& out) {
    if (Status s = tasks_.graph().check_stage(task.stage); !s.ok()) {
      return {s.code(), to_string(task) + ": " + s.text()};
    }
    if (task.microbatch.value >= tasks_.microbatches()) {
      return {Code::kOutOfRange, to_string(task) + ": the step has " +
                                     std::to_string(tasks_.microbatches()) +
                                     " microbatches, numbered from 0"};
    }
    if (slot_[task.stage.index()] == kElsewhere) {
      return {Code::kBadOrder, to_string(task) + " stands in the list of rank " +
                                   std::to_string(rank_.value) + ", but stage " +
                                   std::to_string(task.stage.value) + " is placed on rank " +
                                   std::to_string(tasks_.graph().stage(task.stage).rank.value)};
    }
    Seen& pair = seen_[cell(task.stage, task.microbatch)];
    pair.add(task.kind);
    const bool has_weight = tasks_.weight(task.stage, task.microbatch);
    switch (task.kind) {
      case TaskKind::kForward:
        if (tasks_.takes_part(task.stage, task.microbatch)) out.push_back(task);
        break;
      case TaskKind::kBackward:
      case TaskKind::kInputGradient:
        if (!tasks_.backward(task.stage, task.microbatch)) break;
        out.push_back(task);
        if (!has_weight) out.back().kind = TaskKind::kInputGradient;
        break;
      case TaskKind::kWeightGradient:
        if (has_weight) out.push_back(task);
        break;
    }
    return {};
  }

  [[nodiscard]] Status check_complete() const {
    for (StageId s : tasks_.graph().chunks(rank_)) {
      for (int32_t i = 0; i < tasks_.microbatches(); ++i) {
        const MicrobatchId mb(i);
        const Seen& pair = seen_[cell(s, mb)];
        if (tasks_.takes_part(s, mb) && !pair.has(TaskKind::kForward)) {
          return missing(s, mb, "forward");
        }
        if (!tasks_.backward(s, mb) || pair.has(TaskKind::kBackward)) continue;
        if (!pair.has(TaskKind::kInputGradient)) return missing(s, mb, "backward");
        if (tasks_.weight(s, mb) && !pair.has(TaskKind::kWeightGradient)) {
          return missing(s, mb, "weight gradient");
        }
      }
    }
    return {};
  }

 private:
  static constexpr size_t kElsewhere = SIZE_MAX;

  [[nodiscard]] size_t cell(StageId s, MicrobatchId i) const {
    return slot_[s.index()] * static_cast<size_t>(tasks_.microbatches()) + i.index();
  }
  [[nodiscard]] Status missing(StageId s, MicrobatchId i, const char* what) const {
    return {Code::kBadOrder, "rank " + std::to_string(rank_.value) + ": the hint names no " + what +
                                 " of " + pair_name(s, i)};
  }

  const StepTasks& tasks_;
  RankId rank_;
  std::vector<size_t> slot_;
  std::vector<Seen> seen_;
};

}  // namespace

Status Hint::order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) const {
  out.clear();
  if (source_ == Source::kSchedule) {
    out = schedule_order(schedule_, tasks, rank);
    return {};
  }
  OrderBinder binder(tasks, rank);
  if (source_ == Source::kPriorities) {
    std::vector<PrioritizedTask> mine;
    for (const PrioritizedTask& entry : priorities_) {
      if (Status s = tasks.graph().check_stage(entry.task.stage); !s.ok()) return s;
      if (tasks.graph().stage(entry.task.stage).rank == rank) mine.push_back(entry);
    }
    std::stable_sort(
        mine.begin(), mine.end(),
        [](const PrioritizedTask& a, const PrioritizedTask& b) { return a.priority < b.priority; });
    for (const PrioritizedTask& entry : mine) {
      if (Status s = binder.add(entry.task, out); !s.ok()) return s;
    }
    return binder.check_complete();
  }
  if (lists_.size() != static_cast<size_t>(tasks.graph().ranks())) {
    return {Code::kBadOrder, "the hint has lists for " + std::to_string(lists_.size()) +
                                 " ranks; the pipeline has " +
                                 std::to_string(tasks.graph().ranks())};
  }
  for (const Task& task : lists_[rank.index()]) {
    if (Status s = binder.add(task, out); !s.ok()) return s;
  }
  return binder.check_complete();
}

}  // namespace rrfp::core
