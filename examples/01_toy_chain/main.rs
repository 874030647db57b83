// SPDX-License-Identifier: Apache-2.0
//! The smallest pipeline: a chain of four stages, one on each of four ranks (threads). Stage s
//! multiplies by w\[s\], the loss of a microbatch is what the last stage gives, the loss of the
//! step is the mean. Each rank pulls tasks and computes them here, in plain Rust.
//!
//!     toy_chain [HINT]     gpipe, 1f1b (default), bf, bfw or zb-h1; the result is the same
//!
//! Build: cargo run --manifest-path bindings/rust/Cargo.toml --example toy_chain

use std::sync::Mutex;

use rrfp::{
    run_step, Graph, Hint, Pipeline, PipelineOptions, StageError, Step, Task, TaskKind, Tensor,
};

const W: [f32; 4] = [2.0, 3.0, 5.0, 7.0];
const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

/// What the ranks find out. Each writes only what belongs to its stage.
#[derive(Default)]
struct Results {
    losses: [f32; X.len()],
    dw: [f32; W.len()],
    dx: [f32; X.len()],
}

/// What arrived along an edge; edge e goes from stage e to stage e + 1.
fn get(task: &Task<'_>, edge: i32) -> Result<f32, StageError> {
    let message = task.input(edge)?.ok_or("nothing came along the edge")?;
    Ok(message[0].item()?)
}

fn compute(task: &Task<'_>, results: &Mutex<Results>) -> Result<(), StageError> {
    let (stage, m) = (task.stage(), task.microbatch() as usize);
    let s = stage as usize;
    let last = s == W.len() - 1;

    let input = if s > 0 { get(task, stage - 1)? } else { X[m] };
    if task.kind() == TaskKind::Forward {
        let output = W[s] * input;
        if last {
            results.lock().unwrap().losses[m] = output;
        } else {
            let y = [output];
            task.put(stage, &[Tensor::from_slice(&y, &[])?.wants_gradient(true)])?;
        }
        return Ok(());
    }
    // The gradient of the mean, for the last stage.
    let gradient = if last {
        1.0 / X.len() as f32
    } else {
        get(task, stage)?
    };
    if task.kind().gives_weight_gradient() {
        results.lock().unwrap().dw[s] += input * gradient;
    }
    if task.kind().gives_input_gradient() {
        let to_input = W[s] * gradient;
        if s > 0 {
            task.put_copy(stage - 1, &[to_input], &[])?;
        } else {
            results.lock().unwrap().dx[m] = to_input;
        }
    }
    Ok(())
}

fn main() -> rrfp::Result<()> {
    let name = std::env::args().nth(1);
    let hint = Hint::named(name.as_deref().unwrap_or("1f1b"))?;
    let graph = Graph::chain(W.len() as i32)?;
    let pipeline = Pipeline::new(&graph, &PipelineOptions::new())?;
    let mut ranks = pipeline.ranks()?;

    let results = Mutex::new(Results::default());
    let step = Step::new(&hint, X.len() as i32);
    let reports = run_step(&mut ranks, &step, |task| compute(task, &results));
    let reports = reports.into_iter().collect::<rrfp::Result<Vec<_>>>()?;

    let results = results.into_inner().unwrap();
    println!(
        "loss {}",
        results.losses.iter().sum::<f32>() / X.len() as f32
    );
    for (s, dw) in results.dw.iter().enumerate() {
        println!("dw{s} {dw}");
    }
    for (m, dx) in results.dx.iter().enumerate() {
        println!("dx{m} {dx}");
    }
    for report in reports {
        let (rank, tasks, held) = (report.rank, report.tasks, report.peak_slots);
        println!("rank {rank}: {tasks} tasks, at most {held} activations held");
    }
    Ok(())
}
