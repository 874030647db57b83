/* SPDX-License-Identifier: Apache-2.0
 *
 * What a scenario file says; ../scenarios/README.md explains the keys. Memory lives as long as the
 * program.
 */
#ifndef TESTS_BINDINGS_C_SCENARIO_H
#define TESTS_BINDINGS_C_SCENARIO_H

#include <rrfp/multimodal.h>

enum { kMost = 64 };

struct scenario {
  const char *name;
  const char *hint; /* or null */
  /* chain */
  float weights[kMost];
  float inputs[kMost];
  const char *hint_file; /* or null */
  rrfp_order order;
  int fail_stage; /* -1 = none */
  int fail_microbatch;
  const char *fail_text;
  /* gpt and vision */
  const char *data;
  int context, layers, dim, heads;
  int batch, steps;
  double dropout, lr;
  uint64_t seed;
  const char *load; /* or null */
  const char *save; /* or null */
  /* vision */
  const char *picture;
  int image_size, patch, vision_layers, vision_dim, vision_heads;
  int ranks, caption;
  rrfp_grouping grouping;
  /* all */
  int stages, microbatches;
};

/* Ends the program. */
void fatal(const char *what, const char *detail);
void check(rrfp_status status, const rrfp_error *error);
void *allocate(size_t count, size_t size);
void print_bits(double value); /* ends the line */

void run_chain(const struct scenario *s);
void run_gpt(const struct scenario *s);
void run_vision(const struct scenario *s);

#endif
