// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_case.h"

#include <algorithm>
#include <cstdlib>

#include "tests/support/random_graph.h"
#include "tests/support/splitmix.h"

namespace rrfp::test {

using core::Amount;
using core::Cap;
using core::Direction;
using core::EdgeId;
using core::MicrobatchId;
using core::Policy;
using core::RankId;
using core::StageGraph;
using core::StageId;
using core::StepShape;
using core::StepTasks;
using core::Task;
using core::TaskKind;

namespace {

std::shared_ptr<const StepTasks> random_step(Splitmix& random,
                                             std::shared_ptr<const StageGraph> graph) {
  StepShape shape;
  shape.mode = random.percent(8) ? core::StepMode::kForwardOnly : core::StepMode::kTrain;
  shape.microbatches = random.between32(1, 12);
  const auto m = static_cast<size_t>(shape.microbatches);
  const auto cells = static_cast<size_t>(graph->stage_count()) * m;
  if (random.percent(40)) {
    shape.skip.assign(cells, 0);
    const int64_t chance = random.pick({5, 20, 50, 80});
    if (random.percent(50)) {  // whole branches are skipped: the same stages or none
      std::vector<bool> optional(static_cast<size_t>(graph->stage_count()));
      for (size_t s = 0; s < optional.size(); ++s) optional[s] = random.percent(40);
      for (size_t i = 0; i < m; ++i) {
        if (!random.percent(chance)) continue;
        for (size_t s = 0; s < optional.size(); ++s) shape.skip[s * m + i] = optional[s] ? 1 : 0;
      }
    } else {
      for (uint8_t& skip : shape.skip) skip = random.percent(chance) ? 1 : 0;
    }
  }
  if (random.percent(50)) {
    shape.activation_bytes.resize(cells);
    const bool heavy = random.percent(50);
    const int64_t highest = random.pick({3, 100, 1 << 20});
    std::vector<int64_t> size(m);  // of the microbatch, if its stages have sizes in common
    for (int64_t& s : size) s = random.heavy_tailed(highest);
    const bool common = random.percent(50);
    for (size_t k = 0; k < cells; ++k) {
      int64_t& bytes = shape.activation_bytes[k];
      bytes = heavy ? random.heavy_tailed(highest) : random.between(0, highest);
      if (common) bytes = size[k % m] + bytes / 8;
    }
  }
  std::shared_ptr<const StepTasks> tasks;
  if (!StepTasks::create(std::move(graph), std::move(shape), tasks).ok()) std::abort();
  return tasks;
}

/// The most that one microbatch holds on the rank.
Amount least_cap(const StepTasks& tasks, RankId rank) {
  Amount least;
  for (int32_t k = 0; k < tasks.microbatches(); ++k) {
    Amount need;
    for (StageId s : tasks.graph().chunks(rank)) {
      if (tasks.backward(s, MicrobatchId(k))) need += {1, tasks.held_bytes(s, MicrobatchId(k))};
    }
    least = Amount::max(least, need);
  }
  return least;
}

std::vector<Cap> random_caps(Splitmix& random, const StepTasks& tasks, bool only_tight,
                             RandomCase& out) {
  const int64_t limited = only_tight ? random.between(1, 3) : random.between(0, 3);
  if (limited == 0) return {};  // defaults
  const int64_t most = only_tight ? 0 : random.pick({0, 0, 1, 4, 20});
  std::vector<Cap> caps;
  for (int32_t r = 0; r < tasks.graph().ranks(); ++r) {
    const Amount least = least_cap(tasks, RankId(r));
    const int64_t extra = random.between(0, most);
    // 0 would mean "no limit", so a rank that holds nothing gets 1.
    const int64_t slots = std::max<int64_t>(1, least.slots + extra);
    const int64_t bytes = std::max<int64_t>(1, least.bytes + least.bytes * extra / 4);
    Cap& cap = caps.emplace_back();
    if (limited != 2) cap.slots = slots;
    if (limited != 1) cap.bytes = bytes;
    out.tight = out.tight || (extra == 0 && least.slots > 0);
  }
  return caps;
}

Policy random_policy(Splitmix& random, bool only_tight) {
  Policy policy;
  policy.deterministic = random.percent(50);
  policy.order = !only_tight && random.percent(20) ? core::Order::kStrict : core::Order::kReady;
  policy.credits = random.pick({0, 0, 1, 2, 5});
  if (random.percent(50)) policy.hold_permille = random.pick({50, 250, 1000, 5000});
  return policy;
}

/// A distribution of durations. The value of a key is always the same: no state.
struct Spread {
  uint64_t seed = 0;
  int64_t typical_ns = 0;
  int64_t jitter_percent = 0;  // of typical_ns, to both sides
  int64_t slow_percent = 0;    // this share takes 20 times as long
  int64_t none_percent = 0;    // this share takes no time

  [[nodiscard]] int64_t of(uint64_t key) const {
    Splitmix random(mix(seed ^ key));
    const int64_t wide = typical_ns * jitter_percent / 100;
    const int64_t value = std::max<int64_t>(0, typical_ns + random.between(-wide, wide));
    if (random.percent(none_percent)) return 0;
    return random.percent(slow_percent) ? 20 * value : value;
  }
};

Spread random_spread(Splitmix& random, int64_t typical_ns) {
  Spread spread;
  spread.seed = random.next();
  spread.typical_ns = typical_ns;
  spread.jitter_percent = random.pick({0, 20, 100, 200});
  spread.slow_percent = random.pick({0, 0, 5, 20});
  spread.none_percent = random.pick({0, 0, 10, 50});
  return spread;
}

Timing random_timing(Splitmix& random, const StageGraph& graph) {
  Timing timing;
  // A bit less or more than predicted (holding), or nothing to do with it.
  const bool as_predicted = random.percent(60);
  const Spread noise = random_spread(random, 1000);
  std::vector<core::Stage> stages;
  for (int32_t s = 0; s < graph.stage_count(); ++s) stages.push_back(graph.stage(StageId(s)));
  timing.task_ns = [=](const Task& task) {
    const core::Stage& stage = stages[task.stage.index()];
    int64_t ns = 1000;
    if (as_predicted) {
      ns = task.kind == TaskKind::kForward ? stage.forward_ns : 0;
      if (task.kind == TaskKind::kInputGradient || task.kind == TaskKind::kBackward) {
        ns += stage.input_gradient_ns;
      }
      if (task.kind == TaskKind::kWeightGradient || task.kind == TaskKind::kBackward) {
        ns += stage.weight_gradient_ns;
      }
    }
    const auto key = static_cast<uint64_t>(task.stage.value) << 32 |
                     static_cast<uint64_t>(task.microbatch.value) << 8 |
                     static_cast<uint64_t>(task.kind);
    return ns * noise.of(key) / 1000;
  };
  const auto of_message = [](Spread spread) {
    return [=](EdgeId e, Direction direction, MicrobatchId i) {
      return spread.of(static_cast<uint64_t>(e.value) << 32 | static_cast<uint64_t>(i.value) << 8 |
                       static_cast<uint64_t>(direction));
    };
  };
  timing.message_ns = of_message(random_spread(random, random.pick({0, 100, 1000, 5000, 20000})));
  timing.announce_ns = of_message(random_spread(random, random.pick({0, 0, 100, 3000})));
  const Spread credit = random_spread(random, random.pick({0, 100, 5000}));
  timing.credit_ns = [=](EdgeId e, int64_t serial) {
    return credit.of(static_cast<uint64_t>(e.value) << 32 | static_cast<uint64_t>(serial));
  };
  return timing;
}

}  // namespace

RandomCase make_random_case(uint64_t seed, CaseKind kind) {
  Splitmix random(mix(seed));
  const bool only_tight = kind == CaseKind::kTight;
  RandomCase out;
  const auto graph = make_random_graph(random, only_tight);
  out.setup.tasks = random_step(random, graph);
  out.setup.hint = make_random_hint(random, *out.setup.tasks);
  out.setup.policy = random_policy(random, only_tight);
  out.setup.caps = random_caps(random, *out.setup.tasks, only_tight, out);
  out.setup.timing = random_timing(random, *graph);
  out.setup.pull_at_once = random.percent(50);
  out.chunks_max = graph->chunks_max();
  for (int32_t s = 0; s < graph->stage_count(); ++s) {
    out.join = out.join || graph->in_edges(StageId(s)).size() > 1;
  }
  const auto& skip = out.setup.tasks->shape().skip;
  out.skips = std::find(skip.begin(), skip.end(), 1) != skip.end();
  return out;
}

std::string describe(const RandomCase& random_case) {
  const VirtualPipeline& setup = random_case.setup;
  const StageGraph& graph = setup.tasks->graph();
  const StepShape& shape = setup.tasks->shape();
  std::string text = std::to_string(graph.ranks()) + " ranks, " +
                     std::to_string(shape.microbatches) + " microbatches" +
                     (shape.mode == core::StepMode::kTrain ? "" : ", forward only") + ", hint " +
                     std::string(setup.hint->name()) +
                     (setup.policy.order == core::Order::kStrict ? ", strict" : ", ready") +
                     (setup.policy.deterministic ? ", deterministic" : "") + ", credits " +
                     std::to_string(setup.policy.credits) + ", hold " +
                     std::to_string(setup.policy.hold_permille) + "\n  stages:";
  for (int32_t s = 0; s < graph.stage_count(); ++s) {
    const core::Stage& stage = graph.stage(StageId(s));
    text += " " + std::to_string(s) + "@" + std::to_string(stage.rank.value) +
            (stage.loss ? "L" : "") + (stage.frozen ? "z" : "") +
            (stage.input_gradient ? "i" : "") + (stage.fused_only ? "u" : "");
  }
  text += "\n  edges:";
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const core::Edge& edge = graph.edge(EdgeId(e));
    text += " " + std::to_string(edge.from.value) + (edge.gradient ? "->" : "=>") +
            std::to_string(edge.to.value);
  }
  text += "\n  caps (slots/bytes):";
  for (const Cap& cap : setup.caps) {
    text += " " + std::to_string(cap.slots) + "/" + std::to_string(cap.bytes);
  }
  text += setup.caps.empty() ? " default" : "";
  text += random_case.skips ? "\n  with a skip mask" : "";
  return text + (shape.activation_bytes.empty() ? "" : "\n  with bytes per microbatch");
}

}  // namespace rrfp::test
