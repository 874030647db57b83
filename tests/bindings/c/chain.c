/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

enum { kOrderMax = 4096 };

struct chain;

struct rank {
  struct chain *chain;
  rrfp_rank *handle;
  rrfp_status status;
  rrfp_error error;
  char order[kOrderMax];
  size_t order_size;
};

/* Each rank writes only what belongs to its stage. */
struct chain {
  const struct scenario *s;
  rrfp_hint *hint;
  rrfp_pipeline *pipeline;
  int failing; /* in this step */
  float losses[kMost], dw[kMost], dx[kMost];
  struct rank ranks[kMost];
};

static rrfp_status get(rrfp_rank *rank, const rrfp_task *task, int32_t edge, float *value,
                       rrfp_error *error) {
  rrfp_tensor tensor;
  const rrfp_status status =
      rrfp_rank_input(rank, task->ticket, edge, &tensor, 1, NULL, NULL, error);
  if (status == RRFP_OK) *value = *(const float *)tensor.data;
  return status;
}

static rrfp_status put(rrfp_rank *rank, const rrfp_task *task, int32_t edge, float value,
                       rrfp_error *error) {
  rrfp_tensor tensor = {.data = &value, .dtype = RRFP_F32};
  if (task->kind == RRFP_FORWARD) tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
  return rrfp_rank_put(rank, task->ticket, edge, &tensor, 1, NULL, error);
}

static rrfp_status compute(struct rank *rank, const rrfp_task *task) {
  struct chain *const c = rank->chain;
  const int32_t s = task->stage, last = c->s->stages - 1;
  rrfp_error *const error = &rank->error;
  float input = c->s->inputs[task->microbatch];
  float gradient = 1.0f / (float)c->s->microbatches;
  rrfp_status status = RRFP_OK;
  if (s > 0) status = get(rank->handle, task, s - 1, &input, error);
  if (status < 0) return status;
  if (task->kind == RRFP_FORWARD) {
    const float output = c->s->weights[s] * input;
    if (s < last) return put(rank->handle, task, s, output, error);
    c->losses[task->microbatch] = output;
    return RRFP_OK;
  }
  if (s < last) status = get(rank->handle, task, s, &gradient, error);
  if (status < 0) return status;
  if (task->kind != RRFP_INPUT_GRADIENT) c->dw[s] += input * gradient;
  if (task->kind == RRFP_WEIGHT_GRADIENT) return RRFP_OK;
  if (s > 0) return put(rank->handle, task, s - 1, c->s->weights[s] * gradient, error);
  c->dx[task->microbatch] = c->s->weights[s] * gradient;
  return RRFP_OK;
}

static int fails(const struct rank *rank, const rrfp_task *task) {
  const struct chain *const c = rank->chain;
  return c->failing && task->kind == RRFP_FORWARD && task->stage == c->s->fail_stage &&
         task->microbatch == c->s->fail_microbatch;
}

static void note(struct rank *rank, const rrfp_task *task) {
  const size_t room = sizeof rank->order - rank->order_size;
  const int size = snprintf(rank->order + rank->order_size, room, " %d%c%d", (int)task->stage,
                            "FBIW"[task->kind], (int)task -> microbatch);
  if (size < 0 || (size_t)size >= room) fatal("too many tasks", rank->order);
  rank->order_size += (size_t)size;
}

static void *run_rank(void *argument) {
  struct rank *const rank = argument;
  rrfp_step_options step;
  rrfp_task task;
  rrfp_step_options_init(&step);
  step.microbatches = rank->chain->s->microbatches;
  step.hint = rank->chain->hint;
  rrfp_task_init(&task);
  rank->order_size = 0;
  rank->status = rrfp_rank_begin_step(rank->handle, &step, &rank->error);
  while (rank->status >= 0 && rank->status != RRFP_STEP_DONE) {
    rank->status = rrfp_rank_next(rank->handle, -1, &task, &rank->error);
    if (rank->status != RRFP_OK) continue;
    note(rank, &task);
    if (fails(rank, &task)) {
      rank->status =
          rrfp_rank_fail(rank->handle, task.ticket, 7, rank->chain->s->fail_text, &rank->error);
      continue;
    }
    rank->status = compute(rank, &task);
    if (rank->status >= 0)
      rank->status = rrfp_rank_done(rank->handle, task.ticket, NULL, &rank->error);
    if (rank->status < 0) rrfp_rank_fail(rank->handle, task.ticket, 1, rank->error.text, NULL);
  }
  if (rank->status == RRFP_STEP_DONE) {
    rank->status = rrfp_rank_end_step(rank->handle, NULL, &rank->error);
  } else {
    rrfp_rank_end_step(rank->handle, NULL, NULL);
  }
  return NULL;
}

static void run_step(struct chain *c) {
  pthread_t threads[kMost];
  memset(c->dw, 0, sizeof c->dw);
  for (int r = 0; r < c->s->stages; ++r) {
    if (pthread_create(&threads[r], NULL, run_rank, &c->ranks[r]) != 0)
      fatal("threads", "none left");
  }
  for (int r = 0; r < c->s->stages; ++r) pthread_join(threads[r], NULL);
}

static void fail_once(struct chain *c) {
  rrfp_error error;
  c->failing = 1;
  run_step(c);
  c->failing = 0;
  for (int r = 0; r < c->s->stages; ++r) {
    const rrfp_error *const e = &c->ranks[r].error;
    if (c->ranks[r].status >= 0) fatal("no failure", "a rank has ended its step");
    printf("failed %d %s %d %d %s\n", r, rrfp_status_name(e->status), (int)e->stage,
           (int)e->microbatch,
           strstr(e->text, c->s->fail_text) != NULL ? c->s->fail_text : e->text);
  }
  check(rrfp_pipeline_reset(c->pipeline, &error), &error);
}

static rrfp_hint *make_hint(const struct scenario *s) {
  static char text[1 << 16];
  rrfp_error error;
  rrfp_hint *hint = NULL;
  if (s->hint_file == NULL) {
    check(rrfp_hint_create(s->hint, &hint, &error), &error);
    return hint;
  }
  FILE *const file = fopen(s->hint_file, "rb");
  if (file == NULL) fatal("cannot read", s->hint_file);
  const size_t length = fread(text, 1, sizeof text, file);
  fclose(file);
  check(rrfp_hint_create_from_text(text, length, &hint, &error), &error);
  return hint;
}

static void open_chain(struct chain *c) {
  rrfp_error error;
  rrfp_graph *graph = NULL;
  rrfp_stage_options stage;
  rrfp_pipeline_options options;
  check(rrfp_graph_create(c->s->stages, &graph, &error), &error);
  rrfp_stage_options_init(&stage);
  for (int k = 0; k < c->s->stages; ++k) {
    stage.flags = k == c->s->stages - 1 ? RRFP_STAGE_LOSS : 0;
    check(rrfp_graph_add_stage(graph, &stage, NULL, &error), &error);
    if (k > 0) check(rrfp_graph_add_edge(graph, k - 1, k, 0, NULL, &error), &error);
  }
  check(rrfp_graph_place(graph, RRFP_PLACEMENT_LINEAR, &error), &error);
  rrfp_pipeline_options_init(&options);
  options.order = c->s->order;
  check(rrfp_pipeline_create(graph, &options, &c->pipeline, &error), &error);
  rrfp_graph_destroy(graph);
  for (int r = 0; r < c->s->stages; ++r) {
    c->ranks[r].chain = c;
    check(rrfp_rank_create(c->pipeline, r, &c->ranks[r].handle, &error), &error);
  }
}

static void print_results(const struct chain *c) {
  float loss = 0;
  for (int r = 0; r < c->s->stages && c->s->order == RRFP_ORDER_STRICT; ++r) {
    printf("order %d%s\n", r, c->ranks[r].order);
  }
  for (int m = 0; m < c->s->microbatches; ++m) loss += c->losses[m] / (float)c->s->microbatches;
  printf("loss %g\ndw", loss);
  for (int k = 0; k < c->s->stages; ++k) printf(" %g", c->dw[k]);
  printf("\ndx");
  for (int m = 0; m < c->s->microbatches; ++m) printf(" %g", c->dx[m]);
  printf("\n");
}

void run_chain(const struct scenario *s) {
  static struct chain chain;
  chain.s = s;
  chain.hint = make_hint(s);
  open_chain(&chain);
  if (s->fail_stage >= 0) fail_once(&chain);
  run_step(&chain);
  for (int r = 0; r < s->stages; ++r) check(chain.ranks[r].status, &chain.ranks[r].error);
  print_results(&chain);
  for (int r = 0; r < s->stages; ++r) rrfp_rank_destroy(chain.ranks[r].handle);
  rrfp_pipeline_destroy(chain.pipeline);
  rrfp_hint_destroy(chain.hint);
}
