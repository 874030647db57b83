# SPDX-License-Identifier: Apache-2.0
#
# Simulation in virtual time, and timelines.

"""The names of the workloads that can be simulated."""
function presets()
    names = String[]
    while true
        name = convert(Ptr{UInt8}, Raw.rrfp_preset_name(length(names)))
        name == C_NULL && return names
        push!(names, unsafe_string(name))
    end
end

"""
    Simulation(; preset or trace, hint, stages, microbatches, cap, order, ...)

A workload and a way to run it: a preset by name (see [`presets`](@ref)) or the tasks of a timeline
that was written before. `hint` is the name of a schedule or policy, or "auto". All other keywords
are those of `rrfp_simulation_options` in simulate.h.
"""
mutable struct Simulation <: Handle
    handle::Ptr{Raw.rrfp_simulation}
    Simulation(handle::Ptr{Raw.rrfp_simulation}) = finalizer(free, new(handle))
end
function Simulation(; preset = nothing, trace = nothing, hint = nothing, keywords...)
    options = fill!(Raw.rrfp_simulation_options(), keywords)
    texts = map(field_text, (preset, trace, hint))
    pointers = map(text -> text === nothing ? Ptr{UInt8}(C_NULL) : pointer(text), texts)
    options.preset, options.trace, options.hint = pointers
    return Simulation(GC.@preserve texts create(Raw.rrfp_simulation_create, Raw.rrfp_simulation,
                                                options))
end
destroy(p::Ptr{Raw.rrfp_simulation}) = Raw.rrfp_simulation_destroy(p)

"""
    run!(simulation, seed = 0) -> step

Simulates one step; see `rrfp_simulated_step`: `makespan_ns`, `bound_ns`, `peak_bytes`, waits, ..
"""
function run!(simulation::Simulation, seed::Integer = 0)
    out = Raw.rrfp_simulated_step()
    call(Raw.rrfp_simulation_run, simulation, seed, out)
    return named(out)
end

describe(simulation::Simulation) = text_out(Raw.rrfp_simulation_describe, simulation)

write_trace(path::AbstractString, simulation::Simulation) =
    (call(Raw.rrfp_simulation_write_trace, simulation, path); nothing)

# The progress function is called during rrfp_simulation_stress, on the thread that called in.
mutable struct Progress
    f::Any
    thrown::Any
end

function progress_callback(user_data::Ptr{Cvoid}, done::Int64)
    progress = unsafe_pointer_to_objref(user_data)::Progress
    try
        return progress.f(done) !== false
    catch e # it must not be thrown through C
        progress.thrown = e
        return false
    end
end

"""
    stress(first_seed, cases; progress = nothing) -> report

Simulates random pipelines with random policies, jitter and faults, and counts what must not happen;
see `rrfp_stress_report`. `progress(done)` is called now and then; if it gives `false` the run ends.
"""
function stress(first_seed::Integer, cases::Integer; progress = nothing)
    out = Raw.rrfp_stress_report()
    state = Progress(progress, nothing)
    GC.@preserve state begin
        if progress === nothing
            call(Raw.rrfp_simulation_stress, first_seed, cases, C_NULL, C_NULL, out)
        else
            callback = @cfunction(progress_callback, Bool, (Ptr{Cvoid}, Int64))
            call(Raw.rrfp_simulation_stress, first_seed, cases, callback,
                 pointer_from_objref(state), out)
        end
    end
    state.thrown === nothing || throw(state.thrown)
    bad_case = text_of(out, fieldcount(Raw.rrfp_stress_report))
    return merge(named(out), (bad_case = bad_case,))
end

# ---- Timelines ----------------------------------------------------------------------------------

"""
    draw(trace_path, out_path; picture)

Draws a timeline as a page (`:html`) or a picture (`:svg`); without `picture` as the name ends.
"""
function draw(trace_path::AbstractString, out_path::AbstractString;
              picture::Symbol = endswith(out_path, ".svg") ? :svg : :html)
    call(Raw.rrfp_trace_draw, trace_path, number(:picture, picture), out_path)
    return nothing
end

"""How the time of each rank of a timeline went, as a JSON object; see rrfp_trace_summarize."""
summarize(trace_path::AbstractString) = text_out(Raw.rrfp_trace_summarize, trace_path)
