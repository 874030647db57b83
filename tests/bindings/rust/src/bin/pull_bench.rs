// SPDX-License-Identifier: Apache-2.0
//! What a task costs without its work: one rank, one stage, empty tasks. Prints the median of some
//! repetitions as `pull: N ns per task`. ../../bench/pull_bench.c does the same in C.

use std::time::Instant;

use rrfp::{Graph, Hint, Next, Pipeline, PipelineOptions, Rank, Step};

const MICROBATCHES: i32 = 10_000;
const REPETITIONS: usize = 31;

/// Nanoseconds per task of one step.
fn time(rank: &mut Rank, step: &Step) -> rrfp::Result<f64> {
    rank.begin_step(step)?;
    let begin = Instant::now();
    let mut tasks = 0;
    loop {
        match rank.next(None)? {
            Next::Task(task) => {
                task.done()?;
                tasks += 1;
            }
            Next::Again => {}
            Next::StepDone => break,
        }
    }
    let ns = begin.elapsed().as_nanos() as f64;
    rank.end_step()?;
    Ok(ns / f64::from(tasks))
}

fn main() -> rrfp::Result<()> {
    let pipeline = Pipeline::new(&Graph::chain(1)?, &PipelineOptions::new())?;
    let mut rank = pipeline.rank(0)?;
    let step = Step::new(&Hint::named("1f1b")?, MICROBATCHES);
    time(&mut rank, &step)?; // warms up
    let times: rrfp::Result<Vec<f64>> = (0..REPETITIONS).map(|_| time(&mut rank, &step)).collect();
    let mut times = times?;
    times.sort_by(|a, b| a.total_cmp(b));
    println!("pull: {:.1} ns per task", times[REPETITIONS / 2]);
    Ok(())
}
