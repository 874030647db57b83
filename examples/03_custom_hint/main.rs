// SPDX-License-Identifier: Apache-2.0
//! A schedule from a file, in the text form of torch.distributed.pipelining: one row per rank,
//! cells such as 2F3 (stage 2, forward of microbatch 3; F, B or I and W). A chain in which every
//! stage doubles what enters it runs by it, once as a ranking of what is ready and once obeyed to
//! the letter, and shows what each rank did.
//!
//!     custom_hint [FILE]     default: hint.csv beside this file
//!
//! `run_step` would give each rank a thread; here one thread goes round the ranks, to see the
//! rounds.
//!
//! Build: cargo run --manifest-path bindings/rust/Cargo.toml --example custom_hint

use std::error::Error;
use std::time::Duration;

use rrfp::{
    Graph, Hint, HintInfo, Next, Order, Pipeline, PipelineOptions, Stage, Step, Task, TaskKind,
    Tensor,
};

const DEFAULT_FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../examples/03_custom_hint/hint.csv"
);

/// A chain of all stages that the hint names, each on the rank in whose row it stands.
fn make_graph(hint: &Hint, info: &HintInfo) -> rrfp::Result<Graph> {
    let mut graph = Graph::new(info.ranks)?;
    for s in 0..info.stages {
        graph.add_stage(&Stage::new().loss(s == info.stages - 1))?;
        if s > 0 {
            graph.add_edge(s - 1, s)?;
        }
    }
    graph.place_by_hint(hint)?;
    Ok(graph)
}

/// Edge s leads from stage s to stage s + 1. Gives the loss of a microbatch in the last forward,
/// else 0.
fn compute(task: &Task<'_>, stages: i32) -> Result<f32, Box<dyn Error>> {
    if task.kind() == TaskKind::WeightGradient {
        return Ok(0.0); // there is no weight to train here
    }
    let s = task.stage();
    let forward = task.kind() == TaskKind::Forward;
    let (from, to) = if forward { (s - 1, s) } else { (s, s - 1) };
    let edges = 0..stages - 1;
    let value = if edges.contains(&from) {
        task.input(from)?.ok_or("nothing came along the edge")?[0].item()?
    } else if forward {
        (task.microbatch() + 1) as f32
    } else {
        1.0
    };
    let output = 2.0 * value;
    if edges.contains(&to) {
        let output = [output];
        let tensor = Tensor::from_slice(&output, &[])?;
        task.put(to, &[tensor.wants_gradient(forward)])?;
        return Ok(0.0);
    }
    Ok(if forward { output } else { 0.0 })
}

fn run(graph: &Graph, hint: &Hint, info: &HintInfo, order: Order) -> Result<(), Box<dyn Error>> {
    let pipeline = Pipeline::new(graph, &PipelineOptions::new().order(order))?;
    let mut ranks = pipeline.ranks()?;
    let step = Step::new(hint, info.microbatches);
    for rank in &mut ranks {
        rank.begin_step(&step)?;
    }
    let mut loss = 0.0;
    let (mut done, mut round) = (0, 0);
    while done < ranks.len() {
        // A round gives each rank one task if it has one ready.
        print!("  round {round:2}:");
        done = 0;
        for rank in &mut ranks {
            match rank.next(Some(Duration::ZERO))? {
                Next::Task(task) => {
                    print!("  {task}");
                    loss += compute(&task, info.stages)?;
                    task.done()?;
                }
                Next::Again => print!("  ---"),
                Next::StepDone => {
                    print!("  ---");
                    done += 1;
                }
            }
        }
        println!();
        round += 1;
    }
    println!("  sum of losses {loss}");
    for rank in &mut ranks {
        rank.end_step()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let text = std::fs::read_to_string(path.as_deref().unwrap_or(DEFAULT_FILE))?;
    let hint = Hint::from_text(&text)?;
    let info = hint.info()?;
    let graph = make_graph(&hint, &info)?;
    hint.check(&graph, info.microbatches, Order::Strict)?; // says why, if it cannot be obeyed
    println!("as a ranking");
    run(&graph, &hint, &info, Order::Ready)?;
    println!("obeyed");
    run(&graph, &hint, &info, Order::Strict)
}
