/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a small language model on the bytes of a file or folder, over a pipeline of two stages, and
 * lets it write 200 characters.
 *
 *   train_gpt PATH [STEPS]
 *
 * Build: cc main.c $(pkg-config --cflags --libs rrfp)
 */
#include <rrfp/train.h>
#include <stdio.h>
#include <stdlib.h>

enum { kContext = 64, kBatch = 16, kMicrobatches = 8, kSize = kBatch / kMicrobatches };

static rrfp_error error;

/* Ends the program if a call has failed. */
static void check(rrfp_status status) {
  if (status >= 0) return;
  fprintf(stderr, "train_gpt: %s: %s\n", rrfp_status_name(status), error.text);
  exit(1);
}

/* Reads samples `position` .. and cuts them into microbatches of kSize samples. */
static void read_batch(const rrfp_data *data, rrfp_split split, uint64_t position,
                       rrfp_batch *batch) {
  static int32_t tokens[kBatch][kContext], targets[kBatch][kContext];
  static rrfp_tensor inputs[kMicrobatches][2]; /* the inputs of a GPT: tokens, targets */
  check(rrfp_data_read(data, split, position, kBatch, tokens[0], targets[0], &error));
  for (int m = 0; m < kMicrobatches; ++m) {
    const rrfp_tensor tensor = {.dtype = RRFP_I32, .ndim = 2, .shape = {kSize, kContext}};
    inputs[m][0] = inputs[m][1] = tensor;
    inputs[m][0].data = tokens[m * kSize];
    inputs[m][1].data = targets[m * kSize];
  }
  rrfp_batch_init(batch);
  batch->microbatches = kMicrobatches;
  batch->inputs = inputs[0];
}

static void train(rrfp_trainer *trainer, const rrfp_data *data, int steps) {
  rrfp_batch batch;
  rrfp_train_report report;
  rrfp_train_report_init(&report);
  for (int step = 0; step < steps; ++step) {
    read_batch(data, RRFP_SPLIT_TRAIN, (uint64_t)step * kBatch, &batch);
    check(rrfp_trainer_step(trainer, &batch, &report, &error));
    if (step % 10 == 0 || step == steps - 1) printf("step %d: loss %.4f\n", step + 1, report.loss);
  }
  read_batch(data, RRFP_SPLIT_VALIDATION, 0, &batch);
  check(rrfp_trainer_evaluate(trainer, &batch, &report, &error));
  printf("validation loss %.4f\n", report.loss);
}

static void generate(rrfp_trainer *trainer) {
  const int32_t prompt = '\n';
  rrfp_generator *generator = NULL;
  rrfp_sampling sampling;
  rrfp_sampling_init(&sampling);
  sampling.temperature = 0.8;
  sampling.seed = 1;
  check(rrfp_generator_create(trainer, kContext, &generator, &error));
  check(rrfp_generator_start(generator, &prompt, 1, &error));
  for (int i = 0; i < 200; ++i) {
    int32_t token = 0;
    check(rrfp_generator_next(generator, &sampling, &token, &error));
    putchar(token >= 32 && token < 127 ? token : token == '\n' ? '\n' : '?');
  }
  putchar('\n');
  rrfp_generator_destroy(generator);
}

int main(int argc, char **argv) {
  const int steps = argc > 2 ? atoi(argv[2]) : 50;
  if (argc < 2 || argc > 3 || steps < 1) {
    fprintf(stderr, "usage: train_gpt PATH [STEPS]\n");
    return 2;
  }
  const char *const path = argv[1];
  rrfp_data_options data_options;
  rrfp_data_options_init(&data_options);
  data_options.paths = &path;
  data_options.path_count = 1;
  data_options.context = kContext;
  rrfp_data *data = NULL;
  check(rrfp_data_open(&data_options, &data, &error));

  rrfp_gpt_options gpt;
  rrfp_gpt_options_init(&gpt);
  gpt.vocabulary = 256;
  gpt.context = kContext;
  gpt.layers = 2;
  gpt.dim = 64;
  gpt.heads = 4;
  rrfp_model *model = NULL;
  check(rrfp_model_create_gpt(&gpt, &model, &error));

  rrfp_trainer_options options;
  rrfp_trainer_options_init(&options);
  options.stages = 2;
  options.lr = 3e-3;
  options.clip_norm = 1;
  rrfp_trainer *trainer = NULL;
  check(rrfp_trainer_create(model, &options, &trainer, &error));

  train(trainer, data, steps);
  generate(trainer);
  rrfp_trainer_destroy(trainer);
  rrfp_model_destroy(model);
  rrfp_data_destroy(data);
  return 0;
}
