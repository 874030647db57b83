# SPDX-License-Identifier: Apache-2.0
#
# Options of C as keywords of Julia: one table of the names that flags and values have here.

"""Symbols that stand for values, by the field that they are for."""
const symbols = (
    placement = (linear = Raw.RRFP_PLACEMENT_LINEAR, loop = Raw.RRFP_PLACEMENT_LOOP,
                 v = Raw.RRFP_PLACEMENT_V),
    order = (default = Raw.RRFP_ORDER_DEFAULT, ready = Raw.RRFP_ORDER_READY,
             strict = Raw.RRFP_ORDER_STRICT, paired = Raw.RRFP_ORDER_PAIRED),
    injection = (default = Raw.RRFP_INJECTION_DEFAULT, data = Raw.RRFP_INJECTION_DATA,
                 tent = Raw.RRFP_INJECTION_TENT),
    wake = (yield = Raw.RRFP_WAKE_YIELD, spin = Raw.RRFP_WAKE_SPIN, park = Raw.RRFP_WAKE_PARK),
    mode = (train = Raw.RRFP_MODE_TRAIN, forward = Raw.RRFP_MODE_FORWARD),
    init = (constant = Raw.RRFP_INIT_CONSTANT, normal = Raw.RRFP_INIT_NORMAL,
            uniform = Raw.RRFP_INIT_UNIFORM),
    optimizer = (adamw = Raw.RRFP_OPTIMIZER_ADAMW, sgd = Raw.RRFP_OPTIMIZER_SGD),
    decay = (none = Raw.RRFP_DECAY_NONE, cosine = Raw.RRFP_DECAY_COSINE,
             linear = Raw.RRFP_DECAY_LINEAR),
    reduction = (mean = Raw.RRFP_REDUCTION_MEAN, sum = Raw.RRFP_REDUCTION_SUM),
    non_finite = (stop = Raw.RRFP_NON_FINITE_STOP, skip = Raw.RRFP_NON_FINITE_SKIP),
    slot = (weight = Raw.RRFP_SLOT_WEIGHT, gradient = Raw.RRFP_SLOT_GRADIENT,
            moment1 = Raw.RRFP_SLOT_MOMENT1, moment2 = Raw.RRFP_SLOT_MOMENT2),
    format = (bytes = Raw.RRFP_DATA_BYTES, u16 = Raw.RRFP_DATA_U16, u32 = Raw.RRFP_DATA_U32),
    grouping = (count = Raw.RRFP_GROUPING_COUNT, cost = Raw.RRFP_GROUPING_COST),
    split = (train = Raw.RRFP_SPLIT_TRAIN, validation = Raw.RRFP_SPLIT_VALIDATION),
    readiness = (all = Raw.RRFP_READINESS_ALL, leader = Raw.RRFP_READINESS_LEADER),
    picture = (html = Raw.RRFP_PICTURE_HTML, svg = Raw.RRFP_PICTURE_SVG),
    op = (linear = Raw.RRFP_OP_LINEAR, embedding = Raw.RRFP_OP_EMBEDDING,
          positions = Raw.RRFP_OP_POSITIONS, rotary = Raw.RRFP_OP_ROTARY,
          layer_norm = Raw.RRFP_OP_LAYER_NORM, rms_norm = Raw.RRFP_OP_RMS_NORM,
          gelu = Raw.RRFP_OP_GELU, silu = Raw.RRFP_OP_SILU, swiglu = Raw.RRFP_OP_SWIGLU,
          attention = Raw.RRFP_OP_ATTENTION, dropout = Raw.RRFP_OP_DROPOUT, add = Raw.RRFP_OP_ADD,
          mul = Raw.RRFP_OP_MUL, concat = Raw.RRFP_OP_CONCAT, reshape = Raw.RRFP_OP_RESHAPE,
          mean = Raw.RRFP_OP_MEAN, cross_entropy = Raw.RRFP_OP_CROSS_ENTROPY,
          squared_error = Raw.RRFP_OP_SQUARED_ERROR, patches = Raw.RRFP_OP_PATCHES,
          merge_rows = Raw.RRFP_OP_MERGE_ROWS),
)

"""Keywords that stand for a bit in `flags`, by the struct."""
flags(::Type) = NamedTuple()
flags(::Type{Raw.rrfp_stage_options}) =
    (loss = Raw.RRFP_STAGE_LOSS, frozen = Raw.RRFP_STAGE_FROZEN,
     wants_input_gradient = Raw.RRFP_STAGE_INPUT_GRADIENT,
     fused_only = Raw.RRFP_STAGE_FUSED_ONLY)
flags(::Type{Raw.rrfp_pipeline_options}) = (nondeterministic = Raw.RRFP_PIPELINE_NONDETERMINISTIC,)
flags(::Type{Raw.rrfp_parameter_options}) =
    (frozen = Raw.RRFP_PARAMETER_FROZEN, no_decay = Raw.RRFP_PARAMETER_NO_DECAY)
flags(::Type{Raw.rrfp_operation}) = (causal = Raw.RRFP_OP_CAUSAL,)
flags(::Type{Raw.rrfp_gpt_options}) = (tied = Raw.RRFP_GPT_TIED, rotary = Raw.RRFP_GPT_ROTARY,
                                       rms_norm = Raw.RRFP_GPT_RMS_NORM,
                                       swiglu = Raw.RRFP_GPT_SWIGLU)
flags(::Type{Raw.rrfp_vision_options}) =
    (frozen = Raw.RRFP_VISION_FROZEN, conv_stem = Raw.RRFP_VISION_CONV_STEM)
flags(::Type{Raw.rrfp_trainer_options}) =
    (nondeterministic = Raw.RRFP_TRAINER_NONDETERMINISTIC, recompute = Raw.RRFP_TRAINER_RECOMPUTE,
     auto = Raw.RRFP_TRAINER_AUTO)
flags(::Type{Raw.rrfp_batch}) = (keep_gradients = Raw.RRFP_BATCH_KEEP_GRADIENTS,)
flags(::Type{Raw.rrfp_simulation_options}) =
    (nondeterministic = Raw.RRFP_SIMULATION_NONDETERMINISTIC,)

"""The number that a symbol stands for in the field `name`; numbers pass as they are."""
number(name, value) = value
function number(name, value::Symbol)
    known = haskey(symbols, name) ? symbols[name] : NamedTuple()
    haskey(known, value) ||
        throw(ArgumentError("$name = :$value is not known; it may be one of $(keys(known))"))
    return known[value]
end

"""
Sets fields and flags of an options struct from keywords, of which only numbers, flags and symbols
are allowed: pointers are set by the functions that know how long they must live.
"""
function fill!(options::T, keywords) where {T}
    bits = flags(T)
    for (name, value) in pairs(keywords)
        if haskey(bits, name)
            Bool(value) && (options.flags |= bits[name])
        elseif hasfield(T, name) && fieldtype(T, name) <: Real &&
               !(name in (:struct_size, :flags, :reserved))
            setfield!(options, name, convert(fieldtype(T, name), number(name, value)))
        else
            throw(ArgumentError("there is no option $name"))
        end
    end
    return options
end

"""A report of C as a named tuple."""
function named(report::T) where {T}
    names = filter(n -> !(n in (:struct_size, :reserved)), fieldnames(T))
    return NamedTuple{names}(map(n -> getfield(report, n), names))
end
