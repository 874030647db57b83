// SPDX-License-Identifier: Apache-2.0
//
// The published forms of the schedules, written down a second time: p ranks, m microbatches, rank
// r.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/unit/fixtures.h"

namespace rrfp::core::golden {

inline void push(std::vector<Task>& order, int32_t stage, TaskKind kind, int32_t microbatch) {
  order.push_back(fixtures::task_of(stage, kind, microbatch));
}

/// All forwards, then all backwards, both ascending.
inline std::vector<Task> gpipe(int32_t r, int32_t m) {
  std::vector<Task> order;
  for (int32_t i = 0; i < m; ++i) push(order, r, TaskKind::kForward, i);
  for (int32_t i = 0; i < m; ++i) push(order, r, TaskKind::kBackward, i);
  return order;
}

/// Warm-up, then one forward and one backward in turn, then the backwards that are left.
inline std::vector<Task> one_f_one_b(int32_t p, int32_t r, int32_t m) {
  const int32_t w = std::min(m, p - 1 - r);
  std::vector<Task> order;
  for (int32_t i = 0; i < w; ++i) push(order, r, TaskKind::kForward, i);
  for (int32_t j = 0; j < m - w; ++j) {
    push(order, r, TaskKind::kForward, w + j);
    push(order, r, TaskKind::kBackward, j);
  }
  for (int32_t j = m - w; j < m; ++j) push(order, r, TaskKind::kBackward, j);
  return order;
}

/// The same order as DeepSpeed computes it, clock by clock.
inline std::vector<Task> one_f_one_b_by_clock(int32_t p, int32_t s, int32_t m) {
  std::vector<Task> order;
  for (int32_t t = 0; t < 2 * (m + p - 1); ++t) {
    const bool forward = t % 2 == s % 2;
    int32_t i = t / 2 - s / 2;
    if (!forward && t % 2 == 0) i = t / 2 - p + (s + 1) / 2;
    if (!forward && t % 2 == 1) i = (t - 1) / 2 - p + 1 + s / 2;
    if (i < 0 || i >= m) continue;  // idle
    push(order, s, forward ? TaskKind::kForward : TaskKind::kBackward, i);
  }
  return order;
}

/// 1F1B with B cut in two; W follows the I of r microbatches later.
inline std::vector<Task> zb_h1(int32_t p, int32_t r, int32_t m) {
  const int32_t w = std::min(m, p - 1 - r);
  std::vector<Task> order;
  for (int32_t i = 0; i < w; ++i) push(order, r, TaskKind::kForward, i);
  for (int32_t j = 0; j < m; ++j) {
    if (w + j < m) push(order, r, TaskKind::kForward, w + j);
    push(order, r, TaskKind::kInputGradient, j);
    if (j >= r) push(order, r, TaskKind::kWeightGradient, j - r);
  }
  for (int32_t j = std::max(0, m - r); j < m; ++j) push(order, r, TaskKind::kWeightGradient, j);
  return order;
}

/// Twice the warm-up and twice the delay of zb_h1.
inline std::vector<Task> zb_h2(int32_t p, int32_t r, int32_t m) {
  const int32_t w = std::min(m, 2 * (p - 1 - r));
  const int32_t d = 2 * r;
  std::vector<Task> order;
  for (int32_t i = 0; i < w; ++i) push(order, r, TaskKind::kForward, i);
  for (int32_t j = 0; j < m; ++j) {
    if (w + j < m) push(order, r, TaskKind::kForward, w + j);
    push(order, r, TaskKind::kInputGradient, j);
    if (j >= d) push(order, r, TaskKind::kWeightGradient, j - d);
  }
  for (int32_t j = std::max(0, m - d); j < m; ++j) push(order, r, TaskKind::kWeightGradient, j);
  return order;
}

struct TableEntry {
  int32_t chunk;
  int32_t microbatch;

  bool operator==(const TableEntry&) const = default;
};

/// The virtual microbatches of interleaved 1F1B with groups of g.
inline std::vector<TableEntry> interleaved_table(int32_t v, int32_t m, int32_t g) {
  std::vector<TableEntry> table;
  for (int32_t first = 0; first < m; first += g) {
    for (int32_t c = 0; c < v; ++c) {
      for (int32_t i = first; i < std::min(m, first + g); ++i) table.push_back({c, i});
    }
  }
  return table;
}

inline std::vector<Task> interleaved(int32_t p, int32_t v, int32_t r, int32_t m, int32_t g) {
  const std::vector<TableEntry> table = interleaved_table(v, m, g);
  const auto n = static_cast<int32_t>(table.size());
  std::vector<Task> order;
  const auto forward = [&](int32_t k) {
    const TableEntry& e = table[static_cast<size_t>(k)];
    push(order, e.chunk * p + r, TaskKind::kForward, e.microbatch);
  };
  const auto backward = [&](int32_t k) {
    const TableEntry& e = table[static_cast<size_t>(k)];
    push(order, (v - 1 - e.chunk) * p + r, TaskKind::kBackward, e.microbatch);
  };
  const int32_t w = std::min(n, (v - 1) * g + 2 * (p - 1 - r));
  for (int32_t k = 0; k < w; ++k) forward(k);
  for (int32_t k = 0; k < n - w; ++k) forward(w + k), backward(k);
  for (int32_t k = n - w; k < n; ++k) backward(k);
  return order;
}

/// A cell is one task, or a forward and a backward that overlap.
using Cells = std::vector<std::vector<Task>>;

/// The tasks of the rows in the order written.
inline std::vector<std::vector<Task>> flat(const std::vector<Cells>& rows) {
  std::vector<std::vector<Task>> lists;
  for (const Cells& row : rows) {
    auto& list = lists.emplace_back();
    for (const auto& cell : row) list.insert(list.end(), cell.begin(), cell.end());
  }
  return lists;
}

/// What c.8 and c.9 call a and b, phase 0 and phase 1: a stage and its next microbatches.
struct DualStage {
  int32_t stage = 0;
  std::vector<int32_t> microbatches = {};
  size_t forwards = 0;
  size_t backwards = 0;

  Task forward() { return fixtures::task_of(stage, TaskKind::kForward, microbatches[forwards++]); }
  Task backward(bool split) {
    return fixtures::task_of(stage, split ? TaskKind::kInputGradient : TaskKind::kBackward,
                             microbatches[backwards++]);
  }
};

/// Writes the cells of one rank. What I owes goes into a queue that `w` empties from the front.
class DualRow {
 public:
  DualRow(DualStage a, DualStage b) : stages_{std::move(a), std::move(b)} {}

  void f(size_t phase) { cells_.push_back({stages_[phase].forward()}); }
  void b(size_t phase, bool split) {
    const Task task = stages_[phase].backward(split);
    cells_.push_back({task});
    if (split) fifo_.push_back({task.stage, task.microbatch, TaskKind::kWeightGradient});
  }
  void w() {
    if (fifo_.empty()) return;
    cells_.push_back({fifo_.front()});
    fifo_.erase(fifo_.begin());
  }
  void pair(size_t forward, size_t backward) {
    const Task first = stages_[forward].forward();
    cells_.push_back({first, stages_[backward].backward(false)});
  }
  [[nodiscard]] const Cells& cells() const { return cells_; }
  [[nodiscard]] bool fifo_empty() const { return fifo_.empty(); }

 private:
  DualStage stages_[2];
  Cells cells_;
  std::vector<Task> fifo_;
};

inline std::vector<int32_t> every(int32_t first, int32_t step, int32_t m) {
  std::vector<int32_t> out;
  for (int32_t i = first; i < m; i += step) out.push_back(i);
  return out;
}

inline Cells dualpipe_v(int32_t p, int32_t r, int32_t m) {
  DualRow row({r, every(0, 1, m)}, {2 * p - 1 - r, every(0, 1, m)});
  for (int32_t k = 0; k < 2 * (p - r - 1); ++k) row.f(0);
  for (int32_t k = 0; k < r + 1; ++k) row.f(0), row.f(1);
  for (int32_t k = 0; k < p - r - 1; ++k) row.b(1, true), row.w(), row.f(1);
  for (int32_t k = 0; k < m - 2 * p + r + 1; ++k) {
    if (k == 0 && r == p - 1) {
      row.f(0), row.b(1, false);
    } else {
      row.pair(0, 1);
    }
    row.pair(1, 0);
  }
  for (int32_t k = 0; k < p - r - 1; ++k) row.b(1, false), row.pair(1, 0);
  bool zb = false;
  const int32_t n = r + 1;
  for (int32_t i = 0; i < n; ++i) {
    if (i == n / 2 && r % 2 == 1) zb = true;
    row.b(1, zb);
    if (i == n / 2 && r % 2 == 0) zb = true;
    row.b(0, zb);
  }
  for (int32_t k = 0; k < p - r - 1; ++k) row.w(), row.b(0, zb);
  for (int32_t k = 0; k < r + 1; ++k) row.w();
  EXPECT_TRUE(row.fifo_empty());
  return row.cells();
}

/// Even microbatches in stream A, odd ones in stream Z.
inline Cells dualpipe(int32_t p, int32_t r, int32_t m) {
  const int32_t half = p / 2;
  const int32_t h = std::min(r, p - 1 - r);
  const DualStage a = {r, every(0, 2, m)};
  const DualStage z = {2 * p - 1 - r, every(1, 2, m)};
  DualRow row(r < half ? a : z, r < half ? z : a);
  for (int32_t k = 0; k < 2 * (half - h - 1); ++k) row.f(0);
  for (int32_t k = 0; k < h + 1; ++k) row.f(0), row.f(1);
  for (int32_t k = 0; k < half - h - 1; ++k) row.b(1, true), row.w(), row.f(1);
  for (int32_t k = 0; k < m / 2 - p + h + 1; ++k) {
    if (k == 0 && h == half - 1) {
      row.f(0), row.b(1, false);
    } else {
      row.pair(0, 1);
    }
    row.pair(1, 0);
  }
  for (int32_t k = 0; k < half - h - 1; ++k) row.b(1, false), row.pair(1, 0);
  bool zb = false;
  for (int32_t i = 0; i < h + 1; ++i) {
    if (i == (h + 1) / 2 && h % 2 == 1) zb = true;
    row.b(1, zb);
    if (i == (h + 1) / 2 && h % 2 == 0) zb = true;
    row.b(0, zb);
  }
  for (int32_t k = 0; k < half - h - 1; ++k) row.w(), row.b(0, zb);
  for (int32_t k = 0; k < h + 1; ++k) row.w();
  EXPECT_TRUE(row.fifo_empty());
  return row.cells();
}

}  // namespace rrfp::core::golden
