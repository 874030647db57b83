# SPDX-License-Identifier: Apache-2.0
#
# Pipelines and the handles of their ranks.

# ---- The log ------------------------------------------------------------------------------------
#
# The library logs on the thread that called in. All that calls into a Pipeline of this package is
# Julia, so the log may be Julia code. (The threads of a Trainer are not Julia's; it has no log.) C
# gets the number of a slot, so that nothing depends on where the collector keeps an object. The
# table has a fixed size so that a finalizer, which may run at any time, can clear a slot by a plain
# store.

const loggers = Vector{Any}(nothing, 64)
const loggers_lock = ReentrantLock()

function take_log_slot(f)
    lock(loggers_lock) do
        slot = findfirst(isnothing, loggers)
        slot === nothing && error("more than $(length(loggers)) pipelines with a log")
        loggers[slot] = f
        return slot
    end
end

function log_callback(user_data::Ptr{Cvoid}, level::Int32, text::Ptr{UInt8})
    try
        f = loggers[Int(user_data)]
        names = (:info, :warning, :error)
        f === nothing || f(0 <= level <= 2 ? names[level+1] : :error, unsafe_string(text))
    catch # nothing may be thrown through C
    end
    return nothing
end

# ---- Pipelines ----------------------------------------------------------------------------------

"""
    Pipeline(graph; log, rank_cap_slots, rank_cap_bytes, nondeterministic, order, wake, cap_slots,
             cap_bytes, credits, hold_permille, mailbox_capacity, trace_steps, watchdog_ms)

A pipeline of `graph`, which is copied. All keywords are optional; see `rrfp_pipeline_options` in
rrfp.h. `log(level::Symbol, text::String)` is called on the thread that called in.

`close` closes its ranks too.
"""
mutable struct Pipeline <: Handle
    handle::Ptr{Raw.rrfp_pipeline}
    rank_count::Int
    stages::Int
    ranks::Vector{Any} # the Ranks that are open
    log_slot::Int      # 0 = none
    Pipeline(handle, graph, slot) =
        finalizer(free, new(handle, graph.ranks, graph.stages, [], slot))
end
destroy(p::Ptr{Raw.rrfp_pipeline}) = Raw.rrfp_pipeline_destroy(p)

function Pipeline(graph::Graph; log = nothing, rank_cap_slots = nothing, rank_cap_bytes = nothing,
                  keywords...)
    options = fill!(Raw.rrfp_pipeline_options(), keywords)
    slots = caps(graph, rank_cap_slots)
    bytes = caps(graph, rank_cap_bytes)
    isempty(slots) || (options.rank_cap_slots = pointer(slots))
    isempty(bytes) || (options.rank_cap_bytes = pointer(bytes))
    slot = 0
    if log !== nothing
        slot = take_log_slot(log)
        options.log = @cfunction(log_callback, Cvoid, (Ptr{Cvoid}, Int32, Ptr{UInt8}))
        options.log_user_data = Ptr{Cvoid}(slot)
    end
    try
        handle = GC.@preserve slots bytes create(Raw.rrfp_pipeline_create, Raw.rrfp_pipeline, graph,
                                                 options)
        return Pipeline(handle, graph, slot)
    catch
        slot == 0 || (loggers[slot] = nothing)
        rethrow()
    end
end

caps(graph, ::Nothing) = Int64[]
function caps(graph, list)
    length(list) == graph.ranks || throw(DimensionMismatch("one cap for each rank is wanted"))
    return collect(Int64, list)
end

function free(pipeline::Pipeline)
    handle = pipeline.handle
    pipeline.handle = C_NULL
    handle == C_NULL || destroy(handle)
    if pipeline.log_slot != 0
        loggers[pipeline.log_slot] = nothing
        pipeline.log_slot = 0
    end
    return nothing
end

function Base.close(pipeline::Pipeline)
    foreach(close, copy(pipeline.ranks))
    return free(pipeline)
end

"""
    cancel!(pipeline, reason = "")
    cancel!(trainer)

Fails the current step, or the next one, with `:CANCELLED`. From any thread. Only [`reset!`](@ref)
ends that state of a pipeline; a trainer can go on.
"""
cancel!(pipeline::Pipeline, reason::AbstractString = "") =
    (call(Raw.rrfp_pipeline_cancel, pipeline, reason); nothing)

"""
    reset!(pipeline)

After a failed step: forgets it, so that a new one can begin. Tasks that are still in someone's
hands are abandoned, and their arrays with them.
"""
function reset!(pipeline::Pipeline)
    call(Raw.rrfp_pipeline_reset, pipeline)
    for rank in pipeline.ranks
        rank.ticket = 0
        rank.failure = nothing
        rank.cause = nothing
    end
    sweep()
    return nothing
end

"""What every rank does or waits for, as a text for people. From any thread."""
report(pipeline::Pipeline) = text_out(Raw.rrfp_pipeline_report, pipeline)

write_trace(path::AbstractString, pipeline::Pipeline) =
    (call(Raw.rrfp_pipeline_write_trace, pipeline, path); nothing)

# ---- Ranks --------------------------------------------------------------------------------------

"""
    Rank(pipeline, rank)

The handle of a rank, of which there is at most one. One thread at a time may use it. [`run!`](@ref)
makes those that are missing.
"""
mutable struct Rank <: Handle
    handle::Ptr{Raw.rrfp_rank}
    pipeline::Pipeline
    id::Int
    ticket::UInt64                     # of the running task, 0 if there is none
    woken::Threads.Atomic{Bool}
    task::Raw.rrfp_task                # where the library writes the next one
    tensors::Vector{Raw.rrfp_tensor}   # scratch of input and put!
    report::Any                        # of the last step that went well
    failure::Union{Nothing,RRFPError}  # of the last step, if it did not
    cause::Union{Nothing,CapturedException}
end
destroy(p::Ptr{Raw.rrfp_rank}) = Raw.rrfp_rank_destroy(p)

function Rank(pipeline::Pipeline, id::Integer)
    handle = create(Raw.rrfp_rank_create, Raw.rrfp_rank, pipeline, id)
    rank = Rank(handle, pipeline, id, 0, Threads.Atomic{Bool}(false), Raw.rrfp_task(),
                Vector{Raw.rrfp_tensor}(undef, 8), nothing, nothing, nothing)
    finalizer(free, rank)
    push!(pipeline.ranks, rank)
    return rank
end

function Base.close(rank::Rank)
    rank.ticket = 0
    filter!(other -> other !== rank, rank.pipeline.ranks)
    free(rank)
    sweep()
    return nothing
end

"""
    failure(rank)

The error that the last step ended with on this rank, or `nothing`.
"""
failure(rank::Rank) = rank.failure
