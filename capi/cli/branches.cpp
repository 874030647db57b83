// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/branches.h"

#include <algorithm>

#include "capi/cli/files.h"
#include "capi/cli/output.h"

namespace rrfp::cli {
namespace {

/// By the names that rrfp_model_create_vision_language gives to blocks.
std::string branch_of(const std::string& block) {
  if (block.starts_with("vision.") || block == "projector") return "vision";
  return block == "embedding" ? "text" : "language";
}

std::vector<std::string> stage_names(rrfp_trainer* trainer, const rrfp_model* model) {
  auto info = prepared(rrfp_trainer_info_init);
  call(rrfp_trainer_get_info, trainer, &info);
  std::vector<int32_t> first_blocks(static_cast<size_t>(info.stages));
  call(rrfp_trainer_first_blocks, trainer, first_blocks.data());
  const Json blocks = Json::parse(text_of(rrfp_model_describe, model)).at("blocks");

  std::vector<std::string> names(first_blocks.size());
  for (size_t stage = 0; stage < names.size(); ++stage) {
    const auto first = static_cast<size_t>(first_blocks[stage]);
    const size_t last =
        stage + 1 < names.size() ? static_cast<size_t>(first_blocks[stage + 1]) : blocks.size();
    std::string before;
    for (size_t block = first; block < last; ++block) {
      const std::string branch = branch_of(blocks.at(block).at("name").get<std::string>());
      if (branch != before) names[stage] += (before.empty() ? "" : "+") + branch;
      before = branch;
    }
  }
  return names;
}

}  // namespace

std::vector<std::pair<std::string, double>> branch_shares(rrfp_trainer* trainer,
                                                          const rrfp_model* model) {
  const std::vector<std::string> names = stage_names(trainer, model);
  std::vector<double> stage_us(names.size());
  double total_us = 0;
  const Json trace = Json::parse(through_file(
      [&](const std::string& path) { call(rrfp_trainer_write_trace, trainer, path.c_str()); }));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || !event.at("args").contains("stage")) continue;
    const double duration_us = event.at("dur").get<double>();
    stage_us.at(event.at("args").at("stage").get<size_t>()) += duration_us;
    total_us += duration_us;
  }
  std::vector<std::pair<std::string, double>> shares;
  for (size_t stage = 0; stage < names.size() && total_us > 0; ++stage) {
    const auto has_name = [&](const auto& each) { return each.first == names[stage]; };
    auto found = std::find_if(shares.begin(), shares.end(), has_name);
    if (found == shares.end()) found = shares.insert(shares.end(), {names[stage], 0});
    found->second += stage_us[stage] / total_us;
  }
  return shares;
}

}  // namespace rrfp::cli
