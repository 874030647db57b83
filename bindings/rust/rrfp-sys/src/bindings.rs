/* SPDX-License-Identifier: Apache-2.0 */
pub const RRFP_VERSION_MAJOR: i32 = 0;
pub const RRFP_VERSION_MINOR: i32 = 1;
pub const RRFP_VERSION_PATCH: i32 = 0;
pub const RRFP_ABI_VERSION: i32 = 0;
pub const RRFP_OK: i32 = 0;
pub const RRFP_AGAIN: i32 = 1;
pub const RRFP_STEP_DONE: i32 = 2;
pub const RRFP_ABSENT: i32 = 3;
pub const RRFP_ERR_INVALID_ARGUMENT: i32 = -100;
pub const RRFP_ERR_NULL_HANDLE: i32 = -101;
pub const RRFP_ERR_STRUCT_SIZE: i32 = -102;
pub const RRFP_ERR_OUT_OF_RANGE: i32 = -103;
pub const RRFP_ERR_UNKNOWN_NAME: i32 = -104;
pub const RRFP_ERR_SYNTAX: i32 = -105;
pub const RRFP_ERR_CYCLE: i32 = -106;
pub const RRFP_ERR_UNPLACED_STAGE: i32 = -107;
pub const RRFP_ERR_CAP_TOO_SMALL: i32 = -108;
pub const RRFP_ERR_BAD_ORDER: i32 = -109;
pub const RRFP_ERR_TENSOR_MISMATCH: i32 = -110;
pub const RRFP_ERR_NO_MEMORY: i32 = -200;
pub const RRFP_ERR_IO: i32 = -201;
pub const RRFP_ERR_BAD_DATA: i32 = -202;
pub const RRFP_ERR_HEADER_MISMATCH: i32 = -300;
pub const RRFP_ERR_STAGE_FAILED: i32 = -400;
pub const RRFP_ERR_NON_FINITE: i32 = -401;
pub const RRFP_ERR_BAD_STATE: i32 = -500;
pub const RRFP_ERR_BUSY: i32 = -501;
pub const RRFP_ERR_TIMEOUT: i32 = -502;
pub const RRFP_ERR_CANCELLED: i32 = -503;
pub const RRFP_ERR_CLOSED: i32 = -504;
pub const RRFP_ERR_FORKED: i32 = -505;
pub const RRFP_ERR_INTERNAL: i32 = -599;
pub const RRFP_ERROR_TEXT_SIZE: i32 = 960;
pub const RRFP_STAGE_LOSS: i32 = 1;
pub const RRFP_STAGE_FROZEN: i32 = 2;
pub const RRFP_STAGE_INPUT_GRADIENT: i32 = 4;
pub const RRFP_STAGE_FUSED_ONLY: i32 = 8;
pub const RRFP_EDGE_NO_GRADIENT: i32 = 1;
pub const RRFP_PLACEMENT_LINEAR: i32 = 0;
pub const RRFP_PLACEMENT_LOOP: i32 = 1;
pub const RRFP_PLACEMENT_V: i32 = 2;
pub const RRFP_FORWARD: i32 = 0;
pub const RRFP_BACKWARD: i32 = 1;
pub const RRFP_INPUT_GRADIENT: i32 = 2;
pub const RRFP_WEIGHT_GRADIENT: i32 = 3;
pub const RRFP_ORDER_DEFAULT: i32 = 0;
pub const RRFP_ORDER_READY: i32 = 1;
pub const RRFP_ORDER_STRICT: i32 = 2;
pub const RRFP_ORDER_PAIRED: i32 = 3;
pub const RRFP_INJECTION_DEFAULT: i32 = 0;
pub const RRFP_INJECTION_DATA: i32 = 1;
pub const RRFP_INJECTION_TENT: i32 = 2;
pub const RRFP_LOWER_FSDP: i32 = 1;
pub const RRFP_LOWER_REDUCE: i32 = 2;
pub const RRFP_WAKE_YIELD: i32 = 0;
pub const RRFP_WAKE_SPIN: i32 = 1;
pub const RRFP_WAKE_PARK: i32 = 2;
pub const RRFP_LOG_INFO: i32 = 0;
pub const RRFP_LOG_WARNING: i32 = 1;
pub const RRFP_LOG_ERROR: i32 = 2;
pub const RRFP_PIPELINE_NONDETERMINISTIC: i32 = 1;
pub const RRFP_MODE_TRAIN: i32 = 0;
pub const RRFP_MODE_FORWARD: i32 = 1;
pub const RRFP_TASK_LOSS: i32 = 1;
pub const RRFP_NONE: i32 = 0;
pub const RRFP_F32: i32 = 1;
pub const RRFP_F64: i32 = 2;
pub const RRFP_F16: i32 = 3;
pub const RRFP_BF16: i32 = 4;
pub const RRFP_I8: i32 = 5;
pub const RRFP_I16: i32 = 6;
pub const RRFP_I32: i32 = 7;
pub const RRFP_I64: i32 = 8;
pub const RRFP_U8: i32 = 9;
pub const RRFP_U16: i32 = 10;
pub const RRFP_U32: i32 = 11;
pub const RRFP_U64: i32 = 12;
pub const RRFP_BOOL: i32 = 13;
pub const RRFP_DIMS_MAX: i32 = 8;
pub const RRFP_DEVICE_CPU: i32 = 1;
pub const RRFP_TENSOR_WANTS_GRADIENT: i32 = 1;
pub const RRFP_EVENT_STAGE_GRADIENTS: i32 = 1;
pub const RRFP_EVENT_STAGE_LOSSES: i32 = 2;
pub const RRFP_EVENT_STEP_TASKS: i32 = 4;
pub const RRFP_SIMULATION_NONDETERMINISTIC: i32 = 1;
pub const RRFP_READINESS_ALL: i32 = 0;
pub const RRFP_READINESS_LEADER: i32 = 1;
pub const RRFP_PICTURE_HTML: i32 = 0;
pub const RRFP_PICTURE_SVG: i32 = 1;
pub const RRFP_BLOCK_RECOMPUTE: i32 = 1;
pub const RRFP_INIT_CONSTANT: i32 = 0;
pub const RRFP_INIT_NORMAL: i32 = 1;
pub const RRFP_INIT_UNIFORM: i32 = 2;
pub const RRFP_PARAMETER_FROZEN: i32 = 1;
pub const RRFP_PARAMETER_NO_DECAY: i32 = 2;
pub const RRFP_OP_LINEAR: i32 = 1;
pub const RRFP_OP_EMBEDDING: i32 = 2;
pub const RRFP_OP_POSITIONS: i32 = 3;
pub const RRFP_OP_ROTARY: i32 = 4;
pub const RRFP_OP_LAYER_NORM: i32 = 5;
pub const RRFP_OP_RMS_NORM: i32 = 6;
pub const RRFP_OP_GELU: i32 = 7;
pub const RRFP_OP_SILU: i32 = 8;
pub const RRFP_OP_SWIGLU: i32 = 9;
pub const RRFP_OP_ATTENTION: i32 = 10;
pub const RRFP_OP_DROPOUT: i32 = 11;
pub const RRFP_OP_ADD: i32 = 12;
pub const RRFP_OP_MUL: i32 = 13;
pub const RRFP_OP_CONCAT: i32 = 14;
pub const RRFP_OP_RESHAPE: i32 = 15;
pub const RRFP_OP_MEAN: i32 = 16;
pub const RRFP_OP_CROSS_ENTROPY: i32 = 17;
pub const RRFP_OP_SQUARED_ERROR: i32 = 18;
pub const RRFP_OP_PATCHES: i32 = 19;
pub const RRFP_OP_MERGE_ROWS: i32 = 20;
pub const RRFP_OP_INPUTS_MAX: i32 = 16;
pub const RRFP_OP_CAUSAL: i32 = 1;
pub const RRFP_GPT_TIED: i32 = 1;
pub const RRFP_GPT_ROTARY: i32 = 2;
pub const RRFP_GPT_RMS_NORM: i32 = 4;
pub const RRFP_GPT_SWIGLU: i32 = 8;
pub const RRFP_OPTIMIZER_ADAMW: i32 = 0;
pub const RRFP_OPTIMIZER_SGD: i32 = 1;
pub const RRFP_DECAY_NONE: i32 = 0;
pub const RRFP_DECAY_COSINE: i32 = 1;
pub const RRFP_DECAY_LINEAR: i32 = 2;
pub const RRFP_REDUCTION_MEAN: i32 = 0;
pub const RRFP_REDUCTION_SUM: i32 = 1;
pub const RRFP_NON_FINITE_STOP: i32 = 0;
pub const RRFP_NON_FINITE_SKIP: i32 = 1;
pub const RRFP_TRAINER_NONDETERMINISTIC: i32 = 1;
pub const RRFP_TRAINER_RECOMPUTE: i32 = 2;
pub const RRFP_TRAINER_AUTO: i32 = 4;
pub const RRFP_BATCH_KEEP_GRADIENTS: i32 = 1;
pub const RRFP_TRAIN_SKIPPED: i32 = 1;
pub const RRFP_SLOT_WEIGHT: i32 = 0;
pub const RRFP_SLOT_GRADIENT: i32 = 1;
pub const RRFP_SLOT_MOMENT1: i32 = 2;
pub const RRFP_SLOT_MOMENT2: i32 = 3;
pub const RRFP_LOAD_WEIGHTS_ONLY: i32 = 1;
pub const RRFP_DATA_BYTES: i32 = 0;
pub const RRFP_DATA_U16: i32 = 1;
pub const RRFP_DATA_U32: i32 = 2;
pub const RRFP_SPLIT_TRAIN: i32 = 0;
pub const RRFP_SPLIT_VALIDATION: i32 = 1;
pub const RRFP_VISION_FROZEN: i32 = 1;
pub const RRFP_VISION_CONV_STEM: i32 = 2;
pub const RRFP_TOKEN_IMAGE: i32 = 256;
pub const RRFP_TOKEN_END: i32 = 257;
pub const RRFP_SAMPLES_VOCABULARY: i32 = 258;
pub const RRFP_SAMPLES_INPUTS: i32 = 6;
pub const RRFP_GROUPING_COUNT: i32 = 0;
pub const RRFP_GROUPING_COST: i32 = 1;
pub type __uint8_t = ::std::os::raw::c_uchar;
pub type __int32_t = ::std::os::raw::c_int;
pub type __uint32_t = ::std::os::raw::c_uint;
pub type __int64_t = ::std::os::raw::c_long;
pub type __uint64_t = ::std::os::raw::c_ulong;
pub type rrfp_status = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_error {
    pub status: rrfp_status,
    pub rank: i32,
    pub stage: i32,
    pub microbatch: i32,
    pub kind: i32,
    pub user_code: i32,
    pub reserved: [i32; 10usize],
    pub text: [::std::os::raw::c_char; 960usize],
}
#[test]
fn bindgen_test_layout_rrfp_error() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_error>(),
        1024usize,
        concat!("Size of: ", stringify!(rrfp_error))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_error>(),
        4usize,
        concat!("Alignment of ", stringify!(rrfp_error))
    );
    fn test_field_status() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).status) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(status)
            )
        );
    }
    test_field_status();
    fn test_field_rank() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rank) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(rank)
            )
        );
    }
    test_field_rank();
    fn test_field_stage() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stage) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(stage)
            )
        );
    }
    test_field_stage();
    fn test_field_microbatch() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatch) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(microbatch)
            )
        );
    }
    test_field_microbatch();
    fn test_field_kind() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).kind) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(kind)
            )
        );
    }
    test_field_kind();
    fn test_field_user_code() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).user_code) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(user_code)
            )
        );
    }
    test_field_user_code();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
    fn test_field_text() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_error>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).text) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_error),
                "::",
                stringify!(text)
            )
        );
    }
    test_field_text();
}
extern "C" {
    pub fn rrfp_version() -> u32;
}
extern "C" {
    pub fn rrfp_abi_version() -> u32;
}
extern "C" {
    pub fn rrfp_status_name(status: rrfp_status) -> *const ::std::os::raw::c_char;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_graph {
    _unused: [u8; 0],
}
pub type rrfp_stage_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_stage_options {
    pub struct_size: u32,
    pub flags: rrfp_stage_flags,
    pub rank: i32,
    pub reserved: i32,
    pub activation_bytes: i64,
    pub forward_ns: i64,
    pub input_gradient_ns: i64,
    pub weight_gradient_ns: i64,
}
#[test]
fn bindgen_test_layout_rrfp_stage_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_stage_options>(),
        48usize,
        concat!("Size of: ", stringify!(rrfp_stage_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_stage_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_stage_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_rank() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rank) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(rank)
            )
        );
    }
    test_field_rank();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
    fn test_field_activation_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).activation_bytes) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(activation_bytes)
            )
        );
    }
    test_field_activation_bytes();
    fn test_field_forward_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).forward_ns) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(forward_ns)
            )
        );
    }
    test_field_forward_ns();
    fn test_field_input_gradient_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).input_gradient_ns) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(input_gradient_ns)
            )
        );
    }
    test_field_input_gradient_ns();
    fn test_field_weight_gradient_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).weight_gradient_ns) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_options),
                "::",
                stringify!(weight_gradient_ns)
            )
        );
    }
    test_field_weight_gradient_ns();
}
extern "C" {
    pub fn rrfp_stage_options_init(options: *mut rrfp_stage_options);
}
pub type rrfp_edge_flags = u32;
pub type rrfp_placement = i32;
extern "C" {
    pub fn rrfp_graph_create(
        ranks: i32,
        out: *mut *mut rrfp_graph,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_graph_destroy(graph: *mut rrfp_graph);
}
extern "C" {
    pub fn rrfp_graph_add_stage(
        graph: *mut rrfp_graph,
        options: *const rrfp_stage_options,
        out_stage: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_graph_add_edge(
        graph: *mut rrfp_graph,
        from: i32,
        to: i32,
        flags: rrfp_edge_flags,
        out_edge: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_graph_declare_tensor(
        graph: *mut rrfp_graph,
        edge: i32,
        dtype: i32,
        ndim: i32,
        shape: *const i64,
        flags: u32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_graph_place(
        graph: *mut rrfp_graph,
        placement: rrfp_placement,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_graph_place_stage(
        graph: *mut rrfp_graph,
        stage: i32,
        rank: i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_graph_check(graph: *const rrfp_graph, error: *mut rrfp_error) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_hint {
    _unused: [u8; 0],
}
pub type rrfp_task_kind = i32;
pub type rrfp_order = i32;
pub type rrfp_injection = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_hint_task {
    pub rank: i32,
    pub stage: i32,
    pub kind: i32,
    pub microbatch: i32,
    pub priority: i64,
}
#[test]
fn bindgen_test_layout_rrfp_hint_task() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_hint_task>(),
        24usize,
        concat!("Size of: ", stringify!(rrfp_hint_task))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_hint_task>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_hint_task))
    );
    fn test_field_rank() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rank) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_task),
                "::",
                stringify!(rank)
            )
        );
    }
    test_field_rank();
    fn test_field_stage() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stage) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_task),
                "::",
                stringify!(stage)
            )
        );
    }
    test_field_stage();
    fn test_field_kind() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).kind) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_task),
                "::",
                stringify!(kind)
            )
        );
    }
    test_field_kind();
    fn test_field_microbatch() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatch) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_task),
                "::",
                stringify!(microbatch)
            )
        );
    }
    test_field_microbatch();
    fn test_field_priority() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).priority) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_task),
                "::",
                stringify!(priority)
            )
        );
    }
    test_field_priority();
}
extern "C" {
    pub fn rrfp_hint_create(
        name: *const ::std::os::raw::c_char,
        out: *mut *mut rrfp_hint,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_create_from_tasks(
        ranks: i32,
        tasks: *const rrfp_hint_task,
        count: usize,
        out: *mut *mut rrfp_hint,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_create_from_priorities(
        tasks: *const rrfp_hint_task,
        count: usize,
        out: *mut *mut rrfp_hint,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_create_from_text(
        text: *const ::std::os::raw::c_char,
        length: usize,
        out: *mut *mut rrfp_hint,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_destroy(hint: *mut rrfp_hint);
}
extern "C" {
    pub fn rrfp_hint_note(
        hint: *const rrfp_hint,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_hint_info {
    pub struct_size: u32,
    pub ranks: i32,
    pub stages: i32,
    pub microbatches: i32,
}
#[test]
fn bindgen_test_layout_rrfp_hint_info() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_hint_info>(),
        16usize,
        concat!("Size of: ", stringify!(rrfp_hint_info))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_hint_info>(),
        4usize,
        concat!("Alignment of ", stringify!(rrfp_hint_info))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_info),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_ranks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ranks) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_info),
                "::",
                stringify!(ranks)
            )
        );
    }
    test_field_ranks();
    fn test_field_stages() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stages) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_info),
                "::",
                stringify!(stages)
            )
        );
    }
    test_field_stages();
    fn test_field_microbatches() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_hint_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatches) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_hint_info),
                "::",
                stringify!(microbatches)
            )
        );
    }
    test_field_microbatches();
}
extern "C" {
    pub fn rrfp_hint_info_init(info: *mut rrfp_hint_info);
}
extern "C" {
    pub fn rrfp_hint_get_info(
        hint: *const rrfp_hint,
        out: *mut rrfp_hint_info,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_to_text(
        hint: *const rrfp_hint,
        graph: *const rrfp_graph,
        microbatches: i32,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_lower_flags = u32;
extern "C" {
    pub fn rrfp_hint_lower(
        hint: *const rrfp_hint,
        graph: *const rrfp_graph,
        microbatches: i32,
        flags: rrfp_lower_flags,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_layout(
        name: *const ::std::os::raw::c_char,
        out_placement: *mut i32,
        out_chunks: *mut i32,
        out_streams: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_write_trace(
        hint: *const rrfp_hint,
        graph: *const rrfp_graph,
        microbatches: i32,
        path: *const ::std::os::raw::c_char,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_hint_check(
        hint: *const rrfp_hint,
        graph: *const rrfp_graph,
        microbatches: i32,
        order: rrfp_order,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_graph_place_by_hint(
        graph: *mut rrfp_graph,
        hint: *const rrfp_hint,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_pipeline {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_rank {
    _unused: [u8; 0],
}
pub type rrfp_wake = i32;
pub type rrfp_log_level = i32;
pub type rrfp_log_fn = ::std::option::Option<
    unsafe extern "C" fn(
        user_data: *mut ::std::os::raw::c_void,
        level: rrfp_log_level,
        text: *const ::std::os::raw::c_char,
    ),
>;
pub type rrfp_pipeline_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_pipeline_options {
    pub struct_size: u32,
    pub flags: rrfp_pipeline_flags,
    pub order: rrfp_order,
    pub wake: rrfp_wake,
    pub cap_slots: i64,
    pub cap_bytes: i64,
    pub rank_cap_slots: *const i64,
    pub rank_cap_bytes: *const i64,
    pub credits: i32,
    pub hold_permille: i32,
    pub mailbox_capacity: u32,
    pub trace_steps: i32,
    pub watchdog_ms: i64,
    pub log: rrfp_log_fn,
    pub log_user_data: *mut ::std::os::raw::c_void,
}
#[test]
fn bindgen_test_layout_rrfp_pipeline_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_pipeline_options>(),
        88usize,
        concat!("Size of: ", stringify!(rrfp_pipeline_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_pipeline_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_pipeline_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_order() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).order) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(order)
            )
        );
    }
    test_field_order();
    fn test_field_wake() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wake) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(wake)
            )
        );
    }
    test_field_wake();
    fn test_field_cap_slots() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).cap_slots) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(cap_slots)
            )
        );
    }
    test_field_cap_slots();
    fn test_field_cap_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).cap_bytes) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(cap_bytes)
            )
        );
    }
    test_field_cap_bytes();
    fn test_field_rank_cap_slots() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rank_cap_slots) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(rank_cap_slots)
            )
        );
    }
    test_field_rank_cap_slots();
    fn test_field_rank_cap_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rank_cap_bytes) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(rank_cap_bytes)
            )
        );
    }
    test_field_rank_cap_bytes();
    fn test_field_credits() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).credits) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(credits)
            )
        );
    }
    test_field_credits();
    fn test_field_hold_permille() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).hold_permille) as usize - ptr as usize
            },
            52usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(hold_permille)
            )
        );
    }
    test_field_hold_permille();
    fn test_field_mailbox_capacity() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).mailbox_capacity) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(mailbox_capacity)
            )
        );
    }
    test_field_mailbox_capacity();
    fn test_field_trace_steps() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).trace_steps) as usize - ptr as usize
            },
            60usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(trace_steps)
            )
        );
    }
    test_field_trace_steps();
    fn test_field_watchdog_ms() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).watchdog_ms) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(watchdog_ms)
            )
        );
    }
    test_field_watchdog_ms();
    fn test_field_log() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).log) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(log)
            )
        );
    }
    test_field_log();
    fn test_field_log_user_data() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_pipeline_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).log_user_data) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_pipeline_options),
                "::",
                stringify!(log_user_data)
            )
        );
    }
    test_field_log_user_data();
}
extern "C" {
    pub fn rrfp_pipeline_options_init(options: *mut rrfp_pipeline_options);
}
extern "C" {
    pub fn rrfp_pipeline_create(
        graph: *const rrfp_graph,
        options: *const rrfp_pipeline_options,
        out: *mut *mut rrfp_pipeline,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_pipeline_destroy(pipeline: *mut rrfp_pipeline);
}
extern "C" {
    pub fn rrfp_pipeline_cancel(
        pipeline: *mut rrfp_pipeline,
        reason: *const ::std::os::raw::c_char,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_pipeline_reset(pipeline: *mut rrfp_pipeline, error: *mut rrfp_error)
        -> rrfp_status;
}
extern "C" {
    pub fn rrfp_pipeline_write_trace(
        pipeline: *mut rrfp_pipeline,
        path: *const ::std::os::raw::c_char,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_pipeline_report(
        pipeline: *mut rrfp_pipeline,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_rank_create(
        pipeline: *mut rrfp_pipeline,
        rank: i32,
        out: *mut *mut rrfp_rank,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_rank_destroy(rank: *mut rrfp_rank);
}
pub type rrfp_step_mode = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_step_options {
    pub struct_size: u32,
    pub mode: rrfp_step_mode,
    pub step: i64,
    pub microbatches: i32,
    pub order: rrfp_order,
    pub hint: *const rrfp_hint,
    pub skip: *const u8,
    pub activation_bytes: *const i64,
}
#[test]
fn bindgen_test_layout_rrfp_step_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_step_options>(),
        48usize,
        concat!("Size of: ", stringify!(rrfp_step_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_step_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_step_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_mode() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).mode) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(mode)
            )
        );
    }
    test_field_mode();
    fn test_field_step() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).step) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(step)
            )
        );
    }
    test_field_step();
    fn test_field_microbatches() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatches) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(microbatches)
            )
        );
    }
    test_field_microbatches();
    fn test_field_order() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).order) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(order)
            )
        );
    }
    test_field_order();
    fn test_field_hint() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).hint) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(hint)
            )
        );
    }
    test_field_hint();
    fn test_field_skip() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).skip) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(skip)
            )
        );
    }
    test_field_skip();
    fn test_field_activation_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).activation_bytes) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_options),
                "::",
                stringify!(activation_bytes)
            )
        );
    }
    test_field_activation_bytes();
}
extern "C" {
    pub fn rrfp_step_options_init(options: *mut rrfp_step_options);
}
extern "C" {
    pub fn rrfp_rank_begin_step(
        rank: *mut rrfp_rank,
        options: *const rrfp_step_options,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_task {
    pub struct_size: u32,
    pub flags: u32,
    pub ticket: u64,
    pub stage: i32,
    pub microbatch: i32,
    pub kind: rrfp_task_kind,
    pub reserved: i32,
}
#[test]
fn bindgen_test_layout_rrfp_task() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_task>(),
        32usize,
        concat!("Size of: ", stringify!(rrfp_task))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_task>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_task))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_task),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_task),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_ticket() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ticket) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_task),
                "::",
                stringify!(ticket)
            )
        );
    }
    test_field_ticket();
    fn test_field_stage() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stage) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_task),
                "::",
                stringify!(stage)
            )
        );
    }
    test_field_stage();
    fn test_field_microbatch() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatch) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_task),
                "::",
                stringify!(microbatch)
            )
        );
    }
    test_field_microbatch();
    fn test_field_kind() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).kind) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_task),
                "::",
                stringify!(kind)
            )
        );
    }
    test_field_kind();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_task>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_task),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
}
extern "C" {
    pub fn rrfp_task_init(task: *mut rrfp_task);
}
extern "C" {
    pub fn rrfp_rank_next(
        rank: *mut rrfp_rank,
        timeout_us: i64,
        out: *mut rrfp_task,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_rank_wake(rank: *mut rrfp_rank, error: *mut rrfp_error) -> rrfp_status;
}
pub type rrfp_dtype = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_buffer {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_tensor {
    pub data: *mut ::std::os::raw::c_void,
    pub buffer: *mut rrfp_buffer,
    pub shape: [i64; 8usize],
    pub strides: [i64; 8usize],
    pub ndim: i32,
    pub dtype: rrfp_dtype,
    pub device_type: i32,
    pub device_id: i32,
    pub flags: u32,
    pub reserved: u32,
}
#[test]
fn bindgen_test_layout_rrfp_tensor() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_tensor>(),
        168usize,
        concat!("Size of: ", stringify!(rrfp_tensor))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_tensor>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_tensor))
    );
    fn test_field_data() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).data) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(data)
            )
        );
    }
    test_field_data();
    fn test_field_buffer() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).buffer) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(buffer)
            )
        );
    }
    test_field_buffer();
    fn test_field_shape() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).shape) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(shape)
            )
        );
    }
    test_field_shape();
    fn test_field_strides() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).strides) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(strides)
            )
        );
    }
    test_field_strides();
    fn test_field_ndim() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ndim) as usize - ptr as usize
            },
            144usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(ndim)
            )
        );
    }
    test_field_ndim();
    fn test_field_dtype() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).dtype) as usize - ptr as usize
            },
            148usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(dtype)
            )
        );
    }
    test_field_dtype();
    fn test_field_device_type() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).device_type) as usize - ptr as usize
            },
            152usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(device_type)
            )
        );
    }
    test_field_device_type();
    fn test_field_device_id() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).device_id) as usize - ptr as usize
            },
            156usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(device_id)
            )
        );
    }
    test_field_device_id();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            160usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_tensor>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            164usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_tensor),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
}
extern "C" {
    pub fn rrfp_rank_input(
        rank: *mut rrfp_rank,
        ticket: u64,
        edge: i32,
        tensors: *mut rrfp_tensor,
        capacity: usize,
        out_count: *mut usize,
        out_opaque: *mut *mut ::std::os::raw::c_void,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_rank_alloc(
        rank: *mut rrfp_rank,
        ticket: u64,
        dtype: rrfp_dtype,
        ndim: i32,
        shape: *const i64,
        out: *mut rrfp_tensor,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_release_fn =
    ::std::option::Option<unsafe extern "C" fn(user_data: *mut ::std::os::raw::c_void)>;
extern "C" {
    pub fn rrfp_rank_wrap(
        rank: *mut rrfp_rank,
        ticket: u64,
        data: *mut ::std::os::raw::c_void,
        bytes: usize,
        release: rrfp_release_fn,
        user_data: *mut ::std::os::raw::c_void,
        out: *mut *mut rrfp_buffer,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_buffer_retain(buffer: *mut rrfp_buffer);
}
extern "C" {
    pub fn rrfp_buffer_release(buffer: *mut rrfp_buffer);
}
extern "C" {
    pub fn rrfp_rank_put(
        rank: *mut rrfp_rank,
        ticket: u64,
        edge: i32,
        tensors: *const rrfp_tensor,
        count: usize,
        opaque: *mut ::std::os::raw::c_void,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_rank_output_wanted(
        rank: *mut rrfp_rank,
        ticket: u64,
        edge: i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct DLManagedTensor {
    _unused: [u8; 0],
}
extern "C" {
    pub fn rrfp_tensor_from_dlpack(
        managed: *const DLManagedTensor,
        out: *mut rrfp_tensor,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_rank_wrap_dlpack(
        rank: *mut rrfp_rank,
        ticket: u64,
        managed: *mut DLManagedTensor,
        out: *mut rrfp_tensor,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_tensor_to_dlpack(
        tensor: *const rrfp_tensor,
        out: *mut *mut DLManagedTensor,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_events = u32;
extern "C" {
    pub fn rrfp_rank_done(
        rank: *mut rrfp_rank,
        ticket: u64,
        out_events: *mut rrfp_events,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_rank_fail(
        rank: *mut rrfp_rank,
        ticket: u64,
        code: i32,
        text: *const ::std::os::raw::c_char,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_step_report {
    pub struct_size: u32,
    pub rank: i32,
    pub step: i64,
    pub total_ns: i64,
    pub busy_ns: i64,
    pub wait_input_ns: i64,
    pub wait_memory_ns: i64,
    pub wait_credit_ns: i64,
    pub wait_policy_ns: i64,
    pub other_ns: i64,
    pub tasks: i64,
    pub messages_sent: i64,
    pub peak_slots: i64,
    pub peak_bytes: i64,
    pub tensor_bytes_peak: i64,
    pub tensor_bytes_live: i64,
}
#[test]
fn bindgen_test_layout_rrfp_step_report() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_step_report>(),
        120usize,
        concat!("Size of: ", stringify!(rrfp_step_report))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_step_report>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_step_report))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_rank() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rank) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(rank)
            )
        );
    }
    test_field_rank();
    fn test_field_step() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).step) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(step)
            )
        );
    }
    test_field_step();
    fn test_field_total_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).total_ns) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(total_ns)
            )
        );
    }
    test_field_total_ns();
    fn test_field_busy_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).busy_ns) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(busy_ns)
            )
        );
    }
    test_field_busy_ns();
    fn test_field_wait_input_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_input_ns) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(wait_input_ns)
            )
        );
    }
    test_field_wait_input_ns();
    fn test_field_wait_memory_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_memory_ns) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(wait_memory_ns)
            )
        );
    }
    test_field_wait_memory_ns();
    fn test_field_wait_credit_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_credit_ns) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(wait_credit_ns)
            )
        );
    }
    test_field_wait_credit_ns();
    fn test_field_wait_policy_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_policy_ns) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(wait_policy_ns)
            )
        );
    }
    test_field_wait_policy_ns();
    fn test_field_other_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).other_ns) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(other_ns)
            )
        );
    }
    test_field_other_ns();
    fn test_field_tasks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tasks) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(tasks)
            )
        );
    }
    test_field_tasks();
    fn test_field_messages_sent() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).messages_sent) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(messages_sent)
            )
        );
    }
    test_field_messages_sent();
    fn test_field_peak_slots() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).peak_slots) as usize - ptr as usize
            },
            88usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(peak_slots)
            )
        );
    }
    test_field_peak_slots();
    fn test_field_peak_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).peak_bytes) as usize - ptr as usize
            },
            96usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(peak_bytes)
            )
        );
    }
    test_field_peak_bytes();
    fn test_field_tensor_bytes_peak() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tensor_bytes_peak) as usize - ptr as usize
            },
            104usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(tensor_bytes_peak)
            )
        );
    }
    test_field_tensor_bytes_peak();
    fn test_field_tensor_bytes_live() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_step_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tensor_bytes_live) as usize - ptr as usize
            },
            112usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_step_report),
                "::",
                stringify!(tensor_bytes_live)
            )
        );
    }
    test_field_tensor_bytes_live();
}
extern "C" {
    pub fn rrfp_step_report_init(report: *mut rrfp_step_report);
}
extern "C" {
    pub fn rrfp_rank_end_step(
        rank: *mut rrfp_rank,
        out: *mut rrfp_step_report,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_simulation {
    _unused: [u8; 0],
}
pub type rrfp_simulation_flags = u32;
pub type rrfp_readiness = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_simulation_options {
    pub struct_size: u32,
    pub flags: rrfp_simulation_flags,
    pub preset: *const ::std::os::raw::c_char,
    pub trace: *const ::std::os::raw::c_char,
    pub hint: *const ::std::os::raw::c_char,
    pub order: rrfp_order,
    pub stages: i32,
    pub microbatches: i32,
    pub injection: rrfp_injection,
    pub cap: f64,
    pub offload_ms: f64,
    pub tensor_parallel: i32,
    pub readiness: rrfp_readiness,
    pub data_parallel: i32,
    pub history: i32,
    pub dispatch_ns: i64,
    pub report_ns: i64,
}
#[test]
fn bindgen_test_layout_rrfp_simulation_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_simulation_options>(),
        96usize,
        concat!("Size of: ", stringify!(rrfp_simulation_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_simulation_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_simulation_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_preset() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).preset) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(preset)
            )
        );
    }
    test_field_preset();
    fn test_field_trace() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).trace) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(trace)
            )
        );
    }
    test_field_trace();
    fn test_field_hint() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).hint) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(hint)
            )
        );
    }
    test_field_hint();
    fn test_field_order() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).order) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(order)
            )
        );
    }
    test_field_order();
    fn test_field_stages() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stages) as usize - ptr as usize
            },
            36usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(stages)
            )
        );
    }
    test_field_stages();
    fn test_field_microbatches() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatches) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(microbatches)
            )
        );
    }
    test_field_microbatches();
    fn test_field_injection() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).injection) as usize - ptr as usize
            },
            44usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(injection)
            )
        );
    }
    test_field_injection();
    fn test_field_cap() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).cap) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(cap)
            )
        );
    }
    test_field_cap();
    fn test_field_offload_ms() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).offload_ms) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(offload_ms)
            )
        );
    }
    test_field_offload_ms();
    fn test_field_tensor_parallel() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tensor_parallel) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(tensor_parallel)
            )
        );
    }
    test_field_tensor_parallel();
    fn test_field_readiness() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).readiness) as usize - ptr as usize
            },
            68usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(readiness)
            )
        );
    }
    test_field_readiness();
    fn test_field_data_parallel() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).data_parallel) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(data_parallel)
            )
        );
    }
    test_field_data_parallel();
    fn test_field_history() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).history) as usize - ptr as usize
            },
            76usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(history)
            )
        );
    }
    test_field_history();
    fn test_field_dispatch_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).dispatch_ns) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(dispatch_ns)
            )
        );
    }
    test_field_dispatch_ns();
    fn test_field_report_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulation_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).report_ns) as usize - ptr as usize
            },
            88usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulation_options),
                "::",
                stringify!(report_ns)
            )
        );
    }
    test_field_report_ns();
}
extern "C" {
    pub fn rrfp_simulation_options_init(options: *mut rrfp_simulation_options);
}
extern "C" {
    pub fn rrfp_preset_name(index: i32) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn rrfp_simulation_create(
        options: *const rrfp_simulation_options,
        out: *mut *mut rrfp_simulation,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_simulation_destroy(simulation: *mut rrfp_simulation);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_simulated_step {
    pub struct_size: u32,
    pub ranks: i32,
    pub stages: i32,
    pub microbatches: i32,
    pub makespan_ns: i64,
    pub bound_ns: i64,
    pub peak_bytes: i64,
    pub native_bytes: i64,
    pub tasks: i64,
    pub messages: i64,
    pub offloads: i64,
    pub busy_ns: i64,
    pub wait_input_ns: i64,
    pub wait_memory_ns: i64,
    pub wait_credit_ns: i64,
    pub wait_policy_ns: i64,
    pub wait_group_ns: i64,
}
#[test]
fn bindgen_test_layout_rrfp_simulated_step() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_simulated_step>(),
        120usize,
        concat!("Size of: ", stringify!(rrfp_simulated_step))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_simulated_step>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_simulated_step))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_ranks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ranks) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(ranks)
            )
        );
    }
    test_field_ranks();
    fn test_field_stages() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stages) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(stages)
            )
        );
    }
    test_field_stages();
    fn test_field_microbatches() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatches) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(microbatches)
            )
        );
    }
    test_field_microbatches();
    fn test_field_makespan_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).makespan_ns) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(makespan_ns)
            )
        );
    }
    test_field_makespan_ns();
    fn test_field_bound_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).bound_ns) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(bound_ns)
            )
        );
    }
    test_field_bound_ns();
    fn test_field_peak_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).peak_bytes) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(peak_bytes)
            )
        );
    }
    test_field_peak_bytes();
    fn test_field_native_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).native_bytes) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(native_bytes)
            )
        );
    }
    test_field_native_bytes();
    fn test_field_tasks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tasks) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(tasks)
            )
        );
    }
    test_field_tasks();
    fn test_field_messages() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).messages) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(messages)
            )
        );
    }
    test_field_messages();
    fn test_field_offloads() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).offloads) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(offloads)
            )
        );
    }
    test_field_offloads();
    fn test_field_busy_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).busy_ns) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(busy_ns)
            )
        );
    }
    test_field_busy_ns();
    fn test_field_wait_input_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_input_ns) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(wait_input_ns)
            )
        );
    }
    test_field_wait_input_ns();
    fn test_field_wait_memory_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_memory_ns) as usize - ptr as usize
            },
            88usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(wait_memory_ns)
            )
        );
    }
    test_field_wait_memory_ns();
    fn test_field_wait_credit_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_credit_ns) as usize - ptr as usize
            },
            96usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(wait_credit_ns)
            )
        );
    }
    test_field_wait_credit_ns();
    fn test_field_wait_policy_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_policy_ns) as usize - ptr as usize
            },
            104usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(wait_policy_ns)
            )
        );
    }
    test_field_wait_policy_ns();
    fn test_field_wait_group_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_simulated_step>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_group_ns) as usize - ptr as usize
            },
            112usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_simulated_step),
                "::",
                stringify!(wait_group_ns)
            )
        );
    }
    test_field_wait_group_ns();
}
extern "C" {
    pub fn rrfp_simulated_step_init(step: *mut rrfp_simulated_step);
}
extern "C" {
    pub fn rrfp_simulation_run(
        simulation: *mut rrfp_simulation,
        seed: u64,
        out: *mut rrfp_simulated_step,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_simulation_describe(
        simulation: *const rrfp_simulation,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_simulation_write_trace(
        simulation: *mut rrfp_simulation,
        path: *const ::std::os::raw::c_char,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_stress_report {
    pub struct_size: u32,
    pub reserved: u32,
    pub cases: i64,
    pub stalls: i64,
    pub cap_violations: i64,
    pub task_errors: i64,
    pub failure_errors: i64,
    pub refused: i64,
    pub faults: i64,
    pub bad_seed: u64,
    pub bad_case: [::std::os::raw::c_char; 512usize],
}
#[test]
fn bindgen_test_layout_rrfp_stress_report() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_stress_report>(),
        584usize,
        concat!("Size of: ", stringify!(rrfp_stress_report))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_stress_report>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_stress_report))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
    fn test_field_cases() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).cases) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(cases)
            )
        );
    }
    test_field_cases();
    fn test_field_stalls() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stalls) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(stalls)
            )
        );
    }
    test_field_stalls();
    fn test_field_cap_violations() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).cap_violations) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(cap_violations)
            )
        );
    }
    test_field_cap_violations();
    fn test_field_task_errors() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).task_errors) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(task_errors)
            )
        );
    }
    test_field_task_errors();
    fn test_field_failure_errors() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).failure_errors) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(failure_errors)
            )
        );
    }
    test_field_failure_errors();
    fn test_field_refused() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).refused) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(refused)
            )
        );
    }
    test_field_refused();
    fn test_field_faults() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).faults) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(faults)
            )
        );
    }
    test_field_faults();
    fn test_field_bad_seed() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).bad_seed) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(bad_seed)
            )
        );
    }
    test_field_bad_seed();
    fn test_field_bad_case() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stress_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).bad_case) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stress_report),
                "::",
                stringify!(bad_case)
            )
        );
    }
    test_field_bad_case();
}
extern "C" {
    pub fn rrfp_stress_report_init(report: *mut rrfp_stress_report);
}
pub type rrfp_progress_fn = ::std::option::Option<
    unsafe extern "C" fn(user_data: *mut ::std::os::raw::c_void, done: i64) -> bool,
>;
extern "C" {
    pub fn rrfp_simulation_stress(
        first_seed: u64,
        cases: i64,
        progress: rrfp_progress_fn,
        user_data: *mut ::std::os::raw::c_void,
        out: *mut rrfp_stress_report,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_picture = i32;
extern "C" {
    pub fn rrfp_trace_draw(
        trace_path: *const ::std::os::raw::c_char,
        picture: rrfp_picture,
        out_path: *const ::std::os::raw::c_char,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trace_summarize(
        trace_path: *const ::std::os::raw::c_char,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_model {
    _unused: [u8; 0],
}
extern "C" {
    pub fn rrfp_model_create(out: *mut *mut rrfp_model, error: *mut rrfp_error) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_destroy(model: *mut rrfp_model);
}
pub type rrfp_block_flags = u32;
extern "C" {
    pub fn rrfp_model_begin_block(
        model: *mut rrfp_model,
        name: *const ::std::os::raw::c_char,
        flags: rrfp_block_flags,
        out_block: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_add_input(
        model: *mut rrfp_model,
        name: *const ::std::os::raw::c_char,
        dtype: rrfp_dtype,
        ndim: i32,
        shape: *const i64,
        out_value: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_init = i32;
pub type rrfp_parameter_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_parameter_options {
    pub struct_size: u32,
    pub flags: rrfp_parameter_flags,
    pub name: *const ::std::os::raw::c_char,
    pub shape: *const i64,
    pub ndim: i32,
    pub init: rrfp_init,
    pub init_value: f64,
    pub init_scale: f64,
}
#[test]
fn bindgen_test_layout_rrfp_parameter_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_parameter_options>(),
        48usize,
        concat!("Size of: ", stringify!(rrfp_parameter_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_parameter_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_parameter_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_name() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).name) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(name)
            )
        );
    }
    test_field_name();
    fn test_field_shape() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).shape) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(shape)
            )
        );
    }
    test_field_shape();
    fn test_field_ndim() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ndim) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(ndim)
            )
        );
    }
    test_field_ndim();
    fn test_field_init() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).init) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(init)
            )
        );
    }
    test_field_init();
    fn test_field_init_value() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).init_value) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(init_value)
            )
        );
    }
    test_field_init_value();
    fn test_field_init_scale() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_parameter_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).init_scale) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_parameter_options),
                "::",
                stringify!(init_scale)
            )
        );
    }
    test_field_init_scale();
}
extern "C" {
    pub fn rrfp_parameter_options_init(options: *mut rrfp_parameter_options);
}
extern "C" {
    pub fn rrfp_model_add_parameter(
        model: *mut rrfp_model,
        options: *const rrfp_parameter_options,
        out_parameter: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_op = i32;
pub type rrfp_op_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_operation {
    pub struct_size: u32,
    pub op: rrfp_op,
    pub inputs: *const i32,
    pub parameters: *const i32,
    pub input_count: i32,
    pub parameter_count: i32,
    pub flags: rrfp_op_flags,
    pub axis: i32,
    pub heads: i32,
    pub kv_heads: i32,
    pub head_dim: i32,
    pub ignore_index: i32,
    pub probability: f64,
    pub epsilon: f64,
    pub base: f64,
    pub shape: *const i64,
    pub ndim: i32,
    pub kernel: i32,
    pub stride: i32,
    pub padding: i32,
}
#[test]
fn bindgen_test_layout_rrfp_operation() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_operation>(),
        104usize,
        concat!("Size of: ", stringify!(rrfp_operation))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_operation>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_operation))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_op() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).op) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(op)
            )
        );
    }
    test_field_op();
    fn test_field_inputs() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).inputs) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(inputs)
            )
        );
    }
    test_field_inputs();
    fn test_field_parameters() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).parameters) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(parameters)
            )
        );
    }
    test_field_parameters();
    fn test_field_input_count() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).input_count) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(input_count)
            )
        );
    }
    test_field_input_count();
    fn test_field_parameter_count() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).parameter_count) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(parameter_count)
            )
        );
    }
    test_field_parameter_count();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_axis() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).axis) as usize - ptr as usize
            },
            36usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(axis)
            )
        );
    }
    test_field_axis();
    fn test_field_heads() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).heads) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(heads)
            )
        );
    }
    test_field_heads();
    fn test_field_kv_heads() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).kv_heads) as usize - ptr as usize
            },
            44usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(kv_heads)
            )
        );
    }
    test_field_kv_heads();
    fn test_field_head_dim() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).head_dim) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(head_dim)
            )
        );
    }
    test_field_head_dim();
    fn test_field_ignore_index() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ignore_index) as usize - ptr as usize
            },
            52usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(ignore_index)
            )
        );
    }
    test_field_ignore_index();
    fn test_field_probability() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).probability) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(probability)
            )
        );
    }
    test_field_probability();
    fn test_field_epsilon() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).epsilon) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(epsilon)
            )
        );
    }
    test_field_epsilon();
    fn test_field_base() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).base) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(base)
            )
        );
    }
    test_field_base();
    fn test_field_shape() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).shape) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(shape)
            )
        );
    }
    test_field_shape();
    fn test_field_ndim() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ndim) as usize - ptr as usize
            },
            88usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(ndim)
            )
        );
    }
    test_field_ndim();
    fn test_field_kernel() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).kernel) as usize - ptr as usize
            },
            92usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(kernel)
            )
        );
    }
    test_field_kernel();
    fn test_field_stride() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stride) as usize - ptr as usize
            },
            96usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(stride)
            )
        );
    }
    test_field_stride();
    fn test_field_padding() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_operation>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).padding) as usize - ptr as usize
            },
            100usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_operation),
                "::",
                stringify!(padding)
            )
        );
    }
    test_field_padding();
}
extern "C" {
    pub fn rrfp_operation_init(operation: *mut rrfp_operation);
}
extern "C" {
    pub fn rrfp_model_add_operation(
        model: *mut rrfp_model,
        operation: *const rrfp_operation,
        out_value: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_set_loss(
        model: *mut rrfp_model,
        value: i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_add_loss(
        model: *mut rrfp_model,
        value: i32,
        factor: f64,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_set_output(
        model: *mut rrfp_model,
        value: i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_gpt_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_gpt_options {
    pub struct_size: u32,
    pub flags: rrfp_gpt_flags,
    pub vocabulary: i32,
    pub context: i32,
    pub layers: i32,
    pub dim: i32,
    pub heads: i32,
    pub kv_heads: i32,
    pub hidden: i32,
    pub reserved: i32,
    pub dropout: f64,
}
#[test]
fn bindgen_test_layout_rrfp_gpt_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_gpt_options>(),
        48usize,
        concat!("Size of: ", stringify!(rrfp_gpt_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_gpt_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_gpt_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_vocabulary() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).vocabulary) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(vocabulary)
            )
        );
    }
    test_field_vocabulary();
    fn test_field_context() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).context) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(context)
            )
        );
    }
    test_field_context();
    fn test_field_layers() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).layers) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(layers)
            )
        );
    }
    test_field_layers();
    fn test_field_dim() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).dim) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(dim)
            )
        );
    }
    test_field_dim();
    fn test_field_heads() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).heads) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(heads)
            )
        );
    }
    test_field_heads();
    fn test_field_kv_heads() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).kv_heads) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(kv_heads)
            )
        );
    }
    test_field_kv_heads();
    fn test_field_hidden() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).hidden) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(hidden)
            )
        );
    }
    test_field_hidden();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            36usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
    fn test_field_dropout() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_gpt_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).dropout) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_gpt_options),
                "::",
                stringify!(dropout)
            )
        );
    }
    test_field_dropout();
}
extern "C" {
    pub fn rrfp_gpt_options_init(options: *mut rrfp_gpt_options);
}
extern "C" {
    pub fn rrfp_model_create_gpt(
        options: *const rrfp_gpt_options,
        out: *mut *mut rrfp_model,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_create_from_checkpoint(
        path: *const ::std::os::raw::c_char,
        out: *mut *mut rrfp_model,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_model_info {
    pub struct_size: u32,
    pub inputs: i32,
    pub values: i32,
    pub parameters: i32,
    pub blocks: i32,
    pub losses: i32,
    pub parameter_elements: i64,
    pub trainable_elements: i64,
}
#[test]
fn bindgen_test_layout_rrfp_model_info() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_model_info>(),
        40usize,
        concat!("Size of: ", stringify!(rrfp_model_info))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_model_info>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_model_info))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_inputs() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).inputs) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(inputs)
            )
        );
    }
    test_field_inputs();
    fn test_field_values() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).values) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(values)
            )
        );
    }
    test_field_values();
    fn test_field_parameters() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).parameters) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(parameters)
            )
        );
    }
    test_field_parameters();
    fn test_field_blocks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).blocks) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(blocks)
            )
        );
    }
    test_field_blocks();
    fn test_field_losses() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).losses) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(losses)
            )
        );
    }
    test_field_losses();
    fn test_field_parameter_elements() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).parameter_elements) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(parameter_elements)
            )
        );
    }
    test_field_parameter_elements();
    fn test_field_trainable_elements() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_model_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).trainable_elements) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_model_info),
                "::",
                stringify!(trainable_elements)
            )
        );
    }
    test_field_trainable_elements();
}
extern "C" {
    pub fn rrfp_model_info_init(info: *mut rrfp_model_info);
}
extern "C" {
    pub fn rrfp_model_get_info(
        model: *const rrfp_model,
        out: *mut rrfp_model_info,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_value_shape(
        model: *const rrfp_model,
        value: i32,
        out_ndim: *mut i32,
        shape: *mut i64,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_parameter_name(
        model: *const rrfp_model,
        parameter: i32,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_parameter_shape(
        model: *const rrfp_model,
        parameter: i32,
        out_ndim: *mut i32,
        shape: *mut i64,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_describe(
        model: *const rrfp_model,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_measure(
        model: *const rrfp_model,
        inputs: *const rrfp_tensor,
        block_ns: *mut i64,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_partition(
        model: *const rrfp_model,
        stages: i32,
        block_costs: *const i64,
        first_blocks: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_model_place(
        model: *const rrfp_model,
        stages: i32,
        ranks: i32,
        block_costs: *const i64,
        first_blocks: *mut i32,
        stage_ranks: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_trainer {
    _unused: [u8; 0],
}
pub type rrfp_optimizer = i32;
pub type rrfp_decay = i32;
pub type rrfp_reduction = i32;
pub type rrfp_non_finite = i32;
pub type rrfp_trainer_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_trainer_options {
    pub struct_size: u32,
    pub flags: rrfp_trainer_flags,
    pub stages: i32,
    pub ranks: i32,
    pub placement: rrfp_placement,
    pub order: rrfp_order,
    pub wake: rrfp_wake,
    pub hold_permille: i32,
    pub first_blocks: *const i32,
    pub hint: *const rrfp_hint,
    pub cap_slots: i64,
    pub cap_bytes: i64,
    pub watchdog_ms: i64,
    pub optimizer: rrfp_optimizer,
    pub decay: rrfp_decay,
    pub lr: f64,
    pub lr_min: f64,
    pub warmup_steps: i64,
    pub decay_steps: i64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
    pub momentum: f64,
    pub clip_norm: f64,
    pub reduction: rrfp_reduction,
    pub non_finite: rrfp_non_finite,
    pub loss_scale: f64,
    pub loss_scale_growth: i64,
    pub seed: u64,
    pub trace_steps: i32,
    pub injection: rrfp_injection,
    pub delay_us_max: i64,
    pub log: rrfp_log_fn,
    pub log_user_data: *mut ::std::os::raw::c_void,
    pub stage_ranks: *const i32,
}
#[test]
fn bindgen_test_layout_rrfp_trainer_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_trainer_options>(),
        232usize,
        concat!("Size of: ", stringify!(rrfp_trainer_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_trainer_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_trainer_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_stages() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stages) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(stages)
            )
        );
    }
    test_field_stages();
    fn test_field_ranks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ranks) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(ranks)
            )
        );
    }
    test_field_ranks();
    fn test_field_placement() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).placement) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(placement)
            )
        );
    }
    test_field_placement();
    fn test_field_order() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).order) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(order)
            )
        );
    }
    test_field_order();
    fn test_field_wake() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wake) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(wake)
            )
        );
    }
    test_field_wake();
    fn test_field_hold_permille() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).hold_permille) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(hold_permille)
            )
        );
    }
    test_field_hold_permille();
    fn test_field_first_blocks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).first_blocks) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(first_blocks)
            )
        );
    }
    test_field_first_blocks();
    fn test_field_hint() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).hint) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(hint)
            )
        );
    }
    test_field_hint();
    fn test_field_cap_slots() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).cap_slots) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(cap_slots)
            )
        );
    }
    test_field_cap_slots();
    fn test_field_cap_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).cap_bytes) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(cap_bytes)
            )
        );
    }
    test_field_cap_bytes();
    fn test_field_watchdog_ms() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).watchdog_ms) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(watchdog_ms)
            )
        );
    }
    test_field_watchdog_ms();
    fn test_field_optimizer() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).optimizer) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(optimizer)
            )
        );
    }
    test_field_optimizer();
    fn test_field_decay() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).decay) as usize - ptr as usize
            },
            76usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(decay)
            )
        );
    }
    test_field_decay();
    fn test_field_lr() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).lr) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(lr)
            )
        );
    }
    test_field_lr();
    fn test_field_lr_min() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).lr_min) as usize - ptr as usize
            },
            88usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(lr_min)
            )
        );
    }
    test_field_lr_min();
    fn test_field_warmup_steps() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).warmup_steps) as usize - ptr as usize
            },
            96usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(warmup_steps)
            )
        );
    }
    test_field_warmup_steps();
    fn test_field_decay_steps() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).decay_steps) as usize - ptr as usize
            },
            104usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(decay_steps)
            )
        );
    }
    test_field_decay_steps();
    fn test_field_beta1() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).beta1) as usize - ptr as usize
            },
            112usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(beta1)
            )
        );
    }
    test_field_beta1();
    fn test_field_beta2() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).beta2) as usize - ptr as usize
            },
            120usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(beta2)
            )
        );
    }
    test_field_beta2();
    fn test_field_epsilon() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).epsilon) as usize - ptr as usize
            },
            128usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(epsilon)
            )
        );
    }
    test_field_epsilon();
    fn test_field_weight_decay() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).weight_decay) as usize - ptr as usize
            },
            136usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(weight_decay)
            )
        );
    }
    test_field_weight_decay();
    fn test_field_momentum() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).momentum) as usize - ptr as usize
            },
            144usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(momentum)
            )
        );
    }
    test_field_momentum();
    fn test_field_clip_norm() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).clip_norm) as usize - ptr as usize
            },
            152usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(clip_norm)
            )
        );
    }
    test_field_clip_norm();
    fn test_field_reduction() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reduction) as usize - ptr as usize
            },
            160usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(reduction)
            )
        );
    }
    test_field_reduction();
    fn test_field_non_finite() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).non_finite) as usize - ptr as usize
            },
            164usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(non_finite)
            )
        );
    }
    test_field_non_finite();
    fn test_field_loss_scale() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).loss_scale) as usize - ptr as usize
            },
            168usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(loss_scale)
            )
        );
    }
    test_field_loss_scale();
    fn test_field_loss_scale_growth() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).loss_scale_growth) as usize - ptr as usize
            },
            176usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(loss_scale_growth)
            )
        );
    }
    test_field_loss_scale_growth();
    fn test_field_seed() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).seed) as usize - ptr as usize
            },
            184usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(seed)
            )
        );
    }
    test_field_seed();
    fn test_field_trace_steps() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).trace_steps) as usize - ptr as usize
            },
            192usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(trace_steps)
            )
        );
    }
    test_field_trace_steps();
    fn test_field_injection() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).injection) as usize - ptr as usize
            },
            196usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(injection)
            )
        );
    }
    test_field_injection();
    fn test_field_delay_us_max() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).delay_us_max) as usize - ptr as usize
            },
            200usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(delay_us_max)
            )
        );
    }
    test_field_delay_us_max();
    fn test_field_log() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).log) as usize - ptr as usize
            },
            208usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(log)
            )
        );
    }
    test_field_log();
    fn test_field_log_user_data() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).log_user_data) as usize - ptr as usize
            },
            216usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(log_user_data)
            )
        );
    }
    test_field_log_user_data();
    fn test_field_stage_ranks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stage_ranks) as usize - ptr as usize
            },
            224usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_options),
                "::",
                stringify!(stage_ranks)
            )
        );
    }
    test_field_stage_ranks();
}
extern "C" {
    pub fn rrfp_trainer_options_init(options: *mut rrfp_trainer_options);
}
extern "C" {
    pub fn rrfp_trainer_create(
        model: *const rrfp_model,
        options: *const rrfp_trainer_options,
        out: *mut *mut rrfp_trainer,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_destroy(trainer: *mut rrfp_trainer);
}
pub type rrfp_batch_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_batch {
    pub struct_size: u32,
    pub flags: rrfp_batch_flags,
    pub microbatches: i32,
    pub rounds: i32,
    pub inputs: *const rrfp_tensor,
    pub loss_factors: *const f64,
    pub random_step: i64,
}
#[test]
fn bindgen_test_layout_rrfp_batch() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_batch>(),
        40usize,
        concat!("Size of: ", stringify!(rrfp_batch))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_batch>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_batch))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_batch>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_batch),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_batch>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_batch),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_microbatches() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_batch>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatches) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_batch),
                "::",
                stringify!(microbatches)
            )
        );
    }
    test_field_microbatches();
    fn test_field_rounds() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_batch>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rounds) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_batch),
                "::",
                stringify!(rounds)
            )
        );
    }
    test_field_rounds();
    fn test_field_inputs() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_batch>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).inputs) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_batch),
                "::",
                stringify!(inputs)
            )
        );
    }
    test_field_inputs();
    fn test_field_loss_factors() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_batch>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).loss_factors) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_batch),
                "::",
                stringify!(loss_factors)
            )
        );
    }
    test_field_loss_factors();
    fn test_field_random_step() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_batch>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).random_step) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_batch),
                "::",
                stringify!(random_step)
            )
        );
    }
    test_field_random_step();
}
extern "C" {
    pub fn rrfp_batch_init(batch: *mut rrfp_batch);
}
pub type rrfp_train_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_train_report {
    pub struct_size: u32,
    pub flags: rrfp_train_flags,
    pub step: i64,
    pub loss: f64,
    pub loss_sum: f64,
    pub loss_weight: f64,
    pub gradient_norm: f64,
    pub lr: f64,
    pub loss_scale: f64,
    pub wall_ns: i64,
    pub total_ns: i64,
    pub busy_ns: i64,
    pub wait_input_ns: i64,
    pub wait_memory_ns: i64,
    pub wait_credit_ns: i64,
    pub wait_policy_ns: i64,
    pub other_ns: i64,
    pub state_bytes: i64,
    pub tensor_bytes_peak: i64,
}
#[test]
fn bindgen_test_layout_rrfp_train_report() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_train_report>(),
        144usize,
        concat!("Size of: ", stringify!(rrfp_train_report))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_train_report>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_train_report))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_step() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).step) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(step)
            )
        );
    }
    test_field_step();
    fn test_field_loss() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).loss) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(loss)
            )
        );
    }
    test_field_loss();
    fn test_field_loss_sum() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).loss_sum) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(loss_sum)
            )
        );
    }
    test_field_loss_sum();
    fn test_field_loss_weight() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).loss_weight) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(loss_weight)
            )
        );
    }
    test_field_loss_weight();
    fn test_field_gradient_norm() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).gradient_norm) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(gradient_norm)
            )
        );
    }
    test_field_gradient_norm();
    fn test_field_lr() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).lr) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(lr)
            )
        );
    }
    test_field_lr();
    fn test_field_loss_scale() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).loss_scale) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(loss_scale)
            )
        );
    }
    test_field_loss_scale();
    fn test_field_wall_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wall_ns) as usize - ptr as usize
            },
            64usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(wall_ns)
            )
        );
    }
    test_field_wall_ns();
    fn test_field_total_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).total_ns) as usize - ptr as usize
            },
            72usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(total_ns)
            )
        );
    }
    test_field_total_ns();
    fn test_field_busy_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).busy_ns) as usize - ptr as usize
            },
            80usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(busy_ns)
            )
        );
    }
    test_field_busy_ns();
    fn test_field_wait_input_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_input_ns) as usize - ptr as usize
            },
            88usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(wait_input_ns)
            )
        );
    }
    test_field_wait_input_ns();
    fn test_field_wait_memory_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_memory_ns) as usize - ptr as usize
            },
            96usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(wait_memory_ns)
            )
        );
    }
    test_field_wait_memory_ns();
    fn test_field_wait_credit_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_credit_ns) as usize - ptr as usize
            },
            104usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(wait_credit_ns)
            )
        );
    }
    test_field_wait_credit_ns();
    fn test_field_wait_policy_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).wait_policy_ns) as usize - ptr as usize
            },
            112usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(wait_policy_ns)
            )
        );
    }
    test_field_wait_policy_ns();
    fn test_field_other_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).other_ns) as usize - ptr as usize
            },
            120usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(other_ns)
            )
        );
    }
    test_field_other_ns();
    fn test_field_state_bytes() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).state_bytes) as usize - ptr as usize
            },
            128usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(state_bytes)
            )
        );
    }
    test_field_state_bytes();
    fn test_field_tensor_bytes_peak() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_train_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tensor_bytes_peak) as usize - ptr as usize
            },
            136usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_train_report),
                "::",
                stringify!(tensor_bytes_peak)
            )
        );
    }
    test_field_tensor_bytes_peak();
}
extern "C" {
    pub fn rrfp_train_report_init(report: *mut rrfp_train_report);
}
extern "C" {
    pub fn rrfp_trainer_step(
        trainer: *mut rrfp_trainer,
        batch: *const rrfp_batch,
        out: *mut rrfp_train_report,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_evaluate(
        trainer: *mut rrfp_trainer,
        batch: *const rrfp_batch,
        out: *mut rrfp_train_report,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_cancel(trainer: *mut rrfp_trainer, error: *mut rrfp_error) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_trainer_info {
    pub struct_size: u32,
    pub stages: i32,
    pub ranks: i32,
    pub parameters: i32,
    pub steps: i64,
    pub updates: i64,
    pub seed: u64,
}
#[test]
fn bindgen_test_layout_rrfp_trainer_info() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_trainer_info>(),
        40usize,
        concat!("Size of: ", stringify!(rrfp_trainer_info))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_trainer_info>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_trainer_info))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_info),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_stages() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).stages) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_info),
                "::",
                stringify!(stages)
            )
        );
    }
    test_field_stages();
    fn test_field_ranks() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ranks) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_info),
                "::",
                stringify!(ranks)
            )
        );
    }
    test_field_ranks();
    fn test_field_parameters() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).parameters) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_info),
                "::",
                stringify!(parameters)
            )
        );
    }
    test_field_parameters();
    fn test_field_steps() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).steps) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_info),
                "::",
                stringify!(steps)
            )
        );
    }
    test_field_steps();
    fn test_field_updates() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).updates) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_info),
                "::",
                stringify!(updates)
            )
        );
    }
    test_field_updates();
    fn test_field_seed() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_trainer_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).seed) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_trainer_info),
                "::",
                stringify!(seed)
            )
        );
    }
    test_field_seed();
}
extern "C" {
    pub fn rrfp_trainer_info_init(info: *mut rrfp_trainer_info);
}
extern "C" {
    pub fn rrfp_trainer_get_info(
        trainer: *mut rrfp_trainer,
        out: *mut rrfp_trainer_info,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_rank_report(
        trainer: *mut rrfp_trainer,
        rank: i32,
        out: *mut rrfp_step_report,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_stage_report {
    pub struct_size: u32,
    pub rank: i32,
    pub first_block: i32,
    pub last_block: i32,
    pub branch: i32,
    pub microbatches: i32,
    pub busy_ns: i64,
}
#[test]
fn bindgen_test_layout_rrfp_stage_report() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_stage_report>(),
        32usize,
        concat!("Size of: ", stringify!(rrfp_stage_report))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_stage_report>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_stage_report))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_report),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_rank() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).rank) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_report),
                "::",
                stringify!(rank)
            )
        );
    }
    test_field_rank();
    fn test_field_first_block() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).first_block) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_report),
                "::",
                stringify!(first_block)
            )
        );
    }
    test_field_first_block();
    fn test_field_last_block() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).last_block) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_report),
                "::",
                stringify!(last_block)
            )
        );
    }
    test_field_last_block();
    fn test_field_branch() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).branch) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_report),
                "::",
                stringify!(branch)
            )
        );
    }
    test_field_branch();
    fn test_field_microbatches() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).microbatches) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_report),
                "::",
                stringify!(microbatches)
            )
        );
    }
    test_field_microbatches();
    fn test_field_busy_ns() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_stage_report>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).busy_ns) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_stage_report),
                "::",
                stringify!(busy_ns)
            )
        );
    }
    test_field_busy_ns();
}
extern "C" {
    pub fn rrfp_stage_report_init(report: *mut rrfp_stage_report);
}
extern "C" {
    pub fn rrfp_trainer_stage_report(
        trainer: *mut rrfp_trainer,
        stage: i32,
        out: *mut rrfp_stage_report,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_first_blocks(
        trainer: *mut rrfp_trainer,
        first_blocks: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_losses(
        trainer: *mut rrfp_trainer,
        losses: *mut f64,
        count: usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_slot = i32;
extern "C" {
    pub fn rrfp_trainer_read(
        trainer: *mut rrfp_trainer,
        parameter: i32,
        slot: rrfp_slot,
        data: *mut f32,
        count: usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_write(
        trainer: *mut rrfp_trainer,
        parameter: i32,
        slot: rrfp_slot,
        data: *const f32,
        count: usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_weights_sha256(
        trainer: *mut rrfp_trainer,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_describe_hint(
        trainer: *mut rrfp_trainer,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_trainer_write_trace(
        trainer: *mut rrfp_trainer,
        path: *const ::std::os::raw::c_char,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_save_options {
    pub struct_size: u32,
    pub keep: i32,
    pub root: *const ::std::os::raw::c_char,
    pub position: u64,
    pub user_json: *const ::std::os::raw::c_char,
}
#[test]
fn bindgen_test_layout_rrfp_save_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_save_options>(),
        32usize,
        concat!("Size of: ", stringify!(rrfp_save_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_save_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_save_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_save_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_save_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_keep() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_save_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).keep) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_save_options),
                "::",
                stringify!(keep)
            )
        );
    }
    test_field_keep();
    fn test_field_root() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_save_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).root) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_save_options),
                "::",
                stringify!(root)
            )
        );
    }
    test_field_root();
    fn test_field_position() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_save_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).position) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_save_options),
                "::",
                stringify!(position)
            )
        );
    }
    test_field_position();
    fn test_field_user_json() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_save_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).user_json) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_save_options),
                "::",
                stringify!(user_json)
            )
        );
    }
    test_field_user_json();
}
extern "C" {
    pub fn rrfp_save_options_init(options: *mut rrfp_save_options);
}
extern "C" {
    pub fn rrfp_trainer_save(
        trainer: *mut rrfp_trainer,
        options: *const rrfp_save_options,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_load_flags = u32;
extern "C" {
    pub fn rrfp_trainer_load(
        trainer: *mut rrfp_trainer,
        path: *const ::std::os::raw::c_char,
        flags: rrfp_load_flags,
        out_position: *mut u64,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_checkpoint_describe(
        path: *const ::std::os::raw::c_char,
        buffer: *mut ::std::os::raw::c_char,
        capacity: usize,
        out_size: *mut usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_data {
    _unused: [u8; 0],
}
pub type rrfp_data_format = i32;
pub type rrfp_split = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_data_options {
    pub struct_size: u32,
    pub format: rrfp_data_format,
    pub paths: *const *const ::std::os::raw::c_char,
    pub path_count: i32,
    pub vocabulary: i32,
    pub context: i32,
    pub reserved: i32,
    pub validation_share: f64,
    pub seed: u64,
}
#[test]
fn bindgen_test_layout_rrfp_data_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_data_options>(),
        48usize,
        concat!("Size of: ", stringify!(rrfp_data_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_data_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_data_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_format() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).format) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(format)
            )
        );
    }
    test_field_format();
    fn test_field_paths() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).paths) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(paths)
            )
        );
    }
    test_field_paths();
    fn test_field_path_count() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).path_count) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(path_count)
            )
        );
    }
    test_field_path_count();
    fn test_field_vocabulary() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).vocabulary) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(vocabulary)
            )
        );
    }
    test_field_vocabulary();
    fn test_field_context() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).context) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(context)
            )
        );
    }
    test_field_context();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
    fn test_field_validation_share() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).validation_share) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(validation_share)
            )
        );
    }
    test_field_validation_share();
    fn test_field_seed() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).seed) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_options),
                "::",
                stringify!(seed)
            )
        );
    }
    test_field_seed();
}
extern "C" {
    pub fn rrfp_data_options_init(options: *mut rrfp_data_options);
}
extern "C" {
    pub fn rrfp_data_open(
        options: *const rrfp_data_options,
        out: *mut *mut rrfp_data,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_data_destroy(data: *mut rrfp_data);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_data_info {
    pub struct_size: u32,
    pub vocabulary: i32,
    pub tokens: i64,
    pub train_windows: i64,
    pub validation_windows: i64,
    pub unigram_entropy: f64,
}
#[test]
fn bindgen_test_layout_rrfp_data_info() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_data_info>(),
        40usize,
        concat!("Size of: ", stringify!(rrfp_data_info))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_data_info>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_data_info))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_info),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_vocabulary() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).vocabulary) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_info),
                "::",
                stringify!(vocabulary)
            )
        );
    }
    test_field_vocabulary();
    fn test_field_tokens() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tokens) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_info),
                "::",
                stringify!(tokens)
            )
        );
    }
    test_field_tokens();
    fn test_field_train_windows() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).train_windows) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_info),
                "::",
                stringify!(train_windows)
            )
        );
    }
    test_field_train_windows();
    fn test_field_validation_windows() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).validation_windows) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_info),
                "::",
                stringify!(validation_windows)
            )
        );
    }
    test_field_validation_windows();
    fn test_field_unigram_entropy() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_data_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).unigram_entropy) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_data_info),
                "::",
                stringify!(unigram_entropy)
            )
        );
    }
    test_field_unigram_entropy();
}
extern "C" {
    pub fn rrfp_data_info_init(info: *mut rrfp_data_info);
}
extern "C" {
    pub fn rrfp_data_get_info(
        data: *const rrfp_data,
        out: *mut rrfp_data_info,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_data_read(
        data: *const rrfp_data,
        split: rrfp_split,
        position: u64,
        samples: i32,
        tokens: *mut i32,
        targets: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_generator {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_sampling {
    pub struct_size: u32,
    pub top_k: i32,
    pub temperature: f64,
    pub top_p: f64,
    pub seed: u64,
}
#[test]
fn bindgen_test_layout_rrfp_sampling() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_sampling>(),
        32usize,
        concat!("Size of: ", stringify!(rrfp_sampling))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_sampling>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_sampling))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_sampling>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_sampling),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_top_k() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_sampling>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).top_k) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_sampling),
                "::",
                stringify!(top_k)
            )
        );
    }
    test_field_top_k();
    fn test_field_temperature() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_sampling>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).temperature) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_sampling),
                "::",
                stringify!(temperature)
            )
        );
    }
    test_field_temperature();
    fn test_field_top_p() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_sampling>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).top_p) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_sampling),
                "::",
                stringify!(top_p)
            )
        );
    }
    test_field_top_p();
    fn test_field_seed() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_sampling>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).seed) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_sampling),
                "::",
                stringify!(seed)
            )
        );
    }
    test_field_seed();
}
extern "C" {
    pub fn rrfp_sampling_init(sampling: *mut rrfp_sampling);
}
extern "C" {
    pub fn rrfp_generator_create(
        trainer: *mut rrfp_trainer,
        context: i32,
        out: *mut *mut rrfp_generator,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_generator_destroy(generator: *mut rrfp_generator);
}
extern "C" {
    pub fn rrfp_generator_start(
        generator: *mut rrfp_generator,
        tokens: *const i32,
        count: usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_generator_next(
        generator: *mut rrfp_generator,
        sampling: *const rrfp_sampling,
        out_token: *mut i32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_generator_logits(
        generator: *mut rrfp_generator,
        logits: *mut f32,
        count: usize,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
pub type rrfp_vision_flags = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_vision_options {
    pub struct_size: u32,
    pub flags: rrfp_vision_flags,
    pub image_size: i32,
    pub patch: i32,
    pub layers: i32,
    pub dim: i32,
    pub heads: i32,
    pub hidden: i32,
}
#[test]
fn bindgen_test_layout_rrfp_vision_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_vision_options>(),
        32usize,
        concat!("Size of: ", stringify!(rrfp_vision_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_vision_options>(),
        4usize,
        concat!("Alignment of ", stringify!(rrfp_vision_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_flags() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).flags) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(flags)
            )
        );
    }
    test_field_flags();
    fn test_field_image_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).image_size) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(image_size)
            )
        );
    }
    test_field_image_size();
    fn test_field_patch() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).patch) as usize - ptr as usize
            },
            12usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(patch)
            )
        );
    }
    test_field_patch();
    fn test_field_layers() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).layers) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(layers)
            )
        );
    }
    test_field_layers();
    fn test_field_dim() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).dim) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(dim)
            )
        );
    }
    test_field_dim();
    fn test_field_heads() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).heads) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(heads)
            )
        );
    }
    test_field_heads();
    fn test_field_hidden() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_vision_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).hidden) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_vision_options),
                "::",
                stringify!(hidden)
            )
        );
    }
    test_field_hidden();
}
extern "C" {
    pub fn rrfp_vision_options_init(options: *mut rrfp_vision_options);
}
extern "C" {
    pub fn rrfp_model_create_vision_language(
        language: *const rrfp_gpt_options,
        vision: *const rrfp_vision_options,
        out: *mut *mut rrfp_model,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_samples {
    _unused: [u8; 0],
}
pub type rrfp_grouping = i32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_samples_options {
    pub struct_size: u32,
    pub grouping: rrfp_grouping,
    pub path: *const ::std::os::raw::c_char,
    pub image_size: i32,
    pub image_tokens: i32,
    pub context: i32,
    pub ahead: i32,
    pub validation_share: f64,
    pub image_cost: f64,
    pub seed: u64,
    pub pixels_max: i64,
}
#[test]
fn bindgen_test_layout_rrfp_samples_options() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_samples_options>(),
        64usize,
        concat!("Size of: ", stringify!(rrfp_samples_options))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_samples_options>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_samples_options))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_grouping() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).grouping) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(grouping)
            )
        );
    }
    test_field_grouping();
    fn test_field_path() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).path) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(path)
            )
        );
    }
    test_field_path();
    fn test_field_image_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).image_size) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(image_size)
            )
        );
    }
    test_field_image_size();
    fn test_field_image_tokens() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).image_tokens) as usize - ptr as usize
            },
            20usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(image_tokens)
            )
        );
    }
    test_field_image_tokens();
    fn test_field_context() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).context) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(context)
            )
        );
    }
    test_field_context();
    fn test_field_ahead() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).ahead) as usize - ptr as usize
            },
            28usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(ahead)
            )
        );
    }
    test_field_ahead();
    fn test_field_validation_share() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).validation_share) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(validation_share)
            )
        );
    }
    test_field_validation_share();
    fn test_field_image_cost() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).image_cost) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(image_cost)
            )
        );
    }
    test_field_image_cost();
    fn test_field_seed() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).seed) as usize - ptr as usize
            },
            48usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(seed)
            )
        );
    }
    test_field_seed();
    fn test_field_pixels_max() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_options>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).pixels_max) as usize - ptr as usize
            },
            56usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_options),
                "::",
                stringify!(pixels_max)
            )
        );
    }
    test_field_pixels_max();
}
extern "C" {
    pub fn rrfp_samples_options_init(options: *mut rrfp_samples_options);
}
extern "C" {
    pub fn rrfp_samples_open(
        options: *const rrfp_samples_options,
        out: *mut *mut rrfp_samples,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_samples_destroy(samples: *mut rrfp_samples);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rrfp_samples_info {
    pub struct_size: u32,
    pub reserved: i32,
    pub train_samples: i64,
    pub validation_samples: i64,
    pub images: i64,
    pub images_max: i64,
    pub tokens: i64,
}
#[test]
fn bindgen_test_layout_rrfp_samples_info() {
    assert_eq!(
        ::std::mem::size_of::<rrfp_samples_info>(),
        48usize,
        concat!("Size of: ", stringify!(rrfp_samples_info))
    );
    assert_eq!(
        ::std::mem::align_of::<rrfp_samples_info>(),
        8usize,
        concat!("Alignment of ", stringify!(rrfp_samples_info))
    );
    fn test_field_struct_size() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).struct_size) as usize - ptr as usize
            },
            0usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_info),
                "::",
                stringify!(struct_size)
            )
        );
    }
    test_field_struct_size();
    fn test_field_reserved() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).reserved) as usize - ptr as usize
            },
            4usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_info),
                "::",
                stringify!(reserved)
            )
        );
    }
    test_field_reserved();
    fn test_field_train_samples() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).train_samples) as usize - ptr as usize
            },
            8usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_info),
                "::",
                stringify!(train_samples)
            )
        );
    }
    test_field_train_samples();
    fn test_field_validation_samples() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).validation_samples) as usize - ptr as usize
            },
            16usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_info),
                "::",
                stringify!(validation_samples)
            )
        );
    }
    test_field_validation_samples();
    fn test_field_images() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).images) as usize - ptr as usize
            },
            24usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_info),
                "::",
                stringify!(images)
            )
        );
    }
    test_field_images();
    fn test_field_images_max() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).images_max) as usize - ptr as usize
            },
            32usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_info),
                "::",
                stringify!(images_max)
            )
        );
    }
    test_field_images_max();
    fn test_field_tokens() {
        assert_eq!(
            unsafe {
                let uninit = ::std::mem::MaybeUninit::<rrfp_samples_info>::uninit();
                let ptr = uninit.as_ptr();
                ::std::ptr::addr_of!((*ptr).tokens) as usize - ptr as usize
            },
            40usize,
            concat!(
                "Offset of field: ",
                stringify!(rrfp_samples_info),
                "::",
                stringify!(tokens)
            )
        );
    }
    test_field_tokens();
}
extern "C" {
    pub fn rrfp_samples_info_init(info: *mut rrfp_samples_info);
}
extern "C" {
    pub fn rrfp_samples_get_info(
        samples: *const rrfp_samples,
        out: *mut rrfp_samples_info,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_samples_read(
        samples: *mut rrfp_samples,
        split: rrfp_split,
        position: u64,
        count: i32,
        microbatches: i32,
        out_batch: *mut rrfp_batch,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_samples_read_at(
        samples: *mut rrfp_samples,
        split: rrfp_split,
        positions: *const u64,
        count: i32,
        microbatches: i32,
        out_batch: *mut rrfp_batch,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_picture_read(
        path: *const ::std::os::raw::c_char,
        image_size: i32,
        pixels_max: i64,
        pixels: *mut f32,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
extern "C" {
    pub fn rrfp_generator_start_inputs(
        generator: *mut rrfp_generator,
        inputs: *const rrfp_tensor,
        error: *mut rrfp_error,
    ) -> rrfp_status;
}
