/* SPDX-License-Identifier: Apache-2.0
 *
 * What the public header names besides functions: integer types, structs with their fields,
 * constants. snapshot_test.py checks that nothing of the header is missing here. The numbers of the
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
  INTEGER(rrfp_events)

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
  FIELD(rrfp_pipeline_options, reserved) \
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
  FIELD(rrfp_step_report, tensor_bytes_live)

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
  CONSTANT(RRFP_ABI_VERSION)

/* clang-format on */

#endif /* RRFP_TESTS_ABI_PUBLIC_NAMES_H */
