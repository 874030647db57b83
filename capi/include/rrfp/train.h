/* SPDX-License-Identifier: Apache-2.0
 *
 * rrfp: models and training. A layer above rrfp.h for those who do not bring their own stage code:
 * a model is a graph of operations, cut into the stages of a pipeline; a trainer owns the weights,
 * one thread per rank, the optimizer and the checkpoints.
 *
 *   model -> trainer -> { read a batch, step } -> save
 *
 * The conventions are those of rrfp.h. What differs, and what to know:
 *   Threads     A trainer starts one thread per rank, which it owns. No function calls back into the
 *               program, except the log.
 *   Results     Losses, gradients and weights are the same to the bit for every number of stages,
 *               placement, hint, order, cap and recompute flag, unless RRFP_TRAINER_NONDETERMINISTIC.
 *               They depend on the processor, the library's version, the weights, the seed, the
 *               batches and how these are cut into microbatches.
 *   OpenBLAS    computes the products. Making a trainer or measuring a model sets it to one thread for
 *               the whole process, since each rank is a thread; leave it so while a trainer is in use.
 *   Since       All functions exist since version 0.1.0.
 */
#ifndef RRFP_TRAIN_H
#define RRFP_TRAIN_H

#include <rrfp/rrfp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Models ------------------------------------------------------------------------------------ */

/* Inputs, parameters and operations, grouped in blocks. Values (inputs, and the outputs of operations)
 * have one numbering, parameters and blocks have their own; all count from 0 in the order of adding.
 * A model never forgets anything; a trainer copies what it needs. */
typedef struct rrfp_model rrfp_model;

RRFP_API rrfp_status rrfp_model_create(rrfp_model **out, rrfp_error *error);
RRFP_API void rrfp_model_destroy(rrfp_model *model);

typedef uint32_t rrfp_block_flags;
#define RRFP_BLOCK_RECOMPUTE 1u /* keep only what enters it; compute the rest again for backward */

/* Begins the next block; operations belong to the block that was begun last. Stages are runs of whole
 * blocks. `name` (null = "block<i>") is for reports. `out_block` may be null. */
RRFP_API rrfp_status rrfp_model_begin_block(rrfp_model *model, const char *name,
                                            rrfp_block_flags flags, int32_t *out_block,
                                            rrfp_error *error);

/* Adds an input, which every microbatch gives anew.
 *   dtype   RRFP_F32 or RRFP_I32
 *   shape   `ndim` extents (1 .. RRFP_DIMS_MAX); -1 where microbatches may differ
 * An extent may be 0: a microbatch without pictures has [0, ..] of them. A stage takes no part in a
 * microbatch for which all its values, and all that enter it from other stages, are empty. */
RRFP_API rrfp_status rrfp_model_add_input(rrfp_model *model, const char *name, rrfp_dtype dtype,
                                          int32_t ndim, const int64_t *shape, int32_t *out_value,
                                          rrfp_error *error);

typedef int32_t rrfp_init;
#define RRFP_INIT_CONSTANT 0 /* every element is `init_value` */
#define RRFP_INIT_NORMAL 1   /* normal around init_value with standard deviation init_scale */
#define RRFP_INIT_UNIFORM 2  /* uniform in init_value - init_scale .. init_value + init_scale */

typedef uint32_t rrfp_parameter_flags;
#define RRFP_PARAMETER_FROZEN 1u   /* is not trained */
#define RRFP_PARAMETER_NO_DECAY 2u /* no weight decay */

typedef struct rrfp_parameter_options {
  uint32_t struct_size;
  rrfp_parameter_flags flags;
  const char *name; /* unique in the model; the name in checkpoints */
  const int64_t *shape;
  int32_t ndim; /* 1 .. RRFP_DIMS_MAX */
  rrfp_init init;
  double init_value;
  double init_scale;
} rrfp_parameter_options;

RRFP_API void rrfp_parameter_options_init(rrfp_parameter_options *options);

/* Adds an f32 parameter. Random numbers are a function of the trainer's seed and the name. Operations
 * in several stages may use one parameter: their gradients are added up. */
RRFP_API rrfp_status rrfp_model_add_parameter(rrfp_model *model,
                                              const rrfp_parameter_options *options,
                                              int32_t *out_parameter, rrfp_error *error);

/* Operations. "rows" are all axes but the last; d is the last extent. */
typedef int32_t rrfp_op;
#define RRFP_OP_LINEAR 1    /* x [.., in] -> [.., out]. Parameters W [out, in], b [out] or none */
#define RRFP_OP_EMBEDDING 2 /* i32 ids [..] -> [.., d]. Parameter [vocabulary, d] */
#define RRFP_OP_POSITIONS 3 /* x [.., T, d] + table[0 .. T-1]. Parameter [at least T, d] */
#define RRFP_OP_ROTARY \
  4                          /* x [.., T, d]: turns the first `heads` heads of `head_dim`; `base`.
                                Perhaps i32 positions [.., T]; else 0 .. T-1 */
#define RRFP_OP_LAYER_NORM 5 /* parameters gamma [d], beta [d] or none; `epsilon` */
#define RRFP_OP_RMS_NORM 6   /* parameter gamma [d]; `epsilon` */
#define RRFP_OP_GELU 7       /* the tanh form */
#define RRFP_OP_SILU 8       /* x sigmoid(x) */
#define RRFP_OP_SWIGLU 9     /* gate, up -> silu(gate) up */
#define RRFP_OP_ATTENTION 10 /* see below */
#define RRFP_OP_DROPOUT 11   /* `probability` that an element becomes 0; training steps only */
#define RRFP_OP_ADD 12       /* a + b, same shapes */
#define RRFP_OP_MUL 13       /* a b, same shapes */
#define RRFP_OP_CONCAT 14    /* 1 or more inputs along `axis` */
#define RRFP_OP_RESHAPE 15   /* to `shape`: 0 = the extent at that place, one -1 = what is left */
#define RRFP_OP_MEAN 16      /* over `axis`, which goes away */
#define RRFP_OP_CROSS_ENTROPY \
  17 /* logits [.., classes], i32 targets [..] -> [..]; `ignore_index` */
#define RRFP_OP_SQUARED_ERROR 18 /* a, b -> (a - b)^2, same shapes */
#define RRFP_OP_PATCHES 19       /* see below */
#define RRFP_OP_MERGE_ROWS 20    /* see below */
/* RRFP_OP_ATTENTION: inputs q [B, T, heads * head_dim], k and v [B, S, kv_heads * head_dim], or all
 * three side by side in one input [B, T, (heads + 2 kv_heads) * head_dim]. Gives [B, T, heads *
 * head_dim]: softmax(q k^T / sqrt(head_dim)) v for each head, where query head h reads key and value
 * head h / (heads / kv_heads); with RRFP_OP_CAUSAL position t sees 0 .. t only (S = T). One more input,
 * i32 segments [B, T], packs several samples into a sequence (S = T): a position sees those of its own
 * segment only, which is a run of equal numbers.
 * RRFP_OP_PATCHES: pictures [N, H, W, C] -> [N, H', W', kernel * kernel * C]: the squares of `kernel`
 * pixels a side, `stride` apart, with `padding` pixels of 0 around the picture; H' = (H + 2 padding -
 * kernel) / stride + 1. A linear layer behind it makes it a convolution.
 * RRFP_OP_MERGE_ROWS: x [.., d], rows [.., d], i32 sources of x's rows -> the shape of x: row r is row
 * sources[r] of `rows`, or that of x where sources[r] is -1. */
#define RRFP_OP_INPUTS_MAX 16

typedef uint32_t rrfp_op_flags;
#define RRFP_OP_CAUSAL 1u

typedef struct rrfp_operation {
  uint32_t struct_size;
  rrfp_op op;
  const int32_t *inputs; /* values */
  const int32_t *parameters;
  int32_t input_count;
  int32_t parameter_count;
  rrfp_op_flags flags;
  int32_t axis; /* negative = from the end */
  int32_t heads;
  int32_t kv_heads;     /* 0 = heads */
  int32_t head_dim;     /* rotary; attention finds it out */
  int32_t ignore_index; /* _init: -100 */
  double probability;
  double epsilon;       /* _init: 1e-5 */
  double base;          /* _init: 10000 */
  const int64_t *shape; /* reshape */
  int32_t ndim;
  int32_t kernel; /* patches */
  int32_t stride;
  int32_t padding;
} rrfp_operation;

RRFP_API void rrfp_operation_init(rrfp_operation *operation);

/* Adds an operation to the current block and gives the value that it makes. Shapes are checked here as
 * far as they are known, and for each microbatch otherwise. */
RRFP_API rrfp_status rrfp_model_add_operation(rrfp_model *model, const rrfp_operation *operation,
                                              int32_t *out_value, rrfp_error *error);

/* The f32 value whose elements are the losses; the loss of a microbatch is their sum. Its weight in the
 * mean over a batch is the number of its elements, for a cross-entropy those not ignored (whose targets
 * must be an input of the model). */
RRFP_API rrfp_status rrfp_model_set_loss(rrfp_model *model, int32_t value, rrfp_error *error);
/* One more loss, such as that of a second head, up to 64; the first is that of rrfp_model_set_loss, which
 * cannot be changed then. Each is reduced by itself, multiplied by `factor` (finite), and added up; one
 * that counts nothing in a batch adds 0. No operation may read a loss. */
RRFP_API rrfp_status rrfp_model_add_loss(rrfp_model *model, int32_t value, double factor,
                                         rrfp_error *error);
/* The value that predictions are read from, such as logits [B, T, vocabulary]. */
RRFP_API rrfp_status rrfp_model_set_output(rrfp_model *model, int32_t value, rrfp_error *error);

typedef uint32_t rrfp_gpt_flags;
#define RRFP_GPT_TIED 1u     /* the embedding is also the output layer */
#define RRFP_GPT_ROTARY 2u   /* rotary instead of learned positions */
#define RRFP_GPT_RMS_NORM 4u /* instead of layer norm */
#define RRFP_GPT_SWIGLU 8u   /* instead of GELU */

typedef struct rrfp_gpt_options {
  uint32_t struct_size;
  rrfp_gpt_flags flags;
  int32_t vocabulary;
  int32_t context; /* longest sequence */
  int32_t layers;
  int32_t dim;
  int32_t heads;
  int32_t kv_heads; /* 0 = heads */
  int32_t hidden;   /* of the feed-forward layers; 0 = 4 dim, with SWIGLU 8/3 dim rounded up to 8 */
  int32_t reserved; /* 0 */
  double dropout;
} rrfp_gpt_options;

RRFP_API void rrfp_gpt_options_init(rrfp_gpt_options *options);

/* A decoder-only language model (Radford et al. 2019): inputs "tokens" and "targets", both i32 [B, T];
 * blocks: embedding, one per layer, head. Weights of layer i are named "layers.i...". */
RRFP_API rrfp_status rrfp_model_create_gpt(const rrfp_gpt_options *options, rrfp_model **out,
                                           rrfp_error *error);
/* The model that a checkpoint was made from, if that was made by rrfp_model_create_gpt or
 * rrfp_model_create_vision_language. */
RRFP_API rrfp_status rrfp_model_create_from_checkpoint(const char *path, rrfp_model **out,
                                                       rrfp_error *error);

typedef struct rrfp_model_info {
  uint32_t struct_size;
  int32_t inputs;
  int32_t values;
  int32_t parameters;
  int32_t blocks;
  int32_t losses;
  int64_t parameter_elements;
  int64_t trainable_elements;
} rrfp_model_info;

RRFP_API void rrfp_model_info_init(rrfp_model_info *info);
RRFP_API rrfp_status rrfp_model_get_info(const rrfp_model *model, rrfp_model_info *out,
                                         rrfp_error *error);
/* The shape of a value, -1 where extents vary. `shape` has room for RRFP_DIMS_MAX. */
RRFP_API rrfp_status rrfp_model_value_shape(const rrfp_model *model, int32_t value,
                                            int32_t *out_ndim, int64_t *shape, rrfp_error *error);
/* The name of a parameter. Text out: see rrfp_hint_to_text. */
RRFP_API rrfp_status rrfp_model_parameter_name(const rrfp_model *model, int32_t parameter,
                                               char *buffer, size_t capacity, size_t *out_size,
                                               rrfp_error *error);
RRFP_API rrfp_status rrfp_model_parameter_shape(const rrfp_model *model, int32_t parameter,
                                                int32_t *out_ndim, int64_t *shape,
                                                rrfp_error *error);
/* The model and its options as a JSON object, for people and logs. */
RRFP_API rrfp_status rrfp_model_describe(const rrfp_model *model, char *buffer, size_t capacity,
                                         size_t *out_size, rrfp_error *error);

/* Measures the blocks: forward and backward of each, in nanoseconds, the median of a few runs on the
 * calling thread.
 *   inputs     one tensor for each input of the model, as in rrfp_batch
 *   block_ns   gets one number per block */
RRFP_API rrfp_status rrfp_model_measure(const rrfp_model *model, const rrfp_tensor *inputs,
                                        int64_t *block_ns, rrfp_error *error);
/* Cuts the blocks into `stages` runs so that the most expensive run is as cheap as possible.
 *   block_costs    one per block, >= 0, in any unit; null = estimated from the products
 *   first_blocks   gets the first block of each stage; first_blocks[0] is 0
 * Errors: RRFP_ERR_OUT_OF_RANGE if there are fewer blocks than stages, RRFP_ERR_INVALID_ARGUMENT for
 * costs below 0 or whose sum does not fit an int64_t. */
RRFP_API rrfp_status rrfp_model_partition(const rrfp_model *model, int32_t stages,
                                          const int64_t *block_costs, int32_t *first_blocks,
                                          rrfp_error *error);
/* The same for a model with branches, such as encoders and a text embedding that feed one language model:
 * no stage has blocks of two branches, and stages go to ranks by longest processing time first (Graham
 * 1969): the busiest rank has at most 4/3 of the least that it could have. A branch is a run of blocks of
 * which each reads the one before it; a block at which branches meet for the first time begins a new one.
 *   stage_ranks   gets the rank of each stage; every rank has 1 or more
 * Errors: as above; RRFP_ERR_OUT_OF_RANGE unless branches <= stages <= blocks and 1 <= ranks <= stages. */
RRFP_API rrfp_status rrfp_model_place(const rrfp_model *model, int32_t stages, int32_t ranks,
                                      const int64_t *block_costs, int32_t *first_blocks,
                                      int32_t *stage_ranks, rrfp_error *error);

/* ---- Trainers ---------------------------------------------------------------------------------- */

/* Weights, optimizer and rank threads. One thread at a time may use it, except where it says any. */
typedef struct rrfp_trainer rrfp_trainer;

typedef int32_t rrfp_optimizer;
#define RRFP_OPTIMIZER_ADAMW 0
#define RRFP_OPTIMIZER_SGD 1

typedef int32_t rrfp_decay;
#define RRFP_DECAY_NONE 0   /* lr stays */
#define RRFP_DECAY_COSINE 1 /* to lr_min at decay_steps, along half a cosine */
#define RRFP_DECAY_LINEAR 2 /* to lr_min at decay_steps, along a line */

typedef int32_t rrfp_reduction;
#define RRFP_REDUCTION_MEAN 0 /* of each loss: its sum over the batch / the sum of its weights */
#define RRFP_REDUCTION_SUM 1

/* When a loss or the norm of the gradients is infinite or not a number; all ranks agree. */
typedef int32_t rrfp_non_finite;
#define RRFP_NON_FINITE_STOP 0 /* the step fails with RRFP_ERR_NON_FINITE, weights as before it */
#define RRFP_NON_FINITE_SKIP 1 /* weights and optimizer stay as they were, the step counts */

typedef uint32_t rrfp_trainer_flags;
#define RRFP_TRAINER_NONDETERMINISTIC 1u /* weight gradients add up as they become ready */
#define RRFP_TRAINER_RECOMPUTE 2u        /* as if every block had RRFP_BLOCK_RECOMPUTE */
/* Hint, order and holding follow what the last steps took, replayed in a simulator while the next step
 * runs; `hint`, `order` and hold_permille must be 0. Results are the same. */
#define RRFP_TRAINER_AUTO 4u

typedef struct rrfp_trainer_options {
  uint32_t struct_size;
  rrfp_trainer_flags flags;
  /* The pipeline. */
  int32_t stages; /* 0 = 1 */
  /* 0 = as stage_ranks say; without them stages, for RRFP_PLACEMENT_V and LOOP half, rounded up */
  int32_t ranks;
  rrfp_placement placement;
  rrfp_order order;
  rrfp_wake wake;
  int32_t hold_permille;       /* as in rrfp_pipeline_options */
  const int32_t *first_blocks; /* by stage, as rrfp_model_partition gives them; null = estimated */
  const rrfp_hint *hint;       /* null = zb-h1 */
  int64_t cap_slots;           /* as in rrfp_pipeline_options */
  int64_t cap_bytes;
  int64_t watchdog_ms;
  /* The optimizer. */
  rrfp_optimizer optimizer;
  rrfp_decay decay;
  double lr;            /* _init: 1e-3 */
  double lr_min;        /* _init: 0 */
  int64_t warmup_steps; /* lr grows linearly from lr / warmup_steps */
  int64_t decay_steps;  /* the step, warm-up included, at which lr_min is reached; it stays there */
  double beta1;         /* _init: 0.9 */
  double beta2;         /* _init: 0.95 */
  double epsilon;       /* _init: 1e-8 */
  double weight_decay;  /* _init: 0.1 for AdamW; set it to 0 for plain SGD */
  double momentum;      /* SGD; _init: 0 */
  double clip_norm;     /* gradients are scaled down to this global norm; 0 = not */
  rrfp_reduction reduction;
  rrfp_non_finite non_finite;
  /* The loss is multiplied by this (a power of two, 2^-64 to 2^64) before backward, and gradients divided by it; a
   * step that is skipped halves it, loss_scale_growth good steps double it. 0 = off. */
  double loss_scale;
  int64_t loss_scale_growth; /* 0 = never grows */
  uint64_t seed;
  int32_t trace_steps;      /* keeps the timeline of the last so many steps */
  rrfp_injection injection; /* of the microbatches of each round */
  /* For tests: every task, and with it the messages it sends, is held up for a random time of up to so
   * many microseconds (at most a million). */
  int64_t delay_us_max;
  rrfp_log_fn log; /* or null */
  void *log_user_data;
  const int32_t
      *stage_ranks; /* the rank of each stage; null = as `placement` says, else that must be 0 */
} rrfp_trainer_options;

RRFP_API void rrfp_trainer_options_init(rrfp_trainer_options *options);

/* Makes a trainer with fresh weights. `options` may be null; nothing of it or of the model is kept,
 * but the log. */
RRFP_API rrfp_status rrfp_trainer_create(const rrfp_model *model,
                                         const rrfp_trainer_options *options, rrfp_trainer **out,
                                         rrfp_error *error);
/* No other thread may be inside a call on it; end a step that one is in with rrfp_trainer_cancel first.
 * Blocks: until the rank threads have ended. */
RRFP_API void rrfp_trainer_destroy(rrfp_trainer *trainer);

typedef uint32_t rrfp_batch_flags;
#define RRFP_BATCH_KEEP_GRADIENTS 1u /* compute gradients, change nothing; see rrfp_trainer_read */

/* The data of a step. All memory is the caller's and must stay as it is during the call. */
typedef struct rrfp_batch {
  uint32_t struct_size;
  rrfp_batch_flags flags;
  int32_t microbatches; /* in total */
  int32_t rounds;       /* gradients add up over so many pipeline runs of equal length; 0 = 1 */
  /* microbatches x inputs of the model, one row per microbatch, inputs in the order of adding.
   * Contiguous CPU tensors; `buffer` must be null. */
  const rrfp_tensor *inputs;
  /* Null, or a factor for the loss of each microbatch. Weights of the mean are not multiplied. */
  const double *loss_factors;
  /* Names the random numbers of the step (dropout), up to 2^32 - 1. 0 = the trainer's count of steps,
   * which only updates move on: who updates weights by other means gives 1, 2, 3 .. here. */
  int64_t random_step;
} rrfp_batch;

RRFP_API void rrfp_batch_init(rrfp_batch *batch);

typedef uint32_t rrfp_train_flags;
#define RRFP_TRAIN_SKIPPED 1u /* not finite, and the policy is to skip */

typedef struct rrfp_train_report {
  uint32_t struct_size;
  rrfp_train_flags flags;
  int64_t step;    /* steps done, this one included */
  double loss;     /* reduced as the options say; of all losses */
  double loss_sum; /* of the first loss, over the batch */
  double
      loss_weight; /* of the first loss: sum of weights, for a language model tokens that count */
  double gradient_norm; /* global, before clipping, without the loss scale; training only */
  double lr;            /* of this step; training only */
  double loss_scale;    /* of this step */
  int64_t wall_ns;
  /* Sums over ranks and rounds, as in rrfp_step_report. */
  int64_t total_ns;
  int64_t busy_ns;
  int64_t wait_input_ns;
  int64_t wait_memory_ns;
  int64_t wait_credit_ns;
  int64_t wait_policy_ns;
  int64_t other_ns;
  int64_t state_bytes;       /* weights, gradients, optimizer */
  int64_t tensor_bytes_peak; /* activations, messages and scratch of all ranks, each at its peak */
} rrfp_train_report;

RRFP_API void rrfp_train_report_init(rrfp_train_report *report);

/* One training step: forward and backward of every microbatch, clipping, the optimizer.
 * After an error the weights are those before the step and the trainer can go on.
 * Errors: RRFP_ERR_TENSOR_MISMATCH (shapes), RRFP_ERR_OUT_OF_RANGE (a token id: names microbatch and
 *   position), RRFP_ERR_NON_FINITE, RRFP_ERR_CANCELLED, and those of the engine.
 * Blocks: until the step is done. */
RRFP_API rrfp_status rrfp_trainer_step(rrfp_trainer *trainer, const rrfp_batch *batch,
                                       rrfp_train_report *out, rrfp_error *error);
/* The loss of a batch, without dropout. Leaves weights, gradients, optimizer and random numbers alone;
 * batches of any size. `flags` and `rounds` of the batch must be 0. Blocks: until done. */
RRFP_API rrfp_status rrfp_trainer_evaluate(rrfp_trainer *trainer, const rrfp_batch *batch,
                                           rrfp_train_report *out, rrfp_error *error);
/* Ends the running or the next step with RRFP_ERR_CANCELLED. Threads: any. */
RRFP_API rrfp_status rrfp_trainer_cancel(rrfp_trainer *trainer, rrfp_error *error);

typedef struct rrfp_trainer_info {
  uint32_t struct_size;
  int32_t stages;
  int32_t ranks;
  int32_t parameters;
  int64_t steps;   /* done; a loaded checkpoint counts */
  int64_t updates; /* of these, those that changed the weights */
  uint64_t seed;
} rrfp_trainer_info;

RRFP_API void rrfp_trainer_info_init(rrfp_trainer_info *info);
RRFP_API rrfp_status rrfp_trainer_get_info(rrfp_trainer *trainer, rrfp_trainer_info *out,
                                           rrfp_error *error);
/* What a rank did in the last round of the last step or evaluation. */
RRFP_API rrfp_status rrfp_trainer_rank_report(rrfp_trainer *trainer, int32_t rank,
                                              rrfp_step_report *out, rrfp_error *error);
typedef struct rrfp_stage_report {
  uint32_t struct_size;
  int32_t rank;
  int32_t first_block;
  int32_t last_block;
  int32_t branch;       /* of the first block, from 0; see rrfp_model_place */
  int32_t microbatches; /* that took part in the last step or evaluation */
  int64_t busy_ns;      /* of its tasks, those of all rounds */
} rrfp_stage_report;

RRFP_API void rrfp_stage_report_init(rrfp_stage_report *report);
/* What a stage is, and what it did in the last step or evaluation. */
RRFP_API rrfp_status rrfp_trainer_stage_report(rrfp_trainer *trainer, int32_t stage,
                                               rrfp_stage_report *out, rrfp_error *error);
/* The first block of each stage; `first_blocks` has room for the stages. */
RRFP_API rrfp_status rrfp_trainer_first_blocks(rrfp_trainer *trainer, int32_t *first_blocks,
                                               rrfp_error *error);

/* The losses of the last step or evaluation, reduced, without the factors of rrfp_model_add_loss; NaN for
 * one that counted nothing. `count` must be their number. RRFP_ERR_BAD_STATE before the first step. */
RRFP_API rrfp_status rrfp_trainer_losses(rrfp_trainer *trainer, double *losses, size_t count,
                                         rrfp_error *error);

typedef int32_t rrfp_slot;
#define RRFP_SLOT_WEIGHT 0
#define RRFP_SLOT_GRADIENT 1 /* of the last step with RRFP_BATCH_KEEP_GRADIENTS; else zero */
#define RRFP_SLOT_MOMENT1 2  /* AdamW; SGD: the velocity */
#define RRFP_SLOT_MOMENT2 3  /* AdamW */

/* Copies one of the arrays that belong to a parameter out of the trainer, or into it. A gradient that
 * is written is there to be read; the next step starts from zero.
 *   count   must be the number of elements of the parameter */
RRFP_API rrfp_status rrfp_trainer_read(rrfp_trainer *trainer, int32_t parameter, rrfp_slot slot,
                                       float *data, size_t count, rrfp_error *error);
RRFP_API rrfp_status rrfp_trainer_write(rrfp_trainer *trainer, int32_t parameter, rrfp_slot slot,
                                        const float *data, size_t count, rrfp_error *error);
/* SHA-256 over all weights in the order of the parameters, as 64 hexadecimal digits and a zero. */
RRFP_API rrfp_status rrfp_trainer_weights_sha256(rrfp_trainer *trainer, char *buffer,
                                                 size_t capacity, size_t *out_size,
                                                 rrfp_error *error);

/* The hint that steps run with; with RRFP_TRAINER_AUTO also why, in one line. Text out: see
 * rrfp_hint_to_text. */
RRFP_API rrfp_status rrfp_trainer_describe_hint(rrfp_trainer *trainer, char *buffer,
                                                size_t capacity, size_t *out_size,
                                                rrfp_error *error);

/* Writes the timeline of the last training steps (trace_steps) as a trace event file, which Perfetto and
 * chrome://tracing open. The file appears under its name once it is complete. */
RRFP_API rrfp_status rrfp_trainer_write_trace(rrfp_trainer *trainer, const char *path,
                                              rrfp_error *error);

/* ---- Checkpoints ------------------------------------------------------------------------------- */

typedef struct rrfp_save_options {
  uint32_t struct_size;
  int32_t keep;          /* newest checkpoints that stay; 0 = all */
  const char *root;      /* folder of checkpoints; made if missing */
  uint64_t position;     /* samples used so far, given back by rrfp_trainer_load */
  const char *user_json; /* null, or a JSON object that is kept with it */
} rrfp_save_options;

RRFP_API void rrfp_save_options_init(rrfp_save_options *options);

/* Writes root/step-<step>: model.safetensors, optimizer.safetensors, state.json. Complete or not there
 * at all, whatever happens to the process or the disk. A checkpoint of the same step is replaced; of the
 * others below `root` the newest `keep`, by their steps, and this one stay.
 * Errors: RRFP_ERR_IO names the file and the reason. */
RRFP_API rrfp_status rrfp_trainer_save(rrfp_trainer *trainer, const rrfp_save_options *options,
                                       rrfp_error *error);

typedef uint32_t rrfp_load_flags;
#define RRFP_LOAD_WEIGHTS_ONLY 1u /* not the optimizer, the step and the random numbers */

/* Continues from a checkpoint, or from the newest one in a folder of them. Stages, placement and hint
 * need not be those of the run that wrote it. On an error the trainer is unchanged.
 *   out_position   gets the samples used; may be null
 * Errors: RRFP_ERR_IO, RRFP_ERR_BAD_DATA (names the file, and the tensor). */
RRFP_API rrfp_status rrfp_trainer_load(rrfp_trainer *trainer, const char *path,
                                       rrfp_load_flags flags, uint64_t *out_position,
                                       rrfp_error *error);
/* The state.json of a checkpoint, or of the newest one in a folder of them: a JSON object with, among
 * others, "step", "position", "seed", "optimizer", "model" (for a GPT an object with the fields of
 * rrfp_gpt_options by name, flags as booleans; for a vision-language model with such an object for
 * "language" and one for "vision") and "user" (user_json). Text out: see
 * rrfp_hint_to_text. */
RRFP_API rrfp_status rrfp_checkpoint_describe(const char *path, char *buffer, size_t capacity,
                                              size_t *out_size, rrfp_error *error);

/* ---- Data -------------------------------------------------------------------------------------- */

/* A stream of tokens from files, cut into windows. It never changes. */
typedef struct rrfp_data rrfp_data;

typedef int32_t rrfp_data_format;
#define RRFP_DATA_BYTES 0 /* any file; a token is a byte, the vocabulary 256 */
#define RRFP_DATA_U16 1   /* little-endian token ids without a header */
#define RRFP_DATA_U32 2

typedef int32_t rrfp_split;
#define RRFP_SPLIT_TRAIN 0
#define RRFP_SPLIT_VALIDATION 1

typedef struct rrfp_data_options {
  uint32_t struct_size;
  rrfp_data_format format;
  const char *const *paths; /* files, and folders with all that is below them */
  int32_t path_count;
  int32_t vocabulary;      /* u16 and u32 only */
  int32_t context;         /* tokens of a sample */
  int32_t reserved;        /* 0 */
  double validation_share; /* of the windows, spread evenly; _init: 0.1 */
  uint64_t seed;           /* of the order of the training windows */
} rrfp_data_options;

RRFP_API void rrfp_data_options_init(rrfp_data_options *options);

/* Errors: RRFP_ERR_IO and RRFP_ERR_BAD_DATA name the file, and the position of a token that is outside
 * of the vocabulary. */
RRFP_API rrfp_status rrfp_data_open(const rrfp_data_options *options, rrfp_data **out,
                                    rrfp_error *error);
RRFP_API void rrfp_data_destroy(rrfp_data *data);

typedef struct rrfp_data_info {
  uint32_t struct_size;
  int32_t vocabulary;
  int64_t tokens;
  int64_t train_windows;
  int64_t validation_windows;
  double unigram_entropy; /* nats per token, over the whole stream */
} rrfp_data_info;

RRFP_API void rrfp_data_info_init(rrfp_data_info *info);
RRFP_API rrfp_status rrfp_data_get_info(const rrfp_data *data, rrfp_data_info *out,
                                        rrfp_error *error);
/* Samples position .. position + samples - 1, `context` numbers each. Training samples are an endless
 * run through the windows, every epoch in another order; it is a function of the position alone.
 *   tokens, targets   samples x context; targets are the tokens that follow. Threads: any. */
RRFP_API rrfp_status rrfp_data_read(const rrfp_data *data, rrfp_split split, uint64_t position,
                                    int32_t samples, int32_t *tokens, int32_t *targets,
                                    rrfp_error *error);

/* ---- Generating -------------------------------------------------------------------------------- */

/* Continues a sequence with a trainer's weights, keeping keys and values of what it has seen. For models
 * with one i32 input [B, T] on the way to their output [B, T, vocabulary], and for those that read the
 * inputs of rrfp_model_create_vision_language as that model does. */
typedef struct rrfp_generator rrfp_generator;

typedef struct rrfp_sampling {
  uint32_t struct_size;
  int32_t top_k;      /* only the k most likely tokens; 0 = all */
  double temperature; /* _init: 1; 0 = always the most likely token */
  double top_p;  /* only the most likely tokens that together have this probability; _init: 1 */
  uint64_t seed; /* a draw is a function of this and of how many came before it since start */
} rrfp_sampling;

RRFP_API void rrfp_sampling_init(rrfp_sampling *sampling);

/* The trainer must live longer. Steps of the trainer change what the generator computes; call
 * rrfp_generator_start afterwards.
 *   context   longest sequence that is attended to; beyond it the older half is forgotten */
RRFP_API rrfp_status rrfp_generator_create(rrfp_trainer *trainer, int32_t context,
                                           rrfp_generator **out, rrfp_error *error);
RRFP_API void rrfp_generator_destroy(rrfp_generator *generator);
/* Forgets everything and reads a prompt of 1 or more tokens; of a longer one than the context the end
 * counts. */
RRFP_API rrfp_status rrfp_generator_start(rrfp_generator *generator, const int32_t *tokens,
                                          size_t count, rrfp_error *error);
/* Draws the next token and reads it. `sampling` may be null. */
RRFP_API rrfp_status rrfp_generator_next(rrfp_generator *generator, const rrfp_sampling *sampling,
                                         int32_t *out_token, rrfp_error *error);
/* The logits for the next token. `count` must be the vocabulary. */
RRFP_API rrfp_status rrfp_generator_logits(rrfp_generator *generator, float *logits, size_t count,
                                           rrfp_error *error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* RRFP_TRAIN_H */
