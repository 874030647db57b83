# SPDX-License-Identifier: Apache-2.0
#
# The smallest pipeline: a chain of four stages, one on each of four ranks. Stage s multiplies by
# w[s], the loss of a microbatch is what the last stage gives, the loss of the step is the mean.
#
#   julia main.jl [HINT]     gpipe, 1f1b (default), bf, bfw or zb-h1; the result is the same
using Printf
using RRFP

const w = Float32[2, 3, 5, 7]
const x = Float32[1, 2, 3, 4]

# Each task writes only what belongs to its stage.
const losses = zeros(Float32, 4)
const dw = zeros(Float32, 4)
const dx = zeros(Float32, 4)

# A scalar that arrived along an edge; edge e goes from stage e to stage e + 1.
get_scalar(task, edge) = input(task, edge, TaskArray{Float32,0})[]

function compute(task)
    s, m = task.stage, task.microbatch
    value = s == 0 ? x[m+1] : get_scalar(task, s - 1)
    if task.kind == FORWARD
        output = w[s+1] * value
        task.loss ? (losses[m+1] = output) : put!(task, s, output)
        return
    end
    gradient = task.loss ? 0.25f0 : get_scalar(task, s) # of the mean, for the last stage
    if task.kind != INPUT_GRADIENT # W, or the W half of B
        dw[s+1] += value * gradient
    end
    if task.kind != WEIGHT_GRADIENT # I, or the I half of B
        to_input = w[s+1] * gradient
        s == 0 ? (dx[m+1] = to_input) : put!(task, s - 1, to_input)
    end
end

function main(hint)
    graph = Graph(4)
    for s in 0:3
        add_stage!(graph; loss = s == 3)
        s > 0 && add_edge!(graph, s - 1, s)
    end
    place!(graph, :linear)
    pipeline = Pipeline(graph)

    reports = run!(compute, pipeline, hint; microbatches = 4)

    @printf("loss %g\n", sum(losses) / 4)
    foreach(s -> @printf("dw%d %g\n", s, dw[s+1]), 0:3)
    foreach(m -> @printf("dx%d %g\n", m, dx[m+1]), 0:3)
    for r in reports
        println("rank $(r.rank): $(r.tasks) tasks, at most $(r.peak_slots) activations held")
    end
    close(pipeline)
    close(graph)
end

main(isempty(ARGS) ? "1f1b" : ARGS[1])
