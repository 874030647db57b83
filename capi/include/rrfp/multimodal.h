/* SPDX-License-Identifier: Apache-2.0
 *
 * rrfp: training on pictures and text. A layer above train.h: a built-in vision-language model, and
 * samples read from a manifest.
 *
 *   manifest -> samples -> read a batch -> step
 *
 * The conventions are those of rrfp.h and train.h. All functions exist since version 0.1.0.
 */
#ifndef RRFP_MULTIMODAL_H
#define RRFP_MULTIMODAL_H

#include <rrfp/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The model --------------------------------------------------------------------------------- */

typedef uint32_t rrfp_vision_flags;
#define RRFP_VISION_FROZEN 1u    /* the encoder is not trained; the projector is */
#define RRFP_VISION_CONV_STEM 2u /* convolutions instead of one linear layer make the patches */

/* A vision transformer (Dosovitskiy et al. 2021), pre-norm, GELU, full attention, learned positions. */
typedef struct rrfp_vision_options {
  uint32_t struct_size;
  rrfp_vision_flags flags;
  int32_t image_size; /* pixels a side; pictures are square and have 3 channels */
  int32_t patch; /* pixels a side; divides image_size. With CONV_STEM a power of two, at least 4 */
  int32_t layers;
  int32_t dim;
  int32_t heads;
  int32_t hidden; /* of the feed-forward layers; 0 = 4 dim */
} rrfp_vision_options;

RRFP_API void rrfp_vision_options_init(rrfp_vision_options *options);

/* A language model that reads pictures: an encoder makes (image_size / patch)^2 rows of each picture, a
 * projector (norm, linear, GELU, linear) turns them into rows of the language model's width, and these
 * take the places of marked tokens (Liu et al. 2023, Visual Instruction Tuning). Several samples may lie
 * in one sequence, side by side. Dropout is that of the language model, in its layers only.
 * Inputs, in this order; all but "images" i32 [B, T]:
 *   tokens      ids below language->vocabulary
 *   targets     the next token, or -100 where there is nothing to predict
 *   segments    the sample of each position, a run of equal numbers; attention stays inside of it
 *   positions   of each position in its sample, 0 .. context - 1
 *   sources     -1, or the row that takes this place: k (image_size / patch)^2 + p for patch p of
 *               picture k of the microbatch
 *   images      f32 [N, image_size, image_size, 3], N >= 0
 * Blocks: "vision.embedding", "vision.layers.<i>", "projector", "embedding", "layers.<i>", "head". The
 * output is the logits [B, T, vocabulary]. */
RRFP_API rrfp_status rrfp_model_create_vision_language(const rrfp_gpt_options *language,
                                                       const rrfp_vision_options *vision,
                                                       rrfp_model **out, rrfp_error *error);

/* ---- Samples ----------------------------------------------------------------------------------- */

/* The samples of a manifest: a file of JSON lines, each an object with
 *   "text"     more than spaces and marks: every picture is marked by "<image>"
 *   "images"   optional: paths of PNG files, relative to the manifest's folder, one for each mark
 * A token of text is a byte; a picture is `image_tokens` tokens; each sample ends with an end token.
 * Pictures are decoded ahead of their use on a thread that this owns. One thread at a time may use it. */
typedef struct rrfp_samples rrfp_samples;

#define RRFP_TOKEN_IMAGE 256 /* where the rows of a picture go */
#define RRFP_TOKEN_END 257
#define RRFP_SAMPLES_VOCABULARY 258
#define RRFP_SAMPLES_INPUTS 6 /* tensors of a microbatch: the inputs of the model above */

/* How samples are grouped into microbatches. A function of the data alone. */
typedef int32_t rrfp_grouping;
#define RRFP_GROUPING_COUNT 0 /* in their order, numbers that differ by at most one */
#define RRFP_GROUPING_COST 1  /* so that microbatches cost alike: longest processing time first */

typedef struct rrfp_samples_options {
  uint32_t struct_size;
  rrfp_grouping grouping;
  const char *path;        /* of the manifest */
  int32_t image_size;      /* pixels a side that pictures are resized to; transparent is white */
  int32_t image_tokens;    /* rows that the model makes of a picture */
  int32_t context;         /* most tokens of a sample */
  int32_t ahead;           /* samples, of 256 MiB, that may be decoded ahead of use; 0 = 64 */
  double validation_share; /* of the samples, spread evenly; _init: 0.1 */
  double image_cost;       /* of a picture in the encoder, in tokens of text; 0 = image_tokens */
  uint64_t seed;           /* of the order of the training samples */
  int64_t pixels_max;      /* of a picture in its file; _init: 2^24 */
} rrfp_samples_options;

RRFP_API void rrfp_samples_options_init(rrfp_samples_options *options);

/* Reads the manifest and the headers of all its pictures.
 * Errors: RRFP_ERR_IO and RRFP_ERR_BAD_DATA name the file and the line: a line that is no JSON object,
 *   empty text, marks and pictures that differ in number, a sample longer than `context`, a picture that
 *   is missing, is no PNG file or has more than `pixels_max` pixels. */
RRFP_API rrfp_status rrfp_samples_open(const rrfp_samples_options *options, rrfp_samples **out,
                                       rrfp_error *error);
RRFP_API void rrfp_samples_destroy(rrfp_samples *samples);

typedef struct rrfp_samples_info {
  uint32_t struct_size;
  int32_t reserved;
  int64_t train_samples;
  int64_t validation_samples;
  int64_t images;     /* of both */
  int64_t images_max; /* of one sample */
  int64_t tokens;     /* of both, those of pictures and ends counted */
} rrfp_samples_info;

RRFP_API void rrfp_samples_info_init(rrfp_samples_info *info);
RRFP_API rrfp_status rrfp_samples_get_info(const rrfp_samples *samples, rrfp_samples_info *out,
                                           rrfp_error *error);

/* Samples position .. position + count - 1, in `microbatches` microbatches (1 .. count) of one packed
 * sequence each. Training samples are an endless run through the manifest, every epoch in another order;
 * validation sample p is that at p mod validation_samples. Both are a function of the position alone.
 *   out_batch   gets microbatches, rounds = 0 and inputs, in memory of `samples`, valid until the next
 *               call; targets are -100 before the rows of pictures and behind the ends of samples
 * Errors: as above, for a picture that cannot be decoded; RRFP_ERR_INVALID_ARGUMENT for the counts, or a
 *   microbatch of 2^31 tokens; RRFP_ERR_BAD_STATE if the split is empty; RRFP_ERR_BUSY.
 * Blocks: until the pictures are decoded. */
RRFP_API rrfp_status rrfp_samples_read(rrfp_samples *samples, rrfp_split split, uint64_t position,
                                       int32_t count, int32_t microbatches, rrfp_batch *out_batch,
                                       rrfp_error *error);
/* The same for samples from anywhere; nothing is decoded ahead. */
RRFP_API rrfp_status rrfp_samples_read_at(rrfp_samples *samples, rrfp_split split,
                                          const uint64_t *positions, int32_t count,
                                          int32_t microbatches, rrfp_batch *out_batch,
                                          rrfp_error *error);

/* Decodes and resizes one PNG file as the samples are: image_size x image_size x 3 numbers, -1 .. 1.
 * Errors: RRFP_ERR_IO, RRFP_ERR_BAD_DATA; pixels_max 0 = 2^24. Threads: any. */
RRFP_API rrfp_status rrfp_picture_read(const char *path, int32_t image_size, int64_t pixels_max,
                                       float *pixels, rrfp_error *error);

/* ---- Captions ---------------------------------------------------------------------------------- */

/* As rrfp_generator_start, for a vision-language model: reads the inputs of one sequence (B = 1, at most
 * the context); `targets` is not looked at and may be empty. rrfp_generator_next then goes on with text,
 * in the last segment. There, a picture cannot be forgotten: rrfp_generator_next fails with
 * RRFP_ERR_BAD_STATE once the context is full. rrfp_generator_start reads text alone.
 *   inputs   RRFP_SAMPLES_INPUTS tensors
 * Errors: those of rrfp_trainer_step for a batch; after them, the generator is as it was. */
RRFP_API rrfp_status rrfp_generator_start_inputs(rrfp_generator *generator,
                                                 const rrfp_tensor *inputs, rrfp_error *error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* RRFP_MULTIMODAL_H */
