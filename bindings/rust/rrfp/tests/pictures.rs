// SPDX-License-Identifier: Apache-2.0
//! Models with branches and several losses, and the vision-language model with its samples.
mod common;

use std::path::PathBuf;

use common::TempDir;
use rrfp::{read_picture, Batch, DType, ErrorKind, Generator, GptOptions, Grouping, Init, Model};
use rrfp::{Operation, Optimizer, Parameter, Placement, Reduction, Samples, SamplesOptions};
use rrfp::{Sampling, SaveOptions, Slot, Split, Tensor, Trainer, TrainerOptions, Training, Value};
use rrfp::{VisionOptions, SAMPLES_VOCABULARY, TOKEN_END, TOKEN_IMAGE};

const CONTEXT: i32 = 48;

fn picture(name: &str) -> PathBuf {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../../tests/bindings/scenarios/pictures")
        .join(name)
}

fn open(options: SamplesOptions) -> Samples {
    Samples::open(picture("samples.jsonl"), &options).unwrap()
}

fn sgd(stages: i32) -> TrainerOptions {
    let options = TrainerOptions::new().optimizer(Optimizer::Sgd).lr(0.1);
    options
        .weight_decay(0.0)
        .reduction(Reduction::Sum)
        .stages(stages)
}

/// w_l (w_e images + text), the losses: an encoder, a text branch and what reads both. The
/// parameters are w_e and w_l.
fn branches(frozen: bool) -> (Model, Parameter, Parameter) {
    let mut model = Model::new().unwrap();
    let training = Training {
        frozen,
        ..Training::default()
    };
    let images = model.add_input("images", DType::F32, &[-1, 1]).unwrap();
    let text = model.add_input("text", DType::F32, &[-1, 1]).unwrap();
    model.begin_block(Some("encoder"), false).unwrap();
    let w_e = model.add_parameter("w_e", &[1, 1], Init::Constant(2.0), training);
    let w_e = w_e.unwrap();
    let encoded = model.add(&Operation::linear(images, w_e, None)).unwrap();
    model.begin_block(Some("text"), false).unwrap();
    let passed = model.add(&Operation::reshape(text, &[-1, 1])).unwrap();
    model.begin_block(Some("language"), false).unwrap();
    let init = Init::Constant(3.0);
    let w_l = model.add_parameter("w_l", &[1, 1], init, Training::default());
    let w_l = w_l.unwrap();
    let both = Operation::concat(&[encoded, passed], 0);
    let both = model.add(&both).unwrap();
    let losses = model.add(&Operation::linear(both, w_l, None)).unwrap();
    model.set_loss(losses).unwrap();
    (model, w_e, w_l)
}

type Numbers<'a> = (&'a [f32], &'a [f32]);
const BRANCHED: [Numbers<'_>; 4] = [
    (&[1.0], &[1.0]),
    (&[], &[2.0]),
    (&[2.0], &[3.0]),
    (&[], &[4.0]),
];

fn column(numbers: &[f32]) -> Tensor<'_> {
    Tensor::from_slice(numbers, &[numbers.len() as i64, 1]).unwrap()
}

fn batch_of<'a>(microbatches: &[Numbers<'a>]) -> Batch<'a> {
    let mut batch = Batch::new();
    for (images, text) in microbatches {
        batch.push(&[column(images), column(text)]);
    }
    batch
}

fn gradient(trainer: &Trainer, parameter: Parameter) -> f32 {
    let mut value = [0.0];
    trainer.read(parameter, Slot::Gradient, &mut value).unwrap();
    value[0]
}

#[test]
fn text_passes_the_encoder_by() {
    let (model, w_e, w_l) = branches(false);
    for stages in 1..=3 {
        let mut trainer = Trainer::new(&model, &sgd(stages)).unwrap();
        let batch = batch_of(&BRANCHED).keep_gradients(true);
        assert_eq!(trainer.step(&batch).unwrap().loss, 48.0);
        assert_eq!(gradient(&trainer, w_l), 16.0);
        assert_eq!(gradient(&trainer, w_e), 9.0);
        assert_eq!(trainer.losses().unwrap(), [48.0]);
    }
    let (model, ..) = branches(true);
    let mut trainer = Trainer::new(&model, &sgd(3)).unwrap();
    assert_eq!(trainer.step(&batch_of(&BRANCHED)).unwrap().loss, 48.0);
    assert_eq!(trainer.rank_report(0).unwrap().tasks, 2);
}

#[test]
fn stages_are_placed_by_branch() {
    let (model, ..) = branches(false);
    let (first_blocks, stage_ranks) = model.place(3, 2, Some(&[5, 1, 4])).unwrap();
    assert_eq!(first_blocks, [0, 1, 2]);
    assert_ne!(stage_ranks[0], stage_ranks[2]);
    let options = sgd(3).ranks(2).first_blocks(&first_blocks);
    let mut trainer = Trainer::new(&model, &options.stage_ranks(&stage_ranks)).unwrap();
    assert_eq!(trainer.step(&batch_of(&BRANCHED)).unwrap().loss, 48.0);
    let reports = trainer.stage_reports().unwrap();
    let of_each = |f: fn(&rrfp::StageReport) -> i32| reports.iter().map(f).collect::<Vec<_>>();
    assert_eq!(of_each(|report| report.microbatches), [2, 4, 4]);
    assert_eq!(of_each(|report| report.branch), [0, 1, 2]);
    assert_eq!(of_each(|report| report.rank), stage_ranks);
    assert_eq!(of_each(|report| report.first_block), first_blocks);
    assert!(reports[2].busy_ns > 0);
    assert_eq!(
        trainer.stage_report(3).unwrap_err().kind(),
        ErrorKind::OutOfRange
    );
    let pictures_alone: [Numbers<'_>; 2] = [(&[1.0, 2.0], &[]), (&[3.0], &[])];
    trainer.evaluate(&batch_of(&pictures_alone)).unwrap();
    assert_eq!(trainer.stage_report(1).unwrap().microbatches, 0);

    let refused = |stages, ranks| model.place(stages, ranks, None).unwrap_err().kind();
    for (stages, ranks) in [(2, 1), (4, 1), (3, 4), (3, 0), (0, 1), (-1, 1)] {
        assert_eq!(refused(stages, ranks), ErrorKind::OutOfRange);
    }
    let error = model.place(3, 2, Some(&[1])).unwrap_err();
    assert!(error.text().contains("expected 3"), "{error}");
    let options = sgd(3).stage_ranks(&[0, 1]);
    let error = Trainer::new(&model, &options).unwrap_err();
    assert!(
        error.text().contains("stage_ranks has 2 entries"),
        "{error}"
    );
    let options = sgd(3).ranks(2).stage_ranks(&[0, 1, 0]);
    assert!(Trainer::new(&model, &options.placement(Placement::Loop)).is_err());
}

#[test]
fn several_losses() {
    let mut model = Model::new().unwrap();
    let x = model.add_input("x", DType::F32, &[-1, 1]).unwrap();
    let y = model.add_input("y", DType::F32, &[-1, 1]).unwrap();
    model.begin_block(None, false).unwrap();
    let init = Init::Constant(2.0);
    let w = model.add_parameter("w", &[1, 1], init, Training::default());
    let w = w.unwrap();
    let first = model.add(&Operation::linear(x, w, None)).unwrap();
    let second = model.add(&Operation::linear(y, w, None)).unwrap();
    model.set_loss(first).unwrap();
    let error = model.add_loss(second, f64::NAN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    model.add_loss(second, 0.5).unwrap();
    assert_eq!(model.info().unwrap().losses, 2);
    let options = sgd(1).reduction(Reduction::Mean);
    let mut trainer = Trainer::new(&model, &options).unwrap();
    assert_eq!(trainer.losses().unwrap_err().kind(), ErrorKind::BadState);
    let batch: [Numbers<'_>; 1] = [(&[1.0, 3.0], &[5.0])];
    let report = trainer
        .step(&batch_of(&batch).keep_gradients(true))
        .unwrap();
    assert_eq!(trainer.losses().unwrap(), [4.0, 10.0]);
    assert_eq!((report.loss, report.loss_sum), (9.0, 8.0));
    assert_eq!(gradient(&trainer, w), 4.5);
    let batch: [Numbers<'_>; 1] = [(&[1.0], &[])];
    trainer.evaluate(&batch_of(&batch)).unwrap();
    let losses = trainer.losses().unwrap();
    assert!(losses[0] == 2.0 && losses[1].is_nan(), "{losses:?}");
}

#[test]
fn operations_on_pictures_and_packed_samples() {
    let mut model = Model::new().unwrap();
    let x = model.add_input("x", DType::F32, &[-1, 5, 5, 3]).unwrap();
    let rows = model.add_input("rows", DType::F32, &[-1, 27]).unwrap();
    let [sources, segments, positions] = ["sources", "segments", "positions"]
        .map(|name| model.add_input(name, DType::I32, &[-1, 9]).unwrap());
    model.begin_block(None, false).unwrap();
    let mut add = |operation: Operation| -> Value { model.add(&operation).unwrap() };
    let cut = add(Operation::patches(x, 3, 2, 1));
    let flat = add(Operation::reshape(cut, &[-1, 9, 27]));
    let merged = add(Operation::merge_rows(flat, rows, sources));
    let turned = add(Operation::rotary(merged, 1, 4).given_positions(positions));
    let attention = Operation::attention_fused(turned, 9).kv_heads(9);
    let attended = add(attention.causal(true).segments(segments));
    let losses = add(Operation::mul(attended, attended));
    model.set_loss(losses).unwrap();
    assert_eq!(model.value_shape(cut).unwrap(), [-1, 3, 3, 27]);
    assert_eq!(model.value_shape(attended).unwrap(), [-1, 9, 9]);

    let mut trainer = Trainer::new(&model, &sgd(1)).unwrap();
    let x: Vec<f32> = (0..75).map(|i| (i as f32).sin()).collect();
    let (segments, positions) = ([1, 1, 1, 1, 2, 2, 2, 2, 2], [0, 1, 2, 3, 0, 1, 2, 3, 4]);
    let mut loss = |rows: &[f32], sources: &[i32; 9]| {
        let mut batch = Batch::new();
        batch.push(&[
            Tensor::from_slice(&x, &[1, 5, 5, 3]).unwrap(),
            Tensor::from_slice(rows, &[rows.len() as i64 / 27, 27]).unwrap(),
            Tensor::from_slice(sources, &[1, 9]).unwrap(),
            Tensor::from_slice(&segments, &[1, 9]).unwrap(),
            Tensor::from_slice(&positions, &[1, 9]).unwrap(),
        ]);
        trainer.evaluate(&batch).map(|report| report.loss)
    };
    let none = loss(&[], &[-1; 9]).unwrap();
    assert!(none > 0.0);
    assert_eq!(loss(&[1.0; 54], &[-1; 9]).unwrap(), none);
    assert_eq!(loss(&[0.0; 27], &[0; 9]).unwrap(), 0.0);
    let error = loss(&[0.0; 27], &[1; 9]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
}

fn numbers<'a>(batch: &Batch<'a>, m: usize, input: usize) -> &'a [i32] {
    batch.microbatch(m)[input].as_slice().unwrap()
}

#[test]
fn samples() {
    let options = || SamplesOptions::new(8, 4, CONTEXT).seed(5);
    let (mut samples, mut others) = (open(options()), open(options()));
    let info = samples.info().unwrap();
    assert_eq!((info.train_samples, info.validation_samples), (11, 1));
    assert_eq!((info.images, info.images_max), (10, 2));
    let batch = samples.read(Split::Train, 0, 11, 11).unwrap();
    let again = others.read_at(Split::Train, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 11);
    let again = again.unwrap();
    assert_eq!((batch.len(), again.len()), (11, 11));
    let mut pictures = Vec::new();
    for m in 0..11 {
        let row = batch.microbatch(m);
        let tokens = numbers(&batch, m, 0);
        for (input, tensor) in row[..5].iter().enumerate() {
            assert_eq!(tensor.shape(), [1, tokens.len() as i64]);
            assert_eq!(numbers(&batch, m, input), numbers(&again, m, input));
        }
        let pixels = row[5].as_slice::<f32>().unwrap();
        assert_eq!(pixels, again.microbatch(m)[5].as_slice::<f32>().unwrap());
        assert_eq!(row[5].shape()[1..], [8, 8, 3]);
        let images = tokens.iter().filter(|token| **token == TOKEN_IMAGE).count() / 4;
        assert_eq!(row[5].shape()[0], images as i64);
        assert_eq!(tokens.last(), Some(&TOKEN_END));
        let sources: Vec<i32> = numbers(&batch, m, 4).to_vec();
        let sources: Vec<i32> = sources.into_iter().filter(|row| *row >= 0).collect();
        assert_eq!(sources, (0..4 * images as i32).collect::<Vec<_>>());
        pictures.push(images);
    }
    assert!(
        pictures.contains(&0) && pictures.contains(&2),
        "{pictures:?}"
    );

    let refused = |result: rrfp::Result<Batch<'_>>| result.map(|_| ()).unwrap_err();
    let error = refused(samples.read(Split::Train, 0, 2, 3));
    assert!(error.text().contains("microbatches is 3"), "{error}");
    let error = refused(samples.read_at(Split::Train, &[], 1));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let open = |name: &str, context| {
        let result = Samples::open(picture(name), &SamplesOptions::new(8, 4, context));
        result.map(|_| ()).unwrap_err()
    };
    let error = open("samples.jsonl", 3);
    assert!(error.text().contains("line 1"), "{error}");
    assert_eq!(error.kind(), ErrorKind::BadData);
    assert_eq!(open("no-such", CONTEXT).kind(), ErrorKind::Io);
    assert_eq!(open("disc.png", CONTEXT).kind(), ErrorKind::BadData);
}

#[test]
fn pictures() {
    let mut pixels = vec![9.0; 8 * 8 * 3];
    read_picture(picture("disc.png"), 8, 0, &mut pixels).unwrap();
    assert!(pixels.iter().all(|pixel| (-1.0..=1.0).contains(pixel)));
    assert!(pixels.chunks(3).all(|pixel| pixel[0] == pixel[2]));
    let mut refused = |name: &str, size, pixels_max| {
        let result = read_picture(picture(name), size, pixels_max, &mut pixels);
        result.unwrap_err().kind()
    };
    assert_eq!(refused("disc.png", 8, 119), ErrorKind::BadData);
    assert_eq!(refused("samples.jsonl", 8, 0), ErrorKind::BadData);
    assert_eq!(refused("no-such.png", 8, 0), ErrorKind::Io);
    assert_eq!(refused("disc.png", 9, 0), ErrorKind::OutOfRange);
    assert_eq!(refused("disc.png", -9, 0), ErrorKind::OutOfRange);
}

fn language() -> GptOptions {
    let options = GptOptions::new().vocabulary(SAMPLES_VOCABULARY);
    options.context(CONTEXT).layers(2).dim(16).heads(2)
}

fn vision() -> VisionOptions {
    let options = VisionOptions::new().image_size(8).patch(4);
    options.layers(2).dim(8).heads(2)
}

#[test]
fn the_stages_do_not_matter() {
    let model = Model::vision_language(&language().dropout(0.1), &vision()).unwrap();
    assert_eq!(model.info().unwrap().inputs, 6);
    let grouping = SamplesOptions::new(8, 4, CONTEXT).grouping(Grouping::Cost);
    let results: Vec<_> = [(1, 1), (3, 2), (5, 3)]
        .iter()
        .map(|(stages, ranks)| {
            let mut options = TrainerOptions::new().seed(3).lr(3e-3).stages(*stages);
            if *stages > 1 {
                let (first_blocks, stage_ranks) = model.place(*stages, *ranks, None).unwrap();
                options = options.ranks(*ranks).first_blocks(&first_blocks);
                options = options.stage_ranks(&stage_ranks).delay_us_max(100);
            }
            let mut trainer = Trainer::new(&model, &options).unwrap();
            let mut samples = open(grouping.clone());
            let losses: Vec<_> = (0..4)
                .map(|step| {
                    let batch = samples.read(Split::Train, 4 * step, 4, 3).unwrap();
                    trainer.step(&batch).unwrap().loss
                })
                .collect();
            assert!(losses[3] < losses[0], "{losses:?}");
            (losses, trainer.weights_sha256().unwrap())
        })
        .collect();
    assert!(results.iter().all(|result| result == &results[0]));
}

#[test]
fn captions_and_checkpoints() {
    let options = vision().frozen(true).conv_stem(true);
    let model = Model::vision_language(&language(), &options).unwrap();
    let info = model.info().unwrap();
    assert!(info.trainable_elements < info.parameter_elements);
    let mut samples = open(SamplesOptions::new(8, 4, CONTEXT));
    let mut trainer = Trainer::new(&model, &TrainerOptions::new().lr(1e-2)).unwrap();
    for step in 0..3 {
        let batch = samples.read(Split::Train, 8 * step, 8, 4).unwrap();
        trainer.step(&batch).unwrap();
    }
    let dir = TempDir::new("captions");
    trainer.save(dir.path(), &SaveOptions::default()).unwrap();
    let model = Model::from_checkpoint(dir.path()).unwrap();
    let mut other = Trainer::new(&model, &TrainerOptions::new()).unwrap();
    other.load(dir.path()).unwrap();

    let batch = samples.read_at(Split::Validation, &[0], 1).unwrap();
    assert_eq!(
        other.evaluate(&batch).unwrap().loss,
        trainer.evaluate(&batch).unwrap().loss
    );
    let prompt = batch.microbatch(0);
    let mut generator = Generator::new(&trainer, CONTEXT).unwrap();
    generator.start_inputs(prompt).unwrap();
    let mut logits = vec![0.0; SAMPLES_VOCABULARY as usize];
    generator.logits(&mut logits).unwrap();
    let likely = Sampling::new().temperature(0.0);
    let mut tokens = Vec::new();
    let error = loop {
        match generator.draw(&likely) {
            Ok(token) => tokens.push(token),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::BadState, "{error}");
    assert!(tokens.len() >= (CONTEXT as usize) - numbers(&batch, 0, 0).len());
    assert!(logits
        .iter()
        .all(|logit| *logit <= logits[tokens[0] as usize]));

    let mut without_targets = prompt.to_vec();
    without_targets[1] = Tensor::from_slice::<i32>(&[], &[1, 0]).unwrap();
    generator.start_inputs(&without_targets).unwrap();
    assert_eq!(generator.draw(&likely).unwrap(), tokens[0]);
    let error = generator.start_inputs(&prompt[..5]).unwrap_err();
    assert!(error.text().contains("expected 6"), "{error}");
    generator.start(&[104, 105]).unwrap();
    assert!(generator.draw(&likely).unwrap() < SAMPLES_VOCABULARY);
}
