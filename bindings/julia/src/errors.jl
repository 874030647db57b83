# SPDX-License-Identifier: Apache-2.0
#
# Errors, handles and texts: how every call into the library is made.

"""
What went wrong.

- `status`: a negative number, one of the `RRFP.Raw.RRFP_ERR_...`; `name` is its name without
  prefix, as a symbol: `:STAGE_FAILED`
- `rank`, `stage`, `microbatch`, `kind`: the task concerned; -1, or `nothing` for `kind`, where
  there is none
- `user_code`: for a failed stage the code given to [`fail!`](@ref)
- `text`: names the value that was wrong and what was expected
- `cause`: on the rank where the stage's code threw, a `CapturedException` of that; else `nothing`
"""
struct RRFPError <: Exception
    name::Symbol
    status::Int32
    rank::Int
    stage::Int
    microbatch::Int
    kind::Any
    user_code::Int
    text::String
    cause::Any
end

RRFPError(status::Integer, text::AbstractString) =
    RRFPError(status_name(status), status, -1, -1, -1, nothing, 0, text, nothing)
with_cause(e::RRFPError, cause) = RRFPError(e.name, e.status, e.rank, e.stage, e.microbatch, e.kind,
                                            e.user_code, e.text, cause)

function status_name(status)
    name = unsafe_string(Raw.rrfp_status_name(status))
    return Symbol(replace(replace(name, "RRFP_ERR_" => ""), "RRFP_" => ""))
end

function Base.showerror(io::IO, e::RRFPError)
    print(io, "RRFPError: ", e.name, ": ", e.text)
    if e.cause !== nothing
        print(io, "\ncaused by: ")
        showerror(io, e.cause)
    end
end

# One rrfp_error for each thread, used again and again: a call and the look at its error have no
# point between them where Julia could switch tasks.
const errors = Raw.rrfp_error[]
function resize_errors!()
    while length(errors) < Threads.nthreads()
        push!(errors, Raw.rrfp_error())
    end
end
function error_of_thread()
    id = Threads.threadid()
    return id <= length(errors) ? @inbounds(errors[id]) : Raw.rrfp_error()
end

"""The text in a field of bytes that ends in a zero byte."""
text_of(value, field::Int) = GC.@preserve value unsafe_string(
    Ptr{UInt8}(pointer_from_objref(value)) + fieldoffset(typeof(value), field))

@noinline function throw_error(status, e::Raw.rrfp_error)
    kind = 0 <= e.kind <= 3 ? Kind(e.kind) : nothing
    text = text_of(e, fieldcount(Raw.rrfp_error))
    throw(RRFPError(status_name(status), status, e.rank, e.stage, e.microbatch, kind, e.user_code,
                    text, nothing))
end

"""
Calls a function of `Raw` whose last parameter is the error, and gives its status. A negative one is
thrown.
"""
@inline function call(f::F, arguments::Vararg{Any,N}) where {F,N}
    e = error_of_thread()
    status = f(arguments..., e)
    status < 0 && throw_error(status, e)
    return status
end

# ---- Handles ------------------------------------------------------------------------------------

"""What wraps a handle of the library: a mutable struct with a field `handle`, null once closed."""
abstract type Handle end

"""The pointer of a handle that is still open. The caller keeps the object alive (GC.@preserve)."""
@inline function pointer_of(object::Handle)
    object.handle == C_NULL && throw_closed(object)
    return object.handle
end
@noinline throw_closed(object) =
    throw(RRFPError(Raw.RRFP_ERR_NULL_HANDLE, "this $(nameof(typeof(object))) has been closed"))

# So that objects can be handed to ccalls, which keep them alive meanwhile.
Base.unsafe_convert(::Type{Ptr{T}}, object::Handle) where {T} = pointer_of(object)::Ptr{T}

Base.isopen(object::Handle) = object.handle != C_NULL

"""
    close(object)

Frees the handle. Closing twice is fine. The library takes care of the order: what is shared lives
until its last user is gone.
"""
Base.close(object::Handle) = free(object)

"""What `close` and the garbage collector do with a handle."""
function free(object::Handle)
    handle = object.handle
    object.handle = C_NULL
    handle == C_NULL || destroy(handle)
    return nothing
end

Base.show(io::IO, object::Handle) =
    print(io, "RRFP.", nameof(typeof(object)), isopen(object) ? "(...)" : "(closed)")

"""What a create function gives through its `out` parameter."""
function create(f, ::Type{T}, arguments...) where {T}
    out = Ref{Ptr{T}}(C_NULL)
    # The out parameter stands before the error.
    call(f, arguments..., out)
    return out[]
end

# ---- Texts --------------------------------------------------------------------------------------

"""A text for a field of a struct, where C would read only what stands before a zero byte."""
field_text(::Nothing) = nothing
function field_text(text::AbstractString)
    '\0' in text && throw(ArgumentError("a text contains a zero byte: $(repr(text))"))
    return String(text)
end

"""Calls a function that ends in buffer, capacity, size and error, and gives the text."""
function text_out(f, arguments...)
    capacity = 1024
    while true
        buffer = Vector{UInt8}(undef, capacity)
        size = Ref{Csize_t}(0)
        call(f, arguments..., buffer, capacity, size)
        size[] <= capacity && return String(buffer[1:max(size[], 1)-1])
        capacity = Int(size[])
    end
end
