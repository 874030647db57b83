// SPDX-License-Identifier: Apache-2.0
//! The built-in vision-language model on a manifest, in stages that are placed by branch.

use std::error::Error;

use rrfp::{read_picture, Generator, GptOptions, Grouping, Hint, Model, Samples, SamplesOptions};
use rrfp::{Sampling, Split, Trainer, TrainerOptions, VisionOptions, SAMPLES_VOCABULARY};

use crate::file::Keys;

fn joined<T: ToString>(items: &[T]) -> String {
    let words: Vec<_> = items.iter().map(T::to_string).collect();
    words.join(" ")
}

/// How many samples make a step, and how they are cut.
struct Sizes {
    batch: i32,
    microbatches: i32,
    steps: u64,
    caption: usize,
}

fn train(trainer: &mut Trainer, samples: &mut Samples, sizes: &Sizes) -> rrfp::Result<()> {
    let (batch, microbatches) = (sizes.batch, sizes.microbatches);
    for step in 0..sizes.steps {
        let position = step * batch as u64;
        let report = trainer.step(&samples.read(Split::Train, position, batch, microbatches)?)?;
        println!("loss {} {:016x}", report.step, report.loss.to_bits());
    }
    for (stage, report) in trainer.stage_reports()?.iter().enumerate() {
        println!(
            "stage {stage} {} {} {} {} {}",
            report.rank, report.first_block, report.last_block, report.branch, report.microbatches
        );
    }
    let report = trainer.evaluate(&samples.read(Split::Validation, 0, batch, microbatches)?)?;
    println!("validation {:016x}", report.loss.to_bits());
    let bits = |loss: &f64| format!("{:016x}", loss.to_bits());
    let losses: Vec<_> = trainer.losses()?.iter().map(bits).collect();
    println!("losses {}", losses.join(" "));
    println!("weights {}", trainer.weights_sha256()?);
    Ok(())
}

fn caption(
    trainer: &Trainer,
    samples: &mut Samples,
    context: i32,
    count: usize,
) -> rrfp::Result<()> {
    let batch = samples.read_at(Split::Validation, &[0], 1)?;
    let mut generator = Generator::new(trainer, context)?;
    generator.start_inputs(batch.microbatch(0))?;
    let sampling = Sampling::new().temperature(0.0);
    let tokens: rrfp::Result<Vec<i32>> = (0..count).map(|_| generator.draw(&sampling)).collect();
    println!("caption {}", joined(&tokens?));
    Ok(())
}

pub fn run(mut keys: Keys) -> Result<(), Box<dyn Error>> {
    let (data, picture) = (keys.text("data")?, keys.text("picture")?);
    let context: i32 = keys.number("context")?;
    let (image_size, patch): (i32, i32) = (keys.number("image_size")?, keys.number("patch")?);
    let language = GptOptions::new()
        .vocabulary(SAMPLES_VOCABULARY)
        .context(context)
        .layers(keys.number("layers")?)
        .dim(keys.number("dim")?)
        .heads(keys.number("heads")?)
        .dropout(keys.number("dropout")?);
    let vision = VisionOptions::new()
        .image_size(image_size)
        .patch(patch)
        .layers(keys.number("vision_layers")?)
        .dim(keys.number("vision_dim")?)
        .heads(keys.number("vision_heads")?);
    let (stages, ranks): (i32, i32) = (keys.number("stages")?, keys.number("ranks")?);
    let options = TrainerOptions::new()
        .stages(stages)
        .ranks(ranks)
        .lr(keys.number("lr")?)
        .seed(keys.number("seed")?)
        .hint(&Hint::named(&keys.text("hint")?)?);
    let grouping = match keys.text("grouping")?.as_str() {
        "cost" => Grouping::Cost,
        _ => Grouping::Count,
    };
    let sizes = Sizes {
        batch: keys.number("batch")?,
        microbatches: keys.number("microbatches")?,
        steps: keys.number("steps")?,
        caption: keys.number("caption")?,
    };
    keys.end()?;

    let image_tokens = (image_size / patch).pow(2);
    let samples_options = SamplesOptions::new(image_size, image_tokens, context).grouping(grouping);
    let mut samples = Samples::open(keys.file(&data), &samples_options)?;
    let info = samples.info()?;
    println!(
        "samples {} {} {} {} {}",
        info.train_samples, info.validation_samples, info.images, info.images_max, info.tokens
    );
    let mut pixels = vec![0.0; (image_size * image_size * 3) as usize];
    read_picture(keys.file(&picture), image_size, 0, &mut pixels)?;
    let (first, last) = (pixels[0], pixels[pixels.len() - 1]);
    println!("picture {:08x} {:08x}", first.to_bits(), last.to_bits());

    let model = Model::vision_language(&language, &vision)?;
    let (first_blocks, stage_ranks) = model.place(stages, ranks, None)?;
    println!("blocks {}", joined(&first_blocks));
    println!("ranks {}", joined(&stage_ranks));
    let options = options
        .first_blocks(&first_blocks)
        .stage_ranks(&stage_ranks);
    let mut trainer = Trainer::new(&model, &options)?;
    train(&mut trainer, &mut samples, &sizes)?;
    caption(&trainer, &mut samples, context, sizes.caption)?;
    Ok(())
}
