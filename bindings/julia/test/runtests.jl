# SPDX-License-Identifier: Apache-2.0
#
# The tests of RRFP.jl; README.md says how to run them. Run them with one thread and with several.
using RRFP
using Test
using RRFP: Raw

"""Whether `f` throws an RRFPError of this name with a text in which `part` occurs."""
function throws(f, name, part = "")
    try
        f()
    catch e
        e isa RRFPError && e.name === name && occursin(part, e.text) && return true
        println("expected ", name, " with \"", part, "\" and got ", sprint(showerror, e))
        return false
    end
    println("expected ", name, " and nothing was thrown")
    return false
end

include("chain.jl")

@testset "RRFP.jl with $(Threads.nthreads()) threads" begin
    @testset "raw layer" begin include("raw.jl") end
    @testset "engine" begin include("engine.jl") end
    @testset "arrays" begin include("arrays.jl") end
    @testset "training" begin include("training.jl") end
    @testset "pictures" begin include("pictures.jl") end
    @testset "simulation" begin include("simulation.jl") end
    @testset "processes" begin include("processes.jl") end
end
