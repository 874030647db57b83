// SPDX-License-Identifier: Apache-2.0
//
// A workload run with a hint: what `rrfp simulate`, the benchmarks and the study are made of. It
// lays the workload out as the hint wants it, orders the microbatches, sets the memory, and for
// `auto` and `rf-d` chooses.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/sim/choose.h"
#include "engine/sim/layout.h"
#include "engine/sim/traced.h"

namespace rrfp::sim {

enum class Injection : uint8_t {
  kOfHint,  // the tent for policies that were made for it, else the order of the data
  kData,
  kTent,
};

struct ExperimentOptions {
  Preset preset;
  /// Measured steps instead of the preset; then devices and microbatches are theirs.
  std::shared_ptr<const Traced> traced;
  int32_t devices = 16;
  int32_t microbatches = 64;
  /// A named schedule or policy, "rf-d", "auto", or "plan:<policy>": the order that the policy
  /// produces when nothing jitters.
  std::string hint = "auto";
  core::Order order = core::Order::kReady;
  Injection injection = Injection::kOfHint;
  /// Memory of a device, in multiples of what strict 1F1B takes on the same step; 0 = no limit.
  double cap = 1;
  bool deterministic = true;
  /// Time to copy a mean activation of a whole stage to the host or back; 0 = there is no host
  /// memory.
  double offload_ms = 0;
  int32_t replicas = 1;  // data-parallel, each with microbatches of its own; all wait for the last
  Group group;
  Runtime runtime;
  /// auto: steps whose noise is replayed; 0 = 3, or 8 where links have slow episodes.
  int32_t history = 0;
};

struct StepResult {
  Outcome outcome;  // of the slowest replica
  int64_t makespan_ns = 0;
  int64_t bound_ns = 0;      // of the replica whose bound is largest; 0 of a traced step
  int64_t native_bytes = 0;  // of the slowest replica
  std::string chosen;        // auto and rf-d: what ran
  std::string why;

  [[nodiscard]] double ratio() const {
    return static_cast<double>(makespan_ns) / static_cast<double>(bound_ns);
  }
  [[nodiscard]] double peak_ratio() const {
    return static_cast<double>(outcome.peak_bytes()) / static_cast<double>(native_bytes);
  }
};

/// Everything about one step but its noise, and a way to run it.
struct Prepared {
  std::shared_ptr<const Realization> step;  // null for a traced step,
  const Durations* traced = nullptr;        // which has this instead
  Layout layout;
  std::vector<int32_t> injection;  // element k is the microbatch that goes in k-th
  Family family;
  Candidate candidate;
  std::string why;
};

class Experiment {
 public:
  /// For `auto`, chooses the layout (once, as a trainer has to) by simulating steps that differ
  /// from all that run() will see.
  static core::Status create(const ExperimentOptions& options, Experiment& out);

  [[nodiscard]] const ExperimentOptions& options() const { return options_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }

  /// Draws a step and decides how to run it.
  core::Status prepare(uint64_t seed, Prepared& out) const;
  /// Simulates a step. The observer sees the first replica.
  core::Status run(uint64_t seed, StepResult& out, const Observer& observer = {}) const;
  /// The timeline of a step, of its first replica.
  core::Status record(uint64_t seed, trace::Timeline& out) const;
  /// The scenario of a prepared step, with its true durations and links.
  [[nodiscard]] Scenario scenario(const Prepared& prepared) const;
  /// The memory that a cap of 1 stands for.
  [[nodiscard]] int64_t native_bytes(const Prepared& prepared) const;

 private:
  [[nodiscard]] Family family(const Realization& step, const Layout& layout,
                              const std::vector<int32_t>& injection) const;
  [[nodiscard]] std::vector<int32_t> injection(const Realization& step) const;
  [[nodiscard]] core::Policy base() const;
  [[nodiscard]] core::Cap cap_of(int64_t native) const;
  core::Status choose_layout();
  core::Status prepare_traced(uint64_t seed, Prepared& out) const;
  core::Status decide(Prepared& out, const std::vector<Replay>& replays) const;

  ExperimentOptions options_;
  Layout layout_;
};

}  // namespace rrfp::sim
