# SPDX-License-Identifier: Apache-2.0
#
# Trains a small language model on the bytes of a file or folder, over a pipeline of two stages, and
# lets it write 200 characters.
#
#   julia main.jl PATH [STEPS]
using Printf
using RRFP

const context = 64
const samples = 16 # of a batch
const microbatches = 8

batch(data, split, position) = split_batch(microbatches, read(data, split, position, samples)...)

function main(path, steps)
    data = Data(path; context = context)
    model = Model(:gpt; vocabulary = 256, context = context, layers = 2, dim = 64, heads = 4)
    trainer = Trainer(model; stages = 2, lr = 3e-3, clip_norm = 1)
    for step in 1:steps
        report = step!(trainer, batch(data, :train, (step - 1) * samples))
        if step % 10 == 1 || step == steps
            @printf("step %d: loss %.4f\n", step, report.loss)
        end
    end
    @printf("validation loss %.4f\n", evaluate(trainer, batch(data, :validation, 0)).loss)

    tokens = generate(trainer, codeunits("\n"), 200; context = context, temperature = 0.8, seed = 1)
    println(join(32 <= t < 127 || t == 10 ? Char(t) : '?' for t in tokens))
    foreach(close, (trainer, model, data))
end

steps = length(ARGS) > 1 ? tryparse(Int, ARGS[2]) : 50
if !(length(ARGS) in (1, 2)) || something(steps, 0) < 1
    println(stderr, "usage: main.jl PATH [STEPS]")
    exit(2)
end
main(ARGS[1], steps)
