// SPDX-License-Identifier: Apache-2.0
//
// The published closed forms of the schedules on a linear chain, written down a second time: p
// ranks, m microbatches, rank r.
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

}  // namespace rrfp::core::golden
