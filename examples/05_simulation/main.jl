# SPDX-License-Identifier: Apache-2.0
#
# Compares schedules in virtual time, without hardware: the same steps of a workload under several
# hints, obeyed and as rankings of what is ready.
#
#   julia main.jl [PRESET]     uniform, language (default), multimodal, straggler, ...
using Printf
using RRFP

const ways = [("1f1b", :paired, "1F1B, obeyed, blocking sends"), ("1f1b", :strict, "1F1B, obeyed"),
              ("1f1b", :ready, "1F1B, as a ranking"), ("zb-h1", :strict, "ZB-H1, obeyed"),
              ("zb-v", :strict, "ZB-V, obeyed"), ("zb-v", :ready, "ZB-V, as a ranking"),
              ("auto", :default, "chosen by simulation")]
const seeds = 0:4

median(list) = sort(list)[(length(list)+1)÷2]

# The median makespan in milliseconds, and how far it is from the best possible.
function measure(preset, hint, order)
    simulation = Simulation(preset = preset, hint = hint, order = order, stages = 8,
                            microbatches = 32)
    steps = [run!(simulation, seed) for seed in seeds]
    close(simulation)
    return median([s.makespan_ns / 1e6 for s in steps]),
           median([s.makespan_ns / s.bound_ns for s in steps])
end

function main(preset)
    if !(preset in RRFP.presets())
        println(stderr, "there is no preset $preset; there are: ", join(RRFP.presets(), " "))
        exit(2)
    end
    println("$preset, 8 ranks, 32 microbatches, the memory of 1F1B, medians of ", length(seeds),
            " steps")
    @printf("%-30s %9s %14s\n", "", "ms", "over the bound")
    for (hint, order, text) in ways
        ms, ratio = measure(preset, hint, order)
        @printf("%-30s %9.1f %13.3fx\n", text, ms, ratio)
    end
end

main(isempty(ARGS) ? "language" : ARGS[1])
