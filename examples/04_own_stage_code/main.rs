// SPDX-License-Identifier: Apache-2.0
//! Stage code of one's own: a small network with one hidden layer learns sin(x). Stage 0 is the
//! hidden layer, stage 1 the output layer with the loss; both are written out here, with their
//! gradients. Activations and gradients travel in engine memory, without a copy.
//!
//!     own_stage_code [STEPS]     default 400
//!
//! Build: cargo run --release --manifest-path bindings/rust/Cargo.toml --example own_stage_code

use std::sync::Mutex;

use rrfp::{run_step, Graph, Hint, Pipeline, PipelineOptions, StageError, Step, Task, TaskKind};

const HIDDEN: usize = 32;
const MICROBATCHES: usize = 8;
/// Points of a microbatch.
const POINTS: usize = 16;
const LEARNING_RATE: f32 = 0.05;
/// The edge from stage 0 to stage 1: a tensor [POINTS, HIDDEN].
const EDGE: i32 = 0;
const SHAPE: [i64; 2] = [POINTS as i64, HIDDEN as i64];

/// A layer's weights and what its tasks have added to their gradients. Each belongs to one stage.
struct Layer {
    weight: [f32; HIDDEN],
    bias: Vec<f32>,
    weight_gradient: [f32; HIDDEN],
    bias_gradient: Vec<f32>,
    loss: f32,
}

impl Layer {
    /// Weights spread over -reach .. reach.
    fn new(reach: f32, biases: usize) -> Self {
        let spread = |k: usize| reach * (2.0 * ((k * 7 + 3) % 16) as f32 / 15.0 - 1.0);
        let mut weight = [0.0; HIDDEN];
        weight
            .iter_mut()
            .enumerate()
            .for_each(|(k, w)| *w = spread(k));
        let bias = (0..biases).map(|k| spread(k * 5 + 1)).collect();
        Self {
            weight,
            bias,
            weight_gradient: [0.0; HIDDEN],
            bias_gradient: vec![0.0; biases],
            loss: 0.0,
        }
    }

    fn update(&mut self) {
        let step = |value: &mut f32, gradient: &mut f32| {
            *value -= LEARNING_RATE * *gradient;
            *gradient = 0.0;
        };
        self.weight
            .iter_mut()
            .zip(&mut self.weight_gradient)
            .for_each(|(w, g)| step(w, g));
        self.bias
            .iter_mut()
            .zip(&mut self.bias_gradient)
            .for_each(|(b, g)| step(b, g));
        self.loss = 0.0;
    }
}

/// Point p of microbatch m, in -pi .. pi.
fn x(m: usize, p: usize) -> f32 {
    let k = p * MICROBATCHES + m;
    std::f32::consts::PI * (2.0 * k as f32 / (MICROBATCHES * POINTS - 1) as f32 - 1.0)
}

/// h = tanh(w x + b).
fn hidden_layer(task: &Task<'_>, layer: &mut Layer) -> Result<(), StageError> {
    let m = task.microbatch() as usize;
    if task.kind() == TaskKind::Forward {
        let mut h = task.alloc::<f32>(&SHAPE)?;
        for (p, row) in h.chunks_exact_mut(HIDDEN).enumerate() {
            for (k, h) in row.iter_mut().enumerate() {
                *h = (layer.weight[k] * x(m, p) + layer.bias[k]).tanh();
            }
        }
        task.put(EDGE, &[h.into_tensor().wants_gradient(true)])?;
        return Ok(());
    }
    // B or W: stage 0 has nothing before it, so the engine asks for no input gradient alone.
    let message = task.input(EDGE)?.ok_or("no gradient")?;
    let dh: &[f32] = message[0].as_slice()?;
    for (p, row) in dh.chunks_exact(HIDDEN).enumerate() {
        for (k, dh) in row.iter().enumerate() {
            let h = (layer.weight[k] * x(m, p) + layer.bias[k]).tanh();
            let gradient = dh * (1.0 - h * h);
            layer.weight_gradient[k] += gradient * x(m, p);
            layer.bias_gradient[k] += gradient;
        }
    }
    Ok(())
}

/// y = w . h + b; the loss is the mean of (y - sin x)^2 over all points of the step.
fn output_layer(task: &Task<'_>, layer: &mut Layer) -> Result<(), StageError> {
    let m = task.microbatch() as usize;
    let share = 1.0 / (MICROBATCHES * POINTS) as f32;
    let message = task.input(EDGE)?.ok_or("no activations")?;
    let h: &[f32] = message[0].as_slice()?;
    let rows = || h.chunks_exact(HIDDEN).enumerate();
    let error = |layer: &Layer, p: usize, row: &[f32]| {
        let y: f32 = layer.weight.iter().zip(row).map(|(w, h)| w * h).sum();
        y + layer.bias[0] - x(m, p).sin()
    };

    if task.kind() == TaskKind::Forward {
        layer.loss += rows()
            .map(|(p, row)| error(layer, p, row).powi(2))
            .sum::<f32>()
            * share;
        return Ok(());
    }
    if task.kind().gives_input_gradient() {
        let mut dh = task.alloc::<f32>(&SHAPE)?;
        for ((p, row), to) in rows().zip(dh.chunks_exact_mut(HIDDEN)) {
            let dy = 2.0 * share * error(layer, p, row);
            to.iter_mut()
                .zip(&layer.weight)
                .for_each(|(to, w)| *to = dy * w);
        }
        task.put(EDGE, &[dh.into_tensor()])?;
    }
    if task.kind().gives_weight_gradient() {
        for (p, row) in rows() {
            let dy = 2.0 * share * error(layer, p, row);
            layer
                .weight_gradient
                .iter_mut()
                .zip(row)
                .for_each(|(to, h)| *to += dy * h);
            layer.bias_gradient[0] += dy;
        }
    }
    Ok(())
}

fn main() -> rrfp::Result<()> {
    let steps = std::env::args()
        .nth(1)
        .and_then(|steps| steps.parse().ok())
        .unwrap_or(400);
    let pipeline = Pipeline::new(&Graph::chain(2)?, &PipelineOptions::new())?;
    let mut ranks = pipeline.ranks()?;
    // One stage a rank, so that no lock is ever waited for.
    let layers = [
        Mutex::new(Layer::new(2.0, HIDDEN)),
        Mutex::new(Layer::new(0.3, 1)),
    ];
    let hint = Hint::named("zb-h1")?;
    for number in 1..=steps {
        let step = Step::new(&hint, MICROBATCHES as i32).number(number);
        for report in run_step(&mut ranks, &step, |task| {
            let mut layer = layers[task.stage() as usize].lock().unwrap();
            match task.stage() {
                0 => hidden_layer(task, &mut layer),
                _ => output_layer(task, &mut layer),
            }
        }) {
            report?;
        }
        if number == 1 || number % 100 == 0 {
            println!("step {number}: loss {:.6}", layers[1].lock().unwrap().loss);
        }
        layers
            .iter()
            .for_each(|layer| layer.lock().unwrap().update());
    }
    Ok(())
}
