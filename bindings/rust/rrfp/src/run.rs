// SPDX-License-Identifier: Apache-2.0
//! Steps with the code of the stages as a closure.

use std::any::Any;
use std::fmt;
use std::mem::forget;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::thread;

use crate::ffi::sys;
use crate::{Error, Next, Rank, Result, Step, StepReport, Task};

/// Why stage code failed: a text for people and a code for programs. Everything that can be
/// displayed turns into one with `?`, with code 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageError {
    code: i32,
    text: String,
}

impl StageError {
    /// `code` comes back as [`Error::user_code`](crate::Error::user_code) on every rank.
    pub fn new(code: i32, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

// StageError itself is not Display, so this does not overlap with From<T> for T.
impl<E: fmt::Display> From<E> for StageError {
    fn from(error: E) -> Self {
        Self {
            code: 0,
            text: error.to_string(),
        }
    }
}

impl Rank {
    /// One step on this rank: begins it, calls `compute` for each task, ends it.
    ///
    /// A task is done when `compute` gives `Ok`, and failed when it gives an error or panics: the
    /// step then fails on every rank with the text of the error or of the panic. After an error,
    /// [`Pipeline::reset`](crate::Pipeline::reset) makes the pipeline ready for a new step. A step
    /// that could not begin here is cancelled, since the other ranks would wait for this one.
    pub fn run_step<F>(&mut self, step: &Step, mut compute: F) -> Result<StepReport>
    where
        F: FnMut(&Task<'_>) -> std::result::Result<(), StageError>,
    {
        if let Err(error) = self.begin_step(step) {
            let reason = format!("rank {} could not begin the step: {error}", self.index());
            // It can only fail where there is nothing to cancel any more.
            let _ = self.canceller().cancel(&reason);
            return Err(error);
        }
        let result = self.run_tasks(&mut compute);
        let report = self.end_step(); // after a failure it gives the same one, if there is a step
        result.and(report)
    }

    fn run_tasks<F>(&mut self, compute: &mut F) -> Result<()>
    where
        F: FnMut(&Task<'_>) -> std::result::Result<(), StageError>,
    {
        loop {
            let task = match self.next(None)? {
                Next::Task(task) => task,
                Next::Again => continue, // woken
                Next::StepDone => return Ok(()),
            };
            match catch_unwind(AssertUnwindSafe(|| compute(&task))) {
                // If it fails, so does the step, and the next call says why.
                Ok(Ok(())) => drop(task.done()),
                Ok(Err(error)) => task.fail(error.code, &error.text),
                Err(payload) => {
                    task.fail(0, panic_text(payload.as_ref()));
                    forget(payload); // whose drop might panic again
                }
            }
        }
    }
}

/// One step on all these ranks, a thread for each: what [`Rank::run_step`] gives for each rank, in
/// their order.
pub fn run_step<F>(ranks: &mut [Rank], step: &Step, compute: F) -> Vec<Result<StepReport>>
where
    F: Fn(&Task<'_>) -> std::result::Result<(), StageError> + Sync,
{
    let compute = &compute;
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(ranks.len());
        for rank in ranks {
            let canceller = rank.canceller();
            let name = format!("rrfp rank {}", rank.index());
            let run = move || rank.run_step(step, compute);
            let thread = thread::Builder::new().name(name).spawn_scoped(scope, run);
            threads.push(thread.map_err(|error| {
                let text = format!("cannot start a thread for a rank: {error}");
                let _ = canceller.cancel(&text); // or the other ranks would wait for this one
                Error::new(sys::RRFP_ERR_NO_MEMORY, text)
            }));
        }
        let join =
            |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic gets out");
        threads
            .into_iter()
            .map(|thread| thread.and_then(join))
            .collect()
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "stage code panicked"
    }
}
