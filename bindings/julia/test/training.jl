# SPDX-License-Identifier: Apache-2.0

const text_file = joinpath(@__DIR__, "../../../tests/bindings/scenarios/text.txt")
const small = (vocabulary = 256, context = 16, layers = 2, dim = 32, heads = 4, dropout = 0.1)
sample(data, split, position) = split_batch(4, read(data, split, position, 8)...)

"""Trains to step `last` and gives all losses, the validation loss and the hash of the weights."""
function train(trainer, data, last)
    losses = [step!(trainer, sample(data, :train, 8 * step)).loss
              for step in RRFP.info(trainer).steps:last-1]
    return losses, evaluate(trainer, sample(data, :validation, 0)).loss,
           RRFP.weights_sha256(trainer)
end

@testset "the same to the bit" begin
    data = Data(text_file; context = 16)
    @test RRFP.info(data).vocabulary == 256 && RRFP.info(data).tokens == filesize(text_file)
    tokens, targets = read(data, :train, 3, 2)
    @test size(tokens) == (16, 2) && tokens[2:end, :] == targets[1:end-1, :]
    model = Model(:gpt; small...)
    results = map((1, 2)) do stages
        trainer = Trainer(model; stages = stages, lr = 0.003, seed = 7)
        result = train(trainer, data, 6)
        close(trainer)
        return result
    end
    @test results[1] == results[2]
    @test results[1][1][end] < results[1][1][1] && length(results[1][3]) == 64

    mktempdir() do folder
        first = Trainer(model; stages = 2, hint = "gpipe", lr = 0.003, seed = 7)
        train(first, data, 3)
        RRFP.save(first, folder; position = 24, user_json = "{\"who\":\"julia\"}", keep = 1)
        description = RRFP.describe(folder)
        @test occursin("julia", description) && occursin("\"step\"", description)
        second = Trainer(Model(folder); stages = 1, lr = 0.003, seed = 7)
        @test load!(second, folder) == 24
        @test RRFP.weights_sha256(second) == RRFP.weights_sha256(first)
        @test train(second, data, 6)[2:3] == results[1][2:3]
        third = Trainer(model)
        @test load!(third, folder; weights_only = true) == 24
        @test RRFP.info(third).steps == 0
        @test throws(() -> load!(third, "/no/such/folder"), :IO, "/no/such/folder")
        # C would read the beginning of such a text, and write to another folder.
        @test_throws ArgumentError RRFP.save(third, joinpath(folder, "a\0b"))
        @test_throws ArgumentError RRFP.save(third, folder; user_json = "{}\0{")
        @test_throws ArgumentError add_parameter!(Model(), "w\0x", 2, 2)
        @test_throws ArgumentError Data(text_file * "\0"; context = 16)
        @test_throws ArgumentError Simulation(preset = "language\0x", hint = "1f1b")
        foreach(close, (first, second, third))
    end
    foreach(close, (model, data))
end

@testset "trainer" begin
    data = Data(text_file; context = 16)
    model = Model(:gpt; small..., tied = true, rotary = true, rms_norm = true, swiglu = true)
    facts = RRFP.info(model)
    @test facts.inputs == 2 && facts.blocks == 4 && occursin("swiglu", RRFP.describe(model))
    costs = RRFP.measure(model, sample(data, :train, 0)[1])
    @test length(costs) == 4 && all(costs .> 0)
    @test RRFP.partition(model, 2, [1, 1, 1, 3]) == [0, 3]
    @test_throws DimensionMismatch RRFP.partition(model, 2, [1, 1])
    trainer = Trainer(model; stages = 2, first_blocks = [0, 3], hint = Hint("zb-h1"),
                      order = :ready, optimizer = :adamw, decay = :cosine, decay_steps = 10, clip_norm = 1,
                      trace_steps = 2, recompute = true)
    @test RRFP.first_blocks(trainer) == [0, 3]
    @test occursin("zb-h1", RRFP.describe_hint(trainer))
    batch = sample(data, :train, 0)
    name = RRFP.parameter_name(model, 0)
    before = parameter(trainer, name)
    @test size(before) == RRFP.parameter_size(model, 0) && eltype(before) == Float32
    report = step!(trainer, batch; keep_gradients = true, loss_factors = ones(4))
    @test parameter(trainer, 0) == before && any(parameter(trainer, 0; slot = :gradient) .!= 0)
    report = step!(trainer, batch; rounds = 2)
    @test report.step >= 1 && report.loss > 0 && !report.skipped && report.gradient_norm > 0
    @test parameter(trainer, 0) != before && any(parameter(trainer, 0; slot = :moment1) .!= 0)
    parameter!(trainer, name, before)
    @test parameter(trainer, name) == before
    @test RRFP.rank_report(trainer, 1).tasks > 0
    mktempdir() do folder
        RRFP.write_trace(joinpath(folder, "t.json"), trainer)
        RRFP.draw(joinpath(folder, "t.json"), joinpath(folder, "t.html"))
        @test occursin("<html", read(joinpath(folder, "t.html"), String))
        @test occursin("computing_ms", RRFP.summarize(joinpath(folder, "t.json")))
    end

    # Misuse.
    @test throws(() -> parameter(trainer, "no such"), :UNKNOWN_NAME, "no such")
    @test throws(() -> parameter(trainer, 999), :OUT_OF_RANGE, "999")
    @test throws(() -> parameter!(trainer, 0, Float64.(before)), :TENSOR_MISMATCH, "Float64")
    @test throws(() -> parameter!(trainer, 0, before[1:1, :]), :TENSOR_MISMATCH)
    @test throws(() -> step!(trainer, [(zeros(Int64, 16, 2), zeros(Int32, 16, 2))]),
                 :TENSOR_MISMATCH)
    @test throws(() -> step!(trainer, [(zeros(Int32, 16, 2),)]), :TENSOR_MISMATCH, "1 arrays")
    @test throws(() -> step!(trainer, [(fill(Int32(999), 16, 2), zeros(Int32, 16, 2))]),
                 :OUT_OF_RANGE, "999")
    @test_throws DimensionMismatch split_batch(3, zeros(16, 8))
    @test_throws ArgumentError Trainer(model; no_such_option = 1)
    @test_throws ArgumentError Trainer(model; optimizer = :no_such)
    @test throws(() -> Trainer(model; stages = 99), :OUT_OF_RANGE)
    cancel!(trainer)
    @test throws(() -> step!(trainer, batch), :CANCELLED)
    @test step!(trainer, batch).loss > 0

    # Generating: what is most likely is what the logits say.
    generator = Generator(trainer, 16)
    start!(generator, codeunits("the "))
    likely = argmax(logits!(generator, zeros(Float32, 256))) - 1
    @test next!(generator; temperature = 0) == likely
    @test throws(() -> logits!(generator, zeros(Float32, 7)), :INVALID_ARGUMENT, "7")
    twice = [generate(trainer, codeunits("the "), 8; context = 16, seed = 3, top_k = 5)
             for _ in 1:2]
    @test twice[1] == twice[2] && length(twice[1]) == 8
    close(trainer)
    @test !isopen(generator)
    @test throws(() -> next!(generator), :NULL_HANDLE, "Generator")
    @test throws(() -> step!(trainer, batch), :NULL_HANDLE, "Trainer")
    close(model)
    @test throws(() -> RRFP.info(model), :NULL_HANDLE)
    close(data)
    @test throws(() -> read(data, :train, 0, 1), :NULL_HANDLE)
    @test throws(() -> Data("/no/such/file"; context = 4), :IO, "/no/such/file")
end

@testset "a graph of operations, with sizes of Julia" begin
    model = Model()
    begin_block!(model, "only"; recompute = true)
    a = add_input!(model, "a", Float32, 3, -1)
    b = add_input!(model, "b", Float32, 2, -1)
    weight = add_parameter!(model, "weight", 3, 2; init = :normal, init_scale = 0.5)
    bias = add_parameter!(model, "bias", 2; no_decay = true)
    y = add_operation!(model, :linear, a; parameters = (weight, bias))
    @test RRFP.value_size(model, y) == (2, -1)
    pair = add_operation!(model, :concat, y, b; axis = 1)
    @test RRFP.value_size(model, pair) == (4, -1)
    set_output!(model, y)
    set_loss!(model, add_operation!(model, :squared_error, y, b))
    @test throws(() -> add_operation!(model, :linear, b; parameters = weight), :TENSOR_MISMATCH)
    trainer = Trainer(model; optimizer = :sgd, lr = 0.1, weight_decay = 0)
    A, B = rand(Float32, 3, 5), rand(Float32, 2, 5)
    W, c = parameter(trainer, "weight"), parameter(trainer, "bias")
    @test size(W) == (3, 2) && all(c .== 0)
    difference = W' * A .- B
    report = step!(trainer, [(A, B)]; keep_gradients = true)
    @test report.loss ≈ sum(abs2, difference) / 10
    @test parameter(trainer, "weight"; slot = :gradient) ≈ 2 * A * difference' / 10
    @test parameter(trainer, "bias"; slot = :gradient) ≈ vec(sum(2 * difference; dims = 2)) / 10
    step!(trainer, [(A, B)])
    @test parameter(trainer, "weight") ≈ W - 0.1f0 * (2 * A * difference' / 10)
    close(trainer)
end
