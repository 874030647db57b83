// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ffi::{self, area, call, check_length, pointer_or_null, report, sys};
use crate::pipeline::Shared;
use crate::{Canceller, Error, Hint, Order, Result, Task, TaskKind};

/// A step: all ranks must describe it alike, and begin the same steps in the same order.
#[derive(Clone, Debug)]
pub struct Step {
    hint: Hint,
    microbatches: i32,
    number: i64,
    order: Order,
    forward_only: bool,
    skip: Vec<u8>,
    activation_bytes: Vec<i64>,
}

impl Step {
    /// A training step of so many microbatches.
    pub fn new(hint: &Hint, microbatches: i32) -> Self {
        Self {
            hint: hint.clone(),
            microbatches,
            number: 0,
            order: Order::Default,
            forward_only: false,
            skip: Vec::new(),
            activation_bytes: Vec::new(),
        }
    }

    /// The caller's number, for reports; the ranks must agree.
    #[must_use]
    pub fn number(mut self, number: i64) -> Self {
        self.number = number;
        self
    }

    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Forwards only: evaluation, inference.
    #[must_use]
    pub fn forward_only(mut self, on: bool) -> Self {
        self.forward_only = on;
        self
    }

    /// Stages x microbatches entries, one row per stage: true = the microbatch skips the stage.
    #[must_use]
    pub fn skip(mut self, skip: &[bool]) -> Self {
        self.skip = skip.iter().map(|skips| u8::from(*skips)).collect();
        self
    }

    /// Stages x microbatches sizes, one row per stage; they replace those of the graph.
    #[must_use]
    pub fn activation_bytes(mut self, bytes: &[i64]) -> Self {
        self.activation_bytes = bytes.to_vec();
        self
    }

    /// Borrows from `self`: valid as long as it is.
    fn raw(&self, stages: i32) -> Result<sys::rrfp_step_options> {
        let cells = area(stages, self.microbatches);
        if !self.skip.is_empty() {
            check_length("skip", self.skip.len(), cells)?;
        }
        if !self.activation_bytes.is_empty() {
            check_length("activation_bytes", self.activation_bytes.len(), cells)?;
        }
        let mut raw = ffi::init(sys::rrfp_step_options_init);
        raw.mode = if self.forward_only {
            sys::RRFP_MODE_FORWARD
        } else {
            sys::RRFP_MODE_TRAIN
        };
        raw.step = self.number;
        raw.microbatches = self.microbatches;
        raw.order = self.order as i32;
        raw.hint = self.hint.raw();
        raw.skip = pointer_or_null(&self.skip);
        raw.activation_bytes = pointer_or_null(&self.activation_bytes);
        Ok(raw)
    }
}

report! {
    /// How a rank spent a step. Times in nanoseconds; total = busy + waits + other.
    StepReport from rrfp_step_report, rrfp_step_report_init {
        rank: i32,
        step: i64,
        /// From `begin_step` to the end of the last task.
        total_ns: i64,
        /// Tasks were in the caller's hands.
        busy_ns: i64,
        /// Nothing was ready.
        wait_input_ns: i64,
        /// A forward was ready, but the cap did not admit it.
        wait_memory_ns: i64,
        /// A forward was ready, but its consumer was too far behind.
        wait_credit_ns: i64,
        /// A task was ready, but strict order or holding forbade it.
        wait_policy_ns: i64,
        /// The engine, and the caller between its calls.
        other_ns: i64,
        tasks: i64,
        messages_sent: i64,
        /// Activations held at once.
        peak_slots: i64,
        /// Of activations, as declared.
        peak_bytes: i64,
        /// Of tensors made by this rank.
        tensor_bytes_peak: i64,
        /// Of these, still referred to at the end of the step.
        tensor_bytes_live: i64,
    }
}

/// What [`Rank::next`] found.
#[derive(Debug)]
pub enum Next<'r> {
    /// A task whose inputs are here.
    Task(Task<'r>),
    /// Nothing yet: the time-out passed, or the rank was woken.
    Again,
    /// Every task of this rank is done.
    StepDone,
}

/// One rank of a pipeline. It may move to any thread, and is used by one at a time:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<rrfp::Rank>(); // cannot be shared between threads safely
/// ```
///
/// Dropped in the middle of a step, it fails the step for all.
pub struct Rank {
    raw: NonNull<sys::rrfp_rank>,
    index: i32,
    pipeline: Arc<Shared>,
    waker: Arc<Mutex<Handle>>,
}

// SAFETY: a rank is bound to no thread. Not Sync: one thread at a time may use it.
unsafe impl Send for Rank {}

impl Rank {
    pub(crate) fn new(raw: NonNull<sys::rrfp_rank>, index: i32, pipeline: Arc<Shared>) -> Self {
        let waker = Arc::new(Mutex::new(Handle(raw.as_ptr())));
        Self {
            raw,
            index,
            pipeline,
            waker,
        }
    }

    /// Its number.
    pub fn index(&self) -> i32 {
        self.index
    }

    /// Ends a wait of this rank from another thread.
    pub fn waker(&self) -> Waker {
        Waker {
            rank: self.waker.clone(),
        }
    }

    /// Ends the step of all ranks from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller::new(self.pipeline.clone())
    }

    /// Begins a step on this rank; does not wait for the others. If it fails on one rank only, the
    /// others wait for that rank until the step is cancelled.
    pub fn begin_step(&mut self, step: &Step) -> Result<()> {
        let raw = step.raw(self.pipeline.stages())?;
        // SAFETY: the rank is ours, and `raw` points into `step`.
        call(|error| unsafe { sys::rrfp_rank_begin_step(self.raw(), &raw, error) })?;
        Ok(())
    }

    /// Hands out the next task, or gives the failure of the step, wherever it arose.
    ///
    /// Waits for a task as long as `timeout` says: `None` = as long as it takes, zero = only looks.
    #[inline]
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Next<'_>> {
        let timeout_us = timeout.map_or(-1, to_us);
        let mut raw = EMPTY_TASK;
        self.pipeline.enter(self.index)?;
        // SAFETY: the rank is ours, the pointers are valid during the call.
        let result =
            call(|error| unsafe { sys::rrfp_rank_next(self.raw(), timeout_us, &mut raw, error) });
        if let Ok(sys::RRFP_OK) = result {
            if let Some(kind) = TaskKind::from_raw(raw.kind) {
                return Ok(Next::Task(Task::new(self, raw, kind)));
            }
            self.leave();
            return Err(unknown_kind(raw.kind));
        }
        self.leave();
        match result? {
            sys::RRFP_STEP_DONE => Ok(Next::StepDone),
            _ => Ok(Next::Again),
        }
    }

    /// Ends a step that is done on this rank; others may still be working. Also ends a failed step
    /// on this rank and then gives its failure; [`Pipeline::reset`](crate::Pipeline::reset) must
    /// follow.
    pub fn end_step(&mut self) -> Result<StepReport> {
        // SAFETY: the rank is ours, the pointers are valid during the call.
        StepReport::read(|out, error| unsafe { sys::rrfp_rank_end_step(self.raw(), out, error) })
    }

    pub(crate) fn raw(&self) -> *mut sys::rrfp_rank {
        self.raw.as_ptr()
    }

    /// The task that `next` gave is over.
    #[inline]
    pub(crate) fn leave(&self) {
        self.pipeline.leave(self.index);
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // Wakers that are left do nothing from here on, and a task that was forgotten is over.
        let mut handle = lock(&self.waker);
        handle.0 = ptr::null_mut();
        self.leave();
        // SAFETY: it is ours, no task borrows it, and wakers cannot get at it any more.
        unsafe { sys::rrfp_rank_destroy(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rank({})", self.index)
    }
}

/// Ends a wait of a [`Rank`] from any thread. It keeps nothing alive: once the rank is dropped it
/// does nothing.
#[derive(Clone)]
pub struct Waker {
    rank: Arc<Mutex<Handle>>,
}

impl Waker {
    /// Ends the current or the next wait inside [`Rank::next`], which then gives [`Next::Again`]. A
    /// task that is ready is handed out first.
    pub fn wake(&self) -> Result<()> {
        let handle = lock(&self.rank);
        if handle.0.is_null() {
            return Ok(());
        }
        // SAFETY: the rank is destroyed only while its owner holds this lock.
        call(|error| unsafe { sys::rrfp_rank_wake(handle.0, error) })?;
        Ok(())
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// The rank for its wakers, or null once it is gone.
struct Handle(*mut sys::rrfp_rank);

// SAFETY: used under a lock, and for nothing but rrfp_rank_wake, which any thread may call.
unsafe impl Send for Handle {}

fn lock(handle: &Mutex<Handle>) -> MutexGuard<'_, Handle> {
    handle.lock().unwrap_or_else(PoisonError::into_inner)
}

const EMPTY_TASK: sys::rrfp_task = sys::rrfp_task {
    struct_size: std::mem::size_of::<sys::rrfp_task>() as u32,
    flags: 0,
    ticket: 0,
    stage: -1,
    microbatch: -1,
    kind: -1,
    reserved: 0,
};

/// Rounded up, so that a short wait is one.
fn to_us(timeout: Duration) -> i64 {
    let us = (timeout.as_nanos() + 999) / 1000;
    i64::try_from(us).unwrap_or(i64::MAX)
}

#[cold]
fn unknown_kind(kind: i32) -> Error {
    Error::new(
        sys::RRFP_ERR_INTERNAL,
        format!("a task of kind {kind} is not known here"),
    )
}
