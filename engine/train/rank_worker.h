// SPDX-License-Identifier: Apache-2.0
//
// What the thread of one rank does in a step: pulls tasks from its RankHost, binds memory and
// messages to the slots of the stage's program, runs it.
#pragma once

#include <vector>

#include "engine/host/pipeline.h"
#include "engine/model/execute.h"
#include "engine/sim/scenario.h"
#include "engine/train/batch.h"

namespace rrfp::train {

/// What all ranks share and no step changes.
struct Setting {
  model::Graph graph;
  model::Cut cut;
  std::vector<model::Program> programs;  // by stage
  const kernels::Kernels* kernels = nullptr;
  std::shared_ptr<const core::StageGraph> stages;
  int64_t delay_us_max = 0;
};

/// What the tasks of one stage have taken in a job.
struct StageWork {
  int64_t busy_ns = 0;
  int32_t microbatches = 0;  // that took part
};

/// One pipeline run: a round of a training step, or an evaluation.
struct Round {
  host::StepRequest request;
  int64_t step = 0;  // of training, for random numbers and reports
  uint64_t seed = 0;
  bool training = false;
  /// In the batch, by number in the pipeline: the order of injection.
  const int32_t* microbatches = nullptr;
  /// By stage. Every rank adds to those of its own stages.
  StageWork* work = nullptr;
  /// What tasks take, if wanted. Every rank writes those of its own stages.
  sim::Durations* durations = nullptr;
  // Of the batch, by microbatch.
  const Batch* batch = nullptr;
  const std::shared_ptr<const ShapePlan>* plans = nullptr;
  const float* loss_factors = nullptr;  // [microbatch][loss]
  double* losses = nullptr;  // [microbatch][loss]; each is written by the rank that computes it
};

class RankWorker {
 public:
  RankWorker(const Setting& setting, const model::WeightTable& table, host::RankHost& host);

  /// Runs all tasks of the rank and ends the step. After a failure the pipeline must be reset.
  core::Status run(const Round& round, host::StepReport& report);
  /// Gives up all memory of a step that has failed.
  void forget();

 private:
  /// What is kept for one (stage, microbatch) between its tasks.
  struct Frame {
    comm::Buffer* saved = nullptr;
    comm::Buffer* kept = nullptr;
    /// By place in StageMemory::kept_outputs.
    std::vector<comm::Buffer*> outputs;
  };
  struct StageMemory {
    std::vector<core::EdgeId> in_edges;
    std::vector<core::EdgeId> out_edges;
    std::vector<int32_t> kept_outputs;  // slots of outgoing values that backward reads
    std::vector<Frame> frames;          // by microbatch of the round
  };

  core::Status run_task(const Round& round, const host::TaskInfo& task);
  core::Status compute(const Round& round, const host::TaskInfo& info);
  core::Status bind_memory(const core::Task& task, const model::Layout& layout, Frame& frame);
  core::Status allocate(int64_t floats, float*& out, comm::Buffer** keep);
  void bind_inputs(const Round& round, const core::Task& task);
  core::Status take_values(const core::Task& task);
  core::Status take_gradients(const core::Task& task);
  core::Status make_absent_gradients(const core::Task& task, const model::CutEdge& edge);
  core::Status make_outputs(const core::Task& task);
  core::Status relay(const core::Task& task, model::ValueId value, comm::Tensor& out);
  core::Status send_outputs(const core::Task& task, Frame& frame);
  core::Status make_gradients(const core::Task& task);
  core::Status send_gradients(const core::Task& task);
  core::Status make_tensor(model::ValueId value, comm::Tensor& out);
  void end_frame(Frame& frame);
  void delay();

  const Setting& setting_;
  host::RankHost& host_;
  std::vector<StageMemory> memory_;  // by stage; empty for those of other ranks
  model::Bindings bound_;
  uint64_t ticket_ = 0;
  const ShapePlan* plan_ = nullptr;
  /// Tensors of the running task's outgoing messages, by edge and place in it.
  std::vector<std::vector<comm::Tensor>> outgoing_;
  uint64_t delay_state_;
};

}  // namespace rrfp::train
