// SPDX-License-Identifier: Apache-2.0
//
// The named schedules, for any stage graph and any placement.
//
// GPipe and 1F1B give every task a time on an ideal grid (one unit per task) and sort by it. On the
// grid each task stands strictly later than what it needs, so each of these orders can be obeyed
// strictly on any graph, and on a chain with one stage per rank 1F1B is exactly the published
// order: with S stages, F_i of stage s at s + 2i and B_i at 2S - 1 - s + 2i, so S - s forwards
// precede the first backward and then both alternate. ZB-H1 is 1F1B with B cut into I and W, where
// W follows the I that comes `depth` microbatches later (Qi et al., Zero Bubble Pipeline
// Parallelism, 2023). BF and BFW are plain priorities: they rank what is ready and cannot be obeyed
// strictly.
#include <algorithm>
#include <cassert>
#include <tuple>

#include "engine/core/hint.h"

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

std::vector<Task> one_forward_one_backward(const StepTasks& tasks, RankId rank) {
  const StageGraph& graph = tasks.graph();
  const int64_t turn = 2 * int64_t{graph.depth_max()} + 1;
  const int64_t period = 2 * int64_t{graph.chunks_max()};
  std::vector<Keyed> keyed;
  for_each_pair(tasks, rank, [&](StageId s, MicrobatchId i) {
    const int64_t depth = graph.depth(s);
    const int64_t slot = period * i.value;
    // At equal times the backward goes first: it frees memory.
    keyed.push_back({{depth + slot, 1, s.value}, {s, i, TaskKind::kForward}});
    if (!tasks.backward(s, i)) return;
    keyed.push_back({{turn - depth + slot, 0, -s.value}, whole_backward(tasks, s, i)});
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

std::vector<Task> zero_bubble_h1(const StepTasks& tasks, RankId rank) {
  const StageGraph& graph = tasks.graph();
  const std::vector<Task> fused = one_forward_one_backward(tasks, rank);
  // Per stage, the weight gradients not yet listed, oldest first.
  std::vector<std::vector<Task>> waiting(static_cast<size_t>(graph.stage_count()));
  std::vector<size_t> listed(waiting.size(), 0);
  std::vector<Task> order;
  order.reserve(fused.size() * 3 / 2 + 1);
  for (const Task& task : fused) {
    if (task.kind != TaskKind::kBackward) {
      order.push_back(task);
      continue;
    }
    const size_t s = task.stage.index();
    order.push_back({task.stage, task.microbatch, TaskKind::kInputGradient});
    waiting[s].push_back({task.stage, task.microbatch, TaskKind::kWeightGradient});
    const auto lag = static_cast<size_t>(graph.depth(task.stage));
    if (waiting[s].size() > lag) order.push_back(waiting[s][listed[s]++]);
  }
  std::vector<Task> rest;
  for (StageId s : graph.chunks(rank)) {
    const auto& list = waiting[s.index()];
    rest.insert(rest.end(), list.begin() + static_cast<std::ptrdiff_t>(listed[s.index()]),
                list.end());
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const Task& a, const Task& b) { return a.microbatch < b.microbatch; });
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

}  // namespace

std::vector<Task> schedule_order(Schedule schedule, const StepTasks& tasks, RankId rank) {
  switch (schedule) {
    case Schedule::kGpipe: return gpipe(tasks, rank);
    case Schedule::k1F1B: return one_forward_one_backward(tasks, rank);
    case Schedule::kBackwardFirst: return backward_first(tasks, rank, false);
    case Schedule::kInputGradientForwardWeight: return backward_first(tasks, rank, true);
    case Schedule::kZeroBubbleH1: return zero_bubble_h1(tasks, rank);
  }
  assert(false && "a Schedule that is not listed above");
  return {};
}

}  // namespace rrfp::core
