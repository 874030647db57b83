// SPDX-License-Identifier: Apache-2.0
//
// Random steps on the virtual clock, to see whether a rule of the scheduler can be broken: any
// graph, placement, hint, policy, caps, sizes, jitter, links, groups and faults, all of it from one
// seed. A case that breaks a rule is described by a text with the seed that replays it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rrfp::sim {

/// What cases are drawn from.
enum class StressFocus : uint8_t {
  kAll,
  // Stage graphs in ready order with no more room on any rank than its largest microbatch needs.
  // All else is drawn as ever, but no fault.
  kTightGraphs,
};

/// What a case contained. A run that has covered nothing proves nothing.
enum class Cover : uint8_t {
  kJoins,            // a stage that is fed by several others
  kTightJoins,       // and with it several ranks, each with the least room, and microbatches, that
                     // are trained in ready order without a fault
  kLoop,             // loop placement
  kV,                // V placement
  kChunks,           // several stages on a rank
  kSkippedStages,    // of some microbatches
  kFrozenStages,     // no weight gradient
  kFusedStages,      // cannot split B
  kForwardOnly,      // a step without backward
  kLongTails,        // activation sizes by microbatch
  kTightCaps,        // no rank with more room than its largest microbatch needs
  kPriorities,       // a random hint
  kPublished,        // a hint made for the layout
  kDeterministic,    // weight gradients in injection order
  kAnyOrder,         // or not
  kStrict,           // an order that is obeyed
  kStrictUntilLate,  // or left when it is late
  kLeftStrict,       // it was left
  kHold,             // tasks may be held back
  kRoomy,            // ranking by kind while memory is roomy
  kReserve,          // room for deeper chunks: a share of the cap, or none
  kCredits,          // few credits
  kWaitedForMemory,  // a forward was refused room
  kOffload,          // activations may go to the host
  kOffloaded,        // they did
  kGroupLeader,      // a tensor-parallel group that decides by what its leader has
  kGroupAll,         // or by what all have
  kEarlyReports,     // messages reported before they are there
  kLateReports,      // or after
  kDispatch,         // time between decision and start
  kSlowLinks,        // episodes
  kRankFailure,      // a rank died before the step was complete
  kMessageLoss,      // a message was lost
};
inline constexpr size_t kCovers = static_cast<size_t>(Cover::kMessageLoss) + 1;

[[nodiscard]] std::string_view name_of(Cover cover);

struct StressReport {
  int64_t cases = 0;  // those below included
  int64_t tasks = 0;
  int64_t refused = 0;     // no plan: the hint does not fit the step, or the caps the strict order
  int64_t unobeyable = 0;  // a strict order that deadlocks, as core::check_strict says beforehand

  // Cases in which a rule was broken.
  int64_t stalls = 0;          // nothing moved though no fault was injected
  int64_t cap_violations = 0;  // a rank held more than its cap
  int64_t wrong_tasks = 0;     // lost, run twice, before its inputs or out of turn
  int64_t wrong_failures = 0;  // without a fault, or not heard of on every rank

  std::array<int64_t, kCovers> covered = {};  // cases, by Cover

  uint64_t first_bad_seed = 0;
  std::string first_bad;  // empty if no rule was broken

  [[nodiscard]] int64_t bad() const {
    return stalls + cap_violations + wrong_tasks + wrong_failures;
  }
};

/// Runs the cases of the seeds first_seed, first_seed + 1, ... `progress` is called after each with
/// the number of cases that are done; false stops.
[[nodiscard]] StressReport run_stress(uint64_t first_seed, int64_t cases,
                                      const std::function<bool(int64_t done)>& progress = {},
                                      StressFocus focus = StressFocus::kAll);

/// The case of a seed in words.
[[nodiscard]] std::string describe_stress_case(uint64_t seed,
                                               StressFocus focus = StressFocus::kAll);

}  // namespace rrfp::sim
