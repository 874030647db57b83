// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a step in one place: messages wait in a bag and are delivered in random order, ranks
// pull and finish in random order. A copy is a snapshot of everything.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/rank_core.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/rank_core_text.h"

namespace rrfp::core::fixtures {

class Cluster {
 public:
  Cluster(const std::shared_ptr<const StepTasks>& tasks, const Hint& hint, const Policy& policy,
          std::span<const Cap> caps) {
    cores_.resize(static_cast<size_t>(tasks->graph().ranks()));
    for (size_t r = 0; r < cores_.size(); ++r) {
      std::shared_ptr<const RankPlan> plan;
      require(build_plan(tasks, hint, RankId::of(r), policy, caps.empty() ? Cap() : caps[r], plan));
      plans_.push_back(std::move(plan));
    }
    // Every message may be in flight together with its announcement and its credit.
    const auto cells = static_cast<size_t>(tasks->graph().edge_count() * tasks->microbatches());
    flying_.reserve(6 * cells + 1);
  }

  void begin_step() {
    for (size_t r = 0; r < cores_.size(); ++r) cores_[r].begin_step(plans_[r]);
    flying_.clear();
    now_ns_ = 0;
    stalled_ = 0;
  }

  /// One random event; observe(rank, command) sees each command. False when the step is over.
  template <class Observe>
  bool advance(Random& random, Observe observe) {
    const auto rank = static_cast<size_t>(random.below(static_cast<int32_t>(cores_.size())));
    RankCore& core = cores_[rank];
    now_ns_ += random.below(50'000);
    if (!flying_.empty() && random.chance(40)) {
      const auto k = static_cast<size_t>(random.below(static_cast<int32_t>(flying_.size())));
      const Flying next = flying_[k];
      flying_[k] = flying_.back();
      flying_.pop_back();
      take(next.to, cores_[next.to.index()].apply(next.event, now_ns_), observe);
    } else if (core.running()) {
      if (random.chance(50))
        take(RankId::of(rank), core.apply(Event::task_done(), now_ns_), observe);
    } else {
      take(RankId::of(rank), core.apply(Event::pull(), now_ns_), observe);
    }
    return !over();
  }

  /// True if the step is complete, failed, or cannot go on.
  [[nodiscard]] bool over() const {
    const bool failed =
        std::any_of(cores_.begin(), cores_.end(), [](const RankCore& c) { return c.failed(); });
    return failed || complete() || stalled_ > kPatience;
  }
  /// Nothing is left to do and nothing is in flight.
  [[nodiscard]] bool complete() const {
    return flying_.empty() && std::all_of(cores_.begin(), cores_.end(),
                                          [](const RankCore& c) { return c.complete(); });
  }

  [[nodiscard]] const std::vector<RankCore>& cores() const { return cores_; }

 private:
  // A holding rank ends its hold long before so many idle answers.
  static constexpr int kPatience = 2000;

  struct Flying {
    RankId to;
    Event event;
  };

  template <class Observe>
  void take(RankId rank, std::span<const Command> commands, Observe observe) {
    for (const Command& c : commands) {
      if (c.kind == Command::Kind::kSend) {
        flying_.push_back({c.peer, Event::message(c.edge, c.direction, c.microbatch)});
      } else if (c.kind == Command::Kind::kCredit) {
        flying_.push_back({c.peer, Event::credit(c.edge)});
      } else if (c.kind == Command::Kind::kAnnounce) {
        flying_.push_back(
            {c.peer, Event::announce(c.edge, c.direction, c.microbatch, c.duration_ns)});
      }
      stalled_ = c.kind == Command::Kind::kIdle ? stalled_ + 1 : 0;
      observe(rank, c);
    }
  }

  std::vector<std::shared_ptr<const RankPlan>> plans_;
  std::vector<RankCore> cores_;
  std::vector<Flying> flying_;
  int64_t now_ns_ = 0;
  int stalled_ = 0;
};

/// A random step on a random graph, with a random policy and caps from the minimum upwards.
struct RandomStep {
  std::shared_ptr<const StepTasks> tasks;
  std::shared_ptr<const Hint> hint;
  Policy policy;
  std::vector<Cap> caps;
};

/// An order for each rank that has nothing to do with any schedule.
inline std::shared_ptr<const Hint> random_hint(Random& random, const StepTasks& tasks) {
  std::vector<PrioritizedTask> priorities;
  for (int32_t s = 0; s < tasks.graph().stage_count(); ++s) {
    for (int32_t i = 0; i < tasks.microbatches(); ++i) {
      const auto add = [&](TaskKind kind) {
        priorities.push_back({task_of(s, kind, i), random.below(1000)});
      };
      add(TaskKind::kForward);
      if (random.chance(50)) {
        add(TaskKind::kBackward);
      } else {
        add(TaskKind::kInputGradient);
        add(TaskKind::kWeightGradient);
      }
    }
  }
  std::shared_ptr<const Hint> hint;
  require(Hint::priorities(std::move(priorities), hint));
  return hint;
}

inline RandomStep random_step(uint64_t seed) {
  Random random(seed);
  RandomStep step;
  const auto graph = sealed(random_graph(random));
  step.tasks = make_step(graph, random_shape(random, *graph, 1 + random.below(7)));
  const auto name = Hint::names()[static_cast<size_t>(random.below(5))];
  step.hint = random.chance(40) ? random_hint(random, *step.tasks) : named_hint(name);
  step.policy.deterministic = random.chance(70);
  step.policy.credits = random.chance(40) ? 1 + random.below(3) : 0;
  step.policy.hold_permille = random.chance(40) ? 1 + random.below(500) : 0;
  for (int32_t r = 0; r < graph->ranks(); ++r) {
    std::shared_ptr<const RankPlan> plan;
    require(build_plan(step.tasks, *step.hint, RankId(r), step.policy,
                       {Ledger::kUnlimited, Ledger::kUnlimited}, plan));
    Amount least = {1, 1};
    for (const Amount& need : plan->needs) least = Amount::max(least, need);
    step.caps.push_back({random.chance(60) ? least.slots + random.below(3) : Ledger::kUnlimited,
                         random.chance(60) ? least.bytes + random.below(60) : 0});
  }
  return step;
}

}  // namespace rrfp::core::fixtures
