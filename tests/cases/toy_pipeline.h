// SPDX-License-Identifier: Apache-2.0
//
// Runs small pipelines through the public C API: one thread per rank pulls tasks and hands them to
// stage code given as functions. Delays drawn from a seed are injected where messages and tasks may
// be late. A run that does not come back within its deadline prints the report of the pipeline and
// ends the process, for its threads cannot be joined.
#pragma once

#include <rrfp/rrfp.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "checked.h"

namespace rrfp::cases {

// Above the deadline of "no hang", so that a watchdog, not this harness, ends a hanging step.
constexpr double kDeadlineSeconds = 10;

/// Sleeps before and in tasks, before messages are put and before tasks are done.
struct Delays {
  uint64_t seed = 0;
  int32_t max_us = 0;  // 0 = none
};

/// The running task, as stage code sees it. Members throw CallFailed.
class TaskContext {
 public:
  TaskContext(rrfp_rank* handle, const rrfp_task& running, std::function<void()> before_put)
      : rank(handle), task(running), before_put_(std::move(before_put)) {}

  rrfp_rank* const rank;
  const rrfp_task task;

  /// What arrived along an edge; empty if nothing travels there.
  std::vector<rrfp_tensor> input(int32_t edge, void** opaque = nullptr) const;
  [[nodiscard]] bool absent(int32_t edge) const;
  /// The floats of the first tensor that arrived along an edge.
  [[nodiscard]] std::span<const float> floats(int32_t edge) const;
  [[nodiscard]] float scalar(int32_t edge) const { return floats(edge).front(); }

  [[nodiscard]] bool wanted(int32_t edge) const;
  [[nodiscard]] rrfp_tensor alloc(rrfp_dtype dtype, std::initializer_list<int64_t> shape) const;
  void put(int32_t edge, std::span<const rrfp_tensor> tensors, void* opaque = nullptr) const;
  void put(int32_t edge, const rrfp_tensor& tensor) const { put(edge, {&tensor, 1}); }
  /// One float; a forward asks for its gradient.
  void put_scalar(int32_t edge, float value) const;

 private:
  std::function<void()> before_put_;
};

/// The code of a stage. B runs `input_gradient` and then `weight_gradient`; empty functions do
/// nothing.
struct StageCode {
  std::function<void(TaskContext&)> forward;
  std::function<void(TaskContext&)> input_gradient;
  std::function<void(TaskContext&)> weight_gradient;
};

struct Step {
  const rrfp_hint* hint = nullptr;
  int32_t microbatches = 1;
  rrfp_step_mode mode = RRFP_MODE_TRAIN;
  rrfp_order order = RRFP_ORDER_DEFAULT;
  int64_t number = 0;
  std::vector<uint8_t> skip = {};
  std::vector<int64_t> activation_bytes = {};
};

struct TaskRecord {
  rrfp_task task;
  rrfp_events events;
};

/// What one rank made of a step.
struct RankResult {
  rrfp_status status = RRFP_OK;  // RRFP_STEP_DONE, or the error
  rrfp_error error = {};
  rrfp_step_report report = {};  // if done
  std::vector<TaskRecord> tasks;
  double seconds = 0;  // from the start of the run to the end of this step
};

struct StepResult {
  std::vector<RankResult> ranks;
  std::string report;  // of the pipeline, if the watchdog ended the run

  [[nodiscard]] bool ok() const;
  /// The first error, for messages.
  [[nodiscard]] std::string text() const;
  /// How many tasks reported the event for the stage.
  [[nodiscard]] int32_t count(rrfp_events event, int32_t stage) const;
  /// The tasks of a rank in the order in which they were handed out, such as "0F0 0F1 0B0 0B1".
  [[nodiscard]] std::string order(int32_t rank) const;
  [[nodiscard]] double seconds() const;
};

class ToyPipeline {
 public:
  explicit ToyPipeline(int32_t ranks);
  ToyPipeline(const ToyPipeline&) = delete;
  ToyPipeline& operator=(const ToyPipeline&) = delete;

  int32_t add_stage(StageCode code, rrfp_stage_flags flags = 0, int32_t rank = -1,
                    int64_t activation_bytes = 0, int64_t forward_ns = 0);
  int32_t add_edge(int32_t from, int32_t to, rrfp_edge_flags flags = 0);
  void place(rrfp_placement placement);

  /// Prepared with a watchdog at the deadline; may be changed until open().
  rrfp_pipeline_options options;
  Delays delays;
  /// All ranks wait for each other between their last task and end_step, so that what a report says
  /// about live tensors is not a matter of timing.
  bool quiesce = false;
  /// Each rank's thread makes its handle when it comes and destroys it when it is through, without
  /// a look at the others. To be set before open().
  bool own_handles = false;
  /// Called on the rank's thread.
  std::function<void(int32_t rank, const Step&)> before_begin;
  std::function<void(TaskContext&)> before_task;
  std::function<void(const rrfp_task&, rrfp_events)> after_done;

  /// Makes the pipeline and its rank handles.
  void open();
  /// Destroys the graph and the pipeline and leaves the ranks.
  void drop_pipeline();
  StepResult run(const Step& step);
  /// Each rank goes through the steps without waiting for the others; it stops at the first error.
  std::vector<StepResult> run(const std::vector<Step>& steps);
  /// The same with steps of its own for each rank.
  std::vector<StepResult> run_each(const std::vector<std::vector<Step>>& steps_by_rank);
  /// Resets after a failure.
  void reset();

  [[nodiscard]] int32_t ranks() const { return rank_count_; }
  [[nodiscard]] rrfp_graph* graph() const { return graph_.get(); }
  [[nodiscard]] rrfp_pipeline* pipeline() const { return pipeline_.get(); }
  [[nodiscard]] rrfp_rank* rank(int32_t r) const { return handles_[static_cast<size_t>(r)].get(); }
  [[nodiscard]] RankPtr& handle(int32_t r) { return handles_[static_cast<size_t>(r)]; }

 private:
  class Runner;

  int32_t rank_count_;
  GraphPtr graph_;
  std::vector<StageCode> code_;
  PipelinePtr pipeline_;
  std::vector<RankPtr> handles_;
  uint64_t runs_ = 0;
};

}  // namespace rrfp::cases
