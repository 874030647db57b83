# SPDX-License-Identifier: Apache-2.0
#
# A schedule from a file, in the text form of torch.distributed.pipelining: one row per rank, cells
# such as 2F3 (stage 2, forward of microbatch 3; F, B or I and W). A chain in which every stage
# doubles what enters it runs by it, once as a ranking of what is ready and once obeyed to the
# letter, and shows what each rank did.
#
#   julia main.jl [FILE]     default: hint.csv beside this file
#
# `run!` would drive the ranks by itself; here they are driven by hand, to see the rounds.
using Printf
using RRFP

# A chain of all stages that the hint names, each on the rank in whose row it stands.
function make_graph(hint)
    info = RRFP.info(hint)
    graph = Graph(info.ranks)
    for s in 0:info.stages-1
        add_stage!(graph; loss = s == info.stages - 1)
        s > 0 && add_edge!(graph, s - 1, s)
    end
    place!(graph, hint)
    return graph
end

# Edge s leads from stage s to stage s + 1. Gives the loss of a microbatch in the last forward, else
# 0.
function compute(task, stages)
    s = task.stage
    task.kind == WEIGHT_GRADIENT && return 0.0f0 # there is no weight to train here
    forward = task.kind == FORWARD
    from, to = forward ? (s - 1, s) : (s, s - 1)
    value = forward ? Float32(task.microbatch + 1) : 1.0f0
    if 0 <= from < stages - 1
        value = input(task, from, TaskArray{Float32,0})[]
    end
    if 0 <= to < stages - 1
        put!(task, to, 2 * value)
        return 0.0f0
    end
    return forward ? 2 * value : 0.0f0
end

function run_rounds(graph, hint, order)
    info = RRFP.info(hint)
    pipeline = Pipeline(graph; order = order)
    ranks = [Rank(pipeline, r) for r in 0:info.ranks-1]
    for rank in ranks
        begin_step!(rank, hint; microbatches = info.microbatches)
    end
    println(order === :strict ? "obeyed" : "as a ranking")
    loss = 0.0f0
    done, round = 0, 0
    while done < length(ranks) # a round gives each rank one task if it has one ready
        @printf("  round %2d:", round)
        done = 0
        for rank in ranks
            task = next!(rank, 0)
            if task isa PipelineTask
                print("  ", task.stage, "FBIW"[Int(task.kind)+1], task.microbatch)
                loss += compute(task, info.stages)
                done!(task)
            else
                print("  ---")
                done += task === STEP_DONE
            end
        end
        println()
        round += 1
    end
    @printf("  sum of losses %g\n", loss)
    foreach(end_step!, ranks)
    close(pipeline) # and its ranks
end

function main(path)
    hint = Hint(text = read(path, String))
    graph = make_graph(hint)
    RRFP.check(hint, graph, RRFP.info(hint).microbatches; order = :strict)
    run_rounds(graph, hint, :ready)
    run_rounds(graph, hint, :strict)
    close(graph)
    close(hint)
end

main(isempty(ARGS) ? joinpath(@__DIR__, "hint.csv") : ARGS[1])
