// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_graph.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>

namespace rrfp::test {

using core::Edge;
using core::EdgeId;
using core::Hint;
using core::MicrobatchId;
using core::PrioritizedTask;
using core::RankId;
using core::Stage;
using core::StageGraph;
using core::StageId;
using core::StepTasks;
using core::Task;
using core::TaskKind;

namespace {

/// The generator only makes valid input; anything else is a mistake in the test itself.
void must(const core::Status& status) {
  if (!status.ok()) std::abort();
}

using Links = std::vector<std::pair<int32_t, int32_t>>;

/// Edges from lower to higher numbers, so that there is no cycle.
Links random_links(Splitmix& random, int32_t stages) {
  Links links;
  const auto link = [&](int32_t from, int32_t to) {
    if (from >= 0 && from < to) links.emplace_back(from, to);
  };
  const int64_t shape = random.between(0, 5);
  const int32_t branch = random.between32(1, std::max(1, stages - 1));
  for (int32_t s = 1; s < stages; ++s) {
    switch (shape) {
      case 0: link(s - 1, s); break;  // chain
      case 1:
        link(random.between32(std::max(0, s - 3), s - 1), s);
        break;  // tree that branches out
      case 2:   // diamonds: a b b a b b ...
        if (s % 3 == 1) link(s - 1, s);
        if (s % 3 == 2) link(s - 2, s);
        if (s % 3 == 0) link(s - 2, s), link(s - 1, s);
        break;
      case 3:  // branches that join, such as an encoder and a text embedding
        if (s == branch + 1) link(branch, s);
        if (s != branch) link(s == branch + 1 ? random.between32(0, branch - 1) : s - 1, s);
        break;
      case 4:  // tree that joins: numbers are turned round, so every stage feeds one later stage
        link(s - 1, random.between32(s, std::min(stages - 1, s + 2)));
        break;
      default:  // anything
        for (int64_t k = random.between(0, 2); k >= 0; --k) {
          if (!random.percent(15)) link(random.between32(0, s - 1), s);
        }
        break;
    }
  }
  if (stages > 2 && random.percent(20)) {  // a skip connection
    const int32_t to = random.between32(2, stages - 1);
    link(random.between32(0, to - 2), to);
  }
  return links;
}

std::vector<Stage> random_stages(Splitmix& random, int32_t count) {
  const int64_t frozen = random.percent(30) ? 40 : 0;
  const int64_t fused = random.percent(25) ? 50 : 0;
  const int64_t wanted = random.percent(20) ? 50 : 0;
  const int64_t bytes = random.pick({0, 1, 8, 1000});
  const bool even = random.percent(50);
  std::vector<Stage> stages(static_cast<size_t>(count));
  for (Stage& stage : stages) {
    stage.frozen = random.percent(frozen);
    stage.fused_only = random.percent(fused);
    stage.input_gradient = random.percent(wanted);
    stage.activation_bytes = even ? bytes : random.between(0, bytes);
    if (random.percent(90)) stage.forward_ns = random.between(0, 3000);
    if (random.percent(90)) stage.input_gradient_ns = random.between(0, 3000);
    if (random.percent(90)) stage.weight_gradient_ns = random.between(0, 3000);
  }
  return stages;
}

/// By stage. Every rank gets a stage.
std::vector<int32_t> random_placement(Splitmix& random, int32_t ranks, int32_t stages) {
  std::vector<int32_t> rank(static_cast<size_t>(stages));
  const int64_t how = random.between(0, 3);
  for (int32_t s = 0; s < stages; ++s) {
    int32_t& r = rank[static_cast<size_t>(s)];
    const int32_t turn = s / ranks;
    switch (how) {
      case 0: r = s % ranks; break;                                          // loop
      case 1: r = turn % 2 == 0 ? s % ranks : ranks - 1 - s % ranks; break;  // V, W, ...
      case 2: r = static_cast<int32_t>(int64_t{s} * ranks / stages); break;  // blocks
      default: r = s < ranks ? s : random.between32(0, ranks - 1); break;
    }
  }
  if (how == 3) random.shuffle(rank);
  return rank;
}

}  // namespace

std::shared_ptr<const StageGraph> make_random_graph(Splitmix& random, bool chunky) {
  const int32_t ranks = random.between32(1, 6);
  int32_t stages = ranks;
  if (chunky || random.percent(70)) stages = random.between32(ranks + 1, 3 * ranks + 1);
  auto graph = std::make_shared<StageGraph>(ranks);
  const Links links = random_links(random, stages);
  std::vector<bool> feeds(static_cast<size_t>(stages), false);
  for (const auto& [from, to] : links) feeds[static_cast<size_t>(from)] = true;

  const std::vector<int32_t> placement = random_placement(random, ranks, stages);
  std::vector<Stage> all = random_stages(random, stages);
  const int64_t dead_ends = random.percent(10) ? 30 : 0;
  for (size_t s = 0; s < all.size(); ++s) {
    all[s].rank = RankId(placement[s]);
    all[s].loss = feeds[s] ? random.percent(4) : !random.percent(dead_ends);
    StageId id;
    must(graph->add_stage(all[s], id));
  }
  const int64_t without_gradient = random.percent(25) ? 30 : 0;
  for (const auto& [from, to] : links) {
    EdgeId id;
    must(graph->add_edge({StageId(from), StageId(to), !random.percent(without_gradient)}, id));
  }
  must(graph->seal());
  return graph;
}

namespace {

/// All tasks of the step, each backward as B or as I and W.
std::vector<Task> random_forms(Splitmix& random, const StepTasks& tasks) {
  const int64_t split = random.pick({0, 50, 100});
  std::vector<Task> all;
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      const StageId stage(s);
      const MicrobatchId i(k);
      if (tasks.takes_part(stage, i)) all.push_back({stage, i, TaskKind::kForward});
      if (!tasks.backward(stage, i)) continue;
      if (tasks.weight(stage, i) && random.percent(split)) {
        all.push_back({stage, i, TaskKind::kInputGradient});
        all.push_back({stage, i, TaskKind::kWeightGradient});
      } else {
        all.push_back({stage, i, TaskKind::kBackward});
      }
    }
  }
  return all;
}

/// An order of all tasks of the step in which each stands behind what it needs: taken rank by rank,
/// it can be obeyed strictly.
std::vector<Task> random_legal_order(Splitmix& random, const StepTasks& tasks) {
  std::vector<Task> waiting = random_forms(random, tasks);
  const bool in_turn = random.percent(70);  // weight gradients in injection order
  std::vector<Task> order;
  std::map<std::pair<StageId, MicrobatchId>, int> done;  // bits: 1 F, 2 B or I, 4 W
  const auto has = [&](StageId s, MicrobatchId i, int bit) {
    const auto at = done.find({s, i});
    return at != done.end() && (at->second & bit) != 0;
  };
  const auto weights_before = [&](const Task& t) {
    for (int32_t k = 0; in_turn && k < t.microbatch.value; ++k) {
      if (tasks.weight(t.stage, MicrobatchId(k)) && !has(t.stage, MicrobatchId(k), 4)) return false;
    }
    return true;
  };
  const auto ready = [&](const Task& t) {
    const auto& graph = tasks.graph();
    if (t.kind == TaskKind::kForward) {
      const auto ins = graph.in_edges(t.stage);
      return std::all_of(ins.begin(), ins.end(), [&](EdgeId e) {
        return !tasks.active(e, t.microbatch) || has(graph.edge(e).from, t.microbatch, 1);
      });
    }
    if (t.kind == TaskKind::kWeightGradient) {
      return has(t.stage, t.microbatch, 2) && weights_before(t);
    }
    const auto outs = graph.out_edges(t.stage);
    return has(t.stage, t.microbatch, 1) &&
           (t.kind == TaskKind::kInputGradient || weights_before(t)) &&
           std::all_of(outs.begin(), outs.end(), [&](EdgeId e) {
             return !tasks.returns(e, t.microbatch) || has(graph.edge(e).to, t.microbatch, 2);
           });
  };
  while (!waiting.empty()) {
    std::vector<size_t> can;
    for (size_t k = 0; k < waiting.size(); ++k) {
      if (ready(waiting[k])) can.push_back(k);
    }
    const size_t k = random.pick(std::span<const size_t>(can));
    const Task t = waiting[k];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(k));
    order.push_back(t);
    const bool weight = t.kind == TaskKind::kWeightGradient || t.kind == TaskKind::kBackward;
    const bool input = t.kind == TaskKind::kInputGradient || t.kind == TaskKind::kBackward;
    done[{t.stage, t.microbatch}] |=
        t.kind == TaskKind::kForward ? 1 : (input ? 2 : 0) | (weight ? 4 : 0);
  }
  return order;
}

/// Any order in which only the tasks of one (stage, microbatch) keep theirs.
std::vector<Task> random_wild_order(Splitmix& random, const StepTasks& tasks) {
  std::vector<Task> order = random_forms(random, tasks);
  random.shuffle(order);
  std::map<std::pair<StageId, MicrobatchId>, std::vector<size_t>> places;
  for (size_t k = 0; k < order.size(); ++k) {
    places[{order[k].stage, order[k].microbatch}].push_back(k);
  }
  for (const auto& [pair, at] : places) {
    std::vector<Task> own;
    for (size_t k : at) own.push_back(order[k]);
    std::sort(own.begin(), own.end());
    for (size_t k = 0; k < at.size(); ++k) order[at[k]] = own[k];
  }
  return order;
}

}  // namespace

std::shared_ptr<const Hint> make_random_hint(Splitmix& random, const StepTasks& tasks) {
  std::shared_ptr<const Hint> hint;
  const int64_t how = random.between(0, 9);
  if (how <= 5) {
    must(Hint::named(random.pick(Hint::general_names()), hint));
  } else if (how <= 8) {
    const std::vector<Task> order =
        how <= 7 ? random_legal_order(random, tasks) : random_wild_order(random, tasks);
    std::vector<std::vector<Task>> lists(static_cast<size_t>(tasks.graph().ranks()));
    for (const Task& t : order) lists[tasks.graph().stage(t.stage).rank.index()].push_back(t);
    must(Hint::lists(std::move(lists), hint));
  } else {
    const int64_t range = random.pick({0, 3, 1000});
    std::vector<PrioritizedTask> priorities;
    for (const Task& t : random_forms(random, tasks)) {
      priorities.push_back({t, random.between(-range, range)});
    }
    must(Hint::priorities(std::move(priorities), hint));
  }
  return hint;
}

}  // namespace rrfp::test
