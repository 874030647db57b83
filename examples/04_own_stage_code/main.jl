# SPDX-License-Identifier: Apache-2.0
#
# Stage code of one's own: an MLP cut into two stages, y = W2 tanh(W1 x), whose gradients are
# written by hand. It learns sin(2 a + b) and a - b^3 by gradient descent on the mean of squared
# errors. Samples are the columns of matrices. What to look at:
#
#   - activations live in engine memory and reach the next stage without a copy;
#   - I (the gradient of what came in) and W (that of the weights) are separate tasks here; a stage
#     keeps what its W needs by (stage, microbatch);
#   - the sum over microbatches is the same to the bit whatever order the engine chooses.
#
#   julia main.jl [STEPS]
using Printf
using RRFP

const inputs_n, hidden, outputs_n, rows, microbatches = 2, 16, 2, 8, 4
const rate = 0.2f0

const W1, dW1 = zeros(Float32, hidden, inputs_n), zeros(Float32, hidden, inputs_n)
const W2, dW2 = zeros(Float32, outputs_n, hidden), zeros(Float32, outputs_n, hidden)
per_microbatch(n) = [zeros(Float32, n, rows) for _ in 1:microbatches]
const x, target = per_microbatch(inputs_n), per_microbatch(outputs_n)
const residual = per_microbatch(outputs_n) # d loss / d y, kept from F to W
const slope = per_microbatch(hidden)       # d h / d (W1 x), kept from F to W
const losses = zeros(microbatches)

const Activations = TaskArray{Float32,2} # size (hidden, rows)

# h = tanh(W1 x)
function first_stage(task)
    m = task.microbatch + 1
    if task.kind == FORWARD
        h = alloc(task, Float32, hidden, rows)
        h .= tanh.(W1 * x[m])
        slope[m] .= 1 .- h .^ 2
        put!(task, 0, h)
    elseif task.kind != INPUT_GRADIENT # nobody wants the gradient of x
        dh = input(task, 0, Activations)
        dW1 .+= (dh .* slope[m]) * x[m]'
    end
end

# y = W2 h and the loss
function second_stage(task)
    m = task.microbatch + 1
    h = input(task, 0, Activations)
    if task.kind == FORWARD
        difference = W2 * h .- target[m]
        losses[m] = sum(abs2, difference)
        residual[m] .= 2 .* difference ./ (rows * microbatches)
        return
    end
    if task.kind != INPUT_GRADIENT # W, or the W half of B
        dW2 .+= residual[m] * h'
    end
    if task.kind != WEIGHT_GRADIENT # I, or the I half of B
        dh = alloc(task, Float32, hidden, rows)
        dh .= W2' * residual[m]
        put!(task, 0, dh)
    end
end

compute(task) = task.stage == 0 ? first_stage(task) : second_stage(task)

# -1 .. 1, the same on every machine
const state = Ref(UInt32(1))
function draw()
    state[] = state[] * 0x0019660d + 0x3c6ef35f
    return Float32(state[] >> 8) / Float32(1 << 23) - 1
end

function prepare()
    for j in 1:hidden
        foreach(i -> W1[j, i] = draw(), 1:inputs_n)
        foreach(k -> W2[k, j] = draw() / 4, 1:outputs_n)
    end
    for m in 1:microbatches, r in 1:rows
        a, b = x[m][:, r] = [draw(), draw()]
        target[m][:, r] = [sin(2a + b), a - b^3]
    end
end

function main(steps)
    graph = Graph(2)
    add_stage!(graph)
    add_stage!(graph; loss = true)
    edge = add_edge!(graph, 0, 1)
    declare_tensor!(graph, edge, Float32, hidden, rows) # the engine checks what is put
    place!(graph, :linear)
    pipeline = Pipeline(graph)
    hint = Hint("zb-h1")

    prepare()
    for step in 1:steps
        dW1 .= 0
        dW2 .= 0
        run!(compute, pipeline, hint; microbatches = microbatches)
        W1 .-= rate .* dW1
        W2 .-= rate .* dW2
        if step % 100 == 1 || step == steps
            @printf("step %d: loss %.6f\n", step, sum(losses) / (rows * microbatches))
        end
    end
    foreach(close, (pipeline, graph, hint))
end

steps = isempty(ARGS) ? 300 : tryparse(Int, ARGS[1])
if length(ARGS) > 1 || something(steps, 0) < 1
    println(stderr, "usage: main.jl [STEPS]")
    exit(2)
end
main(steps)
