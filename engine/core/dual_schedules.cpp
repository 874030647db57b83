// SPDX-License-Identifier: Apache-2.0
//
// DualPipe (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024) and DualPipeV, its half on a V (Sea
// AI Lab and DeepSeek-AI, 2025). DualPipe has two chains of p stages: stream A, stages 0..p-1 with
// stage r on rank r, and stream Z, stages p..2p-1 with stage p + k on rank p - 1 - k, so Z enters
// where A ends. DualPipeV folds one chain of 2p stages so that its second half plays the part of
// the other stream. Both are the same eight phases; a forward and a backward that are meant to
// overlap stand one after the other here.
#include <algorithm>
#include <string>

#include "engine/core/hint.h"
#include "engine/core/published_schedules.h"

namespace rrfp::core {
namespace {

constexpr TaskKind kF = TaskKind::kForward;
constexpr TaskKind kB = TaskKind::kBackward;
constexpr TaskKind kI = TaskKind::kInputGradient;
constexpr TaskKind kW = TaskKind::kWeightGradient;

/// One of the two stages of a rank and the microbatches that pass it, in the order of injection.
struct Phase {
  StageId stage;
  std::vector<int32_t> microbatches;
};

class DualWriter {
 public:
  /// `phases[0]` is the stage that the rank reaches first.
  DualWriter(const StepTasks& tasks, RankId rank, const Phase (&phases)[2], std::vector<Task>& out)
      : writer_(tasks, rank, out), phases_{&phases[0], &phases[1]} {}

  /// `depth`: ranks on the way to the turn (or the middle), `at`: how many the rank is along it.
  void write(int32_t depth, int32_t at, int32_t microbatches) {
    const int32_t before = depth - at - 1;
    for (int32_t k = 0; k < 2 * before; ++k) forward(0);
    for (int32_t k = 0; k < at + 1; ++k) {
      forward(0);
      forward(1);
    }
    for (int32_t k = 0; k < before; ++k) {
      backward(1, true);
      weight();
      forward(1);
    }
    for (int32_t k = 0; k < microbatches - 2 * depth + at + 1; ++k) {
      forward(0);
      backward(1, false);
      forward(1);
      backward(0, false);
    }
    for (int32_t k = 0; k < before; ++k) {
      backward(1, false);
      forward(1);
      backward(0, false);
    }
    // Half of these give their weight gradients to the slots in which the rank would wait below.
    bool split = false;
    for (int32_t k = 0; k < at + 1; ++k) {
      const bool turning = k == (at + 1) / 2;
      split = split || (turning && at % 2 == 1);
      backward(1, split);
      split = split || (turning && at % 2 == 0);
      backward(0, split);
    }
    for (int32_t k = 0; k < before; ++k) {
      weight();
      backward(0, split);
    }
    for (int32_t k = 0; k < at + 1; ++k) weight();
  }

  [[nodiscard]] Status finish() const { return writer_.finish(); }

 private:
  [[nodiscard]] int32_t take(int phase, size_t (&next)[2]) const {
    return phases_[phase]->microbatches[next[phase]++];
  }
  void forward(int phase) { writer_.add(phases_[phase]->stage, kF, take(phase, forwards_)); }
  void backward(int phase, bool split) {
    const StageId stage = phases_[phase]->stage;
    const int32_t i = take(phase, backwards_);
    writer_.add(stage, split ? kI : kB, i);
    if (split) owed_.push_back({stage, MicrobatchId(i), kW});
  }
  /// The oldest weight gradient that is owed, if there is one.
  void weight() {
    if (paid_ == owed_.size()) return;
    const Task& task = owed_[paid_++];
    writer_.add(task.stage, kW, task.microbatch.value);
  }

  OrderWriter writer_;
  const Phase* phases_[2];
  size_t forwards_[2] = {};
  size_t backwards_[2] = {};
  std::vector<Task> owed_;
  size_t paid_ = 0;
};

Status refuse(Schedule schedule, const std::string& need, const std::string& have) {
  return {Code::kBadOrder, "the schedule \"" + std::string(schedule_name(schedule)) + "\" needs " +
                               need + "; here " + have};
}

Status check_two_chains(const StageGraph& graph) {
  const int32_t p = graph.ranks();
  const std::string need =
      "an even number of ranks and two chains of as many stages, A on stages 0 to " +
      std::to_string(p - 1) + ", stage r on rank r, and Z on stages " + std::to_string(p) + " to " +
      std::to_string(2 * p - 1) + ", stage " + std::to_string(p) + " + k on rank " +
      std::to_string(p - 1) + " - k";
  const auto bad = [&](const std::string& have) { return refuse(Schedule::kDualPipe, need, have); };
  if (p % 2 != 0 || graph.stage_count() != 2 * p) {
    return bad("there are " + std::to_string(p) + " ranks and " +
               std::to_string(graph.stage_count()) + " stages");
  }
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const Edge& edge = graph.edge(EdgeId(e));
    if ((edge.from.value < p) == (edge.to.value < p)) continue;
    return bad("stage " + std::to_string(edge.from.value) + " feeds stage " +
               std::to_string(edge.to.value) + " of the other chain");
  }
  for (int32_t s = 0; s < 2 * p; ++s) {
    const int32_t place = s < p ? s : s - p;
    const int32_t want = s < p ? s : p - 1 - place;
    const int32_t have = graph.stage(StageId(s)).rank.value;
    if (have != want) {
      return bad("stage " + std::to_string(s) + " is on rank " + std::to_string(have) +
                 " instead of rank " + std::to_string(want));
    }
    // As many edges lead to a stage, on the longest path, as stages of its chain precede it.
    if (graph.depth(StageId(s)) != place) {
      return bad("stage " + std::to_string(s) + " is not number " + std::to_string(place) +
                 " of its chain");
    }
  }
  return {};
}

/// The microbatches that enter a stream at its first stage.
Phase stream(const StepTasks& tasks, int32_t entry, int32_t stage) {
  Phase phase;
  phase.stage = StageId(stage);
  for (int32_t i = 0; i < tasks.microbatches(); ++i) {
    if (tasks.takes_part(StageId(entry), MicrobatchId(i))) phase.microbatches.push_back(i);
  }
  return phase;
}

}  // namespace

Status dualpipe_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) {
  if (Status s = check_two_chains(tasks.graph()); !s.ok()) return s;
  const int32_t p = tasks.graph().ranks();
  const int32_t r = rank.value;
  const int32_t half = p / 2;
  const Phase a = stream(tasks, 0, r);
  const Phase z = stream(tasks, p, 2 * p - 1 - r);
  const size_t n = a.microbatches.size();
  if (n != z.microbatches.size() || n < static_cast<size_t>(p)) {
    return refuse(Schedule::kDualPipe,
                  "as many microbatches in stream A as in stream Z, at least one for each of the " +
                      std::to_string(p) + " ranks",
                  std::to_string(n) + " microbatches enter at stage 0 and " +
                      std::to_string(z.microbatches.size()) + " at stage " + std::to_string(p));
  }
  const Phase phases[2] = {r < half ? a : z, r < half ? z : a};
  DualWriter writer(tasks, rank, phases, out);
  writer.write(half, std::min(r, p - 1 - r), static_cast<int32_t>(n));
  return writer.finish();
}

Status dualpipe_v_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) {
  const StageGraph& graph = tasks.graph();
  if (Status s = check_v_chain(schedule_name(Schedule::kDualPipeV), graph); !s.ok()) return s;
  const int32_t p = graph.ranks();
  const int32_t m = tasks.microbatches();
  if (m < 2 * p) {
    return refuse(Schedule::kDualPipeV,
                  "at least two microbatches for each of the " + std::to_string(p) + " ranks",
                  "there are " + std::to_string(m));
  }
  const size_t at = rank.index();
  Phase phases[2];
  phases[0].stage = graph.order()[at];
  phases[1].stage = graph.order()[2 * static_cast<size_t>(p) - 1 - at];
  for (int32_t i = 0; i < m; ++i) phases[0].microbatches.push_back(i);
  phases[1].microbatches = phases[0].microbatches;
  DualWriter writer(tasks, rank, phases, out);
  writer.write(p, rank.value, m);
  return writer.finish();
}

}  // namespace rrfp::core
