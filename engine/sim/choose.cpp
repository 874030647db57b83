// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/choose.h"

#include <algorithm>
#include <cstdio>

namespace rrfp::sim {

using core::Order;
using core::Placement;
using core::Status;

namespace {

// A strict order is left when it is late by this many times what a microbatch takes on a rank.
constexpr int64_t kLateStages = 2;
constexpr double kNoticeable = 0.001;

/// True if each rank's order, obeyed strictly, stays within its cap.
bool within_caps(const Plans& plans, const std::vector<core::Cap>& caps) {
  for (size_t r = 0; r < plans.size(); ++r) {
    core::Cap cap = caps.empty() ? core::Cap() : caps[r];
    if (cap.slots == 0 && cap.bytes == 0) cap = core::default_cap(*plans[r]);
    core::Amount held;
    core::Amount most;
    for (const core::PlannedTask& task : plans[r]->order) {
      const core::CellPlan& cell = plans[r]->cell(task.chunk, task.microbatch);
      const bool frees = task.kind == core::TaskKind::kBackward ||
                         (task.kind == core::TaskKind::kInputGradient && !cell.weight) ||
                         task.kind == core::TaskKind::kWeightGradient;
      if (task.kind == core::TaskKind::kForward) held += plans[r]->held(cell);
      if (frees) held -= plans[r]->held(cell);
      most = core::Amount::max(most, held);
    }
    if (cap.slots > 0 && most.slots > cap.slots) return false;
    if (cap.bytes > 0 && most.bytes > cap.bytes) return false;
  }
  return true;
}

/// The step with the times at which a strict candidate would start each task if all went as
/// predicted.
std::shared_ptr<const core::StepTasks> timed(const Family& family, const Candidate& strict) {
  core::StepShape shape = family.tasks->shape();
  const auto m = static_cast<size_t>(shape.microbatches);
  shape.planned_ns.assign(3 * static_cast<size_t>(family.tasks->graph().stage_count()) * m, 0);
  Observer observer;
  observer.task = [&](core::RankId, const core::Task& task, int64_t, int64_t begin_ns, int64_t) {
    const size_t kind = task.kind == core::TaskKind::kForward          ? 0
                        : task.kind == core::TaskKind::kWeightGradient ? 2
                                                                       : 1;
    shape.planned_ns[3 * (task.stage.index() * m + task.microbatch.index()) + kind] = begin_ns;
  };
  Scenario scenario;
  scenario.plans = strict.plans;
  scenario.durations = family.predicted.durations;
  scenario.links = family.predicted.links;
  if (!simulate(scenario, observer).complete) return nullptr;
  std::shared_ptr<const core::StepTasks> out;
  const auto graph = std::shared_ptr<const core::StageGraph>(family.tasks, &family.tasks->graph());
  return core::StepTasks::create(graph, std::move(shape), out).ok() ? out : nullptr;
}

/// A strict candidate that is left when it is late. `then` ranks by the same schedule from then on.
bool make_late(const Family& family, const Candidate& strict, std::string_view then,
               Candidate& out) {
  int64_t stage_ns = 0;
  for (const auto& plan : strict.plans) stage_ns = std::max(stage_ns, plan->stage_ns);
  if (stage_ns == 0) return false;  // nothing is predicted
  out.tasks = timed(family, strict);
  if (out.tasks == nullptr) return false;
  out.name = strict.name + " until late";
  if (!core::Hint::named(then, out.hint).ok()) return false;
  out.policy = family.base;
  out.policy.order = Order::kStrict;
  out.policy.late_ns = kLateStages * stage_ns;
  return make_plans(out.tasks, *out.hint, out.policy, family.caps, out.plans).ok();
}

bool is_chain_in(const core::StageGraph& graph, Placement placement, int32_t chunks) {
  const int32_t p = graph.ranks();
  if (graph.stage_count() != p * chunks || graph.edge_count() != graph.stage_count() - 1) {
    return false;
  }
  for (int32_t s = 0; s < graph.stage_count(); ++s) {
    const int32_t rank = graph.stage(core::StageId(s)).rank.value;
    if (rank != (placement == Placement::kV && s >= p ? 2 * p - 1 - s : s % p)) return false;
  }
  return true;
}

}  // namespace

Status make_candidate(const Family& family, std::string_view name, Order order, Candidate& out) {
  out.name = std::string(name);
  if (Status s = core::Hint::named(name, out.hint); !s.ok()) return s;
  out.policy = family.base;
  out.policy.order = order;
  out.tasks = family.tasks;
  return make_plans(family.tasks, *out.hint, out.policy, family.caps, out.plans);
}

Status make_plan(const Family& family, std::string_view policy, Order order, Candidate& out) {
  Candidate planner;
  if (Status s = make_candidate(family, policy, Order::kReady, planner); !s.ok()) return s;
  std::vector<std::vector<core::Task>> lists(planner.plans.size());
  Observer observer;
  observer.task = [&](core::RankId rank, const core::Task& task, int64_t, int64_t, int64_t) {
    lists[rank.index()].push_back(task);
  };
  Scenario scenario;
  scenario.plans = planner.plans;
  scenario.durations = family.predicted.durations;
  scenario.links = family.predicted.links;
  const Outcome outcome = simulate(scenario, observer);
  if (!outcome.complete) return {core::Code::kBadOrder, outcome.error};
  out.name = "plan of " + std::string(policy);
  if (Status s = core::Hint::lists(std::move(lists), out.hint); !s.ok()) return s;
  out.policy = family.base;
  out.policy.order = order;
  out.policy.reserve_permille = planner.plans.front()->policy.reserve_permille;
  out.tasks = family.tasks;
  return make_plans(family.tasks, *out.hint, out.policy, family.caps, out.plans);
}

std::vector<Candidate> candidates(const Family& family) {
  std::vector<Candidate> all;
  const auto ready = [&](std::string_view name) {
    Candidate c;
    if (make_candidate(family, name, Order::kReady, c).ok()) all.push_back(std::move(c));
  };
  const auto strict = [&](std::string_view schedule, std::string_view then) {
    Candidate c;
    if (!make_candidate(family, schedule, Order::kStrict, c).ok()) return;
    if (!within_caps(c.plans, family.caps)) return;
    c.name += " strict";
    Candidate late;
    const bool has_late = make_late(family, c, then, late);
    all.push_back(std::move(c));
    if (has_late) all.push_back(std::move(late));
  };
  const core::StageGraph& graph = family.tasks->graph();
  if (is_chain_in(graph, Placement::kV, 2)) {
    ready("rf-m");
    ready("rf-v");
    ready("rf-mt");
    ready("rf-h");
    ready("rf-h2");
    strict("zb-v", "rf-m");
  } else if (is_chain_in(graph, Placement::kLinear, 1)) {
    ready("rf-1");
    ready("bfw-sort");
    ready("zb-h2");
    strict("zb-h1", "rf-1");
    strict("zb-h2", "zb-h2");
  } else {
    ready("bfw");
    ready("zb-h1");
    ready("1f1b");
  }
  return all;
}

Choice choose(std::span<const Candidate> candidates, std::span<const Replay> replays) {
  Choice choice;
  Scenario scenario;
  for (size_t c = 0; c < candidates.size(); ++c) {
    scenario.plans = candidates[c].plans;
    int64_t sum_ns = 0;
    for (const Replay& replay : replays) {
      scenario.durations = replay.durations;
      scenario.links = replay.links;
      const Outcome outcome = simulate(scenario);
      // A candidate that cannot finish is never chosen.
      sum_ns += outcome.complete ? outcome.makespan_ns : INT64_MAX / 1024;
    }
    choice.mean_ns.push_back(sum_ns / static_cast<int64_t>(replays.size()));
    const auto best = static_cast<double>(choice.mean_ns[choice.best]);
    if (static_cast<double>(choice.mean_ns[c]) < best * (1 - kNoticeable)) choice.best = c;
  }
  choice.why = candidates[choice.best].name + " of";
  for (size_t c = 0; c < candidates.size(); ++c) {
    char text[64];
    std::snprintf(text, sizeof text, " %.3f ms", static_cast<double>(choice.mean_ns[c]) / 1e6);
    choice.why += (c == 0 ? " " : ", ") + candidates[c].name + text;
  }
  choice.why += "; simulated on " + std::to_string(replays.size()) + " measured steps";
  return choice;
}

}  // namespace rrfp::sim
