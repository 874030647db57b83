/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task costs without its work: one rank, one stage, empty tasks. Prints the median of some
 * repetitions as `pull: N ns per task`. ../bindings/rust/src/bin/pull_bench.rs does the same in Rust.
 */
#define _POSIX_C_SOURCE 200809L
#include <rrfp/rrfp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kMicrobatches = 10000, kRepetitions = 31 };

static rrfp_error error;

/* Ends the program if a call has failed. */
static rrfp_status check(rrfp_status status) {
  if (status >= 0) return status;
  fprintf(stderr, "pull_bench: %s: %s\n", rrfp_status_name(status), error.text);
  exit(1);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds per task of one step. */
static double time_step(rrfp_rank *rank, const rrfp_step_options *step) {
  rrfp_task task;
  rrfp_task_init(&task);
  check(rrfp_rank_begin_step(rank, step, &error));
  const double begin = now_ns();
  int tasks = 0;
  while (check(rrfp_rank_next(rank, -1, &task, &error)) == RRFP_OK) {
    check(rrfp_rank_done(rank, task.ticket, NULL, &error));
    ++tasks;
  }
  const double ns = now_ns() - begin;
  check(rrfp_rank_end_step(rank, NULL, &error));
  return ns / tasks;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  rrfp_graph *graph = NULL;
  rrfp_hint *hint = NULL;
  rrfp_pipeline *pipeline = NULL;
  rrfp_rank *rank = NULL;
  rrfp_stage_options stage;
  rrfp_step_options step;
  double times[kRepetitions];

  rrfp_stage_options_init(&stage);
  stage.flags = RRFP_STAGE_LOSS;
  stage.rank = 0;
  check(rrfp_graph_create(1, &graph, &error));
  check(rrfp_graph_add_stage(graph, &stage, NULL, &error));
  check(rrfp_hint_create("1f1b", &hint, &error));
  check(rrfp_pipeline_create(graph, NULL, &pipeline, &error));
  check(rrfp_rank_create(pipeline, 0, &rank, &error));

  rrfp_step_options_init(&step);
  step.microbatches = kMicrobatches;
  step.hint = hint;
  time_step(rank, &step); /* warms up */
  for (int k = 0; k < kRepetitions; ++k) times[k] = time_step(rank, &step);
  qsort(times, kRepetitions, sizeof times[0], compare);
  printf("pull: %.1f ns per task\n", times[kRepetitions / 2]);

  rrfp_rank_destroy(rank);
  rrfp_pipeline_destroy(pipeline);
  rrfp_hint_destroy(hint);
  rrfp_graph_destroy(graph);
  return 0;
}
