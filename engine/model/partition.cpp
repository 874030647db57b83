// SPDX-License-Identifier: Apache-2.0
#include "engine/model/partition.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "engine/model/aligned.h"
#include "engine/model/execute.h"

namespace rrfp::model {

using core::Code;
using core::Status;
using core::TaskKind;

std::vector<int64_t> estimate_costs(const Graph& graph) {
  std::vector<int64_t> costs(graph.blocks().size(), 1);
  for (const Op& op : graph.ops()) {
    if (op.kind != OpKind::kLinear) continue;
    costs[op.block.index()] += graph.parameter(op.parameters[0]).shape.elements();
  }
  return costs;
}

namespace {

/// The whole model in one stage, with memory of its own.
class Trial {
 public:
  Trial(const Graph& graph, const kernels::Kernels& kernels) : graph_(graph) {
    bound_.kernels = &kernels;
    bound_.graph = &graph;
    bound_.table = &table_;
    bound_.training = true;
  }

  Status prepare(std::span<const Shape> input_shapes, std::span<const float* const> inputs) {
    if (Status s = graph_.infer(input_shapes, shapes_); !s.ok()) return s;
    Cut cut;
    constexpr int32_t kFirst = 0;
    if (Status s = cut_model(graph_, {&kFirst, 1}, cut); !s.ok()) return s;
    program_ = Program::for_stage(graph_, cut, core::StageId(0), false);
    layout_ = make_layout(graph_, program_, shapes_, *bound_.kernels);
    make_weights();
    saved_ = AlignedFloats(layout_.saved);
    scratch_ = AlignedFloats(std::max(layout_.scratch[static_cast<size_t>(TaskKind::kForward)],
                                      layout_.scratch[static_cast<size_t>(TaskKind::kBackward)]));
    bound_.shapes = shapes_.data();
    bound_.saved = saved_.data();
    bound_.scratch = scratch_.data();
    bound_.pointers.assign(program_.slots.size(), nullptr);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int32_t slot = program_.value_slot[graph_.inputs()[k].index()];
      // Inputs are only read; slots have one type of pointer.
      if (slot != kNoSlot)
        bound_.pointers[static_cast<size_t>(slot)] = const_cast<float*>(inputs[k]);
    }
    return {};
  }

  /// Adds the time of every block to `ns`.
  void run(TaskKind kind, std::vector<int64_t>& ns) {
    using Clock = std::chrono::steady_clock;
    bind_slots(layout_, kind, bound_);
    for (const Instruction& i : program_.code(kind)) {
      const auto start = Clock::now();
      run_instruction(program_, layout_, kind, i, bound_);
      const auto time = Clock::now() - start;
      if (!i.op.valid()) continue;
      ns[graph_.op(i.op).block.index()] +=
          std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    }
  }

 private:
  // All weights are alike, and gradients of one size share memory: only the time matters.
  void make_weights() {
    int64_t largest = 0;
    for (const Parameter& p : graph_.parameters()) largest = std::max(largest, p.shape.elements());
    weights_ = AlignedFloats(largest);
    gradients_ = AlignedFloats(largest);
    constexpr float kAny = 0.01F;
    bound_.kernels->fill(largest, kAny, weights_.data());
    bound_.kernels->fill(largest, 0.0F, gradients_.data());
    table_.weights.assign(graph_.parameters().size(), weights_.data());
    table_.gradients.assign(graph_.ops().size() * Op::kParametersMax, nullptr);
    for (size_t o = 0; o < graph_.ops().size(); ++o) {
      const Op& op = graph_.ops()[o];
      for (size_t p = 0; p < op.parameters.size(); ++p) {
        if (graph_.parameter(op.parameters[p]).frozen) continue;
        table_.gradients[o * Op::kParametersMax + p] = gradients_.data();
      }
    }
  }

  const Graph& graph_;
  Program program_;
  Layout layout_;
  std::vector<Shape> shapes_;
  AlignedFloats weights_;
  AlignedFloats gradients_;
  AlignedFloats saved_;
  AlignedFloats scratch_;
  WeightTable table_;
  Bindings bound_;
};

}  // namespace

Status measure_costs(const Graph& graph, const kernels::Kernels& kernels,
                     std::span<const Shape> shapes, std::span<const float* const> inputs,
                     std::vector<int64_t>& out) {
  constexpr size_t kRuns = 5;  // after one that warms caches up
  Trial trial(graph, kernels);
  if (Status s = trial.prepare(shapes, inputs); !s.ok()) return s;
  const size_t blocks = graph.blocks().size();
  std::vector<std::vector<int64_t>> times(blocks);
  for (size_t run = 0; run <= kRuns; ++run) {
    std::vector<int64_t> ns(blocks, 0);
    trial.run(TaskKind::kForward, ns);
    trial.run(TaskKind::kBackward, ns);
    for (size_t b = 0; run > 0 && b < blocks; ++b) times[b].push_back(ns[b]);
  }
  out.clear();
  for (std::vector<int64_t>& of_block : times) {
    std::nth_element(of_block.begin(), of_block.begin() + kRuns / 2, of_block.end());
    out.push_back(of_block[kRuns / 2]);
  }
  return {};
}

Status partition(std::span<const int64_t> costs, int32_t stages, std::vector<int32_t>& out) {
  const auto blocks = static_cast<int32_t>(costs.size());
  if (stages < 1 || stages > blocks) {
    return {Code::kOutOfRange,
            "stages is " + std::to_string(stages) + "; the model has " + std::to_string(blocks) +
                " blocks, and every stage needs one: expected 1 to " + std::to_string(blocks)};
  }
  constexpr int64_t kCostMax = int64_t{1} << 40;
  std::vector<int64_t> sums(costs.size() + 1, 0);  // of the first so many blocks
  for (size_t b = 0; b < costs.size(); ++b) {
    if (costs[b] < 0 || costs[b] > kCostMax) {
      return {Code::kInvalidArgument, "the cost of block " + std::to_string(b) + " is " +
                                          std::to_string(costs[b]) + "; expected 0 to " +
                                          std::to_string(kCostMax)};
    }
    sums[b + 1] = sums[b] + costs[b];
  }
  // best[s][b]: the smallest possible largest cost of s + 1 stages that hold the first b blocks.
  const auto count = static_cast<size_t>(stages);
  const size_t width = costs.size() + 1;
  constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> best(count * width, kImpossible);
  std::vector<int32_t> begin(count * width, 0);
  for (size_t b = 1; b < width; ++b) best[b] = sums[b];
  for (size_t s = 1; s < count; ++s) {
    for (size_t b = s + 1; b < width; ++b) {
      for (size_t first = s; first < b; ++first) {
        const int64_t most = std::max(best[(s - 1) * width + first], sums[b] - sums[first]);
        if (most >= best[s * width + b]) continue;
        best[s * width + b] = most;
        begin[s * width + b] = static_cast<int32_t>(first);
      }
    }
  }
  out.assign(count, 0);
  size_t end = costs.size();
  for (size_t s = count; s-- > 0;) {
    out[s] = begin[s * width + end];
    end = static_cast<size_t>(out[s]);
  }
  return {};
}

}  // namespace rrfp::model
