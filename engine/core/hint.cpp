// SPDX-License-Identifier: Apache-2.0
#include "engine/core/hint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "engine/core/named_policies.h"
#include "engine/core/order_binder.h"
#include "engine/core/schedule_text.h"

namespace rrfp::core {
namespace {

// In the order of Schedule. The first kGeneral of them work on any graph.
constexpr std::array<std::string_view, 14> kNames = {
    "gpipe",      "1f1b",           "bf",   "bfw",    "zb-h1", "zb-h2",    "interleaved",
    "looped-bfs", "interleaved-zb", "zb-v", "v-half", "v-min", "dualpipe", "dualpipe-v"};
constexpr size_t kGeneral = 6;
static_assert(static_cast<size_t>(Schedule::kZeroBubbleH2) + 1 == kGeneral);
static_assert(static_cast<size_t>(Schedule::kDualPipeV) + 1 == kNames.size());

bool takes_group(Schedule schedule) {
  return schedule == Schedule::kInterleaved || schedule == Schedule::kInterleavedZeroBubble;
}

/// A number of microbatches as it stands after "interleaved:". One spelling for each number, since
/// the name is also what ranks compare and reports show.
bool read_group(std::string_view text, int32_t& out) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '0' ||
      value < 1 || value > StepTasks::kMicrobatchesMax) {
    return false;
  }
  out = value;
  return true;
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

std::span<const std::string_view> Hint::general_names() {
  return std::span(kNames).first(kGeneral);
}

std::string_view schedule_name(Schedule schedule) {
  return kNames[static_cast<size_t>(schedule)];
}

Status Hint::named(std::string_view name, std::shared_ptr<const Hint>& out) {
  const NamedPolicy* policy = find_policy(name);
  const std::string_view schedule = policy != nullptr ? policy->hint : name;
  const size_t colon = schedule.find(':');
  const auto found = std::find(kNames.begin(), kNames.end(), schedule.substr(0, colon));
  if (found == kNames.end()) {
    std::string known;
    for (std::string_view n : kNames) known += (known.empty() ? "" : ", ") + std::string(n);
    for (const NamedPolicy& p : named_policies()) known += ", " + std::string(p.name);
    return {Code::kUnknownName,
            "unknown hint \"" + std::string(name) + "\"; the known ones are " + known};
  }
  std::shared_ptr<Hint> hint(new Hint);
  hint->schedule_ = static_cast<Schedule>(found - kNames.begin());
  hint->name_ = name;
  hint->policy_ = policy;
  if (colon != std::string_view::npos) {
    const std::string_view group = schedule.substr(colon + 1);
    if (!takes_group(hint->schedule_)) {
      return {Code::kUnknownName, "the hint \"" + std::string(name) +
                                      "\" has a group size after the colon; only interleaved and "
                                      "interleaved-zb take one"};
    }
    if (!read_group(group, hint->group_)) {
      return {Code::kUnknownName, "the group size of the hint \"" + std::string(name) + "\" is \"" +
                                      std::string(group) + "\"; expected a number from 1 to " +
                                      std::to_string(StepTasks::kMicrobatchesMax)};
    }
  }
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
    case Source::kSchedule: return name_;
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
    digest.add(static_cast<uint64_t>(group_));
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

Status Hint::order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) const {
  out.clear();
  if (source_ == Source::kSchedule) {
    return schedule_order(schedule_, tasks, rank, out, group_);
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
