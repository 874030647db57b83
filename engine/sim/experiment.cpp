// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/experiment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/core/named_policies.h"
#include "engine/sim/bound.h"
#include "engine/sim/random.h"
#include "engine/sim/record.h"

namespace rrfp::sim {

using core::Code;
using core::Order;
using core::Status;

namespace {

constexpr int32_t kSetUpSteps = 16;
constexpr int32_t kHistory = 3;
constexpr int32_t kHistoryWithEpisodes = 8;
constexpr std::string_view kPlan = "plan:";
constexpr double kNsPerMs = 1e6;
constexpr Layout kVLayout = {core::Placement::kV, 2, 1};
constexpr Layout kLinearLayout = {core::Placement::kLinear, 1, 1};

/// Seeds of steps that no caller means by a small number.
uint64_t other_seed(uint64_t seed, int64_t use, int64_t k) {
  return Key(seed, Draw::kCase, {use, k}).bits();
}

/// The name of the policy whose plan it is, or the hint itself.
std::string_view ranking_of(std::string_view hint) {
  return hint.starts_with(kPlan) ? hint.substr(kPlan.size()) : hint;
}

bool chooses(std::string_view hint) {
  return hint == "auto" || hint == "rf-d";
}

Replay replay_of(const Realization& step, const Layout& layout, std::span<const int32_t> order) {
  return {true_durations(step, layout, order), true_links(step, layout, order)};
}

Status no_way(double cap) {
  return {Code::kCapTooSmall,
          "no way to run the step within a cap of " + std::to_string(cap) + " times that of 1F1B"};
}

Status check(const ExperimentOptions& o) {
  const auto wrong = [](const std::string& what) { return Status{Code::kInvalidArgument, what}; };
  if (o.devices < 1 || o.devices > core::StageGraph::kRanksMax) {
    return wrong("stages is " + std::to_string(o.devices) + "; expected 1 to " +
                 std::to_string(core::StageGraph::kRanksMax));
  }
  if (o.microbatches < 1 || o.microbatches > core::StepTasks::kMicrobatchesMax) {
    return wrong("microbatches is " + std::to_string(o.microbatches) + "; expected 1 to " +
                 std::to_string(core::StepTasks::kMicrobatchesMax));
  }
  if (!(o.cap >= 0 && o.cap <= 1e6)) {
    return wrong("cap is " + std::to_string(o.cap) + "; expected 0 (no limit) to 1000000");
  }
  if (!(o.offload_ms >= 0 && o.offload_ms <= 1e6)) {
    return wrong("offload_ms is " + std::to_string(o.offload_ms) + "; expected 0 to 1000000");
  }
  if (o.replicas < 1 || o.replicas > 4096) {
    return wrong("replicas is " + std::to_string(o.replicas) + "; expected 1 to 4096");
  }
  if (o.group.size < 1 || o.group.size > 1024) {
    return wrong("the group's size is " + std::to_string(o.group.size) + "; expected 1 to 1024");
  }
  constexpr int32_t kHistoryMax = 1000;
  constexpr int64_t kDelayNsMax = int64_t{1000} * 1'000'000'000;
  if (o.history < 0 || o.history > kHistoryMax) {
    return wrong("history is " + std::to_string(o.history) + "; expected 0 to " +
                 std::to_string(kHistoryMax));
  }
  for (const int64_t ns : {o.runtime.dispatch_ns, o.runtime.report_ns}) {
    if (ns >= 0 && ns <= kDelayNsMax) continue;
    return wrong("dispatch_ns or report_ns is " + std::to_string(ns) + "; expected 0 to " +
                 std::to_string(kDelayNsMax));
  }
  if (o.traced != nullptr && o.injection == Injection::kTent) {
    return wrong("the microbatches of a trace have no sizes to be injected by");
  }
  if (chooses(o.hint) && o.order != Order::kReady) {
    return wrong("hint \"" + o.hint + "\" chooses the order itself; it goes with order ready only");
  }
  if (chooses(o.hint)) return {};
  std::shared_ptr<const core::Hint> hint;
  return core::Hint::named(ranking_of(o.hint), hint);
}

}  // namespace

Status Experiment::create(const ExperimentOptions& options, Experiment& out) {
  if (Status s = check(options); !s.ok()) return s;
  Experiment made;
  made.options_ = options;
  if (options.traced != nullptr) {
    made.options_.devices = options.traced->graph->ranks();
    made.options_.microbatches = options.traced->microbatches;
  } else if (options.hint == "auto") {
    if (Status s = made.choose_layout(); !s.ok()) return s;
  } else if (options.hint == "rf-d") {
    made.layout_ = kVLayout;
  } else {
    const core::ScheduleLayout layout = core::layout_of(ranking_of(options.hint));
    made.layout_ = {layout.placement, layout.chunks, layout.streams};
  }
  out = std::move(made);
  return {};
}

/// For each layout, the candidate that is best over all set-up steps; a candidate that was best by
/// luck in one of them does not count.
Status Experiment::choose_layout() {
  double best_ns = 0;
  for (const Layout& layout : {kVLayout, kLinearLayout}) {
    std::map<std::string, std::pair<int32_t, double>> sums;  // steps, and their time
    for (int32_t k = 0; k < kSetUpSteps; ++k) {
      const uint64_t seed = other_seed(0, 1, k);
      const Realization step(options_.preset, options_.devices, options_.microbatches, seed);
      const std::vector<int32_t> order = injection(step);
      const std::vector<Candidate> all = candidates(family(step, layout, order));
      const std::vector<Replay> replay = {replay_of(step, layout, order)};
      if (all.empty()) break;
      const Choice choice = choose(all, replay);
      for (size_t c = 0; c < all.size(); ++c) {
        auto& [count, sum_ns] = sums[all[c].name];
        ++count;
        sum_ns += static_cast<double>(choice.mean_ns[c]);
      }
    }
    for (const auto& [name, sum] : sums) {
      if (sum.first < kSetUpSteps || (best_ns != 0 && sum.second >= best_ns)) continue;
      best_ns = sum.second;
      layout_ = layout;
    }
  }
  return best_ns == 0 ? no_way(options_.cap) : Status();
}

std::vector<int32_t> Experiment::injection(const Realization& step) const {
  const core::NamedPolicy* policy = core::find_policy(ranking_of(options_.hint));
  const bool tent_of_hint = chooses(options_.hint) || (policy != nullptr && policy->tent);
  const bool tent = options_.injection == Injection::kOfHint
                        ? tent_of_hint
                        : options_.injection == Injection::kTent;
  return tent ? tent_order(step.sizes()) : data_order(step.microbatches());
}

core::Policy Experiment::base() const {
  const Preset& preset = options_.preset;
  core::Policy base;
  base.deterministic = options_.deterministic;
  base.record_ready = true;
  base.hop_ns = std::llround((preset.latency_ms + preset.serialize_ms) * kNsPerMs);
  base.offload_ns_per_mib =
      std::llround(options_.offload_ms * kNsPerMs * (1 << 20) / kBytesPerSize);
  return base;
}

core::Cap Experiment::cap_of(int64_t native) const {
  const double bytes = options_.cap * static_cast<double>(native);
  return {core::Ledger::kUnlimited,
          options_.cap == 0 ? core::Ledger::kUnlimited : std::llround(bytes)};
}

Family Experiment::family(const Realization& step, const Layout& layout,
                          const std::vector<int32_t>& injection) const {
  Family family;
  family.tasks = step_tasks(step, layout, injection);
  family.caps.assign(static_cast<size_t>(step.devices()), cap_of(sim::native_bytes(step)));
  family.base = base();
  family.predicted = {predicted_durations(step, layout, injection),
                      predicted_links(step, injection)};
  return family;
}

/// A measured step: every microbatch counts as one of size 1, in the order of its number.
Status Experiment::prepare_traced(uint64_t seed, Prepared& out) const {
  const Traced& traced = *options_.traced;
  out.step = nullptr;
  out.traced = &traced.steps[seed % traced.steps.size()];
  out.injection = data_order(traced.microbatches);
  core::StepShape shape;
  shape.microbatches = traced.microbatches;
  Family& family = out.family;
  if (Status s = core::StepTasks::create(traced.graph, std::move(shape), family.tasks); !s.ok()) {
    return s;
  }
  family.caps.assign(static_cast<size_t>(traced.graph->ranks()), cap_of(native_bytes(out)));
  family.base = base();
  family.base.hop_ns = traced.message_ns;
  family.predicted.durations = traced.predicted;
  family.predicted.links.latency_ns = static_cast<double>(traced.message_ns);
  std::vector<Replay> replays;
  if (options_.hint == "rf-d") {
    replays.push_back(family.predicted);
  } else if (options_.hint == "auto") {
    // The other steps; there may be none but this one.
    for (const Durations& step : traced.steps) {
      if (traced.steps.size() > 1 && &step == out.traced) continue;
      replays.push_back({step, family.predicted.links});
    }
  }
  return decide(out, replays);
}

Status Experiment::prepare(uint64_t seed, Prepared& out) const {
  if (options_.traced != nullptr) return prepare_traced(seed, out);
  const auto step = std::make_shared<const Realization>(options_.preset, options_.devices,
                                                        options_.microbatches, seed);
  out.step = step;
  out.layout = layout_;
  out.injection = injection(*step);
  out.family = family(*step, layout_, out.injection);
  std::vector<Realization> past;
  std::vector<Replay> replays;
  if (options_.hint == "rf-d") {
    replays.push_back(out.family.predicted);
  } else if (options_.hint == "auto") {
    const int32_t usual = options_.preset.episode_share > 0 ? kHistoryWithEpisodes : kHistory;
    const int32_t history = options_.history > 0 ? options_.history : usual;
    past.reserve(static_cast<size_t>(history));  // links refer to them
    for (int32_t k = 0; k < history; ++k) {
      past.emplace_back(options_.preset, options_.devices, options_.microbatches, seed,
                        other_seed(seed, 3, k));
      replays.push_back(replay_of(past.back(), layout_, out.injection));
    }
  }
  return decide(out, replays);
}

Status Experiment::decide(Prepared& out, const std::vector<Replay>& replays) const {
  out.why.clear();
  if (options_.hint.starts_with(kPlan)) {
    return make_plan(out.family, options_.hint.substr(kPlan.size()), options_.order, out.candidate);
  }
  if (!chooses(options_.hint)) {
    return make_candidate(out.family, options_.hint, options_.order, out.candidate);
  }
  std::vector<Candidate> all = candidates(out.family);
  if (options_.hint == "rf-d") {
    // Nothing is measured: a plan without jitter, which is left when it turns out late.
    std::erase_if(all, [](const Candidate& c) {
      return c.policy.order == Order::kStrict && c.policy.late_ns == 0;
    });
  }
  if (all.empty()) return no_way(options_.cap);
  const Choice choice = choose(all, replays);
  out.candidate = std::move(all[choice.best]);
  out.why = choice.why;
  return {};
}

int64_t Experiment::native_bytes(const Prepared& prepared) const {
  if (prepared.step != nullptr) return sim::native_bytes(*prepared.step);
  // Strict 1F1B holds a microbatch for every rank.
  const core::StageGraph& graph = *options_.traced->graph;
  return std::llround(kBytesPerSize) * graph.chunks_max() *
         std::min(graph.ranks(), options_.traced->microbatches);
}

Scenario Experiment::scenario(const Prepared& prepared) const {
  Scenario scenario;
  scenario.plans = prepared.candidate.plans;
  if (prepared.step != nullptr) {
    scenario.durations = true_durations(*prepared.step, prepared.layout, prepared.injection);
    scenario.links = true_links(*prepared.step, prepared.layout, prepared.injection);
    scenario.seed = prepared.step->noise_seed();
  } else {
    scenario.durations = *prepared.traced;
    scenario.links = prepared.family.predicted.links;
  }
  scenario.group = options_.group;
  scenario.runtime = options_.runtime;
  return scenario;
}

Status Experiment::record(uint64_t seed, trace::Timeline& out) const {
  Prepared prepared;
  if (Status s = prepare(seed, prepared); !s.ok()) return s;
  trace::Timeline timeline;
  const Outcome outcome =
      sim::record(scenario(prepared), prepared.injection, static_cast<int64_t>(seed), timeline);
  constexpr const char* kOrders[] = {"ready", "strict", "paired"};
  timeline.title = prepared.candidate.name;
  timeline.source = "simulation";
  timeline.facts = {
      {"preset", options_.traced != nullptr ? "a trace" : std::string(options_.preset.name)},
      {"hint", options_.hint},
      {"order", kOrders[static_cast<size_t>(prepared.candidate.policy.order)]},
      {"cap", std::to_string(options_.cap)},
      {"seed", std::to_string(seed)}};
  if (!outcome.complete) timeline.facts.emplace_back("error", outcome.error);
  if (prepared.step != nullptr) timeline.stages = stage_names(*prepared.step, prepared.layout);
  out = std::move(timeline);
  return {};
}

Status Experiment::run(uint64_t seed, StepResult& out, const Observer& observer) const {
  StepResult result;
  for (int32_t replica = 0; replica < options_.replicas; ++replica) {
    Prepared prepared;
    const uint64_t own = replica == 0 ? seed : other_seed(seed, 4, replica);
    if (Status s = prepare(own, prepared); !s.ok()) return s;
    Outcome outcome = simulate(scenario(prepared), replica == 0 ? observer : Observer{});
    if (prepared.step != nullptr) {
      result.bound_ns = std::max(result.bound_ns, lower_bound_ns(*prepared.step));
    }
    const bool slowest = replica == 0 || !outcome.complete ||
                         (result.outcome.complete && outcome.makespan_ns > result.makespan_ns);
    if (!slowest) continue;
    result.makespan_ns = outcome.makespan_ns;
    result.native_bytes = native_bytes(prepared);
    result.chosen = prepared.candidate.name;
    result.why = prepared.why;
    result.outcome = std::move(outcome);
  }
  out = std::move(result);
  return {};
}

}  // namespace rrfp::sim
