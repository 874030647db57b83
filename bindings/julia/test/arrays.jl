# SPDX-License-Identifier: Apache-2.0

"""Runs one forward through two stages on one edge: `first(task)` puts, `second(task)` reads."""
function forward(first, second; declare = graph -> nothing)
    graph = chain_graph(2)
    declare(graph)
    pipeline = Pipeline(graph)
    try
        run!(task -> task.stage == 0 ? first(task) : second(task), pipeline, "1f1b";
             microbatches = 1, mode = :forward)
    finally
        close(pipeline)
        close(graph)
    end
    return nothing
end

@testset "no copies, by address" begin
    for a in (rand(Float32, 3, 4), rand(Int64, 5), fill(2.5), view(rand(4, 6), :, 2:3))
        put!_at = UInt(pointer(a))
        forward(task -> put!(task, 0, a), task -> begin
            b = input(task, 0)
            @test UInt(pointer(b)) == put!_at
            @test size(b) == size(a) && b == a && eltype(b) == eltype(a)
        end)
    end
    at = UInt(0)
    forward(task -> begin
        a = alloc(task, Float32, 3, 2)
        @test size(a) == (3, 2) && UInt(pointer(a)) % 64 == 0
        a .= reshape(1:6, 3, 2)
        at = UInt(pointer(a))
        put!(task, 0, a)
        @test throws(() -> (a[1] = 0), :BAD_STATE, "written")
    end, task -> begin
        b = input(task, 0, TaskArray{Float32,2})
        @test UInt(pointer(b)) == at
        @test b == reshape(1:6, 3, 2)
        @test UInt(pointer(unsafe_array(b))) == at && unsafe_array(b) == b
        @test throws(() -> (b[1] = 0), :BAD_STATE, "written")
    end)
    @test RRFP.sweep() == 0
end

@testset "what is copied" begin
    a = rand(4, 6)
    for b in (a', view(a, 1:2, :), permutedims(a)', 1:5, PermutedDimsArray(a, (2, 1)))
        forward(task -> put!(task, 0, b), task -> @test input(task, 0) == b)
    end
    # Memory of the engine that is only partly put: it ends with the task, so it must be copied.
    forward(task -> begin
        b = alloc(task, Float64, 4, 3)
        b .= 7
        put!(task, 0, view(b, :, 2:3))
    end, task -> begin
        GC.gc()
        @test input(task, 0) == fill(7.0, 4, 2)
    end)
    forward(task -> put!(task, 0, zeros(Float32, 0, 3)),
            task -> @test size(input(task, 0)) == (0, 3))
    forward(task -> put!(task, 0, 1.5, Int8(3), true, BF16(2.0f0)), task -> begin
        values = map(v -> v[], inputs(task, 0))
        @test values[1:3] == Any[1.5, Int8(3), true] && Float32(values[4]) == 2
        @test throws(() -> input(task, 0), :TENSOR_MISMATCH, "4 tensors")
    end)
    @test [Float32(BF16(v)) for v in (1.0f0, 3.1415927f0, Inf32)] == [1, 3.140625f0, Inf32]
end

@testset "arrays live as long as they are used" begin
    pipeline = chain_pipeline(2)
    for step in 1:3
        total = zeros(2)
        run!(pipeline, "gpipe"; microbatches = 50) do task
            if task.kind == FORWARD && task.stage == 0
                put!(task, 0, fill(Float64(task.microbatch), 1000)) # nobody else holds it
            elseif task.stage == 1 && task.kind != WEIGHT_GRADIENT
                task.microbatch % 10 == 0 && task.kind == FORWARD && GC.gc()
                total[1] += sum(input(task, 0, TaskArray{Float64,1}))
                task.kind == FORWARD || put!(task, 0, copy(input(task, 0)))
            elseif task.stage == 0
                total[2] += sum(input(task, 0, TaskArray{Float64,1}))
            end
        end
        # Stage 0 sees each gradient once, as B, or twice, as I and W.
        @test total[1] == 2 * 1000 * sum(0:49)
        @test total[2] == 1000 * sum(0:49) || total[2] == 2000 * sum(0:49)
        @test RRFP.sweep() <= 4 # of 100; the last ones of each rank go with its next call
    end
    close(pipeline)
    @test RRFP.sweep() == 0
    # Also when the step fails with messages on their way.
    pipeline = chain_pipeline(2)
    @test_throws RRFPError run!(pipeline, "gpipe"; microbatches = 20, threads = 1) do task
        task.stage == 1 && error("no")
        put!(task, 0, rand(100))
    end
    reset!(pipeline)
    close(pipeline)
    @test RRFP.sweep() == 0
end

@testset "extents are reversed" begin
    a = Float32[1 2 3; 4 5 6] # size (2, 3): C shape (3, 2), rows 1 4, 2 5, 3 6
    weights = Float32[1 0; 0 1; 1 1]
    declare(graph) = declare_tensor!(graph, 0, Float32, 2, -1)
    forward(task -> put!(task, 0, a), task -> begin
        b = input(task, 0)
        tensor = task.rank.tensors[1]
        @test tensor.ndim == 2 && tensor.shape[1:2] == (3, 2)
        @test unsafe_wrap(Array, Ptr{Float32}(tensor.data), 6) == [1, 4, 2, 5, 3, 6]
        @test b[2, 1] == 4 && b[1, 3] == 3
        # It goes to BLAS as it is, and broadcasts.
        @test weights * b == weights * a && b .+ 1 == a .+ 1 && strides(b) == (1, 2)
        @test copy(b) isa Array && sum(b) == 21 && b' * b == a' * a
        @test_throws BoundsError b[3, 1]
    end; declare = declare)
    bad(value, name, part) = throws(name, part) do
        forward(task -> put!(task, 0, value), task -> nothing; declare = declare)
    end
    # The error of the call is thrown at the stage, and fails it.
    @test bad(rand(2, 3), :STAGE_FAILED, "")
    @test bad(rand(Float32, 3, 2), :STAGE_FAILED, "")
    @test bad(rand(Float32, 2), :STAGE_FAILED, "")
    @test bad(rand(ComplexF64, 2), :STAGE_FAILED, "Complex")
    @test bad(["text"], :STAGE_FAILED, "String")
    forward(task -> begin
        @test throws(() -> put!(task, 0, rand(2, 3)), :TENSOR_MISMATCH)
        @test throws(() -> put!(task, 0, rand(Float32, 3, 2)), :TENSOR_MISMATCH)
        @test throws(() -> put!(task, 5, a), :INVALID_ARGUMENT, "edge 5")
        @test throws(() -> alloc(task, String, 2), :TENSOR_MISMATCH)
        @test throws(() -> alloc(task, Float32, -2), :TENSOR_MISMATCH, "-2")
        put!(task, 0, a)
    end, task -> begin
        @test throws(() -> input(task, 0, TaskArray{Float64,2}), :TENSOR_MISMATCH, "Float32")
        @test throws(() -> input(task, 0, TaskArray{Float32,1}), :TENSOR_MISMATCH)
    end; declare = declare)
end

@testset "after the task" begin
    late = Any[]
    forward(task -> begin
        push!(late, task, alloc(task, Float32, 2))
        put!(task, 0, 1.0f0)
    end, task -> push!(late, input(task, 0)))
    task, made, got = late
    @test throws(() -> made[1], :BAD_STATE, "done")
    @test throws(() -> (made[1] = 1), :BAD_STATE, "done")
    @test throws(() -> pointer(made), :BAD_STATE, "done")
    @test throws(() -> sum(got), :BAD_STATE, "done")
    @test throws(() -> put!(task, 0, 1.0f0), :BAD_STATE, "done")
end

@testset "gradients that are zero, pointers that travel along" begin
    pipeline = chain_pipeline(2)
    run!(pipeline, "gpipe"; microbatches = 1, threads = 1) do task
        if task.kind == FORWARD && task.stage == 0
            put!(task, 0, 1.0f0, 2.0f0, 3.0f0; gradient = (true, false, true),
                 opaque = Ptr{Cvoid}(UInt(0x1234)))
        elseif task.stage == 1
            @test RRFP.opaque(task, 0) == Ptr{Cvoid}(UInt(0x1234))
            @test length(inputs(task, 0)) == 3
            task.kind == BACKWARD && put!(task, 0, nothing, 5.0f0)
        else
            gradients = inputs(task, 0)
            @test gradients[1] === nothing && gradients[2][] == 5
        end
    end
    close(pipeline)
end
