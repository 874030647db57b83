// SPDX-License-Identifier: Apache-2.0
//! The toy chain: stage s, on rank s, multiplies by weight s; the loss of the step is the mean.

use std::error::Error;
use std::sync::Mutex;

use rrfp::{run_step, Graph, Hint, Order, Pipeline, PipelineOptions, Rank, StageError, Step, Task};
use rrfp::{TaskKind, Tensor};

use crate::file::Keys;
use crate::number::g;

struct Failure {
    task: String,
    text: String,
}

struct Chain {
    weights: Vec<f32>,
    inputs: Vec<f32>,
    results: Mutex<Results>,
}

/// By stage or by microbatch; each stage writes its own.
struct Results {
    orders: Vec<Vec<String>>,
    losses: Vec<f32>,
    dw: Vec<f32>,
    dx: Vec<f32>,
}

impl Results {
    fn new(stages: usize, microbatches: usize) -> Self {
        Self {
            orders: vec![Vec::new(); stages],
            losses: vec![0.0; microbatches],
            dw: vec![0.0; stages],
            dx: vec![0.0; microbatches],
        }
    }
}

/// What arrived along an edge; edge e goes from stage e to stage e + 1.
fn get(task: &Task<'_>, edge: i32) -> Result<f32, StageError> {
    Ok(task.input(edge)?.ok_or("nothing came along the edge")?[0].item()?)
}

impl Chain {
    fn compute(&self, task: &Task<'_>) -> Result<(), StageError> {
        let (stage, s, m) = (
            task.stage(),
            task.stage() as usize,
            task.microbatch() as usize,
        );
        let last = s + 1 == self.weights.len();
        let results = || self.results.lock().unwrap();
        results().orders[s].push(task.to_string());

        let input = if s > 0 {
            get(task, stage - 1)?
        } else {
            self.inputs[m]
        };
        if task.kind() == TaskKind::Forward {
            let y = [self.weights[s] * input];
            if last {
                results().losses[m] = y[0];
            } else {
                task.put(stage, &[Tensor::from_slice(&y, &[])?.wants_gradient(true)])?;
            }
            return Ok(());
        }
        let gradient = if last {
            1.0 / self.inputs.len() as f32
        } else {
            get(task, stage)?
        };
        if task.kind().gives_weight_gradient() {
            results().dw[s] += input * gradient;
        }
        if task.kind().gives_input_gradient() {
            let dx = self.weights[s] * gradient;
            if s > 0 {
                task.put_copy(stage - 1, &[dx], &[])?;
            } else {
                results().dx[m] = dx;
            }
        }
        Ok(())
    }

    /// The first step: what each rank hears of the failure.
    fn fail(&self, ranks: &mut [Rank], step: &Step, failure: &Failure) -> Result<(), String> {
        let results = run_step(ranks, step, |task| {
            if task.to_string() == failure.task {
                return Err(failure.text.as_str().into());
            }
            self.compute(task)
        });
        for (r, result) in results.into_iter().enumerate() {
            let error = result.err().ok_or(format!("rank {r} did not fail"))?;
            let told = error.text().contains(&failure.text);
            let text = if told { &failure.text } else { error.text() };
            let (stage, m) = (
                error.stage().unwrap_or(-1),
                error.microbatch().unwrap_or(-1),
            );
            println!("failed {r} {} {stage} {m} {text}", error.status_name());
        }
        Ok(())
    }
}

fn line(name: &str, numbers: &[f32]) {
    let numbers: Vec<_> = numbers.iter().map(|number| g(f64::from(*number))).collect();
    println!("{name} {}", numbers.join(" "));
}

fn failure(keys: &Keys, text: &str) -> Result<Failure, Box<dyn Error>> {
    let mut words = text.splitn(3, char::is_whitespace);
    let mut next = || words.next().ok_or("fail needs STAGE MICROBATCH TEXT");
    let (stage, m) = (next()?, next()?);
    let (stage, m): (i32, i32) = (keys.parse("fail", stage)?, keys.parse("fail", m)?);
    Ok(Failure {
        task: format!("{stage}F{m}"),
        text: next()?.trim().to_string(),
    })
}

pub fn run(mut keys: Keys) -> Result<(), Box<dyn Error>> {
    let weights: Vec<f32> = keys.numbers("weights")?;
    let inputs: Vec<f32> = keys.numbers("inputs")?;
    let hint = match keys.optional("hint_file") {
        Some(name) => Hint::from_text(&std::fs::read_to_string(keys.file(&name))?)?,
        None => Hint::named(&keys.text("hint")?)?,
    };
    let strict = match keys.optional("order").as_deref() {
        None | Some("ready") => false,
        Some("strict") => true,
        Some(other) => return Err(format!("order is {other}; expected ready or strict").into()),
    };
    let failure = keys
        .optional("fail")
        .map(|text| failure(&keys, &text))
        .transpose()?;
    keys.end()?;

    let (stages, microbatches) = (weights.len(), inputs.len());
    let pipeline = Pipeline::new(&Graph::chain(stages as i32)?, &PipelineOptions::new())?;
    let mut ranks = pipeline.ranks()?;
    let order = if strict { Order::Strict } else { Order::Ready };
    let step = Step::new(&hint, microbatches as i32).order(order);
    let results = Mutex::new(Results::new(stages, microbatches));
    let mut chain = Chain {
        weights,
        inputs,
        results,
    };

    if let Some(failure) = failure {
        chain.fail(&mut ranks, &step, &failure)?;
        pipeline.reset()?;
        chain.results = Mutex::new(Results::new(stages, microbatches));
    }
    for result in run_step(&mut ranks, &step, |task| chain.compute(task)) {
        result?;
    }
    let results = chain.results.into_inner().unwrap();
    if strict {
        for (rank, order) in results.orders.iter().enumerate() {
            println!("order {rank} {}", order.join(" "));
        }
    }
    line(
        "loss",
        &[results.losses.iter().sum::<f32>() / microbatches as f32],
    );
    line("dw", &results.dw);
    line("dx", &results.dx);
    Ok(())
}
