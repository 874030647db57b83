// SPDX-License-Identifier: Apache-2.0
//! The toy chain: stage s multiplies by W\[s\], the loss of the step is the mean over the
//! microbatches.
#![allow(dead_code)] // no test uses all of it

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rrfp::{
    Graph, Hint, Pipeline, PipelineOptions, Rank, StageError, Step, Task, TaskKind, Tensor,
};

pub const W: [f32; 4] = [2.0, 3.0, 5.0, 7.0];
pub const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

#[derive(Debug, Default, PartialEq)]
pub struct Results {
    pub losses: [f32; 4],
    pub dw: [f32; 4],
    pub dx: [f32; 4],
}

/// 2 * 3 * 5 * 7 = 210 times the inputs, and the derivatives of their mean.
pub fn expected() -> Results {
    Results {
        losses: [210.0, 420.0, 630.0, 840.0],
        dw: [262.5, 175.0, 105.0, 75.0],
        dx: [52.5; 4],
    }
}

#[derive(Default)]
pub struct Chain {
    pub results: Mutex<Results>,
}

impl Chain {
    pub fn compute(&self, task: &Task<'_>) -> Result<(), StageError> {
        let get = |edge| -> Result<f32, StageError> {
            Ok(task.input(edge)?.ok_or("nothing came")?[0].item()?)
        };
        let (stage, s, m) = (
            task.stage(),
            task.stage() as usize,
            task.microbatch() as usize,
        );
        let input = if s > 0 { get(stage - 1)? } else { X[m] };
        if task.kind() == TaskKind::Forward {
            let y = W[s] * input;
            if s == 3 {
                assert!(task.is_loss());
                self.results.lock().unwrap().losses[m] = y;
            } else {
                task.put(
                    stage,
                    &[Tensor::from_slice(&[y], &[])?.wants_gradient(true)],
                )?;
            }
            return Ok(());
        }
        let gradient = if s < 3 { get(stage)? } else { 0.25 };
        if task.kind().gives_weight_gradient() {
            self.results.lock().unwrap().dw[s] += input * gradient;
        }
        if task.kind().gives_input_gradient() {
            let dx = W[s] * gradient;
            match s {
                0 => self.results.lock().unwrap().dx[m] = dx,
                _ => task.put_copy(stage - 1, &[dx], &[])?,
            }
        }
        Ok(())
    }

    pub fn take(&self) -> Results {
        std::mem::take(&mut *self.results.lock().unwrap())
    }
}

pub fn pipeline(stages: i32, options: &PipelineOptions) -> (Pipeline, Vec<Rank>) {
    let pipeline = Pipeline::new(&Graph::chain(stages).unwrap(), options).unwrap();
    let ranks = pipeline.ranks().unwrap();
    (pipeline, ranks)
}

pub fn step(hint: &str, microbatches: i32) -> Step {
    Step::new(&Hint::named(hint).unwrap(), microbatches)
}

/// What is left of the tensors that the ranks have made. A rank may end a step while others still
/// hold its tensors, so all go twice through a step without tasks: first they let go, then they
/// look.
pub fn live_bytes(ranks: &mut [Rank]) -> Vec<i64> {
    let nothing = step("bf", 1)
        .forward_only(true)
        .skip(&vec![true; ranks.len()]);
    let mut turn = || -> Vec<i64> {
        let results = rrfp::run_step(ranks, &nothing, |_| Ok(()));
        results
            .into_iter()
            .map(|result| result.unwrap().tensor_bytes_live)
            .collect()
    };
    turn();
    turn()
}

/// A folder that goes away.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rrfp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
