/* SPDX-License-Identifier: Apache-2.0
 *
 * The public headers alone, in strict C99 with all warnings as errors: they include what they need.
 */
#include <rrfp/rrfp.h>

/* It includes nothing that the first one has not included. */
#include <rrfp/multimodal.h>
#include <rrfp/simulate.h>
#include <rrfp/train.h>

/* A model, a trainer, a batch: returns the line of the first thing that is wrong, or 0. */
static int train(void) {
  const int64_t shape[2] = {-1, 2}, weight_shape[2] = {1, 2};
  float x[2] = {1.0f, 2.0f}, weight[2] = {0.0f, 0.0f};
  int32_t value = -1, parameter = -1;
  rrfp_error error = {0};
  rrfp_model *model = NULL;
  rrfp_trainer *trainer = NULL;
  rrfp_parameter_options options;
  rrfp_operation operation;
  rrfp_batch batch;
  rrfp_train_report report;
  rrfp_tensor input = {0};

  if (rrfp_model_create(NULL, &error) != RRFP_ERR_INVALID_ARGUMENT) return __LINE__;
  if (rrfp_model_create(&model, &error) != RRFP_OK) return __LINE__;
  if (rrfp_model_add_input(model, "x", RRFP_F32, 2, shape, &value, NULL) < 0) return __LINE__;
  rrfp_parameter_options_init(&options);
  options.name = "weight";
  options.shape = weight_shape;
  options.ndim = 2;
  options.init = RRFP_INIT_CONSTANT;
  options.init_value = 3.0;
  if (rrfp_model_add_parameter(model, &options, &parameter, NULL) < 0) return __LINE__;
  if (rrfp_model_begin_block(model, NULL, 0, NULL, NULL) < 0) return __LINE__;
  rrfp_operation_init(&operation);
  if (operation.struct_size != sizeof operation || operation.axis != -1) return __LINE__;
  operation.op = RRFP_OP_LINEAR;
  operation.inputs = &value;
  operation.input_count = 1;
  operation.parameters = &parameter;
  operation.parameter_count = 1;
  if (rrfp_model_add_operation(model, &operation, &value, NULL) < 0) return __LINE__;
  if (rrfp_model_set_loss(model, value, NULL) < 0) return __LINE__;

  if (rrfp_trainer_create(model, NULL, &trainer, &error) != RRFP_OK) return __LINE__;
  rrfp_model_destroy(model);
  input.data = x;
  input.dtype = RRFP_F32;
  input.ndim = 2;
  input.shape[0] = 1;
  input.shape[1] = 2;
  rrfp_batch_init(&batch);
  batch.microbatches = 1;
  batch.inputs = &input;
  rrfp_train_report_init(&report);
  if (rrfp_trainer_evaluate(trainer, &batch, &report, &error) != RRFP_OK) return __LINE__;
  if (report.loss < 8.9 || report.loss > 9.1) return __LINE__;
  if (rrfp_trainer_step(trainer, &batch, NULL, &error) != RRFP_OK) return __LINE__;
  if (rrfp_trainer_read(trainer, parameter, RRFP_SLOT_WEIGHT, weight, 2, NULL) < 0) return __LINE__;
  if (weight[0] >= 3.0f) return __LINE__;
  rrfp_trainer_destroy(trainer);
  rrfp_trainer_destroy(NULL);
  return 0;
}

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
  return train();
}
