# SPDX-License-Identifier: Apache-2.0

const csv = join((join(("$s$k$m" for k in "FB" for m in 0:3), ",") for s in 0:3), "\n")
const thread_counts = unique((1, Threads.nthreads()))

@testset "exact values with every hint" begin
    pipeline = chain_pipeline()
    lists = [(s, s, k, m) for s in 0:3 for k in (FORWARD, BACKWARD) for m in 0:3]
    ranking = [(s, k, m, m) for s in 0:3 for k in (FORWARD, BACKWARD) for m in 0:3]
    hints = ["gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2", "rf-1", Hint(text = csv),
             Hint(tasks = lists, ranks = 4), Hint(priorities = ranking)]
    for hint in hints, threads in thread_counts
        @test run_chain(pipeline, hint; threads = threads) == expected
    end
    for hint in ("gpipe", "1f1b", "zb-h1", Hint(text = csv)), order in (:strict, :paired)
        @test run_chain(pipeline, hint; order = order) == expected
    end
    close(pipeline)
end

@testset "hints and graphs" begin
    graph = chain_graph()
    hint = Hint(text = csv)
    @test RRFP.info(hint) == (ranks = 4, stages = 4, microbatches = 4)
    @test RRFP.text(hint, graph, 4) == RRFP.text(Hint(text = RRFP.text(hint, graph, 4)), graph, 4)
    @test startswith(RRFP.text("gpipe", graph, 2), "0F0,0F1,0B0,0B1")
    @test occursin("SEND_F", RRFP.lower("1f1b", graph, 4))
    @test occursin("UNSHARD", RRFP.lower("1f1b", graph, 4; fsdp = true))
    @test RRFP.layout("zb-v") == (placement = :v, chunks = 2, streams = 1)
    @test RRFP.note(Hint("1f1b")) == ""
    @test RRFP.check(graph) === nothing
    @test RRFP.check(hint, graph, 4; order = :strict) === nothing
    @test throws(() -> RRFP.check(hint, graph, 5), :BAD_ORDER)
    mktempdir() do folder
        RRFP.write_trace(joinpath(folder, "hint.json"), "zb-h1", graph, 4)
        @test occursin("\"idle_share\"", RRFP.summarize(joinpath(folder, "hint.json")))
    end
    placed = Graph(4)
    foreach(s -> add_stage!(placed; loss = s == 3), 0:3)
    place!(placed, hint)
    @test RRFP.check(placed) === nothing
    place!(placed, 0 => 1)
    @test throws(() -> RRFP.check(placed), :UNPLACED_STAGE)
    @test throws(() -> Hint("no such hint"), :UNKNOWN_NAME, "no such hint")
    @test throws(() -> Hint(text = "0F0,oops"), :SYNTAX)
    @test_throws ArgumentError Hint()
    @test_throws ArgumentError add_stage!(graph; no_such_option = 1)
    @test_throws ArgumentError place!(graph, :no_such_placement)
    @test throws(() -> add_edge!(graph, 0, 99), :OUT_OF_RANGE, "99")
    @test throws(() -> (add_edge!(graph, 3, 0); RRFP.check(graph)), :CYCLE)
end

struct Hot <: Exception end
Base.showerror(io::IO, ::Hot) = print(io, "too hot: 451 °F")

@testset "a stage that fails" begin
    pipeline = chain_pipeline()
    for threads in thread_counts, round in 1:3
        result = ChainResult()
        e = try
            run!(pipeline, "1f1b"; microbatches = 4, threads = threads) do task
                (task.stage, task.microbatch, task.kind) == (2, 1, FORWARD) && throw(Hot())
                chain_task(result, task)
            end
        catch e
            e
        end
        @test e isa RRFPError && e.name === :STAGE_FAILED
        @test (e.rank, e.stage, e.microbatch, e.kind) == (2, 2, 1, FORWARD)
        @test occursin("too hot: 451 °F", e.text)
        @test e.cause isa CapturedException && e.cause.ex isa Hot
        @test occursin("caused by: too hot", sprint(showerror, e))
        for rank in pipeline.ranks
            @test failure(rank) isa RRFPError && failure(rank).name === :STAGE_FAILED
            @test occursin("too hot: 451 °F", failure(rank).text)
        end
        @test throws(() -> run_chain(pipeline, "1f1b"), :STAGE_FAILED, "451")
        reset!(pipeline)
        @test run_chain(pipeline, "1f1b"; threads = threads) == expected
        @test all(rank -> failure(rank) === nothing, pipeline.ranks)
    end
    close(pipeline)
end

@testset "other ends of a step" begin
    pipeline = chain_pipeline()
    # A forward without its output.
    @test throws(() -> run!(task -> nothing, pipeline, "1f1b"; microbatches = 4), :STAGE_FAILED)
    reset!(pipeline)
    # fail! with a code of its own.
    e = try
        run!(task -> fail!(task, "no more", 42), pipeline, "1f1b"; microbatches = 4, threads = 1)
    catch e
        e
    end
    @test e.name === :STAGE_FAILED && e.user_code == 42 && occursin("no more", e.text)
    reset!(pipeline)
    # Ctrl-C inside a stage.
    @test_throws InterruptException run!(pipeline, "1f1b"; microbatches = 4) do task
        throw(InterruptException())
    end
    reset!(pipeline)
    # Thrown after the task is done.
    @test_throws RRFPError run!(pipeline, "1f1b"; microbatches = 4) do task
        put!(task, 0, 1.0f0)
        done!(task)
        error("too late")
    end
    reset!(pipeline)
    cancel!(pipeline, "no reason")
    @test throws(() -> run_chain(pipeline, "1f1b"), :CANCELLED, "no reason")
    reset!(pipeline)
    # A step that cannot begin leaves the pipeline as it was.
    @test throws(() -> run_chain(pipeline, "zb-v"), :BAD_ORDER, "zb-v")
    @test_throws ArgumentError run!(t -> nothing, pipeline, "1f1b"; microbatches = 4, no_option = 1)
    @test run_chain(pipeline, "1f1b") == expected
    close(pipeline)
end

@testset "one call at a time" begin
    graph = chain_graph(1)
    messages = String[]
    pipeline = Pipeline(graph; trace_steps = 1, watchdog_ms = 60000,
                        log = (level, text) -> push!(messages, text))
    rank = Rank(pipeline, 0)
    @test throws(() -> Rank(pipeline, 0), :BAD_STATE)
    begin_step!(rank, "1f1b"; microbatches = 1, mode = :train, step = 7)
    task = next!(rank)
    @test task isa PipelineTask
    @test (task.stage, task.microbatch, task.kind, task.loss) == (0, 0, FORWARD, true)
    @test occursin("0F0", RRFP.report(pipeline))
    @test throws(() -> next!(rank), :BAD_STATE)
    # Too early: the step goes on, and the task with it.
    array = alloc(task, Float32, 2)
    @test throws(() -> end_step!(rank), :BAD_STATE, "not complete")
    array .= 1
    events = done!(task)
    @test events.stage_losses && !events.stage_gradients
    for call in (done!, t -> fail!(t, "x"), t -> put!(t, 0, 1.0f0), t -> input(t, 0),
                 t -> alloc(t, Float32, 2), t -> wanted(t, 0))
        @test throws(() -> call(task), :BAD_STATE, "done")
    end
    task = next!(rank)
    @test task.kind == BACKWARD && done!(task).step_tasks
    @test next!(rank) === STEP_DONE
    report = end_step!(rank)
    @test report.tasks == 2 && report.step == 7 && report.total_ns > 0
    mktempdir() do folder
        RRFP.write_trace(joinpath(folder, "t.json"), pipeline)
        RRFP.draw(joinpath(folder, "t.json"), joinpath(folder, "t.svg"))
        @test occursin("<svg", read(joinpath(folder, "t.svg"), String))
    end
    close(pipeline)
    @test !isopen(rank) && !isopen(pipeline)

    # Waits end at the time-out, and when woken.
    pipeline = chain_pipeline(2)
    rank = Rank(pipeline, 1)
    begin_step!(rank, "1f1b"; microbatches = 1)
    @test next!(rank, 0) === nothing
    @test (@elapsed next!(rank, 20000)) >= 0.02
    wake!(rank)
    @test next!(rank) === nothing
    close(rank)
    @test throws(() -> next!(rank), :NULL_HANDLE, "Rank")
    close(pipeline)
end

@testset "skips, modes and sizes" begin
    pipeline = chain_pipeline()
    skip = falses(4, 4)
    skip[2, 3] = true # microbatch 1 skips stage 2, so its chain is cut
    result = ChainResult()
    @test_throws DimensionMismatch run!(t -> nothing, pipeline, "1f1b"; microbatches = 4,
                                        skip = falses(3, 4))
    seen = Tuple{Int,Int}[]
    guard = ReentrantLock()
    run!(pipeline, "1f1b"; microbatches = 4, mode = :forward, skip = skip,
         activation_bytes = fill(8, 4, 4)) do task
        lock(() -> push!(seen, (task.stage, task.microbatch)), guard)
        s = task.stage
        s < 3 && wanted(task, s) && put!(task, s, 1.0f0)
    end
    @test length(seen) == 15 && !((2, 1) in seen)
    close(pipeline)
end

@testset "two pipelines inside each other" begin
    outer, inner = chain_pipeline(), chain_pipeline(; log = (level, text) -> nothing)
    result = ChainResult()
    guard = ReentrantLock()
    run!(outer, "1f1b"; microbatches = 4) do task
        task.stage == 0 && task.kind == FORWARD &&
            @test run_chain(inner, "zb-h1"; threads = 1) == expected
        lock(() -> chain_task(result, task), guard)
    end
    @test values_of(result) == expected
    close(inner)
    @test run_chain(outer, "bfw") == expected
    close(outer)
end

@testset "closed handles" begin
    graph, hint, pipeline = chain_graph(), Hint("1f1b"), chain_pipeline()
    foreach(close, (graph, hint, pipeline, graph))
    @test throws(() -> add_stage!(graph), :NULL_HANDLE, "Graph has been closed")
    @test throws(() -> RRFP.info(hint), :NULL_HANDLE)
    @test throws(() -> cancel!(pipeline), :NULL_HANDLE)
    @test throws(() -> run_chain(pipeline, "1f1b"), :NULL_HANDLE)
    @test throws(() -> run_chain(chain_pipeline(), hint), :NULL_HANDLE)
    @test occursin("closed", sprint(show, graph))
    # An object of one kind is not taken for another.
    @test_throws TypeError Raw.rrfp_hint_note(chain_graph(), C_NULL, 0, C_NULL,
                                              RRFP.error_of_thread())
end

@testset "the log" begin
    messages = Any[]
    for round in 1:2 # slots are given back
        pipeline = chain_pipeline(2; log = (level, text) -> push!(messages, (level, text)),
                                  watchdog_ms = 50)
        rank = Rank(pipeline, 1) # nobody drives rank 0, so the watchdog ends the step
        begin_step!(rank, "1f1b"; microbatches = 1)
        @test throws(() -> next!(rank), :TIMEOUT)
        close(pipeline)
    end
    @test length(messages) >= 2 && messages[1][1] === :error
    @test all(isnothing, RRFP.loggers)
end
