// SPDX-License-Identifier: Apache-2.0
//
// rrfp simulate: the options, the runs, and what is said about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capi/cli/api.h"
#include "capi/cli/output.h"

namespace rrfp::cli {

struct SimulateOptions {
  std::string preset = "language";
  std::string measured;  // a trace; then the preset does not count
  int32_t stages = 0;    // 0 = the library's default, or the trace's
  int32_t microbatches = 0;
  std::string hint = "auto";
  std::string order = "ready";
  double cap = 1;
  int64_t seeds = 8;
  uint64_t first_seed = 0;
  int32_t tensor_parallel = 1;
  std::string readiness = "all";
  int32_t data_parallel = 1;
  double offload_ms = 0;
  std::string injection = "default";
  int32_t history = 0;
  double dispatch_us = 0;
  double report_us = 0;
  bool nondeterministic = false;
  bool json = false;
  std::string trace;
  std::string chart;
  int64_t stress = 0;
};

/// One simulated step.
struct SeedResult {
  uint64_t seed = 0;
  rrfp_simulated_step step = prepared(rrfp_simulated_step_init);
  std::string ran;  // what, and for auto and rf-d why

  [[nodiscard]] double makespan_ms() const;
  /// Nothing for a trace, which has no bound.
  [[nodiscard]] std::optional<double> ratio_to_bound() const;
  [[nodiscard]] double peak_ratio() const;
};

/// Both return the exit code.
int run_simulation(const SimulateOptions& options);
int run_stress(const SimulateOptions& options);

/// What comes before the rows of the seeds.
std::string seeds_head(const SimulateOptions& options, const SeedResult& first);
std::string seed_row(const SimulateOptions& options, const SeedResult& result);
/// Median, least and most, and what was chosen.
std::string seeds_summary(const SimulateOptions& options, const std::vector<SeedResult>& results);
Json seed_json(const SeedResult& result);
Json seeds_summary_json(const SimulateOptions& options, const std::vector<SeedResult>& results);

std::string stress_text(const rrfp_stress_report& report);
Json stress_json(const rrfp_stress_report& report);

}  // namespace rrfp::cli
