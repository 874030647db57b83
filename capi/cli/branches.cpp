// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/branches.h"

#include <algorithm>

#include "capi/cli/output.h"

namespace rrfp::cli {
namespace {

/// By the names that rrfp_model_create_vision_language gives to blocks.
std::string branch_of(const std::string& block) {
  if (block.starts_with("vision.") || block == "projector") return "vision";
  return block == "embedding" ? "text" : "language";
}

}  // namespace

BranchTimes::BranchTimes(rrfp_trainer* trainer, const rrfp_model* model) : trainer_(trainer) {
  auto info = prepared(rrfp_trainer_info_init);
  call(rrfp_trainer_get_info, trainer, &info);
  const Json blocks = Json::parse(text_of(rrfp_model_describe, model)).at("blocks");
  stages_.resize(static_cast<size_t>(info.stages));
  for (size_t k = 0; k < stages_.size(); ++k) {
    const rrfp_stage_report stage = report(k);
    std::string before;
    for (int32_t block = stage.first_block; block <= stage.last_block; ++block) {
      const std::string branch =
          branch_of(blocks.at(static_cast<size_t>(block)).at("name").get<std::string>());
      if (branch != before) stages_[k].branch += (before.empty() ? "" : "+") + branch;
      before = branch;
    }
  }
}

rrfp_stage_report BranchTimes::report(size_t stage) const {
  auto report = prepared(rrfp_stage_report_init);
  call(rrfp_trainer_stage_report, trainer_, static_cast<int32_t>(stage), &report);
  return report;
}

void BranchTimes::add() {
  for (size_t k = 0; k < stages_.size(); ++k) stages_[k].busy_ns += report(k).busy_ns;
}

std::vector<std::pair<std::string, double>> BranchTimes::shares() const {
  int64_t total_ns = 0;
  for (const Stage& stage : stages_) total_ns += stage.busy_ns;
  std::vector<std::pair<std::string, double>> shares;
  for (const Stage& stage : stages_) {
    if (total_ns == 0) break;
    const auto has_name = [&](const auto& each) { return each.first == stage.branch; };
    auto found = std::find_if(shares.begin(), shares.end(), has_name);
    if (found == shares.end()) found = shares.insert(shares.end(), {stage.branch, 0});
    found->second += static_cast<double>(stage.busy_ns) / static_cast<double>(total_ns);
  }
  return shares;
}

}  // namespace rrfp::cli
