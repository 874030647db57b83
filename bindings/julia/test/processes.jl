# SPDX-License-Identifier: Apache-2.0
#
# What only a process of its own can show: ends without close, Ctrl-C, and fork.

const header = """
using RRFP
include($(repr(joinpath(@__DIR__, "chain.jl"))))
"""

"""Starts a Julia with `code`, waits for a line of output and gives the process and its output."""
function start(code)
    environment = copy(ENV)
    environment["JULIA_LOAD_PATH"] = join(LOAD_PATH, ':')
    command = setenv(`$(Base.julia_cmd()) --startup-file=no -e $(header * code)`, environment)
    process = open(command, "r")
    return process, readline(process)
end

@testset "forgetting to close" begin
    process, line = start("""
        pipeline = chain_pipeline()
        result = ChainResult()
        run!(task -> chain_task(result, task), pipeline, "1f1b"; microbatches = 4)
        rank = pipeline.ranks[1]
        begin_step!(rank, "1f1b"; microbatches = 4)
        task = next!(rank)
        put!(task, 0, rand(100))
        model = Model(:gpt; vocabulary = 16, context = 4, layers = 1, dim = 8, heads = 2)
        trainer = Trainer(model; stages = 2)
        tokens = zeros(Int32, 4, 2)
        step!(trainer, split_batch(2, tokens, tokens))
        generator = Generator(trainer, 4)
        simulation = Simulation(preset = "ideal", hint = "1f1b", stages = 2, microbatches = 4)
        println("leaving")
        """)
    seconds = @elapsed wait(process)
    @test line == "leaving" && success(process)
    @test seconds < 2
end

@testset "Ctrl-C while a rank waits" begin
    process, line = start("""
        Base.exit_on_sigint(false)
        pipeline = chain_pipeline(2)
        rank = Rank(pipeline, 1) # nobody drives rank 0
        println("waiting")
        try
            step!(task -> nothing, rank, "1f1b"; microbatches = 1)
        catch e
            println(typeof(e))
        end
        reset!(pipeline)
        run!(pipeline, "1f1b"; microbatches = 1, mode = :forward) do task
            task.stage == 0 ? put!(task, 0, 1.0f0) : println(input(task, 0)[])
        end
        """)
    @test line == "waiting"
    sleep(0.5)
    kill(process, Base.SIGINT)
    @test readline(process) == "InterruptException"
    @test readline(process) == "1.0"
    wait(process)
    @test success(process)
end

# Julia cannot compile in a forked child: parent and child share the memory of compiled code. So all
# that the child does has been compiled, by doing it once, before the fork.
@testset "handles in a forked child" begin
    process, line = start("""
        function make_rank(pipeline)
            try
                Rank(pipeline, 0)
                return :nothing
            catch e
                return e.name
            end
        end
        function in_child(pipeline)
            child = ccall(:fork, Cint, ())
            if child == 0
                forked = make_rank(pipeline) === :FORKED
                ccall(:_exit, Cvoid, (Cint,), forked ? 7 : 8)
            end
            status = Ref{Cint}(0)
            ccall(:waitpid, Cint, (Cint, Ref{Cint}, Cint), child, status, 0)
            return status[]
        end
        pipeline = chain_pipeline(2)
        println((make_rank(pipeline), make_rank(pipeline), in_child(pipeline) >> 8))
        """)
    @test line == "(:nothing, :BAD_STATE, 7)"
    wait(process)
    @test success(process)
end
