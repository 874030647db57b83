/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage code of one's own: an MLP cut into two stages, y = W2 tanh(W1 x), whose gradients are written
 * by hand. It learns sin(2 a + b) and a - b^3 by gradient descent on the mean of squared errors. What to
 * look at:
 *
 *   - activations live in engine memory and reach the next stage without a copy;
 *   - I (the gradient of what came in) and W (that of the weights) are separate tasks here; a stage
 *     keeps what its W needs by (stage, microbatch);
 *   - the sum over microbatches is the same to the bit whatever order the engine chooses.
 *
 *   own_stage_code [STEPS]
 *
 * Build: cc main.c $(pkg-config --cflags --libs rrfp) -lm
 */
#include <math.h>
#include <pthread.h>
#include <rrfp/rrfp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kInput = 2, kHidden = 16, kOutput = 2, kRows = 8, kMicrobatches = 4 };
static const float kRate = 0.2f;

static float w1[kHidden][kInput], dw1[kHidden][kInput];
static float w2[kOutput][kHidden], dw2[kOutput][kHidden];
static float x[kMicrobatches][kRows][kInput], target[kMicrobatches][kRows][kOutput];
static float residual[kMicrobatches][kRows][kOutput]; /* d loss / d y, kept from F to W */
static float slope[kMicrobatches][kRows][kHidden];    /* d h / d (W1 x), kept from F to W */
static double losses[kMicrobatches];

struct rank {
  rrfp_rank *handle;
  const rrfp_hint *hint;
  rrfp_error error;
};

/* A tensor of [kRows, kHidden] that came over the edge. */
static rrfp_status get(rrfp_rank *rank, const rrfp_task *task, const float (**rows)[kHidden],
                       rrfp_error *error) {
  rrfp_tensor tensor;
  const rrfp_status status = rrfp_rank_input(rank, task->ticket, 0, &tensor, 1, NULL, NULL, error);
  if (status == RRFP_OK) *rows = (const float(*)[kHidden])tensor.data;
  return status;
}

static rrfp_status alloc(rrfp_rank *rank, const rrfp_task *task, rrfp_tensor *tensor,
                         rrfp_error *error) {
  const int64_t shape[2] = {kRows, kHidden};
  return rrfp_rank_alloc(rank, task->ticket, RRFP_F32, 2, shape, tensor, error);
}

/* h = tanh(W1 x) */
static rrfp_status first_stage(rrfp_rank *rank, const rrfp_task *task, rrfp_error *error) {
  const int32_t m = task->microbatch;
  rrfp_tensor h;
  const float(*dh)[kHidden] = NULL;
  rrfp_status status;
  if (task->kind == RRFP_FORWARD) {
    if ((status = alloc(rank, task, &h, error)) < 0) return status;
    h.flags = RRFP_TENSOR_WANTS_GRADIENT;
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kHidden; ++j) {
        float sum = 0;
        for (int i = 0; i < kInput; ++i) sum += w1[j][i] * x[m][r][i];
        const float value = tanhf(sum);
        ((float(*)[kHidden])h.data)[r][j] = value;
        slope[m][r][j] = 1 - value * value;
      }
    }
    return rrfp_rank_put(rank, task->ticket, 0, &h, 1, NULL, error);
  }
  /* Nobody wants the gradient of x: I, if it comes, has nothing to do. */
  if (task->kind == RRFP_INPUT_GRADIENT) return RRFP_OK;
  if ((status = get(rank, task, &dh, error)) != RRFP_OK) return status;
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kHidden; ++j) {
      for (int i = 0; i < kInput; ++i) dw1[j][i] += dh[r][j] * slope[m][r][j] * x[m][r][i];
    }
  }
  return RRFP_OK;
}

/* y = W2 h and the loss */
static rrfp_status second_stage(rrfp_rank *rank, const rrfp_task *task, rrfp_error *error) {
  const int32_t m = task->microbatch;
  const float(*h)[kHidden] = NULL;
  rrfp_tensor dh;
  rrfp_status status = get(rank, task, &h, error);
  if (status != RRFP_OK) return status;
  if (task->kind == RRFP_FORWARD) {
    losses[m] = 0;
    for (int r = 0; r < kRows; ++r) {
      for (int k = 0; k < kOutput; ++k) {
        float y = 0;
        for (int j = 0; j < kHidden; ++j) y += w2[k][j] * h[r][j];
        const float difference = y - target[m][r][k];
        losses[m] += difference * difference;
        residual[m][r][k] = 2 * difference / (kRows * kMicrobatches);
      }
    }
    return RRFP_OK;
  }
  if (task->kind != RRFP_INPUT_GRADIENT) { /* W, or the W half of B */
    for (int r = 0; r < kRows; ++r) {
      for (int k = 0; k < kOutput; ++k) {
        for (int j = 0; j < kHidden; ++j) dw2[k][j] += residual[m][r][k] * h[r][j];
      }
    }
  }
  if (task->kind == RRFP_WEIGHT_GRADIENT) return RRFP_OK;
  if ((status = alloc(rank, task, &dh, error)) < 0) return status; /* I, or the I half of B */
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kHidden; ++j) {
      float sum = 0;
      for (int k = 0; k < kOutput; ++k) sum += residual[m][r][k] * w2[k][j];
      ((float(*)[kHidden])dh.data)[r][j] = sum;
    }
  }
  return rrfp_rank_put(rank, task->ticket, 0, &dh, 1, NULL, error);
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
  status = rrfp_rank_begin_step(rank->handle, &step, error);
  while (status == RRFP_OK &&
         (status = rrfp_rank_next(rank->handle, -1, &task, error)) == RRFP_OK) {
    status = task.stage == 0 ? first_stage(rank->handle, &task, error)
                             : second_stage(rank->handle, &task, error);
    if (status == RRFP_OK) status = rrfp_rank_done(rank->handle, task.ticket, NULL, error);
    /* The others must hear of it, or they would wait for our messages. */
    if (status < 0) rrfp_rank_fail(rank->handle, task.ticket, 1, error->text, NULL);
  }
  if (status == RRFP_STEP_DONE) rrfp_rank_end_step(rank->handle, NULL, error);
  return NULL;
}

static void check(rrfp_status status, const rrfp_error *error) {
  if (status >= 0) return;
  fprintf(stderr, "own_stage_code: %s: %s\n", rrfp_status_name(status), error->text);
  exit(1);
}

/* -1 .. 1, the same on every machine */
static float draw(void) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (float)(1 << 23) - 1;
}

static void prepare(void) {
  for (int j = 0; j < kHidden; ++j) {
    for (int i = 0; i < kInput; ++i) w1[j][i] = draw();
    for (int k = 0; k < kOutput; ++k) w2[k][j] = draw() / 4;
  }
  for (int m = 0; m < kMicrobatches; ++m) {
    for (int r = 0; r < kRows; ++r) {
      const float a = x[m][r][0] = draw(), b = x[m][r][1] = draw();
      target[m][r][0] = sinf(2 * a + b);
      target[m][r][1] = a - b * b * b;
    }
  }
}

static void train_step(struct rank *ranks) {
  pthread_t threads[2];
  memset(dw1, 0, sizeof dw1);
  memset(dw2, 0, sizeof dw2);
  for (int r = 0; r < 2; ++r) {
    if (pthread_create(&threads[r], NULL, run_rank, &ranks[r]) != 0) {
      fprintf(stderr, "own_stage_code: cannot start a thread for rank %d\n", r);
      exit(1);
    }
  }
  for (int r = 0; r < 2; ++r) pthread_join(threads[r], NULL);
  for (int r = 0; r < 2; ++r) check(ranks[r].error.status, &ranks[r].error);
  for (int j = 0; j < kHidden; ++j) {
    for (int i = 0; i < kInput; ++i) w1[j][i] -= kRate * dw1[j][i];
    for (int k = 0; k < kOutput; ++k) w2[k][j] -= kRate * dw2[k][j];
  }
}

int main(int argc, char **argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 300;
  rrfp_error error;
  rrfp_graph *graph = NULL;
  rrfp_hint *hint = NULL;
  rrfp_pipeline *pipeline = NULL;
  rrfp_stage_options stage;
  struct rank ranks[2] = {{0}};
  if (argc > 2 || steps < 1) {
    fprintf(stderr, "usage: own_stage_code [STEPS]\n");
    return 2;
  }
  check(rrfp_graph_create(2, &graph, &error), &error);
  rrfp_stage_options_init(&stage);
  check(rrfp_graph_add_stage(graph, &stage, NULL, &error), &error);
  stage.flags = RRFP_STAGE_LOSS;
  check(rrfp_graph_add_stage(graph, &stage, NULL, &error), &error);
  check(rrfp_graph_add_edge(graph, 0, 1, 0, NULL, &error), &error);
  check(rrfp_graph_place(graph, RRFP_PLACEMENT_LINEAR, &error), &error);
  check(rrfp_pipeline_create(graph, NULL, &pipeline, &error), &error);
  check(rrfp_hint_create("zb-h1", &hint, &error), &error);
  for (int r = 0; r < 2; ++r) {
    ranks[r].hint = hint;
    check(rrfp_rank_create(pipeline, r, &ranks[r].handle, &error), &error);
  }

  prepare();
  for (int step = 0; step < steps; ++step) {
    train_step(ranks);
    if (step % 100 == 0 || step == steps - 1) {
      double loss = 0;
      for (int m = 0; m < kMicrobatches; ++m) loss += losses[m] / (kRows * kMicrobatches);
      printf("step %d: loss %.6f\n", step + 1, loss);
    }
  }
  for (int r = 0; r < 2; ++r) rrfp_rank_destroy(ranks[r].handle);
  rrfp_pipeline_destroy(pipeline);
  rrfp_graph_destroy(graph);
  rrfp_hint_destroy(hint);
  return 0;
}
