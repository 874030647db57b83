# SPDX-License-Identifier: Apache-2.0
#
# Tensors as arrays, without copies in either direction.
#
# What comes from the engine is a TaskArray. It is no plain Array, since the engine's memory is
# valid only while the task runs: a TaskArray checks that at every access, and an Array could not.
#
# What goes to the engine is wrapped, and must then be kept until the engine lets go of it. The
# engine tells that by calling a function, on a thread that need not be Julia's, where Julia code
# would crash. So the function is sem_post of the C library, and each array that is kept has a
# semaphore, in C memory. `sweep` asks them, at the ends of steps and as the list grows, and drops
# what is free. The engine lets go of an array during a call on the rank that has put it, so the
# last arrays of a step may be kept until that rank's next one.

# ---- Element types ------------------------------------------------------------------------------

"""A bfloat16 number: the upper half of a Float32. Only converts; rounds to nearest even."""
primitive type BF16 16 end
Base.Float32(x::BF16) = reinterpret(Float32, UInt32(reinterpret(UInt16, x)) << 16)
function BF16(x::Float32)
    bits = reinterpret(UInt32, x)
    isnan(x) && return reinterpret(BF16, UInt16(bits >> 16) | 0x0040)
    return reinterpret(BF16, UInt16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16))
end
Base.convert(::Type{Float32}, x::BF16) = Float32(x)
Base.convert(::Type{BF16}, x::Real) = BF16(Float32(x))

const element_types = (Float32, Float64, Float16, BF16, Int8, Int16, Int32, Int64, UInt8, UInt16,
                       UInt32, UInt64, Bool) # RRFP_F32 = 1 and so on
for (number, T) in enumerate(element_types)
    @eval dtype(::Type{$T}) = $(Int32(number))
end
dtype(T::Type) = throw(mismatch("a tensor cannot have elements of type $T"))

mismatch(text) = RRFPError(Raw.RRFP_ERR_TENSOR_MISMATCH, text)
type_of(dtype) = 1 <= dtype <= length(element_types) ? element_types[dtype] :
    throw(mismatch("the element type $dtype is not known here"))

# ---- Arrays in engine memory --------------------------------------------------------------------

"""
A task: `rank`, `stage`, `microbatch`, `kind` (`FORWARD`, ..) and `loss`, whether its stage is a
loss stage.
"""
struct PipelineTask
    rank::Rank
    ticket::UInt64
    stage::Int
    microbatch::Int
    kind::Kind
    loss::Bool
end

"""
    TaskArray{T,N} <: DenseArray{T,N}

An array in memory of the engine. It works wherever a dense array does, BLAS included. It may be
used until its task is done; afterwards every access gives an error. `copy` makes an `Array` that
stays. Inputs must not be written to, nor must what has been put: an assignment gives an error, but
code that takes the pointer, such as `mul!` through BLAS, cannot be stopped.

Extents are those of C in reverse: (a, b) row-major is size (b, a).
"""
mutable struct TaskArray{T,N} <: DenseArray{T,N}
    rank::Rank
    ticket::UInt64
    data::Ptr{T}
    buffer::Ptr{Raw.rrfp_buffer}
    size::NTuple{N,Int}
    writable::Bool
end

@noinline over(text) = throw(RRFPError(Raw.RRFP_ERR_BAD_STATE, text))
@inline check_live(a::TaskArray) =
    a.rank.ticket == a.ticket || over("the task of this array is done; copy what must stay")
@inline check_live(task::PipelineTask) =
    task.rank.ticket == task.ticket || over("this task is done")

Base.size(a::TaskArray) = a.size
Base.IndexStyle(::Type{<:TaskArray}) = IndexLinear()
Base.strides(a::TaskArray) = Base.size_to_strides(1, a.size...)
Base.elsize(::Type{<:TaskArray{T}}) where {T} = sizeof(T)
function Base.unsafe_convert(::Type{Ptr{T}}, a::TaskArray{T}) where {T}
    check_live(a)
    return a.data
end
@inline function Base.getindex(a::TaskArray, i::Int)
    @boundscheck checkbounds(a, i)
    check_live(a)
    return unsafe_load(a.data, i)
end
@inline function Base.setindex!(a::TaskArray{T}, value, i::Int) where {T}
    @boundscheck checkbounds(a, i)
    check_live(a)
    a.writable || over("this array must not be written to: it is an input, or has been put")
    unsafe_store!(a.data, convert(T, value), i)
    return a
end

"""
    unsafe_array(a::TaskArray)

The same memory as a plain `Array`, for code that takes nothing else. Nothing checks its use: do not
use it after the task is done, do not write to inputs, and put the TaskArray, not this.
"""
unsafe_array(a::TaskArray) =
    unsafe_wrap(Array, Base.unsafe_convert(Ptr{eltype(a)}, a), a.size)

function task_array(::Type{TaskArray{T,N}}, task, tensor, writable) where {T,N}
    if tensor.dtype != dtype(T) || tensor.ndim != N
        throw(mismatch("the tensor is a TaskArray{$(type_of(tensor.dtype)),$(tensor.ndim)}, " *
                       "not a TaskArray{$T,$N}"))
    end
    size = ntuple(k -> Int(tensor.shape[N-k+1]), Val(N))
    return TaskArray{T,N}(task.rank, task.ticket, Ptr{T}(tensor.data), tensor.buffer, size,
                          writable)
end

"""
    inputs(task, edge) -> Vector of TaskArrays, or nothing

The tensors that arrived for a task along an edge of its stage: activations if the edge enters the
stage, gradients if it leaves it. A gradient that is zero is `nothing`. All is `nothing` if nothing
travels there for this microbatch.
"""
function inputs(task::PipelineTask, edge::Integer)
    count = read_inputs(task, edge, Ptr{Ptr{Cvoid}}(C_NULL))
    count < 0 && return nothing
    return [any_array(task, task.rank.tensors[k]) for k in 1:count]
end

any_array(task, tensor) = tensor.dtype == Raw.RRFP_NONE ? nothing :
    task_array(TaskArray{type_of(tensor.dtype),Int(tensor.ndim)}, task, tensor, false)

"""
    input(task, edge) -> TaskArray or nothing
    input(task, edge, TaskArray{T,N}) -> TaskArray{T,N} or nothing

The only tensor that arrived along an edge; see [`inputs`](@ref). With a type it refuses any other
one and is faster.
"""
function input(task::PipelineTask, edge::Integer)
    return only_input(task, edge) ? any_array(task, task.rank.tensors[1]) : nothing
end
function input(task::PipelineTask, edge::Integer, ::Type{A}) where {A<:TaskArray}
    only_input(task, edge) || return nothing
    tensor = task.rank.tensors[1]
    tensor.dtype == Raw.RRFP_NONE && return nothing
    return task_array(A, task, tensor, false)
end

function only_input(task, edge)
    count = read_inputs(task, edge, Ptr{Ptr{Cvoid}}(C_NULL))
    count < 0 && return false
    count == 1 || throw(mismatch("edge $edge brings $count tensors, not 1; see inputs"))
    return true
end

"""The pointer that the sender gave along; see `put!`."""
function opaque(task::PipelineTask, edge::Integer)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    read_inputs(task, edge, out)
    return out[]
end

"""Reads the tensors of an edge into the rank's scratch. Gives their number, -1 if there are none."""
function read_inputs(task, edge, opaque)
    check_live(task)
    rank = task.rank
    count = Ref{Csize_t}(0)
    status = call(Raw.rrfp_rank_input, rank, task.ticket, edge, rank.tensors, length(rank.tensors),
                  count, opaque)
    status == Raw.RRFP_ABSENT && return -1
    if count[] > length(rank.tensors)
        resize!(rank.tensors, count[])
        call(Raw.rrfp_rank_input, rank, task.ticket, edge, rank.tensors, length(rank.tensors),
             count, opaque)
    end
    return Int(count[])
end

"""
    alloc(task, T, dims...) -> TaskArray{T}

An array in engine memory, aligned to 64 bytes, not cleared, to be filled and put.
"""
function alloc(task::PipelineTask, ::Type{T}, dims::Integer...) where {T}
    check_live(task)
    N = length(dims)
    shape = collect(Int64, reverse(dims))
    out = Ref{Raw.rrfp_tensor}()
    call(Raw.rrfp_rank_alloc, task.rank, task.ticket, dtype(T), N, shape, out)
    return task_array(TaskArray{T,N}, task, out[], true)
end

# ---- Arrays that the engine uses ----------------------------------------------------------------

struct Kept
    released::Ptr{Cvoid} # a sem_t
    array::Any
end
const kept = Kept[]
const kept_lock = ReentrantLock()
const sweep_at = Ref(64)
const sem_size = 32 # sizeof(sem_t) of glibc on 64-bit machines

"""Keeps `array` until the semaphore that it gives has been posted."""
function keep(array)
    released = Libc.calloc(1, sem_size)
    released == C_NULL && throw(OutOfMemoryError())
    ccall(:sem_init, Cint, (Ptr{Cvoid}, Cint, Cuint), released, 0, 0)
    lock(kept_lock) do
        push!(kept, Kept(released, array))
    end
    length(kept) >= sweep_at[] && sweep()
    return released
end

"""Drops the arrays that the engine has let go of. Gives the number of those that it has not."""
function sweep()
    lock(kept_lock) do
        filter!(kept) do k
            free = ccall(:sem_trywait, Cint, (Ptr{Cvoid},), k.released) == 0
            free && Libc.free(k.released)
            return !free
        end
        sweep_at[] = max(64, 2 * length(kept))
        return length(kept)
    end
end

is_contiguous(a::Array) = true
is_contiguous(a::StridedArray) = strides(a) == Base.size_to_strides(1, size(a)...)
is_contiguous(a) = false

"""
Whether an array can be wrapped: dense, and in memory that lives as long as `a` does. A view of a
TaskArray is not, since that memory ends with its task.
"""
can_wrap(a) = is_contiguous(a) && root(a) isa Array
root(a) = parent(a) === a ? a : root(parent(a))

to_eight(dims::NTuple{N,Int}) where {N} =
    ntuple(k -> k <= N ? Int64(dims[N-k+1]) : Int64(0), Val(8))
const no_strides = ntuple(k -> Int64(0), 8)
make_tensor(data, buffer, dims, dtype, flags) =
    Raw.rrfp_tensor(data, buffer, to_eight(dims), no_strides, length(dims), dtype,
                    Raw.RRFP_DEVICE_CPU, 0, flags, 0)

"""The tensor of a value that is put, and what must live until put! is over."""
function tensor_to_put(task, a::TaskArray, flags)
    check_live(a)
    return make_tensor(a.data, a.buffer, a.size, dtype(eltype(a)), flags), a
end
function tensor_to_put(task, a::AbstractArray{T}, flags) where {T}
    number = dtype(T)
    ndims(a) <= Raw.RRFP_DIMS_MAX || throw(mismatch("a tensor has at most 8 axes, not $(ndims(a))"))
    can_wrap(a) || (a = Array(a))
    released = keep(a)
    buffer = Ref{Ptr{Raw.rrfp_buffer}}(C_NULL)
    try
        call(Raw.rrfp_rank_wrap, task.rank, task.ticket, pointer(a), sizeof(T) * length(a),
             cglobal(:sem_post), released, buffer)
    catch # the engine has not taken it
        ccall(:sem_post, Cint, (Ptr{Cvoid},), released)
        rethrow()
    end
    return make_tensor(pointer(a), buffer[], size(a), number, flags), a
end
function tensor_to_put(task, x::Union{Number,BF16}, flags)
    cell = Ref(x)
    data = Base.unsafe_convert(Ptr{typeof(x)}, cell)
    return make_tensor(data, Ptr{Raw.rrfp_buffer}(C_NULL), (), dtype(typeof(x)), flags), cell
end
tensor_to_put(task, ::Nothing, flags) =
    make_tensor(C_NULL, Ptr{Raw.rrfp_buffer}(C_NULL), (), Raw.RRFP_NONE, UInt32(0)), nothing

"""
    put!(task, edge, values...; gradient, opaque = C_NULL)

Gives the output of a task for an edge of its stage: F gives activations to each edge that leaves
the stage, B and I give gradients to each edge that enters it, one for each tensor that asked.

- values: arrays of any element type in `RRFP.element_types`, numbers, which are tensors without
  axes, or, as a gradient, `nothing` for zero
- gradient: whether the consumer must send a gradient back; one `Bool`, or one for each value.
  Without it, values of a forward that are floating-point numbers want one.

Dense arrays are handed over without a copy and must not be written to any more, ever: the consumer
reads that memory. They are kept alive as long as the engine uses them. Other arrays (transposed,
views with gaps, ranges, views of a TaskArray) are copied first.
"""
function Base.put!(task::PipelineTask, edge::Integer, values...;
                   gradient = nothing, opaque::Ptr = C_NULL)
    check_live(task)
    made = ntuple(length(values)) do k
        wants = gradient isa Bool ? gradient :
            gradient === nothing ? task.kind == FORWARD && is_float(values[k]) : gradient[k]
        tensor_to_put(task, values[k], wants ? Raw.RRFP_TENSOR_WANTS_GRADIENT : UInt32(0))
    end
    tensors = collect(Raw.rrfp_tensor, map(first, made))
    GC.@preserve made call(Raw.rrfp_rank_put, task.rank, task.ticket, edge, tensors,
                           length(tensors), opaque)
    foreach(value -> value isa TaskArray && (value.writable = false), values)
    return nothing
end

is_float(value) = eltype(typeof(value)) <: Union{AbstractFloat,BF16}

"""Whether a task must put an output for an edge of its stage."""
function wanted(task::PipelineTask, edge::Integer)
    check_live(task)
    return call(Raw.rrfp_rank_output_wanted, task.rank, task.ticket, edge) == Raw.RRFP_OK
end
