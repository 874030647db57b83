/* SPDX-License-Identifier: Apache-2.0
 *
 * A schedule from a file, in the text form of torch.distributed.pipelining: one row per rank, cells
 * such as 2F3 (stage 2, forward of microbatch 3; F, B or I and W). The chain of 01_toy_chain runs by
 * it, once as a ranking of what is ready and once obeyed to the letter, and shows what each rank did.
 *
 *   custom_hint FILE
 *
 * Everything happens on one thread, which goes round the ranks: they need no threads of their own.
 *
 * Build: cc main.c $(pkg-config --cflags --libs rrfp)
 */
#include <rrfp/rrfp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kStagesMax = 64, kTextMax = 1 << 20 };

static rrfp_error error;

static void check(rrfp_status status) {
  if (status >= 0) return;
  fprintf(stderr, "custom_hint: %s: %s\n", rrfp_status_name(status), error.text);
  exit(1);
}

static rrfp_hint *read_hint(const char *path) {
  static char text[kTextMax];
  rrfp_hint *hint = NULL;
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  const size_t length = fread(text, 1, sizeof text, file);
  if (ferror(file) || length == sizeof text) {
    fprintf(stderr, "custom_hint: %s cannot be read, or is larger than 1 MiB\n", path);
    exit(1);
  }
  fclose(file);
  check(rrfp_hint_create_from_text(text, length, &hint, &error));
  return hint;
}

/* A chain of all stages that the hint names, each on the rank in whose row it stands. */
static rrfp_graph *make_graph(const rrfp_hint *hint, const rrfp_hint_info *info) {
  rrfp_graph *graph = NULL;
  rrfp_stage_options stage;
  check(rrfp_graph_create(info->ranks, &graph, &error));
  rrfp_stage_options_init(&stage);
  for (int32_t s = 0; s < info->stages; ++s) {
    stage.flags = s == info->stages - 1 ? RRFP_STAGE_LOSS : 0;
    check(rrfp_graph_add_stage(graph, &stage, NULL, &error));
    if (s > 0) check(rrfp_graph_add_edge(graph, s - 1, s, 0, NULL, &error));
  }
  check(rrfp_graph_place_by_hint(graph, hint, &error));
  return graph;
}

static void put(rrfp_rank *rank, const rrfp_task *task, int32_t edge, float value) {
  rrfp_tensor tensor = {.data = &value, .dtype = RRFP_F32};
  if (task->kind == RRFP_FORWARD) tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
  check(rrfp_rank_put(rank, task->ticket, edge, &tensor, 1, NULL, &error));
}

/* Every stage doubles what enters it; edge s leads from stage s to stage s + 1. */
static void compute(rrfp_rank *rank, const rrfp_task *task, int32_t stages, float *loss) {
  const int32_t s = task->stage;
  const int forward = task->kind == RRFP_FORWARD;
  const int32_t from = forward ? s - 1 : s, to = forward ? s : s - 1;
  float value = forward ? (float)(task->microbatch + 1) : 1.0f;
  rrfp_tensor tensor;
  if (task->kind == RRFP_WEIGHT_GRADIENT) return; /* there is no weight to train here */
  if (from >= 0 && from < stages - 1) {
    check(rrfp_rank_input(rank, task->ticket, from, &tensor, 1, NULL, NULL, &error));
    value = *(const float *)tensor.data;
  }
  if (to >= 0 && to < stages - 1) {
    put(rank, task, to, 2 * value);
  } else if (forward) {
    *loss += 2 * value;
  }
}

static void run(const rrfp_graph *graph, const rrfp_hint *hint, const rrfp_hint_info *info,
                rrfp_order order) {
  static const char kinds[] = {'F', 'B', 'I', 'W'};
  rrfp_pipeline_options options;
  rrfp_pipeline *pipeline = NULL;
  rrfp_rank *ranks[kStagesMax];
  rrfp_step_options step;
  rrfp_task task;
  float loss = 0;
  int32_t done = 0;

  rrfp_pipeline_options_init(&options);
  options.order = order;
  check(rrfp_pipeline_create(graph, &options, &pipeline, &error));
  rrfp_step_options_init(&step);
  step.microbatches = info->microbatches;
  step.hint = hint;
  rrfp_task_init(&task);
  for (int32_t r = 0; r < info->ranks; ++r) {
    check(rrfp_rank_create(pipeline, r, &ranks[r], &error));
    check(rrfp_rank_begin_step(ranks[r], &step, &error));
  }
  printf("%s\n", order == RRFP_ORDER_STRICT ? "obeyed" : "as a ranking");
  /* A round gives each rank one task if it has one ready. */
  for (int32_t round = 0; done < info->ranks; ++round) {
    printf("  round %2d:", round);
    done = 0;
    for (int32_t r = 0; r < info->ranks; ++r) {
      const rrfp_status status = rrfp_rank_next(ranks[r], 0, &task, &error);
      check(status);
      if (status == RRFP_OK) {
        printf("  %d%c%d", (int)task.stage, kinds[task.kind], (int)task.microbatch);
        compute(ranks[r], &task, info->stages, &loss);
        check(rrfp_rank_done(ranks[r], task.ticket, NULL, &error));
      } else {
        printf("  ---");
      }
      if (status == RRFP_STEP_DONE) ++done;
    }
    printf("\n");
  }
  printf("  sum of losses %g\n", loss);
  for (int32_t r = 0; r < info->ranks; ++r) {
    check(rrfp_rank_end_step(ranks[r], NULL, &error));
    rrfp_rank_destroy(ranks[r]);
  }
  rrfp_pipeline_destroy(pipeline);
}

int main(int argc, char **argv) {
  rrfp_hint_info info;
  if (argc != 2) {
    fprintf(stderr, "usage: custom_hint FILE\n");
    return 2;
  }
  rrfp_hint *hint = read_hint(argv[1]);
  rrfp_hint_info_init(&info);
  check(rrfp_hint_get_info(hint, &info, &error));
  if (info.ranks > kStagesMax) {
    fprintf(stderr, "custom_hint: %d ranks; at most %d are possible here\n", (int)info.ranks,
            kStagesMax);
    return 1;
  }
  rrfp_graph *graph = make_graph(hint, &info);
  check(rrfp_hint_check(hint, graph, info.microbatches, RRFP_ORDER_STRICT, &error));
  run(graph, hint, &info, RRFP_ORDER_READY);
  run(graph, hint, &info, RRFP_ORDER_STRICT);
  rrfp_graph_destroy(graph);
  rrfp_hint_destroy(hint);
  return 0;
}
