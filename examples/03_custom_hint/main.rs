// SPDX-License-Identifier: Apache-2.0
//! A hint of one's own: a schedule as text, obeyed strictly on a chain of two stages. Prints the
//! order in which the tasks of each rank ran, which is the text again.
//!
//!     custom_hint [FILE]     schedule text of torch.distributed.pipelining; else one made by hand
//!
//! Build: cargo run --manifest-path bindings/rust/Cargo.toml --example custom_hint

use std::error::Error;
use std::sync::Mutex;

use rrfp::{
    run_step, Graph, Hint, Order, Pipeline, PipelineOptions, Stage, StageError, Step, Task,
};
use rrfp::{TaskKind, Tensor};

/// The first rank runs two forwards ahead; the second one computes weight gradients at the end.
const SCHEDULE: &str = "0F0,0F1,0F2,0I0,0W0,0I1,0W1,0I2,0W2\n1F0,1I0,1F1,1I1,1F2,1I2,1W0,1W1,1W2\n";

/// Stages that only pass numbers on.
fn compute(task: &Task<'_>, last: i32) -> Result<(), StageError> {
    let stage = task.stage();
    if task.kind() == TaskKind::Forward && stage < last {
        let y = [task.microbatch() as f32];
        task.put(stage, &[Tensor::from_slice(&y, &[])?.wants_gradient(true)])?;
    } else if task.kind().gives_input_gradient() && stage > 0 {
        task.put_copy(stage - 1, &[1f32], &[])?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => SCHEDULE.to_string(),
    };
    let hint = Hint::from_text(&text)?;
    let info = hint.info()?;
    let note = hint.note()?;
    if !note.is_empty() {
        println!("note: {note}");
    }

    // A chain of as many stages as the text names, placed as the text says.
    let mut graph = Graph::new(info.ranks)?;
    let last = info.stages - 1;
    for s in 0..info.stages {
        graph.add_stage(&Stage::new().loss(s == last))?;
        if s > 0 {
            graph.add_edge(s - 1, s)?;
        }
    }
    graph.place_by_hint(&hint)?;
    hint.check(&graph, info.microbatches, Order::Strict)?; // says why, if it cannot be obeyed

    let pipeline = Pipeline::new(&graph, &PipelineOptions::new().order(Order::Strict))?;
    let mut ranks = pipeline.ranks()?;
    let orders: Vec<_> = ranks.iter().map(|_| Mutex::new(Vec::new())).collect();
    let step = Step::new(&hint, info.microbatches);
    for report in run_step(&mut ranks, &step, |task| {
        orders[task.rank() as usize]
            .lock()
            .unwrap()
            .push(task.to_string());
        compute(task, last)
    }) {
        report?;
    }
    for order in orders {
        println!("{}", order.into_inner().unwrap().join(","));
    }
    Ok(())
}
