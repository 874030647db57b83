/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a small vision-language model to name the bright quarter of random pictures, over a
 * pipeline of four stages on two ranks. Stages follow the branches of the model, so that the
 * encoder has nothing to do for a microbatch without pictures.
 *
 *   vision_language [STEPS]
 *
 * Build: cc main.c $(pkg-config --cflags --libs rrfp)
 */
#include <rrfp/multimodal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSide = 8, kPatch = 4, kRows = 4, kMicrobatches = 4, kStages = 4, kRanks = 2 };
/* A sample is the rows of a picture, or some times a letter, and then the letter and the end. */
enum { kSamples = 4, kLength = kRows + 2, kTokens = kSamples * kLength };
enum { kLetters = 4, kPicture = kLetters, kEnd, kVocabulary };

struct microbatch {
  int32_t tokens[kTokens], targets[kTokens], segments[kTokens], positions[kTokens],
      sources[kTokens];
  float images[kSamples][kSide][kSide][3];
};

static rrfp_error error;

/* Ends the program if a call has failed. */
static void check(rrfp_status status) {
  if (status >= 0) return;
  fprintf(stderr, "vision_language: %s: %s\n", rrfp_status_name(status), error.text);
  exit(1);
}

/* A random number below `most`; the same numbers in every language. */
static int32_t draw(int32_t most) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int32_t)(state >> 33) % most;
}

static void make_picture(int32_t letter, float picture[kSide][kSide][3]) {
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const bool bright = y / kPatch * 2 + x / kPatch == letter;
      for (int c = 0; c < 3; ++c) picture[y][x][c] = (float)(draw(100) - (bright ? 0 : 100)) / 100;
    }
  }
}

static void make_microbatch(bool pictures, struct microbatch *out) {
  int32_t letter = 0; /* of the sample */
  for (int i = 0; i < kTokens; ++i) {
    const int sample = i / kLength, p = i % kLength;
    if (p == 0) {
      letter = draw(kLetters);
      if (pictures) make_picture(letter, out->images[sample]);
    }
    const bool row = pictures && p < kRows;
    out->tokens[i] = row ? kPicture : p < kLength - 1 ? letter : kEnd;
    out->targets[i] = p == kLength - 1 || (row && p < kRows - 1) ? -100
                      : p == kLength - 2                         ? kEnd
                                                                 : letter;
    out->segments[i] = sample;
    out->positions[i] = p;
    out->sources[i] = row ? sample * kRows + p : -1;
  }
}

/* `count` tokens and some pictures as the inputs of the model. */
static void set_inputs(struct microbatch *m, int count, float *images, int pictures,
                       rrfp_tensor *inputs) {
  int32_t *const lists[] = {m->tokens, m->targets, m->segments, m->positions, m->sources};
  for (int i = 0; i < 5; ++i) {
    inputs[i] = (rrfp_tensor){.data = lists[i], .dtype = RRFP_I32, .ndim = 2, .shape = {1, count}};
  }
  inputs[5] = (rrfp_tensor){
      .data = images, .dtype = RRFP_F32, .ndim = 4, .shape = {pictures, kSide, kSide, 3}};
}

static rrfp_model *make_model(void) {
  rrfp_gpt_options language;
  rrfp_vision_options vision;
  rrfp_model *model = NULL;
  rrfp_gpt_options_init(&language);
  language.vocabulary = kVocabulary;
  language.context = kLength;
  language.layers = 2;
  language.dim = 16;
  language.heads = 2;
  rrfp_vision_options_init(&vision);
  vision.image_size = kSide;
  vision.patch = kPatch;
  vision.layers = 1;
  vision.dim = 16;
  vision.heads = 2;
  check(rrfp_model_create_vision_language(&language, &vision, &model, &error));
  return model;
}

static void train(rrfp_trainer *trainer, int steps) {
  static struct microbatch data[kMicrobatches];
  static rrfp_tensor inputs[kMicrobatches][RRFP_SAMPLES_INPUTS];
  rrfp_batch batch;
  rrfp_train_report report;
  rrfp_batch_init(&batch);
  rrfp_train_report_init(&report);
  batch.microbatches = kMicrobatches;
  batch.inputs = inputs[0];
  for (int step = 1; step <= steps; ++step) {
    for (int m = 0; m < kMicrobatches; ++m) {
      const bool pictures = m < kMicrobatches - 1; /* the last one is text */
      make_microbatch(pictures, &data[m]);
      set_inputs(&data[m], kTokens, data[m].images[0][0][0], pictures ? kSamples : 0, inputs[m]);
    }
    check(rrfp_trainer_step(trainer, &batch, &report, &error));
    if (step % 20 == 1 || step == steps) printf("step %d: loss %.4f\n", step, report.loss);
  }
}

static void show_stages(rrfp_trainer *trainer) {
  rrfp_stage_report stage;
  rrfp_stage_report_init(&stage);
  for (int s = 0; s < kStages; ++s) {
    check(rrfp_trainer_stage_report(trainer, s, &stage, &error));
    printf("stage %d on rank %d: blocks %d to %d of branch %d, %d microbatches\n", s, stage.rank,
           stage.first_block, stage.last_block, stage.branch, stage.microbatches);
  }
}

/* What the model says of new pictures. */
static void name_pictures(rrfp_trainer *trainer) {
  static struct microbatch data;
  rrfp_tensor inputs[RRFP_SAMPLES_INPUTS];
  rrfp_generator *generator = NULL;
  rrfp_sampling sampling;
  rrfp_sampling_init(&sampling);
  sampling.temperature = 0;
  check(rrfp_generator_create(trainer, kLength, &generator, &error));
  make_microbatch(true, &data);
  for (int k = 0; k < kSamples; ++k) {
    int32_t token = 0;
    /* All samples begin alike: the rows of picture 0. */
    set_inputs(&data, kRows, data.images[k][0][0], 1, inputs);
    check(rrfp_generator_start_inputs(generator, inputs, &error));
    check(rrfp_generator_next(generator, &sampling, &token, &error));
    printf("picture of %c: %c\n", 'a' + data.tokens[k * kLength + kRows], 'a' + token);
  }
  rrfp_generator_destroy(generator);
}

int main(int argc, char **argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 100;
  if (argc > 2 || steps < 1) {
    fprintf(stderr, "usage: vision_language [STEPS]\n");
    return 2;
  }
  int32_t first_blocks[kStages], stage_ranks[kStages];
  rrfp_model *const model = make_model();
  check(rrfp_model_place(model, kStages, kRanks, NULL, first_blocks, stage_ranks, &error));

  rrfp_trainer_options options;
  rrfp_trainer_options_init(&options);
  options.stages = kStages;
  options.ranks = kRanks;
  options.first_blocks = first_blocks;
  options.stage_ranks = stage_ranks;
  options.lr = 1e-2;
  rrfp_trainer *trainer = NULL;
  check(rrfp_trainer_create(model, &options, &trainer, &error));
  rrfp_model_destroy(model);

  train(trainer, steps);
  show_stages(trainer);
  name_pictures(trainer);
  rrfp_trainer_destroy(trainer);
  return 0;
}
