/* SPDX-License-Identifier: Apache-2.0
 *
 * What the public headers name besides functions: integer types, structs with their fields,
 * constants. snapshot_test.py checks that nothing of them is missing here. The numbers of the
 * release are left out: they are not layout, and the version test looks at them.
 */
#ifndef RRFP_TESTS_ABI_PUBLIC_NAMES_H
#define RRFP_TESTS_ABI_PUBLIC_NAMES_H

/* clang-format off */

#define RRFP_PUBLIC_INTEGERS(INTEGER) \
  INTEGER(rrfp_status) \
  INTEGER(rrfp_stage_flags) \
  INTEGER(rrfp_edge_flags) \
  INTEGER(rrfp_placement) \
  INTEGER(rrfp_task_kind) \
  INTEGER(rrfp_order) \
  INTEGER(rrfp_wake) \
  INTEGER(rrfp_log_level) \
  INTEGER(rrfp_pipeline_flags) \
  INTEGER(rrfp_step_mode) \
  INTEGER(rrfp_dtype) \
  INTEGER(rrfp_events) \
  INTEGER(rrfp_block_flags) \
  INTEGER(rrfp_init) \
  INTEGER(rrfp_parameter_flags) \
  INTEGER(rrfp_op) \
  INTEGER(rrfp_op_flags) \
  INTEGER(rrfp_gpt_flags) \
  INTEGER(rrfp_optimizer) \
  INTEGER(rrfp_decay) \
  INTEGER(rrfp_reduction) \
  INTEGER(rrfp_non_finite) \
  INTEGER(rrfp_trainer_flags) \
  INTEGER(rrfp_batch_flags) \
  INTEGER(rrfp_train_flags) \
  INTEGER(rrfp_slot) \
  INTEGER(rrfp_load_flags) \
  INTEGER(rrfp_data_format) \
  INTEGER(rrfp_split) \
  INTEGER(rrfp_injection) \
  INTEGER(rrfp_lower_flags) \
  INTEGER(rrfp_simulation_flags) \
  INTEGER(rrfp_readiness) \
  INTEGER(rrfp_picture) \
  INTEGER(rrfp_vision_flags) \
  INTEGER(rrfp_grouping)

#define RRFP_PUBLIC_STRUCTS(STRUCT, FIELD) \
  STRUCT(rrfp_error) \
  FIELD(rrfp_error, status) \
  FIELD(rrfp_error, rank) \
  FIELD(rrfp_error, stage) \
  FIELD(rrfp_error, microbatch) \
  FIELD(rrfp_error, kind) \
  FIELD(rrfp_error, user_code) \
  FIELD(rrfp_error, reserved) \
  FIELD(rrfp_error, text) \
  STRUCT(rrfp_stage_options) \
  FIELD(rrfp_stage_options, struct_size) \
  FIELD(rrfp_stage_options, flags) \
  FIELD(rrfp_stage_options, rank) \
  FIELD(rrfp_stage_options, reserved) \
  FIELD(rrfp_stage_options, activation_bytes) \
  FIELD(rrfp_stage_options, forward_ns) \
  FIELD(rrfp_stage_options, input_gradient_ns) \
  FIELD(rrfp_stage_options, weight_gradient_ns) \
  STRUCT(rrfp_hint_task) \
  FIELD(rrfp_hint_task, rank) \
  FIELD(rrfp_hint_task, stage) \
  FIELD(rrfp_hint_task, kind) \
  FIELD(rrfp_hint_task, microbatch) \
  FIELD(rrfp_hint_task, priority) \
  STRUCT(rrfp_pipeline_options) \
  FIELD(rrfp_pipeline_options, struct_size) \
  FIELD(rrfp_pipeline_options, flags) \
  FIELD(rrfp_pipeline_options, order) \
  FIELD(rrfp_pipeline_options, wake) \
  FIELD(rrfp_pipeline_options, cap_slots) \
  FIELD(rrfp_pipeline_options, cap_bytes) \
  FIELD(rrfp_pipeline_options, rank_cap_slots) \
  FIELD(rrfp_pipeline_options, rank_cap_bytes) \
  FIELD(rrfp_pipeline_options, credits) \
  FIELD(rrfp_pipeline_options, hold_permille) \
  FIELD(rrfp_pipeline_options, mailbox_capacity) \
  FIELD(rrfp_pipeline_options, trace_steps) \
  FIELD(rrfp_pipeline_options, watchdog_ms) \
  FIELD(rrfp_pipeline_options, log) \
  FIELD(rrfp_pipeline_options, log_user_data) \
  STRUCT(rrfp_step_options) \
  FIELD(rrfp_step_options, struct_size) \
  FIELD(rrfp_step_options, mode) \
  FIELD(rrfp_step_options, step) \
  FIELD(rrfp_step_options, microbatches) \
  FIELD(rrfp_step_options, order) \
  FIELD(rrfp_step_options, hint) \
  FIELD(rrfp_step_options, skip) \
  FIELD(rrfp_step_options, activation_bytes) \
  STRUCT(rrfp_task) \
  FIELD(rrfp_task, struct_size) \
  FIELD(rrfp_task, flags) \
  FIELD(rrfp_task, ticket) \
  FIELD(rrfp_task, stage) \
  FIELD(rrfp_task, microbatch) \
  FIELD(rrfp_task, kind) \
  FIELD(rrfp_task, reserved) \
  STRUCT(rrfp_tensor) \
  FIELD(rrfp_tensor, data) \
  FIELD(rrfp_tensor, buffer) \
  FIELD(rrfp_tensor, shape) \
  FIELD(rrfp_tensor, strides) \
  FIELD(rrfp_tensor, ndim) \
  FIELD(rrfp_tensor, dtype) \
  FIELD(rrfp_tensor, device_type) \
  FIELD(rrfp_tensor, device_id) \
  FIELD(rrfp_tensor, flags) \
  FIELD(rrfp_tensor, reserved) \
  STRUCT(rrfp_step_report) \
  FIELD(rrfp_step_report, struct_size) \
  FIELD(rrfp_step_report, rank) \
  FIELD(rrfp_step_report, step) \
  FIELD(rrfp_step_report, total_ns) \
  FIELD(rrfp_step_report, busy_ns) \
  FIELD(rrfp_step_report, wait_input_ns) \
  FIELD(rrfp_step_report, wait_memory_ns) \
  FIELD(rrfp_step_report, wait_credit_ns) \
  FIELD(rrfp_step_report, wait_policy_ns) \
  FIELD(rrfp_step_report, other_ns) \
  FIELD(rrfp_step_report, tasks) \
  FIELD(rrfp_step_report, messages_sent) \
  FIELD(rrfp_step_report, peak_slots) \
  FIELD(rrfp_step_report, peak_bytes) \
  FIELD(rrfp_step_report, tensor_bytes_peak) \
  FIELD(rrfp_step_report, tensor_bytes_live) \
  STRUCT(rrfp_parameter_options) \
  FIELD(rrfp_parameter_options, struct_size) \
  FIELD(rrfp_parameter_options, flags) \
  FIELD(rrfp_parameter_options, name) \
  FIELD(rrfp_parameter_options, shape) \
  FIELD(rrfp_parameter_options, ndim) \
  FIELD(rrfp_parameter_options, init) \
  FIELD(rrfp_parameter_options, init_value) \
  FIELD(rrfp_parameter_options, init_scale) \
  STRUCT(rrfp_operation) \
  FIELD(rrfp_operation, struct_size) \
  FIELD(rrfp_operation, op) \
  FIELD(rrfp_operation, inputs) \
  FIELD(rrfp_operation, parameters) \
  FIELD(rrfp_operation, input_count) \
  FIELD(rrfp_operation, parameter_count) \
  FIELD(rrfp_operation, flags) \
  FIELD(rrfp_operation, axis) \
  FIELD(rrfp_operation, heads) \
  FIELD(rrfp_operation, kv_heads) \
  FIELD(rrfp_operation, head_dim) \
  FIELD(rrfp_operation, ignore_index) \
  FIELD(rrfp_operation, probability) \
  FIELD(rrfp_operation, epsilon) \
  FIELD(rrfp_operation, base) \
  FIELD(rrfp_operation, shape) \
  FIELD(rrfp_operation, ndim) \
  FIELD(rrfp_operation, kernel) \
  FIELD(rrfp_operation, stride) \
  FIELD(rrfp_operation, padding) \
  STRUCT(rrfp_gpt_options) \
  FIELD(rrfp_gpt_options, struct_size) \
  FIELD(rrfp_gpt_options, flags) \
  FIELD(rrfp_gpt_options, vocabulary) \
  FIELD(rrfp_gpt_options, context) \
  FIELD(rrfp_gpt_options, layers) \
  FIELD(rrfp_gpt_options, dim) \
  FIELD(rrfp_gpt_options, heads) \
  FIELD(rrfp_gpt_options, kv_heads) \
  FIELD(rrfp_gpt_options, hidden) \
  FIELD(rrfp_gpt_options, reserved) \
  FIELD(rrfp_gpt_options, dropout) \
  STRUCT(rrfp_model_info) \
  FIELD(rrfp_model_info, struct_size) \
  FIELD(rrfp_model_info, inputs) \
  FIELD(rrfp_model_info, values) \
  FIELD(rrfp_model_info, parameters) \
  FIELD(rrfp_model_info, blocks) \
  FIELD(rrfp_model_info, losses) \
  FIELD(rrfp_model_info, parameter_elements) \
  FIELD(rrfp_model_info, trainable_elements) \
  STRUCT(rrfp_trainer_options) \
  FIELD(rrfp_trainer_options, struct_size) \
  FIELD(rrfp_trainer_options, flags) \
  FIELD(rrfp_trainer_options, stages) \
  FIELD(rrfp_trainer_options, ranks) \
  FIELD(rrfp_trainer_options, placement) \
  FIELD(rrfp_trainer_options, order) \
  FIELD(rrfp_trainer_options, wake) \
  FIELD(rrfp_trainer_options, hold_permille) \
  FIELD(rrfp_trainer_options, first_blocks) \
  FIELD(rrfp_trainer_options, hint) \
  FIELD(rrfp_trainer_options, cap_slots) \
  FIELD(rrfp_trainer_options, cap_bytes) \
  FIELD(rrfp_trainer_options, watchdog_ms) \
  FIELD(rrfp_trainer_options, optimizer) \
  FIELD(rrfp_trainer_options, decay) \
  FIELD(rrfp_trainer_options, lr) \
  FIELD(rrfp_trainer_options, lr_min) \
  FIELD(rrfp_trainer_options, warmup_steps) \
  FIELD(rrfp_trainer_options, decay_steps) \
  FIELD(rrfp_trainer_options, beta1) \
  FIELD(rrfp_trainer_options, beta2) \
  FIELD(rrfp_trainer_options, epsilon) \
  FIELD(rrfp_trainer_options, weight_decay) \
  FIELD(rrfp_trainer_options, momentum) \
  FIELD(rrfp_trainer_options, clip_norm) \
  FIELD(rrfp_trainer_options, reduction) \
  FIELD(rrfp_trainer_options, non_finite) \
  FIELD(rrfp_trainer_options, loss_scale) \
  FIELD(rrfp_trainer_options, loss_scale_growth) \
  FIELD(rrfp_trainer_options, seed) \
  FIELD(rrfp_trainer_options, trace_steps) \
  FIELD(rrfp_trainer_options, injection) \
  FIELD(rrfp_trainer_options, delay_us_max) \
  FIELD(rrfp_trainer_options, log) \
  FIELD(rrfp_trainer_options, log_user_data) \
  FIELD(rrfp_trainer_options, stage_ranks) \
  STRUCT(rrfp_batch) \
  FIELD(rrfp_batch, struct_size) \
  FIELD(rrfp_batch, flags) \
  FIELD(rrfp_batch, microbatches) \
  FIELD(rrfp_batch, rounds) \
  FIELD(rrfp_batch, inputs) \
  FIELD(rrfp_batch, loss_factors) \
  FIELD(rrfp_batch, random_step) \
  STRUCT(rrfp_train_report) \
  FIELD(rrfp_train_report, struct_size) \
  FIELD(rrfp_train_report, flags) \
  FIELD(rrfp_train_report, step) \
  FIELD(rrfp_train_report, loss) \
  FIELD(rrfp_train_report, loss_sum) \
  FIELD(rrfp_train_report, loss_weight) \
  FIELD(rrfp_train_report, gradient_norm) \
  FIELD(rrfp_train_report, lr) \
  FIELD(rrfp_train_report, loss_scale) \
  FIELD(rrfp_train_report, wall_ns) \
  FIELD(rrfp_train_report, total_ns) \
  FIELD(rrfp_train_report, busy_ns) \
  FIELD(rrfp_train_report, wait_input_ns) \
  FIELD(rrfp_train_report, wait_memory_ns) \
  FIELD(rrfp_train_report, wait_credit_ns) \
  FIELD(rrfp_train_report, wait_policy_ns) \
  FIELD(rrfp_train_report, other_ns) \
  FIELD(rrfp_train_report, state_bytes) \
  FIELD(rrfp_train_report, tensor_bytes_peak) \
  STRUCT(rrfp_trainer_info) \
  FIELD(rrfp_trainer_info, struct_size) \
  FIELD(rrfp_trainer_info, stages) \
  FIELD(rrfp_trainer_info, ranks) \
  FIELD(rrfp_trainer_info, parameters) \
  FIELD(rrfp_trainer_info, steps) \
  FIELD(rrfp_trainer_info, updates) \
  FIELD(rrfp_trainer_info, seed) \
  STRUCT(rrfp_stage_report) \
  FIELD(rrfp_stage_report, struct_size) \
  FIELD(rrfp_stage_report, rank) \
  FIELD(rrfp_stage_report, first_block) \
  FIELD(rrfp_stage_report, last_block) \
  FIELD(rrfp_stage_report, branch) \
  FIELD(rrfp_stage_report, microbatches) \
  FIELD(rrfp_stage_report, busy_ns) \
  STRUCT(rrfp_save_options) \
  FIELD(rrfp_save_options, struct_size) \
  FIELD(rrfp_save_options, keep) \
  FIELD(rrfp_save_options, root) \
  FIELD(rrfp_save_options, position) \
  FIELD(rrfp_save_options, user_json) \
  STRUCT(rrfp_data_options) \
  FIELD(rrfp_data_options, struct_size) \
  FIELD(rrfp_data_options, format) \
  FIELD(rrfp_data_options, paths) \
  FIELD(rrfp_data_options, path_count) \
  FIELD(rrfp_data_options, vocabulary) \
  FIELD(rrfp_data_options, context) \
  FIELD(rrfp_data_options, reserved) \
  FIELD(rrfp_data_options, validation_share) \
  FIELD(rrfp_data_options, seed) \
  STRUCT(rrfp_data_info) \
  FIELD(rrfp_data_info, struct_size) \
  FIELD(rrfp_data_info, vocabulary) \
  FIELD(rrfp_data_info, tokens) \
  FIELD(rrfp_data_info, train_windows) \
  FIELD(rrfp_data_info, validation_windows) \
  FIELD(rrfp_data_info, unigram_entropy) \
  STRUCT(rrfp_sampling) \
  FIELD(rrfp_sampling, struct_size) \
  FIELD(rrfp_sampling, top_k) \
  FIELD(rrfp_sampling, temperature) \
  FIELD(rrfp_sampling, top_p) \
  FIELD(rrfp_sampling, seed) \
  STRUCT(rrfp_vision_options) \
  FIELD(rrfp_vision_options, struct_size) \
  FIELD(rrfp_vision_options, flags) \
  FIELD(rrfp_vision_options, image_size) \
  FIELD(rrfp_vision_options, patch) \
  FIELD(rrfp_vision_options, layers) \
  FIELD(rrfp_vision_options, dim) \
  FIELD(rrfp_vision_options, heads) \
  FIELD(rrfp_vision_options, hidden) \
  STRUCT(rrfp_samples_options) \
  FIELD(rrfp_samples_options, struct_size) \
  FIELD(rrfp_samples_options, grouping) \
  FIELD(rrfp_samples_options, path) \
  FIELD(rrfp_samples_options, image_size) \
  FIELD(rrfp_samples_options, image_tokens) \
  FIELD(rrfp_samples_options, context) \
  FIELD(rrfp_samples_options, ahead) \
  FIELD(rrfp_samples_options, validation_share) \
  FIELD(rrfp_samples_options, image_cost) \
  FIELD(rrfp_samples_options, seed) \
  FIELD(rrfp_samples_options, pixels_max) \
  STRUCT(rrfp_samples_info) \
  FIELD(rrfp_samples_info, struct_size) \
  FIELD(rrfp_samples_info, reserved) \
  FIELD(rrfp_samples_info, train_samples) \
  FIELD(rrfp_samples_info, validation_samples) \
  FIELD(rrfp_samples_info, images) \
  FIELD(rrfp_samples_info, images_max) \
  FIELD(rrfp_samples_info, tokens) \
  STRUCT(rrfp_simulation_options) \
  FIELD(rrfp_simulation_options, struct_size) \
  FIELD(rrfp_simulation_options, flags) \
  FIELD(rrfp_simulation_options, preset) \
  FIELD(rrfp_simulation_options, trace) \
  FIELD(rrfp_simulation_options, hint) \
  FIELD(rrfp_simulation_options, order) \
  FIELD(rrfp_simulation_options, stages) \
  FIELD(rrfp_simulation_options, microbatches) \
  FIELD(rrfp_simulation_options, injection) \
  FIELD(rrfp_simulation_options, cap) \
  FIELD(rrfp_simulation_options, offload_ms) \
  FIELD(rrfp_simulation_options, tensor_parallel) \
  FIELD(rrfp_simulation_options, readiness) \
  FIELD(rrfp_simulation_options, data_parallel) \
  FIELD(rrfp_simulation_options, history) \
  FIELD(rrfp_simulation_options, dispatch_ns) \
  FIELD(rrfp_simulation_options, report_ns) \
  STRUCT(rrfp_simulated_step) \
  FIELD(rrfp_simulated_step, struct_size) \
  FIELD(rrfp_simulated_step, ranks) \
  FIELD(rrfp_simulated_step, stages) \
  FIELD(rrfp_simulated_step, microbatches) \
  FIELD(rrfp_simulated_step, makespan_ns) \
  FIELD(rrfp_simulated_step, bound_ns) \
  FIELD(rrfp_simulated_step, peak_bytes) \
  FIELD(rrfp_simulated_step, native_bytes) \
  FIELD(rrfp_simulated_step, tasks) \
  FIELD(rrfp_simulated_step, messages) \
  FIELD(rrfp_simulated_step, offloads) \
  FIELD(rrfp_simulated_step, busy_ns) \
  FIELD(rrfp_simulated_step, wait_input_ns) \
  FIELD(rrfp_simulated_step, wait_memory_ns) \
  FIELD(rrfp_simulated_step, wait_credit_ns) \
  FIELD(rrfp_simulated_step, wait_policy_ns) \
  FIELD(rrfp_simulated_step, wait_group_ns) \
  STRUCT(rrfp_stress_report) \
  FIELD(rrfp_stress_report, struct_size) \
  FIELD(rrfp_stress_report, reserved) \
  FIELD(rrfp_stress_report, cases) \
  FIELD(rrfp_stress_report, stalls) \
  FIELD(rrfp_stress_report, cap_violations) \
  FIELD(rrfp_stress_report, task_errors) \
  FIELD(rrfp_stress_report, failure_errors) \
  FIELD(rrfp_stress_report, refused) \
  FIELD(rrfp_stress_report, faults) \
  FIELD(rrfp_stress_report, bad_seed) \
  FIELD(rrfp_stress_report, bad_case) \
  STRUCT(rrfp_hint_info) \
  FIELD(rrfp_hint_info, struct_size) \
  FIELD(rrfp_hint_info, ranks) \
  FIELD(rrfp_hint_info, stages) \
  FIELD(rrfp_hint_info, microbatches)

#define RRFP_PUBLIC_CONSTANTS(CONSTANT) \
  CONSTANT(RRFP_OK) \
  CONSTANT(RRFP_AGAIN) \
  CONSTANT(RRFP_STEP_DONE) \
  CONSTANT(RRFP_ABSENT) \
  CONSTANT(RRFP_ERR_INVALID_ARGUMENT) \
  CONSTANT(RRFP_ERR_NULL_HANDLE) \
  CONSTANT(RRFP_ERR_STRUCT_SIZE) \
  CONSTANT(RRFP_ERR_OUT_OF_RANGE) \
  CONSTANT(RRFP_ERR_UNKNOWN_NAME) \
  CONSTANT(RRFP_ERR_SYNTAX) \
  CONSTANT(RRFP_ERR_CYCLE) \
  CONSTANT(RRFP_ERR_UNPLACED_STAGE) \
  CONSTANT(RRFP_ERR_CAP_TOO_SMALL) \
  CONSTANT(RRFP_ERR_BAD_ORDER) \
  CONSTANT(RRFP_ERR_TENSOR_MISMATCH) \
  CONSTANT(RRFP_ERR_NO_MEMORY) \
  CONSTANT(RRFP_ERR_HEADER_MISMATCH) \
  CONSTANT(RRFP_ERR_STAGE_FAILED) \
  CONSTANT(RRFP_ERR_BAD_STATE) \
  CONSTANT(RRFP_ERR_BUSY) \
  CONSTANT(RRFP_ERR_TIMEOUT) \
  CONSTANT(RRFP_ERR_CANCELLED) \
  CONSTANT(RRFP_ERR_CLOSED) \
  CONSTANT(RRFP_ERR_FORKED) \
  CONSTANT(RRFP_ERR_INTERNAL) \
  CONSTANT(RRFP_ERROR_TEXT_SIZE) \
  CONSTANT(RRFP_STAGE_LOSS) \
  CONSTANT(RRFP_STAGE_FROZEN) \
  CONSTANT(RRFP_STAGE_INPUT_GRADIENT) \
  CONSTANT(RRFP_STAGE_FUSED_ONLY) \
  CONSTANT(RRFP_EDGE_NO_GRADIENT) \
  CONSTANT(RRFP_PLACEMENT_LINEAR) \
  CONSTANT(RRFP_PLACEMENT_LOOP) \
  CONSTANT(RRFP_PLACEMENT_V) \
  CONSTANT(RRFP_FORWARD) \
  CONSTANT(RRFP_BACKWARD) \
  CONSTANT(RRFP_INPUT_GRADIENT) \
  CONSTANT(RRFP_WEIGHT_GRADIENT) \
  CONSTANT(RRFP_ORDER_DEFAULT) \
  CONSTANT(RRFP_ORDER_READY) \
  CONSTANT(RRFP_ORDER_STRICT) \
  CONSTANT(RRFP_ORDER_PAIRED) \
  CONSTANT(RRFP_WAKE_YIELD) \
  CONSTANT(RRFP_WAKE_SPIN) \
  CONSTANT(RRFP_WAKE_PARK) \
  CONSTANT(RRFP_LOG_INFO) \
  CONSTANT(RRFP_LOG_WARNING) \
  CONSTANT(RRFP_LOG_ERROR) \
  CONSTANT(RRFP_PIPELINE_NONDETERMINISTIC) \
  CONSTANT(RRFP_MODE_TRAIN) \
  CONSTANT(RRFP_MODE_FORWARD) \
  CONSTANT(RRFP_TASK_LOSS) \
  CONSTANT(RRFP_NONE) \
  CONSTANT(RRFP_F32) \
  CONSTANT(RRFP_F64) \
  CONSTANT(RRFP_F16) \
  CONSTANT(RRFP_BF16) \
  CONSTANT(RRFP_I8) \
  CONSTANT(RRFP_I16) \
  CONSTANT(RRFP_I32) \
  CONSTANT(RRFP_I64) \
  CONSTANT(RRFP_U8) \
  CONSTANT(RRFP_U16) \
  CONSTANT(RRFP_U32) \
  CONSTANT(RRFP_U64) \
  CONSTANT(RRFP_BOOL) \
  CONSTANT(RRFP_DIMS_MAX) \
  CONSTANT(RRFP_DEVICE_CPU) \
  CONSTANT(RRFP_TENSOR_WANTS_GRADIENT) \
  CONSTANT(RRFP_EVENT_STAGE_GRADIENTS) \
  CONSTANT(RRFP_EVENT_STAGE_LOSSES) \
  CONSTANT(RRFP_EVENT_STEP_TASKS) \
  CONSTANT(RRFP_ERR_IO) \
  CONSTANT(RRFP_ERR_BAD_DATA) \
  CONSTANT(RRFP_ERR_NON_FINITE) \
  CONSTANT(RRFP_BLOCK_RECOMPUTE) \
  CONSTANT(RRFP_INIT_CONSTANT) \
  CONSTANT(RRFP_INIT_NORMAL) \
  CONSTANT(RRFP_INIT_UNIFORM) \
  CONSTANT(RRFP_PARAMETER_FROZEN) \
  CONSTANT(RRFP_PARAMETER_NO_DECAY) \
  CONSTANT(RRFP_OP_LINEAR) \
  CONSTANT(RRFP_OP_EMBEDDING) \
  CONSTANT(RRFP_OP_POSITIONS) \
  CONSTANT(RRFP_OP_ROTARY) \
  CONSTANT(RRFP_OP_LAYER_NORM) \
  CONSTANT(RRFP_OP_RMS_NORM) \
  CONSTANT(RRFP_OP_GELU) \
  CONSTANT(RRFP_OP_SILU) \
  CONSTANT(RRFP_OP_SWIGLU) \
  CONSTANT(RRFP_OP_ATTENTION) \
  CONSTANT(RRFP_OP_DROPOUT) \
  CONSTANT(RRFP_OP_ADD) \
  CONSTANT(RRFP_OP_MUL) \
  CONSTANT(RRFP_OP_CONCAT) \
  CONSTANT(RRFP_OP_RESHAPE) \
  CONSTANT(RRFP_OP_MEAN) \
  CONSTANT(RRFP_OP_CROSS_ENTROPY) \
  CONSTANT(RRFP_OP_SQUARED_ERROR) \
  CONSTANT(RRFP_OP_PATCHES) \
  CONSTANT(RRFP_OP_MERGE_ROWS) \
  CONSTANT(RRFP_OP_INPUTS_MAX) \
  CONSTANT(RRFP_OP_CAUSAL) \
  CONSTANT(RRFP_GPT_TIED) \
  CONSTANT(RRFP_GPT_ROTARY) \
  CONSTANT(RRFP_GPT_RMS_NORM) \
  CONSTANT(RRFP_GPT_SWIGLU) \
  CONSTANT(RRFP_OPTIMIZER_ADAMW) \
  CONSTANT(RRFP_OPTIMIZER_SGD) \
  CONSTANT(RRFP_DECAY_NONE) \
  CONSTANT(RRFP_DECAY_COSINE) \
  CONSTANT(RRFP_DECAY_LINEAR) \
  CONSTANT(RRFP_REDUCTION_MEAN) \
  CONSTANT(RRFP_REDUCTION_SUM) \
  CONSTANT(RRFP_NON_FINITE_STOP) \
  CONSTANT(RRFP_NON_FINITE_SKIP) \
  CONSTANT(RRFP_TRAINER_NONDETERMINISTIC) \
  CONSTANT(RRFP_TRAINER_RECOMPUTE) \
  CONSTANT(RRFP_BATCH_KEEP_GRADIENTS) \
  CONSTANT(RRFP_TRAIN_SKIPPED) \
  CONSTANT(RRFP_SLOT_WEIGHT) \
  CONSTANT(RRFP_SLOT_GRADIENT) \
  CONSTANT(RRFP_SLOT_MOMENT1) \
  CONSTANT(RRFP_SLOT_MOMENT2) \
  CONSTANT(RRFP_LOAD_WEIGHTS_ONLY) \
  CONSTANT(RRFP_DATA_BYTES) \
  CONSTANT(RRFP_DATA_U16) \
  CONSTANT(RRFP_DATA_U32) \
  CONSTANT(RRFP_SPLIT_TRAIN) \
  CONSTANT(RRFP_SPLIT_VALIDATION) \
  CONSTANT(RRFP_ABI_VERSION) \
  CONSTANT(RRFP_INJECTION_DEFAULT) \
  CONSTANT(RRFP_INJECTION_DATA) \
  CONSTANT(RRFP_INJECTION_TENT) \
  CONSTANT(RRFP_LOWER_FSDP) \
  CONSTANT(RRFP_LOWER_REDUCE) \
  CONSTANT(RRFP_TRAINER_AUTO) \
  CONSTANT(RRFP_SIMULATION_NONDETERMINISTIC) \
  CONSTANT(RRFP_READINESS_ALL) \
  CONSTANT(RRFP_READINESS_LEADER) \
  CONSTANT(RRFP_PICTURE_HTML) \
  CONSTANT(RRFP_PICTURE_SVG) \
  CONSTANT(RRFP_VISION_FROZEN) \
  CONSTANT(RRFP_VISION_CONV_STEM) \
  CONSTANT(RRFP_TOKEN_IMAGE) \
  CONSTANT(RRFP_TOKEN_END) \
  CONSTANT(RRFP_SAMPLES_VOCABULARY) \
  CONSTANT(RRFP_SAMPLES_INPUTS) \
  CONSTANT(RRFP_GROUPING_COUNT) \
  CONSTANT(RRFP_GROUPING_COST)

/* clang-format on */

#endif /* RRFP_TESTS_ABI_PUBLIC_NAMES_H */
