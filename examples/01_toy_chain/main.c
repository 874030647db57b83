/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest pipeline: a chain of four stages, one on each of four ranks (threads). Stage s
 * multiplies by w[s], the loss of a microbatch is what the last stage gives, the loss of the step is
 * the mean. Each rank pulls tasks and computes them here, in plain C.
 *
 *   toy_chain [HINT]     gpipe, 1f1b (default), bf, bfw or zb-h1; the result is the same
 *
 * Build: cc main.c $(pkg-config --cflags --libs rrfp)
 */
#include <pthread.h>
#include <rrfp/rrfp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kStages = 4, kMicrobatches = 4 };

static const float w[kStages] = {2, 3, 5, 7};
static const float x[kMicrobatches] = {1, 2, 3, 4};

/* Each rank writes only what belongs to its stage. */
static float losses[kMicrobatches];
static float dw[kStages];
static float dx[kMicrobatches];

struct rank {
  rrfp_rank *handle;
  const rrfp_hint *hint;
  rrfp_error error;
  rrfp_step_report report;
};

/* Edge e goes from stage e to stage e + 1. */
static rrfp_status get(rrfp_rank *rank, const rrfp_task *task, int32_t edge, float *value,
                       rrfp_error *error) {
  rrfp_tensor tensor;
  size_t count = 0;
  rrfp_status status = rrfp_rank_input(rank, task->ticket, edge, &tensor, 1, &count, NULL, error);
  if (status == RRFP_OK) *value = *(const float *)tensor.data;
  return status;
}

static rrfp_status put(rrfp_rank *rank, const rrfp_task *task, int32_t edge, float *value,
                       rrfp_error *error) {
  rrfp_tensor tensor = {.data = value, .dtype = RRFP_F32};
  if (task->kind == RRFP_FORWARD) tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
  return rrfp_rank_put(rank, task->ticket, edge, &tensor, 1, NULL, error);
}

static rrfp_status compute(rrfp_rank *rank, const rrfp_task *task, rrfp_error *error) {
  const int32_t s = task->stage;
  float input = x[task->microbatch];
  float gradient = 1.0f / kMicrobatches; /* of the mean, for the last stage */
  rrfp_status status = RRFP_OK;

  if (s > 0) status = get(rank, task, s - 1, &input, error);
  if (status < 0) return status;
  if (task->kind == RRFP_FORWARD) {
    float output = w[s] * input;
    if (s < kStages - 1) return put(rank, task, s, &output, error);
    losses[task->microbatch] = output;
    return RRFP_OK;
  }
  if (s < kStages - 1) status = get(rank, task, s, &gradient, error);
  if (status < 0) return status;
  if (task->kind != RRFP_INPUT_GRADIENT) dw[s] += input * gradient; /* W, or the W half of B */
  if (task->kind != RRFP_WEIGHT_GRADIENT) {                         /* I, or the I half of B */
    float to_input = w[s] * gradient;
    if (s > 0) return put(rank, task, s - 1, &to_input, error);
    dx[task->microbatch] = to_input;
  }
  return RRFP_OK;
}

static void *run_rank(void *argument) {
  struct rank *rank = argument;
  rrfp_error *error = &rank->error;
  rrfp_step_options step;
  rrfp_task task;
  rrfp_status status;

  rrfp_step_options_init(&step);
  step.microbatches = kMicrobatches;
  step.hint = rank->hint;
  rrfp_task_init(&task);
  rrfp_step_report_init(&rank->report);

  status = rrfp_rank_begin_step(rank->handle, &step, error);
  while (status == RRFP_OK &&
         (status = rrfp_rank_next(rank->handle, -1, &task, error)) == RRFP_OK) {
    status = compute(rank->handle, &task, error);
    if (status == RRFP_OK) status = rrfp_rank_done(rank->handle, task.ticket, NULL, error);
    /* The others must hear of it, or they would wait for our messages. */
    if (status < 0) rrfp_rank_fail(rank->handle, task.ticket, 1, error->text, NULL);
  }
  if (status == RRFP_STEP_DONE) rrfp_rank_end_step(rank->handle, &rank->report, error);
  return NULL;
}

static void check(rrfp_status status, const rrfp_error *error) {
  if (status >= 0) return;
  fprintf(stderr, "toy_chain: %s: %s\n", rrfp_status_name(status), error->text);
  exit(2);
}

int main(int argc, char **argv) {
  rrfp_error error;
  rrfp_graph *graph = NULL;
  rrfp_hint *hint = NULL;
  rrfp_pipeline *pipeline = NULL;
  struct rank ranks[kStages] = {{0}};
  pthread_t threads[kStages];
  rrfp_stage_options stage;
  float loss = 0;

  check(rrfp_hint_create(argc > 1 ? argv[1] : "1f1b", &hint, &error), &error);
  check(rrfp_graph_create(kStages, &graph, &error), &error);
  rrfp_stage_options_init(&stage);
  for (int s = 0; s < kStages; ++s) {
    stage.flags = s == kStages - 1 ? RRFP_STAGE_LOSS : 0;
    check(rrfp_graph_add_stage(graph, &stage, NULL, &error), &error);
    if (s > 0) check(rrfp_graph_add_edge(graph, s - 1, s, 0, NULL, &error), &error);
  }
  check(rrfp_graph_place(graph, RRFP_PLACEMENT_LINEAR, &error), &error);
  check(rrfp_pipeline_create(graph, NULL, &pipeline, &error), &error);

  for (int r = 0; r < kStages; ++r) {
    ranks[r].hint = hint;
    check(rrfp_rank_create(pipeline, r, &ranks[r].handle, &error), &error);
    if (pthread_create(&threads[r], NULL, run_rank, &ranks[r]) != 0) {
      fprintf(stderr, "toy_chain: cannot start a thread for rank %d\n", r);
      return 1;
    }
  }
  for (int r = 0; r < kStages; ++r) pthread_join(threads[r], NULL);
  for (int r = 0; r < kStages; ++r) check(ranks[r].error.status, &ranks[r].error);

  for (int i = 0; i < kMicrobatches; ++i) loss += losses[i] / kMicrobatches;
  printf("loss %g\n", loss);
  for (int s = 0; s < kStages; ++s) printf("dw%d %g\n", s, dw[s]);
  for (int i = 0; i < kMicrobatches; ++i) printf("dx%d %g\n", i, dx[i]);
  for (int r = 0; r < kStages; ++r) {
    printf("rank %d: %d tasks, at most %d activations held\n", r, (int)ranks[r].report.tasks,
           (int)ranks[r].report.peak_slots);
    rrfp_rank_destroy(ranks[r].handle);
  }
  rrfp_pipeline_destroy(pipeline);
  rrfp_graph_destroy(graph);
  rrfp_hint_destroy(hint);
  return 0;
}
