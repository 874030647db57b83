# SPDX-License-Identifier: Apache-2.0
#
# The graph of stages, and hints: the order in which a rank prefers its tasks.

"""What a task computes: F, B = I and W in one, I or W."""
@enum Kind::Int32 FORWARD = 0 BACKWARD = 1 INPUT_GRADIENT = 2 WEIGHT_GRADIENT = 3

# ---- Hints --------------------------------------------------------------------------------------

"""
    Hint(name)                         a published schedule or a policy: "1f1b", "zb-h1", "bfw", ...
    Hint(; text)                       schedule text of torch.distributed.pipelining: a row per rank
    Hint(; tasks, ranks)               (rank, stage, kind, microbatch), a rank's in their order
    Hint(; priorities)                 (stage, kind, microbatch, priority), smaller = earlier

A total order over the tasks of each rank. It never changes and may be shared by threads. Functions
that take a hint also take its name.
"""
mutable struct Hint <: Handle
    handle::Ptr{Raw.rrfp_hint}
    Hint(handle::Ptr{Raw.rrfp_hint}) = finalizer(free, new(handle))
end
destroy(p::Ptr{Raw.rrfp_hint}) = Raw.rrfp_hint_destroy(p)

Hint(name::AbstractString) = Hint(create(Raw.rrfp_hint_create, Raw.rrfp_hint, String(name)))

function Hint(; text = nothing, tasks = nothing, ranks = nothing, priorities = nothing)
    count(!isnothing, (text, tasks, priorities)) == 1 ||
        throw(ArgumentError("give one of text, tasks and priorities"))
    (tasks === nothing) == (ranks === nothing) || throw(ArgumentError("ranks goes with tasks"))
    text === nothing || return Hint(create(Raw.rrfp_hint_create_from_text, Raw.rrfp_hint,
                                           String(text), sizeof(String(text))))
    if tasks !== nothing
        list = [Raw.rrfp_hint_task(t[1], t[2], Int32(t[3]), t[4], 0) for t in tasks]
        return Hint(create(Raw.rrfp_hint_create_from_tasks, Raw.rrfp_hint, ranks, list,
                           length(list)))
    end
    list = [Raw.rrfp_hint_task(0, t[1], Int32(t[2]), t[3], t[4]) for t in priorities]
    return Hint(create(Raw.rrfp_hint_create_from_priorities, Raw.rrfp_hint, list, length(list)))
end

as_hint(hint::Hint) = hint
as_hint(name::AbstractString) = Hint(name)

"""What the reader of a hint's text had to assume, or an empty text."""
note(hint::Hint) = text_out(Raw.rrfp_hint_note, hint)

"""Facts about a hint, a model, a trainer or data, as a named tuple."""
function info(hint::Hint)
    out = Raw.rrfp_hint_info()
    call(Raw.rrfp_hint_get_info, hint, out)
    return named(out)
end

"""
    text(hint, graph, microbatches)

The order that a hint gives to a training step on `graph`, as schedule text.
"""
text(hint, graph, microbatches) =
    text_out(Raw.rrfp_hint_to_text, as_hint(hint), graph, microbatches)

"""
    lower(hint, graph, microbatches; fsdp = false, reduce = false)

The same in the complete form, with sends and receives.
"""
lower(hint, graph, microbatches; fsdp = false, reduce = false) =
    text_out(Raw.rrfp_hint_lower, as_hint(hint), graph, microbatches,
             (fsdp ? Raw.RRFP_LOWER_FSDP : UInt32(0)) |
             (reduce ? Raw.RRFP_LOWER_REDUCE : UInt32(0)))

"""Where the schedule of this name puts stages: `(placement, chunks, streams)`."""
function layout(name::AbstractString)
    placement, chunks, streams = Ref{Int32}(0), Ref{Int32}(0), Ref{Int32}(0)
    call(Raw.rrfp_hint_layout, name, placement, chunks, streams)
    index = findfirst(==(placement[]), collect(values(symbols.placement)))
    return (placement = keys(symbols.placement)[index], chunks = Int(chunks[]),
            streams = Int(streams[]))
end

"""
    check(graph)
    check(hint, graph, microbatches; order = :ready)

Throws if the graph is no pipeline; or if the hint does not name every task of a training step on
`graph` or, with `order = :strict`, cannot be obeyed.
"""
check(hint, graph, microbatches; order = :ready) =
    (call(Raw.rrfp_hint_check, as_hint(hint), graph, microbatches, number(:order, order)); nothing)

"""
    write_trace(path, hint, graph, microbatches)
    write_trace(path, pipeline)      the last steps; made with trace_steps
    write_trace(path, trainer)       the same
    write_trace(path, simulation)    the step that ran last

Writes a timeline as a trace event file; see [`draw`](@ref) and [`summarize`](@ref).
"""
write_trace(path::AbstractString, hint, graph, microbatches) =
    (call(Raw.rrfp_hint_write_trace, as_hint(hint), graph, microbatches, path); nothing)

# ---- The graph ----------------------------------------------------------------------------------

"""
    Graph(ranks)

An empty graph of stages for so many ranks.
"""
mutable struct Graph <: Handle
    handle::Ptr{Raw.rrfp_graph}
    ranks::Int
    stages::Int
    Graph(ranks::Integer) =
        finalizer(free, new(create(Raw.rrfp_graph_create, Raw.rrfp_graph, ranks), ranks, 0))
end
destroy(p::Ptr{Raw.rrfp_graph}) = Raw.rrfp_graph_destroy(p)

"""
    add_stage!(graph; rank, loss, frozen, wants_input_gradient, fused_only, activation_bytes,
               forward_ns, input_gradient_ns, weight_gradient_ns) -> stage

Adds a stage; all is optional. See `rrfp_stage_options` in rrfp.h.
"""
function add_stage!(graph::Graph; keywords...)
    out = Ref{Int32}(0)
    call(Raw.rrfp_graph_add_stage, graph, fill!(Raw.rrfp_stage_options(), keywords), out)
    graph.stages += 1
    return Int(out[])
end

"""
    add_edge!(graph, from, to; gradient = true) -> edge

Forwards of stage `from` send activations to stage `to`; unless `gradient` is false, gradients flow
back.
"""
function add_edge!(graph::Graph, from, to; gradient = true)
    out = Ref{Int32}(0)
    bits = gradient ? UInt32(0) : Raw.RRFP_EDGE_NO_GRADIENT
    call(Raw.rrfp_graph_add_edge, graph, from, to, bits, out)
    return Int(out[])
end

"""
    declare_tensor!(graph, edge, T, size...; gradient = true)

Declares the next tensor that every forward message of an edge carries: element type and size as in
Julia, -1 where an extent may vary. The engine then checks what is put.
"""
function declare_tensor!(graph::Graph, edge, ::Type{T}, size::Integer...; gradient = true) where {T}
    shape = collect(Int64, reverse(size))
    bits = gradient ? Raw.RRFP_TENSOR_WANTS_GRADIENT : UInt32(0)
    call(Raw.rrfp_graph_declare_tensor, graph, edge, dtype(T), length(shape), shape, bits)
    return nothing
end

"""
    place!(graph, :linear)         all stages; or :loop, or :v
    place!(graph, stage => rank)   one stage
    place!(graph, hint)            each on the rank in whose list the hint names it
"""
place!(graph::Graph, placement::Symbol) =
    (call(Raw.rrfp_graph_place, graph, number(:placement, placement)); nothing)
place!(graph::Graph, place::Pair) =
    (call(Raw.rrfp_graph_place_stage, graph, place.first, place.second); nothing)
place!(graph::Graph, hint::Hint) = (call(Raw.rrfp_graph_place_by_hint, graph, hint); nothing)

check(graph::Graph) = (call(Raw.rrfp_graph_check, graph); nothing)
