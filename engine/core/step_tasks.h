// SPDX-License-Identifier: Apache-2.0
//
// Which tasks and messages a step has: stages x microbatches x kinds, less what is skipped, frozen
// or forward-only. Every rank computes the same answer from the same step shape.
//
// Rules, for stage s and microbatch i:
//   takes_part(s,i)    unless the step's skip mask says otherwise
//   active(e,i)        both ends of edge e take part: a forward message travels
//   requires(s,i)      s has trainable parameters, or its caller wants input gradients, or a stage
//                      that requires a gradient feeds it along an active gradient edge
//   flows(s,i)         s is a loss stage, or feeds, along an active gradient edge, a stage in which
//                      the gradient flows
//   backward(s,i)      train step, requires(s,i) and flows(s,i): there is a B, or I (and W)
//   weight(s,i)        backward(s,i) and s has trainable parameters: there is a W half
//   returns(e,i)       for e = s -> t, active and a gradient edge, requires(s,i) and flows(t,i): a
//                      backward message travels
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/core/graph.h"

namespace rrfp::core {

enum class StepMode : uint8_t { kTrain = 0, kForwardOnly = 1 };

/// What may change from step to step, apart from the hint.
struct StepShape {
  StepMode mode = StepMode::kTrain;
  int32_t microbatches = 0;
  /// Empty, or [stage][microbatch], row by row: nonzero = the microbatch skips the stage.
  std::vector<uint8_t> skip = {};
  /// Empty (then Stage::activation_bytes holds for all), or [stage][microbatch], row by row.
  std::vector<int64_t> activation_bytes = {};
  /// Empty (then all are alike), or [stage][microbatch], row by row: the predicted duration of its
  /// tasks, in thousandths of that of its stage. It serves holding only.
  std::vector<int32_t> cost_permille = {};
  /// Empty (then what the Stages say holds), or [stage][3]: predicted durations of F, I and W.
  std::vector<int64_t> stage_ns = {};
  /// Empty, or [stage][microbatch][3], row by row: when F, B or I, and W should start, from the
  /// beginning of the step. For Policy::late_ns.
  std::vector<int64_t> planned_ns = {};

  bool operator==(const StepShape&) const = default;
};

class StepTasks {
 public:
  static constexpr int32_t kMicrobatchesMax = 1 << 24;
  static constexpr int32_t kCostPermilleMax = 1'000'000;

  /// Checks the shape against the graph.
  static Status create(std::shared_ptr<const StageGraph> graph, StepShape shape,
                       std::shared_ptr<const StepTasks>& out);

  [[nodiscard]] const StageGraph& graph() const { return *graph_; }
  [[nodiscard]] const StepShape& shape() const { return shape_; }
  [[nodiscard]] int32_t microbatches() const { return shape_.microbatches; }

  [[nodiscard]] bool takes_part(StageId s, MicrobatchId i) const { return has(s, i, kTakesPart); }
  [[nodiscard]] bool backward(StageId s, MicrobatchId i) const { return has(s, i, kBackward); }
  [[nodiscard]] bool weight(StageId s, MicrobatchId i) const {
    return backward(s, i) && !graph_->stage(s).frozen;
  }
  [[nodiscard]] bool active(EdgeId e, MicrobatchId i) const {
    const Edge& edge = graph_->edge(e);
    return takes_part(edge.from, i) && takes_part(edge.to, i);
  }
  [[nodiscard]] bool returns(EdgeId e, MicrobatchId i) const {
    const Edge& edge = graph_->edge(e);
    return shape_.mode == StepMode::kTrain && edge.gradient && active(e, i) &&
           has(edge.from, i, kRequires) && has(edge.to, i, kFlows);
  }
  /// Bytes held from the start of F to the end of the backward pass; 0 where there is none.
  [[nodiscard]] int64_t held_bytes(StageId s, MicrobatchId i) const;
  /// Predicted, of F, I or W of a microbatch of cost 1000.
  [[nodiscard]] std::array<int64_t, 3> stage_ns(StageId s) const {
    const Stage& stage = graph_->stage(s);
    if (shape_.stage_ns.empty()) {
      return {stage.forward_ns, stage.input_gradient_ns, stage.weight_gradient_ns};
    }
    const int64_t* const ns = &shape_.stage_ns[3 * s.index()];
    return {ns[0], ns[1], ns[2]};
  }
  [[nodiscard]] int64_t planned_ns(const Task& task) const {
    const size_t kind = task.kind == TaskKind::kForward          ? 0
                        : task.kind == TaskKind::kWeightGradient ? 2
                                                                 : 1;
    return shape_.planned_ns[3 * cell(task.stage, task.microbatch) + kind];
  }
  [[nodiscard]] int32_t cost_permille(StageId s, MicrobatchId i) const {
    return shape_.cost_permille.empty() ? 1000 : shape_.cost_permille[cell(s, i)];
  }

 private:
  enum Bit : uint8_t { kTakesPart = 1, kRequires = 2, kFlows = 4, kBackward = 8 };

  StepTasks(std::shared_ptr<const StageGraph> graph, StepShape shape);
  /// Without a skip mask all microbatches are alike and one column serves for all.
  [[nodiscard]] size_t column(MicrobatchId i) const { return shape_.skip.empty() ? 0 : i.index(); }
  [[nodiscard]] bool has(StageId s, MicrobatchId i, Bit bit) const {
    return (bits_[s.index() * columns_ + column(i)] & bit) != 0;
  }
  [[nodiscard]] size_t cell(StageId s, MicrobatchId i) const {
    return s.index() * static_cast<size_t>(shape_.microbatches) + i.index();
  }
  void compute(MicrobatchId i);

  std::shared_ptr<const StageGraph> graph_;
  StepShape shape_;
  size_t columns_;
  std::vector<uint8_t> bits_;  // [stage][column]
};

}  // namespace rrfp::core
