// SPDX-License-Identifier: Apache-2.0
//
// Whether a graph has the shape that a published schedule needs.
#include <string>

#include "engine/core/published_schedules.h"

namespace rrfp::core {
namespace {

Status refuse(std::string_view schedule, const std::string& need, const std::string& have) {
  return {Code::kBadOrder,
          "the schedule \"" + std::string(schedule) + "\" needs " + need + "; here " + have};
}

/// `rank_of(k)`: the rank that the schedule wants for the k-th stage of the chain.
template <class RankOf>
Status check_chain(std::string_view schedule, const StageGraph& graph, const std::string& need,
                   RankOf rank_of) {
  // The longest path visits every stage exactly when the stages form one chain.
  if (graph.depth_max() + 1 != graph.stage_count()) {
    return refuse(schedule, need,
                  "the longest path has " + std::to_string(graph.depth_max() + 1) + " of the " +
                      std::to_string(graph.stage_count()) + " stages");
  }
  for (int32_t k = 0; k < graph.stage_count(); ++k) {
    const StageId s = graph.order()[static_cast<size_t>(k)];
    const int32_t want = rank_of(k);
    const int32_t have = graph.stage(s).rank.value;
    if (have == want) continue;
    return refuse(schedule, need,
                  "stage " + std::to_string(s.value) + ", number " + std::to_string(k) +
                      " along the chain, is on rank " + std::to_string(have) + " instead of rank " +
                      std::to_string(want));
  }
  return {};
}

}  // namespace

Status check_loop_chain(std::string_view schedule, const StageGraph& graph) {
  const int32_t p = graph.ranks();
  const std::string need =
      "a chain of stages with the same number on each rank, stage k on rank "
      "k mod " +
      std::to_string(p);
  if (graph.stage_count() % p != 0) {
    return refuse(schedule, need,
                  "there are " + std::to_string(graph.stage_count()) + " stages for " +
                      std::to_string(p) + " ranks");
  }
  return check_chain(schedule, graph, need, [p](int32_t k) { return k % p; });
}

Status check_v_chain(std::string_view schedule, const StageGraph& graph) {
  const int32_t p = graph.ranks();
  const std::string need = "a chain of two stages for each rank, stages r and " +
                           std::to_string(2 * p - 1) + " - r on rank r";
  if (graph.stage_count() != 2 * p) {
    return refuse(schedule, need,
                  "there are " + std::to_string(graph.stage_count()) + " stages for " +
                      std::to_string(p) + " ranks");
  }
  return check_chain(schedule, graph, need, [p](int32_t k) { return k < p ? k : 2 * p - 1 - k; });
}

}  // namespace rrfp::core
