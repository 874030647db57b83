// SPDX-License-Identifier: Apache-2.0
#include "engine/model/cut.h"

#include <algorithm>
#include <map>
#include <set>

namespace rrfp::model {

using core::Code;
using core::StageId;
using core::Status;

namespace {

Status check_first_blocks(const Graph& graph, std::span<const int32_t> first_blocks) {
  const auto blocks = static_cast<int32_t>(graph.blocks().size());
  if (first_blocks.empty() || static_cast<int32_t>(first_blocks.size()) > blocks) {
    return {Code::kOutOfRange, "stages is " + std::to_string(first_blocks.size()) +
                                   "; the model has " + std::to_string(blocks) +
                                   " blocks, and every stage needs one"};
  }
  for (size_t s = 0; s < first_blocks.size(); ++s) {
    const int32_t least = s == 0 ? 0 : first_blocks[s - 1] + 1;
    const int32_t most = s == 0 ? 0 : blocks - 1;
    if (first_blocks[s] >= least && first_blocks[s] <= most) continue;
    return {Code::kOutOfRange, "the first block of stage " + std::to_string(s) + " is " +
                                   std::to_string(first_blocks[s]) + "; expected " +
                                   std::to_string(least) + " to " + std::to_string(most)};
  }
  return {};
}

bool is_loss(const Graph& graph, ValueId value) {
  return std::any_of(graph.losses().begin(), graph.losses().end(),
                     [&](const Loss& loss) { return loss.value == value; });
}

/// A loss is an end: what else its gradient would get does not have to be ordered.
Status check_losses(const Graph& graph) {
  if (graph.losses().empty()) return {Code::kBadState, "the model has no loss; set one first"};
  const std::vector<bool> needed = graph.needed_for_losses();
  for (size_t k = 0; k < graph.ops().size(); ++k) {
    if (!needed[k]) continue;
    for (ValueId input : graph.ops()[k].inputs) {
      if (!is_loss(graph, input)) continue;
      return {Code::kInvalidArgument,
              describe(graph, graph.ops()[k]) + " reads value " + std::to_string(input.value) +
                  ", a loss, on the way to another one; expected no operation behind a loss"};
    }
  }
  return {};
}

/// The stages that read each value, itself not counted, in ascending order.
std::vector<std::set<StageId>> find_readers(const Graph& graph, const Cut& cut) {
  std::vector<std::set<StageId>> readers(graph.values().size());
  for (const Op& op : graph.ops()) {
    const StageId stage = cut.stage_of[graph.value(op.output).producer.index()];
    if (!stage.valid()) continue;
    for (ValueId input : op.inputs) {
      const Value& value = graph.value(input);
      if (!value.producer.valid()) continue;  // inputs of the model are given to every stage
      if (cut.stage_of[value.producer.index()] != stage) readers[input.index()].insert(stage);
    }
  }
  return readers;
}

void add_edges(const Graph& graph, Cut& cut) {
  std::map<std::pair<StageId, StageId>, CutEdge> edges;
  const std::vector<std::set<StageId>> readers = find_readers(graph, cut);
  for (size_t v = 0; v < readers.size(); ++v) {
    if (readers[v].empty()) continue;
    const Value& value = graph.values()[v];
    StageId from = cut.stage_of[value.producer.index()];
    for (StageId to : readers[v]) {
      CutEdge& edge = edges[{from, to}];
      edge.from = from;
      edge.to = to;
      edge.values.push_back(ValueId::of(v));
      edge.gradient = edge.gradient || value.wants_gradient;
      if (value.wants_gradient) from = to;
    }
  }
  for (auto& [ends, edge] : edges) cut.edges.push_back(std::move(edge));
}

}  // namespace

Status cut_model(const Graph& graph, std::span<const int32_t> first_blocks, Cut& out) {
  if (Status s = check_first_blocks(graph, first_blocks); !s.ok()) return s;
  if (Status s = check_losses(graph); !s.ok()) return s;
  Cut cut;
  for (size_t s = 0; s < first_blocks.size(); ++s) {
    const bool last = s + 1 == first_blocks.size();
    const auto end = last ? static_cast<int32_t>(graph.blocks().size()) : first_blocks[s + 1];
    cut.stages.push_back({.first_block = first_blocks[s], .last_block = end - 1});
  }
  const std::vector<bool> needed = graph.needed_for_losses();
  cut.stage_of.assign(graph.ops().size(), {});
  std::vector<bool> occupied(cut.stages.size(), false);
  for (size_t k = 0; k < graph.ops().size(); ++k) {
    if (!needed[k]) continue;
    const Op& op = graph.ops()[k];
    const auto next = std::upper_bound(first_blocks.begin(), first_blocks.end(), op.block.value);
    const StageId stage = StageId::of(next - first_blocks.begin() - 1);
    cut.stage_of[k] = stage;
    occupied[stage.index()] = true;
    CutStage& its = cut.stages[stage.index()];
    its.loss = its.loss || is_loss(graph, op.output);
    for (ParameterId p : op.parameters) its.trainable |= !graph.parameter(p).frozen;
  }
  for (size_t s = 0; s < cut.stages.size(); ++s) {
    if (occupied[s]) continue;
    return {Code::kInvalidArgument, "stage " + std::to_string(s) + " (blocks " +
                                        std::to_string(cut.stages[s].first_block) + " to " +
                                        std::to_string(cut.stages[s].last_block) +
                                        ") has no operation that the loss needs"};
  }
  add_edges(graph, cut);
  out = std::move(cut);
  return {};
}

}  // namespace rrfp::model
