/* SPDX-License-Identifier: Apache-2.0
 *
 * rrfp: simulation of pipelines, and timelines as files and pictures. The scheduler that runs here in
 * virtual time is the one that runs pipelines; see engine/sim/STUDY.md for what has been learnt with it.
 *
 *   simulation -> run it for one seed after another -> { read the result, write its timeline }
 *
 * The conventions are those of rrfp.h.
 *   Threads   A simulation has one user at a time. No function but rrfp_simulation_stress calls back.
 *   Results   The same options and seed give the same result on every machine with IEEE arithmetic and
 *             the same mathematical library.
 *   Since     All functions exist since version 0.1.0.
 */
#ifndef RRFP_SIMULATE_H
#define RRFP_SIMULATE_H

#include <rrfp/rrfp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Simulations ------------------------------------------------------------------------------- */

/* A workload and a way to run it. */
typedef struct rrfp_simulation rrfp_simulation;

typedef uint32_t rrfp_simulation_flags;
/* Weight gradients are computed as they become ready; see RRFP_PIPELINE_NONDETERMINISTIC. */
#define RRFP_SIMULATION_NONDETERMINISTIC 1u

/* Whose arrivals the leader of a tensor-parallel group goes by. */
typedef int32_t rrfp_readiness;
#define RRFP_READINESS_ALL 0    /* those of all members, which they report */
#define RRFP_READINESS_LEADER 1 /* its own; the task starts when the others have their inputs too */

typedef struct rrfp_simulation_options {
  uint32_t struct_size;
  rrfp_simulation_flags flags;
  /* What the work is: a preset by name (rrfp_preset_name), or the tasks of a timeline that was written
   * by rrfp_pipeline_write_trace, rrfp_trainer_write_trace or a simulation: each of its steps is one
   * seed, modulo their number. One of both; the other is null. */
  const char *preset;
  const char *trace;
  /* A named schedule or policy (rrfp_hint_create), "rf-d" (plans without jitter; obeys the plan until it
   * is late) or "auto" (simulates past steps and takes what is fastest). null = auto. */
  const char *hint;
  rrfp_order order; /* strict and paired: with a named schedule that can be obeyed */
  int32_t stages;   /* devices; a layout with two chunks cuts each in two. 0 = 16, or the trace's */
  int32_t microbatches; /* of each replica. 0 = 64, or the trace's */
  rrfp_injection injection;
  double cap;        /* memory of a device, as a multiple of what strict 1F1B takes; 0 = no limit.
                            _init: 1 */
  double offload_ms; /* to copy the activations of a mean stage to the host; 0 = there is no host */
  int32_t tensor_parallel; /* ranks of each group; 0 = 1 */
  rrfp_readiness readiness;
  int32_t data_parallel; /* replicas, with microbatches of their own; 0 = 1 */
  int32_t history;     /* auto: steps that it replays; 0 = 3, or 8 where links have slow episodes */
  int64_t dispatch_ns; /* between a decision and the start of its task */
  int64_t report_ns;   /* an arrival becomes known so much later */
} rrfp_simulation_options;

RRFP_API void rrfp_simulation_options_init(rrfp_simulation_options *options);

/* The name of the preset with this index, counted from 0; null beyond the last. Static memory. */
RRFP_API const char *rrfp_preset_name(int32_t index);

/* Checks the options; for "auto" also chooses the layout, which takes some simulated steps. `options`
 * must name a preset or a trace. Blocks: for auto, for the time of some tens of steps.
 * Errors: RRFP_ERR_UNKNOWN_NAME, RRFP_ERR_IO and RRFP_ERR_BAD_DATA (of a trace), and others. */
RRFP_API rrfp_status rrfp_simulation_create(const rrfp_simulation_options *options,
                                            rrfp_simulation **out, rrfp_error *error);
RRFP_API void rrfp_simulation_destroy(rrfp_simulation *simulation);

/* Times are virtual. Sums are over the ranks of the slowest replica. */
typedef struct rrfp_simulated_step {
  uint32_t struct_size;
  int32_t ranks;
  int32_t stages;
  int32_t microbatches; /* of each replica */
  int64_t makespan_ns;
  int64_t bound_ns;     /* no order in a V layout is faster (engine/sim/bound.h); 0 for a trace */
  int64_t peak_bytes;   /* of the rank that held most; a microbatch of size 1 holds 10^6 */
  int64_t native_bytes; /* the same of strict 1F1B on this step */
  int64_t tasks;
  int64_t messages;
  int64_t offloads;
  int64_t busy_ns;
  int64_t wait_input_ns;
  int64_t wait_memory_ns;
  int64_t wait_credit_ns;
  int64_t wait_policy_ns;
  int64_t wait_group_ns;
} rrfp_simulated_step;

RRFP_API void rrfp_simulated_step_init(rrfp_simulated_step *step);

/* Simulates one step; `seed` says which. Blocks: about 0.5 us for each task, for auto some ten times.
 * Errors: RRFP_ERR_BAD_ORDER (the order cannot be obeyed; says where each rank waits). */
RRFP_API rrfp_status rrfp_simulation_run(rrfp_simulation *simulation, uint64_t seed,
                                         rrfp_simulated_step *out, rrfp_error *error);

/* What ran last, and for "auto" and "rf-d" why: one line. Text out: see rrfp_hint_to_text. */
RRFP_API rrfp_status rrfp_simulation_describe(const rrfp_simulation *simulation, char *buffer,
                                              size_t capacity, size_t *out_size, rrfp_error *error);

/* Writes the timeline of the step that ran last, of its first replica; see rrfp_trainer_write_trace. */
RRFP_API rrfp_status rrfp_simulation_write_trace(rrfp_simulation *simulation, const char *path,
                                                 rrfp_error *error);

typedef struct rrfp_stress_report {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t cases;
  int64_t stalls;
  int64_t cap_violations;
  int64_t task_errors;    /* lost, or run twice */
  int64_t failure_errors; /* a failure that did not end a rank, or that nothing caused */
  int64_t refused;    /* cases that cannot be run, such as a strict order that nobody can obey */
  int64_t faults;     /* cases in which a rank died or a message was lost */
  uint64_t bad_seed;  /* of the first bad case */
  char bad_case[512]; /* what was wrong there, or empty */
} rrfp_stress_report;

RRFP_API void rrfp_stress_report_init(rrfp_stress_report *report);

/* Called now and then with the cases done; false ends the run. */
typedef bool (*rrfp_progress_fn)(void *user_data, int64_t done);

/* Simulates random pipelines with random policies, jitter and faults, one seed after another, and counts
 * what must not happen. `progress` may be null. */
RRFP_API rrfp_status rrfp_simulation_stress(uint64_t first_seed, int64_t cases,
                                            rrfp_progress_fn progress, void *user_data,
                                            rrfp_stress_report *out, rrfp_error *error);

/* ---- Timelines --------------------------------------------------------------------------------- */

typedef int32_t rrfp_picture;
#define RRFP_PICTURE_HTML 0 /* a page that needs nothing else: zoom, hover, totals */
#define RRFP_PICTURE_SVG 1

/* Draws a timeline that was written as a trace event file. The file appears under its name once it is
 * complete. Errors: RRFP_ERR_IO, RRFP_ERR_BAD_DATA (names the file and the event). */
RRFP_API rrfp_status rrfp_trace_draw(const char *trace_path, rrfp_picture picture,
                                     const char *out_path, rrfp_error *error);

/* How the time of each rank went, as a JSON object: "makespan_ms", "idle_share" and "ranks", a list of
 * objects with "computing_ms", "input_ms", "memory_ms", "credit_ms", "policy_ms", "group_ms",
 * "complete_ms", "engine_ms" and "tasks". Only if the stages are of two branches or more, as of an image
 * encoder and a language model, also "branches", a list of objects with "name", "computing_ms", "share"
 * (of what all ranks computed) and "tasks". Text out: see rrfp_hint_to_text. */
RRFP_API rrfp_status rrfp_trace_summarize(const char *trace_path, char *buffer, size_t capacity,
                                          size_t *out_size, rrfp_error *error);

#ifdef __cplusplus
}
#endif

#endif /* RRFP_SIMULATE_H */
