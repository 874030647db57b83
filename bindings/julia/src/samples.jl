# SPDX-License-Identifier: Apache-2.0
#
# Pictures and text from files.

"""
    Samples(path; image_size, image_tokens, context, grouping = :count, ahead, validation_share,
            image_cost, seed, pixels_max)

The samples of a manifest, a file of JSON lines, each an object with

    "text"    more than spaces and marks: every picture is marked by "<image>"
    "images"  optional: paths of PNG files, relative to the manifest's folder, one for each mark

A token of text is a byte, a picture is `image_tokens` tokens, and each sample ends with an end
token. Pictures are decoded ahead of their use on a thread that this owns.

- `image_size`: pixels a side that pictures are resized to; transparent is white
- `image_tokens`: rows that the model makes of a picture, (image_size / patch)^2
- `context`: most tokens of a sample
- `grouping`: of samples into microbatches, `:count` (in their order, numbers that differ by at most
  one) or `:cost` (so that microbatches cost alike)
- the others: see `rrfp_samples_options` in multimodal.h

An error names the file and the line, as `:IO` or `:BAD_DATA`: one that is no JSON object, empty
text, marks and pictures that differ in number, a sample longer than `context`, a picture that is
missing, is no PNG file or has more than `pixels_max` pixels.
"""
mutable struct Samples <: Handle
    handle::Ptr{Raw.rrfp_samples}
end
function Samples(path::AbstractString; keywords...)
    options = fill!(Raw.rrfp_samples_options(), keywords)
    text = field_text(path)
    options.path = pointer(text)
    handle = GC.@preserve text create(Raw.rrfp_samples_open, Raw.rrfp_samples, options)
    return finalizer(free, Samples(handle))
end
destroy(p::Ptr{Raw.rrfp_samples}) = Raw.rrfp_samples_destroy(p)

function info(samples::Samples)
    out = Raw.rrfp_samples_info()
    call(Raw.rrfp_samples_get_info, samples, out)
    return named(out)
end

const sample_inputs = (:tokens, :targets, :segments, :positions, :sources, :images)

# Copies: the library's memory is that of the last read, and nothing would stop an Array from being
# used afterwards.
function copy_batch(batch::Raw.rrfp_batch)
    return map(0:batch.microbatches-1) do m
        NamedTuple{sample_inputs}(ntuple(length(sample_inputs)) do i
            tensor = unsafe_load(batch.inputs, m * length(sample_inputs) + i)
            size = Tuple(Int(tensor.shape[k]) for k in tensor.ndim:-1:1)
            copy_tensor(type_of(tensor.dtype), tensor.data, size)
        end)
    end
end
function copy_tensor(::Type{T}, data, size) where {T}
    out = Array{T}(undef, size)
    isempty(out) || GC.@preserve out unsafe_copyto!(pointer(out), Ptr{T}(data), length(out))
    return out
end

"""
    read(samples, split, position, count, microbatches) -> batch
    read_at(samples, split, positions, microbatches) -> batch

Samples `position` to `position + count - 1` of `:train` or `:validation`, or those at `positions`,
in `microbatches` (1 to `count`) packed sequences of one column each, as [`step!`](@ref) takes them:
named tuples of `tokens`, `targets`, `segments`, `positions`, `sources` (`Int32` of size (T, 1)) and
`images` (`Float32` of size (3, image_size, image_size, N), N may be 0). They are copies, which
stay.

Training samples are an endless run through the manifest, every epoch in another order; validation
sample p is that at p modulo their number. Both are a function of the position alone. `read` has
pictures decoded ahead, and waits until they are.
"""
function Base.read(samples::Samples, split::Symbol, position::Integer, count::Integer,
                   microbatches::Integer)
    batch = Raw.rrfp_batch()
    return GC.@preserve samples begin
        call(Raw.rrfp_samples_read, samples, number(:split, split), position, count, microbatches,
             batch)
        copy_batch(batch)
    end
end
function read_at(samples::Samples, split::Symbol, positions, microbatches::Integer)
    batch = Raw.rrfp_batch()
    list = collect(UInt64, positions)
    return GC.@preserve samples begin
        call(Raw.rrfp_samples_read_at, samples, number(:split, split), list, length(list),
             microbatches, batch)
        copy_batch(batch)
    end
end
@doc (@doc Base.read(::Samples, ::Symbol, ::Integer, ::Integer, ::Integer)) read_at

"""
    read_picture(path, image_size; pixels_max = 0) -> Array{Float32,3}

Decodes and resizes one PNG file as those of samples are: (3, image_size, image_size), -1 to 1.
`pixels_max`: of the picture in its file; 0 = 2^24.
"""
function read_picture(path::AbstractString, image_size::Integer; pixels_max::Integer = 0)
    pixels = Array{Float32}(undef, 3, max(image_size, 0), max(image_size, 0))
    call(Raw.rrfp_picture_read, path, image_size, pixels_max, pixels)
    return pixels
end
