// SPDX-License-Identifier: Apache-2.0
//
// Random stage graphs, steps and hints.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "engine/sim/stress_case.h"

namespace rrfp::sim {

using core::EdgeId;
using core::Hint;
using core::MicrobatchId;
using core::RankId;
using core::Stage;
using core::StageGraph;
using core::StageId;
using core::StepShape;
using core::StepTasks;
using core::TaskKind;

namespace {

constexpr int32_t kRanksMax = 12;
constexpr int32_t kStagesMax = 24;
constexpr int32_t kMicrobatchesMax = 24;

/// The generator makes valid input only; anything else is a mistake of its own.
void must([[maybe_unused]] const core::Status& status) {
  assert(status.ok());
}

/// Small numbers more often than large ones: large cases cost more and find no more.
int32_t skewed(Dice& dice, int32_t low, int32_t high) {
  const double u = dice.uniform();
  return low + static_cast<int32_t>(u * u * (high - low + 1));
}

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

Pairs chain(int32_t stages) {
  Pairs pairs;
  for (int32_t s = 1; s < stages; ++s) pairs.emplace_back(s - 1, s);
  return pairs;
}

/// Edges from lower to higher numbers, so that there is no cycle.
Pairs random_pairs(Dice& dice, int32_t stages) {
  Pairs pairs;
  const auto link = [&](int32_t from, int32_t to) {
    if (from >= 0 && from < to && to < stages) pairs.emplace_back(from, to);
  };
  const int64_t how = dice.between(0, 3);
  const int32_t branch = dice.between32(1, std::max(1, stages - 1));
  for (int32_t s = 1; s < stages; ++s) {
    switch (how) {
      case 0:  // diamonds: a b b a b b ...
        link(s % 3 == 2 ? s - 2 : s - 1, s);
        if (s % 3 == 0) link(s - 2, s);
        break;
      case 1:  // two branches that join, such as an encoder and a text embedding
        if (s == branch + 1) link(branch, s);
        if (s != branch) link(s == branch + 1 ? dice.between32(0, branch - 1) : s - 1, s);
        break;
      case 2: link(s - 1, dice.between32(s, std::min(stages - 1, s + 2))); break;  // joining tree
      default:
        for (int64_t k = dice.between(0, 2); k >= 0; --k) {
          if (!dice.percent(10)) link(dice.between32(std::max(0, s - 5), s - 1), s);
        }
        break;
    }
  }
  return pairs;
}

std::vector<Stage> random_stages(Dice& dice, int32_t count) {
  const int64_t frozen = dice.percent(25) ? 40 : 0;
  const int64_t fused = dice.percent(20) ? 50 : 0;
  const int64_t wanted = dice.percent(15) ? 50 : 0;
  const bool even = dice.percent(50);
  const bool unknown = dice.percent(5);
  std::vector<Stage> stages(static_cast<size_t>(count));
  for (Stage& stage : stages) {
    stage.frozen = dice.percent(frozen);
    stage.fused_only = dice.percent(fused);
    stage.input_gradient = dice.percent(wanted);
    stage.activation_bytes = even ? 1 << 20 : dice.between(0, 4 << 20);
    if (unknown) continue;
    const auto ns = [&] { return even ? 1'000'000 : dice.between(50'000, 2'000'000); };
    stage.forward_ns = ns();
    stage.input_gradient_ns = ns();
    stage.weight_gradient_ns = ns();
  }
  return stages;
}

/// By stage; every rank gets one.
std::vector<int32_t> random_placement(Dice& dice, int32_t ranks, int32_t stages) {
  std::vector<int32_t> rank(static_cast<size_t>(stages));
  const int64_t how = dice.between(0, 3);
  for (int32_t s = 0; s < stages; ++s) {
    int32_t& r = rank[static_cast<size_t>(s)];
    switch (how) {
      case 0: r = s % ranks; break;
      case 1: r = s / ranks % 2 == 0 ? s % ranks : ranks - 1 - s % ranks; break;
      case 2: r = s * ranks / stages; break;
      default: r = s < ranks ? s : dice.between32(0, ranks - 1); break;
    }
  }
  if (how == 3) {
    for (int64_t k = stages - 1; k > 0; --k) {
      std::swap(rank[static_cast<size_t>(k)], rank[static_cast<size_t>(dice.between(0, k))]);
    }
  }
  return rank;
}

std::shared_ptr<const StageGraph> random_graph(Dice& dice, Shape shape, bool deep) {
  const int32_t ranks = skewed(dice, deep ? 3 : 1, kRanksMax);
  int32_t stages = ranks;
  if (shape == Shape::kV) stages = 2 * ranks;
  if (shape == Shape::kLoop) stages = ranks * dice.between32(1, std::min(4, kStagesMax / ranks));
  if (shape == Shape::kGraph) stages = dice.between32(ranks, std::min(kStagesMax, 3 * ranks + 1));
  auto graph = std::make_shared<StageGraph>(ranks);
  const Pairs pairs = shape == Shape::kGraph ? random_pairs(dice, stages) : chain(stages);
  std::vector<Stage> all = random_stages(dice, stages);
  const std::vector<int32_t> rank = random_placement(dice, ranks, stages);
  for (int32_t s = 0; s < stages; ++s) {
    Stage& stage = all[static_cast<size_t>(s)];
    const bool feeds =
        std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.first == s; });
    stage.loss = !feeds || dice.percent(3);
    if (shape == Shape::kGraph) stage.rank = RankId(rank[static_cast<size_t>(s)]);
    StageId id;
    must(graph->add_stage(stage, id));
  }
  const int64_t without_gradient = dice.percent(15) ? 25 : 0;
  for (const auto& [from, to] : pairs) {
    EdgeId id;
    must(graph->add_edge({StageId(from), StageId(to), !dice.percent(without_gradient)}, id));
  }
  if (shape == Shape::kLinear) must(graph->place(core::Placement::kLinear));
  if (shape == Shape::kLoop) must(graph->place(core::Placement::kLoop));
  if (shape == Shape::kV) must(graph->place(core::Placement::kV));
  must(graph->seal());
  return graph;
}

void add_skips(Dice& dice, size_t stages, StepShape& step) {
  const auto m = static_cast<size_t>(step.microbatches);
  const int64_t chance = dice.pick({5, 20, 50});
  const bool branches = dice.percent(60);  // the same stages or none
  step.skip.assign(stages * m, 0);
  for (size_t s = 0; s < stages; ++s) {
    if (branches && !dice.percent(35)) continue;
    for (size_t i = 0; i < m; ++i) {
      const bool skips = branches ? i % 3 == 1 : dice.percent(chance);
      step.skip[s * m + i] = skips ? 1 : 0;
    }
  }
}

void add_sizes(Dice& dice, size_t stages, StepShape& step) {
  const auto m = static_cast<size_t>(step.microbatches);
  const double sigma = dice.pick({0.3, 1.0, 2.0});
  const bool costs_too = dice.percent(60);
  std::vector<double> size(m);
  for (double& s : size) s = std::clamp(dice.lognormal(sigma), 0.01, 100.0);
  for (size_t s = 0; s < stages; ++s) {
    const double share = dice.pick({0.0, 0.5, 1.0, 1.0, 1.0, 2.0});
    for (const double of_microbatch : size) {
      step.activation_bytes.push_back(std::llround(share * of_microbatch * (1 << 20)));
      if (costs_too) {
        step.cost_permille.push_back(static_cast<int32_t>(std::lround(1000 * of_microbatch)));
      }
    }
  }
}

std::shared_ptr<const Hint> random_priorities(Dice& dice, const StepTasks& tasks) {
  std::vector<core::PrioritizedTask> all;
  const int64_t range = dice.pick({0, 5, 1000});
  const int64_t split = dice.pick({0, 50, 100});
  const auto add = [&](StageId s, MicrobatchId i, TaskKind kind) {
    all.push_back({{s, i, kind}, dice.between(0, range)});
  };
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      const StageId stage(s);
      const MicrobatchId i(k);
      if (tasks.takes_part(stage, i)) add(stage, i, TaskKind::kForward);
      if (!tasks.backward(stage, i)) continue;
      const bool halves = dice.percent(split);
      add(stage, i, halves ? TaskKind::kInputGradient : TaskKind::kBackward);
      if (halves && tasks.weight(stage, i)) add(stage, i, TaskKind::kWeightGradient);
    }
  }
  std::shared_ptr<const Hint> hint;
  must(Hint::priorities(std::move(all), hint));
  return hint;
}

}  // namespace

std::shared_ptr<const StepTasks> make_step(Dice& dice, Shape shape, bool deep) {
  const auto graph = random_graph(dice, shape, deep);
  StepShape step;
  step.mode = dice.percent(6) ? core::StepMode::kForwardOnly : core::StepMode::kTrain;
  step.microbatches = skewed(dice, deep ? 10 : 1, kMicrobatchesMax);
  const auto stages = static_cast<size_t>(graph->stage_count());
  if (dice.percent(25)) add_skips(dice, stages, step);
  if (dice.percent(65)) add_sizes(dice, stages, step);
  if (dice.percent(20)) {  // measured, in place of what the stages say
    for (size_t k = 0; k < 3 * stages; ++k) step.stage_ns.push_back(dice.between(0, 2'000'000));
  }
  std::shared_ptr<const StepTasks> tasks;
  must(StepTasks::create(graph, std::move(step), tasks));
  return tasks;
}

std::shared_ptr<const Hint> make_hint(Dice& dice, Shape shape, const StepTasks& tasks,
                                      bool strict) {
  auto name = dice.pick<std::string_view>({"gpipe", "1f1b", "zb-h1", "zb-h2"});
  const int64_t how = dice.between(0, 99);
  if (!strict && how < 35) name = dice.pick<std::string_view>({"bf", "bfw"});
  if (!strict && how >= 80) return random_priorities(dice, tasks);
  if (strict && how >= 95) name = "bfw";
  const bool published = how >= 35 && how < 70;
  if (published && shape == Shape::kLoop) {
    name = dice.pick<std::string_view>({"interleaved", "looped-bfs", "interleaved-zb"});
  }
  if (published && shape == Shape::kV) {
    name = dice.pick<std::string_view>({"zb-v", "zb-v", "v-half", "v-min", "dualpipe-v"});
  }
  std::shared_ptr<const Hint> hint;
  must(Hint::named(name, hint));
  // A published schedule may want more microbatches, or a group size that divides them.
  std::vector<core::Task> order;
  if (!hint->order(tasks, RankId(0), order).ok() && dice.percent(90))
    must(Hint::named("1f1b", hint));
  return hint;
}

}  // namespace rrfp::sim
