// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/stress.h"

#include <algorithm>
#include <vector>

#include "engine/sim/stress_case.h"

namespace rrfp::sim {

using core::Amount;
using core::EdgeId;
using core::MicrobatchId;
using core::RankId;
using core::StageId;
using core::StepTasks;
using core::Task;
using core::TaskKind;

std::string_view name_of(Cover cover) {
  constexpr std::array<std::string_view, kCovers> kNames = {"joins",
                                                            "tight joins",
                                                            "loop placement",
                                                            "V placement",
                                                            "several chunks",
                                                            "skipped stages",
                                                            "frozen stages",
                                                            "fused stages",
                                                            "forward only",
                                                            "long tails",
                                                            "least caps",
                                                            "random priorities",
                                                            "published schedules",
                                                            "deterministic",
                                                            "any order of W",
                                                            "strict",
                                                            "strict until late",
                                                            "left strict",
                                                            "hold",
                                                            "roomy",
                                                            "reserve",
                                                            "credits",
                                                            "waited for room",
                                                            "offload",
                                                            "offloaded",
                                                            "leader decides",
                                                            "group decides",
                                                            "early reports",
                                                            "late reports",
                                                            "dispatch cost",
                                                            "slow links",
                                                            "rank failure",
                                                            "message loss"};
  return kNames[static_cast<size_t>(cover)];
}

namespace {

/// Watches a step from outside: that every task runs once, after its inputs and in turn, and that
/// what has been kept and not yet freed stays within the cap.
class Witness {
 public:
  explicit Witness(const StressCase& c)
      : plans_(c.scenario.plans),
        tasks_(*c.tasks),
        deterministic_(c.policy.deterministic),
        microbatches_(static_cast<size_t>(c.tasks->microbatches())),
        cells_(static_cast<size_t>(tasks_.graph().stage_count()) * microbatches_),
        last_weight_(static_cast<size_t>(tasks_.graph().stage_count())),
        held_(plans_.size()),
        caps_(plans_.size()) {
    for (size_t r = 0; r < plans_.size(); ++r) {
      caps_[r] = plans_[r]->cap;
      // A strict plan has no cap of its own; it was checked against those of the case.
      if (c.policy.strict() && c.policy.late_ns == 0 && !c.caps.empty()) {
        if (c.caps[r].slots > 0) caps_[r].slots = c.caps[r].slots;
        if (c.caps[r].bytes > 0) caps_[r].bytes = c.caps[r].bytes;
      }
    }
  }

  void ended(RankId rank, const Task& task, int64_t begin_ns, int64_t end_ns) {
    Cell& state = cell(task.stage, task.microbatch);
    const bool weight = tasks_.weight(task.stage, task.microbatch);
    const auto once = [&](bool& done) {
      if (done) wrong(task, "ran twice");
      done = true;
    };
    switch (task.kind) {
      case TaskKind::kForward:
        check_inputs(task, begin_ns);
        once(state.forward);
        state.forward_ns = end_ns;
        break;
      case TaskKind::kBackward:
        if (weight) once(state.weight);
        [[fallthrough]];
      case TaskKind::kInputGradient:
        check_inputs(task, begin_ns);
        once(state.input_gradient);
        state.gradient_ns = end_ns;
        break;
      case TaskKind::kWeightGradient:
        if (!state.input_gradient) wrong(task, "ran before its input gradient");
        once(state.weight);
        break;
    }
    if (weight && state.weight && task.kind != TaskKind::kForward) check_turn(task);
    account(rank, task, state, weight);
  }

  /// After a step that is complete.
  void check_complete() {
    for (int32_t s = 0; s < tasks_.graph().stage_count(); ++s) {
      for (int32_t k = 0; k < tasks_.microbatches(); ++k) {
        const StageId stage(s);
        const MicrobatchId i(k);
        const Cell& have = cell(stage, i);
        if (have.forward == tasks_.takes_part(stage, i) &&
            have.input_gradient == tasks_.backward(stage, i) &&
            have.weight == tasks_.weight(stage, i)) {
          continue;
        }
        wrong({stage, i, TaskKind::kForward}, "or what follows it was lost, or ran for nothing");
      }
    }
  }

  [[nodiscard]] const std::string& wrong_task() const { return wrong_task_; }
  [[nodiscard]] const std::string& above_cap() const { return above_cap_; }
  [[nodiscard]] const Amount& cap(size_t rank) const { return caps_[rank]; }

 private:
  struct Cell {
    bool forward = false;
    bool input_gradient = false;
    bool weight = false;
    int64_t forward_ns = 0;  // ends
    int64_t gradient_ns = 0;
  };

  Cell& cell(StageId s, MicrobatchId i) { return cells_[s.index() * microbatches_ + i.index()]; }

  void wrong(const Task& task, const char* what) {
    if (wrong_task_.empty()) wrong_task_ = to_string(task) + " " + what;
  }

  void check_inputs(const Task& task, int64_t begin_ns) {
    const core::StageGraph& graph = tasks_.graph();
    bool here = true;
    if (task.kind == TaskKind::kForward) {
      for (const EdgeId e : graph.in_edges(task.stage)) {
        if (!tasks_.active(e, task.microbatch)) continue;
        const Cell& from = cell(graph.edge(e).from, task.microbatch);
        here = here && from.forward && from.forward_ns <= begin_ns;
      }
    } else {
      const Cell& own = cell(task.stage, task.microbatch);
      here = own.forward && own.forward_ns <= begin_ns;
      for (const EdgeId e : graph.out_edges(task.stage)) {
        if (!tasks_.returns(e, task.microbatch)) continue;
        const Cell& to = cell(graph.edge(e).to, task.microbatch);
        here = here && to.input_gradient && to.gradient_ns <= begin_ns;
      }
    }
    if (!here) wrong(task, "ran before its inputs");
  }

  void check_turn(const Task& task) {
    MicrobatchId& last = last_weight_[task.stage.index()];
    if (task.kind == TaskKind::kInputGradient) return;
    if (deterministic_ && task.microbatch < last) wrong(task, "ran out of turn");
    last = task.microbatch;
  }

  void account(RankId rank, const Task& task, const Cell& state, bool weight) {
    if (!tasks_.backward(task.stage, task.microbatch)) return;
    const Amount amount = {1, tasks_.held_bytes(task.stage, task.microbatch)};
    Amount& held = held_[rank.index()];
    if (task.kind == TaskKind::kForward) {
      held += amount;
    } else if (weight ? state.weight : true) {
      held -= amount;
    }
    // What is in the host's memory is still counted here.
    if (plans_[rank.index()]->offload || held.within(caps_[rank.index()])) return;
    if (above_cap_.empty()) {
      above_cap_ = "rank " + std::to_string(rank.value) + " keeps more than its cap after " +
                   to_string(task);
    }
  }

  const Plans& plans_;
  const StepTasks& tasks_;
  bool deterministic_;
  size_t microbatches_;
  std::vector<Cell> cells_;  // [stage][microbatch]
  std::vector<MicrobatchId> last_weight_;
  std::vector<Amount> held_;  // by rank, between tasks
  std::vector<Amount> caps_;
  std::string wrong_task_;
  std::string above_cap_;
};

struct Result {
  Outcome outcome;
  std::string stall;
  std::string above_cap;
  std::string wrong_task;
  std::string wrong_failure;
};

std::string wrong_failure(const StressCase& c, const Outcome& outcome) {
  const Faults& faults = c.scenario.faults;
  if (outcome.complete) {
    if (faults.lose_message >= 0) return "a message was lost and the step is complete";
    const bool died = faults.failing_rank >= 0 && faults.fail_at_ns < outcome.makespan_ns;
    return died ? "a rank died and the step is complete" : "";
  }
  if (faults.failing_rank < 0 && faults.lose_message < 0) return "failed: " + outcome.error;
  if (faults.failing_rank >= 0 && outcome.makespan_ns > faults.fail_at_ns) {
    return "a task ended after a rank had died";
  }
  for (size_t r = 0; r < outcome.ranks.size(); ++r) {
    if (outcome.ranks[r].told_of_failure) continue;
    return "rank " + std::to_string(r) + " did not hear of the failure: " + outcome.error;
  }
  return "";
}

Result run_case(const StressCase& c) {
  Result result;
  Witness witness(c);
  Observer observer;
  observer.task = [&](RankId rank, const Task& task, int64_t, int64_t begin_ns, int64_t end_ns) {
    witness.ended(rank, task, begin_ns, end_ns);
  };
  result.outcome = simulate(c.scenario, observer);
  const Outcome& outcome = result.outcome;
  if (outcome.complete) witness.check_complete();
  result.wrong_task = witness.wrong_task();
  result.above_cap = witness.above_cap();
  for (size_t r = 0; r < outcome.ranks.size() && result.above_cap.empty(); ++r) {
    if (outcome.ranks[r].peak.within(witness.cap(r))) continue;
    result.above_cap = "rank " + std::to_string(r) + " holds more than its cap";
  }
  if (outcome.stalled) {
    result.stall = "stalled: " + outcome.error;
  } else {
    result.wrong_failure = wrong_failure(c, outcome);
  }
  return result;
}

/// What the graph and the step contain.
void cover_step(const StressCase& c, const std::function<void(Cover, bool)>& add) {
  const core::StageGraph& graph = c.tasks->graph();
  bool frozen = false;
  bool fused = false;
  for (int32_t s = 0; s < graph.stage_count(); ++s) {
    frozen = frozen || graph.stage(StageId(s)).frozen;
    fused = fused || graph.stage(StageId(s)).fused_only;
  }
  const core::StepShape& shape = c.tasks->shape();
  add(Cover::kJoins, has_join(graph));
  add(Cover::kTightJoins, joins_tightly(c));
  add(Cover::kLoop, c.shape == Shape::kLoop);
  add(Cover::kV, c.shape == Shape::kV);
  add(Cover::kChunks, graph.chunks_max() > 1);
  add(Cover::kSkippedStages,
      std::find(shape.skip.begin(), shape.skip.end(), 1) != shape.skip.end());
  add(Cover::kFrozenStages, frozen);
  add(Cover::kFusedStages, fused);
  add(Cover::kForwardOnly, shape.mode == core::StepMode::kForwardOnly);
  add(Cover::kLongTails, !shape.activation_bytes.empty());
  add(Cover::kTightCaps, c.tight);
}

void cover_policy(const StressCase& c, const std::function<void(Cover, bool)>& add) {
  const core::Policy& policy = c.policy;
  const auto general = core::Hint::general_names();
  const bool named = c.hint->source() == core::Hint::Source::kSchedule;
  add(Cover::kPriorities, !named);
  add(Cover::kPublished,
      named && std::find(general.begin(), general.end(), c.hint->name()) == general.end());
  add(Cover::kDeterministic, policy.deterministic);
  add(Cover::kAnyOrder, !policy.deterministic);
  add(Cover::kStrict, policy.strict() && policy.late_ns == 0);
  add(Cover::kStrictUntilLate, policy.late_ns > 0);
  add(Cover::kHold, policy.hold_permille > 0);
  add(Cover::kRoomy, policy.roomy_permille > 0);
  add(Cover::kReserve, policy.reserve_permille != 0);
  add(Cover::kCredits, policy.credits > 0);
  add(Cover::kOffload, std::any_of(c.scenario.plans.begin(), c.scenario.plans.end(),
                                   [](const auto& plan) { return plan->offload; }));
}

void cover_run(const StressCase& c, const Outcome& outcome,
               const std::function<void(Cover, bool)>& add) {
  const Scenario& s = c.scenario;
  const bool group = s.group.size > 1;
  const bool all = s.group.readiness == Group::Readiness::kAll;
  add(Cover::kLeftStrict, outcome.late_ranks > 0);
  add(Cover::kWaitedForMemory,
      std::any_of(outcome.ranks.begin(), outcome.ranks.end(), [](const RankOutcome& rank) {
        return rank.idle_ns[static_cast<size_t>(core::IdleReason::kMemory)] > 0;
      }));
  add(Cover::kOffloaded, outcome.offloads > 0);
  add(Cover::kGroupLeader, group && !all);
  add(Cover::kGroupAll, group && all);
  add(Cover::kEarlyReports, s.runtime.early_probability > 0);
  add(Cover::kLateReports, s.runtime.report_ns > 0);
  add(Cover::kDispatch, s.runtime.dispatch_ns > 0);
  add(Cover::kSlowLinks, s.links.episode_share > 0);
  add(Cover::kRankFailure, s.faults.failing_rank >= 0 && !outcome.complete);
  add(Cover::kMessageLoss, s.faults.lose_message >= 0 && !outcome.complete);
}

}  // namespace

StressReport run_stress(uint64_t first_seed, int64_t cases,
                        const std::function<bool(int64_t done)>& progress, StressFocus focus) {
  StressReport report;
  const auto add = [&](Cover cover, bool covered) {
    report.covered[static_cast<size_t>(cover)] += covered ? 1 : 0;
  };
  while (report.cases < cases) {
    const uint64_t seed = first_seed + static_cast<uint64_t>(report.cases++);
    const StressCase c = make_stress_case(seed, focus);
    if (!c.status.ok()) {
      (c.unobeyable ? report.unobeyable : report.refused) += 1;
    } else {
      const Result result = run_case(c);
      report.tasks += result.outcome.tasks;
      cover_step(c, add);
      cover_policy(c, add);
      cover_run(c, result.outcome, add);
      report.stalls += result.stall.empty() ? 0 : 1;
      report.cap_violations += result.above_cap.empty() ? 0 : 1;
      report.wrong_tasks += result.wrong_task.empty() ? 0 : 1;
      report.wrong_failures += result.wrong_failure.empty() ? 0 : 1;
      if (report.bad() > 0 && report.first_bad.empty()) {
        report.first_bad_seed = seed;
        report.first_bad = "seed " + std::to_string(seed) + ": ";
        for (const std::string* text :
             {&result.stall, &result.above_cap, &result.wrong_task, &result.wrong_failure}) {
          if (!text->empty()) report.first_bad += *text + "\n  ";
        }
        report.first_bad += describe(c);
      }
    }
    if (progress && !progress(report.cases)) break;
  }
  return report;
}

std::string describe_stress_case(uint64_t seed, StressFocus focus) {
  const StressCase c = make_stress_case(seed, focus);
  const std::string text = "seed " + std::to_string(seed) + ": " + describe(c);
  return c.status.ok() ? text : text + "\n  not run: " + c.status.text();
}

}  // namespace rrfp::sim
