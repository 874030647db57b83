// SPDX-License-Identifier: Apache-2.0
//! Trains a small vision-language model to name the bright quarter of random pictures, over a
//! pipeline of four stages on two ranks. Stages follow the branches of the model, so that the
//! encoder has nothing to do for a microbatch without pictures.
//!
//!     vision_language [STEPS]
//!
//! Build: cargo run --release --manifest-path bindings/rust/Cargo.toml --example vision_language

use rrfp::VisionOptions;
use rrfp::{Batch, Generator, GptOptions, Model, Sampling, Tensor, Trainer, TrainerOptions};

const SIDE: usize = 8;
const PATCH: usize = 4;
const ROWS: usize = 4;
const MICROBATCHES: usize = 4;
const STAGES: i32 = 4;
const RANKS: i32 = 2;
// A sample is the rows of a picture, or some times a letter, and then the letter and the end.
const SAMPLES: usize = 4;
const LENGTH: usize = ROWS + 2;
const LETTERS: i32 = 4;
const PICTURE: i32 = 4;
const END: i32 = 5;
const VOCABULARY: i32 = 6;
const PIXELS: usize = SIDE * SIDE * 3;

/// The same numbers in every language.
struct Random(u64);

impl Random {
    fn draw(&mut self, most: i32) -> i32 {
        let product = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = product.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i32 % most
    }
}

/// Tokens, targets, segments, positions and sources, and the pictures.
struct Microbatch {
    lists: [Vec<i32>; 5],
    images: Vec<f32>,
}

impl Microbatch {
    fn new(random: &mut Random, pictures: bool) -> Self {
        let mut made = Self {
            lists: Default::default(),
            images: Vec::new(),
        };
        for sample in 0..SAMPLES {
            let letter = random.draw(LETTERS);
            if pictures {
                made.add_picture(random, letter);
            }
            for p in 0..LENGTH {
                let row = pictures && p < ROWS;
                let (token, source) = match p {
                    _ if row => (PICTURE, (sample * ROWS + p) as i32),
                    _ if p < LENGTH - 1 => (letter, -1),
                    _ => (END, -1),
                };
                let target = match p {
                    _ if p == LENGTH - 1 || (row && p < ROWS - 1) => -100,
                    _ if p == LENGTH - 2 => END,
                    _ => letter,
                };
                let values = [token, target, sample as i32, p as i32, source];
                for (list, value) in made.lists.iter_mut().zip(values) {
                    list.push(value);
                }
            }
        }
        made
    }

    fn add_picture(&mut self, random: &mut Random, letter: i32) {
        for i in 0..PIXELS {
            let (y, x) = (i / 3 / SIDE, i / 3 % SIDE);
            let bright = y / PATCH * 2 + x / PATCH == letter as usize;
            let value = random.draw(100) - if bright { 0 } else { 100 };
            self.images.push(value as f32 / 100.0);
        }
    }

    /// The first `count` tokens and some pictures as the inputs of the model.
    fn inputs<'a>(&'a self, count: usize, images: &'a [f32]) -> rrfp::Result<Vec<Tensor<'a>>> {
        let mut inputs = Vec::new();
        for list in &self.lists {
            inputs.push(Tensor::from_slice(&list[..count], &[1, count as i64])?);
        }
        let (pictures, side) = ((images.len() / PIXELS) as i64, SIDE as i64);
        inputs.push(Tensor::from_slice(images, &[pictures, side, side, 3])?);
        Ok(inputs)
    }
}

fn train(trainer: &mut Trainer, random: &mut Random, steps: i32) -> rrfp::Result<()> {
    for step in 1..=steps {
        // The last microbatch is text.
        let data: Vec<_> = (0..MICROBATCHES)
            .map(|m| Microbatch::new(random, m < MICROBATCHES - 1))
            .collect();
        let mut batch = Batch::new();
        for microbatch in &data {
            batch.push(&microbatch.inputs(SAMPLES * LENGTH, &microbatch.images)?);
        }
        let report = trainer.step(&batch)?;
        if step % 20 == 1 || step == steps {
            println!("step {step}: loss {:.4}", report.loss);
        }
    }
    for (s, stage) in trainer.stage_reports()?.iter().enumerate() {
        println!(
            "stage {s} on rank {}: blocks {} to {} of branch {}, {} microbatches",
            stage.rank, stage.first_block, stage.last_block, stage.branch, stage.microbatches
        );
    }
    Ok(())
}

/// What the model says of new pictures.
fn name_pictures(trainer: &Trainer, random: &mut Random) -> rrfp::Result<()> {
    let letter = |token: i32| char::from(b'a' + token as u8);
    let data = Microbatch::new(random, true);
    let mut generator = Generator::new(trainer, LENGTH as i32)?;
    for (k, picture) in data.images.chunks(PIXELS).enumerate() {
        // All samples begin alike: the rows of picture 0.
        generator.start_inputs(&data.inputs(ROWS, picture)?)?;
        let token = generator.draw(&Sampling::new().temperature(0.0))?;
        let truth = letter(data.lists[0][k * LENGTH + ROWS]);
        println!("picture of {truth}: {}", letter(token));
    }
    Ok(())
}

fn run(steps: i32) -> rrfp::Result<()> {
    let language = GptOptions::new().vocabulary(VOCABULARY);
    let language = language.context(LENGTH as i32).layers(2).dim(16).heads(2);
    let vision = VisionOptions::new().image_size(SIDE as i32);
    let vision = vision.patch(PATCH as i32).layers(1).dim(16).heads(2);
    let model = Model::vision_language(&language, &vision)?;
    let (first_blocks, stage_ranks) = model.place(STAGES, RANKS, None)?;
    let options = TrainerOptions::new()
        .stages(STAGES)
        .ranks(RANKS)
        .first_blocks(&first_blocks)
        .stage_ranks(&stage_ranks)
        .lr(1e-2);
    let mut trainer = Trainer::new(&model, &options)?;
    let mut random = Random(1);
    train(&mut trainer, &mut random, steps)?;
    name_pictures(&trainer, &mut random)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let steps = match arguments.as_slice() {
        [] => Some(100),
        [steps] => steps.parse().ok().filter(|steps| *steps > 0),
        _ => None,
    };
    let steps = steps.unwrap_or_else(|| {
        eprintln!("usage: vision_language [STEPS]");
        std::process::exit(2);
    });
    if let Err(error) = run(steps) {
        eprintln!("vision_language: {error}");
        std::process::exit(1);
    }
}
