/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares schedules in virtual time, without hardware: the same steps of a workload under several
 * hints, obeyed and as rankings of what is ready.
 *
 *   simulation [PRESET]     uniform, language (default), multimodal, straggler, ...
 *
 * Build: cc main.c $(pkg-config --cflags --libs rrfp)
 */
#include <rrfp/simulate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSeeds = 5 };

static rrfp_error error;

static void check(rrfp_status status) {
  if (status >= 0) return;
  fprintf(stderr, "simulation: %s: %s\n", rrfp_status_name(status), error.text);
  exit(1);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median makespan in milliseconds, and how far it is from the best possible. */
static double measure(const char *preset, const char *hint, rrfp_order order, double *ratio) {
  rrfp_simulation_options options;
  rrfp_simulation *simulation = NULL;
  rrfp_simulated_step step;
  double makespans[kSeeds], ratios[kSeeds];
  rrfp_simulation_options_init(&options);
  options.preset = preset;
  options.hint = hint;
  options.order = order;
  options.stages = 8;
  options.microbatches = 32;
  check(rrfp_simulation_create(&options, &simulation, &error));
  rrfp_simulated_step_init(&step);
  for (int seed = 0; seed < kSeeds; ++seed) {
    check(rrfp_simulation_run(simulation, (uint64_t)seed, &step, &error));
    makespans[seed] = (double)step.makespan_ns / 1e6;
    ratios[seed] = (double)step.makespan_ns / (double)step.bound_ns;
  }
  rrfp_simulation_destroy(simulation);
  qsort(makespans, kSeeds, sizeof *makespans, by_size);
  qsort(ratios, kSeeds, sizeof *ratios, by_size);
  *ratio = ratios[kSeeds / 2];
  return makespans[kSeeds / 2];
}

static int is_preset(const char *name) {
  const char *known;
  for (int32_t i = 0; (known = rrfp_preset_name(i)) != NULL; ++i) {
    if (strcmp(name, known) == 0) return 1;
  }
  fprintf(stderr, "simulation: there is no preset %s; there are:", name);
  for (int32_t i = 0; (known = rrfp_preset_name(i)) != NULL; ++i) fprintf(stderr, " %s", known);
  fprintf(stderr, "\n");
  return 0;
}

int main(int argc, char **argv) {
  static const struct {
    const char *hint;
    rrfp_order order;
    const char *text;
  } ways[] = {{"1f1b", RRFP_ORDER_PAIRED, "1F1B, obeyed, blocking sends"},
              {"1f1b", RRFP_ORDER_STRICT, "1F1B, obeyed"},
              {"1f1b", RRFP_ORDER_READY, "1F1B, as a ranking"},
              {"zb-h1", RRFP_ORDER_STRICT, "ZB-H1, obeyed"},
              {"zb-v", RRFP_ORDER_STRICT, "ZB-V, obeyed"},
              {"zb-v", RRFP_ORDER_READY, "ZB-V, as a ranking"},
              {"auto", RRFP_ORDER_DEFAULT, "chosen by simulation"}};
  const char *preset = argc > 1 ? argv[1] : "language";
  if (argc > 2 || !is_preset(preset)) return 2;
  printf("%s, 8 ranks, 32 microbatches, the memory of 1F1B, medians of %d steps\n", preset, kSeeds);
  printf("%-30s %9s %14s\n", "", "ms", "over the bound");
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    double ratio = 0;
    const double ms = measure(preset, ways[i].hint, ways[i].order, &ratio);
    printf("%-30s %9.1f %13.3fx\n", ways[i].text, ms, ratio);
  }
  return 0;
}
