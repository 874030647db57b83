// SPDX-License-Identifier: Apache-2.0
//
// Schedules on a loop: chunk c of rank r is stage c * p + r of the chain. Interleaved 1F1B:
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM" (2021), with the group sizes of Megatron and of torch.distributed.pipelining; its
// zero-bubble form is that of torch.distributed.pipelining. Looped BFS: Lamy-Poirier,
// "Breadth-First Pipeline Parallelism" (2022).
#include <algorithm>
#include <string>

#include "engine/core/hint.h"
#include "engine/core/published_schedules.h"

namespace rrfp::core {
namespace {

constexpr TaskKind kF = TaskKind::kForward;
constexpr TaskKind kB = TaskKind::kBackward;
constexpr TaskKind kI = TaskKind::kInputGradient;
constexpr TaskKind kW = TaskKind::kWeightGradient;

/// A group smaller than the ranks runs out of forwards before the first microbatch has come round
/// the loop, unless there is no other group that it could wait for.
bool is_legal_group(int32_t g, int32_t p, int32_t m) {
  return g == m || (p <= g && g <= m && (m % g == 0 || m % g >= p));
}

/// The group size, 0 = default: that of PyTorch (rounds of equal groups) where it exists, else
/// that of Megatron.
Status choose_group(std::string_view schedule, int32_t p, int32_t m, int32_t& group) {
  const bool by_default = group == 0;
  if (by_default) {
    const int32_t rounds = std::max(1, m / p);
    group = m % rounds == 0 ? m / rounds : p;
  }
  if (is_legal_group(group, p, m)) return {};
  int32_t legal = std::min(p, m);
  while (!is_legal_group(legal, p, m)) ++legal;
  const std::string ranks = std::to_string(p);
  const std::string all = std::to_string(m);
  const std::string need =
      m < p ? "one group of all " + all + " microbatches, since there are " + ranks + " ranks"
            : "a group size from " + ranks + " ranks to " + all +
                  " microbatches that leaves no rest, or a rest of at least " + ranks;
  return {Code::kBadOrder, "the schedule \"" + std::string(schedule) + "\" needs " + need + "; " +
                               (by_default ? "the default " : "") + std::to_string(group) +
                               " does not do so; \"" + std::string(schedule) + ":" +
                               std::to_string(legal) + "\" would"};
}

/// Row k: chunk and microbatch of the k-th forward of every rank. In each group of g microbatches
/// all of them pass chunk 0, then chunk 1, and so on.
class Table {
 public:
  Table(int32_t m, int32_t v, int32_t g) : m_(m), v_(v), g_(g) {}

  struct Row {
    int64_t chunk;
    int32_t microbatch;
  };
  [[nodiscard]] Row row(int64_t k) const {
    const int64_t first = k / (g_ * v_) * g_;
    const int64_t size = std::min(g_, m_ - first);
    const int64_t rest = k - first * v_;
    return {rest / size, static_cast<int32_t>(first + rest % size)};
  }

 private:
  int64_t m_;
  int64_t v_;
  int64_t g_;
};

}  // namespace

Status interleaved_order(const StepTasks& tasks, RankId rank, int32_t group, bool zero_bubble,
                         std::vector<Task>& out) {
  const StageGraph& graph = tasks.graph();
  const std::string_view name =
      schedule_name(zero_bubble ? Schedule::kInterleavedZeroBubble : Schedule::kInterleaved);
  if (Status s = check_loop_chain(name, graph); !s.ok()) return s;
  const int32_t p = graph.ranks();
  const int32_t m = tasks.microbatches();
  const int32_t v = graph.stage_count() / p;
  const int64_t r = rank.value;
  if (v == 1) {
    group = m;  // one chunk: the order does not depend on groups
  } else if (Status s = choose_group(name, p, m, group); !s.ok()) {
    return s;
  }
  const Table table(m, v, group);
  const int64_t n = int64_t{m} * v;
  // With one chunk a rank may start its backwards as soon as 1F1B does; with more, each rank needs
  // twice the distance to its successor, so that the loop is full.
  const int64_t distance = (zero_bubble || v == 1 ? 1 : 2) * (p - 1 - r);
  const int64_t warm_up = std::min(n, int64_t{v - 1} * group + distance);

  OrderWriter writer(tasks, rank, out);
  const auto stage = [&](int64_t chunk) {
    return graph.order()[static_cast<size_t>(chunk * p + r)];
  };
  const auto add_forward = [&](int64_t k) {
    const auto [chunk, i] = table.row(k);
    writer.add(stage(chunk), kF, i);
  };
  const auto add_backward = [&](int64_t k, TaskKind kind) {
    const auto [chunk, i] = table.row(k);
    writer.add(stage(v - 1 - chunk), kind, i);
  };
  for (int64_t k = 0; k < warm_up; ++k) add_forward(k);
  for (int64_t k = 0; k < n; ++k) {
    if (warm_up + k < n) add_forward(warm_up + k);
    add_backward(k, zero_bubble ? kI : kB);
    if (zero_bubble && k >= r) add_backward(k - r, kW);
  }
  if (zero_bubble) {
    for (int64_t k = std::max(int64_t{0}, n - r); k < n; ++k) add_backward(k, kW);
  }
  return writer.finish();
}

Status looped_bfs_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) {
  const StageGraph& graph = tasks.graph();
  if (Status s = check_loop_chain(schedule_name(Schedule::kLoopedBfs), graph); !s.ok()) return s;
  const int32_t m = tasks.microbatches();
  const std::span<const StageId> chunks = graph.chunks(rank);
  OrderWriter writer(tasks, rank, out);
  for (StageId s : chunks) {
    for (int32_t i = 0; i < m; ++i) writer.add(s, kF, i);
  }
  for (size_t c = chunks.size(); c-- > 0;) {
    for (int32_t i = m; i-- > 0;) writer.add(chunks[c], kB, i);
  }
  return writer.finish();
}

}  // namespace rrfp::core
