# SPDX-License-Identifier: Apache-2.0
#
# Trainers, checkpoints and generating.

"""
    Trainer(model; stages, hint, lr, ...)

Weights, optimizer and one thread per rank, which the library owns. Nothing of the model is kept.
Keywords: the fields of `rrfp_trainer_options` in train.h, `hint` as a name or a [`Hint`](@ref),
`first_blocks` and `stage_ranks` as lists, `placement`, `order`, `optimizer`, .. as symbols, and
`nondeterministic`, `recompute`, `auto`. There is no log: the threads that would write it are not
Julia's.

A step is one call, in which the garbage collector of other Julia threads has to wait, and Ctrl-C is
noticed when it is over.
"""
mutable struct Trainer <: Handle
    handle::Ptr{Raw.rrfp_trainer}
    inputs::Int
    losses::Int
    names::Dict{String,Int}
    sizes::Vector{Any}       # of the parameters
    generators::Vector{Any}  # they must not outlive the trainer, so it owns them
end

function Trainer(model::Model; hint = nothing, first_blocks = nothing, stage_ranks = nothing,
                 keywords...)
    options = fill!(Raw.rrfp_trainer_options(), keywords)
    hint = hint === nothing ? nothing : as_hint(hint)
    blocks = of_stages("first block", first_blocks, options)
    on_ranks = of_stages("rank", stage_ranks, options)
    facts = info(model)
    names = Dict(parameter_name(model, p) => p for p in 0:facts.parameters-1)
    sizes = Any[parameter_size(model, p) for p in 0:facts.parameters-1]
    handle = GC.@preserve hint blocks on_ranks begin
        hint === nothing || (options.hint = pointer_of(hint))
        isempty(blocks) || (options.first_blocks = pointer(blocks))
        isempty(on_ranks) || (options.stage_ranks = pointer(on_ranks))
        create(Raw.rrfp_trainer_create, Raw.rrfp_trainer, model, options)
    end
    return finalizer(free, Trainer(handle, facts.inputs, facts.losses, names, sizes, []))
end
of_stages(what, ::Nothing, options) = Int32[]
function of_stages(what, numbers, options)
    length(numbers) == max(options.stages, 1) ||
        throw(DimensionMismatch("one $what for each stage is wanted"))
    return collect(Int32, numbers)
end
destroy(p::Ptr{Raw.rrfp_trainer}) = Raw.rrfp_trainer_destroy(p)

function free(trainer::Trainer)
    foreach(free, trainer.generators)
    handle = trainer.handle
    trainer.handle = C_NULL
    handle == C_NULL || destroy(handle)
    return nothing
end

function Base.close(trainer::Trainer)
    free(trainer)
    empty!(trainer.generators)
    return nothing
end

"""
    split_batch(count, arrays...) -> batch

Cuts arrays along their last axis into `count` equal microbatches, without a copy:
`split_batch(4, tokens, targets)` of size (context, samples).
"""
function split_batch(count::Integer, arrays::AbstractArray...)
    samples = size(first(arrays), ndims(first(arrays)))
    all(a -> size(a, ndims(a)) == samples, arrays) && count >= 1 && samples % count == 0 ||
        throw(DimensionMismatch("the last extents must be equal, and a multiple of $count"))
    each = samples ÷ count
    piece(a, m) = view(a, ntuple(_ -> Colon(), ndims(a) - 1)..., m*each+1:(m+1)*each)
    return [map(a -> piece(a, m), arrays) for m in 0:count-1]
end

"""The tensors of a batch, a row for each microbatch, and the arrays that they lie in."""
function batch_tensors(batch, inputs)
    arrays = AbstractArray[]
    for (m, row) in enumerate(batch)
        length(row) == inputs || throw(mismatch("microbatch $(m - 1) has $(length(row)) arrays; " *
                                                "the model has $inputs inputs"))
        append!(arrays, map(a -> is_contiguous(a) ? a : Array(a), row))
    end
    tensors = Raw.rrfp_tensor[make_tensor(pointer(a), Ptr{Raw.rrfp_buffer}(C_NULL), size(a),
                                          dtype(eltype(a)), UInt32(0)) for a in arrays]
    return tensors, arrays
end

function with_batch(f, trainer, batch, loss_factors, keywords)
    isopen(trainer) || throw_closed(trainer)
    options = fill!(Raw.rrfp_batch(), keywords)
    tensors, arrays = batch_tensors(batch, trainer.inputs)
    factors = loss_factors === nothing ? Cdouble[] : collect(Cdouble, loss_factors)
    loss_factors === nothing || length(factors) == length(batch) ||
        throw(DimensionMismatch("one loss factor for each microbatch is wanted"))
    out = Raw.rrfp_train_report()
    options.microbatches = length(batch)
    options.inputs = pointer(tensors)
    isempty(factors) || (options.loss_factors = pointer(factors))
    GC.@preserve tensors arrays factors call(f, trainer, options, out)
    return merge(named(out), (skipped = out.flags & Raw.RRFP_TRAIN_SKIPPED != 0,))
end

"""
    step!(trainer, batch; rounds, keep_gradients, loss_factors, random_step) -> report

One training step. `batch` is a list of microbatches, each a tuple with an array for each input of
the model, as [`split_batch`](@ref) gives it; for a language model tokens and targets, `Int32` of
size (T, B); extents may be 0, as for a microbatch without pictures. Dense arrays are not copied.
The report is `rrfp_train_report`: `loss`, `gradient_norm`, .. After an error the weights are those
before the step and the trainer can go on.
"""
step!(trainer::Trainer, batch; loss_factors = nothing, keywords...) =
    with_batch(Raw.rrfp_trainer_step, trainer, batch, loss_factors, keywords)

"""
    evaluate(trainer, batch; loss_factors) -> report

The loss of a batch, without dropout. Changes nothing.
"""
evaluate(trainer::Trainer, batch; loss_factors = nothing, keywords...) =
    with_batch(Raw.rrfp_trainer_evaluate, trainer, batch, loss_factors, keywords)

cancel!(trainer::Trainer) = (call(Raw.rrfp_trainer_cancel, trainer); nothing)

function info(trainer::Trainer)
    out = Raw.rrfp_trainer_info()
    call(Raw.rrfp_trainer_get_info, trainer, out)
    return named(out)
end

"""What a rank did in the last round of the last step or evaluation; see `rrfp_step_report`."""
function rank_report(trainer::Trainer, rank::Integer)
    out = Raw.rrfp_step_report()
    call(Raw.rrfp_trainer_rank_report, trainer, rank, out)
    return named(out)
end

"""
    stage_report(trainer, stage) -> report
    stage_reports(trainer) -> Vector of those of all stages

What a stage is, and what it did in the last step or evaluation: `rank`, `first_block`,
`last_block`, `branch` (see [`RRFP.place`](@ref)), `microbatches` (that took part: not those that
have nothing for it) and `busy_ns`.
"""
function stage_report(trainer::Trainer, stage::Integer)
    out = Raw.rrfp_stage_report()
    call(Raw.rrfp_trainer_stage_report, trainer, stage, out)
    return named(out)
end
stage_reports(trainer::Trainer) = [stage_report(trainer, s) for s in 0:info(trainer).stages-1]

"""
    losses(trainer) -> Vector{Float64}

The losses of the last step or evaluation, that of [`set_loss!`](@ref) first; reduced, without their
factors; NaN for one that counted nothing.
"""
function losses(trainer::Trainer)
    out = zeros(Cdouble, trainer.losses)
    call(Raw.rrfp_trainer_losses, trainer, out, length(out))
    return out
end

"""The first block of each stage."""
function first_blocks(trainer::Trainer)
    out = zeros(Int32, info(trainer).stages)
    call(Raw.rrfp_trainer_first_blocks, trainer, out)
    return Int.(out)
end

index_of(trainer, parameter::AbstractString) = get(trainer.names, parameter) do
    throw(RRFPError(Raw.RRFP_ERR_UNKNOWN_NAME, "the model has no parameter \"$parameter\""))
end
function index_of(trainer, parameter::Integer)
    0 <= parameter < length(trainer.sizes) || throw(RRFPError(Raw.RRFP_ERR_OUT_OF_RANGE,
        "parameter is $parameter; there are 0 to $(length(trainer.sizes) - 1)"))
    return Int(parameter)
end

"""
    parameter(trainer, name or number; slot = :weight) -> Array{Float32}

A copy of the weights, or of the `:gradient` of a step with `keep_gradients`, or of `:moment1` or
`:moment2` of the optimizer.
"""
function parameter(trainer::Trainer, which; slot = :weight)
    p = index_of(trainer, which)
    out = Array{Float32}(undef, trainer.sizes[p+1])
    call(Raw.rrfp_trainer_read, trainer, p, number(:slot, slot), out, length(out))
    return out
end

"""
    parameter!(trainer, name or number, array; slot = :weight)

Copies an array into the trainer.
"""
function parameter!(trainer::Trainer, which, array; slot = :weight)
    p = index_of(trainer, which)
    size(array) == trainer.sizes[p+1] ||
        throw(mismatch("the parameter has size $(trainer.sizes[p+1]), not $(size(array))"))
    eltype(array) == Float32 || throw(mismatch("parameters are Float32, not $(eltype(array))"))
    call(Raw.rrfp_trainer_write, trainer, p, number(:slot, slot), Array(array), length(array))
    return nothing
end

"""SHA-256 over all weights, as 64 hexadecimal digits."""
weights_sha256(trainer::Trainer) = text_out(Raw.rrfp_trainer_weights_sha256, trainer)
"""The hint that steps run with; with `auto` also why."""
describe_hint(trainer::Trainer) = text_out(Raw.rrfp_trainer_describe_hint, trainer)

write_trace(path::AbstractString, trainer::Trainer) =
    (call(Raw.rrfp_trainer_write_trace, trainer, path); nothing)

# ---- Checkpoints --------------------------------------------------------------------------------

"""
    save(trainer, root; keep = 0, position = 0, user_json = nothing)

Writes the checkpoint root/step-<step>, complete or not at all. `position` is the number of samples
used so far; of the checkpoints the newest `keep` stay, 0 = all.
"""
function save(trainer::Trainer, root::AbstractString; user_json = nothing, keywords...)
    options = fill!(Raw.rrfp_save_options(), keywords)
    folder, user = field_text(root), field_text(user_json)
    GC.@preserve folder user begin
        options.root = pointer(folder)
        user === nothing || (options.user_json = pointer(user))
        call(Raw.rrfp_trainer_save, trainer, options)
    end
    return nothing
end

"""
    load!(trainer, path; weights_only = false) -> position

Continues from a checkpoint, or from the newest one in a folder. On an error nothing is changed. The
position is an `Int`, or a `UInt64` from 2^63 on.
"""
function load!(trainer::Trainer, path::AbstractString; weights_only = false)
    out = Ref{UInt64}(0)
    bits = weights_only ? Raw.RRFP_LOAD_WEIGHTS_ONLY : UInt32(0)
    call(Raw.rrfp_trainer_load, trainer, path, bits, out)
    return out[] <= typemax(Int) ? Int(out[]) : out[]
end

describe(path::AbstractString) = text_out(Raw.rrfp_checkpoint_describe, path)

# ---- Generating ---------------------------------------------------------------------------------

"""
    Generator(trainer, context)

Continues sequences with a trainer's weights. It is closed with its trainer at the latest.
"""
mutable struct Generator <: Handle
    handle::Ptr{Raw.rrfp_generator}
    trainer::Trainer
end
function Generator(trainer::Trainer, context::Integer)
    handle = create(Raw.rrfp_generator_create, Raw.rrfp_generator, trainer, context)
    generator = Generator(handle, trainer)
    push!(trainer.generators, generator) # which frees it: there is no finalizer
    return generator
end
destroy(p::Ptr{Raw.rrfp_generator}) = Raw.rrfp_generator_destroy(p)
function Base.close(generator::Generator)
    filter!(other -> other !== generator, generator.trainer.generators)
    return free(generator)
end

"""Forgets everything and reads a prompt of 1 or more tokens."""
function start!(generator::Generator, tokens)
    prompt = collect(Int32, tokens)
    call(Raw.rrfp_generator_start, generator, prompt, length(prompt))
    return nothing
end

"""
    start_inputs!(generator, inputs)

Forgets everything and reads the inputs of one sequence, pictures too (a vision-language model): one
microbatch as `read` of [`Samples`](@ref) gives it, B = 1, T at most the context. Targets are not
looked at and may be of size (0, 1). [`next!`](@ref) then goes on with text, in the last segment;
there a picture cannot be forgotten, so it gives `:BAD_STATE` once the context is full. After an
error the generator is as it was.
"""
function start_inputs!(generator::Generator, inputs)
    isopen(generator) || throw_closed(generator)
    tensors, arrays = batch_tensors([inputs], Raw.RRFP_SAMPLES_INPUTS)
    GC.@preserve arrays call(Raw.rrfp_generator_start_inputs, generator, tensors)
    return nothing
end

"""
    next!(generator; temperature, top_k, top_p, seed) -> token

Draws the next token and reads it.
"""
function next!(generator::Generator; keywords...)
    out = Ref{Int32}(0)
    call(Raw.rrfp_generator_next, generator, fill!(Raw.rrfp_sampling(), keywords), out)
    return out[]
end

"""Fills `out`, with a place for each token of the vocabulary, with logits for the next token."""
function logits!(generator::Generator, out::Vector{Float32})
    call(Raw.rrfp_generator_logits, generator, out, length(out))
    return out
end

"""
    generate(trainer, prompt, count; context, temperature, top_k, top_p, seed) -> tokens

Continues a prompt by `count` tokens, attending to at most `context` of them.
"""
function generate(trainer::Trainer, prompt, count::Integer; context::Integer, keywords...)
    generator = Generator(trainer, context)
    try
        start!(generator, prompt)
        return Int32[next!(generator; keywords...) for _ in 1:count]
    finally
        close(generator)
    end
end
