// SPDX-License-Identifier: Apache-2.0
//
// The named schedules that work on any stage graph and any placement, and the choice among all.
//
// GPipe (Huang et al., 2019) and 1F1B (Narayanan et al., PipeDream, 2019) give every task a time on
// an ideal grid (one unit per task) and sort by it. On the grid each task stands strictly later
// than what it needs, so each of these orders can be obeyed strictly on any graph, and on a chain
// with one stage per rank 1F1B is exactly the published order: with S stages, F_i of stage s at s +
// 2i and B_i at 2S - 1 - s + 2i, so S - s forwards precede the first backward and then both
// alternate. ZB-H1 is 1F1B with B cut into I and W, where W follows the I that comes `depth`
// microbatches later (Qi et al., Zero Bubble Pipeline Parallelism, 2023). ZB-H2, of the same paper,
// has twice the warm-up and twice the delay: I_i at 4S - 3 - 3s + 2i, which takes the bubble out of
// the steady state at the price of nearly twice the memory. BF and BFW are plain priorities: they
// rank what is ready and cannot be obeyed strictly.
#include <algorithm>
#include <cassert>
#include <tuple>

#include "engine/core/hint.h"
#include "engine/core/published_schedules.h"

namespace rrfp::core {
namespace {

struct Keyed {
  std::tuple<int64_t, int64_t, int64_t> key;
  Task task;

  bool operator<(const Keyed& other) const {
    return std::tie(key, task) < std::tie(other.key, other.task);
  }
};

/// Calls visit(stage, microbatch) for each pair of the rank that takes part in the step.
template <class Visit>
void for_each_pair(const StepTasks& tasks, RankId rank, Visit visit) {
  for (StageId s : tasks.graph().chunks(rank)) {
    for (int32_t i = 0; i < tasks.microbatches(); ++i) {
      if (tasks.takes_part(s, MicrobatchId(i))) visit(s, MicrobatchId(i));
    }
  }
}

std::vector<Task> sorted(std::vector<Keyed> keyed) {
  std::sort(keyed.begin(), keyed.end());
  std::vector<Task> order;
  order.reserve(keyed.size());
  for (const Keyed& k : keyed) order.push_back(k.task);
  return order;
}

/// B where there is a weight gradient, I where there is none.
Task whole_backward(const StepTasks& tasks, StageId s, MicrobatchId i) {
  return {s, i, tasks.weight(s, i) ? TaskKind::kBackward : TaskKind::kInputGradient};
}

std::vector<Task> gpipe(const StepTasks& tasks, RankId rank) {
  const StageGraph& graph = tasks.graph();
  std::vector<Keyed> keyed;
  for_each_pair(tasks, rank, [&](StageId s, MicrobatchId i) {
    // All forwards first, then all backwards, each in the order of the grid.
    const int64_t slot = int64_t{graph.chunks_max()} * i.value;
    keyed.push_back({{0, graph.depth(s) + slot, s.value}, {s, i, TaskKind::kForward}});
    if (!tasks.backward(s, i)) return;
    const int64_t height = graph.depth_max() - graph.depth(s);
    keyed.push_back({{1, height + slot, -s.value}, whole_backward(tasks, s, i)});
  });
  return sorted(std::move(keyed));
}

/// `stretch` = 1: the backward of a stage stands one slot before that of the stage that feeds it;
/// `stretch` = 3: three slots, so each rank takes twice as many forwards first.
std::vector<Task> alternating(const StepTasks& tasks, RankId rank, int64_t stretch) {
  const StageGraph& graph = tasks.graph();
  // The last backward of a microbatch, at the stages without predecessor.
  const int64_t turn = (stretch + 1) * int64_t{graph.depth_max()} + 1;
  const int64_t period = 2 * int64_t{graph.chunks_max()};
  std::vector<Keyed> keyed;
  for_each_pair(tasks, rank, [&](StageId s, MicrobatchId i) {
    const int64_t depth = graph.depth(s);
    const int64_t slot = period * i.value;
    // At equal times the backward goes first: it frees memory.
    keyed.push_back({{depth + slot, 1, s.value}, {s, i, TaskKind::kForward}});
    if (!tasks.backward(s, i)) return;
    keyed.push_back({{turn - stretch * depth + slot, 0, -s.value}, whole_backward(tasks, s, i)});
  });
  return sorted(std::move(keyed));
}

/// `split` = false: BF, backward before forward. `split` = true: BFW, input gradient before forward
/// before weight gradient. Then the older microbatch, then the later stage.
std::vector<Task> backward_first(const StepTasks& tasks, RankId rank, bool split) {
  std::vector<Keyed> keyed;
  for_each_pair(tasks, rank, [&](StageId s, MicrobatchId i) {
    const auto add = [&](int64_t place, Task task) {
      keyed.push_back({{place, i.value, -s.value}, task});
    };
    add(1, {s, i, TaskKind::kForward});
    if (!tasks.backward(s, i)) return;
    if (!split) {
      add(0, whole_backward(tasks, s, i));
      return;
    }
    add(0, {s, i, TaskKind::kInputGradient});
    if (tasks.weight(s, i)) add(2, {s, i, TaskKind::kWeightGradient});
  });
  return sorted(std::move(keyed));
}

/// Each B of the order becomes I, and W follows the I that comes `delay` times the stage's depth
/// microbatches later. What is left at the end goes by age.
std::vector<Task> with_delayed_weights(const StepTasks& tasks, RankId rank,
                                       const std::vector<Task>& fused, int64_t delay) {
  const StageGraph& graph = tasks.graph();
  std::vector<StageId> own(graph.chunks(rank).begin(), graph.chunks(rank).end());
  std::sort(own.begin(), own.end());
  // Per stage, the weight gradients not yet listed, oldest first.
  std::vector<std::vector<Task>> waiting(own.size());
  std::vector<size_t> listed(own.size(), 0);
  std::vector<Task> order;
  order.reserve(fused.size() * 3 / 2 + 1);
  for (const Task& task : fused) {
    if (task.kind != TaskKind::kBackward) {
      order.push_back(task);
      continue;
    }
    const auto at = std::lower_bound(own.begin(), own.end(), task.stage);
    const auto s = static_cast<size_t>(at - own.begin());
    order.push_back({task.stage, task.microbatch, TaskKind::kInputGradient});
    waiting[s].push_back({task.stage, task.microbatch, TaskKind::kWeightGradient});
    const auto lag = static_cast<size_t>(delay * graph.depth(task.stage));
    if (waiting[s].size() > lag) order.push_back(waiting[s][listed[s]++]);
  }
  std::vector<Task> rest;
  for (StageId stage : graph.chunks(rank)) {
    const auto at = std::lower_bound(own.begin(), own.end(), stage);
    const auto s = static_cast<size_t>(at - own.begin());
    rest.insert(rest.end(), waiting[s].begin() + static_cast<std::ptrdiff_t>(listed[s]),
                waiting[s].end());
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const Task& a, const Task& b) { return a.microbatch < b.microbatch; });
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

/// The orders that exist for every graph.
std::vector<Task> general_order(Schedule schedule, const StepTasks& tasks, RankId rank) {
  switch (schedule) {
    case Schedule::kGpipe: return gpipe(tasks, rank);
    case Schedule::k1F1B: return alternating(tasks, rank, 1);
    case Schedule::kBackwardFirst: return backward_first(tasks, rank, false);
    case Schedule::kInputGradientForwardWeight: return backward_first(tasks, rank, true);
    case Schedule::kZeroBubbleH1:
      return with_delayed_weights(tasks, rank, alternating(tasks, rank, 1), 1);
    case Schedule::kZeroBubbleH2:
      return with_delayed_weights(tasks, rank, alternating(tasks, rank, 3), 2);
    default: break;
  }
  assert(false && "a Schedule that is not listed above");
  return {};
}

}  // namespace

Status schedule_order(Schedule schedule, const StepTasks& tasks, RankId rank,
                      std::vector<Task>& out, int32_t group) {
  out.clear();
  switch (schedule) {
    case Schedule::kInterleaved: return interleaved_order(tasks, rank, group, false, out);
    case Schedule::kInterleavedZeroBubble: return interleaved_order(tasks, rank, group, true, out);
    case Schedule::kLoopedBfs: return looped_bfs_order(tasks, rank, out);
    case Schedule::kZeroBubbleV: return zero_bubble_v_order(tasks, rank, out);
    case Schedule::kVHalf: return v_half_order(tasks, rank, out);
    case Schedule::kVMin: return v_min_order(tasks, rank, out);
    case Schedule::kDualPipe: return dualpipe_order(tasks, rank, out);
    case Schedule::kDualPipeV: return dualpipe_v_order(tasks, rank, out);
    default: out = general_order(schedule, tasks, rank); return {};
  }
}

}  // namespace rrfp::core
