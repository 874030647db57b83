// SPDX-License-Identifier: Apache-2.0
//
// Options that are wrong, and calls at the wrong time or from the wrong thread. Each refusal has a
// status and a text that names the wrong value and what was expected, and changes nothing else.
#include "misuse.h"

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "handles.h"

namespace rrfp::cases {
namespace {

TEST(Misuse, Caps) {
  const GraphPtr graph = make_graph(2, 4);
  ASSERT_EQ(rrfp_graph_place(graph.get(), RRFP_PLACEMENT_LOOP, nullptr), RRFP_OK);
  rrfp_stage_options loss;
  rrfp_stage_options_init(&loss);
  loss.flags = RRFP_STAGE_LOSS;
  loss.rank = 1;
  ASSERT_EQ(rrfp_graph_add_stage(graph.get(), &loss, nullptr, nullptr), RRFP_OK);
  for (int32_t s = 0; s < 4; ++s) {
    ASSERT_EQ(rrfp_graph_add_edge(graph.get(), s, s + 1, 0, nullptr, nullptr), RRFP_OK);
  }
  rrfp_pipeline_options options;
  rrfp_pipeline_options_init(&options);
  const auto refused = [&](rrfp_status status, std::initializer_list<std::string_view> parts) {
    rrfp_pipeline* pipeline = nullptr;
    EXPECT_REFUSED(rrfp_pipeline_create(graph.get(), &options, &pipeline, &refusal.error), status,
                   parts);
    EXPECT_EQ(pipeline, nullptr);
  };
  options.cap_slots = 2;  // rank 1 owns stages 1, 3 and 4
  refused(RRFP_ERR_CAP_TOO_SMALL, {"cap of rank 1 is 2 slots", "minimum is 3"});
  const std::array<int64_t, 2> caps = {1, 3};
  options.rank_cap_slots = caps.data();
  refused(RRFP_ERR_CAP_TOO_SMALL, {"cap of rank 0 is 1 slots", "minimum is 2"});
  const std::array<int64_t, 2> negative = {0, -4};
  options.rank_cap_slots = negative.data();
  refused(RRFP_ERR_INVALID_ARGUMENT, {"rank_cap_slots[1] is -4"});
  options.rank_cap_slots = nullptr;
  options.cap_slots = -1;
  refused(RRFP_ERR_INVALID_ARGUMENT, {"cap_slots is -1"});
  options.cap_slots = INT64_MAX;
  refused(RRFP_ERR_INVALID_ARGUMENT, {"cap_slots", std::to_string(INT64_MAX)});
  options.cap_slots = 0;
  options.cap_bytes = -9;
  refused(RRFP_ERR_INVALID_ARGUMENT, {"cap_bytes is -9"});
}

TEST(Misuse, PipelineOptions) {
  const GraphPtr graph = chain_of_two();
  rrfp_pipeline_options good;
  rrfp_pipeline_options_init(&good);
  const auto refused = [&](const rrfp_pipeline_options& options,
                           std::initializer_list<std::string_view> parts) {
    rrfp_pipeline* pipeline = nullptr;
    EXPECT_REFUSED(rrfp_pipeline_create(graph.get(), &options, &pipeline, &refusal.error),
                   RRFP_ERR_INVALID_ARGUMENT, parts);
    EXPECT_EQ(pipeline, nullptr);
  };
  rrfp_pipeline_options bad = good;
  bad.flags = 8;
  refused(bad, {"flags", "8"});
  bad = good;
  bad.order = 4;
  refused(bad, {"order is 4"});
  bad = good;
  bad.wake = -1;
  refused(bad, {"wake is -1"});
  bad = good;
  bad.credits = -2;
  refused(bad, {"credits is -2"});
  bad = good;
  bad.trace_steps = -1;
  refused(bad, {"trace_steps is -1", "65536"});
  bad.trace_steps = 0;
  bad.hold_permille = -3;
  refused(bad, {"hold_permille is -3"});
  bad.hold_permille = INT32_MAX;
  refused(bad, {"hold_permille is 2147483647", "10000"});
  bad = good;
  bad.mailbox_capacity = UINT32_MAX;
  refused(bad, {"mailbox_capacity is 4294967295"});
  bad = good;
  bad.watchdog_ms = -2;
  refused(bad, {"watchdog_ms is -2"});
}

TEST(Misuse, StructsOfOtherSizes) {
  Handles handles;
  rrfp_pipeline* pipeline = nullptr;
  Longer<rrfp_stage_options> stage = {};
  rrfp_stage_options_init(&stage.known);
  Longer<rrfp_pipeline_options> options = {};
  rrfp_pipeline_options_init(&options.known);
  Longer<rrfp_step_options> step = {};
  rrfp_step_options_init(&step.known);
  step.known.hint = handles.hint.get();
  step.known.microbatches = 1;
  const auto all_refused = [&](std::string_view part) {
    EXPECT_REFUSED(rrfp_graph_add_stage(handles.graph.get(), &stage.known, nullptr, &refusal.error),
                   RRFP_ERR_STRUCT_SIZE, {"rrfp_stage_options", part});
    EXPECT_REFUSED(
        rrfp_pipeline_create(handles.graph.get(), &options.known, &pipeline, &refusal.error),
        RRFP_ERR_STRUCT_SIZE, {"rrfp_pipeline_options", part});
    EXPECT_REFUSED(rrfp_rank_begin_step(handles.ranks[0].get(), &step.known, &refusal.error),
                   RRFP_ERR_STRUCT_SIZE, {"rrfp_step_options", part});
    EXPECT_EQ(pipeline, nullptr);
  };
  // Not prepared.
  stage.known.struct_size = options.known.struct_size = step.known.struct_size = 0;
  all_refused("struct_size is 0");
  // Of a later version that sets what this one does not know.
  stage.known.struct_size = sizeof stage;
  options.known.struct_size = sizeof options;
  step.known.struct_size = sizeof step;
  stage.later_field = options.later_field = step.later_field = int64_t{1} << 56;
  all_refused("does not know");
  // Of a later version that sets nothing new.
  stage.later_field = options.later_field = step.later_field = 0;
  EXPECT_EQ(rrfp_pipeline_create(handles.graph.get(), &options.known, &pipeline, nullptr), RRFP_OK);
  rrfp_pipeline_destroy(pipeline);
  EXPECT_EQ(rrfp_graph_add_stage(handles.graph.get(), &stage.known, nullptr, nullptr), RRFP_OK);
  EXPECT_EQ(rrfp_rank_begin_step(handles.ranks[0].get(), &step.known, nullptr), RRFP_OK);
  // What comes out.
  Longer<rrfp_task> task = {};
  EXPECT_REFUSED(rrfp_rank_next(handles.ranks[0].get(), 0, &task.known, &refusal.error),
                 RRFP_ERR_STRUCT_SIZE, {"rrfp_task", "struct_size is 0"});
  task.known.struct_size = sizeof task;
  task.later_field = -5;
  ASSERT_EQ(rrfp_rank_next(handles.ranks[0].get(), 0, &task.known, nullptr), RRFP_OK);
  EXPECT_EQ(task.known.struct_size, sizeof task);
  EXPECT_EQ(task.later_field, -5);
  rrfp_step_report report = {};
  EXPECT_REFUSED(rrfp_rank_end_step(handles.ranks[0].get(), &report, &refusal.error),
                 RRFP_ERR_STRUCT_SIZE, {"rrfp_step_report", "struct_size is 0"});
}

TEST(Misuse, StepOptions) {
  Handles handles;
  rrfp_step_options good;
  rrfp_step_options_init(&good);
  good.hint = handles.hint.get();
  good.microbatches = 2;
  const auto refused = [&](const rrfp_step_options& options, rrfp_status status,
                           std::initializer_list<std::string_view> parts) {
    EXPECT_REFUSED(rrfp_rank_begin_step(handles.ranks[0].get(), &options, &refusal.error), status,
                   parts);
  };
  rrfp_step_options bad = good;
  bad.mode = 2;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"mode is 2"});
  bad = good;
  bad.order = -1;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"order is -1"});
  bad = good;
  bad.hint = nullptr;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"hint is null"});
  for (int32_t m : {0, -1, (1 << 24) + 1}) {
    bad = good;
    bad.microbatches = m;
    bad.skip = reinterpret_cast<const uint8_t*>(&bad);  // must not be read
    refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"microbatches is " + std::to_string(m)});
  }
  const std::array<int64_t, 4> bytes = {0, 0, 0, -8};
  bad = good;
  bad.activation_bytes = bytes.data();
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"stage 1, microbatch 1", "-8"});
  const HintPtr missing = make_text_hint("0F0,0B0\n1F0,1B0\n");
  bad = good;
  bad.hint = missing.get();
  refused(bad, RRFP_ERR_BAD_ORDER, {"stage 0, microbatch 1"});
  const HintPtr priority = make_hint("bf");
  bad.hint = priority.get();
  bad.order = RRFP_ORDER_STRICT;
  refused(bad, RRFP_ERR_BAD_ORDER, {"bf", "strict"});
  // All of that left the rank where it was.
  ASSERT_EQ(rrfp_rank_begin_step(handles.ranks[0].get(), &good, nullptr), RRFP_OK);
}

TEST(Misuse, RanksThatDoNotExist) {
  Handles handles;
  for (int32_t rank : {-1, 2}) {
    rrfp_rank* out = nullptr;
    EXPECT_REFUSED(rrfp_rank_create(handles.pipeline.get(), rank, &out, &refusal.error),
                   RRFP_ERR_OUT_OF_RANGE, {"rank " + std::to_string(rank), "2 ranks"});
    EXPECT_EQ(out, nullptr);
  }
}

TEST(Misuse, ReservedFieldsAreZero) {
  // Or a later version could not give them a meaning.
  Handles handles;
  rrfp_stage_options stage;
  rrfp_stage_options_init(&stage);
  stage.reserved = 1;
  EXPECT_REFUSED(rrfp_graph_add_stage(handles.graph.get(), &stage, nullptr, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"reserved"});
  handles.begin_all();
  ASSERT_EQ(handles.next(0), RRFP_OK);
  rrfp_tensor tensor = TaskContext(handles.ranks[0].get(), handles.task, {}).alloc(RRFP_F32, {1});
  tensor.reserved = 1;
  EXPECT_REFUSED(rrfp_rank_put(handles.ranks[0].get(), handles.task.ticket, 0, &tensor, 1, nullptr,
                               &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"reserved"});
}

// --- Calls at the wrong time

TEST(Misuse, WithoutAStep) {
  Handles handles;
  rrfp_rank* const rank = handles.ranks[0].get();
  const auto refused = [&] {
    handles.task = {};
    rrfp_task_init(&handles.task);
    EXPECT_REFUSED(rrfp_rank_next(rank, 0, &handles.task, &refusal.error), RRFP_ERR_BAD_STATE,
                   {"rank 0 is in no step", "begin_step"});
    EXPECT_EQ(handles.task.ticket, 0u);
    EXPECT_REFUSED(rrfp_rank_done(rank, 1, nullptr, &refusal.error), RRFP_ERR_BAD_STATE,
                   {"in no step"});
    EXPECT_REFUSED(rrfp_rank_fail(rank, 1, 0, "text", &refusal.error), RRFP_ERR_BAD_STATE,
                   {"in no step"});
    EXPECT_REFUSED(rrfp_rank_put(rank, 1, 0, nullptr, 0, nullptr, &refusal.error),
                   RRFP_ERR_BAD_STATE, {"in no step"});
    EXPECT_REFUSED(rrfp_rank_input(rank, 1, 0, nullptr, 0, nullptr, nullptr, &refusal.error),
                   RRFP_ERR_BAD_STATE, {"in no step"});
    EXPECT_REFUSED(rrfp_rank_output_wanted(rank, 1, 0, &refusal.error), RRFP_ERR_BAD_STATE,
                   {"in no step"});
    EXPECT_REFUSED(rrfp_rank_end_step(rank, nullptr, &refusal.error), RRFP_ERR_BAD_STATE,
                   {"in no step"});
    rrfp_tensor tensor = {};
    EXPECT_REFUSED(rrfp_rank_alloc(rank, 1, RRFP_F32, 0, nullptr, &tensor, &refusal.error),
                   RRFP_ERR_BAD_STATE, {"in no step"});
    EXPECT_EQ(tensor.data, nullptr);
    rrfp_buffer* buffer = nullptr;
    EXPECT_REFUSED(rrfp_rank_wrap(rank, 1, &tensor, 1, nullptr, nullptr, &buffer, &refusal.error),
                   RRFP_ERR_BAD_STATE, {"in no step"});
    EXPECT_EQ(buffer, nullptr);
  };
  refused();
  handles.begin_all();
  handles.run_all();
  ASSERT_EQ(rrfp_rank_end_step(rank, nullptr, nullptr), RRFP_OK);
  refused();  // after the step as before it
}

TEST(Misuse, BeginTwiceAndEndTooEarly) {
  Handles handles;
  handles.begin_all();
  rrfp_error error = {};
  EXPECT_EQ(handles.begin(0, 2, RRFP_MODE_TRAIN, &error), RRFP_ERR_BAD_STATE);
  EXPECT_NE(std::string(error.text).find("step 0 has not ended on rank 0"), std::string::npos)
      << error.text;
  rrfp_step_report report;
  rrfp_step_report_init(&report);
  report.tasks = -7;
  EXPECT_REFUSED(rrfp_rank_end_step(handles.ranks[0].get(), &report, &refusal.error),
                 RRFP_ERR_BAD_STATE, {"step 0 is not complete on rank 0", "6 tasks remain"});
  EXPECT_EQ(report.tasks, -7);
  ASSERT_EQ(handles.next(0), RRFP_OK);
  EXPECT_EQ(rrfp_rank_end_step(handles.ranks[0].get(), nullptr, nullptr), RRFP_ERR_BAD_STATE);
  handles.finish(0);
  handles.run_all();
  EXPECT_EQ(rrfp_rank_end_step(handles.ranks[0].get(), nullptr, nullptr), RRFP_OK);
}

TEST(Misuse, Tickets) {
  Handles handles;
  handles.begin_all();
  rrfp_rank* const rank = handles.ranks[0].get();
  EXPECT_REFUSED(rrfp_rank_done(rank, 0, nullptr, &refusal.error), RRFP_ERR_BAD_STATE,
                 {"ticket 0", "no task is running"});
  ASSERT_EQ(handles.next(0), RRFP_OK);
  const rrfp_task first = handles.task;
  rrfp_task another;
  rrfp_task_init(&another);
  EXPECT_REFUSED(rrfp_rank_next(rank, 0, &another, &refusal.error), RRFP_ERR_BAD_STATE,
                 {"0F0", "not done"});
  EXPECT_REFUSED(rrfp_rank_done(rank, first.ticket + 5, nullptr, &refusal.error),
                 RRFP_ERR_BAD_STATE,
                 {"ticket " + std::to_string(first.ticket + 5), "0F0 has ticket"});
  EXPECT_REFUSED(rrfp_rank_fail(rank, first.ticket + 5, 1, "text", &refusal.error),
                 RRFP_ERR_BAD_STATE, {"ticket"});
  handles.finish(0);
  rrfp_events events = 77;
  EXPECT_REFUSED(rrfp_rank_done(rank, first.ticket, &events, &refusal.error), RRFP_ERR_BAD_STATE,
                 {"0F0", "already done"});
  EXPECT_EQ(events, 77u);
  ASSERT_EQ(handles.next(0), RRFP_OK);
  EXPECT_REFUSED(rrfp_rank_done(rank, first.ticket, nullptr, &refusal.error), RRFP_ERR_BAD_STATE,
                 {"ticket " + std::to_string(first.ticket)});
  handles.finish(0);
  handles.run_all();
}

TEST(Misuse, TwoThreadsAtOnce) {
  Handles handles;
  handles.begin_all();
  rrfp_rank* const rank = handles.ranks[1].get();
  std::thread owner([&] {
    rrfp_task task;
    rrfp_task_init(&task);
    rrfp_status status = RRFP_ERR_BUSY;  // while the other one looks whether this one is inside
    while (status == RRFP_ERR_BUSY) status = rrfp_rank_next(rank, -1, &task, nullptr);
    EXPECT_EQ(status, RRFP_AGAIN);
  });
  rrfp_task task;
  rrfp_task_init(&task);
  // Until the owner is inside, this call is the only one and finds nothing.
  while (rrfp_rank_next(rank, 0, &task, nullptr) == RRFP_AGAIN) std::this_thread::yield();
  const std::initializer_list<std::string_view> text = {"another thread", "rank 1"};
  EXPECT_REFUSED(rrfp_rank_next(rank, 0, &task, &refusal.error), RRFP_ERR_BUSY, text);
  EXPECT_REFUSED(rrfp_rank_done(rank, 1, nullptr, &refusal.error), RRFP_ERR_BUSY, text);
  EXPECT_REFUSED(rrfp_rank_fail(rank, 1, 0, nullptr, &refusal.error), RRFP_ERR_BUSY, text);
  EXPECT_REFUSED(rrfp_rank_put(rank, 1, 0, nullptr, 0, nullptr, &refusal.error), RRFP_ERR_BUSY,
                 text);
  EXPECT_REFUSED(rrfp_rank_input(rank, 1, 0, nullptr, 0, nullptr, nullptr, &refusal.error),
                 RRFP_ERR_BUSY, text);
  EXPECT_REFUSED(rrfp_rank_output_wanted(rank, 1, 0, &refusal.error), RRFP_ERR_BUSY, text);
  EXPECT_REFUSED(rrfp_rank_end_step(rank, nullptr, &refusal.error), RRFP_ERR_BUSY, text);
  rrfp_tensor tensor = {};
  EXPECT_REFUSED(rrfp_rank_alloc(rank, 1, RRFP_F32, 0, nullptr, &tensor, &refusal.error),
                 RRFP_ERR_BUSY, text);
  rrfp_buffer* buffer = nullptr;
  EXPECT_REFUSED(rrfp_rank_wrap(rank, 1, &tensor, 1, nullptr, nullptr, &buffer, &refusal.error),
                 RRFP_ERR_BUSY, text);
  EXPECT_EQ(handles.begin(1), RRFP_ERR_BUSY);
  ASSERT_EQ(rrfp_rank_wake(rank, nullptr), RRFP_OK);
  owner.join();
  handles.run_all();
}

}  // namespace
}  // namespace rrfp::cases
