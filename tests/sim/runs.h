// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the simulator share: a workload run under a policy in one line.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/hint.h"
#include "engine/sim/layout.h"
#include "engine/sim/scenario.h"
#include "engine/sim/workload.h"

namespace rrfp::sim {

inline constexpr Layout kUncut = {};
inline constexpr Layout kLoopOfTwo = {core::Placement::kLoop, 2};
inline constexpr Layout kVOfTwo = {core::Placement::kV, 2};
inline constexpr int64_t kMs = 1'000'000;

inline void require(const core::Status& status) {
  if (!status.ok()) throw std::runtime_error("unexpected error: " + status.text());
}

inline Realization realization(std::string_view preset, int32_t devices, int32_t microbatches,
                               uint64_t seed = 1) {
  const Preset* found = find_preset(preset);
  if (found == nullptr) throw std::runtime_error("no preset " + std::string(preset));
  return {*found, devices, microbatches, seed};
}

inline core::Policy in_order(core::Order order) {
  core::Policy policy;
  policy.order = order;
  return policy;
}

/// The same limit in bytes on every rank.
inline std::vector<core::Cap> caps_of(int32_t ranks, int64_t bytes) {
  return std::vector<core::Cap>(static_cast<size_t>(ranks), {.slots = 0, .bytes = bytes});
}

/// The scenario of a realization, in the order of the data.
inline Scenario scenario_of(const Realization& step, const Layout& layout, std::string_view hint,
                            const core::Policy& policy, const std::vector<core::Cap>& caps = {}) {
  const std::vector<int32_t> order = data_order(step.microbatches());
  std::shared_ptr<const core::Hint> named;
  require(core::Hint::named(hint, named));
  Scenario scenario;
  require(make_plans(step_tasks(step, layout, order), *named, policy, caps, scenario.plans));
  scenario.durations = true_durations(step, layout, order);
  scenario.links = true_links(step, layout, order);
  return scenario;
}

inline Outcome run(const Realization& step, const Layout& layout, std::string_view hint,
                   const core::Policy& policy, const std::vector<core::Cap>& caps = {}) {
  return simulate(scenario_of(step, layout, hint, policy, caps));
}

inline int64_t strict_ns(const Realization& step, const Layout& layout, std::string_view hint) {
  const Outcome outcome = run(step, layout, hint, in_order(core::Order::kStrict));
  EXPECT_TRUE(outcome.complete) << hint << ": " << outcome.error;
  return outcome.makespan_ns;
}

}  // namespace rrfp::sim
