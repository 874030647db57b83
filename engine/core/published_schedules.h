// SPDX-License-Identifier: Apache-2.0
//
// The schedules that were published for one shape of pipeline: a chain of stages placed in a loop
// or a V, or two chains in opposite directions. Each gives a rank its complete order, from which
// the tasks that a step does not have are dropped; so a step that skips or freezes keeps the order
// of what is left. The cost of a rank's order is that of its own tasks, plus a look at the
// placement of each stage.
#pragma once

#include <string_view>
#include <vector>

#include "engine/core/order_binder.h"

namespace rrfp::core {

/// Takes down a published order; the first thing that goes wrong is kept for finish().
class OrderWriter {
 public:
  OrderWriter(const StepTasks& tasks, RankId rank, std::vector<Task>& out)
      : binder_(tasks, rank), out_(out) {}

  void add(StageId stage, TaskKind kind, int32_t microbatch) {
    if (!status_.ok()) return;
    status_ = binder_.add({stage, MicrobatchId(microbatch), kind}, out_);
  }
  [[nodiscard]] Status finish() const { return status_.ok() ? binder_.check_complete() : status_; }

 private:
  OrderBinder binder_;
  std::vector<Task>& out_;
  Status status_;
};

/// The chain runs through every stage, and its k-th stage, order()[k] of the graph, is on rank k
/// mod ranks; each rank has the same number of stages. Edges that jump over stages do no harm:
/// what they ask for follows from the chain.
Status check_loop_chain(std::string_view schedule, const StageGraph& graph);
/// Likewise, with the k-th stage of 2 * ranks on rank k, or 2 * ranks - 1 - k from the turn on.
Status check_v_chain(std::string_view schedule, const StageGraph& graph);

/// loop_schedules.cpp. `group`: 0 for the default.
Status interleaved_order(const StepTasks& tasks, RankId rank, int32_t group, bool zero_bubble,
                         std::vector<Task>& out);
Status looped_bfs_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out);

/// v_schedules.cpp.
Status zero_bubble_v_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out);
Status v_half_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out);
Status v_min_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out);

/// dual_schedules.cpp.
Status dualpipe_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out);
Status dualpipe_v_order(const StepTasks& tasks, RankId rank, std::vector<Task>& out);

}  // namespace rrfp::core
