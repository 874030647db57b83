// SPDX-License-Identifier: Apache-2.0
#include "engine/core/graph.h"

#include <algorithm>
#include <cassert>
#include <queue>

namespace rrfp::core {

Status StageGraph::check_stage(StageId id) const {
  if (id.valid() && id.value < stage_count()) return {};
  return {Code::kOutOfRange, "stage " + std::to_string(id.value) +
                                 " does not exist; the graph has " + std::to_string(stage_count()) +
                                 " stages, numbered from 0"};
}

Status StageGraph::check_rank(RankId rank) const {
  if (rank.valid() && rank.value < ranks_) return {};
  return {Code::kOutOfRange, "rank " + std::to_string(rank.value) + " does not exist; there are " +
                                 std::to_string(ranks_) + " ranks, numbered from 0"};
}

Status StageGraph::add_stage(const Stage& stage, StageId& out) {
  if (stage_count() == kStagesMax) {
    return {Code::kOutOfRange, "a graph holds at most " + std::to_string(kStagesMax) + " stages"};
  }
  if (stage.rank.valid()) {
    if (Status s = check_rank(stage.rank); !s.ok()) return s;
  }
  const auto outside = [](int64_t value, int64_t limit) { return value < 0 || value > limit; };
  const auto refuse = [](const char* what, int64_t value, int64_t limit) {
    return Status{Code::kInvalidArgument, std::string(what) + " is " + std::to_string(value) +
                                              "; expected 0 to " + std::to_string(limit)};
  };
  if (outside(stage.activation_bytes, kActivationBytesMax)) {
    return refuse("activation_bytes", stage.activation_bytes, kActivationBytesMax);
  }
  if (outside(stage.forward_ns, kDurationNsMax)) {
    return refuse("forward_ns", stage.forward_ns, kDurationNsMax);
  }
  if (outside(stage.input_gradient_ns, kDurationNsMax)) {
    return refuse("input_gradient_ns", stage.input_gradient_ns, kDurationNsMax);
  }
  if (outside(stage.weight_gradient_ns, kDurationNsMax)) {
    return refuse("weight_gradient_ns", stage.weight_gradient_ns, kDurationNsMax);
  }
  sealed_ = false;
  out = StageId::of(stages_.size());
  stages_.push_back(stage);
  in_.emplace_back();
  out_.emplace_back();
  return {};
}

Status StageGraph::add_edge(const Edge& edge, EdgeId& out) {
  if (Status s = check_stage(edge.from); !s.ok()) return s;
  if (Status s = check_stage(edge.to); !s.ok()) return s;
  if (edge.from == edge.to) {
    return {Code::kCycle,
            "an edge from stage " + std::to_string(edge.from.value) + " to itself is a cycle"};
  }
  sealed_ = false;
  out = EdgeId::of(edges_.size());
  edges_.push_back(edge);
  out_[edge.from.index()].push_back(out);
  in_[edge.to.index()].push_back(out);
  return {};
}

Status StageGraph::place(Placement placement) {
  const int32_t count = stage_count();
  if (placement == Placement::kLinear && count != ranks_) {
    return {Code::kInvalidArgument,
            "linear placement needs as many stages as ranks, but there are " +
                std::to_string(count) + " stages and " + std::to_string(ranks_) + " ranks"};
  }
  if (placement == Placement::kV && count != 2 * ranks_) {
    return {Code::kInvalidArgument, "V placement needs two stages for each rank, but there are " +
                                        std::to_string(count) + " stages and " +
                                        std::to_string(ranks_) + " ranks"};
  }
  for (int32_t s = 0; s < count; ++s) {
    int32_t rank = s % ranks_;
    if (placement == Placement::kV && s >= ranks_) rank = 2 * ranks_ - 1 - s;
    stages_[static_cast<size_t>(s)].rank = RankId(rank);
  }
  sealed_ = false;
  return {};
}

Status StageGraph::place(StageId stage, RankId rank) {
  if (Status s = check_stage(stage); !s.ok()) return s;
  if (Status s = check_rank(rank); !s.ok()) return s;
  stages_[stage.index()].rank = rank;
  sealed_ = false;
  return {};
}

Status StageGraph::seal() {
  if (stages_.empty()) {
    return {Code::kInvalidArgument, "the graph has no stages; it needs at least one"};
  }
  chunks_.assign(static_cast<size_t>(ranks_), {});
  for (int32_t s = 0; s < stage_count(); ++s) {
    if (!stages_[static_cast<size_t>(s)].rank.valid()) {
      return {Code::kUnplacedStage,
              "stage " + std::to_string(s) + " is on no rank; place every stage"};
    }
  }
  if (Status s = sort(); !s.ok()) return s;
  chunks_max_ = 0;
  for (StageId s : order_) chunks_[stage(s).rank.index()].push_back(s);
  for (int32_t r = 0; r < ranks_; ++r) {
    const auto chunk_count = static_cast<int32_t>(chunks_[static_cast<size_t>(r)].size());
    if (chunk_count == 0) {
      return {Code::kUnplacedStage,
              "rank " + std::to_string(r) + " owns no stage; every rank needs at least one"};
    }
    chunks_max_ = std::max(chunks_max_, chunk_count);
  }
  sealed_ = true;
  return {};
}

Status StageGraph::sort() {
  order_.clear();
  depth_.assign(stages_.size(), 0);
  depth_max_ = 0;
  std::vector<size_t> missing(stages_.size());
  std::priority_queue<StageId, std::vector<StageId>, std::greater<>> ready;
  for (size_t s = 0; s < stages_.size(); ++s) {
    missing[s] = in_[s].size();
    if (missing[s] == 0) ready.push(StageId::of(s));
  }
  while (!ready.empty()) {
    const StageId s = ready.top();
    ready.pop();
    order_.push_back(s);
    depth_max_ = std::max(depth_max_, depth(s));
    for (EdgeId e : out_edges(s)) {
      const StageId to = edge(e).to;
      depth_[to.index()] = std::max(depth_[to.index()], depth(s) + 1);
      if (--missing[to.index()] == 0) ready.push(to);
    }
  }
  if (order_.size() == stages_.size()) return {};
  return {Code::kCycle, "the stages form a cycle: " + find_cycle()};
}

std::string StageGraph::find_cycle() const {
  // Every stage that the sort left out has an unsorted predecessor, so walking backwards from one
  // of them must come back to a stage already seen.
  std::vector<bool> sorted(stages_.size(), false);
  for (StageId s : order_) sorted[s.index()] = true;
  const auto left_out = std::find(sorted.begin(), sorted.end(), false);
  assert(left_out != sorted.end());
  std::vector<StageId> walk = {StageId::of(left_out - sorted.begin())};
  std::vector<bool> walked(stages_.size(), false);
  for (;;) {
    const auto& ins = in_[walk.back().index()];
    const auto back = std::find_if(ins.begin(), ins.end(),
                                   [&](EdgeId e) { return !sorted[edge(e).from.index()]; });
    const StageId from = edge(*back).from;
    walked[walk.back().index()] = true;
    const bool closed = walked[from.index()];
    walk.push_back(from);
    if (!closed) continue;
    std::string text;
    for (auto at = walk.rbegin();; ++at) {
      text += std::to_string(at->value);
      if (at != walk.rbegin() && *at == from) return text;
      text += " -> ";
    }
  }
}

}  // namespace rrfp::core
