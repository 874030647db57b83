# SPDX-License-Identifier: Apache-2.0
"""
Pipeline-parallel training by readiness: the Julia interface of the `rrfp` library.

A program with stage code of its own describes a [`Graph`](@ref), makes a [`Pipeline`](@ref) of it
and lets [`run!`](@ref) call its code for every task. One that lets rrfp train a model makes a
[`Model`](@ref) and a [`Trainer`](@ref). [`Simulation`](@ref) tries schedules in virtual time.

What holds everywhere:

- Stages, ranks, edges, microbatches, values and parameters count from 0, as in C and in timelines.
- Extents are reversed: a tensor of C shape (a, b), row-major, is an array of size (b, a),
  column-major. The memory is the same, and nothing is transposed or copied.
- An error is an [`RRFPError`](@ref), or an `ArgumentError` for a keyword that does not exist.
- Options are keywords. Their names and meanings are those of the C headers; flags are `Bool`s and
  named values are symbols, such as `order = :strict`. What is not given has the default of C.
- `close` frees a handle; otherwise the garbage collector does. A closed handle gives an error.
- Two threads must not use one handle at the same time, except for `cancel!`, `wake!` and
  `report`.
- The library is the file that the environment variable `RRFP_LIBRARY` names, or else what the
  loader finds as `librrfp.so.0`.

The library never calls Julia from a thread that Julia does not know. A call that computes for long
(a step of a trainer, a simulation) keeps the garbage collector of other Julia threads waiting.
"""
module RRFP

import Libdl

include("raw.jl")
include("errors.jl")
include("options.jl")
include("graph.jl")
include("pipeline.jl")
include("tensors.jl")
include("steps.jl")
include("model.jl")
include("trainer.jl")
include("data.jl")
include("samples.jl")
include("simulate.jl")

export RRFPError, Graph, Hint, Pipeline, Rank, PipelineTask, TaskArray, BF16, Model, Trainer, Data,
    Samples, Generator, Simulation
export FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, STEP_DONE
export add_stage!, add_edge!, declare_tensor!, place!
export cancel!, reset!, begin_step!, next!, wake!, end_step!, step!, run!, failure
export input, inputs, alloc, wanted, done!, fail!, unsafe_array
export begin_block!, add_input!, add_parameter!, add_operation!, set_loss!, add_loss!,
    set_output!
export evaluate, parameter, parameter!, load!, split_batch, start!, start_inputs!,
    logits!, generate, read_at, read_picture
# Short or common names stay inside: RRFP.check, RRFP.info, RRFP.save, RRFP.place, RRFP.draw, ...

"""The version of the library in use."""
function version()
    number = Raw.rrfp_version()
    return VersionNumber(number ÷ 1000000, number ÷ 1000 % 1000, number % 1000)
end

function __init__()
    open_library()
    # Not a plain call: to compile it is to open the library, and that must not come first.
    Base.invokelatest(check_abi)
    return nothing
end

# The loader knows a library that is open already by its soname, so the calls in raw.jl go there.
# RTLD_DEEPBIND, which Julia adds by default, must not be: Julia 1.5 of Debian brings an unwinder of
# its own (libunwind), and with that flag a C++ exception inside the library would begin in one
# unwinder and go on in the other, which ends the process.
function open_library()
    flags = Libdl.RTLD_NOW | Libdl.RTLD_LOCAL
    path = get(ENV, "RRFP_LIBRARY", "")
    isempty(path) || Libdl.dlopen(path, flags)
    handle = Libdl.dlopen(Raw.soname, flags; throw_error = false)
    handle === nothing && error("cannot load $(Raw.soname): set RRFP_LIBRARY to the path of the " *
                                "library, or LD_LIBRARY_PATH to its folder")
    return nothing
end

function check_abi()
    abi = Raw.rrfp_abi_version()
    abi == Raw.RRFP_ABI_VERSION || error("$(Raw.soname) has ABI $abi, and RRFP.jl is made for " *
                                         "$(Raw.RRFP_ABI_VERSION)")
    resize_errors!()
    return nothing
end

end # module
