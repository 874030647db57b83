# SPDX-License-Identifier: Apache-2.0
#
# Runs a scenario file through RRFP.jl; see ../scenarios/README.md for files and output.
#
#   julia scenario.jl FILE
using Printf
using RRFP

const known = Dict(
    "chain" => ["weights", "inputs", "hint", "hint_file", "order", "fail"],
    "gpt" => ["data", "context", "layers", "dim", "heads", "dropout", "stages", "hint", "batch",
              "microbatches", "steps", "lr", "seed", "load", "save"],
    "vision" => ["data", "picture", "image_size", "patch", "vision_layers", "vision_dim",
                 "vision_heads", "context", "layers", "dim", "heads", "dropout", "stages", "ranks",
                 "hint", "grouping", "batch", "microbatches", "steps", "caption", "lr", "seed"])

function read_scenario(path)
    values = Dict{String,String}()
    for line in eachline(path)
        (isempty(strip(line)) || startswith(line, '#')) && continue
        words = split(line, ' '; limit = 2)
        values[words[1]] = length(words) > 1 ? strip(words[2]) : ""
    end
    kind = pop!(values, "scenario", "")
    haskey(known, kind) || error("$path: there is no scenario \"$kind\"")
    for key in keys(values)
        key in known[kind] || error("$path: a scenario $kind has no key \"$key\"")
    end
    return kind, values
end

numbers(T, text) = parse.(T, split(text))
print_numbers(name, list) = println(name, " ", join((@sprintf("%g", x) for x in list), " "))

# ---- The toy chain ------------------------------------------------------------------------------

struct Chain
    weights::Vector{Float32}
    inputs::Vector{Float32}
    losses::Vector{Float32}
    dw::Vector{Float32}
    dx::Vector{Float32}
    order::Vector{Vector{String}}
end
Chain(weights, inputs) = Chain(weights, inputs, zero(inputs), zero(weights), zero(inputs),
                               [String[] for _ in weights])

struct TooHot <: Exception
    text::String
end
Base.showerror(io::IO, e::TooHot) = print(io, e.text)

# Edge e goes from stage e to stage e + 1; stage s is s + 1 in Julia's arrays.
function compute(chain, task, fail)
    s, m = task.stage, task.microbatch
    last = s == length(chain.weights) - 1
    push!(chain.order[s+1], string(s, "FBIW"[Int(task.kind)+1], m))
    if fail !== nothing && task.kind == FORWARD && (s, m) == fail[1:2]
        throw(TooHot(fail[3]))
    end
    x = s == 0 ? chain.inputs[m+1] : input(task, s - 1, TaskArray{Float32,0})[]
    w = chain.weights[s+1]
    if task.kind == FORWARD
        last ? (chain.losses[m+1] = w * x) : put!(task, s, w * x)
        return
    end
    gradient = last ? 1 / Float32(length(chain.inputs)) : input(task, s, TaskArray{Float32,0})[]
    task.kind == INPUT_GRADIENT || (chain.dw[s+1] += x * gradient)
    if task.kind != WEIGHT_GRADIENT
        s == 0 ? (chain.dx[m+1] = w * gradient) : put!(task, s - 1, w * gradient)
    end
    return
end

function run_chain(folder, values)
    weights = numbers(Float32, values["weights"])
    inputs = numbers(Float32, values["inputs"])
    order = Symbol(get(values, "order", "ready"))
    hint = haskey(values, "hint_file") ?
        Hint(text = read(joinpath(folder, values["hint_file"]), String)) : Hint(values["hint"])
    graph = Graph(length(weights))
    for s in 0:length(weights)-1
        add_stage!(graph; loss = s == length(weights) - 1)
        s > 0 && add_edge!(graph, s - 1, s)
    end
    place!(graph, :linear)
    pipeline = Pipeline(graph)
    count = length(inputs)
    if haskey(values, "fail")
        words = split(values["fail"], ' '; limit = 3)
        fail = (parse(Int, words[1]), parse(Int, words[2]), String(words[3]))
        chain = Chain(weights, inputs)
        failed = false
        try
            run!(task -> compute(chain, task, fail), pipeline, hint; microbatches = count,
                 order = order)
        catch e
            e isa RRFPError || rethrow()
            failed = true
        end
        failed || error("the step did not fail")
        for rank in sort(pipeline.ranks; by = rank -> rank.id)
            e = failure(rank)
            e === nothing && error("rank $(rank.id) has not heard of the failure")
            text = occursin(fail[3], e.text) ? fail[3] : e.text
            println("failed $(rank.id) RRFP_ERR_$(e.name) $(e.stage) $(e.microbatch) $text")
        end
        reset!(pipeline)
    end
    chain = Chain(weights, inputs)
    run!(task -> compute(chain, task, nothing), pipeline, hint; microbatches = count, order = order)
    if order === :strict
        for (r, tasks) in enumerate(chain.order)
            println("order ", r - 1, " ", join(tasks, " "))
        end
    end
    loss = 0.0f0
    for l in chain.losses
        loss += l / Float32(count)
    end
    print_numbers("loss", [loss])
    print_numbers("dw", chain.dw)
    print_numbers("dx", chain.dx)
    foreach(close, (pipeline, graph, hint))
end

# ---- The language model -------------------------------------------------------------------------

bits(x::Float64) = string(reinterpret(UInt64, x); base = 16, pad = 16)

function run_gpt(folder, values)
    int(key) = parse(Int, values[key])
    batch, microbatches, context = int("batch"), int("microbatches"), int("context")
    data = Data(joinpath(folder, values["data"]); context = context)
    model = Model(:gpt; vocabulary = 256, context = context, layers = int("layers"),
                  dim = int("dim"), heads = int("heads"),
                  dropout = parse(Float64, get(values, "dropout", "0")))
    trainer = Trainer(model; hint = get(values, "hint", nothing), stages = int("stages"),
                      lr = parse(Float64, values["lr"]), seed = int("seed"))
    haskey(values, "load") && load!(trainer, joinpath(folder, values["load"]))
    sample(split, position) = split_batch(microbatches, read(data, split, position, batch)...)
    for step in RRFP.info(trainer).steps:int("steps")-1
        report = step!(trainer, sample(:train, step * batch))
        println("loss ", report.step, " ", bits(report.loss))
    end
    println("validation ", bits(evaluate(trainer, sample(:validation, 0)).loss))
    println("weights ", RRFP.weights_sha256(trainer))
    haskey(values, "save") && RRFP.save(trainer, joinpath(folder, values["save"]);
                                        position = int("steps") * batch)
    foreach(close, (trainer, model, data))
end

# ---- The vision-language model ------------------------------------------------------------------

function run_vision(folder, values)
    int(key) = parse(Int, values[key])
    batch, microbatches, context = int("batch"), int("microbatches"), int("context")
    image_size, patch = int("image_size"), int("patch")
    samples = Samples(joinpath(folder, values["data"]); image_size = image_size,
                      image_tokens = (image_size ÷ patch)^2, context = context,
                      grouping = Symbol(get(values, "grouping", "count")))
    facts = RRFP.info(samples)
    println("samples ", join((facts.train_samples, facts.validation_samples, facts.images,
                              facts.images_max, facts.tokens), " "))
    pixels = read_picture(joinpath(folder, values["picture"]), image_size)
    println("picture ", join((string(reinterpret(UInt32, x); base = 16, pad = 8)
                              for x in (first(pixels), last(pixels))), " "))
    language = (vocabulary = RRFP.Raw.RRFP_SAMPLES_VOCABULARY, context = context,
                layers = int("layers"), dim = int("dim"), heads = int("heads"),
                dropout = parse(Float64, get(values, "dropout", "0")))
    vision = (image_size = image_size, patch = patch, layers = int("vision_layers"),
              dim = int("vision_dim"), heads = int("vision_heads"))
    model = Model(:vision_language; language = language, vision = vision)
    first_blocks, stage_ranks = RRFP.place(model, int("stages"), int("ranks"))
    println("blocks ", join(first_blocks, " "))
    println("ranks ", join(stage_ranks, " "))
    trainer = Trainer(model; hint = get(values, "hint", nothing), stages = int("stages"),
                      ranks = int("ranks"), first_blocks = first_blocks, stage_ranks = stage_ranks,
                      lr = parse(Float64, values["lr"]), seed = int("seed"))
    for step in 0:int("steps")-1
        report = step!(trainer, read(samples, :train, step * batch, batch, microbatches))
        println("loss ", report.step, " ", bits(report.loss))
    end
    for (s, report) in enumerate(RRFP.stage_reports(trainer))
        println("stage ", join((s - 1, report.rank, report.first_block, report.last_block,
                                report.branch, report.microbatches), " "))
    end
    report = evaluate(trainer, read(samples, :validation, 0, batch, microbatches))
    println("validation ", bits(report.loss))
    println("losses ", join(map(bits, RRFP.losses(trainer)), " "))
    println("weights ", RRFP.weights_sha256(trainer))
    generator = Generator(trainer, context)
    start_inputs!(generator, read_at(samples, :validation, [0], 1)[1])
    println("caption ", join((next!(generator; temperature = 0) for _ in 1:int("caption")), " "))
    foreach(close, (trainer, model, samples))
end

const runners = Dict("chain" => run_chain, "gpt" => run_gpt, "vision" => run_vision)

function main(path)
    kind, values = read_scenario(path)
    runners[kind](dirname(abspath(path)), values)
end

if length(ARGS) != 1
    println(stderr, "usage: scenario.jl FILE")
    exit(1)
end
try
    main(ARGS[1])
catch e
    println(stderr, "scenario.jl: ", sprint(showerror, e))
    exit(1)
end
