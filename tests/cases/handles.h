// SPDX-License-Identifier: Apache-2.0
//
// The handles of a small pipeline, driven by hand from one thread.
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "toy_pipeline.h"

namespace rrfp::cases {

/// Trainable stages that are on no rank.
inline GraphPtr make_graph(int32_t ranks, int32_t stages) {
  rrfp_error error = {};
  rrfp_graph* graph = nullptr;
  check(rrfp_graph_create(ranks, &graph, &error), error);
  GraphPtr owner(graph);
  for (int32_t s = 0; s < stages; ++s) {
    check(rrfp_graph_add_stage(graph, nullptr, nullptr, &error), error);
  }
  return owner;
}

/// Two stages on two ranks, joined by edge 0.
inline GraphPtr chain_of_two() {
  rrfp_error error = {};
  rrfp_graph* graph = nullptr;
  check(rrfp_graph_create(2, &graph, &error), error);
  GraphPtr owner(graph);
  rrfp_stage_options stage;
  rrfp_stage_options_init(&stage);
  stage.rank = 0;
  check(rrfp_graph_add_stage(graph, &stage, nullptr, &error), error);
  stage.rank = 1;
  stage.flags = RRFP_STAGE_LOSS;
  check(rrfp_graph_add_stage(graph, &stage, nullptr, &error), error);
  check(rrfp_graph_add_edge(graph, 0, 1, 0, nullptr, &error), error);
  return owner;
}

/// All handles of a small pipeline, and what a test does with them step by step.
struct Handles {
  explicit Handles(const rrfp_pipeline_options* options = nullptr)
      : graph(chain_of_two()),
        hint(make_hint("1f1b")),
        pipeline(make_pipeline(graph.get(), options)),
        ranks{make_rank(pipeline.get(), 0), make_rank(pipeline.get(), 1)} {}

  rrfp_status begin(size_t r, int32_t microbatches = 2, rrfp_step_mode mode = RRFP_MODE_TRAIN,
                    rrfp_error* error = nullptr) const {
    rrfp_step_options step;
    rrfp_step_options_init(&step);
    step.hint = hint.get();
    step.microbatches = microbatches;
    step.mode = mode;
    return rrfp_rank_begin_step(ranks[r].get(), &step, error);
  }
  void begin_all() const {
    ASSERT_EQ(begin(0), RRFP_OK);
    ASSERT_EQ(begin(1), RRFP_OK);
  }
  rrfp_status next(size_t r, int64_t timeout_us = 0, rrfp_error* error = nullptr) {
    rrfp_task_init(&task);
    return rrfp_rank_next(ranks[r].get(), timeout_us, &task, error);
  }
  /// Gives the outputs of the task that next() handed out, and is done with it.
  void finish(size_t r) {
    const TaskContext context(ranks[r].get(), task, {});
    const bool sends = (r == 0) == (task.kind == RRFP_FORWARD) && task.kind != RRFP_WEIGHT_GRADIENT;
    if (sends) context.put_scalar(0, 1);
    ASSERT_EQ(rrfp_rank_done(ranks[r].get(), task.ticket, nullptr, nullptr), RRFP_OK);
  }
  /// Runs all tasks of all ranks.
  void run_all() {
    for (int round = 0; round < 100; ++round) {
      bool complete = true;
      for (size_t r = 0; r < 2; ++r) {
        const rrfp_status status = next(r);
        if (status == RRFP_OK) finish(r);
        complete = complete && status == RRFP_STEP_DONE;
      }
      if (complete) return;
    }
    FAIL() << "the step does not end";
  }

  GraphPtr graph;
  HintPtr hint;
  PipelinePtr pipeline;
  std::array<RankPtr, 2> ranks;
  rrfp_task task;
};

}  // namespace rrfp::cases
