# SPDX-License-Identifier: Apache-2.0
#
# The raw layer against the snapshot of sizes, offsets and values that a C program has printed.

const snapshot = joinpath(@__DIR__, "../../../tests/abi/layout_x86_64.txt")
const generator_script = joinpath(@__DIR__, "../generate.py")

let sizes = 0, offsets = 0, values = 0, functions = 0
    for line in eachline(snapshot)
        if (m = match(r"^(\w+) size (\d+)", line)) !== nothing
            @test sizeof(getfield(Raw, Symbol(m[1]))) == parse(Int, m[2])
            sizes += 1
        elseif (m = match(r"^(\w+)\.(\w+) offset (\d+) size (\d+)$", line)) !== nothing
            type = getfield(Raw, Symbol(m[1]))
            k = findfirst(==(Symbol(m[2])), fieldnames(type))
            @test k !== nothing
            @test fieldoffset(type, k) == parse(Int, m[3])
            @test sizeof(fieldtype(type, k)) == parse(Int, m[4])
            offsets += 1
        elseif (m = match(r"^(\w+) = (-?\d+)$", line)) !== nothing
            @test getfield(Raw, Symbol(m[1])) == parse(Int, m[2])
            values += 1
        elseif (m = match(r"\b(rrfp_\w+)\(.*;$", line)) !== nothing && !startswith(line, "typedef")
            @test isdefined(Raw, Symbol(m[1]))
            functions += 1
        end
    end
    @test sizes > 40 && offsets > 150 && values > 100 && functions > 100
end

@test success(pipeline(`python3 $generator_script --check`; stdout = stderr))
@test RRFP.version() >= v"0.1.0"
# What RRFP_LIBRARY names is what is called, and not another one that the loader may know.
if haskey(ENV, "RRFP_LIBRARY")
    @test realpath(RRFP.Libdl.dlpath(Raw.soname)) == realpath(ENV["RRFP_LIBRARY"])
end
