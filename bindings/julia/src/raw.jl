# SPDX-License-Identifier: Apache-2.0
#
# Made by generate.py from the headers in capi/include/rrfp; do not edit. The headers say what each
# function does. The names are those of C, and nothing here checks anything.
module Raw

"""
The name that the loader knows the library by. RRFP.jl opens the file that RRFP_LIBRARY names first;
the loader then finds that one under this name.
"""
const soname = "librrfp.so.0"

const RRFP_VERSION_MAJOR = Int32(0)
const RRFP_VERSION_MINOR = Int32(1)
const RRFP_VERSION_PATCH = Int32(0)
const RRFP_ABI_VERSION = Int32(0)
const RRFP_OK = Int32(0)
const RRFP_AGAIN = Int32(1)
const RRFP_STEP_DONE = Int32(2)
const RRFP_ABSENT = Int32(3)
const RRFP_ERR_INVALID_ARGUMENT = Int32(-100)
const RRFP_ERR_NULL_HANDLE = Int32(-101)
const RRFP_ERR_STRUCT_SIZE = Int32(-102)
const RRFP_ERR_OUT_OF_RANGE = Int32(-103)
const RRFP_ERR_UNKNOWN_NAME = Int32(-104)
const RRFP_ERR_SYNTAX = Int32(-105)
const RRFP_ERR_CYCLE = Int32(-106)
const RRFP_ERR_UNPLACED_STAGE = Int32(-107)
const RRFP_ERR_CAP_TOO_SMALL = Int32(-108)
const RRFP_ERR_BAD_ORDER = Int32(-109)
const RRFP_ERR_TENSOR_MISMATCH = Int32(-110)
const RRFP_ERR_NO_MEMORY = Int32(-200)
const RRFP_ERR_IO = Int32(-201)
const RRFP_ERR_BAD_DATA = Int32(-202)
const RRFP_ERR_HEADER_MISMATCH = Int32(-300)
const RRFP_ERR_STAGE_FAILED = Int32(-400)
const RRFP_ERR_NON_FINITE = Int32(-401)
const RRFP_ERR_BAD_STATE = Int32(-500)
const RRFP_ERR_BUSY = Int32(-501)
const RRFP_ERR_TIMEOUT = Int32(-502)
const RRFP_ERR_CANCELLED = Int32(-503)
const RRFP_ERR_CLOSED = Int32(-504)
const RRFP_ERR_FORKED = Int32(-505)
const RRFP_ERR_INTERNAL = Int32(-599)
const RRFP_ERROR_TEXT_SIZE = Int32(960)
const RRFP_STAGE_LOSS = UInt32(1)
const RRFP_STAGE_FROZEN = UInt32(2)
const RRFP_STAGE_INPUT_GRADIENT = UInt32(4)
const RRFP_STAGE_FUSED_ONLY = UInt32(8)
const RRFP_EDGE_NO_GRADIENT = UInt32(1)
const RRFP_PLACEMENT_LINEAR = Int32(0)
const RRFP_PLACEMENT_LOOP = Int32(1)
const RRFP_PLACEMENT_V = Int32(2)
const RRFP_FORWARD = Int32(0)
const RRFP_BACKWARD = Int32(1)
const RRFP_INPUT_GRADIENT = Int32(2)
const RRFP_WEIGHT_GRADIENT = Int32(3)
const RRFP_ORDER_DEFAULT = Int32(0)
const RRFP_ORDER_READY = Int32(1)
const RRFP_ORDER_STRICT = Int32(2)
const RRFP_ORDER_PAIRED = Int32(3)
const RRFP_INJECTION_DEFAULT = Int32(0)
const RRFP_INJECTION_DATA = Int32(1)
const RRFP_INJECTION_TENT = Int32(2)
const RRFP_LOWER_FSDP = UInt32(1)
const RRFP_LOWER_REDUCE = UInt32(2)
const RRFP_WAKE_YIELD = Int32(0)
const RRFP_WAKE_SPIN = Int32(1)
const RRFP_WAKE_PARK = Int32(2)
const RRFP_LOG_INFO = Int32(0)
const RRFP_LOG_WARNING = Int32(1)
const RRFP_LOG_ERROR = Int32(2)
const RRFP_PIPELINE_NONDETERMINISTIC = UInt32(1)
const RRFP_MODE_TRAIN = Int32(0)
const RRFP_MODE_FORWARD = Int32(1)
const RRFP_TASK_LOSS = UInt32(1)
const RRFP_NONE = Int32(0)
const RRFP_F32 = Int32(1)
const RRFP_F64 = Int32(2)
const RRFP_F16 = Int32(3)
const RRFP_BF16 = Int32(4)
const RRFP_I8 = Int32(5)
const RRFP_I16 = Int32(6)
const RRFP_I32 = Int32(7)
const RRFP_I64 = Int32(8)
const RRFP_U8 = Int32(9)
const RRFP_U16 = Int32(10)
const RRFP_U32 = Int32(11)
const RRFP_U64 = Int32(12)
const RRFP_BOOL = Int32(13)
const RRFP_DIMS_MAX = Int32(8)
const RRFP_DEVICE_CPU = Int32(1)
const RRFP_TENSOR_WANTS_GRADIENT = UInt32(1)
const RRFP_EVENT_STAGE_GRADIENTS = UInt32(1)
const RRFP_EVENT_STAGE_LOSSES = UInt32(2)
const RRFP_EVENT_STEP_TASKS = UInt32(4)
const RRFP_BLOCK_RECOMPUTE = UInt32(1)
const RRFP_INIT_CONSTANT = Int32(0)
const RRFP_INIT_NORMAL = Int32(1)
const RRFP_INIT_UNIFORM = Int32(2)
const RRFP_PARAMETER_FROZEN = UInt32(1)
const RRFP_PARAMETER_NO_DECAY = UInt32(2)
const RRFP_OP_LINEAR = Int32(1)
const RRFP_OP_EMBEDDING = Int32(2)
const RRFP_OP_POSITIONS = Int32(3)
const RRFP_OP_ROTARY = Int32(4)
const RRFP_OP_LAYER_NORM = Int32(5)
const RRFP_OP_RMS_NORM = Int32(6)
const RRFP_OP_GELU = Int32(7)
const RRFP_OP_SILU = Int32(8)
const RRFP_OP_SWIGLU = Int32(9)
const RRFP_OP_ATTENTION = Int32(10)
const RRFP_OP_DROPOUT = Int32(11)
const RRFP_OP_ADD = Int32(12)
const RRFP_OP_MUL = Int32(13)
const RRFP_OP_CONCAT = Int32(14)
const RRFP_OP_RESHAPE = Int32(15)
const RRFP_OP_MEAN = Int32(16)
const RRFP_OP_CROSS_ENTROPY = Int32(17)
const RRFP_OP_SQUARED_ERROR = Int32(18)
const RRFP_OP_PATCHES = Int32(19)
const RRFP_OP_MERGE_ROWS = Int32(20)
const RRFP_OP_INPUTS_MAX = Int32(16)
const RRFP_OP_CAUSAL = UInt32(1)
const RRFP_GPT_TIED = UInt32(1)
const RRFP_GPT_ROTARY = UInt32(2)
const RRFP_GPT_RMS_NORM = UInt32(4)
const RRFP_GPT_SWIGLU = UInt32(8)
const RRFP_OPTIMIZER_ADAMW = Int32(0)
const RRFP_OPTIMIZER_SGD = Int32(1)
const RRFP_DECAY_NONE = Int32(0)
const RRFP_DECAY_COSINE = Int32(1)
const RRFP_DECAY_LINEAR = Int32(2)
const RRFP_REDUCTION_MEAN = Int32(0)
const RRFP_REDUCTION_SUM = Int32(1)
const RRFP_NON_FINITE_STOP = Int32(0)
const RRFP_NON_FINITE_SKIP = Int32(1)
const RRFP_TRAINER_NONDETERMINISTIC = UInt32(1)
const RRFP_TRAINER_RECOMPUTE = UInt32(2)
const RRFP_TRAINER_AUTO = UInt32(4)
const RRFP_BATCH_KEEP_GRADIENTS = UInt32(1)
const RRFP_TRAIN_SKIPPED = UInt32(1)
const RRFP_SLOT_WEIGHT = Int32(0)
const RRFP_SLOT_GRADIENT = Int32(1)
const RRFP_SLOT_MOMENT1 = Int32(2)
const RRFP_SLOT_MOMENT2 = Int32(3)
const RRFP_LOAD_WEIGHTS_ONLY = UInt32(1)
const RRFP_DATA_BYTES = Int32(0)
const RRFP_DATA_U16 = Int32(1)
const RRFP_DATA_U32 = Int32(2)
const RRFP_SPLIT_TRAIN = Int32(0)
const RRFP_SPLIT_VALIDATION = Int32(1)
const RRFP_SIMULATION_NONDETERMINISTIC = UInt32(1)
const RRFP_READINESS_ALL = Int32(0)
const RRFP_READINESS_LEADER = Int32(1)
const RRFP_PICTURE_HTML = Int32(0)
const RRFP_PICTURE_SVG = Int32(1)
const RRFP_VISION_FROZEN = UInt32(1)
const RRFP_VISION_CONV_STEM = UInt32(2)
const RRFP_TOKEN_IMAGE = Int32(256)
const RRFP_TOKEN_END = Int32(257)
const RRFP_SAMPLES_VOCABULARY = Int32(258)
const RRFP_SAMPLES_INPUTS = Int32(6)
const RRFP_GROUPING_COUNT = Int32(0)
const RRFP_GROUPING_COST = Int32(1)

const rrfp_status = Int32
const rrfp_stage_flags = UInt32
const rrfp_edge_flags = UInt32
const rrfp_placement = Int32
const rrfp_task_kind = Int32
const rrfp_order = Int32
const rrfp_injection = Int32
const rrfp_lower_flags = UInt32
const rrfp_wake = Int32
const rrfp_log_level = Int32
const rrfp_pipeline_flags = UInt32
const rrfp_step_mode = Int32
const rrfp_dtype = Int32
const rrfp_events = UInt32
const rrfp_block_flags = UInt32
const rrfp_init = Int32
const rrfp_parameter_flags = UInt32
const rrfp_op = Int32
const rrfp_op_flags = UInt32
const rrfp_gpt_flags = UInt32
const rrfp_optimizer = Int32
const rrfp_decay = Int32
const rrfp_reduction = Int32
const rrfp_non_finite = Int32
const rrfp_trainer_flags = UInt32
const rrfp_batch_flags = UInt32
const rrfp_train_flags = UInt32
const rrfp_slot = Int32
const rrfp_load_flags = UInt32
const rrfp_data_format = Int32
const rrfp_split = Int32
const rrfp_simulation_flags = UInt32
const rrfp_readiness = Int32
const rrfp_picture = Int32
const rrfp_vision_flags = UInt32
const rrfp_grouping = Int32

mutable struct rrfp_graph end
mutable struct rrfp_hint end
mutable struct rrfp_pipeline end
mutable struct rrfp_rank end
mutable struct rrfp_buffer end
mutable struct DLManagedTensor end
mutable struct rrfp_model end
mutable struct rrfp_trainer end
mutable struct rrfp_data end
mutable struct rrfp_generator end
mutable struct rrfp_simulation end
mutable struct rrfp_samples end

mutable struct rrfp_error
    status::rrfp_status
    rank::Int32
    stage::Int32
    microbatch::Int32
    kind::Int32
    user_code::Int32
    reserved::NTuple{10, Int32}
    text::NTuple{960, UInt8}
    rrfp_error() = new()
end

mutable struct rrfp_stage_options
    struct_size::UInt32
    flags::rrfp_stage_flags
    rank::Int32
    reserved::Int32
    activation_bytes::Int64
    forward_ns::Int64
    input_gradient_ns::Int64
    weight_gradient_ns::Int64
    rrfp_stage_options() = (value = new(); rrfp_stage_options_init(value); value)
end

struct rrfp_hint_task
    rank::Int32
    stage::Int32
    kind::Int32
    microbatch::Int32
    priority::Int64
end

mutable struct rrfp_hint_info
    struct_size::UInt32
    ranks::Int32
    stages::Int32
    microbatches::Int32
    rrfp_hint_info() = (value = new(); rrfp_hint_info_init(value); value)
end

mutable struct rrfp_pipeline_options
    struct_size::UInt32
    flags::rrfp_pipeline_flags
    order::rrfp_order
    wake::rrfp_wake
    cap_slots::Int64
    cap_bytes::Int64
    rank_cap_slots::Ptr{Int64}
    rank_cap_bytes::Ptr{Int64}
    credits::Int32
    hold_permille::Int32
    mailbox_capacity::UInt32
    trace_steps::Int32
    watchdog_ms::Int64
    log::Ptr{Cvoid}
    log_user_data::Ptr{Cvoid}
    rrfp_pipeline_options() = (value = new(); rrfp_pipeline_options_init(value); value)
end

mutable struct rrfp_step_options
    struct_size::UInt32
    mode::rrfp_step_mode
    step::Int64
    microbatches::Int32
    order::rrfp_order
    hint::Ptr{rrfp_hint}
    skip::Ptr{UInt8}
    activation_bytes::Ptr{Int64}
    rrfp_step_options() = (value = new(); rrfp_step_options_init(value); value)
end

mutable struct rrfp_task
    struct_size::UInt32
    flags::UInt32
    ticket::UInt64
    stage::Int32
    microbatch::Int32
    kind::rrfp_task_kind
    reserved::Int32
    rrfp_task() = (value = new(); rrfp_task_init(value); value)
end

struct rrfp_tensor
    data::Ptr{Cvoid}
    buffer::Ptr{rrfp_buffer}
    shape::NTuple{8, Int64}
    strides::NTuple{8, Int64}
    ndim::Int32
    dtype::rrfp_dtype
    device_type::Int32
    device_id::Int32
    flags::UInt32
    reserved::UInt32
end

mutable struct rrfp_step_report
    struct_size::UInt32
    rank::Int32
    step::Int64
    total_ns::Int64
    busy_ns::Int64
    wait_input_ns::Int64
    wait_memory_ns::Int64
    wait_credit_ns::Int64
    wait_policy_ns::Int64
    other_ns::Int64
    tasks::Int64
    messages_sent::Int64
    peak_slots::Int64
    peak_bytes::Int64
    tensor_bytes_peak::Int64
    tensor_bytes_live::Int64
    rrfp_step_report() = (value = new(); rrfp_step_report_init(value); value)
end

mutable struct rrfp_parameter_options
    struct_size::UInt32
    flags::rrfp_parameter_flags
    name::Ptr{UInt8}
    shape::Ptr{Int64}
    ndim::Int32
    init::rrfp_init
    init_value::Cdouble
    init_scale::Cdouble
    rrfp_parameter_options() = (value = new(); rrfp_parameter_options_init(value); value)
end

mutable struct rrfp_operation
    struct_size::UInt32
    op::rrfp_op
    inputs::Ptr{Int32}
    parameters::Ptr{Int32}
    input_count::Int32
    parameter_count::Int32
    flags::rrfp_op_flags
    axis::Int32
    heads::Int32
    kv_heads::Int32
    head_dim::Int32
    ignore_index::Int32
    probability::Cdouble
    epsilon::Cdouble
    base::Cdouble
    shape::Ptr{Int64}
    ndim::Int32
    kernel::Int32
    stride::Int32
    padding::Int32
    rrfp_operation() = (value = new(); rrfp_operation_init(value); value)
end

mutable struct rrfp_gpt_options
    struct_size::UInt32
    flags::rrfp_gpt_flags
    vocabulary::Int32
    context::Int32
    layers::Int32
    dim::Int32
    heads::Int32
    kv_heads::Int32
    hidden::Int32
    reserved::Int32
    dropout::Cdouble
    rrfp_gpt_options() = (value = new(); rrfp_gpt_options_init(value); value)
end

mutable struct rrfp_model_info
    struct_size::UInt32
    inputs::Int32
    values::Int32
    parameters::Int32
    blocks::Int32
    losses::Int32
    parameter_elements::Int64
    trainable_elements::Int64
    rrfp_model_info() = (value = new(); rrfp_model_info_init(value); value)
end

mutable struct rrfp_trainer_options
    struct_size::UInt32
    flags::rrfp_trainer_flags
    stages::Int32
    ranks::Int32
    placement::rrfp_placement
    order::rrfp_order
    wake::rrfp_wake
    hold_permille::Int32
    first_blocks::Ptr{Int32}
    hint::Ptr{rrfp_hint}
    cap_slots::Int64
    cap_bytes::Int64
    watchdog_ms::Int64
    optimizer::rrfp_optimizer
    decay::rrfp_decay
    lr::Cdouble
    lr_min::Cdouble
    warmup_steps::Int64
    decay_steps::Int64
    beta1::Cdouble
    beta2::Cdouble
    epsilon::Cdouble
    weight_decay::Cdouble
    momentum::Cdouble
    clip_norm::Cdouble
    reduction::rrfp_reduction
    non_finite::rrfp_non_finite
    loss_scale::Cdouble
    loss_scale_growth::Int64
    seed::UInt64
    trace_steps::Int32
    injection::rrfp_injection
    delay_us_max::Int64
    log::Ptr{Cvoid}
    log_user_data::Ptr{Cvoid}
    stage_ranks::Ptr{Int32}
    rrfp_trainer_options() = (value = new(); rrfp_trainer_options_init(value); value)
end

mutable struct rrfp_batch
    struct_size::UInt32
    flags::rrfp_batch_flags
    microbatches::Int32
    rounds::Int32
    inputs::Ptr{rrfp_tensor}
    loss_factors::Ptr{Cdouble}
    random_step::Int64
    rrfp_batch() = (value = new(); rrfp_batch_init(value); value)
end

mutable struct rrfp_train_report
    struct_size::UInt32
    flags::rrfp_train_flags
    step::Int64
    loss::Cdouble
    loss_sum::Cdouble
    loss_weight::Cdouble
    gradient_norm::Cdouble
    lr::Cdouble
    loss_scale::Cdouble
    wall_ns::Int64
    total_ns::Int64
    busy_ns::Int64
    wait_input_ns::Int64
    wait_memory_ns::Int64
    wait_credit_ns::Int64
    wait_policy_ns::Int64
    other_ns::Int64
    state_bytes::Int64
    tensor_bytes_peak::Int64
    rrfp_train_report() = (value = new(); rrfp_train_report_init(value); value)
end

mutable struct rrfp_trainer_info
    struct_size::UInt32
    stages::Int32
    ranks::Int32
    parameters::Int32
    steps::Int64
    updates::Int64
    seed::UInt64
    rrfp_trainer_info() = (value = new(); rrfp_trainer_info_init(value); value)
end

mutable struct rrfp_stage_report
    struct_size::UInt32
    rank::Int32
    first_block::Int32
    last_block::Int32
    branch::Int32
    microbatches::Int32
    busy_ns::Int64
    rrfp_stage_report() = (value = new(); rrfp_stage_report_init(value); value)
end

mutable struct rrfp_save_options
    struct_size::UInt32
    keep::Int32
    root::Ptr{UInt8}
    position::UInt64
    user_json::Ptr{UInt8}
    rrfp_save_options() = (value = new(); rrfp_save_options_init(value); value)
end

mutable struct rrfp_data_options
    struct_size::UInt32
    format::rrfp_data_format
    paths::Ptr{Ptr{UInt8}}
    path_count::Int32
    vocabulary::Int32
    context::Int32
    reserved::Int32
    validation_share::Cdouble
    seed::UInt64
    rrfp_data_options() = (value = new(); rrfp_data_options_init(value); value)
end

mutable struct rrfp_data_info
    struct_size::UInt32
    vocabulary::Int32
    tokens::Int64
    train_windows::Int64
    validation_windows::Int64
    unigram_entropy::Cdouble
    rrfp_data_info() = (value = new(); rrfp_data_info_init(value); value)
end

mutable struct rrfp_sampling
    struct_size::UInt32
    top_k::Int32
    temperature::Cdouble
    top_p::Cdouble
    seed::UInt64
    rrfp_sampling() = (value = new(); rrfp_sampling_init(value); value)
end

mutable struct rrfp_simulation_options
    struct_size::UInt32
    flags::rrfp_simulation_flags
    preset::Ptr{UInt8}
    trace::Ptr{UInt8}
    hint::Ptr{UInt8}
    order::rrfp_order
    stages::Int32
    microbatches::Int32
    injection::rrfp_injection
    cap::Cdouble
    offload_ms::Cdouble
    tensor_parallel::Int32
    readiness::rrfp_readiness
    data_parallel::Int32
    history::Int32
    dispatch_ns::Int64
    report_ns::Int64
    rrfp_simulation_options() = (value = new(); rrfp_simulation_options_init(value); value)
end

mutable struct rrfp_simulated_step
    struct_size::UInt32
    ranks::Int32
    stages::Int32
    microbatches::Int32
    makespan_ns::Int64
    bound_ns::Int64
    peak_bytes::Int64
    native_bytes::Int64
    tasks::Int64
    messages::Int64
    offloads::Int64
    busy_ns::Int64
    wait_input_ns::Int64
    wait_memory_ns::Int64
    wait_credit_ns::Int64
    wait_policy_ns::Int64
    wait_group_ns::Int64
    rrfp_simulated_step() = (value = new(); rrfp_simulated_step_init(value); value)
end

mutable struct rrfp_stress_report
    struct_size::UInt32
    reserved::UInt32
    cases::Int64
    stalls::Int64
    cap_violations::Int64
    task_errors::Int64
    failure_errors::Int64
    refused::Int64
    faults::Int64
    bad_seed::UInt64
    bad_case::NTuple{512, UInt8}
    rrfp_stress_report() = (value = new(); rrfp_stress_report_init(value); value)
end

mutable struct rrfp_vision_options
    struct_size::UInt32
    flags::rrfp_vision_flags
    image_size::Int32
    patch::Int32
    layers::Int32
    dim::Int32
    heads::Int32
    hidden::Int32
    rrfp_vision_options() = (value = new(); rrfp_vision_options_init(value); value)
end

mutable struct rrfp_samples_options
    struct_size::UInt32
    grouping::rrfp_grouping
    path::Ptr{UInt8}
    image_size::Int32
    image_tokens::Int32
    context::Int32
    ahead::Int32
    validation_share::Cdouble
    image_cost::Cdouble
    seed::UInt64
    pixels_max::Int64
    rrfp_samples_options() = (value = new(); rrfp_samples_options_init(value); value)
end

mutable struct rrfp_samples_info
    struct_size::UInt32
    reserved::Int32
    train_samples::Int64
    validation_samples::Int64
    images::Int64
    images_max::Int64
    tokens::Int64
    rrfp_samples_info() = (value = new(); rrfp_samples_info_init(value); value)
end

rrfp_version() = ccall((:rrfp_version, soname), UInt32, ())
rrfp_abi_version() = ccall((:rrfp_abi_version, soname), UInt32, ())
rrfp_status_name(status) = ccall((:rrfp_status_name, soname), Cstring, (rrfp_status,), status)
rrfp_stage_options_init(options) =
    ccall((:rrfp_stage_options_init, soname), Cvoid, (Ref{rrfp_stage_options},), options)
rrfp_graph_create(ranks, out, error) =
    ccall((:rrfp_graph_create, soname), rrfp_status, (Int32, Ptr{Ptr{rrfp_graph}},
          Ref{rrfp_error},), ranks, out, error)
rrfp_graph_destroy(graph) = ccall((:rrfp_graph_destroy, soname), Cvoid, (Ptr{rrfp_graph},), graph)
rrfp_graph_add_stage(graph, options, out_stage, error) =
    ccall((:rrfp_graph_add_stage, soname), rrfp_status, (Ptr{rrfp_graph}, Ref{rrfp_stage_options},
          Ptr{Int32}, Ref{rrfp_error},), graph, options, out_stage, error)
rrfp_graph_add_edge(graph, from, to, flags, out_edge, error) =
    ccall((:rrfp_graph_add_edge, soname), rrfp_status, (Ptr{rrfp_graph}, Int32, Int32,
          rrfp_edge_flags, Ptr{Int32}, Ref{rrfp_error},), graph, from, to, flags, out_edge, error)
rrfp_graph_declare_tensor(graph, edge, dtype, ndim, shape, flags, error) =
    ccall((:rrfp_graph_declare_tensor, soname), rrfp_status, (Ptr{rrfp_graph}, Int32, Int32, Int32,
          Ptr{Int64}, UInt32, Ref{rrfp_error},), graph, edge, dtype, ndim, shape, flags, error)
rrfp_graph_place(graph, placement, error) =
    ccall((:rrfp_graph_place, soname), rrfp_status, (Ptr{rrfp_graph}, rrfp_placement,
          Ref{rrfp_error},), graph, placement, error)
rrfp_graph_place_stage(graph, stage, rank, error) =
    ccall((:rrfp_graph_place_stage, soname), rrfp_status, (Ptr{rrfp_graph}, Int32, Int32,
          Ref{rrfp_error},), graph, stage, rank, error)
rrfp_graph_check(graph, error) =
    ccall((:rrfp_graph_check, soname), rrfp_status, (Ptr{rrfp_graph}, Ref{rrfp_error},), graph,
          error)
rrfp_hint_create(name, out, error) =
    ccall((:rrfp_hint_create, soname), rrfp_status, (Cstring, Ptr{Ptr{rrfp_hint}},
          Ref{rrfp_error},), name, out, error)
rrfp_hint_create_from_tasks(ranks, tasks, count, out, error) =
    ccall((:rrfp_hint_create_from_tasks, soname), rrfp_status, (Int32, Ptr{rrfp_hint_task},
          Csize_t, Ptr{Ptr{rrfp_hint}}, Ref{rrfp_error},), ranks, tasks, count, out, error)
rrfp_hint_create_from_priorities(tasks, count, out, error) =
    ccall((:rrfp_hint_create_from_priorities, soname), rrfp_status, (Ptr{rrfp_hint_task}, Csize_t,
          Ptr{Ptr{rrfp_hint}}, Ref{rrfp_error},), tasks, count, out, error)
rrfp_hint_create_from_text(text, length, out, error) =
    ccall((:rrfp_hint_create_from_text, soname), rrfp_status, (Ptr{UInt8}, Csize_t,
          Ptr{Ptr{rrfp_hint}}, Ref{rrfp_error},), text, length, out, error)
rrfp_hint_destroy(hint) = ccall((:rrfp_hint_destroy, soname), Cvoid, (Ptr{rrfp_hint},), hint)
rrfp_hint_note(hint, buffer, capacity, out_size, error) =
    ccall((:rrfp_hint_note, soname), rrfp_status, (Ptr{rrfp_hint}, Ptr{UInt8}, Csize_t,
          Ptr{Csize_t}, Ref{rrfp_error},), hint, buffer, capacity, out_size, error)
rrfp_hint_info_init(info) =
    ccall((:rrfp_hint_info_init, soname), Cvoid, (Ref{rrfp_hint_info},), info)
rrfp_hint_get_info(hint, out, error) =
    ccall((:rrfp_hint_get_info, soname), rrfp_status, (Ptr{rrfp_hint}, Ref{rrfp_hint_info},
          Ref{rrfp_error},), hint, out, error)
rrfp_hint_to_text(hint, graph, microbatches, buffer, capacity, out_size, error) =
    ccall((:rrfp_hint_to_text, soname), rrfp_status, (Ptr{rrfp_hint}, Ptr{rrfp_graph}, Int32,
          Ptr{UInt8}, Csize_t, Ptr{Csize_t}, Ref{rrfp_error},), hint, graph, microbatches, buffer,
          capacity, out_size, error)
rrfp_hint_lower(hint, graph, microbatches, flags, buffer, capacity, out_size, error) =
    ccall((:rrfp_hint_lower, soname), rrfp_status, (Ptr{rrfp_hint}, Ptr{rrfp_graph}, Int32,
          rrfp_lower_flags, Ptr{UInt8}, Csize_t, Ptr{Csize_t}, Ref{rrfp_error},), hint, graph,
          microbatches, flags, buffer, capacity, out_size, error)
rrfp_hint_layout(name, out_placement, out_chunks, out_streams, error) =
    ccall((:rrfp_hint_layout, soname), rrfp_status, (Cstring, Ptr{Int32}, Ptr{Int32}, Ptr{Int32},
          Ref{rrfp_error},), name, out_placement, out_chunks, out_streams, error)
rrfp_hint_write_trace(hint, graph, microbatches, path, error) =
    ccall((:rrfp_hint_write_trace, soname), rrfp_status, (Ptr{rrfp_hint}, Ptr{rrfp_graph}, Int32,
          Cstring, Ref{rrfp_error},), hint, graph, microbatches, path, error)
rrfp_hint_check(hint, graph, microbatches, order, error) =
    ccall((:rrfp_hint_check, soname), rrfp_status, (Ptr{rrfp_hint}, Ptr{rrfp_graph}, Int32,
          rrfp_order, Ref{rrfp_error},), hint, graph, microbatches, order, error)
rrfp_graph_place_by_hint(graph, hint, error) =
    ccall((:rrfp_graph_place_by_hint, soname), rrfp_status, (Ptr{rrfp_graph}, Ptr{rrfp_hint},
          Ref{rrfp_error},), graph, hint, error)
rrfp_pipeline_options_init(options) =
    ccall((:rrfp_pipeline_options_init, soname), Cvoid, (Ref{rrfp_pipeline_options},), options)
rrfp_pipeline_create(graph, options, out, error) =
    ccall((:rrfp_pipeline_create, soname), rrfp_status, (Ptr{rrfp_graph},
          Ref{rrfp_pipeline_options}, Ptr{Ptr{rrfp_pipeline}}, Ref{rrfp_error},), graph, options,
          out, error)
rrfp_pipeline_destroy(pipeline) =
    ccall((:rrfp_pipeline_destroy, soname), Cvoid, (Ptr{rrfp_pipeline},), pipeline)
rrfp_pipeline_cancel(pipeline, reason, error) =
    ccall((:rrfp_pipeline_cancel, soname), rrfp_status, (Ptr{rrfp_pipeline}, Cstring,
          Ref{rrfp_error},), pipeline, reason, error)
rrfp_pipeline_reset(pipeline, error) =
    ccall((:rrfp_pipeline_reset, soname), rrfp_status, (Ptr{rrfp_pipeline}, Ref{rrfp_error},),
          pipeline, error)
rrfp_pipeline_write_trace(pipeline, path, error) =
    ccall((:rrfp_pipeline_write_trace, soname), rrfp_status, (Ptr{rrfp_pipeline}, Cstring,
          Ref{rrfp_error},), pipeline, path, error)
rrfp_pipeline_report(pipeline, buffer, capacity, out_size, error) =
    ccall((:rrfp_pipeline_report, soname), rrfp_status, (Ptr{rrfp_pipeline}, Ptr{UInt8}, Csize_t,
          Ptr{Csize_t}, Ref{rrfp_error},), pipeline, buffer, capacity, out_size, error)
rrfp_rank_create(pipeline, rank, out, error) =
    ccall((:rrfp_rank_create, soname), rrfp_status, (Ptr{rrfp_pipeline}, Int32,
          Ptr{Ptr{rrfp_rank}}, Ref{rrfp_error},), pipeline, rank, out, error)
rrfp_rank_destroy(rank) = ccall((:rrfp_rank_destroy, soname), Cvoid, (Ptr{rrfp_rank},), rank)
rrfp_step_options_init(options) =
    ccall((:rrfp_step_options_init, soname), Cvoid, (Ref{rrfp_step_options},), options)
rrfp_rank_begin_step(rank, options, error) =
    ccall((:rrfp_rank_begin_step, soname), rrfp_status, (Ptr{rrfp_rank}, Ref{rrfp_step_options},
          Ref{rrfp_error},), rank, options, error)
rrfp_task_init(task) = ccall((:rrfp_task_init, soname), Cvoid, (Ref{rrfp_task},), task)
rrfp_rank_next(rank, timeout_us, out, error) =
    ccall((:rrfp_rank_next, soname), rrfp_status, (Ptr{rrfp_rank}, Int64, Ref{rrfp_task},
          Ref{rrfp_error},), rank, timeout_us, out, error)
rrfp_rank_wake(rank, error) =
    ccall((:rrfp_rank_wake, soname), rrfp_status, (Ptr{rrfp_rank}, Ref{rrfp_error},), rank, error)
rrfp_rank_input(rank, ticket, edge, tensors, capacity, out_count, out_opaque, error) =
    ccall((:rrfp_rank_input, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64, Int32,
          Ptr{rrfp_tensor}, Csize_t, Ptr{Csize_t}, Ptr{Ptr{Cvoid}}, Ref{rrfp_error},), rank,
          ticket, edge, tensors, capacity, out_count, out_opaque, error)
rrfp_rank_alloc(rank, ticket, dtype, ndim, shape, out, error) =
    ccall((:rrfp_rank_alloc, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64, rrfp_dtype, Int32,
          Ptr{Int64}, Ptr{rrfp_tensor}, Ref{rrfp_error},), rank, ticket, dtype, ndim, shape, out,
          error)
rrfp_rank_wrap(rank, ticket, data, bytes, release, user_data, out, error) =
    ccall((:rrfp_rank_wrap, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64, Ptr{Cvoid}, Csize_t,
          Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Ptr{rrfp_buffer}}, Ref{rrfp_error},), rank, ticket, data,
          bytes, release, user_data, out, error)
rrfp_buffer_retain(buffer) =
    ccall((:rrfp_buffer_retain, soname), Cvoid, (Ptr{rrfp_buffer},), buffer)
rrfp_buffer_release(buffer) =
    ccall((:rrfp_buffer_release, soname), Cvoid, (Ptr{rrfp_buffer},), buffer)
rrfp_rank_put(rank, ticket, edge, tensors, count, opaque, error) =
    ccall((:rrfp_rank_put, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64, Int32, Ptr{rrfp_tensor},
          Csize_t, Ptr{Cvoid}, Ref{rrfp_error},), rank, ticket, edge, tensors, count, opaque, error)
rrfp_rank_output_wanted(rank, ticket, edge, error) =
    ccall((:rrfp_rank_output_wanted, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64, Int32,
          Ref{rrfp_error},), rank, ticket, edge, error)
rrfp_tensor_from_dlpack(managed, out, error) =
    ccall((:rrfp_tensor_from_dlpack, soname), rrfp_status, (Ptr{DLManagedTensor}, Ptr{rrfp_tensor},
          Ref{rrfp_error},), managed, out, error)
rrfp_rank_wrap_dlpack(rank, ticket, managed, out, error) =
    ccall((:rrfp_rank_wrap_dlpack, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64,
          Ptr{DLManagedTensor}, Ptr{rrfp_tensor}, Ref{rrfp_error},), rank, ticket, managed, out,
          error)
rrfp_tensor_to_dlpack(tensor, out, error) =
    ccall((:rrfp_tensor_to_dlpack, soname), rrfp_status, (Ptr{rrfp_tensor},
          Ptr{Ptr{DLManagedTensor}}, Ref{rrfp_error},), tensor, out, error)
rrfp_rank_done(rank, ticket, out_events, error) =
    ccall((:rrfp_rank_done, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64, Ptr{rrfp_events},
          Ref{rrfp_error},), rank, ticket, out_events, error)
rrfp_rank_fail(rank, ticket, code, text, error) =
    ccall((:rrfp_rank_fail, soname), rrfp_status, (Ptr{rrfp_rank}, UInt64, Int32, Cstring,
          Ref{rrfp_error},), rank, ticket, code, text, error)
rrfp_step_report_init(report) =
    ccall((:rrfp_step_report_init, soname), Cvoid, (Ref{rrfp_step_report},), report)
rrfp_rank_end_step(rank, out, error) =
    ccall((:rrfp_rank_end_step, soname), rrfp_status, (Ptr{rrfp_rank}, Ref{rrfp_step_report},
          Ref{rrfp_error},), rank, out, error)
rrfp_model_create(out, error) =
    ccall((:rrfp_model_create, soname), rrfp_status, (Ptr{Ptr{rrfp_model}}, Ref{rrfp_error},), out,
          error)
rrfp_model_destroy(model) = ccall((:rrfp_model_destroy, soname), Cvoid, (Ptr{rrfp_model},), model)
rrfp_model_begin_block(model, name, flags, out_block, error) =
    ccall((:rrfp_model_begin_block, soname), rrfp_status, (Ptr{rrfp_model}, Cstring,
          rrfp_block_flags, Ptr{Int32}, Ref{rrfp_error},), model, name, flags, out_block, error)
rrfp_model_add_input(model, name, dtype, ndim, shape, out_value, error) =
    ccall((:rrfp_model_add_input, soname), rrfp_status, (Ptr{rrfp_model}, Cstring, rrfp_dtype,
          Int32, Ptr{Int64}, Ptr{Int32}, Ref{rrfp_error},), model, name, dtype, ndim, shape,
          out_value, error)
rrfp_parameter_options_init(options) =
    ccall((:rrfp_parameter_options_init, soname), Cvoid, (Ref{rrfp_parameter_options},), options)
rrfp_model_add_parameter(model, options, out_parameter, error) =
    ccall((:rrfp_model_add_parameter, soname), rrfp_status, (Ptr{rrfp_model},
          Ref{rrfp_parameter_options}, Ptr{Int32}, Ref{rrfp_error},), model, options,
          out_parameter, error)
rrfp_operation_init(operation) =
    ccall((:rrfp_operation_init, soname), Cvoid, (Ref{rrfp_operation},), operation)
rrfp_model_add_operation(model, operation, out_value, error) =
    ccall((:rrfp_model_add_operation, soname), rrfp_status, (Ptr{rrfp_model}, Ref{rrfp_operation},
          Ptr{Int32}, Ref{rrfp_error},), model, operation, out_value, error)
rrfp_model_set_loss(model, value, error) =
    ccall((:rrfp_model_set_loss, soname), rrfp_status, (Ptr{rrfp_model}, Int32, Ref{rrfp_error},),
          model, value, error)
rrfp_model_add_loss(model, value, factor, error) =
    ccall((:rrfp_model_add_loss, soname), rrfp_status, (Ptr{rrfp_model}, Int32, Cdouble,
          Ref{rrfp_error},), model, value, factor, error)
rrfp_model_set_output(model, value, error) =
    ccall((:rrfp_model_set_output, soname), rrfp_status, (Ptr{rrfp_model}, Int32,
          Ref{rrfp_error},), model, value, error)
rrfp_gpt_options_init(options) =
    ccall((:rrfp_gpt_options_init, soname), Cvoid, (Ref{rrfp_gpt_options},), options)
rrfp_model_create_gpt(options, out, error) =
    ccall((:rrfp_model_create_gpt, soname), rrfp_status, (Ref{rrfp_gpt_options},
          Ptr{Ptr{rrfp_model}}, Ref{rrfp_error},), options, out, error)
rrfp_model_create_from_checkpoint(path, out, error) =
    ccall((:rrfp_model_create_from_checkpoint, soname), rrfp_status, (Cstring,
          Ptr{Ptr{rrfp_model}}, Ref{rrfp_error},), path, out, error)
rrfp_model_info_init(info) =
    ccall((:rrfp_model_info_init, soname), Cvoid, (Ref{rrfp_model_info},), info)
rrfp_model_get_info(model, out, error) =
    ccall((:rrfp_model_get_info, soname), rrfp_status, (Ptr{rrfp_model}, Ref{rrfp_model_info},
          Ref{rrfp_error},), model, out, error)
rrfp_model_value_shape(model, value, out_ndim, shape, error) =
    ccall((:rrfp_model_value_shape, soname), rrfp_status, (Ptr{rrfp_model}, Int32, Ptr{Int32},
          Ptr{Int64}, Ref{rrfp_error},), model, value, out_ndim, shape, error)
rrfp_model_parameter_name(model, parameter, buffer, capacity, out_size, error) =
    ccall((:rrfp_model_parameter_name, soname), rrfp_status, (Ptr{rrfp_model}, Int32, Ptr{UInt8},
          Csize_t, Ptr{Csize_t}, Ref{rrfp_error},), model, parameter, buffer, capacity, out_size,
          error)
rrfp_model_parameter_shape(model, parameter, out_ndim, shape, error) =
    ccall((:rrfp_model_parameter_shape, soname), rrfp_status, (Ptr{rrfp_model}, Int32, Ptr{Int32},
          Ptr{Int64}, Ref{rrfp_error},), model, parameter, out_ndim, shape, error)
rrfp_model_describe(model, buffer, capacity, out_size, error) =
    ccall((:rrfp_model_describe, soname), rrfp_status, (Ptr{rrfp_model}, Ptr{UInt8}, Csize_t,
          Ptr{Csize_t}, Ref{rrfp_error},), model, buffer, capacity, out_size, error)
rrfp_model_measure(model, inputs, block_ns, error) =
    ccall((:rrfp_model_measure, soname), rrfp_status, (Ptr{rrfp_model}, Ptr{rrfp_tensor},
          Ptr{Int64}, Ref{rrfp_error},), model, inputs, block_ns, error)
rrfp_model_partition(model, stages, block_costs, first_blocks, error) =
    ccall((:rrfp_model_partition, soname), rrfp_status, (Ptr{rrfp_model}, Int32, Ptr{Int64},
          Ptr{Int32}, Ref{rrfp_error},), model, stages, block_costs, first_blocks, error)
rrfp_model_place(model, stages, ranks, block_costs, first_blocks, stage_ranks, error) =
    ccall((:rrfp_model_place, soname), rrfp_status, (Ptr{rrfp_model}, Int32, Int32, Ptr{Int64},
          Ptr{Int32}, Ptr{Int32}, Ref{rrfp_error},), model, stages, ranks, block_costs,
          first_blocks, stage_ranks, error)
rrfp_trainer_options_init(options) =
    ccall((:rrfp_trainer_options_init, soname), Cvoid, (Ref{rrfp_trainer_options},), options)
rrfp_trainer_create(model, options, out, error) =
    ccall((:rrfp_trainer_create, soname), rrfp_status, (Ptr{rrfp_model}, Ref{rrfp_trainer_options},
          Ptr{Ptr{rrfp_trainer}}, Ref{rrfp_error},), model, options, out, error)
rrfp_trainer_destroy(trainer) =
    ccall((:rrfp_trainer_destroy, soname), Cvoid, (Ptr{rrfp_trainer},), trainer)
rrfp_batch_init(batch) = ccall((:rrfp_batch_init, soname), Cvoid, (Ref{rrfp_batch},), batch)
rrfp_train_report_init(report) =
    ccall((:rrfp_train_report_init, soname), Cvoid, (Ref{rrfp_train_report},), report)
rrfp_trainer_step(trainer, batch, out, error) =
    ccall((:rrfp_trainer_step, soname), rrfp_status, (Ptr{rrfp_trainer}, Ref{rrfp_batch},
          Ref{rrfp_train_report}, Ref{rrfp_error},), trainer, batch, out, error)
rrfp_trainer_evaluate(trainer, batch, out, error) =
    ccall((:rrfp_trainer_evaluate, soname), rrfp_status, (Ptr{rrfp_trainer}, Ref{rrfp_batch},
          Ref{rrfp_train_report}, Ref{rrfp_error},), trainer, batch, out, error)
rrfp_trainer_cancel(trainer, error) =
    ccall((:rrfp_trainer_cancel, soname), rrfp_status, (Ptr{rrfp_trainer}, Ref{rrfp_error},),
          trainer, error)
rrfp_trainer_info_init(info) =
    ccall((:rrfp_trainer_info_init, soname), Cvoid, (Ref{rrfp_trainer_info},), info)
rrfp_trainer_get_info(trainer, out, error) =
    ccall((:rrfp_trainer_get_info, soname), rrfp_status, (Ptr{rrfp_trainer},
          Ref{rrfp_trainer_info}, Ref{rrfp_error},), trainer, out, error)
rrfp_trainer_rank_report(trainer, rank, out, error) =
    ccall((:rrfp_trainer_rank_report, soname), rrfp_status, (Ptr{rrfp_trainer}, Int32,
          Ref{rrfp_step_report}, Ref{rrfp_error},), trainer, rank, out, error)
rrfp_stage_report_init(report) =
    ccall((:rrfp_stage_report_init, soname), Cvoid, (Ref{rrfp_stage_report},), report)
rrfp_trainer_stage_report(trainer, stage, out, error) =
    ccall((:rrfp_trainer_stage_report, soname), rrfp_status, (Ptr{rrfp_trainer}, Int32,
          Ref{rrfp_stage_report}, Ref{rrfp_error},), trainer, stage, out, error)
rrfp_trainer_first_blocks(trainer, first_blocks, error) =
    ccall((:rrfp_trainer_first_blocks, soname), rrfp_status, (Ptr{rrfp_trainer}, Ptr{Int32},
          Ref{rrfp_error},), trainer, first_blocks, error)
rrfp_trainer_losses(trainer, losses, count, error) =
    ccall((:rrfp_trainer_losses, soname), rrfp_status, (Ptr{rrfp_trainer}, Ptr{Cdouble}, Csize_t,
          Ref{rrfp_error},), trainer, losses, count, error)
rrfp_trainer_read(trainer, parameter, slot, data, count, error) =
    ccall((:rrfp_trainer_read, soname), rrfp_status, (Ptr{rrfp_trainer}, Int32, rrfp_slot,
          Ptr{Cfloat}, Csize_t, Ref{rrfp_error},), trainer, parameter, slot, data, count, error)
rrfp_trainer_write(trainer, parameter, slot, data, count, error) =
    ccall((:rrfp_trainer_write, soname), rrfp_status, (Ptr{rrfp_trainer}, Int32, rrfp_slot,
          Ptr{Cfloat}, Csize_t, Ref{rrfp_error},), trainer, parameter, slot, data, count, error)
rrfp_trainer_weights_sha256(trainer, buffer, capacity, out_size, error) =
    ccall((:rrfp_trainer_weights_sha256, soname), rrfp_status, (Ptr{rrfp_trainer}, Ptr{UInt8},
          Csize_t, Ptr{Csize_t}, Ref{rrfp_error},), trainer, buffer, capacity, out_size, error)
rrfp_trainer_describe_hint(trainer, buffer, capacity, out_size, error) =
    ccall((:rrfp_trainer_describe_hint, soname), rrfp_status, (Ptr{rrfp_trainer}, Ptr{UInt8},
          Csize_t, Ptr{Csize_t}, Ref{rrfp_error},), trainer, buffer, capacity, out_size, error)
rrfp_trainer_write_trace(trainer, path, error) =
    ccall((:rrfp_trainer_write_trace, soname), rrfp_status, (Ptr{rrfp_trainer}, Cstring,
          Ref{rrfp_error},), trainer, path, error)
rrfp_save_options_init(options) =
    ccall((:rrfp_save_options_init, soname), Cvoid, (Ref{rrfp_save_options},), options)
rrfp_trainer_save(trainer, options, error) =
    ccall((:rrfp_trainer_save, soname), rrfp_status, (Ptr{rrfp_trainer}, Ref{rrfp_save_options},
          Ref{rrfp_error},), trainer, options, error)
rrfp_trainer_load(trainer, path, flags, out_position, error) =
    ccall((:rrfp_trainer_load, soname), rrfp_status, (Ptr{rrfp_trainer}, Cstring, rrfp_load_flags,
          Ptr{UInt64}, Ref{rrfp_error},), trainer, path, flags, out_position, error)
rrfp_checkpoint_describe(path, buffer, capacity, out_size, error) =
    ccall((:rrfp_checkpoint_describe, soname), rrfp_status, (Cstring, Ptr{UInt8}, Csize_t,
          Ptr{Csize_t}, Ref{rrfp_error},), path, buffer, capacity, out_size, error)
rrfp_data_options_init(options) =
    ccall((:rrfp_data_options_init, soname), Cvoid, (Ref{rrfp_data_options},), options)
rrfp_data_open(options, out, error) =
    ccall((:rrfp_data_open, soname), rrfp_status, (Ref{rrfp_data_options}, Ptr{Ptr{rrfp_data}},
          Ref{rrfp_error},), options, out, error)
rrfp_data_destroy(data) = ccall((:rrfp_data_destroy, soname), Cvoid, (Ptr{rrfp_data},), data)
rrfp_data_info_init(info) =
    ccall((:rrfp_data_info_init, soname), Cvoid, (Ref{rrfp_data_info},), info)
rrfp_data_get_info(data, out, error) =
    ccall((:rrfp_data_get_info, soname), rrfp_status, (Ptr{rrfp_data}, Ref{rrfp_data_info},
          Ref{rrfp_error},), data, out, error)
rrfp_data_read(data, split, position, samples, tokens, targets, error) =
    ccall((:rrfp_data_read, soname), rrfp_status, (Ptr{rrfp_data}, rrfp_split, UInt64, Int32,
          Ptr{Int32}, Ptr{Int32}, Ref{rrfp_error},), data, split, position, samples, tokens,
          targets, error)
rrfp_sampling_init(sampling) =
    ccall((:rrfp_sampling_init, soname), Cvoid, (Ref{rrfp_sampling},), sampling)
rrfp_generator_create(trainer, context, out, error) =
    ccall((:rrfp_generator_create, soname), rrfp_status, (Ptr{rrfp_trainer}, Int32,
          Ptr{Ptr{rrfp_generator}}, Ref{rrfp_error},), trainer, context, out, error)
rrfp_generator_destroy(generator) =
    ccall((:rrfp_generator_destroy, soname), Cvoid, (Ptr{rrfp_generator},), generator)
rrfp_generator_start(generator, tokens, count, error) =
    ccall((:rrfp_generator_start, soname), rrfp_status, (Ptr{rrfp_generator}, Ptr{Int32}, Csize_t,
          Ref{rrfp_error},), generator, tokens, count, error)
rrfp_generator_next(generator, sampling, out_token, error) =
    ccall((:rrfp_generator_next, soname), rrfp_status, (Ptr{rrfp_generator}, Ref{rrfp_sampling},
          Ptr{Int32}, Ref{rrfp_error},), generator, sampling, out_token, error)
rrfp_generator_logits(generator, logits, count, error) =
    ccall((:rrfp_generator_logits, soname), rrfp_status, (Ptr{rrfp_generator}, Ptr{Cfloat},
          Csize_t, Ref{rrfp_error},), generator, logits, count, error)
rrfp_simulation_options_init(options) =
    ccall((:rrfp_simulation_options_init, soname), Cvoid, (Ref{rrfp_simulation_options},), options)
rrfp_preset_name(index) = ccall((:rrfp_preset_name, soname), Cstring, (Int32,), index)
rrfp_simulation_create(options, out, error) =
    ccall((:rrfp_simulation_create, soname), rrfp_status, (Ref{rrfp_simulation_options},
          Ptr{Ptr{rrfp_simulation}}, Ref{rrfp_error},), options, out, error)
rrfp_simulation_destroy(simulation) =
    ccall((:rrfp_simulation_destroy, soname), Cvoid, (Ptr{rrfp_simulation},), simulation)
rrfp_simulated_step_init(step) =
    ccall((:rrfp_simulated_step_init, soname), Cvoid, (Ref{rrfp_simulated_step},), step)
rrfp_simulation_run(simulation, seed, out, error) =
    ccall((:rrfp_simulation_run, soname), rrfp_status, (Ptr{rrfp_simulation}, UInt64,
          Ref{rrfp_simulated_step}, Ref{rrfp_error},), simulation, seed, out, error)
rrfp_simulation_describe(simulation, buffer, capacity, out_size, error) =
    ccall((:rrfp_simulation_describe, soname), rrfp_status, (Ptr{rrfp_simulation}, Ptr{UInt8},
          Csize_t, Ptr{Csize_t}, Ref{rrfp_error},), simulation, buffer, capacity, out_size, error)
rrfp_simulation_write_trace(simulation, path, error) =
    ccall((:rrfp_simulation_write_trace, soname), rrfp_status, (Ptr{rrfp_simulation}, Cstring,
          Ref{rrfp_error},), simulation, path, error)
rrfp_stress_report_init(report) =
    ccall((:rrfp_stress_report_init, soname), Cvoid, (Ref{rrfp_stress_report},), report)
rrfp_simulation_stress(first_seed, cases, progress, user_data, out, error) =
    ccall((:rrfp_simulation_stress, soname), rrfp_status, (UInt64, Int64, Ptr{Cvoid}, Ptr{Cvoid},
          Ref{rrfp_stress_report}, Ref{rrfp_error},), first_seed, cases, progress, user_data, out,
          error)
rrfp_trace_draw(trace_path, picture, out_path, error) =
    ccall((:rrfp_trace_draw, soname), rrfp_status, (Cstring, rrfp_picture, Cstring,
          Ref{rrfp_error},), trace_path, picture, out_path, error)
rrfp_trace_summarize(trace_path, buffer, capacity, out_size, error) =
    ccall((:rrfp_trace_summarize, soname), rrfp_status, (Cstring, Ptr{UInt8}, Csize_t,
          Ptr{Csize_t}, Ref{rrfp_error},), trace_path, buffer, capacity, out_size, error)
rrfp_vision_options_init(options) =
    ccall((:rrfp_vision_options_init, soname), Cvoid, (Ref{rrfp_vision_options},), options)
rrfp_model_create_vision_language(language, vision, out, error) =
    ccall((:rrfp_model_create_vision_language, soname), rrfp_status, (Ref{rrfp_gpt_options},
          Ref{rrfp_vision_options}, Ptr{Ptr{rrfp_model}}, Ref{rrfp_error},), language, vision, out,
          error)
rrfp_samples_options_init(options) =
    ccall((:rrfp_samples_options_init, soname), Cvoid, (Ref{rrfp_samples_options},), options)
rrfp_samples_open(options, out, error) =
    ccall((:rrfp_samples_open, soname), rrfp_status, (Ref{rrfp_samples_options},
          Ptr{Ptr{rrfp_samples}}, Ref{rrfp_error},), options, out, error)
rrfp_samples_destroy(samples) =
    ccall((:rrfp_samples_destroy, soname), Cvoid, (Ptr{rrfp_samples},), samples)
rrfp_samples_info_init(info) =
    ccall((:rrfp_samples_info_init, soname), Cvoid, (Ref{rrfp_samples_info},), info)
rrfp_samples_get_info(samples, out, error) =
    ccall((:rrfp_samples_get_info, soname), rrfp_status, (Ptr{rrfp_samples},
          Ref{rrfp_samples_info}, Ref{rrfp_error},), samples, out, error)
rrfp_samples_read(samples, split, position, count, microbatches, out_batch, error) =
    ccall((:rrfp_samples_read, soname), rrfp_status, (Ptr{rrfp_samples}, rrfp_split, UInt64, Int32,
          Int32, Ref{rrfp_batch}, Ref{rrfp_error},), samples, split, position, count, microbatches,
          out_batch, error)
rrfp_samples_read_at(samples, split, positions, count, microbatches, out_batch, error) =
    ccall((:rrfp_samples_read_at, soname), rrfp_status, (Ptr{rrfp_samples}, rrfp_split,
          Ptr{UInt64}, Int32, Int32, Ref{rrfp_batch}, Ref{rrfp_error},), samples, split, positions,
          count, microbatches, out_batch, error)
rrfp_picture_read(path, image_size, pixels_max, pixels, error) =
    ccall((:rrfp_picture_read, soname), rrfp_status, (Cstring, Int32, Int64, Ptr{Cfloat},
          Ref{rrfp_error},), path, image_size, pixels_max, pixels, error)
rrfp_generator_start_inputs(generator, inputs, error) =
    ccall((:rrfp_generator_start_inputs, soname), rrfp_status, (Ptr{rrfp_generator},
          Ptr{rrfp_tensor}, Ref{rrfp_error},), generator, inputs, error)
end # module
