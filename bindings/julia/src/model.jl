# SPDX-License-Identifier: Apache-2.0
#
# Models: graphs of operations that a Trainer can train.

"""
    Model()                                          empty; add blocks, inputs, operations
    Model(:gpt; vocabulary, context, layers, dim, heads, kv_heads, hidden, dropout, tied, rotary,
          rms_norm, swiglu)                          a language model; see rrfp_gpt_options
    Model(:vision_language; language, vision)        one that reads pictures; see below
    Model(path)                                      that of a checkpoint of a built-in model

Inputs, parameters and operations, grouped in blocks, of which stages are made.

    model = Model()
    begin_block!(model)
    x = add_input!(model, "x", Float32, 8, -1)       # size (8, rows)
    w = add_parameter!(model, "w", 8, 4; init = :normal, init_scale = 0.1)
    y = add_operation!(model, :linear, x; parameters = w)

Of `:vision_language`, `language` is a named tuple of the keywords of `:gpt`, and `vision` one of
`image_size`, `patch` (pixels a side; patch divides image_size), `layers`, `dim`, `heads`, `hidden`
(0 = 4 dim), `frozen` (the encoder is not trained) and `conv_stem` (convolutions make the patches).
An encoder makes (image_size / patch)^2 rows of each picture, a projector turns them into rows of
the language model's width, and these take the places of marked tokens. Inputs, all `Int32` of size
(T, B) but the last one; `read` of [`Samples`](@ref) makes them:

- tokens: ids below the vocabulary
- targets: the next token, or -100 where there is nothing to predict
- segments: the sample of each position, a run of equal numbers
- positions: of each position in its sample, 0 to context - 1
- sources: -1, or the row that takes this place: k (image_size / patch)^2 + p for patch p of picture
  k of the microbatch, both from 0
- images: `Float32` of size (3, image_size, image_size, N), N may be 0

Blocks: "vision.embedding", "vision.layers.<i>", "projector", "embedding", "layers.<i>", "head". See
[`RRFP.place`](@ref) for the stages of such a model.
"""
mutable struct Model <: Handle
    handle::Ptr{Raw.rrfp_model}
    Model(handle::Ptr{Raw.rrfp_model}) = finalizer(free, new(handle))
end
destroy(p::Ptr{Raw.rrfp_model}) = Raw.rrfp_model_destroy(p)

Model() = Model(create(Raw.rrfp_model_create, Raw.rrfp_model))
Model(path::AbstractString) =
    Model(create(Raw.rrfp_model_create_from_checkpoint, Raw.rrfp_model, path))
function Model(kind::Symbol; keywords...)
    kind === :vision_language && return vision_language(; keywords...)
    kind === :gpt || throw(ArgumentError("the built-in models are :gpt and :vision_language, not " *
                                         ":$kind"))
    return Model(create(Raw.rrfp_model_create_gpt, Raw.rrfp_model,
                        fill!(Raw.rrfp_gpt_options(), keywords)))
end

vision_language(; language, vision) =
    Model(create(Raw.rrfp_model_create_vision_language, Raw.rrfp_model,
                 fill!(Raw.rrfp_gpt_options(), language), fill!(Raw.rrfp_vision_options(), vision)))

c_text(text) = Cstring(C_NULL)
c_text(text::AbstractString) = String(text)

"""
    begin_block!(model, name = nothing; recompute = false) -> block

Begins the next block. With `recompute` it keeps only what enters it.
"""
function begin_block!(model::Model, name = nothing; recompute = false)
    out = Ref{Int32}(0)
    call(Raw.rrfp_model_begin_block, model, c_text(name),
         recompute ? Raw.RRFP_BLOCK_RECOMPUTE : UInt32(0), out)
    return Int(out[])
end

"""
    add_input!(model, name, T, size...) -> value

Adds an input, which every microbatch gives anew: `Float32` or `Int32`, -1 where extents may differ.
They may be 0 then: a microbatch without pictures has (.., 0) of them.
"""
function add_input!(model::Model, name::AbstractString, ::Type{T}, size::Integer...) where {T}
    shape = collect(Int64, reverse(size))
    out = Ref{Int32}(0)
    call(Raw.rrfp_model_add_input, model, name, dtype(T), length(shape), shape, out)
    return Int(out[])
end

"""
    add_parameter!(model, name, size...; init = :constant, init_value, init_scale, frozen, no_decay)
        -> parameter

Adds a `Float32` parameter; `init` is `:constant`, `:normal` or `:uniform`.
"""
function add_parameter!(model::Model, name::AbstractString, size::Integer...; keywords...)
    options = fill!(Raw.rrfp_parameter_options(), keywords)
    shape = collect(Int64, reverse(size))
    text = field_text(name)
    out = Ref{Int32}(0)
    options.ndim = length(shape)
    options.shape = pointer(shape)
    options.name = pointer(text)
    GC.@preserve shape text call(Raw.rrfp_model_add_parameter, model, options, out)
    return Int(out[])
end

"""
    add_operation!(model, op, inputs...; parameters = (), shape, axis, heads, kv_heads, head_dim,
                   causal, ignore_index, probability, epsilon, base, kernel, stride, padding)
        -> value

Adds an operation to the current block. `op` is one of `keys(RRFP.symbols.op)`; what it takes is
written at RRFP_OP_ in train.h. Sizes are those of Julia: x of size (in, ..) and W of size (in, out)
for `:linear`. `axis` and `shape` of `:reshape` are also Julia's: axis 1 is the one that is
contiguous.

Further inputs: of `:rotary` positions (T, ..), of `:attention`, after q, k and v or all three in
one, segments (T, B). `:patches` makes (kernel * kernel * C, W', H', N) of pictures (C, W, H, N);
`:merge_rows` takes x (d, ..), rows (d, ..) and sources of x's rows, which count from 0.
"""
function add_operation!(model::Model, op::Symbol, inputs::Integer...; parameters = (),
                        shape = nothing, axis = nothing, keywords...)
    operation = fill!(Raw.rrfp_operation(), keywords)
    operation.op = number(:op, op)
    values = collect(Int32, inputs)
    weights = collect(Int32, parameters)
    extents = shape === nothing ? Int64[] : collect(Int64, reverse(Tuple(shape)))
    operation.inputs = pointer(values)
    operation.input_count = length(values)
    operation.parameters = pointer(weights)
    operation.parameter_count = length(weights)
    operation.shape = isempty(extents) ? Ptr{Int64}(C_NULL) : pointer(extents)
    operation.ndim = length(extents)
    if axis !== nothing
        axis >= 1 || throw(ArgumentError("axes count from 1, the contiguous one; not $axis"))
        operation.axis = -axis
    end
    out = Ref{Int32}(0)
    GC.@preserve values weights extents call(Raw.rrfp_model_add_operation, model, operation, out)
    return Int(out[])
end

"""The value whose elements are the losses."""
set_loss!(model::Model, value::Integer) = (call(Raw.rrfp_model_set_loss, model, value); nothing)
"""
    add_loss!(model, value, factor = 1)

One more loss, such as that of a second head, after [`set_loss!`](@ref). Each is reduced by itself,
multiplied by its factor (1 for the first), and added up; one that counts nothing in a batch adds 0.
No operation may read a loss. See [`RRFP.losses`](@ref).
"""
add_loss!(model::Model, value::Integer, factor::Real = 1) =
    (call(Raw.rrfp_model_add_loss, model, value, factor); nothing)
"""The value that predictions are read from."""
set_output!(model::Model, value::Integer) =
    (call(Raw.rrfp_model_set_output, model, value); nothing)

function info(model::Model)
    out = Raw.rrfp_model_info()
    call(Raw.rrfp_model_get_info, model, out)
    return named(out)
end

function size_out(f, model, index)
    ndim = Ref{Int32}(0)
    shape = zeros(Int64, Raw.RRFP_DIMS_MAX)
    call(f, model, index, ndim, shape)
    return Tuple(Int.(reverse(shape[1:ndim[]])))
end

"""The size of a value, -1 where extents vary."""
value_size(model::Model, value::Integer) = size_out(Raw.rrfp_model_value_shape, model, value)
parameter_size(model::Model, parameter::Integer) =
    size_out(Raw.rrfp_model_parameter_shape, model, parameter)
parameter_name(model::Model, parameter::Integer) =
    text_out(Raw.rrfp_model_parameter_name, model, parameter)

"""
    describe(model)
    describe(path)         of a checkpoint, or the newest one in a folder
    describe(simulation)   what ran last and, for "auto" and "rf-d", why

A text; of models and checkpoints a JSON object.
"""
describe(model::Model) = text_out(Raw.rrfp_model_describe, model)

"""
    measure(model, inputs) -> Vector of nanoseconds

Measures forward and backward of each block, on one array for each input of the model.
"""
function measure(model::Model, inputs)
    tensors, arrays = batch_tensors([inputs], info(model).inputs)
    block_ns = zeros(Int64, info(model).blocks)
    GC.@preserve arrays call(Raw.rrfp_model_measure, model, tensors, block_ns)
    return block_ns
end

"""
    partition(model, stages, block_costs = nothing) -> first block of each stage

Cuts the blocks into runs so that the most expensive one is as cheap as possible.
"""
function partition(model::Model, stages::Integer, block_costs = nothing)
    stages >= 1 || throw(ArgumentError("stages must be at least 1, not $stages"))
    first_blocks = zeros(Int32, stages)
    call(Raw.rrfp_model_partition, model, stages, costs_of(model, block_costs), first_blocks)
    return Int.(first_blocks)
end

"""
    place(model, stages, ranks, block_costs = nothing) -> (first_blocks, stage_ranks)

The same for a model with branches, such as encoders and a text embedding that feed one language
model: no stage has blocks of two branches, and stages go to ranks by longest processing time first
(Graham 1969): the busiest rank has at most 4/3 of the least that it could have. A branch is a run
of blocks of which each reads the one before it; a block at which branches meet for the first time
begins a new one. The first block and the rank of each stage are options of a [`Trainer`](@ref); every rank has 1 or more stages. An `RRFPError`
`:OUT_OF_RANGE` unless branches <= stages <= blocks and 1 <= ranks <= stages.
"""
function place(model::Model, stages::Integer, ranks::Integer, block_costs = nothing)
    stages >= 1 || throw(ArgumentError("stages must be at least 1, not $stages"))
    first_blocks, stage_ranks = zeros(Int32, stages), zeros(Int32, stages)
    call(Raw.rrfp_model_place, model, stages, ranks, costs_of(model, block_costs), first_blocks,
         stage_ranks)
    return Int.(first_blocks), Int.(stage_ranks)
end

costs_of(model, ::Nothing) = Ptr{Int64}(C_NULL)
function costs_of(model, block_costs)
    costs = collect(Int64, block_costs)
    length(costs) == info(model).blocks ||
        throw(DimensionMismatch("one cost for each of the $(info(model).blocks) blocks is wanted"))
    return costs
end
