# SPDX-License-Identifier: Apache-2.0
#
# What a task costs through RRFP.jl when it computes nothing: one rank, one stage, empty tasks.
# Prints nanoseconds per task, the median of the steps after two that warm up.
#
#   julia pull_bench.jl [MICROBATCHES]
using RRFP

function main(microbatches)
    graph = Graph(1)
    add_stage!(graph; loss = true, rank = 0)
    pipeline = Pipeline(graph; wake = :spin)
    rank = Rank(pipeline, 0)
    hint = Hint("1f1b")
    ns = Float64[]
    tasks = 0
    for step in 1:9
        start = time_ns()
        report = step!(rank, hint; microbatches = microbatches) do task
        end
        push!(ns, Float64(time_ns() - start) / report.tasks)
        tasks = report.tasks
    end
    println("pull ", round(Int, sort(ns[3:end])[4]), " ns per task (", tasks, " tasks a step)")
end

main(isempty(ARGS) ? 20000 : parse(Int, ARGS[1]))
