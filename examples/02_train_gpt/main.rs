// SPDX-License-Identifier: Apache-2.0
//! Trains a small language model on the bytes of a file or folder, over a pipeline of two stages,
//! and lets it write 200 characters.
//!
//!     train_gpt PATH [STEPS]
//!
//! Build: cargo run --release --manifest-path bindings/rust/Cargo.toml --example train_gpt

use rrfp::{
    Batch, Data, DataOptions, Generator, GptOptions, Model, Sampling, Split, Trainer,
    TrainerOptions,
};

const CONTEXT: usize = 64;
const BATCH: usize = 16;
const MICROBATCHES: usize = 8;

/// The tokens and targets of a batch.
struct Samples {
    tokens: Vec<i32>,
    targets: Vec<i32>,
}

impl Samples {
    fn read(data: &Data, split: Split, position: u64) -> rrfp::Result<Self> {
        let mut samples = Self {
            tokens: vec![0; BATCH * CONTEXT],
            targets: vec![0; BATCH * CONTEXT],
        };
        data.read(split, position, &mut samples.tokens, &mut samples.targets)?;
        Ok(samples)
    }

    fn batch(&self) -> rrfp::Result<Batch<'_>> {
        Batch::of_tokens(&self.tokens, &self.targets, CONTEXT, MICROBATCHES)
    }
}

fn train(trainer: &mut Trainer, data: &Data, steps: u64) -> rrfp::Result<()> {
    for step in 0..steps {
        let samples = Samples::read(data, Split::Train, step * BATCH as u64)?;
        let report = trainer.step(&samples.batch()?)?;
        if step % 10 == 0 || step == steps - 1 {
            println!("step {}: loss {:.4}", step + 1, report.loss);
        }
    }
    let samples = Samples::read(data, Split::Validation, 0)?;
    println!(
        "validation loss {:.4}",
        trainer.evaluate(&samples.batch()?)?.loss
    );
    Ok(())
}

fn generate(trainer: &Trainer) -> rrfp::Result<String> {
    let sampling = Sampling::new().temperature(0.8).seed(1);
    let mut generator = Generator::new(trainer, CONTEXT as i32)?;
    generator.start(&[i32::from(b'\n')])?;
    (0..200)
        .map(|_| {
            let byte = u8::try_from(generator.draw(&sampling)?).unwrap_or(b'?');
            Ok(if matches!(byte, b' '..=b'~' | b'\n') {
                char::from(byte)
            } else {
                '?'
            })
        })
        .collect()
}

fn run(path: &str, steps: u64) -> rrfp::Result<()> {
    let data = Data::open(&[path], &DataOptions::new(CONTEXT as i32))?;
    let gpt = GptOptions::new()
        .vocabulary(256)
        .context(CONTEXT as i32)
        .layers(2)
        .dim(64)
        .heads(4);
    let options = TrainerOptions::new().stages(2).lr(3e-3).clip_norm(1.0);
    let mut trainer = Trainer::new(&Model::gpt(&gpt)?, &options)?;
    train(&mut trainer, &data, steps)?;
    println!("{}", generate(&trainer)?);
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, steps) = match arguments.as_slice() {
        [path] => (path, Some(50)),
        [path, steps] => (path, steps.parse().ok().filter(|steps| *steps > 0)),
        _ => usage(),
    };
    if let Err(error) = run(path, steps.unwrap_or_else(|| usage())) {
        eprintln!("train_gpt: {error}");
        std::process::exit(1);
    }
}

fn usage() -> ! {
    eprintln!("usage: train_gpt PATH [STEPS]");
    std::process::exit(2);
}
