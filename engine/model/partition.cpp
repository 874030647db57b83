// SPDX-License-Identifier: Apache-2.0
#include "engine/model/partition.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <set>

#include "engine/model/aligned.h"
#include "engine/model/execute.h"

namespace rrfp::model {

using core::Code;
using core::Status;
using core::TaskKind;

namespace {

/// Of an estimate; so many blocks can be added up.
constexpr int64_t kCostMax = std::numeric_limits<int64_t>::max() / Graph::kCountMax;

/// Rows of a value: all axes but the last. The first axis, how many there are of a microbatch,
/// counts as 1 where it is unknown, the inner ones as `inner`.
int64_t estimate_rows(const Shape& y, int64_t inner) {
  int64_t rows = 1;
  for (int32_t d = 0; d + 1 < y.ndim; ++d) {
    const int64_t unknown = d == 0 ? 1 : inner;
    const int64_t each = y[d] == Shape::kUnknown ? unknown : std::max<int64_t>(y[d], 1);
    rows = rows > kCostMax / each ? kCostMax : rows * each;
  }
  return rows;
}

}  // namespace

std::vector<int64_t> estimate_costs(const Graph& graph) {
  // A text is taken to be as long as a picture has rows, once it leaves the block that makes them.
  int64_t inner = 1;
  for (const Op& op : graph.ops()) {
    for (const ValueId input : op.inputs) {
      const Value& value = graph.value(input);
      if (!value.producer.valid() || graph.op(value.producer).block == op.block) continue;
      inner = std::max(inner, estimate_rows(value.shape, 1));
    }
  }
  const std::vector<bool> needed = graph.needed_for_losses();
  std::vector<int64_t> costs(graph.blocks().size(), 0);
  for (size_t k = 0; k < graph.ops().size(); ++k) {
    const Op& op = graph.ops()[k];
    if (!needed[k]) continue;
    int64_t& cost = costs[op.block.index()];
    if (cost == 0) cost = 1;
    if (op.kind != OpKind::kLinear) continue;
    const Parameter& weight = graph.parameter(op.parameters[0]);
    // The product itself, the gradient of what it reads, and that of the weight.
    const int64_t products =
        1 + (graph.value(op.inputs[0]).wants_gradient ? 1 : 0) + (weight.frozen ? 0 : 1);
    const int64_t rows = estimate_rows(graph.value(op.output).shape, inner);
    const int64_t each = products * weight.shape.elements();
    cost += rows > (kCostMax - cost) / std::max<int64_t>(each, 1) ? kCostMax - cost : rows * each;
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
    factors_.assign(graph.losses().size(), 1);
    bound_.loss_factors = factors_.data();
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
  std::vector<float> factors_;
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

namespace {

Status check_costs(std::span<const int64_t> costs) {
  int64_t left = std::numeric_limits<int64_t>::max() - 1;  // the greatest number is no sum here
  for (size_t b = 0; b < costs.size(); ++b) {
    if (costs[b] >= 0 && costs[b] <= left) {
      left -= costs[b];
      continue;
    }
    return {Code::kInvalidArgument, "the cost of block " + std::to_string(b) + " is " +
                                        std::to_string(costs[b]) + "; expected 0 to " +
                                        std::to_string(left) + ", as the sum is of 64 bits"};
  }
  return {};
}

/// The first blocks of `count` runs whose most expensive one is as cheap as possible. No run has
/// blocks of two branches; there are at most as many branches as runs.
std::vector<int32_t> cut_runs(std::span<const int64_t> costs, std::span<const int32_t> branches,
                              size_t count) {
  std::vector<int64_t> sums(costs.size() + 1, 0);  // of the first so many blocks
  for (size_t b = 0; b < costs.size(); ++b) sums[b + 1] = sums[b] + costs[b];
  // best[s][b]: the smallest possible largest cost of s runs that hold the first b blocks.
  const size_t width = costs.size() + 1;
  constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> best((count + 1) * width, kImpossible);
  std::vector<size_t> begin((count + 1) * width, 0);
  best[0] = 0;
  for (size_t s = 1; s <= count; ++s) {
    for (size_t b = s; b < width; ++b) {
      for (size_t first = s - 1; first < b; ++first) {
        if (branches[first] != branches[b - 1]) continue;
        const int64_t most = std::max(best[(s - 1) * width + first], sums[b] - sums[first]);
        if (most >= best[s * width + b]) continue;
        best[s * width + b] = most;
        begin[s * width + b] = first;
      }
    }
  }
  std::vector<int32_t> firsts(count, 0);
  size_t end = costs.size();
  for (size_t s = count; s > 0; --s) {
    end = begin[s * width + end];
    firsts[s - 1] = static_cast<int32_t>(end);
  }
  return firsts;
}

/// Longest processing time first: every stage, the most expensive first, to the rank that has least
/// to do. Ranks are numbered by the first stage that they have.
std::vector<int32_t> spread(std::span<const int64_t> stage_costs, int32_t ranks) {
  std::vector<size_t> order(stage_costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return stage_costs[a] > stage_costs[b]; });
  const auto count = static_cast<size_t>(ranks);
  std::vector<int64_t> load(count, 0);
  std::vector<size_t> group(stage_costs.size(), 0);
  for (size_t k = 0; k < order.size(); ++k) {
    // The first ones have a rank each, so that none has nothing, not even where stages cost 0.
    const auto least =
        k < count ? k
                  : static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    group[order[k]] = least;
    load[least] += stage_costs[order[k]];
  }
  constexpr int32_t kUnnamed = -1;
  std::vector<int32_t> name(count, kUnnamed);
  int32_t next = 0;
  std::vector<int32_t> rank_of;
  for (const size_t g : group) {
    if (name[g] == kUnnamed) name[g] = next++;
    rank_of.push_back(name[g]);
  }
  return rank_of;
}

}  // namespace

Status partition(std::span<const int64_t> costs, int32_t stages, std::vector<int32_t>& out) {
  const auto blocks = static_cast<int32_t>(costs.size());
  if (stages < 1 || stages > blocks) {
    return {Code::kOutOfRange,
            "stages is " + std::to_string(stages) + "; the model has " + std::to_string(blocks) +
                " blocks, and every stage needs one: expected 1 to " + std::to_string(blocks)};
  }
  if (Status s = check_costs(costs); !s.ok()) return s;
  out = cut_runs(costs, std::vector<int32_t>(costs.size(), 0), static_cast<size_t>(stages));
  return {};
}

std::vector<int32_t> find_branches(const Graph& graph) {
  const size_t blocks = graph.blocks().size();
  std::vector<std::set<size_t>> reads(blocks);  // other blocks
  const std::vector<bool> needed = graph.needed_for_losses();
  std::vector<bool> has_work(blocks, false);
  for (size_t k = 0; k < graph.ops().size(); ++k) {
    const Op& op = graph.ops()[k];
    if (!needed[k]) continue;
    has_work[op.block.index()] = true;
    for (ValueId input : op.inputs) {
      const OpId producer = graph.value(input).producer;
      if (!producer.valid() || graph.op(producer).block == op.block) continue;
      reads[op.block.index()].insert(graph.op(producer).block.index());
    }
  }
  std::vector<int32_t> branches(blocks, 0);
  std::set<int32_t> known = {0};            // the branch itself and those that it depends on
  std::vector<std::set<int32_t>> known_by;  // by branch that is complete
  for (size_t b = 1; b < blocks; ++b) {
    std::set<int32_t> read;
    for (const size_t other : reads[b]) read.insert(branches[other]);
    const int32_t current = branches[b - 1];
    // A block that does nothing for the losses does not part the others.
    size_t before = b - 1;
    while (before > 0 && !has_work[before]) --before;
    const bool goes_on = !has_work[b] || !has_work[before] ||
                         (reads[b].contains(before) &&
                          std::includes(known.begin(), known.end(), read.begin(), read.end()));
    branches[b] = goes_on ? current : current + 1;
    if (goes_on) continue;
    known_by.push_back(std::move(known));
    known = {branches[b]};
    for (const int32_t other : read) {
      const std::set<int32_t>& its = known_by[static_cast<size_t>(other)];
      known.insert(its.begin(), its.end());
    }
  }
  return branches;
}

Status place(std::span<const int64_t> costs, std::span<const int32_t> branches, int32_t stages,
             int32_t ranks, Placed& out) {
  const auto blocks = static_cast<int32_t>(costs.size());
  const int32_t least = branches.empty() ? 1 : branches.back() + 1;
  if (stages < least || stages > blocks) {
    return {Code::kOutOfRange, "stages is " + std::to_string(stages) + "; the model has " +
                                   std::to_string(least) + (least == 1 ? " branch" : " branches") +
                                   " and " + std::to_string(blocks) + " blocks: expected " +
                                   std::to_string(least) + " to " + std::to_string(blocks)};
  }
  if (ranks < 1 || ranks > stages) {
    return {Code::kOutOfRange, "ranks is " + std::to_string(ranks) +
                                   "; expected 1 to stages = " + std::to_string(stages)};
  }
  if (Status s = check_costs(costs); !s.ok()) return s;
  out.first_blocks = cut_runs(costs, branches, static_cast<size_t>(stages));
  std::vector<int64_t> stage_costs(out.first_blocks.size(), 0);
  for (size_t s = 0; s < stage_costs.size(); ++s) {
    const size_t end =
        s + 1 < stage_costs.size() ? static_cast<size_t>(out.first_blocks[s + 1]) : costs.size();
    for (auto b = static_cast<size_t>(out.first_blocks[s]); b < end; ++b)
      stage_costs[s] += costs[b];
  }
  out.stage_ranks = spread(stage_costs, ranks);
  return {};
}

}  // namespace rrfp::model
