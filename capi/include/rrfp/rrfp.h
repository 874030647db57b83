/* SPDX-License-Identifier: Apache-2.0
 *
 * rrfp: pipeline-parallel training by readiness. The C interface.
 *
 * A program describes its pipeline as a graph of stages placed on ranks, gives a hint that ranks the
 * tasks of each rank, and lets each rank pull tasks: `next` hands out a task whose inputs are here, the
 * program computes in whatever way it likes, puts the outputs and says `done`. The engine starts no
 * thread and calls no code of the program except the callbacks named below, inside calls that the
 * program itself makes.
 *
 *   graph -> pipeline -> one rank handle per rank, used by one thread at a time:
 *   begin_step, { next, input, alloc, put, done } until RRFP_STEP_DONE, end_step
 *
 * Conventions
 *   Handles     are made by *_create and freed by *_destroy (null is fine), in any order: what is
 *               shared lives until its last user is gone.
 *   Structs     that start with `struct_size` are prepared by their *_init function; zero means the
 *               default. Fields are only ever appended.
 *   Enums       are int32_t with named values that are never reused. Unknown values are refused.
 *   Status      0 is success, > 0 is not an error, < 0 is an error. Outputs are written only on
 *               success and where a positive status says so.
 *   Errors      The last parameter of calls that can fail with a detail may be null. On a negative
 *               status it gets the text that names the wrong value and what was expected.
 *   Threads     Unless a comment says otherwise a function may be called from any thread, but two
 *               threads must not use one handle at the same time. Rank handles detect that and return
 *               RRFP_ERR_BUSY.
 *   Blocks      No function blocks unless its comment says so.
 *   Forks       Ranks, pipelines and trainers refuse to work in the child (RRFP_ERR_FORKED).
 *   Since       All functions exist since version 0.1.0.
 */
#ifndef RRFP_RRFP_H
#define RRFP_RRFP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rrfp/version.h>

#if defined(_WIN32)
#define RRFP_API
#elif defined(__GNUC__)
#define RRFP_API __attribute__((visibility("default")))
#else
#define RRFP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status and errors ------------------------------------------------------------------------- */

typedef int32_t rrfp_status;

#define RRFP_OK 0
#define RRFP_AGAIN 1     /* nothing to hand out yet: the time-out passed, or the rank was woken */
#define RRFP_STEP_DONE 2 /* every task of this rank is done */
#define RRFP_ABSENT 3    /* this microbatch has no message on that edge */

/* By what is broken: arguments (-100), resources, channels, stages, the engine (-500). */
#define RRFP_ERR_INVALID_ARGUMENT (-100)
#define RRFP_ERR_NULL_HANDLE (-101)
#define RRFP_ERR_STRUCT_SIZE (-102)
#define RRFP_ERR_OUT_OF_RANGE (-103)
#define RRFP_ERR_UNKNOWN_NAME (-104)
#define RRFP_ERR_SYNTAX (-105)
#define RRFP_ERR_CYCLE (-106)
#define RRFP_ERR_UNPLACED_STAGE (-107)
#define RRFP_ERR_CAP_TOO_SMALL (-108)
#define RRFP_ERR_BAD_ORDER (-109)
#define RRFP_ERR_TENSOR_MISMATCH (-110)
#define RRFP_ERR_NO_MEMORY (-200)
#define RRFP_ERR_IO (-201)              /* a file cannot be read or written */
#define RRFP_ERR_BAD_DATA (-202)        /* a file is not what it should be */
#define RRFP_ERR_HEADER_MISMATCH (-300) /* ranks disagree about the step */
#define RRFP_ERR_STAGE_FAILED (-400)    /* stage code reported a failure with rrfp_rank_fail */
#define RRFP_ERR_NON_FINITE (-401)      /* a loss or a gradient is infinite or not a number */
#define RRFP_ERR_BAD_STATE (-500)       /* the call does not fit what the handle is doing */
#define RRFP_ERR_BUSY (-501)            /* another thread is inside a call on this rank */
#define RRFP_ERR_TIMEOUT (-502)         /* the watchdog ended the step */
#define RRFP_ERR_CANCELLED (-503)
#define RRFP_ERR_CLOSED (-504) /* a rank was destroyed while it was needed */
#define RRFP_ERR_FORKED (-505) /* the rank, pipeline or trainer is the parent's of this process */
#define RRFP_ERR_INTERNAL (-599)

#define RRFP_ERROR_TEXT_SIZE 960

/* What went wrong. The caller owns it; it needs no preparation. The layout is fixed for ever. */
typedef struct rrfp_error {
  rrfp_status status;
  int32_t rank;       /* the rank concerned, or -1 */
  int32_t stage;      /* the task concerned, or -1 */
  int32_t microbatch; /* or -1 */
  int32_t kind;       /* RRFP_FORWARD .., or -1 */
  int32_t user_code;  /* RRFP_ERR_STAGE_FAILED: the code given to rrfp_rank_fail, else 0 */
  int32_t reserved[10];
  char text[RRFP_ERROR_TEXT_SIZE]; /* ends in a zero byte; cut if longer */
} rrfp_error;

/* The version of the library in use: major * 1000000 + minor * 1000 + patch. */
RRFP_API uint32_t rrfp_version(void);
/* RRFP_ABI_VERSION of the library in use. */
RRFP_API uint32_t rrfp_abi_version(void);
/* The name of a status, such as "RRFP_ERR_BUSY"; "unknown" for other values. Static memory. */
RRFP_API const char *rrfp_status_name(rrfp_status status);

/* ---- The stage graph --------------------------------------------------------------------------- */

/* Stages, the directed edges between them, and the rank that owns each stage. Ids count from 0 in the
 * order of adding. Several edges may join two stages. */
typedef struct rrfp_graph rrfp_graph;

typedef uint32_t rrfp_stage_flags;
#define RRFP_STAGE_LOSS 1u           /* its forward starts the backward pass of a microbatch */
#define RRFP_STAGE_FROZEN 2u         /* no weight gradient: frozen, or without parameters */
#define RRFP_STAGE_INPUT_GRADIENT 4u /* wants gradients for what enters the stage from outside */
#define RRFP_STAGE_FUSED_ONLY 8u     /* its code can run B only, not I and W apart */

typedef struct rrfp_stage_options {
  uint32_t struct_size;
  rrfp_stage_flags flags;
  int32_t rank;             /* -1 (from _init) = placed later */
  int32_t reserved;         /* 0 */
  int64_t activation_bytes; /* per microbatch, held from the start of F to the end of B or W */
  /* Predicted durations in nanoseconds, for holding (rrfp_pipeline_options); 0 = unknown. */
  int64_t forward_ns;
  int64_t input_gradient_ns;
  int64_t weight_gradient_ns;
} rrfp_stage_options;

RRFP_API void rrfp_stage_options_init(rrfp_stage_options *options);

typedef uint32_t rrfp_edge_flags;
#define RRFP_EDGE_NO_GRADIENT 1u /* nothing flows back along it */

typedef int32_t rrfp_placement;
#define RRFP_PLACEMENT_LINEAR 0 /* stage s on rank s; as many stages as ranks */
#define RRFP_PLACEMENT_LOOP 1   /* stage s on rank s mod ranks */
#define RRFP_PLACEMENT_V 2      /* rank r owns stages r and 2 * ranks - 1 - r */

/* Makes an empty graph for `ranks` ranks (1 .. 65536). */
RRFP_API rrfp_status rrfp_graph_create(int32_t ranks, rrfp_graph **out, rrfp_error *error);
RRFP_API void rrfp_graph_destroy(rrfp_graph *graph);

/* Adds a stage. `options` may be null: a trainable stage, placed later. `out_stage` may be null. */
RRFP_API rrfp_status rrfp_graph_add_stage(rrfp_graph *graph, const rrfp_stage_options *options,
                                          int32_t *out_stage, rrfp_error *error);
/* Adds an edge: forwards of `from` send activations to `to`. `out_edge` may be null. */
RRFP_API rrfp_status rrfp_graph_add_edge(rrfp_graph *graph, int32_t from, int32_t to,
                                         rrfp_edge_flags flags, int32_t *out_edge,
                                         rrfp_error *error);

/* Declares the next tensor that every forward message of an edge carries; the engine then checks what
 * is put. An edge without declarations takes anything.
 *   shape   `ndim` extents (ndim 0 .. RRFP_DIMS_MAX); -1 where the extent may vary
 *   flags   RRFP_TENSOR_WANTS_GRADIENT or 0 */
RRFP_API rrfp_status rrfp_graph_declare_tensor(rrfp_graph *graph, int32_t edge, int32_t dtype,
                                               int32_t ndim, const int64_t *shape, uint32_t flags,
                                               rrfp_error *error);

/* Places all stages, in the order of their ids. */
RRFP_API rrfp_status rrfp_graph_place(rrfp_graph *graph, rrfp_placement placement,
                                      rrfp_error *error);
/* Places one stage; any map of stages to ranks is possible. */
RRFP_API rrfp_status rrfp_graph_place_stage(rrfp_graph *graph, int32_t stage, int32_t rank,
                                            rrfp_error *error);

/* Checks that there is no cycle, that every stage has a rank and every rank a stage. Creating a
 * pipeline does this too. */
RRFP_API rrfp_status rrfp_graph_check(const rrfp_graph *graph, rrfp_error *error);

/* ---- Hints ------------------------------------------------------------------------------------- */

/* A total order over the tasks of each rank. In ready order it ranks what is ready; in strict order it
 * is obeyed. A hint never changes and may be shared by threads and pipelines. */
typedef struct rrfp_hint rrfp_hint;

typedef int32_t rrfp_task_kind;
#define RRFP_FORWARD 0         /* F */
#define RRFP_BACKWARD 1        /* B = I and W in one task */
#define RRFP_INPUT_GRADIENT 2  /* I */
#define RRFP_WEIGHT_GRADIENT 3 /* W */

typedef int32_t rrfp_order;
#define RRFP_ORDER_DEFAULT 0 /* in a step: that of the pipeline; in a pipeline: ready */
#define RRFP_ORDER_READY 1   /* the first ready and admissible task in hint order runs */
#define RRFP_ORDER_STRICT 2  /* tasks run in hint order: the fixed-schedule baseline */
#define RRFP_ORDER_PAIRED 3  /* strict, and a send waits until the receiver asks: a baseline */

/* The order in which the microbatches of a step enter the pipeline: a function of their sizes alone. */
typedef int32_t rrfp_injection;
#define RRFP_INJECTION_DEFAULT 0 /* trainer: the tent; simulation: the tent for hints made for it */
#define RRFP_INJECTION_DATA 1    /* as given */
#define RRFP_INJECTION_TENT 2    /* by size: short ... long ... short; as given if all are alike */

/* One entry of an explicit hint. */
typedef struct rrfp_hint_task {
  int32_t rank; /* rrfp_hint_create_from_tasks only */
  int32_t stage;
  int32_t kind;
  int32_t microbatch;
  int64_t priority; /* rrfp_hint_create_from_priorities only; smaller = earlier */
} rrfp_hint_task;

/* A named schedule or policy.
 *   For any graph and any number of microbatches: "gpipe", "1f1b", "bf" (backward before forward), "bfw"
 *   (input gradient before forward before weight gradient), "zb-h1", "zb-h2". All but bf and bfw are
 *   complete orders and may be used strictly.
 *   For the layout that they were published for, which a step must have: "interleaved" and
 *   "interleaved-zb" (also "interleaved:<group size>"), "looped-bfs"; "zb-v", "v-half", "v-min",
 *   "dualpipe-v" (two stages a rank in RRFP_PLACEMENT_V); "dualpipe" (two chains through the ranks in
 *   opposite directions).
 *   Policies, which also say how to hold and to keep room: "rf-1" and "bfw-sort" (one stage a rank),
 *   "rf-v", "rf-m", "rf-mt", "rf-h" and "rf-h2" (two stages a rank in RRFP_PLACEMENT_V); see engine/sim/STUDY.md. */
RRFP_API rrfp_status rrfp_hint_create(const char *name, rrfp_hint **out, rrfp_error *error);

/* An explicit order: the entries of a rank, in the order in which they stand in `tasks`, are its list.
 * Each (stage, microbatch) has F and either B or I and W. Entries for tasks that a step does not have
 * (skipped, frozen, forward-only) are passed over in that step. `ranks` = that of the pipeline. */
RRFP_API rrfp_status rrfp_hint_create_from_tasks(int32_t ranks, const rrfp_hint_task *tasks,
                                                 size_t count, rrfp_hint **out, rrfp_error *error);

/* A priority per task; equal priorities go by stage, microbatch and kind. */
RRFP_API rrfp_status rrfp_hint_create_from_priorities(const rrfp_hint_task *tasks, size_t count,
                                                      rrfp_hint **out, rrfp_error *error);

/* The compute-only schedule text of torch.distributed.pipelining: a row per rank, cells such as 3F4
 * separated by commas. Errors name row and column, both counted from 1.
 *   text   `length` bytes, need not end in a zero byte */
RRFP_API rrfp_status rrfp_hint_create_from_text(const char *text, size_t length, rrfp_hint **out,
                                                rrfp_error *error);
RRFP_API void rrfp_hint_destroy(rrfp_hint *hint);

/* What the reader of a text had to assume (old spelling of B), or an empty text. Text out: see
 * rrfp_hint_to_text. */
RRFP_API rrfp_status rrfp_hint_note(const rrfp_hint *hint, char *buffer, size_t capacity,
                                    size_t *out_size, rrfp_error *error);

/* What the lists or the text of a hint name; for other hints all three are 0. */
typedef struct rrfp_hint_info {
  uint32_t struct_size;
  int32_t ranks;        /* lists, or rows of a text */
  int32_t stages;       /* the largest number + 1 */
  int32_t microbatches; /* the largest number + 1 */
} rrfp_hint_info;

RRFP_API void rrfp_hint_info_init(rrfp_hint_info *info);
RRFP_API rrfp_status rrfp_hint_get_info(const rrfp_hint *hint, rrfp_hint_info *out,
                                        rrfp_error *error);

/* Writes the order that a hint gives to a training step of `microbatches` on `graph` as schedule text.
 *   buffer     gets at most `capacity` bytes, always ended by a zero byte if capacity > 0; may be null
 *              if capacity is 0
 *   out_size   gets the bytes needed with the zero byte; if it exceeds `capacity` the text was cut */
RRFP_API rrfp_status rrfp_hint_to_text(const rrfp_hint *hint, const rrfp_graph *graph,
                                       int32_t microbatches, char *buffer, size_t capacity,
                                       size_t *out_size, rrfp_error *error);

typedef uint32_t rrfp_lower_flags;
#define RRFP_LOWER_FSDP 1u   /* with UNSHARD and RESHARD of the stages that are needed next */
#define RRFP_LOWER_REDUCE 2u /* with REDUCE_GRAD after the last weight gradient of a stage */

/* The same in the complete form, with the sends and receives that torch.distributed.pipelining adds. */
RRFP_API rrfp_status rrfp_hint_lower(const rrfp_hint *hint, const rrfp_graph *graph,
                                     int32_t microbatches, rrfp_lower_flags flags, char *buffer,
                                     size_t capacity, size_t *out_size, rrfp_error *error);

/* Where the schedule of this name puts stages: the placement, the usual number of stages a rank, and 2
 * streams for "dualpipe", else 1. Any of the three may be null. */
RRFP_API rrfp_status rrfp_hint_layout(const char *name, int32_t *out_placement, int32_t *out_chunks,
                                      int32_t *out_streams, rrfp_error *error);

/* Draws a training step of `microbatches` on `graph` as the hint orders it, obeyed strictly or, where it
 * cannot be, as a ranking without a limit of memory (the title says so): F, I and W
 * take one millisecond each, messages no time. Written as a trace event file (rrfp/simulate.h). */
RRFP_API rrfp_status rrfp_hint_write_trace(const rrfp_hint *hint, const rrfp_graph *graph,
                                           int32_t microbatches, const char *path,
                                           rrfp_error *error);

/* Checks a hint against a training step of `microbatches` on `graph`: that it names every task and, for
 * RRFP_ORDER_STRICT, that it can be obeyed with weight gradients in the order of the microbatches; the
 * error says where each stuck rank would wait. */
RRFP_API rrfp_status rrfp_hint_check(const rrfp_hint *hint, const rrfp_graph *graph,
                                     int32_t microbatches, rrfp_order order, rrfp_error *error);

/* Places every stage of `graph` on the rank in whose list the hint names it (lists and text only). */
RRFP_API rrfp_status rrfp_graph_place_by_hint(rrfp_graph *graph, const rrfp_hint *hint,
                                              rrfp_error *error);

/* ---- Pipelines --------------------------------------------------------------------------------- */

/* The ranks of one pipeline, as threads of this process. */
typedef struct rrfp_pipeline rrfp_pipeline;
/* One rank of a pipeline. */
typedef struct rrfp_rank rrfp_rank;

/* How a rank waits for messages. */
typedef int32_t rrfp_wake;
#define RRFP_WAKE_YIELD 0 /* gives the core away between looks */
#define RRFP_WAKE_SPIN 1  /* looks all the time: lowest latency, needs a core of its own */
#define RRFP_WAKE_PARK 2  /* looks for some 40 us, then sleeps until woken */

typedef int32_t rrfp_log_level;
#define RRFP_LOG_INFO 0
#define RRFP_LOG_WARNING 1
#define RRFP_LOG_ERROR 2

/* Called on the thread that called in, without locks held; `text` is valid during the call. */
typedef void (*rrfp_log_fn)(void *user_data, rrfp_log_level level, const char *text);

typedef uint32_t rrfp_pipeline_flags;
/* Weight gradients of a stage are computed as they become ready. Without this flag they are computed in
 * the order of the microbatches, so that sums come out the same to the bit whatever the hint, placement
 * and timing; a B whose turn has not come is then handed out as I now and W later. */
#define RRFP_PIPELINE_NONDETERMINISTIC 1u

typedef struct rrfp_pipeline_options {
  uint32_t struct_size;
  rrfp_pipeline_flags flags;
  rrfp_order order;
  rrfp_wake wake;
  /* Caps on what a rank's activations hold at once, from the start of F to the end of B or W. In slots,
   * one for each (stage, microbatch), and in the bytes declared for it. 0 = no limit, but with neither
   * the slots are ranks x stages of the rank. The smallest cap is one microbatch through all stages of
   * the rank. In strict order the plan's own peak is the limit; explicit caps are checked against it. */
  int64_t cap_slots;
  int64_t cap_bytes;
  /* The same for each rank, or null; a zero entry falls back to cap_slots or cap_bytes. */
  const int64_t *rank_cap_slots;
  const int64_t *rank_cap_bytes;
  /* Forward messages of one edge that may wait for their consumer. 0 = ranks x most stages of a rank
   * + 1, and only where the sender's cap does not bound them already. Ready order only. */
  int32_t credits;
  /* Holding: a ready task may wait for a better one in hint order that is announced to arrive within
   * this share of the ready task's predicted duration, in thousandths. 0 = as the hint's policy wants,
   * if it is one, else never. */
  int32_t hold_permille;
  /* Messages that may lie in a rank's mailbox; more wait at their sender. 0 = 1024. */
  uint32_t mailbox_capacity;
  int32_t trace_steps; /* keeps the timeline of the last so many steps, up to 65536; 0 = none */
  /* The step fails when no task finishes on any rank for this long. 0 = 600000, -1 = never. */
  int64_t watchdog_ms;
  rrfp_log_fn log; /* or null */
  void *log_user_data;
} rrfp_pipeline_options;

RRFP_API void rrfp_pipeline_options_init(rrfp_pipeline_options *options);

/* Makes a pipeline. `graph` is copied and may be changed or destroyed afterwards, and so may all that
 * `options` (null = defaults) points to. */
RRFP_API rrfp_status rrfp_pipeline_create(const rrfp_graph *graph,
                                          const rrfp_pipeline_options *options, rrfp_pipeline **out,
                                          rrfp_error *error);
/* Ranks that still have a handle go on working. */
RRFP_API void rrfp_pipeline_destroy(rrfp_pipeline *pipeline);

/* Fails the current step on every rank with RRFP_ERR_CANCELLED; between steps, the next one. Only
 * rrfp_pipeline_reset ends that state. `reason` may be null.
 * Threads: any, also while ranks are inside calls. */
RRFP_API rrfp_status rrfp_pipeline_cancel(rrfp_pipeline *pipeline, const char *reason,
                                          rrfp_error *error);

/* After a failed step: forgets it, with all messages on their way, so that a new step can begin. Tasks
 * that are still in the caller's hands are abandoned and their tensors are gone.
 * Errors: RRFP_ERR_BUSY while a rank is inside a call. While it works, calls on ranks are refused in the
 * same way, and release functions that it runs must not destroy ranks. */
RRFP_API rrfp_status rrfp_pipeline_reset(rrfp_pipeline *pipeline, rrfp_error *error);

/* Writes the timeline of the last steps (trace_steps) as a trace event file, which Perfetto and
 * chrome://tracing open and rrfp/simulate.h draws. The file appears under its name once it is complete.
 * Errors: RRFP_ERR_BUSY while a rank is inside a call, RRFP_ERR_BAD_STATE without trace_steps, RRFP_ERR_IO.
 * Threads: any; ranks that begin a call meanwhile wait. */
RRFP_API rrfp_status rrfp_pipeline_write_trace(rrfp_pipeline *pipeline, const char *path,
                                               rrfp_error *error);

/* A text for people: for every rank the running task and its age, or what it waits for, from whom and
 * since when; ready tasks; memory held. After the watchdog has ended a step, the report of that moment.
 * Text out: see rrfp_hint_to_text. Threads: any, also while ranks are inside calls. */
RRFP_API rrfp_status rrfp_pipeline_report(rrfp_pipeline *pipeline, char *buffer, size_t capacity,
                                          size_t *out_size, rrfp_error *error);

/* ---- Ranks and steps --------------------------------------------------------------------------- */

/* Makes the handle of a rank; a rank has at most one. It keeps what it needs of the pipeline. */
RRFP_API rrfp_status rrfp_rank_create(rrfp_pipeline *pipeline, int32_t rank, rrfp_rank **out,
                                      rrfp_error *error);
/* In the middle of a step this fails the step for all; afterwards, neighbours that begin a step before
 * the rank has a handle again get RRFP_ERR_CLOSED. A thread that waits inside rrfp_rank_next is sent
 * out with RRFP_ERR_CLOSED; no call may begin at the same time or afterwards.
 * Threads: any, but not from a callback of this rank. Blocks: until that thread has left. */
RRFP_API void rrfp_rank_destroy(rrfp_rank *rank);

typedef int32_t rrfp_step_mode;
#define RRFP_MODE_TRAIN 0
#define RRFP_MODE_FORWARD 1 /* forwards only: evaluation, inference */

/* All ranks must describe a step alike, and begin the same steps in the same order; each rank checks
 * that with its neighbours. */
typedef struct rrfp_step_options {
  uint32_t struct_size;
  rrfp_step_mode mode;
  int64_t step; /* the caller's number, for reports; the ranks must agree */
  int32_t microbatches;
  rrfp_order order;
  const rrfp_hint *hint; /* must not be null */
  /* Null, or stages x microbatches bytes, one row per stage: nonzero = skips the stage. A message
   * travels along an edge only if the microbatch visits both its ends. */
  const uint8_t *skip;
  /* Null, or stages x microbatches sizes, one row per stage; they replace those of the graph. */
  const int64_t *activation_bytes;
} rrfp_step_options;

RRFP_API void rrfp_step_options_init(rrfp_step_options *options);

/* Begins a step on this rank. Does not wait for the others. The arrays are copied; the plan of the last
 * step is used again if nothing has changed. If it fails on one rank only, the others wait for that
 * rank: rrfp_pipeline_cancel frees them. */
RRFP_API rrfp_status rrfp_rank_begin_step(rrfp_rank *rank, const rrfp_step_options *options,
                                          rrfp_error *error);

typedef struct rrfp_task {
  uint32_t struct_size;
  uint32_t flags;  /* RRFP_TASK_LOSS */
  uint64_t ticket; /* names this hand-out in the calls below */
  int32_t stage;
  int32_t microbatch;
  rrfp_task_kind kind;
  int32_t reserved;
} rrfp_task;

#define RRFP_TASK_LOSS 1u /* the stage is a loss stage */

RRFP_API void rrfp_task_init(rrfp_task *task);

/* Hands out the next task.
 *   timeout_us   0 = only look, negative = wait as long as it takes
 * Returns RRFP_OK with a task; RRFP_AGAIN at the time-out or after rrfp_rank_wake; RRFP_STEP_DONE; or
 * the failure of the step, wherever it arose.
 * Blocks: at most timeout_us. Bindings may release their interpreter's lock around it. */
RRFP_API rrfp_status rrfp_rank_next(rrfp_rank *rank, int64_t timeout_us, rrfp_task *out,
                                    rrfp_error *error);

/* Ends the current or the next wait inside rrfp_rank_next, which then returns RRFP_AGAIN. A task that is
 * ready is handed out first. Threads: any. */
RRFP_API rrfp_status rrfp_rank_wake(rrfp_rank *rank, rrfp_error *error);

/* ---- Tensors ----------------------------------------------------------------------------------- */

typedef int32_t rrfp_dtype;
#define RRFP_NONE 0 /* as a gradient: zero, nothing is sent for it */
#define RRFP_F32 1
#define RRFP_F64 2
#define RRFP_F16 3
#define RRFP_BF16 4
#define RRFP_I8 5
#define RRFP_I16 6
#define RRFP_I32 7
#define RRFP_I64 8
#define RRFP_U8 9
#define RRFP_U16 10
#define RRFP_U32 11
#define RRFP_U64 12
#define RRFP_BOOL 13

#define RRFP_DIMS_MAX 8
#define RRFP_DEVICE_CPU 1 /* device types are those of DLPack */

#define RRFP_TENSOR_WANTS_GRADIENT 1u /* the consumer must send a gradient of the same shape back */

/* Counted memory: the engine's, or the caller's own, wrapped. */
typedef struct rrfp_buffer rrfp_buffer;

/* A view of a tensor. `buffer` is the memory that `data` lies in, or null for memory of the caller that
 * put() copies. Row-major and contiguous; strides, in elements, may be all zero to say so. */
typedef struct rrfp_tensor {
  void *data;
  rrfp_buffer *buffer;
  int64_t shape[RRFP_DIMS_MAX];
  int64_t strides[RRFP_DIMS_MAX];
  int32_t ndim;
  rrfp_dtype dtype;
  int32_t device_type; /* 0 is read as RRFP_DEVICE_CPU */
  int32_t device_id;
  uint32_t flags;
  uint32_t reserved; /* 0 */
} rrfp_tensor;

/* The tensors that arrived for the running task along an edge of its stage: activations if the edge
 * enters the stage, gradients if it leaves it (B, I and W only). They must not be written to; they
 * stay valid until the last task of this (stage, microbatch) is done, so W finds what I saw.
 *   tensors      gets up to `capacity` views
 *   out_count    gets the number of tensors; may exceed `capacity`
 *   out_opaque   gets the sender's pointer; may be null
 * Returns RRFP_ABSENT if nothing travels there for this microbatch (skipped, frozen, no gradient). */
RRFP_API rrfp_status rrfp_rank_input(rrfp_rank *rank, uint64_t ticket, int32_t edge,
                                     rrfp_tensor *tensors, size_t capacity, size_t *out_count,
                                     void **out_opaque, rrfp_error *error);

/* A tensor in engine memory, aligned to 64 bytes, not cleared. The running task holds a reference until
 * it is done; what was put or retained lives on. */
RRFP_API rrfp_status rrfp_rank_alloc(rrfp_rank *rank, uint64_t ticket, rrfp_dtype dtype,
                                     int32_t ndim, const int64_t *shape, rrfp_tensor *out,
                                     rrfp_error *error);

/* Called when wrapped memory is no longer used; must not throw. It runs on a thread that is inside a
 * call on the rank that wrapped the memory, or inside its pipeline's reset, or, once that rank is
 * destroyed, on the thread that gave up the last reference. */
typedef void (*rrfp_release_fn)(void *user_data);

/* A buffer around memory of the caller, so that put() need not copy. The running task holds a reference
 * until it is done. `release` may be null; if the call fails it is not called. */
RRFP_API rrfp_status rrfp_rank_wrap(rrfp_rank *rank, uint64_t ticket, void *data, size_t bytes,
                                    rrfp_release_fn release, void *user_data, rrfp_buffer **out,
                                    rrfp_error *error);

/* One more, one less reference. Null is fine. Threads: any. */
RRFP_API void rrfp_buffer_retain(rrfp_buffer *buffer);
RRFP_API void rrfp_buffer_release(rrfp_buffer *buffer);

/* Gives the output of the running task for an edge: F gives activations to each edge that leaves its
 * stage, B and I give gradients to each edge that enters it, one for each tensor that asked, in that
 * order. Tensors with a buffer are handed over without a copy and must not be written to any more; for
 * the others the memory is copied during the call.
 *   opaque   a pointer that travels along; the engine never looks at it
 * Edges that carry nothing for this microbatch are refused (RRFP_ERR_INVALID_ARGUMENT); see
 * rrfp_rank_output_wanted. */
RRFP_API rrfp_status rrfp_rank_put(rrfp_rank *rank, uint64_t ticket, int32_t edge,
                                   const rrfp_tensor *tensors, size_t count, void *opaque,
                                   rrfp_error *error);

/* Whether the running task must put an output for an edge of its stage: RRFP_OK or RRFP_ABSENT. */
RRFP_API rrfp_status rrfp_rank_output_wanted(rrfp_rank *rank, uint64_t ticket, int32_t edge,
                                             rrfp_error *error);

/* Tensors of other libraries as DLPack describes them, without a version and on the CPU:
 * https://dmlc.github.io/dlpack/latest/c_api.html. None of these calls copies. */
struct DLManagedTensor;

/* A view, valid as long as `managed` is; its buffer is null.
 * Errors: RRFP_ERR_TENSOR_MISMATCH if it is not row-major and contiguous, or not of a known kind. */
RRFP_API rrfp_status rrfp_tensor_from_dlpack(const struct DLManagedTensor *managed,
                                             rrfp_tensor *out, rrfp_error *error);
/* The same to be put, by rrfp_rank_wrap: the engine owns `managed` from then on and calls its deleter
 * for a release function. On an error it stays the caller's. */
RRFP_API rrfp_status rrfp_rank_wrap_dlpack(rrfp_rank *rank, uint64_t ticket,
                                           struct DLManagedTensor *managed, rrfp_tensor *out,
                                           rrfp_error *error);
/* Lends a tensor that has a buffer, with a reference to it, until the receiver calls the deleter, on any
 * thread. What has been received or put must not be written to. */
RRFP_API rrfp_status rrfp_tensor_to_dlpack(const rrfp_tensor *tensor, struct DLManagedTensor **out,
                                           rrfp_error *error);

/* What the task was the last of. */
typedef uint32_t rrfp_events;
#define RRFP_EVENT_STAGE_GRADIENTS 1u /* all weight gradients of its stage are in */
#define RRFP_EVENT_STAGE_LOSSES 2u    /* all forwards of its stage, a loss stage, are done */
#define RRFP_EVENT_STEP_TASKS 4u      /* all tasks of this rank are done */

/* The running task is done: its outputs are sent. `out_events` may be null. If an output is missing the
 * task goes on running. */
RRFP_API rrfp_status rrfp_rank_done(rrfp_rank *rank, uint64_t ticket, rrfp_events *out_events,
                                    rrfp_error *error);

/* The running task failed. The step fails on every rank with RRFP_ERR_STAGE_FAILED, this text and this
 * code. `text` may be null. */
RRFP_API rrfp_status rrfp_rank_fail(rrfp_rank *rank, uint64_t ticket, int32_t code,
                                    const char *text, rrfp_error *error);

/* How a rank spent a step. Times in nanoseconds; total = busy + waits + other. */
typedef struct rrfp_step_report {
  uint32_t struct_size;
  int32_t rank;
  int64_t step;
  int64_t total_ns;       /* from begin_step to the end of the last task */
  int64_t busy_ns;        /* tasks were in the caller's hands */
  int64_t wait_input_ns;  /* nothing was ready */
  int64_t wait_memory_ns; /* a forward was ready, but the cap did not admit it */
  int64_t wait_credit_ns; /* a forward was ready, but its consumer was too far behind */
  int64_t wait_policy_ns; /* a task was ready, but strict order or holding forbade it */
  int64_t other_ns;       /* the engine, and the caller between its calls */
  int64_t tasks;
  int64_t messages_sent;
  int64_t peak_slots;        /* activations held at once */
  int64_t peak_bytes;        /* of activations, as declared */
  int64_t tensor_bytes_peak; /* of tensors made by this rank */
  int64_t tensor_bytes_live; /* of these, still referred to at the end of the step */
} rrfp_step_report;

RRFP_API void rrfp_step_report_init(rrfp_step_report *report);

/* Ends a step that is done on this rank; others may still be working. Also ends a failed step on this
 * rank and then returns its failure; rrfp_pipeline_reset must follow. `out` may be null. */
RRFP_API rrfp_status rrfp_rank_end_step(rrfp_rank *rank, rrfp_step_report *out, rrfp_error *error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* RRFP_RRFP_H */
