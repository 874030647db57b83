# SPDX-License-Identifier: Apache-2.0
#
# Steps: the calls of rrfp.h one by one, and the loops that make them for all ranks.
#
# Waiting. A thread inside a call of the library keeps the garbage collector of all other threads
# waiting, and Ctrl-C too. So no wait takes longer than a millisecond, and between waits there is a
# safepoint, and a chance for other tasks of Julia.

const slice_us = 1000

struct StepDone end
"""What [`next!`](@ref) gives when every task of the rank is done."""
const STEP_DONE = StepDone()

"""
    begin_step!(rank, hint; microbatches, mode, order, step, skip, activation_bytes)

Begins a step on a rank. All ranks must describe it alike.

- mode: `:train` or `:forward`; order: `:default`, `:ready`, `:strict` or `:paired`; step: a number
  for reports
- skip: of size (microbatches, stages), true where a microbatch skips a stage
- activation_bytes: of the same size; replace those of the graph
"""
function begin_step!(rank::Rank, hint; microbatches::Integer, skip = nothing,
                     activation_bytes = nothing, keywords...)
    hint = as_hint(hint)
    options = fill!(Raw.rrfp_step_options(), keywords)
    options.microbatches = microbatches
    skips = step_array(UInt8, rank, microbatches, skip)
    bytes = step_array(Int64, rank, microbatches, activation_bytes)
    isempty(skips) || (options.skip = pointer(skips))
    isempty(bytes) || (options.activation_bytes = pointer(bytes))
    rank.failure = nothing
    rank.cause = nothing
    GC.@preserve hint skips bytes begin
        options.hint = pointer_of(hint)
        call(Raw.rrfp_rank_begin_step, rank, options)
    end
    return nothing
end

step_array(::Type{T}, rank, microbatches, ::Nothing) where {T} = T[]
function step_array(::Type{T}, rank, microbatches, array) where {T}
    wanted = (microbatches, rank.pipeline.stages)
    size(array) == wanted || throw(DimensionMismatch("skip and activation_bytes have size " *
        "(microbatches, stages) = $wanted, not $(size(array))"))
    return vec(collect(T, array))
end

"""One look, or one short wait. Gives a status and writes the task into `rank.task`."""
@inline function look!(rank::Rank, timeout_us)
    e = error_of_thread()
    return Raw.rrfp_rank_next(rank, timeout_us, rank.task, e), e
end

@inline function task_of(rank::Rank)
    task = rank.task
    rank.ticket = task.ticket
    return PipelineTask(rank, task.ticket, task.stage, task.microbatch, Kind(task.kind),
                        task.flags & Raw.RRFP_TASK_LOSS != 0)
end

"""
    next!(rank, timeout_us = -1) -> PipelineTask, nothing or STEP_DONE

The next task of a rank; `nothing` when the time has passed or after [`wake!`](@ref). A negative
time is no limit. Throws the failure of the step, wherever it arose.
"""
function next!(rank::Rank, timeout_us::Integer = -1)
    start = timeout_us > 0 ? time_ns() : UInt64(0)
    left = Int64(timeout_us)
    while true
        status, e = look!(rank, left < 0 ? slice_us : min(left, slice_us))
        status == Raw.RRFP_OK && return task_of(rank)
        status == Raw.RRFP_STEP_DONE && return STEP_DONE
        status < 0 && throw_error(status, e)
        Threads.atomic_xchg!(rank.woken, false) && return nothing
        timeout_us >= 0 && (left = timeout_us - Int64(time_ns() - start) ÷ 1000)
        GC.safepoint()
        yield()
        timeout_us >= 0 && (timeout_us == 0 || left <= 0) && return nothing
    end
end

"""Ends the current or the next wait inside [`next!`](@ref) of a rank. From any thread."""
function wake!(rank::Rank)
    rank.woken[] = true
    call(Raw.rrfp_rank_wake, rank)
    return nothing
end

"""
    done!(task) -> events

A task is done: its outputs are sent. `step!` and `run!` do this by themselves after the function
returns. The events are what the task was the last of: `stage_gradients`, `stage_losses`,
`step_tasks`. If an output is missing the task goes on running.
"""
function done!(task::PipelineTask)
    check_live(task)
    events = Ref{Raw.rrfp_events}(0)
    call(Raw.rrfp_rank_done, task.rank, task.ticket, events)
    task.rank.ticket = 0
    return (stage_gradients = events[] & Raw.RRFP_EVENT_STAGE_GRADIENTS != 0,
            stage_losses = events[] & Raw.RRFP_EVENT_STAGE_LOSSES != 0,
            step_tasks = events[] & Raw.RRFP_EVENT_STEP_TASKS != 0)
end

"""
    fail!(task, text, code = 1)

A task has failed. The step fails on every rank with `:STAGE_FAILED` and this text. An exception in
the function of `step!` or `run!` does this by itself.
"""
function fail!(task::PipelineTask, text::AbstractString, code::Integer = 1)
    check_live(task)
    call(Raw.rrfp_rank_fail, task.rank, task.ticket, code, without_zeros(text))
    task.rank.ticket = 0
    return nothing
end

without_zeros(text) = replace(String(text), '\0' => ' ')

"""
    end_step!(rank) -> report

Ends a step that is done on this rank, and says how it spent the time; see `rrfp_step_report`. Of a
failed step it throws the failure; [`reset!`](@ref) must follow. A step with tasks left goes on, and
the error is `:BAD_STATE`.
"""
function end_step!(rank::Rank)
    out = Raw.rrfp_step_report()
    e = error_of_thread()
    status = Raw.rrfp_rank_end_step(rank, out, e)
    status == Raw.RRFP_ERR_BAD_STATE || (rank.ticket = 0) # what a task had is gone
    status < 0 && throw_error(status, e)
    sweep()
    return named(out)
end

# ---- Loops --------------------------------------------------------------------------------------

"""
    step!(f, rank, hint; microbatches, ...) -> report

One step on one rank: calls `f(task)` for every task, waiting for the other ranks, which must be
running on other threads. The keywords are those of [`begin_step!`](@ref).

    step!(rank, "1f1b"; microbatches = 4) do task
        x = input(task, 0)
        ...
    end

A task is done when `f` returns. If `f` throws, the step fails on every rank with the text of the
exception: an `RRFPError` whose `name` is `:STAGE_FAILED`. After a failure [`reset!`](@ref) makes
the pipeline ready for the next step; so it does after Ctrl-C, which is thrown as InterruptException
(in a script after `Base.exit_on_sigint(false)`).
"""
function step!(f, rank::Rank, hint; keywords...)
    begin_step!(rank, hint; keywords...)
    error = drive_or_cancel!(f, rank.pipeline, Rank[rank])
    error === nothing || throw(error)
    rank.failure === nothing || throw(rank.failure)
    return rank.report
end

"""
    run!(f, pipeline, hint; microbatches, threads = Threads.nthreads(), ...) -> reports

One step on all ranks of a pipeline, which this call drives: calls `f(task)` for every task. With
one thread it goes round the ranks; with several they share the ranks out, and `f` is called on
several threads at once, for one rank never on two. Otherwise like [`step!`](@ref); after a failure
[`failure`](@ref) has the error of each rank.
"""
function run!(f, pipeline::Pipeline, hint; threads::Integer = Threads.nthreads(), keywords...)
    hint = as_hint(hint)
    ranks = all_ranks(pipeline)
    begun = 0
    try
        for rank in ranks
            begin_step!(rank, hint; keywords...)
            begun += 1
        end
    catch
        if begun > 0 # these would wait for the others
            cancel!(pipeline, "the step could not begin on every rank")
            reset!(pipeline)
        end
        rethrow()
    end
    count = clamp(threads, 1, length(ranks))
    groups = [ranks[k:count:end] for k in 1:count]
    others = [Threads.@spawn(drive_or_cancel!(f, pipeline, group)) for group in groups[2:end]]
    error = drive_or_cancel!(f, pipeline, groups[1])
    for other in others
        result = fetch(other)
        error === nothing && (error = result)
    end
    error === nothing || throw(error)
    failed = filter(rank -> rank.failure !== nothing, ranks)
    if !isempty(failed)
        at = findfirst(rank -> rank.failure.cause !== nothing, failed)
        throw(failed[something(at, 1)].failure)
    end
    return [rank.report for rank in ranks]
end

function all_ranks(pipeline::Pipeline)
    found = Dict{Int,Rank}(rank.id => rank for rank in pipeline.ranks)
    return Rank[haskey(found, r) ? found[r] : Rank(pipeline, r) for r in 0:pipeline.rank_count-1]
end

"""
Drives ranks through a step that they have begun. If something is thrown it cancels the step and gives
that, otherwise nothing.
"""
function drive_or_cancel!(f, pipeline, ranks)
    try
        drive!(f, ranks)
        return nothing
    catch e
        isopen(pipeline) && cancel!(pipeline, without_zeros(text_of_exception(e)))
        return e
    end
end

function drive!(f, ranks)
    active = copy(ranks)
    timeout_us = 0
    while !isempty(active)
        found = false
        k = 1
        while k <= length(active)
            rank = active[k]
            status, _ = look!(rank, timeout_us)
            if status == Raw.RRFP_OK
                perform!(f, task_of(rank))
                found = true
                k += 1
            elseif status == Raw.RRFP_AGAIN
                k += 1
            else
                finish!(rank)
                deleteat!(active, k)
            end
        end
        if found
            timeout_us = 0
        else # nobody has work: wait, but let no rank wait long for its turn
            GC.safepoint()
            yield()
            timeout_us = length(active) == 1 ? slice_us : slice_us ÷ 10
        end
    end
    return nothing
end

function perform!(f, task)
    rank = task.rank
    try
        f(task)
        rank.ticket == task.ticket && finish_task!(task)
    catch e
        e isa InterruptException && rethrow()
        stage_failed!(task, e, catch_backtrace())
    end
    return nothing
end

# done! without the events, which nobody sees.
function finish_task!(task)
    rank = task.rank
    call(Raw.rrfp_rank_done, rank, task.ticket, Ptr{Raw.rrfp_events}(C_NULL))
    rank.ticket = 0
    return nothing
end

"""Tells the engine of an exception. If the step has failed already, its first failure stands."""
function stage_failed!(task, e, backtrace)
    rank = task.rank
    text = without_zeros(text_of_exception(e))
    if rank.ticket == task.ticket
        status = Raw.rrfp_rank_fail(rank, task.ticket, 1, text, error_of_thread())
        status == Raw.RRFP_OK && (rank.cause = CapturedException(e, backtrace))
        rank.ticket = 0
    else # it threw after done!, so no task is there to fail
        cancel!(rank.pipeline, text)
    end
    return nothing
end

function text_of_exception(e)
    e isa RRFPError && return e.text
    try
        return sprint(showerror, e)
    catch # an exception whose showerror is broken
        return string(typeof(e))
    end
end

"""Ends the step of a rank that has no more tasks, and keeps the report or the failure."""
function finish!(rank)
    try
        rank.report = end_step!(rank)
    catch e
        e isa RRFPError || rethrow()
        rank.failure = rank.cause === nothing ? e : with_cause(e, rank.cause)
    end
    return nothing
end
