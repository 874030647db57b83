/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

static rrfp_error error;

static int image_tokens(const struct scenario *s) {
  return s->image_size / s->patch * (s->image_size / s->patch);
}

static rrfp_samples *open_samples(const struct scenario *s) {
  rrfp_samples_options options;
  rrfp_samples_info info;
  rrfp_samples *samples = NULL;
  rrfp_samples_options_init(&options);
  options.path = s->data;
  options.grouping = s->grouping;
  options.image_size = s->image_size;
  options.image_tokens = image_tokens(s);
  options.context = s->context;
  check(rrfp_samples_open(&options, &samples, &error), &error);
  rrfp_samples_info_init(&info);
  check(rrfp_samples_get_info(samples, &info, &error), &error);
  printf("samples %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
         info.train_samples, info.validation_samples, info.images, info.images_max, info.tokens);
  return samples;
}

static void show_picture(const struct scenario *s) {
  const size_t count = (size_t)s->image_size * (size_t)s->image_size * 3;
  float *const pixels = allocate(count, sizeof *pixels);
  uint32_t first, last;
  check(rrfp_picture_read(s->picture, s->image_size, 0, pixels, &error), &error);
  memcpy(&first, pixels, sizeof first);
  memcpy(&last, pixels + count - 1, sizeof last);
  printf("picture %08" PRIx32 " %08" PRIx32 "\n", first, last);
  free(pixels);
}

static rrfp_model *make_model(const struct scenario *s) {
  rrfp_gpt_options language;
  rrfp_vision_options vision;
  rrfp_model *model = NULL;
  rrfp_gpt_options_init(&language);
  language.vocabulary = RRFP_SAMPLES_VOCABULARY;
  language.context = s->context;
  language.layers = s->layers;
  language.dim = s->dim;
  language.heads = s->heads;
  language.dropout = s->dropout;
  rrfp_vision_options_init(&vision);
  vision.image_size = s->image_size;
  vision.patch = s->patch;
  vision.layers = s->vision_layers;
  vision.dim = s->vision_dim;
  vision.heads = s->vision_heads;
  check(rrfp_model_create_vision_language(&language, &vision, &model, &error), &error);
  return model;
}

static void print_list(const char *name, const int32_t *numbers, int count) {
  printf("%s", name);
  for (int i = 0; i < count; ++i) printf(" %d", (int)numbers[i]);
  printf("\n");
}

static rrfp_trainer *make_trainer(const struct scenario *s) {
  rrfp_model *const model = make_model(s);
  int32_t *const first_blocks = allocate((size_t)s->stages, sizeof *first_blocks);
  int32_t *const stage_ranks = allocate((size_t)s->stages, sizeof *stage_ranks);
  rrfp_trainer_options options;
  rrfp_hint *hint = NULL;
  rrfp_trainer *trainer = NULL;
  check(rrfp_model_place(model, s->stages, s->ranks, NULL, first_blocks, stage_ranks, &error),
        &error);
  print_list("blocks", first_blocks, s->stages);
  print_list("ranks", stage_ranks, s->stages);
  rrfp_trainer_options_init(&options);
  options.stages = s->stages;
  options.ranks = s->ranks;
  options.first_blocks = first_blocks;
  options.stage_ranks = stage_ranks;
  options.lr = s->lr;
  options.seed = s->seed;
  if (s->hint != NULL) check(rrfp_hint_create(s->hint, &hint, &error), &error);
  options.hint = hint;
  check(rrfp_trainer_create(model, &options, &trainer, &error), &error);
  rrfp_hint_destroy(hint);
  rrfp_model_destroy(model);
  free(first_blocks);
  free(stage_ranks);
  return trainer;
}

static void show_stages(const struct scenario *s, rrfp_trainer *trainer) {
  rrfp_stage_report report;
  rrfp_stage_report_init(&report);
  for (int stage = 0; stage < s->stages; ++stage) {
    check(rrfp_trainer_stage_report(trainer, stage, &report, &error), &error);
    printf("stage %d %d %d %d %d %d\n", stage, (int)report.rank, (int)report.first_block,
           (int)report.last_block, (int)report.branch, (int)report.microbatches);
  }
}

static void caption(const struct scenario *s, rrfp_trainer *trainer, rrfp_samples *samples) {
  const uint64_t position = 0;
  rrfp_generator *generator = NULL;
  rrfp_sampling sampling;
  rrfp_batch batch;
  rrfp_batch_init(&batch);
  check(rrfp_samples_read_at(samples, RRFP_SPLIT_VALIDATION, &position, 1, 1, &batch, &error),
        &error);
  check(rrfp_generator_create(trainer, s->context, &generator, &error), &error);
  check(rrfp_generator_start_inputs(generator, batch.inputs, &error), &error);
  rrfp_sampling_init(&sampling);
  sampling.temperature = 0;
  printf("caption");
  for (int i = 0; i < s->caption; ++i) {
    int32_t token = 0;
    check(rrfp_generator_next(generator, &sampling, &token, &error), &error);
    printf(" %d", (int)token);
  }
  printf("\n");
  rrfp_generator_destroy(generator);
}

void run_vision(const struct scenario *s) {
  rrfp_samples *const samples = open_samples(s);
  show_picture(s);
  rrfp_trainer *const trainer = make_trainer(s);
  rrfp_batch batch;
  rrfp_train_report report;
  double loss;
  char sha256[65];

  rrfp_batch_init(&batch);
  rrfp_train_report_init(&report);
  for (int step = 0; step < s->steps; ++step) {
    check(rrfp_samples_read(samples, RRFP_SPLIT_TRAIN, (uint64_t)(step * s->batch), s->batch,
                            s->microbatches, &batch, &error),
          &error);
    check(rrfp_trainer_step(trainer, &batch, &report, &error), &error);
    printf("loss %d ", (int)report.step);
    print_bits(report.loss);
  }
  show_stages(s, trainer);
  check(rrfp_samples_read(samples, RRFP_SPLIT_VALIDATION, 0, s->batch, s->microbatches, &batch,
                          &error),
        &error);
  check(rrfp_trainer_evaluate(trainer, &batch, &report, &error), &error);
  printf("validation ");
  print_bits(report.loss);
  check(rrfp_trainer_losses(trainer, &loss, 1, &error), &error);
  printf("losses ");
  print_bits(loss);
  check(rrfp_trainer_weights_sha256(trainer, sha256, sizeof sha256, NULL, &error), &error);
  printf("weights %s\n", sha256);
  caption(s, trainer, samples);
  rrfp_trainer_destroy(trainer);
  rrfp_samples_destroy(samples);
}
