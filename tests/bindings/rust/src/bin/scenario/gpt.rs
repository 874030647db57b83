// SPDX-License-Identifier: Apache-2.0
//! The built-in language model and trainer on the bytes of a file.

use std::error::Error;

use rrfp::{Batch, Data, DataOptions, GptOptions, Hint, Model, SaveOptions, Split, Trainer};
use rrfp::{TrainReport, TrainerOptions};

use crate::file::Keys;

/// How samples become batches.
struct Feed {
    data: Data,
    context: usize,
    batch: usize,
    microbatches: usize,
}

impl Feed {
    /// Lets `use_batch` have the samples from `position` on.
    fn with(
        &self,
        split: Split,
        position: u64,
        use_batch: impl FnOnce(&Batch<'_>) -> rrfp::Result<TrainReport>,
    ) -> rrfp::Result<TrainReport> {
        let mut tokens = vec![0; self.batch * self.context];
        let mut targets = tokens.clone();
        self.data.read(split, position, &mut tokens, &mut targets)?;
        use_batch(&Batch::of_tokens(
            &tokens,
            &targets,
            self.context,
            self.microbatches,
        )?)
    }
}

pub fn run(mut keys: Keys) -> Result<(), Box<dyn Error>> {
    let path = keys.text("data")?;
    let context: i32 = keys.number("context")?;
    let gpt = GptOptions::new()
        .vocabulary(256)
        .context(context)
        .layers(keys.number("layers")?)
        .dim(keys.number("dim")?)
        .heads(keys.number("heads")?)
        .dropout(
            keys.optional("dropout")
                .map_or(Ok(0.0), |text| keys.parse("dropout", &text))?,
        );
    let stages = keys.number("stages")?;
    let options = TrainerOptions::new()
        .stages(stages)
        .ranks(stages)
        .lr(keys.number("lr")?);
    let mut options = options.seed(keys.number("seed")?);
    if let Some(name) = keys.optional("hint") {
        options = options.hint(&Hint::named(&name)?);
    }
    let feed = Feed {
        data: Data::open(&[keys.file(&path)], &DataOptions::new(context))?,
        context: context as usize,
        batch: keys.number("batch")?,
        microbatches: keys.number("microbatches")?,
    };
    let steps: u64 = keys.number("steps")?;
    let (load, save) = (keys.optional("load"), keys.optional("save"));
    keys.end()?;

    let mut trainer = Trainer::new(&Model::gpt(&gpt)?, &options)?;
    if let Some(name) = load {
        trainer.load(keys.file(&name))?;
    }
    let position = |step: u64| step * feed.batch as u64;
    for step in trainer.info()?.steps as u64..steps {
        let report = feed.with(Split::Train, position(step), |batch| trainer.step(batch))?;
        println!("loss {} {:016x}", report.step, report.loss.to_bits());
    }
    let report = feed.with(Split::Validation, 0, |batch| trainer.evaluate(batch))?;
    println!("validation {:016x}", report.loss.to_bits());
    println!("weights {}", trainer.weights_sha256()?);
    if let Some(name) = save {
        let options = SaveOptions {
            position: position(steps),
            ..SaveOptions::default()
        };
        trainer.save(keys.file(&name), &options)?;
    }
    Ok(())
}
