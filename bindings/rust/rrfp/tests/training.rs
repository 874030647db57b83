// SPDX-License-Identifier: Apache-2.0
//! Models, trainers, checkpoints, data, generating.
mod common;

use common::TempDir;
use rrfp::{describe_checkpoint, Batch, DType, Data, DataOptions, Decay, ErrorKind, Generator};
use rrfp::{GptOptions, Hint, Init, Model, NonFinite, Operation, Optimizer, Parameter, Placement};
use rrfp::{Sampling, SaveOptions, Slot, Split, Tensor, Trainer, TrainerOptions, Training};

const CONTEXT: usize = 16;
const BATCH: usize = 8;
const MICROBATCHES: usize = 4;

fn text_file() -> std::path::PathBuf {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../../tests/bindings/scenarios/text.txt")
}

fn data() -> Data {
    Data::open(&[text_file()], &DataOptions::new(CONTEXT as i32)).unwrap()
}

fn gpt() -> Model {
    let options = GptOptions::new()
        .vocabulary(256)
        .context(CONTEXT as i32)
        .layers(2)
        .dim(32);
    Model::gpt(&options.heads(4).dropout(0.1)).unwrap()
}

struct Samples(Vec<i32>, Vec<i32>);

impl Samples {
    fn read(data: &Data, split: Split, position: u64) -> Self {
        let mut samples = Self(vec![0; BATCH * CONTEXT], vec![0; BATCH * CONTEXT]);
        data.read(split, position, &mut samples.0, &mut samples.1)
            .unwrap();
        samples
    }

    fn batch(&self) -> Batch<'_> {
        Batch::of_tokens(&self.0, &self.1, CONTEXT, MICROBATCHES).unwrap()
    }
}

/// Steps `from .. to`; the bits of their losses.
fn train(trainer: &mut Trainer, data: &Data, from: u64, to: u64) -> Vec<u64> {
    let step = |step| {
        let samples = Samples::read(data, Split::Train, step * BATCH as u64);
        let report = trainer.step(&samples.batch()).unwrap();
        assert_eq!(report.step, step as i64 + 1);
        assert_eq!(report.loss_weight, (BATCH * CONTEXT) as f64);
        assert!(!report.skipped() && report.gradient_norm > 0.0 && report.wall_ns > 0);
        report.loss.to_bits()
    };
    (from..to).map(step).collect()
}

#[test]
fn the_same_to_the_bit_for_any_number_of_stages() {
    let data = data();
    let hint = Hint::named("zb-v").unwrap();
    let base = || TrainerOptions::new().seed(7).lr(3e-3).clip_norm(1.0);
    let variants = [
        base(),
        base().stages(2),
        base()
            .stages(2)
            .hint(&Hint::named("gpipe").unwrap())
            .recompute(true),
        base()
            .stages(4)
            .placement(Placement::V)
            .hint(&hint)
            .delay_us_max(50),
        base().stages(3).first_blocks(&[0, 1, 2]),
        base().stages(2).auto(true),
    ];
    let results: Vec<_> = variants
        .iter()
        .map(|options| {
            let mut trainer = Trainer::new(&gpt(), options).unwrap();
            let losses = train(&mut trainer, &data, 0, 4);
            let samples = Samples::read(&data, Split::Validation, 0);
            let validation = trainer.evaluate(&samples.batch()).unwrap().loss.to_bits();
            (losses, validation, trainer.weights_sha256().unwrap())
        })
        .collect();
    for (options, result) in variants.iter().zip(&results).skip(1) {
        assert_eq!(result, &results[0], "{options:?}");
    }
    let loss = f64::from_bits(results[0].0[0]);
    assert!((loss - 256f64.ln()).abs() < 0.5, "{loss}");
    assert_eq!(results[0].2.len(), 64);
}

#[test]
fn checkpoints() {
    let dir = TempDir::new("checkpoints");
    let data = data();
    let options = TrainerOptions::new().seed(3).stages(2);
    let mut whole = Trainer::new(&gpt(), &options).unwrap();
    train(&mut whole, &data, 0, 3);
    let save = SaveOptions {
        keep: 1,
        position: 3 * BATCH as u64,
        user_json: Some(r#"{"note":"from a test"}"#.to_string()),
    };
    whole.save(dir.path(), &save).unwrap();
    let rest = train(&mut whole, &data, 3, 6);

    let state = describe_checkpoint(dir.path()).unwrap();
    assert!(state.contains("from a test"), "{state}");
    let model = Model::from_checkpoint(dir.path()).unwrap();
    let mut again = Trainer::new(&model, &TrainerOptions::new().seed(99)).unwrap();
    assert_eq!(again.load(dir.path()).unwrap(), save.position);
    let info = again.info().unwrap();
    assert_eq!(
        (info.steps, info.updates, info.seed, info.stages),
        (3, 3, 3, 1)
    );
    assert_eq!(train(&mut again, &data, 3, 6), rest);
    assert_eq!(
        again.weights_sha256().unwrap(),
        whole.weights_sha256().unwrap()
    );

    let mut weights = Trainer::new(&model, &options).unwrap();
    weights.load_weights(dir.path()).unwrap();
    assert_eq!(weights.info().unwrap().steps, 0);
    let error = weights.load(dir.path().join("none")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let error = weights
        .save("/proc/nowhere", &SaveOptions::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

/// A line through four points, by a graph of operations and plain gradient descent.
#[test]
fn own_graph_of_operations() {
    let mut model = Model::new().unwrap();
    let x = model.add_input("x", DType::F32, &[-1, 2]).unwrap();
    let y = model.add_input("y", DType::F32, &[-1, 1]).unwrap();
    let training = Training {
        no_decay: true,
        ..Training::default()
    };
    let w = model
        .add_parameter("w", &[1, 2], Init::Constant(0.0), training)
        .unwrap();
    let b = model
        .add_parameter("b", &[1], Init::Constant(1.0), training)
        .unwrap();
    assert_eq!(model.begin_block(Some("line"), false).unwrap(), 0);
    let out = model.add(&Operation::linear(x, w, Some(b))).unwrap();
    assert_eq!(model.begin_block(None, true).unwrap(), 1);
    let losses = model.add(&Operation::squared_error(out, y)).unwrap();
    model.set_output(out).unwrap();
    model.set_loss(losses).unwrap();
    let info = model.info().unwrap();
    assert_eq!((info.inputs, info.parameters, info.blocks), (2, 2, 2));
    assert_eq!((info.parameter_elements, info.trainable_elements), (3, 3));
    assert_eq!(model.parameter_name(w).unwrap(), "w");
    assert_eq!(model.parameter_shape(w).unwrap(), [1, 2]);
    assert_eq!(model.value_shape(losses).unwrap(), [-1, 1]);
    assert_eq!(model.partition(2, Some(&[1, 1])).unwrap(), [0, 1]);
    assert_eq!(
        model.partition(9, None).unwrap_err().kind(),
        ErrorKind::OutOfRange
    );
    assert_eq!(
        model.partition(2, Some(&[1])).unwrap_err().kind(),
        ErrorKind::OutOfRange
    );
    assert!(model.describe().unwrap().contains("line"));
    let error = model.add(&Operation::add(x, y)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TensorMismatch, "{error}");

    let options = TrainerOptions::new()
        .optimizer(Optimizer::Sgd)
        .lr(0.5)
        .weight_decay(0.0);
    let mut trainer = Trainer::new(&model, &options.stages(2)).unwrap();
    assert_eq!(trainer.first_blocks().unwrap(), [0, 1]);
    let (xs, ys) = ([1f32, 2.0, 3.0, 4.0], [5f32, 6.0]);
    let row = |m: usize| {
        let x = Tensor::from_slice(&xs[2 * m..2 * m + 2], &[1, 2]).unwrap();
        [x, Tensor::from_slice(&ys[m..m + 1], &[1, 1]).unwrap()]
    };
    let mut batch = Batch::new();
    batch.push(&row(0));
    batch.push(&row(1));
    assert_eq!(batch.len(), 2);
    // b = 1: errors -4 and -5; the mean of their squares is 20.5, its gradient for w (-19, -28).
    let kept = trainer.step(&batch.clone().keep_gradients(true)).unwrap();
    assert_eq!(
        (kept.loss, kept.loss_sum, kept.loss_weight),
        (20.5, 41.0, 2.0)
    );
    let mut values = [0f32; 2];
    trainer.read(w, Slot::Gradient, &mut values).unwrap();
    assert_eq!(values, [-19.0, -28.0]);
    trainer.read(w, Slot::Weight, &mut values).unwrap();
    assert_eq!(values, [0.0, 0.0]);
    trainer.step(&batch).unwrap();
    trainer.read(w, Slot::Weight, &mut values).unwrap();
    assert_eq!(values, [9.5, 14.0]);
    trainer.write(w, Slot::Weight, &[0.0, 0.0]).unwrap();
    trainer.write(b, Slot::Weight, &[1.0]).unwrap();
    assert_eq!(
        trainer
            .evaluate(&batch.clone().loss_factors(&[1.0, 0.0]))
            .unwrap()
            .loss,
        8.0
    );
    assert_eq!(
        trainer
            .step(&batch.clone().rounds(2).random_step(5))
            .unwrap()
            .loss,
        20.5
    );
    assert!(trainer.rank_report(1).unwrap().tasks > 0);
    assert!(model.measure(&row(0)).unwrap().iter().all(|ns| *ns > 0));
}

#[test]
fn misuse_of_trainers() {
    let mut trainer = Trainer::new(&gpt(), &TrainerOptions::new()).unwrap();
    let long = vec![0i32; 4 * CONTEXT];
    let kind = |result: rrfp::Result<_>| result.map(|_: rrfp::TrainReport| ()).unwrap_err().kind();
    let mut batch = Batch::new();
    batch.push(&[Tensor::from_slice(&long, &[4, CONTEXT as i64]).unwrap()]);
    assert_eq!(kind(trainer.step(&batch)), ErrorKind::OutOfRange); // no targets
    let reals = vec![0f32; CONTEXT];
    let mut batch = Batch::new();
    let row = [Tensor::from_slice(&reals, &[1, CONTEXT as i64]).unwrap()];
    batch.push(&[row[0].clone(), row[0].clone()]);
    assert_eq!(kind(trainer.step(&batch)), ErrorKind::TensorMismatch);
    let bad = vec![700i32; CONTEXT];
    let batch = Batch::of_tokens(&bad, &bad, CONTEXT, 1).unwrap();
    let error = trainer.step(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert!(
        error.text().contains("microbatch 0 has 700 at position 0"),
        "{error}"
    );
    assert!(kind(trainer.step(&Batch::new())) != ErrorKind::Internal);
    assert_eq!(
        kind(trainer.step(&batch.loss_factors(&[1.0; 3]))),
        ErrorKind::OutOfRange
    );
    for (tokens, microbatches) in [(4 * CONTEXT - 1, 2), (4 * CONTEXT, 3), (0, 1)] {
        assert!(Batch::of_tokens(&long[..tokens], &long[..tokens], CONTEXT, microbatches).is_err());
    }
    let error = trainer
        .read(Parameter(0), Slot::Weight, &mut [0.0; 3])
        .unwrap_err();
    assert!(error.text().contains('3'), "{error}");
    assert!(trainer
        .read(Parameter(9999), Slot::Weight, &mut [0.0; 3])
        .is_err());
    let options = TrainerOptions::new().stages(3).first_blocks(&[0]);
    assert_eq!(
        Trainer::new(&gpt(), &options).unwrap_err().kind(),
        ErrorKind::OutOfRange
    );
    // After all this it still works.
    train(&mut trainer, &data(), 0, 1);
}

/// Makes the next loss not a number.
fn poison(trainer: &mut Trainer) {
    let model = gpt();
    let elements: i64 = model
        .parameter_shape(Parameter(0))
        .unwrap()
        .iter()
        .product();
    let nan = vec![f32::NAN; elements as usize];
    trainer.write(Parameter(0), Slot::Weight, &nan).unwrap();
}

#[test]
fn non_finite_and_schedule() {
    let data = data();
    let samples = Samples::read(&data, Split::Train, 0);
    let stop = TrainerOptions::new()
        .decay(Decay::Cosine)
        .warmup_steps(2)
        .decay_steps(10)
        .lr(1e-2);
    let mut trainer = Trainer::new(&gpt(), &stop).unwrap();
    let batch = samples.batch();
    assert_eq!(trainer.step(&batch).unwrap().lr, 5e-3);
    poison(&mut trainer);
    let weights = trainer.weights_sha256().unwrap();
    assert_eq!(
        trainer.step(&batch).unwrap_err().kind(),
        ErrorKind::NonFinite
    );
    assert_eq!(trainer.weights_sha256().unwrap(), weights);
    let skip = stop.non_finite(NonFinite::Skip).loss_scale(1024.0);
    let mut trainer = Trainer::new(&gpt(), &skip).unwrap();
    poison(&mut trainer);
    let report = trainer.step(&batch).unwrap();
    assert!(report.skipped());
    assert_eq!((report.step, report.loss_scale), (1, 1024.0));
    assert_eq!(trainer.info().unwrap().updates, 0);
}

#[test]
fn cancel_from_another_thread() {
    let data = data();
    let samples = Samples::read(&data, Split::Train, 0);
    let mut trainer = Trainer::new(
        &gpt(),
        &TrainerOptions::new().stages(2).delay_us_max(200_000),
    )
    .unwrap();
    let before = trainer.weights_sha256().unwrap();
    let canceller = trainer.canceller();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            canceller.cancel().unwrap();
        });
        trainer.step(&samples.batch()).unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(trainer.weights_sha256().unwrap(), before);
    drop(trainer);
    canceller.cancel().unwrap(); // of a trainer that is gone
}

#[test]
fn generating() {
    let data = data();
    let mut trainer = Trainer::new(&gpt(), &TrainerOptions::new().lr(3e-3)).unwrap();
    train(&mut trainer, &data, 0, 20);
    let write = |sampling: &Sampling| -> Vec<i32> {
        let mut generator = Generator::new(&trainer, CONTEXT as i32).unwrap();
        generator.start(&[i32::from(b'a')]).unwrap();
        (0..40).map(|_| generator.draw(sampling).unwrap()).collect()
    };
    let sampling = Sampling::new()
        .temperature(0.9)
        .top_k(20)
        .top_p(0.95)
        .seed(5);
    assert_eq!(write(&sampling), write(&sampling));
    assert_ne!(write(&sampling), write(&sampling.clone().seed(6)));

    let mut generator = Generator::new(&trainer, CONTEXT as i32).unwrap();
    let mut logits = vec![0f32; 256];
    generator.start(&[i32::from(b'a')]).unwrap();
    generator.logits(&mut logits).unwrap();
    let best = (0..256)
        .max_by(|a, b| logits[*a].total_cmp(&logits[*b]))
        .unwrap() as i32;
    assert_eq!(
        generator.draw(&Sampling::new().temperature(0.0)).unwrap(),
        best
    );
    assert!(generator.logits(&mut logits[..7]).is_err());
    assert_eq!(
        generator.start(&[]).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn data_and_timelines() {
    let data = data();
    let info = data.info();
    assert_eq!(info.vocabulary, 256);
    assert!(info.train_windows > info.validation_windows && info.validation_windows > 0);
    let mut room = vec![0; CONTEXT + 1];
    let mut targets = room.clone();
    let error = data
        .read(Split::Train, 0, &mut room, &mut targets)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
    let missing = Data::open(&["/nowhere/at/all"], &DataOptions::new(4)).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
    assert!(missing.text().contains("/nowhere/at/all"), "{missing}");
    assert!(Data::open(&[text_file()], &DataOptions::new(0)).is_err());

    let dir = TempDir::new("training");
    let mut trainer =
        Trainer::new(&gpt(), &TrainerOptions::new().stages(2).trace_steps(2)).unwrap();
    train(&mut trainer, &data, 0, 2);
    let path = dir.path().join("trace.json");
    trainer.write_trace(&path).unwrap();
    assert!(rrfp::trace::summarize(&path).unwrap().contains("\"ranks\""));
    assert!(trainer.describe_hint().unwrap().contains("zb-h1"));
}
