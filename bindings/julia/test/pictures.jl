# SPDX-License-Identifier: Apache-2.0

const pictures = joinpath(@__DIR__, "../../../tests/bindings/scenarios/pictures")
const manifest = joinpath(pictures, "samples.jsonl")
open_samples(; keywords...) =
    Samples(manifest; image_size = 8, image_tokens = 4, context = 48, keywords...)
const reader = (vocabulary = RRFP.Raw.RRFP_SAMPLES_VOCABULARY, context = 48, layers = 2, dim = 16,
                heads = 2)
const eye = (image_size = 8, patch = 4, layers = 2, dim = 8, heads = 2)
const plain_sgd = (optimizer = :sgd, lr = 0.1, weight_decay = 0, reduction = :sum)
row(numbers...) = reshape(collect(Float32, numbers), 1, :)

"""w_l (w_e images + text), the losses: an encoder, a text branch and what reads both."""
function branches(; frozen = false)
    model = Model()
    images, text = (add_input!(model, name, Float32, 1, -1) for name in ("images", "text"))
    begin_block!(model, "encoder")
    w_e = add_parameter!(model, "w_e", 1, 1; init_value = 2, frozen = frozen)
    encoded = add_operation!(model, :linear, images; parameters = w_e)
    begin_block!(model, "text")
    passed = add_operation!(model, :reshape, text; shape = (1, -1))
    begin_block!(model, "language")
    w_l = add_parameter!(model, "w_l", 1, 1; init_value = 3)
    both = add_operation!(model, :concat, encoded, passed; axis = 2)
    set_loss!(model, add_operation!(model, :linear, both; parameters = w_l))
    return model
end
const branched = [(row(1), row(1)), (row(), row(2)), (row(2), row(3)), (row(), row(4))]

@testset "branches" begin
    model = branches()
    for stages in 1:3
        trainer = Trainer(model; stages = stages, plain_sgd...)
        @test step!(trainer, branched; keep_gradients = true).loss == 48
        @test only(parameter(trainer, "w_l"; slot = :gradient)) == 16
        @test only(parameter(trainer, "w_e"; slot = :gradient)) == 9
        @test RRFP.losses(trainer) == [48]
        close(trainer)
    end
    first_blocks, stage_ranks = RRFP.place(model, 3, 2, [5, 1, 4])
    @test first_blocks == [0, 1, 2] && Set(stage_ranks) == Set([0, 1])
    trainer = Trainer(model; stages = 3, ranks = 2, first_blocks = first_blocks,
                      stage_ranks = stage_ranks, plain_sgd...)
    @test step!(trainer, branched).loss == 48
    reports = RRFP.stage_reports(trainer)
    @test [r.microbatches for r in reports] == [2, 4, 4] && [r.branch for r in reports] == [0, 1, 2]
    @test [r.rank for r in reports] == stage_ranks && reports[3].busy_ns > 0
    @test throws(() -> RRFP.stage_report(trainer, 3), :OUT_OF_RANGE, "3")
    @test evaluate(trainer, [(row(1, 2), row()), (row(3), row())]).step == 1
    @test RRFP.stage_report(trainer, 1).microbatches == 0
    @test throws(() -> RRFP.place(model, 2, 1), :OUT_OF_RANGE)
    @test throws(() -> RRFP.place(model, 3, 4), :OUT_OF_RANGE)
    @test_throws ArgumentError RRFP.place(model, 0, 1)
    @test_throws DimensionMismatch RRFP.place(model, 3, 2, [1])
    @test_throws DimensionMismatch Trainer(model; stages = 3, stage_ranks = [0, 1])
    foreach(close, (trainer, model))
    frozen = Trainer(branches(frozen = true); stages = 3, plain_sgd...)
    @test step!(frozen, branched).loss == 48 && RRFP.rank_report(frozen, 0).tasks == 2
    close(frozen)
end

@testset "several losses" begin
    model = Model()
    x, y = add_input!(model, "x", Float32, 1, -1), add_input!(model, "y", Float32, 1, -1)
    begin_block!(model)
    w = add_parameter!(model, "w", 1, 1; init_value = 2)
    set_loss!(model, add_operation!(model, :linear, x; parameters = w))
    second = add_operation!(model, :linear, y; parameters = w)
    @test throws(() -> add_loss!(model, second, NaN), :INVALID_ARGUMENT, "nan")
    @test throws(() -> add_loss!(model, x), :INVALID_ARGUMENT)
    add_loss!(model, second, 0.5)
    @test RRFP.info(model).losses == 2
    trainer = Trainer(model; optimizer = :sgd, weight_decay = 0)
    @test throws(() -> RRFP.losses(trainer), :BAD_STATE)
    report = step!(trainer, [(row(1, 3), row(5))]; keep_gradients = true)
    @test RRFP.losses(trainer) == [4, 10] && report.loss == 9 && report.loss_sum == 8
    @test only(parameter(trainer, "w"; slot = :gradient)) == 4.5
    evaluate(trainer, [(row(1), row())])
    @test RRFP.losses(trainer)[1] == 2 && isnan(RRFP.losses(trainer)[2])
    foreach(close, (trainer, model))
end

@testset "operations on pictures and packed samples" begin
    model = Model()
    x = add_input!(model, "x", Float32, 3, 5, 5, -1)
    begin_block!(model)
    cut = add_operation!(model, :patches, x; kernel = 3, stride = 2, padding = 1)
    @test RRFP.value_size(model, cut) == (27, 3, 3, -1)
    rows = add_input!(model, "rows", Float32, 27, -1)
    sources = add_input!(model, "sources", Int32, 9, -1)
    flat = add_operation!(model, :reshape, cut; shape = (27, 9, -1))
    merged = add_operation!(model, :merge_rows, flat, rows, sources)
    @test RRFP.value_size(model, merged) == (27, 9, -1)
    segments, places = (add_input!(model, name, Int32, 9, -1) for name in ("s", "p"))
    turned = add_operation!(model, :rotary, merged, places; heads = 1, head_dim = 4)
    attended = add_operation!(model, :attention, turned, segments; heads = 9, kv_heads = 9,
                              causal = true)
    @test RRFP.value_size(model, attended) == (9, 9, -1)
    set_loss!(model, add_operation!(model, :mul, attended, attended))
    trainer = Trainer(model; plain_sgd...)
    X = rand(Float32, 3, 5, 5, 2)
    S, P = repeat(Int32[1, 1, 1, 1, 2, 2, 2, 2, 2], 1, 2), repeat(Int32[0:3; 0:4], 1, 2)
    none = fill(Int32(-1), 9, 2)
    loss(rows, sources) = evaluate(trainer, [(X, rows, sources, S, P)]).loss
    @test loss(zeros(Float32, 27, 0), none) == loss(rand(Float32, 27, 2), none) > 0
    @test loss(zeros(Float32, 27, 1), fill(Int32(0), 9, 2)) == 0
    @test throws(() -> loss(zeros(Float32, 27, 1), fill(Int32(1), 9, 2)), :OUT_OF_RANGE)
    foreach(close, (trainer, model))
end

@testset "samples" begin
    samples = open_samples(seed = 5)
    facts = RRFP.info(samples)
    @test facts.train_samples == 11 && facts.validation_samples == 1 && facts.images == 10
    batch = read(samples, :train, 3, 4, 2)
    again = read_at(samples, :train, 3:6, 2)
    kept = deepcopy(batch)
    read(samples, :train, 0, 9, 1) # what was read before stays
    @test length(batch) == 2 && batch == again == kept
    for part in batch
        T, N = size(part.tokens, 1), size(part.images, 4)
        @test all(size(a) == (T, 1) && eltype(a) == Int32 for a in Tuple(part)[1:5])
        @test size(part.images) == (3, 8, 8, N) && eltype(part.images) == Float32
        here = part.tokens .== RRFP.Raw.RRFP_TOKEN_IMAGE
        @test part.sources[here] == 0:4N-1 && all(part.sources[.!here] .== -1)
    end
    without = read_at(samples, :train, [p for p in 0:10 if size(
        read_at(samples, :train, [p], 1)[1].images, 4) == 0], 1)
    @test size(without[1].images) == (3, 8, 8, 0)

    pixels = read_picture(joinpath(pictures, "disc.png"), 8)
    @test size(pixels) == (3, 8, 8) && pixels[1, :, :] == pixels[3, :, :]
    @test throws(() -> read_picture(joinpath(pictures, "disc.png"), 8; pixels_max = 119), :BAD_DATA)
    @test throws(() -> read_picture(manifest, 8), :BAD_DATA)
    @test throws(() -> read_picture("no-such.png", 8), :IO, "no-such")
    @test throws(() -> read_picture(manifest, 0), :INVALID_ARGUMENT)

    @test throws(() -> read(samples, :train, 0, 2, 3), :INVALID_ARGUMENT, "microbatches is 3")
    @test_throws ArgumentError read(samples, :no_such, 0, 1, 1)
    @test_throws ArgumentError open_samples(grouping = :no_such)
    @test_throws ArgumentError Samples(manifest * "\0"; image_size = 8, image_tokens = 4, context = 9)
    @test throws(() -> open_samples(context = 3), :BAD_DATA, "line 1")
    @test throws(() -> Samples("no-such"; image_size = 8, image_tokens = 4, context = 48), :IO,
                 "no-such")
    close(samples)
    @test throws(() -> read(samples, :train, 0, 1, 1), :NULL_HANDLE, "Samples")
end

@testset "vision and language" begin
    samples = open_samples(grouping = :cost)
    model = Model(:vision_language; language = merge(reader, (dropout = 0.1,)), vision = eye)
    @test RRFP.info(model).inputs == 6 && RRFP.info(model).losses == 1
    batch(step) = read(samples, :train, 4 * step, 4, 3)
    results = map((1, 4)) do stages
        first_blocks, stage_ranks = stages == 1 ? ([0], [0]) : RRFP.place(model, stages, 2)
        trainer = Trainer(model; stages = stages, ranks = min(stages, 2), seed = 3, lr = 3e-3,
                          first_blocks = first_blocks, stage_ranks = stage_ranks)
        losses = [step!(trainer, batch(step)).loss for step in 0:3]
        result = losses, RRFP.weights_sha256(trainer)
        close(trainer)
        return result
    end
    @test results[1] == results[2] && results[1][1][end] < results[1][1][1]
    @test_throws ArgumentError Model(:vision_language; language = reader, vision = (no_such = 1,))
    @test_throws ArgumentError Model(:no_such)
    frozen = Model(:vision_language; language = reader,
                   vision = merge(eye, (frozen = true, conv_stem = true)))
    @test RRFP.info(frozen).trainable_elements < RRFP.info(frozen).parameter_elements

    trainer = Trainer(model)
    step!(trainer, batch(0))
    mktempdir() do folder
        RRFP.save(trainer, folder)
        other = Trainer(Model(folder))
        load!(other, folder)
        @test evaluate(other, batch(1)).loss == evaluate(trainer, batch(1)).loss
        close(other)
    end
    prompt = read_at(samples, :validation, [0], 1)[1]
    generator = Generator(trainer, 48)
    start_inputs!(generator, prompt)
    likely = argmax(logits!(generator, zeros(Float32, 258))) - 1
    left = 48 - length(prompt.tokens)
    tokens = [next!(generator; temperature = 0) for _ in 1:left]
    @test tokens[1] == likely
    @test throws(() -> foreach(_ -> next!(generator), 1:2), :BAD_STATE)
    start_inputs!(generator, merge(prompt, (targets = zeros(Int32, 0, 1),)))
    @test [next!(generator; temperature = 0) for _ in 1:3] == tokens[1:3]
    @test throws(() -> start_inputs!(generator, Tuple(prompt)[1:5]), :TENSOR_MISMATCH)
    start!(generator, codeunits("text alone"))
    @test next!(generator; temperature = 0) < 258
    close(generator)
    @test throws(() -> start_inputs!(generator, prompt), :NULL_HANDLE, "Generator")
    foreach(close, (trainer, model, samples))
end
