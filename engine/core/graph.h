// SPDX-License-Identifier: Apache-2.0
//
// The fixed part of a pipeline: stages, the directed edges between them, and the rank that owns
// each stage. Stages form a directed acyclic graph; ranks own any number of stages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/ids.h"
#include "engine/core/status.h"

namespace rrfp::core {

struct Stage {
  RankId rank;
  bool loss = false;             // its forward starts the backward pass of the microbatch
  bool frozen = false;           // no weight gradient: parameters are frozen, or there are none
  bool input_gradient = false;   // its caller wants gradients for what enters from outside
  bool fused_only = false;       // its caller can run B, but not I and W apart
  int64_t activation_bytes = 0;  // kept from F to the end of B or W, for one microbatch
  // Predicted durations; 0 = unknown. They serve holding only (see rank_core.h).
  int64_t forward_ns = 0;
  int64_t input_gradient_ns = 0;
  int64_t weight_gradient_ns = 0;
};

struct Edge {
  StageId from;
  StageId to;
  bool gradient = true;  // false: nothing flows back along it
};

enum class Placement : uint8_t {
  kLinear,  // stage s on rank s
  kLoop,    // stage s on rank s mod ranks
  kV,       // two stages a rank: r and 2 * ranks - 1 - r
};

class StageGraph {
 public:
  static constexpr int32_t kRanksMax = 1 << 16;
  static constexpr int32_t kStagesMax = 1 << 20;
  /// Of one stage and microbatch. Far beyond any machine, and small enough to add up a few.
  static constexpr int64_t kActivationBytesMax = int64_t{1} << 50;
  static constexpr int64_t kDurationNsMax = int64_t{1} << 50;  // 13 days

  explicit StageGraph(int32_t ranks) : ranks_(ranks) {}

  Status add_stage(const Stage& stage, StageId& out);
  Status add_edge(const Edge& edge, EdgeId& out);
  /// Places every stage. The stages count in the order in which they were added.
  Status place(Placement placement);
  Status place(StageId stage, RankId rank);

  /// Checks that every stage has a rank, every rank a stage, and that there is no cycle; computes
  /// order() and depth(). Must succeed before the graph is used by anything else.
  Status seal();
  [[nodiscard]] bool sealed() const { return sealed_; }

  [[nodiscard]] int32_t ranks() const { return ranks_; }
  [[nodiscard]] int32_t stage_count() const { return static_cast<int32_t>(stages_.size()); }
  [[nodiscard]] int32_t edge_count() const { return static_cast<int32_t>(edges_.size()); }
  [[nodiscard]] const Stage& stage(StageId id) const { return stages_[id.index()]; }
  [[nodiscard]] const Edge& edge(EdgeId id) const { return edges_[id.index()]; }
  [[nodiscard]] std::span<const EdgeId> in_edges(StageId id) const { return in_[id.index()]; }
  [[nodiscard]] std::span<const EdgeId> out_edges(StageId id) const { return out_[id.index()]; }

  /// Stages in topological order; ties by number.
  [[nodiscard]] std::span<const StageId> order() const { return order_; }
  /// Edges on the longest path from any source to this stage.
  [[nodiscard]] int32_t depth(StageId id) const { return depth_[id.index()]; }
  [[nodiscard]] int32_t depth_max() const { return depth_max_; }
  /// The stages of a rank, in topological order: its chunks, the deepest last.
  [[nodiscard]] std::span<const StageId> chunks(RankId rank) const { return chunks_[rank.index()]; }
  /// The largest number of stages on one rank.
  [[nodiscard]] int32_t chunks_max() const { return chunks_max_; }

  [[nodiscard]] Status check_stage(StageId id) const;
  [[nodiscard]] Status check_rank(RankId rank) const;

 private:
  Status sort();
  [[nodiscard]] std::string find_cycle() const;

  int32_t ranks_;
  bool sealed_ = false;
  std::vector<Stage> stages_;
  std::vector<Edge> edges_;
  std::vector<std::vector<EdgeId>> in_;
  std::vector<std::vector<EdgeId>> out_;
  std::vector<StageId> order_;
  std::vector<int32_t> depth_;
  int32_t depth_max_ = 0;
  std::vector<std::vector<StageId>> chunks_;
  int32_t chunks_max_ = 0;
};

}  // namespace rrfp::core
