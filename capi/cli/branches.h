// SPDX-License-Identifier: Apache-2.0
//
// Which branch of a model the ranks worked for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capi/cli/api.h"

namespace rrfp::cli {

/// The time of each stage in all steps.
class BranchTimes {
 public:
  BranchTimes(rrfp_trainer* trainer, const rrfp_model* model);

  /// After every step.
  void add();
  /// The share of each branch in the time that ranks computed: "vision", "text", "language", or a
  /// join such as "vision+text" where a stage has blocks of both. In the order of the stages.
  [[nodiscard]] std::vector<std::pair<std::string, double>> shares() const;

 private:
  struct Stage {
    std::string branch;
    int64_t busy_ns = 0;
  };

  [[nodiscard]] rrfp_stage_report report(size_t stage) const;

  rrfp_trainer* trainer_;
  std::vector<Stage> stages_;
};

}  // namespace rrfp::cli
