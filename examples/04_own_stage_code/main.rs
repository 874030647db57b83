// SPDX-License-Identifier: Apache-2.0
//! Stage code of one's own: an MLP cut into two stages, y = W2 tanh(W1 x), whose gradients are
//! written by hand. It learns sin(2 a + b) and a - b^3 by gradient descent on the mean of squared
//! errors. What to look at:
//!
//!   - activations live in engine memory and reach the next stage without a copy;
//!   - I (the gradient of what came in) and W (that of the weights) are separate tasks here; a
//!     stage keeps what its W needs by (stage, microbatch);
//!   - the sum over microbatches is the same to the bit whatever order the engine chooses.
//!
//!     own_stage_code [STEPS]     default 300
//!
//! Build: cargo run --release --manifest-path bindings/rust/Cargo.toml --example own_stage_code

use std::error::Error;
use std::sync::Mutex;

use rrfp::{run_step, Graph, Hint, Pipeline, PipelineOptions, StageError, Step, Task, TaskKind};

const INPUT: usize = 2;
const HIDDEN: usize = 16;
const OUTPUT: usize = 2;
const ROWS: usize = 8;
const MICROBATCHES: usize = 4;
const RATE: f32 = 0.2;
/// The edge from the first stage to the second, and the shape of what travels along it.
const EDGE: i32 = 0;
const SHAPE: [i64; 2] = [ROWS as i64, HIDDEN as i64];

/// So many numbers for each row of each microbatch.
type Rows<const N: usize> = [[[f32; N]; ROWS]; MICROBATCHES];

/// h = tanh(W1 x)
#[derive(Default)]
struct FirstStage {
    w: [[f32; INPUT]; HIDDEN],
    dw: [[f32; INPUT]; HIDDEN],
    x: Rows<INPUT>,
    /// d h / d (W1 x), kept from F to W.
    slope: Rows<HIDDEN>,
}

impl FirstStage {
    fn compute(&mut self, task: &Task<'_>) -> Result<(), StageError> {
        let m = task.microbatch() as usize;
        let rows = self.x[m].iter().zip(&mut self.slope[m]);
        if task.kind() == TaskKind::Forward {
            let mut h = task.alloc::<f32>(&SHAPE)?;
            for ((x, slope), h) in rows.zip(h.chunks_exact_mut(HIDDEN)) {
                for ((h, slope), w) in h.iter_mut().zip(slope).zip(&self.w) {
                    *h = dot(w, x).tanh();
                    *slope = 1.0 - *h * *h;
                }
            }
            task.put(EDGE, &[h.into_tensor().wants_gradient(true)])?;
        } else if task.kind().gives_weight_gradient() {
            // Nobody wants the gradient of x: I, if it comes, has nothing to do.
            let message = task.input(EDGE)?.ok_or("no gradient")?;
            let dh: &[f32] = message[0].as_slice()?;
            for ((x, slope), dh) in rows.zip(dh.chunks_exact(HIDDEN)) {
                for ((dw, slope), dh) in self.dw.iter_mut().zip(slope).zip(dh) {
                    add(dw, dh * *slope, x);
                }
            }
        }
        Ok(())
    }
}

/// y = W2 h and the loss
#[derive(Default)]
struct SecondStage {
    w: [[f32; HIDDEN]; OUTPUT],
    dw: [[f32; HIDDEN]; OUTPUT],
    target: Rows<OUTPUT>,
    /// d loss / d y, kept from F to W.
    residual: Rows<OUTPUT>,
    losses: [f64; MICROBATCHES],
}

impl SecondStage {
    fn compute(&mut self, task: &Task<'_>) -> Result<(), StageError> {
        let m = task.microbatch() as usize;
        let message = task.input(EDGE)?.ok_or("no activations")?;
        let h: &[f32] = message[0].as_slice()?;
        let rows = self.residual[m].iter_mut().zip(h.chunks_exact(HIDDEN));
        if task.kind() == TaskKind::Forward {
            self.losses[m] = 0.0;
            for ((residual, h), target) in rows.zip(&self.target[m]) {
                for ((residual, target), w) in residual.iter_mut().zip(target).zip(&self.w) {
                    let difference = dot(w, h) - target;
                    self.losses[m] += f64::from(difference * difference);
                    *residual = 2.0 * difference / (ROWS * MICROBATCHES) as f32;
                }
            }
            return Ok(());
        }
        if task.kind().gives_weight_gradient() {
            for (residual, h) in rows {
                for (dw, residual) in self.dw.iter_mut().zip(residual) {
                    add(dw, *residual, h);
                }
            }
        }
        if task.kind().gives_input_gradient() {
            let mut dh = task.alloc::<f32>(&SHAPE)?;
            for (residual, dh) in self.residual[m].iter().zip(dh.chunks_exact_mut(HIDDEN)) {
                for (residual, w) in residual.iter().zip(&self.w) {
                    add(dh, *residual, w);
                }
            }
            task.put(EDGE, &[dh.into_tensor()])?;
        }
        Ok(())
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// to += factor * what
fn add(to: &mut [f32], factor: f32, what: &[f32]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += factor * what;
    }
}

/// One step of gradient descent; the next gradient starts from 0.
fn update<const N: usize>(w: &mut [[f32; N]], dw: &mut [[f32; N]]) {
    for (w, dw) in w.iter_mut().zip(dw) {
        add(w, -RATE, dw);
        *dw = [0.0; N];
    }
}

/// Weights and samples, the same on every machine.
fn prepare() -> (FirstStage, SecondStage) {
    let mut state = 1u32;
    let mut draw = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0 // -1 .. 1
    };
    let (mut first, mut second) = (FirstStage::default(), SecondStage::default());
    for j in 0..HIDDEN {
        first.w[j] = [draw(), draw()];
        second.w.iter_mut().for_each(|w| w[j] = draw() / 4.0);
    }
    let rows = first.x.iter_mut().flatten();
    for (x, target) in rows.zip(second.target.iter_mut().flatten()) {
        let (a, b) = (draw(), draw());
        *x = [a, b];
        *target = [(2.0 * a + b).sin(), a - b * b * b];
    }
    (first, second)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let steps = match arguments.as_slice() {
        [] => Some(300),
        [steps] => steps.parse().ok().filter(|steps| *steps > 0),
        _ => None,
    };
    let Some(steps) = steps else {
        eprintln!("usage: own_stage_code [STEPS]");
        std::process::exit(2);
    };
    let pipeline = Pipeline::new(&Graph::chain(2)?, &PipelineOptions::new())?;
    let mut ranks = pipeline.ranks()?;
    let step = Step::new(&Hint::named("zb-h1")?, MICROBATCHES as i32);
    // One stage a rank, so that no lock is ever waited for.
    let (first, second) = prepare();
    let (first, second) = (Mutex::new(first), Mutex::new(second));
    for number in 1..=steps {
        for report in run_step(&mut ranks, &step, |task| match task.stage() {
            0 => first.lock().unwrap().compute(task),
            _ => second.lock().unwrap().compute(task),
        }) {
            report?;
        }
        let (first, second) = (&mut *first.lock().unwrap(), &mut *second.lock().unwrap());
        update(&mut first.w, &mut first.dw);
        update(&mut second.w, &mut second.dw);
        if number % 100 == 1 || number == steps {
            let loss = second.losses.iter().sum::<f64>() / (ROWS * MICROBATCHES) as f64;
            println!("step {number}: loss {loss:.6}");
        }
    }
    Ok(())
}
