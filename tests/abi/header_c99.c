/* SPDX-License-Identifier: Apache-2.0
 *
 * The public header alone, in strict C99 with all warnings as errors: it includes what it needs.
 */
#include <rrfp/rrfp.h>

int main(void) {
  const uint32_t header =
      RRFP_VERSION_MAJOR * 1000000u + RRFP_VERSION_MINOR * 1000u + RRFP_VERSION_PATCH;
  rrfp_error error = {0};
  rrfp_graph *graph = NULL;
  rrfp_stage_options stage;
  rrfp_status status;
  int32_t id = -1;

  if (rrfp_version() != header || rrfp_abi_version() != RRFP_ABI_VERSION) return 1;
  status = rrfp_graph_create(0, &graph, &error);
  if (status >= 0 || status != error.status) return 2;
  if (graph != NULL || error.text[0] == '\0') return 3;
  if (rrfp_graph_create(1, &graph, &error) != RRFP_OK) return 4;
  rrfp_stage_options_init(&stage);
  if (stage.struct_size != sizeof stage || stage.rank != -1) return 5;
  stage.flags = RRFP_STAGE_LOSS | RRFP_STAGE_FROZEN;
  if (rrfp_graph_add_stage(graph, &stage, &id, NULL) != RRFP_OK || id != 0) return 6;
  if (rrfp_graph_place(graph, RRFP_PLACEMENT_LINEAR, NULL) != RRFP_OK) return 7;
  if (rrfp_graph_check(graph, NULL) != RRFP_OK) return 8;
  rrfp_graph_destroy(graph);
  rrfp_graph_destroy(NULL);
  return 0;
}
