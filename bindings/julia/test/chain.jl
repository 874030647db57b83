# SPDX-License-Identifier: Apache-2.0
#
# The toy chain: stage s, on rank s, multiplies by w[s]; the loss is the mean of what the last
# gives.

const w = Float32[2, 3, 5, 7]
const x = Float32[1, 2, 3, 4]

function chain_graph(stages = 4)
    graph = Graph(stages)
    for s in 0:stages-1
        add_stage!(graph; loss = s == stages - 1)
        s > 0 && add_edge!(graph, s - 1, s)
    end
    place!(graph, :linear)
    return graph
end
chain_pipeline(stages = 4; keywords...) = Pipeline(chain_graph(stages); keywords...)

mutable struct ChainResult
    losses::Vector{Float32}
    dw::Vector{Float32}
    dx::Vector{Float32}
    tasks::Vector{Int}
end
ChainResult() = ChainResult(zeros(Float32, 4), zeros(Float32, 4), zeros(Float32, 4), zeros(Int, 4))
values_of(r::ChainResult) = (sum(r.losses) / 4, r.dw, r.dx)
const expected = (525.0f0, Float32[262.5, 175, 105, 75], Float32[52.5, 52.5, 52.5, 52.5])

# Edge e goes from stage e to stage e + 1.
function chain_task(result, task)
    s, m = task.stage, task.microbatch
    result.tasks[s+1] += 1
    value = s == 0 ? x[m+1] : input(task, s - 1)[]
    if task.kind == FORWARD
        task.loss ? (result.losses[m+1] = w[s+1] * value) : put!(task, s, w[s+1] * value)
        return
    end
    gradient = task.loss ? 0.25f0 : input(task, s)[]
    task.kind == INPUT_GRADIENT || (result.dw[s+1] += value * gradient)
    if task.kind != WEIGHT_GRADIENT
        s == 0 ? (result.dx[m+1] = w[1] * gradient) : put!(task, s - 1, w[s+1] * gradient)
    end
    return
end

function run_chain(pipeline, hint; keywords...)
    result = ChainResult()
    run!(task -> chain_task(result, task), pipeline, hint; microbatches = 4, keywords...)
    return values_of(result)
end
