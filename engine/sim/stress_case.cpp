// SPDX-License-Identifier: Apache-2.0
//
// Random policies, caps, timing and faults, and the case as a whole.
#include "engine/sim/stress_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace rrfp::sim {

using core::Amount;
using core::Cap;
using core::EdgeId;
using core::MicrobatchId;
using core::Order;
using core::Policy;
using core::RankId;
using core::StageId;
using core::StepShape;
using core::StepTasks;
using core::TaskKind;

namespace {

// The parts of a case that draw their own numbers.
enum Part : int64_t { kStep, kPolicy, kHint, kCaps, kTimes, kLinks, kRuntime };

constexpr int64_t kTypicalNs = 1'000'000;

/// What copying must cost per MiB so that a mean activation takes this share of the computing that
/// it could hide behind.
int64_t copy_speed(const StepTasks& tasks, double share) {
  int64_t bytes = 0;
  int64_t ns = 0;
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    const auto [forward_ns, input_gradient_ns, weight_gradient_ns] = tasks.stage_ns(StageId(s));
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      bytes += tasks.held_bytes(StageId(s), MicrobatchId(k));
      ns += (forward_ns + input_gradient_ns + weight_gradient_ns) / 1000 *
            tasks.cost_permille(StageId(s), MicrobatchId(k));
    }
  }
  if (bytes == 0) return 0;
  return static_cast<int64_t>(share * static_cast<double>(ns) / static_cast<double>(bytes) *
                              (1 << 20));
}

Policy random_policy(Dice& dice, const StepTasks& tasks, bool offload, StressFocus focus) {
  Policy policy;
  const int64_t order = focus == StressFocus::kTightGraphs ? 0 : dice.between(0, 99);
  policy.order = order < 75 ? Order::kReady : Order::kStrict;
  if (order >= 85) policy.late_ns = dice.pick({1, 100'000, 1'000'000, 5'000'000, 50'000'000});
  policy.deterministic = dice.percent(50);
  policy.credits = policy.late_ns > 0 ? 0 : dice.pick({0, 0, 0, 1, 2, 5});
  if (dice.percent(45)) policy.hold_permille = dice.pick({50, 250, 1000, 5000});
  if (policy.hold_permille > 0) policy.hop_ns = dice.pick({0, 50'000});
  if (dice.percent(40)) policy.roomy_permille = dice.pick({100, 500, 1000});
  policy.reserve_permille = dice.pick({0, 0, 100, 500, Policy::kNoReserve});
  if (offload || (focus == StressFocus::kAll && dice.percent(25))) {
    policy.offload_ns_per_mib = copy_speed(tasks, dice.pick({0.01, 0.1, 0.3, 0.7}));
  }
  policy.record_ready = dice.percent(30);
  return policy;
}

/// Offloading wants one activation more than a chunk each.
int64_t least_offload_bytes(const StepTasks& tasks, RankId rank) {
  int64_t largest = 0;
  const auto chunks = tasks.graph().chunks(rank);
  for (StageId s : chunks) {
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      largest = std::max(largest, tasks.held_bytes(s, MicrobatchId(k)));
    }
  }
  return largest * static_cast<int64_t>(chunks.size() + 1);
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

/// `strict_peak`: what a strict order holds, by rank; empty if the order is free.
std::vector<Cap> random_caps(Dice& dice, const StepTasks& tasks,
                             const std::vector<Amount>& strict_peak, bool offload,
                             StressFocus focus, StressCase& out) {
  const bool tight = focus == StressFocus::kTightGraphs;
  const int64_t limited = offload ? 9 : dice.between(tight ? 1 : 0, 9);
  if (limited == 0) return {};
  const bool least_only = tight || dice.percent(35);
  std::vector<Cap> caps;
  for (int32_t r = 0; r < tasks.graph().ranks(); ++r) {
    Amount least = least_cap(tasks, RankId(r));
    if (!strict_peak.empty()) least = Amount::max(least, strict_peak[static_cast<size_t>(r)]);
    if (offload) least.bytes = std::max(least.bytes, least_offload_bytes(tasks, RankId(r)));
    const double factor = least_only ? 1 : 1 + 2 * dice.uniform();
    // 0 would mean "no limit", so a rank that holds nothing gets 1.
    const auto grown = [&](int64_t amount) {
      return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(amount) * factor));
    };
    Cap& cap = caps.emplace_back();
    if (limited < 5) cap.slots = grown(least.slots);
    if (limited >= 3) cap.bytes = grown(least.bytes);
  }
  out.tight = least_only && strict_peak.empty() && !offload;
  return caps;
}

Durations predicted_durations(const StepTasks& tasks) {
  Durations out(tasks.graph().stage_count(), tasks.microbatches());
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    const std::array<int64_t, 3> ns = tasks.stage_ns(StageId(s));
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      const MicrobatchId i(k);
      const int64_t cost = tasks.cost_permille(StageId(s), i);
      out.at({StageId(s), i, TaskKind::kForward}) = ns[0] / 1000 * cost;
      out.at({StageId(s), i, TaskKind::kInputGradient}) = ns[1] / 1000 * cost;
      out.at({StageId(s), i, TaskKind::kWeightGradient}) = ns[2] / 1000 * cost;
    }
  }
  return out;
}

/// The prediction times heavy noise, or something that has nothing to do with it.
Durations random_durations(Dice& dice, const StepTasks& tasks) {
  Durations out = predicted_durations(tasks);
  const double sigma = dice.pick({0.0, 0.2, 0.2, 0.8, 1.5});
  const int64_t straggling = dice.pick({0, 0, 2, 10});
  const bool as_predicted = dice.percent(75);
  const auto other_ns = dice.pick<int64_t>({0, 1'000, kTypicalNs});
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      for (const auto kind :
           {TaskKind::kForward, TaskKind::kInputGradient, TaskKind::kWeightGradient}) {
        int64_t& ns = out.at({StageId(s), MicrobatchId(k), kind});
        if (!as_predicted) ns = other_ns;
        if (sigma > 0) ns = static_cast<int64_t>(static_cast<double>(ns) * dice.lognormal(sigma));
        if (dice.percent(straggling)) ns *= 10;
      }
    }
  }
  return out;
}

Links random_links(Dice& dice, uint64_t seed) {
  Links links;
  links.seed = seed;
  links.serialize_ns = dice.pick({0.0, 0.01, 0.2, 3.0}) * kTypicalNs;
  links.latency_ns = dice.pick({0.0, 0.005, 0.5, 10.0}) * kTypicalNs;
  if (dice.percent(60)) {
    const double sigma = dice.pick({0.5, 1.5});
    links.factor = [seed, sigma](EdgeId edge, core::Direction direction, MicrobatchId i) {
      return Key(seed, Draw::kHop, {edge.value, static_cast<int64_t>(direction), i.value})
          .lognormal(sigma);
    };
  }
  if (dice.percent(30)) {
    links.episode_share = dice.pick({0.05, 0.3});
    links.episode_ns = dice.pick({2.0, 20.0}) * kTypicalNs;
    links.episode_factor = dice.pick({5.0, 40.0});
  }
  return links;
}

void add_runtime(Dice& dice, Scenario& scenario) {
  if (dice.percent(35)) {
    Group& group = scenario.group;
    group.size = dice.pick({2, 4, 8});
    group.readiness = dice.percent(50) ? Group::Readiness::kAll : Group::Readiness::kLeader;
    group.spread_ns = dice.pick({0.0, 0.05, 1.0}) * kTypicalNs;
    group.straggle_probability = dice.pick({0.0, 0.05});
    group.straggle_ns = 5.0 * kTypicalNs;
    group.report_ns = dice.pick({0, 50'000});
  }
  Runtime& runtime = scenario.runtime;
  runtime.dispatch_ns = dice.pick({0, 0, 5'000, 200'000});
  runtime.report_ns = dice.pick({0, 0, 0, 50'000, 2'000'000});
  if (dice.percent(25)) {
    runtime.early_probability = dice.pick({0.1, 1.0});
    runtime.early_ns = dice.pick({100'000, 5'000'000});
  }
}

/// An edge has credits where the memory of its sender does not bound what waits for the receiver;
/// such a step cannot leave a strict order.
bool has_credits(const StepTasks& tasks) {
  for (int32_t e = 0; e < tasks.graph().edge_count(); ++e) {
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      const MicrobatchId i(k);
      if (tasks.active(EdgeId(e), i) && !tasks.returns(EdgeId(e), i)) return true;
    }
  }
  return false;
}

int64_t count_messages(const StepTasks& tasks) {
  int64_t count = 0;
  const core::StageGraph& graph = tasks.graph();
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const core::Edge& edge = graph.edge(EdgeId(e));
    if (graph.stage(edge.from).rank == graph.stage(edge.to).rank) continue;
    for (int32_t k = 0; k < tasks.microbatches(); ++k) {
      count += tasks.active(EdgeId(e), MicrobatchId(k)) ? 1 : 0;
      count += tasks.returns(EdgeId(e), MicrobatchId(k)) ? 1 : 0;
    }
  }
  return count;
}

void add_fault(uint64_t seed, StressCase& out) {
  Dice dice(seed, Draw::kFault, 0);
  if (!dice.percent(15)) return;
  Faults& faults = out.scenario.faults;
  if (out.messages > 0 && dice.percent(50)) {
    faults.lose_message = dice.between(0, out.messages - 1);
    return;
  }
  // About when the step would be half done.
  const core::StageGraph& graph = out.tasks->graph();
  faults.failing_rank = dice.between32(0, graph.ranks() - 1);
  const int64_t step_ns = 3 * kTypicalNs * (out.tasks->microbatches() + graph.stage_count());
  faults.fail_at_ns = static_cast<int64_t>(dice.uniform() * static_cast<double>(step_ns));
}

/// What the ranks of a strict order hold, or why it cannot be obeyed.
core::Status strict_peaks(const StressCase& c, std::vector<Amount>& out, StepShape* timed) {
  Policy policy = c.policy;
  policy.late_ns = 0;
  if (core::Status s = core::check_strict(c.tasks, *c.hint, policy, {}); !s.ok()) return s;
  Scenario scenario;
  if (core::Status s = make_plans(c.tasks, *c.hint, policy, {}, scenario.plans); !s.ok()) return s;
  scenario.durations = predicted_durations(*c.tasks);
  Observer observer;
  if (timed != nullptr) {
    const auto m = static_cast<size_t>(timed->microbatches);
    timed->planned_ns.assign(3 * static_cast<size_t>(c.tasks->graph().stage_count()) * m, 0);
    observer.task = [&](RankId, const core::Task& task, int64_t, int64_t begin_ns, int64_t) {
      const size_t kind = task.kind == TaskKind::kForward          ? 0
                          : task.kind == TaskKind::kWeightGradient ? 2
                                                                   : 1;
      timed->planned_ns[3 * (task.stage.index() * m + task.microbatch.index()) + kind] = begin_ns;
    };
  }
  for (const RankOutcome& rank : simulate(scenario, observer).ranks) out.push_back(rank.peak);
  return {};
}

/// Strict until late: the caps must admit a rank that leaves the order at any time, which may take
/// more than what the order holds.
void grow_caps_until_legal(StressCase& out) {
  constexpr int kTries = 3;
  for (int k = 0; k < kTries && out.status.code() == core::Code::kCapTooSmall; ++k) {
    for (Cap& cap : out.caps) {
      cap.slots += (cap.slots + 1) / 2;
      cap.bytes += (cap.bytes + 1) / 2;
    }
    out.status = make_plans(out.tasks, *out.hint, out.policy, out.caps, out.scenario.plans);
  }
}

}  // namespace

StressCase make_stress_case(uint64_t seed, StressFocus focus) {
  StressCase out;
  const bool all = focus == StressFocus::kAll;
  Dice step(seed, Draw::kCase, kStep);
  const int64_t shape = all ? step.between(0, 99) : 99;
  out.shape = shape < 20   ? Shape::kLinear
              : shape < 40 ? Shape::kLoop
              : shape < 65 ? Shape::kV
                           : Shape::kGraph;
  // Offloading needs much in flight and a cap in bytes, so some cases are made for it.
  const bool offload = all && step.percent(25);
  out.tasks = make_step(step, out.shape, offload);
  out.messages = count_messages(*out.tasks);
  Dice policy(seed, Draw::kCase, kPolicy);
  out.policy = random_policy(policy, *out.tasks, offload, focus);
  if (has_credits(*out.tasks) && policy.percent(90)) out.policy.late_ns = 0;
  Dice hint(seed, Draw::kCase, kHint);
  out.hint = make_hint(hint, out.shape, *out.tasks, out.policy.strict());

  std::vector<Amount> strict_peak;
  if (out.policy.strict()) {
    StepShape timed = out.tasks->shape();
    const bool late = out.policy.late_ns > 0;
    out.status = strict_peaks(out, strict_peak, late ? &timed : nullptr);
    out.unobeyable = out.status.code() == core::Code::kBadOrder;
    if (!out.status.ok()) return out;
    const auto graph = std::shared_ptr<const core::StageGraph>(out.tasks, &out.tasks->graph());
    if (late) out.status = StepTasks::create(graph, std::move(timed), out.tasks);
  }
  Dice caps(seed, Draw::kCase, kCaps);
  out.caps = random_caps(caps, *out.tasks, strict_peak, offload, focus, out);
  out.status = make_plans(out.tasks, *out.hint, out.policy, out.caps, out.scenario.plans);
  if (out.policy.late_ns > 0 && !out.caps.empty()) grow_caps_until_legal(out);
  if (!out.status.ok()) return out;

  Dice times(seed, Draw::kCase, kTimes);
  out.scenario.durations = random_durations(times, *out.tasks);
  Dice links(seed, Draw::kCase, kLinks);
  out.scenario.links = random_links(links, seed);
  Dice runtime(seed, Draw::kCase, kRuntime);
  add_runtime(runtime, out.scenario);
  out.scenario.seed = seed;
  if (all) add_fault(seed, out);
  return out;
}

bool has_join(const core::StageGraph& graph) {
  for (int32_t s = 0; s < graph.stage_count(); ++s) {
    const auto in = graph.in_edges(StageId(s));
    const auto is_other = [&](EdgeId e) { return graph.edge(e).from != graph.edge(in[0]).from; };
    if (std::any_of(in.begin(), in.end(), is_other)) return true;
  }
  return false;
}

bool joins_tightly(const StressCase& c) {
  const core::StageGraph& graph = c.tasks->graph();
  const Faults& faults = c.scenario.faults;
  return c.tight && has_join(graph) && graph.ranks() > 1 && c.tasks->microbatches() > 1 &&
         c.tasks->shape().mode == core::StepMode::kTrain && !c.policy.strict() &&
         faults.failing_rank < 0 && faults.lose_message < 0;
}

std::string describe(const StressCase& c) {
  const core::StageGraph& graph = c.tasks->graph();
  const Policy& policy = c.policy;
  const auto number = [](const char* what, int64_t value) {
    return std::string(what) + std::to_string(value);
  };
  std::string text =
      number("", graph.ranks()) + number(" ranks, ", c.tasks->microbatches()) +
      " microbatches, hint " + std::string(c.hint->name()) +
      (policy.strict() ? ", strict" : ", ready") +
      (policy.late_ns > 0 ? number(" until late by ", policy.late_ns) : "") +
      (policy.deterministic ? ", deterministic" : "") + number(", hold ", policy.hold_permille) +
      number(", roomy ", policy.roomy_permille) + number(", reserve ", policy.reserve_permille) +
      number(", credits ", policy.credits) + number(", offload ", policy.offload_ns_per_mib) +
      "\n  stages:";
  for (int32_t s = 0; s < graph.stage_count(); ++s) {
    const core::Stage& stage = graph.stage(StageId(s));
    text += number(" ", s) + number("@", stage.rank.value) + (stage.loss ? "L" : "") +
            (stage.frozen ? "z" : "") + (stage.fused_only ? "u" : "");
  }
  text += "\n  edges:";
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const core::Edge& edge = graph.edge(EdgeId(e));
    text += number(" ", edge.from.value) + (edge.gradient ? ">" : "=") + number("", edge.to.value);
  }
  text += "\n  caps, slots/bytes:";
  for (const Cap& cap : c.caps) text += number(" ", cap.slots) + number("/", cap.bytes);
  const Faults& faults = c.scenario.faults;
  if (faults.failing_rank >= 0) {
    text += number("\n  rank ", faults.failing_rank) + number(" dies at ", faults.fail_at_ns);
  }
  if (faults.lose_message >= 0) text += number("\n  message lost: ", faults.lose_message);
  return text;
}

}  // namespace rrfp::sim
