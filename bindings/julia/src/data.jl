# SPDX-License-Identifier: Apache-2.0
#
# Tokens from files.

"""
    Data(paths...; context, format = :bytes, vocabulary, validation_share, seed)

A stream of tokens from files, and folders with all that is below them, cut into windows. `format`
is `:bytes`, `:u16` or `:u32`. It never changes and may be read by several threads.
"""
mutable struct Data <: Handle
    handle::Ptr{Raw.rrfp_data}
    context::Int
end
function Data(paths::AbstractString...; keywords...)
    options = fill!(Raw.rrfp_data_options(), keywords)
    texts = String[field_text(path) for path in paths]
    pointers = map(pointer, texts)
    options.path_count = length(texts)
    options.paths = pointer(pointers)
    handle = GC.@preserve texts pointers create(Raw.rrfp_data_open, Raw.rrfp_data, options)
    return finalizer(free, Data(handle, options.context))
end
destroy(p::Ptr{Raw.rrfp_data}) = Raw.rrfp_data_destroy(p)

function info(data::Data)
    out = Raw.rrfp_data_info()
    call(Raw.rrfp_data_get_info, data, out)
    return named(out)
end

"""
    read(data, split, position, samples) -> (tokens, targets)

Samples `position` and following of `:train` or `:validation`, two `Int32` arrays of size
(context, samples). Training samples are an endless run through the windows.
"""
function Base.read(data::Data, split::Symbol, position::Integer, samples::Integer)
    samples >= 0 || throw(ArgumentError("samples must not be negative"))
    tokens = Matrix{Int32}(undef, data.context, samples)
    targets = similar(tokens)
    call(Raw.rrfp_data_read, data, number(:split, split), position, samples, tokens, targets)
    return tokens, targets
end
