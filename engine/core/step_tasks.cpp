// SPDX-License-Identifier: Apache-2.0
#include "engine/core/step_tasks.h"

#include <cassert>

namespace rrfp::core {

Status StepTasks::create(std::shared_ptr<const StageGraph> graph, StepShape shape,
                         std::shared_ptr<const StepTasks>& out) {
  assert(graph->sealed());
  const int32_t m = shape.microbatches;
  if (m < 1 || m > kMicrobatchesMax) {
    return {Code::kInvalidArgument, "microbatches is " + std::to_string(m) + "; expected 1 to " +
                                        std::to_string(kMicrobatchesMax)};
  }
  const size_t cells = static_cast<size_t>(graph->stage_count()) * static_cast<size_t>(m);
  const auto wrong_size = [&](const char* what, size_t size) {
    return Status{Code::kInvalidArgument, std::string(what) + " has " + std::to_string(size) +
                                              " entries; expected " +
                                              std::to_string(graph->stage_count()) + " stages x " +
                                              std::to_string(m) + " microbatches"};
  };
  if (!shape.skip.empty() && shape.skip.size() != cells) {
    return wrong_size("skip", shape.skip.size());
  }
  if (!shape.activation_bytes.empty() && shape.activation_bytes.size() != cells) {
    return wrong_size("activation_bytes", shape.activation_bytes.size());
  }
  for (size_t k = 0; k < shape.activation_bytes.size(); ++k) {
    const int64_t bytes = shape.activation_bytes[k];
    if (bytes >= 0 && bytes <= StageGraph::kActivationBytesMax) continue;
    const auto columns = static_cast<size_t>(m);
    return {Code::kInvalidArgument, "activation_bytes of stage " + std::to_string(k / columns) +
                                        ", microbatch " + std::to_string(k % columns) + " is " +
                                        std::to_string(bytes) + "; expected 0 to " +
                                        std::to_string(StageGraph::kActivationBytesMax)};
  }
  if (!shape.planned_ns.empty() && shape.planned_ns.size() != 3 * cells) {
    return wrong_size("planned_ns", shape.planned_ns.size());
  }
  if (!shape.cost_permille.empty() && shape.cost_permille.size() != cells) {
    return wrong_size("cost_permille", shape.cost_permille.size());
  }
  if (!shape.stage_ns.empty() &&
      shape.stage_ns.size() != 3 * static_cast<size_t>(graph->stage_count())) {
    return {Code::kInvalidArgument, "stage_ns has " + std::to_string(shape.stage_ns.size()) +
                                        " entries; expected " +
                                        std::to_string(graph->stage_count()) + " stages x 3"};
  }
  for (const int64_t ns : shape.stage_ns) {
    if (ns >= 0 && ns <= StageGraph::kDurationNsMax) continue;
    return {Code::kInvalidArgument, "stage_ns holds " + std::to_string(ns) + "; expected 0 to " +
                                        std::to_string(StageGraph::kDurationNsMax)};
  }
  for (const int32_t cost : shape.cost_permille) {
    if (cost >= 0 && cost <= kCostPermilleMax) continue;
    return {Code::kInvalidArgument, "cost_permille holds " + std::to_string(cost) +
                                        "; expected 0 to " + std::to_string(kCostPermilleMax)};
  }
  out.reset(new StepTasks(std::move(graph), std::move(shape)));
  return {};
}

StepTasks::StepTasks(std::shared_ptr<const StageGraph> graph, StepShape shape)
    : graph_(std::move(graph)), shape_(std::move(shape)) {
  columns_ = shape_.skip.empty() ? 1 : static_cast<size_t>(shape_.microbatches);
  bits_.assign(static_cast<size_t>(graph_->stage_count()) * columns_, 0);
  for (size_t k = 0; k < columns_; ++k) compute(MicrobatchId::of(k));
}

void StepTasks::compute(MicrobatchId i) {
  const auto bits = [&](StageId s) -> uint8_t& { return bits_[s.index() * columns_ + column(i)]; };
  for (StageId s : graph_->order()) {
    const size_t cell = s.index() * columns_ + column(i);
    if (!shape_.skip.empty() && shape_.skip[cell] != 0) continue;
    const Stage& stage = graph_->stage(s);
    bool needed = !stage.frozen || stage.input_gradient;
    for (EdgeId e : graph_->in_edges(s)) {
      needed = needed || (graph_->edge(e).gradient && has(graph_->edge(e).from, i, kRequires));
    }
    bits(s) = static_cast<uint8_t>(kTakesPart | (needed ? kRequires : 0));
  }
  const std::span<const StageId> order = graph_->order();
  for (size_t k = order.size(); k-- > 0;) {
    const StageId s = order[k];
    if (!takes_part(s, i)) continue;
    bool flows = graph_->stage(s).loss;
    for (EdgeId e : graph_->out_edges(s)) {
      flows = flows || (graph_->edge(e).gradient && has(graph_->edge(e).to, i, kFlows));
    }
    if (!flows) continue;
    bits(s) |= kFlows;
    if (shape_.mode == StepMode::kTrain && (bits(s) & kRequires) != 0) bits(s) |= kBackward;
  }
}

int64_t StepTasks::held_bytes(StageId s, MicrobatchId i) const {
  if (!backward(s, i)) return 0;
  if (shape_.activation_bytes.empty()) return graph_->stage(s).activation_bytes;
  return shape_.activation_bytes[cell(s, i)];
}

}  // namespace rrfp::core
