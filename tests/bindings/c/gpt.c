/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "scenario.h"

static rrfp_error error;

struct samples {
  int32_t *tokens, *targets; /* batch x context */
  rrfp_tensor *inputs;       /* microbatches x 2 */
};

static void read_batch(const struct scenario *s, const rrfp_data *data, rrfp_split split,
                       uint64_t position, struct samples *samples, rrfp_batch *batch) {
  const int size = s->batch / s->microbatches;
  check(rrfp_data_read(data, split, position, s->batch, samples->tokens, samples->targets, &error),
        &error);
  for (int m = 0; m < s->microbatches; ++m) {
    const rrfp_tensor tensor = {.dtype = RRFP_I32, .ndim = 2, .shape = {size, s->context}};
    rrfp_tensor *const row = samples->inputs + (size_t)m * 2;
    const size_t first = (size_t)m * (size_t)size * (size_t)s->context;
    row[0] = row[1] = tensor;
    row[0].data = samples->tokens + first;
    row[1].data = samples->targets + first;
  }
  rrfp_batch_init(batch);
  batch->microbatches = s->microbatches;
  batch->inputs = samples->inputs;
}

static rrfp_trainer *make_trainer(const struct scenario *s) {
  rrfp_gpt_options gpt;
  rrfp_trainer_options options;
  rrfp_model *model = NULL;
  rrfp_hint *hint = NULL;
  rrfp_trainer *trainer = NULL;
  rrfp_gpt_options_init(&gpt);
  gpt.vocabulary = 256;
  gpt.context = s->context;
  gpt.layers = s->layers;
  gpt.dim = s->dim;
  gpt.heads = s->heads;
  gpt.dropout = s->dropout;
  check(rrfp_model_create_gpt(&gpt, &model, &error), &error);
  rrfp_trainer_options_init(&options);
  options.stages = s->stages;
  options.lr = s->lr;
  options.seed = s->seed;
  if (s->hint != NULL) check(rrfp_hint_create(s->hint, &hint, &error), &error);
  options.hint = hint;
  check(rrfp_trainer_create(model, &options, &trainer, &error), &error);
  rrfp_hint_destroy(hint);
  rrfp_model_destroy(model);
  return trainer;
}

static rrfp_data *open_data(const struct scenario *s) {
  rrfp_data_options options;
  rrfp_data *data = NULL;
  rrfp_data_options_init(&options);
  options.paths = &s->data;
  options.path_count = 1;
  options.context = s->context;
  check(rrfp_data_open(&options, &data, &error), &error);
  return data;
}

static void save(const struct scenario *s, rrfp_trainer *trainer, uint64_t position) {
  rrfp_save_options options;
  rrfp_save_options_init(&options);
  options.root = s->save;
  options.position = position;
  check(rrfp_trainer_save(trainer, &options, &error), &error);
}

void run_gpt(const struct scenario *s) {
  const size_t tokens = (size_t)s->batch * (size_t)s->context;
  struct samples samples = {allocate(tokens, sizeof(int32_t)), allocate(tokens, sizeof(int32_t)),
                            allocate((size_t)s->microbatches * 2, sizeof(rrfp_tensor))};
  rrfp_data *const data = open_data(s);
  rrfp_trainer *const trainer = make_trainer(s);
  rrfp_batch batch;
  rrfp_train_report report;
  rrfp_trainer_info info;
  char sha256[65];
  uint64_t position = 0;

  if (s->load != NULL) check(rrfp_trainer_load(trainer, s->load, 0, &position, &error), &error);
  rrfp_trainer_info_init(&info);
  rrfp_train_report_init(&report);
  check(rrfp_trainer_get_info(trainer, &info, &error), &error);
  for (int64_t step = info.steps; step < s->steps; ++step) {
    read_batch(s, data, RRFP_SPLIT_TRAIN, position, &samples, &batch);
    check(rrfp_trainer_step(trainer, &batch, &report, &error), &error);
    position += (uint64_t)s->batch;
    printf("loss %d ", (int)report.step);
    print_bits(report.loss);
  }
  read_batch(s, data, RRFP_SPLIT_VALIDATION, 0, &samples, &batch);
  check(rrfp_trainer_evaluate(trainer, &batch, &report, &error), &error);
  printf("validation ");
  print_bits(report.loss);
  check(rrfp_trainer_weights_sha256(trainer, sha256, sizeof sha256, NULL, &error), &error);
  printf("weights %s\n", sha256);
  if (s->save != NULL) save(s, trainer, position);
  rrfp_trainer_destroy(trainer);
  rrfp_data_destroy(data);
  free(samples.tokens);
  free(samples.targets);
  free(samples.inputs);
}
