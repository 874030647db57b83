// SPDX-License-Identifier: Apache-2.0
//
// Null where a handle or an output is expected: every function of the header says so.
#include <gtest/gtest.h>

#include "handles.h"
#include "misuse.h"

namespace rrfp::cases {
namespace {

TEST(NullHandles, WhatDestroysOrPreparesTakesNull) {
  rrfp_graph_destroy(nullptr);
  rrfp_hint_destroy(nullptr);
  rrfp_pipeline_destroy(nullptr);
  rrfp_rank_destroy(nullptr);
  rrfp_buffer_retain(nullptr);
  rrfp_buffer_release(nullptr);
  rrfp_stage_options_init(nullptr);
  rrfp_pipeline_options_init(nullptr);
  rrfp_step_options_init(nullptr);
  rrfp_task_init(nullptr);
  rrfp_step_report_init(nullptr);
}

#define EXPECT_NULL_HANDLE(name, call) EXPECT_REFUSED(call, RRFP_ERR_NULL_HANDLE, {name " is null"})

TEST(NullHandles, Graph) {
  const HintPtr hint = make_hint("1f1b");
  rrfp_pipeline* pipeline = nullptr;
  EXPECT_NULL_HANDLE("graph", rrfp_graph_add_stage(nullptr, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("graph", rrfp_graph_add_edge(nullptr, 0, 1, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE(
      "graph", rrfp_graph_declare_tensor(nullptr, 0, RRFP_F32, 0, nullptr, 0, &refusal.error));
  EXPECT_NULL_HANDLE("graph", rrfp_graph_place(nullptr, RRFP_PLACEMENT_LINEAR, &refusal.error));
  EXPECT_NULL_HANDLE("graph", rrfp_graph_place_stage(nullptr, 0, 0, &refusal.error));
  EXPECT_NULL_HANDLE("graph", rrfp_graph_place_by_hint(nullptr, hint.get(), &refusal.error));
  EXPECT_NULL_HANDLE("graph", rrfp_graph_check(nullptr, &refusal.error));
  EXPECT_NULL_HANDLE(
      "graph", rrfp_hint_to_text(hint.get(), nullptr, 1, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("graph", rrfp_hint_check(hint.get(), nullptr, 1, 0, &refusal.error));
  EXPECT_NULL_HANDLE("graph", rrfp_pipeline_create(nullptr, nullptr, &pipeline, &refusal.error));
}

TEST(NullHandles, Hint) {
  const GraphPtr graph = chain_of_two();
  EXPECT_NULL_HANDLE("hint", rrfp_hint_note(nullptr, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE(
      "hint", rrfp_hint_to_text(nullptr, graph.get(), 1, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("hint", rrfp_hint_check(nullptr, graph.get(), 1, 0, &refusal.error));
  EXPECT_NULL_HANDLE("hint", rrfp_graph_place_by_hint(graph.get(), nullptr, &refusal.error));
}

TEST(NullHandles, Pipeline) {
  rrfp_rank* rank = nullptr;
  EXPECT_NULL_HANDLE("pipeline", rrfp_pipeline_cancel(nullptr, "reason", &refusal.error));
  EXPECT_NULL_HANDLE("pipeline", rrfp_pipeline_reset(nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("pipeline",
                     rrfp_pipeline_report(nullptr, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("pipeline", rrfp_rank_create(nullptr, 0, &rank, &refusal.error));
}

TEST(NullHandles, Rank) {
  rrfp_step_options step;
  rrfp_step_options_init(&step);
  rrfp_task task;
  rrfp_task_init(&task);
  rrfp_tensor tensor = {};
  rrfp_buffer* buffer = nullptr;
  EXPECT_NULL_HANDLE("rank", rrfp_rank_begin_step(nullptr, &step, &refusal.error));
  EXPECT_NULL_HANDLE("rank", rrfp_rank_next(nullptr, 0, &task, &refusal.error));
  EXPECT_NULL_HANDLE("rank", rrfp_rank_wake(nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("rank",
                     rrfp_rank_input(nullptr, 1, 0, &tensor, 1, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("rank",
                     rrfp_rank_alloc(nullptr, 1, RRFP_F32, 0, nullptr, &tensor, &refusal.error));
  EXPECT_NULL_HANDLE(
      "rank", rrfp_rank_wrap(nullptr, 1, &tensor, 1, nullptr, nullptr, &buffer, &refusal.error));
  EXPECT_NULL_HANDLE("rank", rrfp_rank_put(nullptr, 1, 0, &tensor, 1, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("rank", rrfp_rank_output_wanted(nullptr, 1, 0, &refusal.error));
  EXPECT_NULL_HANDLE("rank", rrfp_rank_done(nullptr, 1, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("rank", rrfp_rank_fail(nullptr, 1, 0, nullptr, &refusal.error));
  EXPECT_NULL_HANDLE("rank", rrfp_rank_end_step(nullptr, nullptr, &refusal.error));
}

#define EXPECT_NULL_ARGUMENT(name, call) \
  EXPECT_REFUSED(call, RRFP_ERR_INVALID_ARGUMENT, {name " is null"})

TEST(NullHandles, Outputs) {
  Handles handles;
  rrfp_rank* const rank = handles.ranks[0].get();
  EXPECT_NULL_ARGUMENT("out", rrfp_graph_create(1, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_hint_create("1f1b", nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_hint_create_from_text("0F0", 3, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_hint_create_from_tasks(1, nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out",
                       rrfp_hint_create_from_priorities(nullptr, 0, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out",
                       rrfp_pipeline_create(handles.graph.get(), nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_rank_create(handles.pipeline.get(), 0, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out", rrfp_rank_next(rank, 0, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("out",
                       rrfp_rank_alloc(rank, 1, RRFP_F32, 0, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT(
      "out", rrfp_rank_wrap(rank, 1, nullptr, 0, nullptr, nullptr, nullptr, &refusal.error));
}

TEST(NullHandles, Inputs) {
  Handles handles;
  rrfp_rank* const rank = handles.ranks[0].get();
  rrfp_hint* hint = nullptr;
  rrfp_buffer* buffer = nullptr;
  rrfp_tensor tensor = {};
  EXPECT_NULL_ARGUMENT("options", rrfp_rank_begin_step(rank, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("text", rrfp_hint_create_from_text(nullptr, 3, &hint, &refusal.error));
  EXPECT_NULL_ARGUMENT("tasks", rrfp_hint_create_from_tasks(1, nullptr, 1, &hint, &refusal.error));
  EXPECT_NULL_ARGUMENT("tasks",
                       rrfp_hint_create_from_priorities(nullptr, 1, &hint, &refusal.error));
  EXPECT_NULL_ARGUMENT("tensors",
                       rrfp_rank_input(rank, 1, 0, nullptr, 1, nullptr, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("tensors", rrfp_rank_put(rank, 1, 0, nullptr, 1, nullptr, &refusal.error));
  EXPECT_NULL_ARGUMENT("shape",
                       rrfp_rank_alloc(rank, 1, RRFP_F32, 1, nullptr, &tensor, &refusal.error));
  EXPECT_NULL_ARGUMENT(
      "data", rrfp_rank_wrap(rank, 1, nullptr, 8, nullptr, nullptr, &buffer, &refusal.error));
  EXPECT_NULL_ARGUMENT(
      "buffer", rrfp_pipeline_report(handles.pipeline.get(), nullptr, 8, nullptr, &refusal.error));
  EXPECT_EQ(hint, nullptr);
}

TEST(NullHandles, TheErrorMayBeNull) {
  Handles handles;
  EXPECT_EQ(rrfp_graph_check(nullptr, nullptr), RRFP_ERR_NULL_HANDLE);
  EXPECT_EQ(rrfp_graph_place(handles.graph.get(), 9, nullptr), RRFP_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(rrfp_rank_done(handles.ranks[0].get(), 1, nullptr, nullptr), RRFP_ERR_BAD_STATE);
}

TEST(NullHandles, TextsThatAreTooLongAreCut) {
  // The text of a failure is the caller's: it may be longer than an error has room for.
  Handles handles;
  handles.begin_all();
  ASSERT_EQ(handles.next(0), RRFP_OK);
  const std::string longer(2000, 'x');
  ASSERT_EQ(rrfp_rank_fail(handles.ranks[0].get(), handles.task.ticket, 1, longer.c_str(), nullptr),
            RRFP_OK);
  Refusal refusal;
  EXPECT_TRUE(refusal.is(handles.next(1, -1, &refusal.error), RRFP_ERR_STAGE_FAILED, {"xxx"}));
  EXPECT_EQ(std::string(refusal.error.text).size(), size_t{RRFP_ERROR_TEXT_SIZE - 1});
}

}  // namespace
}  // namespace rrfp::cases
