// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/record.h"

#include <string>

namespace rrfp::sim {

using core::Status;

Outcome record(const Scenario& scenario, std::span<const int32_t> numbers, int64_t step,
               trace::Timeline& out) {
  const core::StageGraph& graph = scenario.plans.front()->tasks->graph();
  out.ranks.resize(static_cast<size_t>(graph.ranks()));
  const auto number = [&](core::MicrobatchId i) { return core::MicrobatchId(numbers[i.index()]); };
  Observer observer;
  observer.task = [&](core::RankId rank, const core::Task& task, int64_t ready_ns, int64_t begin_ns,
                      int64_t end_ns) {
    out.ranks[rank.index()].tasks.push_back({trace::span_kind(task.kind), task.stage,
                                             number(task.microbatch), step, ready_ns, begin_ns,
                                             end_ns});
  };
  observer.idle = [&](core::RankId rank, core::IdleReason reason, bool group, int64_t begin_ns,
                      int64_t end_ns) {
    const trace::IdleKind kind = group ? trace::IdleKind::kGroup : trace::idle_kind(reason);
    out.ranks[rank.index()].idles.push_back({kind, step, begin_ns, end_ns});
  };
  observer.message = [&](core::EdgeId id, core::Direction direction, core::MicrobatchId i,
                         int64_t sent_ns, int64_t arrived_ns) {
    const core::Edge& edge = graph.edge(id);
    const bool forward = direction == core::Direction::kForward;
    const core::StageId from = forward ? edge.from : edge.to;
    const core::StageId to = forward ? edge.to : edge.from;
    const core::RankId rank = graph.stage(to).rank;
    out.ranks[rank.index()].messages.push_back(
        {direction, from, to, number(i), graph.stage(from).rank, rank, step, sent_ns, arrived_ns});
  };
  return simulate(scenario, observer);
}

std::vector<trace::StageName> stage_names(const Realization& step, const Layout& layout) {
  std::vector<trace::StageName> names;
  const int32_t encoder = step.encoder_stages() * layout.chunks;
  if (!step.preset().images || encoder == 0) return names;
  const int32_t model = step.devices() * layout.chunks;  // of which two streams have a copy each
  for (int32_t s = 0; s < layout.stages(step); ++s) {
    const int32_t k = s % model;
    const std::string branch = k < encoder ? "encoder" : "language";
    names.push_back({branch + "." + std::to_string(k < encoder ? k : k - encoder), branch});
  }
  return names;
}

Status draw_hint(const std::shared_ptr<const core::StepTasks>& tasks, const core::Hint& hint,
                 trace::Timeline& out) {
  constexpr int64_t kUnitNs = 1'000'000;
  core::Policy policy;
  policy.order = core::Order::kStrict;
  policy.record_ready = true;
  const bool obeyed = core::check_strict(tasks, hint, policy, {}).ok();
  if (!obeyed) policy.order = core::Order::kReady;
  const core::Cap no_limit = {core::Ledger::kUnlimited, core::Ledger::kUnlimited};
  const std::vector<core::Cap> caps(static_cast<size_t>(tasks->graph().ranks()), no_limit);
  Scenario scenario;
  if (Status s = make_plans(tasks, hint, policy, caps, scenario.plans); !s.ok()) return s;
  scenario.durations = Durations(tasks->graph().stage_count(), tasks->microbatches());
  for (int32_t s = 0; s < tasks->graph().stage_count(); ++s) {
    for (int32_t m = 0; m < tasks->microbatches(); ++m) {
      for (const auto kind : {core::TaskKind::kForward, core::TaskKind::kInputGradient,
                              core::TaskKind::kWeightGradient}) {
        scenario.durations.at({core::StageId(s), core::MicrobatchId(m), kind}) = kUnitNs;
      }
    }
  }
  trace::Timeline timeline;
  (void)record(scenario, data_order(tasks->microbatches()), 0, timeline);
  timeline.title = std::string(hint.name()) + (obeyed ? "" : ", as a ranking");
  timeline.source = "simulation";
  timeline.facts = {{"hint", std::string(hint.name())}, {"order", obeyed ? "strict" : "ready"}};
  out = std::move(timeline);
  return {};
}

}  // namespace rrfp::sim
