/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a scenario (../scenarios/README.md) through the C headers alone.
 *
 *   scenario FILE
 */
#include "scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fatal(const char *what, const char *detail) {
  fprintf(stderr, "scenario: %s: %s\n", what, detail);
  exit(1);
}

void check(rrfp_status status, const rrfp_error *error) {
  if (status < 0) fatal(rrfp_status_name(status), error->text);
}

void *allocate(size_t count, size_t size) {
  void *const made = calloc(count, size);
  if (made == NULL) fatal("out of memory", "samples");
  return made;
}

void print_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  printf("%016" PRIx64 "\n", bits);
}

static char *copy(const char *text) {
  char *const made = malloc(strlen(text) + 1);
  if (made == NULL) fatal("out of memory", text);
  return strcpy(made, text);
}

/* Relative to the folder of the scenario file. */
static char *resolve(const char *file, const char *path) {
  const char *slash = strrchr(file, '/');
  const size_t folder = path[0] == '/' || slash == NULL ? 0 : (size_t)(slash - file) + 1;
  char *const made = malloc(folder + strlen(path) + 1);
  if (made == NULL) fatal("out of memory", path);
  memcpy(made, file, folder);
  strcpy(made + folder, path);
  return made;
}

static int read_numbers(const char *text, float *out) {
  int count = 0;
  char *end;
  for (;; text = end) {
    const float value = strtof(text, &end);
    if (end == text) break;
    if (count == kMost) fatal("too many numbers", text);
    out[count++] = value;
  }
  return count;
}

static void set(struct scenario *s, const char *file, const char *key, const char *value) {
  int used = 0;
  if (strcmp(key, "scenario") == 0) {
    s->name = copy(value);
  } else if (strcmp(key, "weights") == 0) {
    s->stages = read_numbers(value, s->weights);
  } else if (strcmp(key, "inputs") == 0) {
    s->microbatches = read_numbers(value, s->inputs);
  } else if (strcmp(key, "hint") == 0) {
    s->hint = copy(value);
  } else if (strcmp(key, "hint_file") == 0) {
    s->hint_file = resolve(file, value);
  } else if (strcmp(key, "order") == 0) {
    s->order = strcmp(value, "strict") == 0 ? RRFP_ORDER_STRICT : RRFP_ORDER_READY;
  } else if (strcmp(key, "fail") == 0) {
    if (sscanf(value, "%d %d %n", &s->fail_stage, &s->fail_microbatch, &used) < 2) {
      fatal("fail", value);
    }
    s->fail_text = copy(value + used);
  } else if (strcmp(key, "data") == 0) {
    s->data = resolve(file, value);
  } else if (strcmp(key, "context") == 0) {
    s->context = atoi(value);
  } else if (strcmp(key, "layers") == 0) {
    s->layers = atoi(value);
  } else if (strcmp(key, "dim") == 0) {
    s->dim = atoi(value);
  } else if (strcmp(key, "heads") == 0) {
    s->heads = atoi(value);
  } else if (strcmp(key, "dropout") == 0) {
    s->dropout = atof(value);
  } else if (strcmp(key, "stages") == 0) {
    s->stages = atoi(value);
  } else if (strcmp(key, "batch") == 0) {
    s->batch = atoi(value);
  } else if (strcmp(key, "microbatches") == 0) {
    s->microbatches = atoi(value);
  } else if (strcmp(key, "steps") == 0) {
    s->steps = atoi(value);
  } else if (strcmp(key, "lr") == 0) {
    s->lr = atof(value);
  } else if (strcmp(key, "seed") == 0) {
    s->seed = strtoull(value, NULL, 10);
  } else if (strcmp(key, "picture") == 0) {
    s->picture = resolve(file, value);
  } else if (strcmp(key, "image_size") == 0) {
    s->image_size = atoi(value);
  } else if (strcmp(key, "patch") == 0) {
    s->patch = atoi(value);
  } else if (strcmp(key, "vision_layers") == 0) {
    s->vision_layers = atoi(value);
  } else if (strcmp(key, "vision_dim") == 0) {
    s->vision_dim = atoi(value);
  } else if (strcmp(key, "vision_heads") == 0) {
    s->vision_heads = atoi(value);
  } else if (strcmp(key, "ranks") == 0) {
    s->ranks = atoi(value);
  } else if (strcmp(key, "grouping") == 0) {
    s->grouping = strcmp(value, "cost") == 0 ? RRFP_GROUPING_COST : RRFP_GROUPING_COUNT;
  } else if (strcmp(key, "caption") == 0) {
    s->caption = atoi(value);
  } else if (strcmp(key, "load") == 0) {
    s->load = resolve(file, value);
  } else if (strcmp(key, "save") == 0) {
    s->save = resolve(file, value);
  } else {
    fatal("unknown key", key);
  }
}

static void read_scenario(const char *file, struct scenario *s) {
  char line[1024];
  FILE *const in = fopen(file, "r");
  if (in == NULL) fatal("cannot read", file);
  while (fgets(line, sizeof line, in) != NULL) {
    line[strcspn(line, "#\r\n")] = '\0';
    char *const key = strtok(line, " ");
    char *const value = key == NULL ? NULL : strtok(NULL, "");
    if (key == NULL) continue;
    if (value == NULL) fatal("no value for", key);
    set(s, file, key, value);
  }
  fclose(in);
}

int main(int argc, char **argv) {
  static struct scenario scenario = {.order = RRFP_ORDER_READY, .fail_stage = -1};
  if (argc != 2) fatal("usage", "scenario FILE");
  read_scenario(argv[1], &scenario);
  if (scenario.name != NULL && strcmp(scenario.name, "chain") == 0) {
    run_chain(&scenario);
  } else if (scenario.name != NULL && strcmp(scenario.name, "gpt") == 0) {
    run_gpt(&scenario);
  } else if (scenario.name != NULL && strcmp(scenario.name, "vision") == 0) {
    run_vision(&scenario);
  } else {
    fatal("unknown scenario", scenario.name != NULL ? scenario.name : "none");
  }
  return 0;
}
