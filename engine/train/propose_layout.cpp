// SPDX-License-Identifier: Apache-2.0
#include "engine/train/propose_layout.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "engine/model/partition.h"
#include "engine/sim/choose.h"

namespace rrfp::train {

using core::MicrobatchId;
using core::Placement;
using core::StageId;
using core::TaskKind;

namespace {

constexpr int32_t kMicrobatchesPerRank = 4;
constexpr int64_t kLongestNs = 10'000'000;  // the scale does not matter, rounding does

/// The makespan of a step on a chain of `chunks` stages a rank; 0 if there is no such cut.
int64_t simulated_ns(std::span<const int64_t> costs, int32_t ranks, Placement placement,
                     int32_t chunks) {
  const int32_t stages = ranks * chunks;
  std::vector<int32_t> first;
  if (!model::partition(costs, stages, first).ok()) return 0;
  std::vector<int64_t> stage_costs;
  for (size_t s = 0; s < first.size(); ++s) {
    const auto end = s + 1 < first.size() ? static_cast<size_t>(first[s + 1]) : costs.size();
    int64_t sum = 0;
    for (auto b = static_cast<size_t>(first[s]); b < end; ++b) sum += costs[b];
    stage_costs.push_back(sum);
  }
  int64_t all = 0;
  for (const int64_t cost : costs) all += cost;
  auto graph = std::make_shared<core::StageGraph>(ranks);
  sim::Family family;
  const int32_t m = kMicrobatchesPerRank * ranks;
  family.predicted.durations = sim::Durations(stages, m);
  for (int32_t s = 0; s < stages; ++s) {
    const double share = static_cast<double>(stage_costs[static_cast<size_t>(s)]) /
                         static_cast<double>(std::max<int64_t>(all, 1));
    const auto ns = static_cast<int64_t>(share * static_cast<double>(ranks * kLongestNs));
    core::Stage stage;
    stage.loss = s + 1 == stages;
    stage.forward_ns = stage.input_gradient_ns = stage.weight_gradient_ns = ns;
    StageId id;
    if (!graph->add_stage(stage, id).ok()) return 0;
    core::EdgeId edge;
    if (s > 0 && !graph->add_edge({StageId(s - 1), id, true}, edge).ok()) return 0;
    for (int32_t k = 0; k < m; ++k) {
      for (const TaskKind kind :
           {TaskKind::kForward, TaskKind::kInputGradient, TaskKind::kWeightGradient}) {
        family.predicted.durations.at({id, MicrobatchId(k), kind}) = ns;
      }
    }
  }
  if (!graph->place(placement).ok() || !graph->seal().ok()) return 0;
  core::StepShape shape;
  shape.microbatches = m;
  if (!core::StepTasks::create(std::move(graph), std::move(shape), family.tasks).ok()) return 0;
  const std::vector<sim::Candidate> all_ways = sim::candidates(family);
  if (all_ways.empty()) return 0;
  const std::vector<sim::Replay> replays = {family.predicted};
  const sim::Choice choice = sim::choose(all_ways, replays);
  return choice.mean_ns[choice.best];
}

}  // namespace

std::string propose_layout(std::span<const int64_t> costs, int32_t ranks) {
  if (ranks < 2) return {};
  const int64_t linear_ns = simulated_ns(costs, ranks, Placement::kLinear, 1);
  const int64_t v_ns = simulated_ns(costs, ranks, Placement::kV, 2);
  if (linear_ns == 0 || v_ns == 0) return {};
  char text[160];
  std::snprintf(text, sizeof text,
                "by estimated costs, V placement of %d stages takes %.3f of the time of %d stages, "
                "one a rank",
                2 * ranks, static_cast<double>(v_ns) / static_cast<double>(linear_ns), ranks);
  return text;
}

}  // namespace rrfp::train
