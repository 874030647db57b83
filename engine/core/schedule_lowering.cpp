// SPDX-License-Identifier: Apache-2.0
//
// The passes are those of torch.distributed.pipelining (schedules.py: _add_unshard_reshard,
// _add_reduce_grad, _add_send_recv), in that order.
#include "engine/core/schedule_lowering.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/core/schedule_text.h"

namespace rrfp::core {
namespace {

using Actions = std::vector<Action>;

/// Stages whose parameters a rank holds at a time.
constexpr size_t kResidentMax = 3;

/// Keeps the next few stages of the rank's order unsharded. Those that go do so in ascending order;
/// PyTorch takes the order of a Python set, which is the same for small numbers.
Actions add_sharding(const std::vector<Task>& tasks) {
  std::map<StageId, std::vector<size_t>> uses;  // positions, the next one last
  for (size_t k = tasks.size(); k-- > 0;) uses[tasks[k].stage].push_back(k);
  std::set<std::pair<size_t, StageId>> next;  // position of the next use
  for (const auto& [stage, positions] : uses) next.emplace(positions.back(), stage);
  std::set<StageId> resident;
  Actions out;
  for (const Task& task : tasks) {
    std::vector<StageId> soon;
    for (const auto& [position, stage] : next) {
      if (soon.size() == kResidentMax) break;
      soon.push_back(stage);
    }
    for (auto at = resident.begin(); at != resident.end();) {
      if (std::find(soon.begin(), soon.end(), *at) != soon.end()) {
        ++at;
        continue;
      }
      out.emplace_back(ActionType::kReshard, *at);
      at = resident.erase(at);
    }
    for (StageId stage : soon) {
      if (resident.insert(stage).second) out.emplace_back(ActionType::kUnshard, stage);
    }
    out.emplace_back(task);
    std::vector<size_t>& left = uses[task.stage];
    next.erase({left.back(), task.stage});
    left.pop_back();
    if (!left.empty()) next.emplace(left.back(), task.stage);
  }
  for (StageId stage : resident) out.emplace_back(ActionType::kReshard, stage);
  return out;
}

bool ends_weight_gradient(const Action& action) {
  return action.computes() &&
         (action.kind == TaskKind::kBackward || action.kind == TaskKind::kWeightGradient);
}

Actions add_reductions(const Actions& actions) {
  std::map<StageId, size_t> left;  // weight gradients that are still to come
  for (const Action& action : actions) left[action.stage] += ends_weight_gradient(action) ? 1 : 0;
  Actions out;
  for (const Action& action : actions) {
    out.push_back(action);
    if (ends_weight_gradient(action) && --left[action.stage] == 0) {
      out.emplace_back(ActionType::kReduceGradient, action.stage);
    }
  }
  return out;
}

/// Sweeps over the ranks; each takes its next action if what it needs has been placed. A receive is
/// placed by the rank that sends, so both sides see the messages between them in the same order.
class Messages {
 public:
  explicit Messages(std::vector<Actions> rows) : rows_(std::move(rows)) {}

  Status add(std::vector<Actions>& out) {
    if (Status s = index(); !s.ok()) return s;
    std::vector<size_t> next(rows_.size(), 0);
    out_.assign(rows_.size(), {});
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t row = 0; row < rows_.size(); ++row) {
        if (next[row] == rows_[row].size()) continue;
        const Action& action = rows_[row][next[row]];
        if (missing(action)) continue;
        place(action, row);
        ++next[row];
        moved = true;
      }
    }
    std::string stall;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (next[row] == rows_[row].size()) continue;
      const Action& action = rows_[row][next[row]];
      const std::optional<Task> need = missing(action);
      stall += (stall.empty() ? "" : "; ") + ("rank " + std::to_string(row)) + " at " +
               to_string(action) + (need ? " needs " + to_string(*need) : "");
    }
    if (!stall.empty()) return {Code::kBadOrder, "no rank can advance: " + stall};
    out = std::move(out_);
    return {};
  }

 private:
  Status index() {
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (const Action& action : rows_[row]) {
        const auto [home, first] = home_.emplace(action.stage, row);
        if (!first && home->second != row) {
          return {Code::kBadOrder, to_string(action) + " stands in row " + std::to_string(row + 1) +
                                       ", but its stage is already in row " +
                                       std::to_string(home->second + 1) + "; a stage has one rank"};
        }
        if (action.computes()) tasks_.insert(action.task());
      }
    }
    return {};
  }

  /// F: the same microbatch one stage earlier; B and I: one stage later. Nothing if the schedule
  /// has no such task.
  [[nodiscard]] std::optional<Task> neighbour(const Action& action, int32_t step) const {
    const int64_t stage = int64_t{action.stage.value} + step;
    if (stage < 0 || stage > INT32_MAX) return std::nullopt;
    const auto find = [&](TaskKind kind) {
      const Task task = {StageId::of(stage), action.microbatch, kind};
      return tasks_.contains(task) ? std::optional(task) : std::nullopt;
    };
    if (action.kind == TaskKind::kForward) return find(TaskKind::kForward);
    const std::optional<Task> whole = find(TaskKind::kBackward);
    return whole ? whole : find(TaskKind::kInputGradient);
  }
  [[nodiscard]] static bool talks(const Action& action) {
    return action.computes() && action.kind != TaskKind::kWeightGradient;
  }
  [[nodiscard]] static int32_t along(const Action& action) {
    return action.kind == TaskKind::kForward ? 1 : -1;
  }

  /// What has to be placed before the action and is not.
  [[nodiscard]] std::optional<Task> missing(const Action& action) const {
    if (!talks(action)) return std::nullopt;
    const std::optional<Task> need = neighbour(action, -along(action));
    return need && !placed_.contains(*need) ? need : std::nullopt;
  }

  void place(const Action& action, size_t row) {
    out_[row].push_back(action);
    if (!talks(action)) return;
    placed_.insert(action.task());
    const std::optional<Task> user = neighbour(action, along(action));
    if (!user) return;
    const size_t to = home_.at(user->stage);
    if (to == row) return;
    const bool forward = action.kind == TaskKind::kForward;
    out_[row].emplace_back(forward ? ActionType::kSendForward : ActionType::kSendBackward,
                           action.stage, action.microbatch);
    out_[to].emplace_back(forward ? ActionType::kReceiveForward : ActionType::kReceiveBackward,
                          user->stage, action.microbatch);
  }

  std::vector<Actions> rows_;
  std::vector<Actions> out_;
  std::map<StageId, size_t> home_;
  std::set<Task> tasks_;
  std::set<Task> placed_;
};

}  // namespace

Status lower_schedule(std::span<const std::vector<Task>> per_rank, const LoweringOptions& options,
                      std::vector<std::vector<Action>>& out) {
  std::vector<Actions> rows;
  for (const std::vector<Task>& tasks : per_rank) {
    Actions& row = rows.emplace_back();
    if (options.fsdp) {
      row = add_sharding(tasks);
    } else {
      for (const Task& task : tasks) row.emplace_back(task);
    }
    if (options.reduce) row = add_reductions(row);
  }
  return Messages(std::move(rows)).add(out);
}

std::string print_schedule_actions(std::span<const std::vector<Action>> per_rank) {
  return print_rows(per_rank);
}

}  // namespace rrfp::core
