// SPDX-License-Identifier: Apache-2.0
//
// Choosing how to run a step by simulating it: `auto`, and `rf-d` before anything is measured.
//
// The noise of measured steps is transplanted onto the step to come; every candidate is simulated
// on each of these replays, and the one with the smallest sum is taken. Candidates share layout and
// injection order, so the choice changes time only, never results.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/sim/scenario.h"

namespace rrfp::sim {

struct Candidate {
  std::string name;
  std::shared_ptr<const core::Hint> hint;
  core::Policy policy;
  /// The step's shape as this candidate wants it: with planned_ns for a strict order that is left
  /// when it is late.
  std::shared_ptr<const core::StepTasks> tasks;
  Plans plans;
};

struct Replay {
  Durations durations;
  Links links;
};

/// What candidates have in common.
struct Family {
  std::shared_ptr<const core::StepTasks> tasks;
  std::vector<core::Cap> caps;  // by rank
  /// Part of every candidate's policy: deterministic, admission, credits, hop_ns,
  /// offload_ns_per_mib.
  core::Policy base;
  Replay predicted;  // without noise
};

/// The ways to run a step on one layout that are worth a simulation: readiness policies made for
/// it, the published order for it strictly obeyed, and the same until it is late. Left out is what
/// needs more memory than the caps.
[[nodiscard]] std::vector<Candidate> candidates(const Family& family);

/// One that is known to be possible: a named policy (named_policies.h), or a named schedule in
/// ready, strict or paired order.
core::Status make_candidate(const Family& family, std::string_view name, core::Order order,
                            Candidate& out);

/// A plan: the order that a named policy produces when everything goes as predicted, as a list.
core::Status make_plan(const Family& family, std::string_view policy, core::Order order,
                       Candidate& out);

struct Choice {
  size_t best = 0;
  std::vector<int64_t> mean_ns;  // by candidate: simulated, over the replays
  std::string why;               // one line for a report
};
/// `replays` must not be empty. A later candidate must be better by more than 0.1 %.
[[nodiscard]] Choice choose(std::span<const Candidate> candidates, std::span<const Replay> replays);

}  // namespace rrfp::sim
