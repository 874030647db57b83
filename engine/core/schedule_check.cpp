// SPDX-License-Identifier: Apache-2.0
#include "engine/core/schedule_check.h"

#include <map>
#include <string>
#include <utility>

namespace rrfp::core {
namespace {

/// Where an action stands: row and position from 0, column from 1.
struct Place {
  size_t row = 0;
  size_t position = 0;
  int32_t column = 0;
};

class ActionChecker {
 public:
  explicit ActionChecker(std::span<const std::vector<ActionAt>> rows) : rows_(rows) {}

  Status check() {
    if (Status s = index(); !s.ok()) return s;
    for (size_t row = 0; row < rows_.size(); ++row) {
      std::map<StageId, bool> resident;
      for (size_t k = 0; k < rows_[row].size(); ++k) {
        const ActionAt& at = rows_[row][k];
        const Place place = {row, k, at.column};
        if (Status s = check_home(at.action, place); !s.ok()) return s;
        if (Status s = check_parameters(at.action, place, resident); !s.ok()) return s;
        Status s =
            at.action.computes() ? check_task(at.action, place) : check_message(at.action, place);
        if (!s.ok()) return s;
      }
    }
    return {};
  }

 private:
  /// Messages of one kind and what they belong to.
  struct Edge {
    ActionType send;
    ActionType receive;
    int32_t step;  // from the stage that sends to the one that receives
  };
  static constexpr Edge kForwardEdge = {ActionType::kSendForward, ActionType::kReceiveForward, 1};
  static constexpr Edge kBackwardEdge = {ActionType::kSendBackward, ActionType::kReceiveBackward,
                                         -1};

  [[nodiscard]] static Status error(const Action& action, const Place& place,
                                    const std::string& what) {
    return {Code::kBadOrder, "row " + std::to_string(place.row + 1) + ", column " +
                                 std::to_string(place.column) + ": " + to_string(action) + " " +
                                 what};
  }

  /// Takes down where each action stands and which row each stage is computed on.
  Status index() {
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (size_t k = 0; k < rows_[row].size(); ++k) {
        const ActionAt& at = rows_[row][k];
        const Place place = {row, k, at.column};
        if (at.action.computes()) {
          const auto [home, first] = home_.emplace(at.action.stage, row);
          if (!first && home->second != row) {
            return error(at.action, place,
                         "stands on another row than the tasks of its stage before, row " +
                             std::to_string(home->second + 1) + "; a stage has one rank");
          }
          if (at.action.kind != TaskKind::kForward) last_[at.action.stage] = k;
        }
        if (at.action.has_microbatch() || at.action.type == ActionType::kReduceGradient) {
          const auto [before, first] = place_.emplace(at.action, place);
          if (!first) {
            return error(at.action, place,
                         "already stands in row " + std::to_string(before->second.row + 1) +
                             ", column " + std::to_string(before->second.column));
          }
        }
      }
    }
    return {};
  }

  [[nodiscard]] Status check_home(const Action& action, const Place& place) const {
    const auto home = home_.find(action.stage);
    if (home == home_.end()) return error(action, place, "names a stage that has no task");
    if (home->second == place.row) return {};
    return error(action, place,
                 "names a stage whose tasks stand in row " + std::to_string(home->second + 1));
  }

  [[nodiscard]] Status check_parameters(const Action& action, const Place& place,
                                        std::map<StageId, bool>& resident) const {
    const auto at = resident.find(action.stage);
    const bool here = at != resident.end() && at->second;
    switch (action.type) {
      case ActionType::kUnshard:
        if (here) return error(action, place, "comes while the stage is already unsharded");
        resident[action.stage] = true;
        return {};
      case ActionType::kReshard:
        if (!here) return error(action, place, "comes while the stage is not unsharded");
        resident[action.stage] = false;
        return {};
      case ActionType::kCompute:
        // A schedule without UNSHARD leaves the parameters where they are.
        if (at != resident.end() && !here) {
          return error(action, place, "comes while the stage is not unsharded");
        }
        return {};
      case ActionType::kReduceGradient: {
        const auto last = last_.find(action.stage);
        if (last != last_.end() && last->second < place.position) return {};
        return error(action, place, "does not follow the last backward task of its stage");
      }
      default: return {};
    }
  }

  /// A text may name stages up to the largest number, which has no successor.
  [[nodiscard]] static StageId beside(StageId stage, int32_t step) {
    const int64_t peer = int64_t{stage.value} + step;
    return peer <= INT32_MAX ? StageId::of(peer) : StageId();
  }

  /// The task of a stage that sends on this edge or uses what it receives; null if there is none.
  [[nodiscard]] const Place* find_end(const Edge& edge, StageId stage, MicrobatchId i) const {
    if (edge.step > 0) return find(Action({stage, i, TaskKind::kForward}));
    const Place* whole = find(Action({stage, i, TaskKind::kBackward}));
    return whole != nullptr ? whole : find(Action({stage, i, TaskKind::kInputGradient}));
  }
  [[nodiscard]] const Place* find(const Action& action) const {
    const auto at = place_.find(action);
    return at == place_.end() ? nullptr : &at->second;
  }

  /// That what the task sends to another rank is sent and received.
  [[nodiscard]] Status check_task(const Action& action, const Place& place) const {
    if (action.kind == TaskKind::kWeightGradient) return {};
    const Edge& edge = action.kind == TaskKind::kForward ? kForwardEdge : kBackwardEdge;
    const StageId to = beside(action.stage, edge.step);
    const Place* use = to.valid() ? find_end(edge, to, action.microbatch) : nullptr;
    if (use == nullptr || use->row == place.row) return {};
    for (const Action& message : {Action(edge.send, action.stage, action.microbatch),
                                  Action(edge.receive, to, action.microbatch)}) {
      if (find(message) != nullptr) continue;
      return error(action, place,
                   "needs " + to_string(message) + " in row " +
                       std::to_string((message.type == edge.send ? place.row : use->row) + 1));
    }
    return {};
  }

  /// That there is a task that sends it, one that uses it, and that they enclose it.
  [[nodiscard]] Status check_message(const Action& action, const Place& place) const {
    if (!action.has_microbatch()) return {};
    const bool forward =
        action.type == ActionType::kSendForward || action.type == ActionType::kReceiveForward;
    const Edge& edge = forward ? kForwardEdge : kBackwardEdge;
    const bool sends = action.type == edge.send;
    const StageId peer = beside(action.stage, sends ? edge.step : -edge.step);
    const Place* own = find_end(edge, action.stage, action.microbatch);
    const Place* other = peer.valid() ? find_end(edge, peer, action.microbatch) : nullptr;
    const std::string what = forward ? "forward" : "backward";
    if (own == nullptr) return error(action, place, "belongs to no " + what + " task of its stage");
    if (other == nullptr) {
      return error(
          action, place,
          "has no " + what + " task of stage " + std::to_string(peer.value) + " at the other end");
    }
    if (other->row == place.row) {
      return error(
          action, place,
          "is not needed, since stage " + std::to_string(peer.value) + " is on the same row");
    }
    if (sends && own->position > place.position) {
      return error(action, place, "stands before the task that makes what it sends");
    }
    if (!sends && own->position < place.position) {
      return error(action, place, "stands after the task that needs it");
    }
    const Action match(sends ? edge.receive : edge.send, peer, action.microbatch);
    if (find(match) != nullptr) return {};
    return error(action, place,
                 "needs " + to_string(match) + " in row " + std::to_string(other->row + 1));
  }

  std::span<const std::vector<ActionAt>> rows_;
  std::map<Action, Place> place_;
  std::map<StageId, size_t> home_;  // row
  std::map<StageId, size_t> last_;  // position of the last B, I or W
};

/// What one stage has for one microbatch.
struct Tasks {
  bool forward = false;
  bool backward = false;
  bool input_gradient = false;
  bool weight_gradient = false;
};

class Validator {
 public:
  Validator(int32_t ranks, int32_t microbatches) : ranks_(ranks), microbatches_(microbatches) {}

  Status check(std::span<const std::vector<Task>> rows) {
    if (rows.size() != static_cast<size_t>(ranks_)) {
      return {Code::kBadOrder, "the schedule has " + std::to_string(rows.size()) +
                                   " rows; expected " + std::to_string(ranks_) +
                                   ", one for each rank"};
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      for (const Task& task : rows[row]) {
        if (Status s = add(task, row); !s.ok()) return s;
      }
    }
    return check_counts();
  }

 private:
  [[nodiscard]] static Status error(const Task& task, size_t row, const std::string& what) {
    return {Code::kBadOrder, "row " + std::to_string(row + 1) + " (rank " + std::to_string(row) +
                                 "): " + to_string(task) + " " + what};
  }

  Status add(const Task& task, size_t row) {
    if (task.microbatch.value >= microbatches_) {
      return error(task, row,
                   "has a microbatch beyond the " + std::to_string(microbatches_) +
                       " of the step, which are numbered from 0");
    }
    const auto [home, first] = home_.emplace(task.stage, row);
    if (!first && home->second != row) {
      return error(task, row,
                   "stands here, but stage " + std::to_string(task.stage.value) +
                       " is already in row " + std::to_string(home->second + 1));
    }
    Tasks& tasks = stages_[task.stage][task.microbatch];
    switch (task.kind) {
      case TaskKind::kForward: return mark(tasks.forward, task, row);
      case TaskKind::kBackward:
      case TaskKind::kInputGradient:
        if (!tasks.forward) return error(task, row, "stands before the forward");
        if (task.kind == TaskKind::kBackward ? tasks.input_gradient : tasks.backward) {
          return error(task, row, "stands beside the other form of the same backward");
        }
        return mark(task.kind == TaskKind::kBackward ? tasks.backward : tasks.input_gradient, task,
                    row);
      case TaskKind::kWeightGradient:
        if (!tasks.input_gradient) return error(task, row, "stands before the input gradient I");
        return mark(tasks.weight_gradient, task, row);
    }
    return {};
  }

  static Status mark(bool& seen, const Task& task, size_t row) {
    if (seen) return error(task, row, "stands twice");
    seen = true;
    return {};
  }

  [[nodiscard]] Status check_counts() const {
    StageId expected(0);
    for (const auto& [stage, microbatches] : stages_) {
      if (stage != expected) {
        return {Code::kBadOrder, "stage " + std::to_string(expected.value) +
                                     " is on no row, but stage " + std::to_string(stage.value) +
                                     " is; stages are numbered from 0"};
      }
      ++expected.value;
      for (int32_t i = 0; i < microbatches_; ++i) {
        const auto at = microbatches.find(MicrobatchId(i));
        const Tasks tasks = at == microbatches.end() ? Tasks() : at->second;
        const char* missing = !tasks.forward                              ? "forward F"
                              : !tasks.backward && !tasks.input_gradient  ? "backward B or I"
                              : !tasks.backward && !tasks.weight_gradient ? "weight gradient W"
                                                                          : nullptr;
        if (missing == nullptr) continue;
        const size_t row = home_.at(stage);
        return {Code::kBadOrder, "row " + std::to_string(row + 1) + " (rank " +
                                     std::to_string(row) + "): stage " +
                                     std::to_string(stage.value) + " has no " + missing +
                                     " of microbatch " + std::to_string(i)};
      }
    }
    if (stages_.empty()) return {Code::kBadOrder, "the schedule has no tasks"};
    return {};
  }

  int32_t ranks_;
  int32_t microbatches_;
  std::map<StageId, size_t> home_;
  std::map<StageId, std::map<MicrobatchId, Tasks>> stages_;
};

}  // namespace

Status check_actions(std::span<const std::vector<ActionAt>> rows) {
  return ActionChecker(rows).check();
}

Status validate_schedule(std::span<const std::vector<Task>> rows, int32_t ranks,
                         int32_t microbatches) {
  return Validator(ranks, microbatches).check(rows);
}

}  // namespace rrfp::core
