# SPDX-License-Identifier: Apache-2.0
#
# Trains a small vision-language model to name the bright quarter of random pictures, over a
# pipeline of four stages on two ranks. Stages follow the branches of the model, so that the encoder
# has nothing to do for a microbatch without pictures.
#
#   julia main.jl [STEPS]
using Printf
using RRFP

const side, patch, rows = 8, 4, 4
const microbatches, stages, ranks = 4, 4, 2
# A sample is the rows of a picture, or some times a letter, and then the letter and the end.
const samples, len = 4, rows + 2
const letters, picture, finish, vocabulary = 4, 4, 5, 6

const state = Ref{UInt64}(1)
"""A random number below `most`; the same numbers in every language."""
function draw(most)
    state[] = state[] * 6364136223846793005 + 1442695040888963407
    return Int(state[] >> 33) % most
end

function make_picture(letter)
    image = Array{Float32}(undef, 3, side, side) # channel, x, y
    for y in 0:side-1, x in 0:side-1, c in 1:3
        bright = y ÷ patch * 2 + x ÷ patch == letter
        image[c, x+1, y+1] = Float32(draw(100) - (bright ? 0 : 100)) / 100
    end
    return image
end

function make_microbatch(pictures)
    lists = Matrix{Int32}(undef, samples * len, 5)
    images = Array{Float32}(undef, 3, side, side, pictures ? samples : 0)
    for sample in 0:samples-1
        letter = draw(letters)
        pictures && (images[:, :, :, sample+1] = make_picture(letter))
        for p in 0:len-1
            row = pictures && p < rows
            token = row ? picture : p < len - 1 ? letter : finish
            target = p == len - 1 || (row && p < rows - 1) ? -100 : p == len - 2 ? finish : letter
            lists[sample*len+p+1, :] .= (token, target, sample, p, row ? sample * rows + p : -1)
        end
    end
    return (ntuple(i -> lists[:, i:i], 5)..., images)
end

"""What the model says of new pictures."""
function name_pictures(trainer)
    microbatch = make_microbatch(true)
    lists, images = microbatch[1:5], microbatch[6]
    generator = Generator(trainer, len)
    for k in 1:samples
        # All samples begin alike: the rows of picture 0.
        start_inputs!(generator, (map(list -> list[1:rows, :], lists)..., images[:, :, :, k:k]))
        letter, token = lists[1][(k-1)*len+rows+1], next!(generator; temperature = 0)
        println("picture of ", 'a' + letter, ": ", 'a' + token)
    end
    close(generator)
end

function main(steps)
    model = Model(:vision_language;
                  language = (vocabulary = vocabulary, context = len, layers = 2, dim = 16,
                              heads = 2),
                  vision = (image_size = side, patch = patch, layers = 1, dim = 16, heads = 2))
    first_blocks, stage_ranks = RRFP.place(model, stages, ranks)
    trainer = Trainer(model; stages = stages, ranks = ranks, first_blocks = first_blocks,
                      stage_ranks = stage_ranks, lr = 1e-2)
    for step in 1:steps
        # The last microbatch is text.
        report = step!(trainer, [make_microbatch(m < microbatches) for m in 1:microbatches])
        if step % 20 == 1 || step == steps
            @printf("step %d: loss %.4f\n", step, report.loss)
        end
    end
    for (s, stage) in enumerate(RRFP.stage_reports(trainer))
        println("stage $(s - 1) on rank $(stage.rank): blocks $(stage.first_block) to ",
                "$(stage.last_block) of branch $(stage.branch), $(stage.microbatches) microbatches")
    end
    name_pictures(trainer)
    foreach(close, (trainer, model))
end

steps = isempty(ARGS) ? 100 : tryparse(Int, ARGS[1])
if length(ARGS) > 1 || something(steps, 0) < 1
    println(stderr, "usage: main.jl [STEPS]")
    exit(2)
end
main(steps)
