// SPDX-License-Identifier: Apache-2.0
//
// Schedules on a V: rank r has stages a = r and b = 2p - 1 - r, so the rank where a microbatch
// enters is also the one where its loss is, and the last of the forward rank turns it around
// without a message. ZB-V: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), in the hand form
// that torch.distributed.pipelining uses. V-Half and V-Min: Qi et al., "Pipeline Parallelism with
// Controllable Memory" (2024).
#include <algorithm>

#include "engine/core/hint.h"
#include "engine/core/published_schedules.h"

namespace rrfp::core {
namespace {

/// Writes the tasks of a rank with two chunks; each kind of each chunk counts its microbatches
/// itself. ZB-V is written for at least 2p - 1 microbatches; those the step lacks are left out.
class TwoChunks {
 public:
  TwoChunks(const StepTasks& tasks, RankId rank, std::vector<Task>& out)
      : writer_(tasks, rank, out),
        microbatches_(tasks.microbatches()),
        stages_{tasks.graph().order()[rank.index()],
                tasks.graph()
                    .order()[2 * static_cast<size_t>(tasks.graph().ranks()) - 1 - rank.index()]} {}

  void add(int chunk, TaskKind kind) {
    const int32_t i = next_[chunk][static_cast<size_t>(kind)]++;
    if (i < microbatches_) writer_.add(stages_[chunk], kind, i);
  }
  [[nodiscard]] int32_t count(int chunk, TaskKind kind) const {
    return next_[chunk][static_cast<size_t>(kind)];
  }
  [[nodiscard]] Status finish() const { return writer_.finish(); }

 private:
  OrderWriter writer_;
  int32_t microbatches_;
  StageId stages_[2];
  int32_t next_[2][4] = {};
};

constexpr TaskKind kF = TaskKind::kForward;
constexpr TaskKind kI = TaskKind::kInputGradient;
constexpr TaskKind kW = TaskKind::kWeightGradient;

}  // namespace

Status zero_bubble_v_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) {
  const StageGraph& graph = tasks.graph();
  if (Status s = check_v_chain(schedule_name(Schedule::kZeroBubbleV), graph); !s.ok()) return s;
  const int32_t p = graph.ranks();
  const int32_t r = rank.value;
  const int32_t n = std::max(tasks.microbatches(), 2 * p - 1);
  constexpr int kFirst = 0;
  constexpr int kSecond = 1;
  TwoChunks chunks(tasks, rank, out);
  const auto add = [&](int chunk, std::initializer_list<TaskKind> kinds) {
    for (TaskKind kind : kinds) chunks.add(chunk, kind);
  };
  for (int32_t k = 0; k < 2 * (p - r) - 1; ++k) add(kFirst, {kF});
  for (int32_t k = 0; k < r; ++k) {
    add(kSecond, {kF});
    add(kFirst, {kF});
  }
  for (int32_t k = 0; k < p - r; ++k) add(kSecond, {kF, kI, kW});
  while (chunks.count(kSecond, kF) < chunks.count(kFirst, kF) || chunks.count(kFirst, kF) < n) {
    if (chunks.count(kFirst, kF) < n) add(kFirst, {kF});
    add(kFirst, {kI, kW});
    add(kSecond, {kF, kI, kW});
  }
  for (int32_t k = 0; k < r; ++k) {
    add(kFirst, {kI});
    add(kSecond, {kI});
  }
  for (int32_t k = 0; k < p - r; ++k) add(kFirst, {kI, kW});
  while (chunks.count(kSecond, kW) < chunks.count(kSecond, kI)) add(kSecond, {kW});
  while (chunks.count(kFirst, kW) < chunks.count(kFirst, kI)) add(kFirst, {kW});
  return chunks.finish();
}

namespace {

/// When the tasks of microbatch 0 start on a rank, on a grid of unit tasks. Microbatch i is 6 slots
/// a microbatch later: two forwards, two input gradients and two weight gradients make a period.
struct GridStarts {
  int64_t forward[2];
  int64_t input_gradient[2];
  size_t tail_lag;  // see grid_order
};

constexpr int64_t kPeriod = 6;

struct Timed {
  int64_t at;
  int chunk;
  TaskKind kind;
  int32_t microbatch;

  bool operator<(const Timed& other) const { return at < other.at; }
};

/// F and I stand on the grid, where they never collide: their starts differ modulo the period. The
/// weight gradients take the slots that are left, each the first one after its I, in the order of
/// the I. After the last forward of the rank memory only shrinks, so from then on `tail_lag` of
/// them may wait and let an I, for which other ranks wait, go first. The order is then all that
/// counts ("squeezed"): a rank starts a task as soon as it can.
/// On the grid each task starts after all it needs has ended, so no rank ever waits in a circle.
Status grid_order(const StepTasks& tasks, RankId rank, const GridStarts& starts,
                  std::vector<Task>& out) {
  const int32_t m = tasks.microbatches();
  std::vector<Timed> fixed;
  fixed.reserve(static_cast<size_t>(m) * 4);
  for (int32_t i = 0; i < m; ++i) {
    for (int chunk = 0; chunk < 2; ++chunk) {
      fixed.push_back({starts.forward[chunk] + kPeriod * i, chunk, kF, i});
      fixed.push_back({starts.input_gradient[chunk] + kPeriod * i, chunk, kI, i});
    }
  }
  std::sort(fixed.begin(), fixed.end());
  const std::span<const StageId> chain = tasks.graph().order();
  const StageId stages[2] = {chain[rank.index()], chain[chain.size() - 1 - rank.index()]};
  OrderWriter writer(tasks, rank, out);
  std::vector<Timed> waiting;  // weight gradients, in the order of their I
  waiting.reserve(static_cast<size_t>(m) * 2);
  size_t listed = 0;
  int64_t free = 0;
  const int64_t last_forward = starts.forward[1] + kPeriod * (m - 1);
  for (const Timed& task : fixed) {
    const size_t lag = task.at > last_forward ? starts.tail_lag : 0;
    // A W may start in the slot after its I, so everything that waits may fill the gap.
    for (; free < task.at && listed + lag < waiting.size(); ++free, ++listed) {
      writer.add(stages[waiting[listed].chunk], kW, waiting[listed].microbatch);
    }
    free = task.at + 1;
    writer.add(stages[task.chunk], task.kind, task.microbatch);
    if (task.kind == kI) waiting.push_back(task);
  }
  for (; listed < waiting.size(); ++listed) {
    writer.add(stages[waiting[listed].chunk], kW, waiting[listed].microbatch);
  }
  return writer.finish();
}

}  // namespace

Status v_half_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) {
  if (Status s = check_v_chain(schedule_name(Schedule::kVHalf), tasks.graph()); !s.ok()) return s;
  const int64_t p = tasks.graph().ranks();
  const int64_t r = rank.value;
  const int64_t e = p % 2 == 0 ? 3 : 0;
  return grid_order(
      tasks, rank,
      {{2 * r, 3 * p - r - 2}, {6 * p + e - r - 2, 3 * p + e + 2 * r - 1}, rank.index()}, out);
}

Status v_min_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out) {
  if (Status s = check_v_chain(schedule_name(Schedule::kVMin), tasks.graph()); !s.ok()) return s;
  const int64_t p = tasks.graph().ranks();
  const int64_t r = rank.value;
  const int64_t e = p % 3 == 0 ? 2 : 0;
  return grid_order(tasks, rank, {{r, 2 * p - r - 1}, {4 * p + e - r - 1, 2 * p + e + r}, 0}, out);
}

}  // namespace rrfp::core
