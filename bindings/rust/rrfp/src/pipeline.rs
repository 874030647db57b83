// SPDX-License-Identifier: Apache-2.0
use std::cell::Cell;
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::ffi::{self, c_message, c_path, call, check_length, set_flag, setters, sys, Log, Raw};
use crate::{Error, Graph, LogLevel, Order, Rank, Result, Wake};

/// How a pipeline works; zero means the default.
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    raw: Raw<sys::rrfp_pipeline_options>,
    rank_cap_slots: Vec<i64>,
    rank_cap_bytes: Vec<i64>,
    log: Option<Log>,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl PipelineOptions {
    pub fn new() -> Self {
        Self {
            raw: Raw(ffi::init(sys::rrfp_pipeline_options_init)),
            rank_cap_slots: Vec::new(),
            rank_cap_bytes: Vec::new(),
            log: None,
        }
    }

    /// Weight gradients of a stage are computed as they become ready. Without this they are
    /// computed in the order of the microbatches, so that sums come out the same to the bit.
    #[must_use]
    pub fn nondeterministic(mut self, on: bool) -> Self {
        set_flag(
            &mut self.raw.0.flags,
            sys::RRFP_PIPELINE_NONDETERMINISTIC,
            on,
        );
        self
    }

    setters! {
        order: Order as i32,
        wake: Wake as i32,
        /// Activations that a rank may hold at once: one for each (stage, microbatch).
        cap_slots: i64,
        /// The same in the bytes declared for them.
        cap_bytes: i64,
        /// Forward messages of one edge that may wait for their consumer. Ready order only.
        credits: i32,
        /// A ready task may wait for a better one that is announced to arrive within this share of
        /// its predicted duration, in thousandths.
        hold_permille: i32,
        /// Messages that may lie in a rank's mailbox; more wait at their sender.
        mailbox_capacity: u32,
        /// Keeps the timeline of the last so many steps.
        trace_steps: i32,
    }

    /// `cap_slots` of each rank; an entry of 0 falls back to the common one.
    #[must_use]
    pub fn rank_cap_slots(mut self, caps: &[i64]) -> Self {
        self.rank_cap_slots = caps.to_vec();
        self
    }

    /// `cap_bytes` of each rank; an entry of 0 falls back to the common one.
    #[must_use]
    pub fn rank_cap_bytes(mut self, caps: &[i64]) -> Self {
        self.rank_cap_bytes = caps.to_vec();
        self
    }

    /// The step fails when no task finishes on any rank for this long; `None` = never. 10 minutes,
    /// unless said otherwise.
    #[must_use]
    pub fn watchdog(mut self, limit: Option<Duration>) -> Self {
        self.raw.0.watchdog_ms = watchdog_ms(limit);
        self
    }

    /// Gets the lines of the log, on the threads that called in. A panic in it is reported by the
    /// panic hook and goes no further.
    #[must_use]
    pub fn log(mut self, f: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.log = Some(Log::new(f));
        self
    }
}

/// At least one millisecond: 0 would mean the default.
pub(crate) fn watchdog_ms(limit: Option<Duration>) -> i64 {
    limit.map_or(-1, |limit| {
        i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).max(1)
    })
}

/// The ranks of one pipeline, as threads of this process.
///
/// It may move between threads, but is used by one at a time; [`Canceller`]s serve the others.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<rrfp::Pipeline>(); // cannot be shared between threads safely
/// ```
#[derive(Debug)]
pub struct Pipeline {
    shared: Arc<Shared>,
    not_sync: PhantomData<Cell<()>>,
}

impl Pipeline {
    /// Makes a pipeline. The graph is copied.
    pub fn new(graph: &Graph, options: &PipelineOptions) -> Result<Self> {
        let mut raw = options.raw.0;
        let ranks = usize::try_from(graph.ranks()).unwrap_or(0);
        if !options.rank_cap_slots.is_empty() {
            check_length("rank_cap_slots", options.rank_cap_slots.len(), ranks)?;
            raw.rank_cap_slots = options.rank_cap_slots.as_ptr();
        }
        if !options.rank_cap_bytes.is_empty() {
            check_length("rank_cap_bytes", options.rank_cap_bytes.len(), ranks)?;
            raw.rank_cap_bytes = options.rank_cap_bytes.as_ptr();
        }
        (raw.log, raw.log_user_data) = Log::raw(options.log.as_ref());
        // SAFETY: `raw` points into `options`; the log lives as long as the pipeline and its ranks.
        let handle = ffi::create(|out, error| unsafe {
            sys::rrfp_pipeline_create(graph.raw(), &raw, out, error)
        })?;
        let shared = Shared {
            raw: handle,
            stages: graph.stages(),
            seats: (0..ranks).map(|_| Seat(AtomicU8::new(FREE))).collect(),
            _log: options.log.clone(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            not_sync: PhantomData,
        })
    }

    /// Makes the handle of a rank; a rank has at most one.
    pub fn rank(&self, rank: i32) -> Result<Rank> {
        // SAFETY: the pipeline lives, and no other thread makes ranks of it.
        let raw = ffi::create(|out, error| unsafe {
            sys::rrfp_rank_create(self.shared.raw.as_ptr(), rank, out, error)
        })?;
        Ok(Rank::new(raw, rank, self.shared.clone()))
    }

    /// The handles of all ranks.
    pub fn ranks(&self) -> Result<Vec<Rank>> {
        (0..self.shared.seats.len() as i32)
            .map(|r| self.rank(r))
            .collect()
    }

    /// Ends steps from other threads.
    pub fn canceller(&self) -> Canceller {
        Canceller::new(self.shared.clone())
    }

    /// See [`Canceller::cancel`].
    pub fn cancel(&self, reason: &str) -> Result<()> {
        self.canceller().cancel(reason)
    }

    /// After a failed step: forgets it, with all messages on their way, so that a new step can
    /// begin.
    ///
    /// Fails with [`ErrorKind::Busy`](crate::ErrorKind::Busy) while a rank waits for a task or a
    /// task is in the hands of its thread, since what that has borrowed goes away.
    pub fn reset(&self) -> Result<()> {
        let seats = self.shared.take_all_seats()?;
        // SAFETY: the pipeline lives, and no task borrows from the engine.
        let result =
            call(|error| unsafe { sys::rrfp_pipeline_reset(self.shared.raw.as_ptr(), error) });
        drop(seats);
        result.map(|_| ())
    }

    /// See [`Canceller::write_trace`].
    pub fn write_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        self.canceller().write_trace(path)
    }

    /// See [`Canceller::report`].
    pub fn report(&self) -> Result<String> {
        self.canceller().report()
    }
}

/// What any thread may do with a [`Pipeline`], while others work on its ranks. It keeps the
/// pipeline.
#[derive(Clone, Debug)]
pub struct Canceller {
    shared: Arc<Shared>,
}

impl Canceller {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Fails the current step on every rank with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled); between steps, the next one. Only
    /// [`Pipeline::reset`] ends that state.
    pub fn cancel(&self, reason: &str) -> Result<()> {
        let reason = c_message(reason);
        // SAFETY (here and below): the pipeline lives, and any thread may call this.
        call(|error| unsafe {
            sys::rrfp_pipeline_cancel(self.shared.raw.as_ptr(), reason.as_ptr(), error)
        })?;
        Ok(())
    }

    /// Writes the timeline of the last steps
    /// ([`trace_steps`](PipelineOptions::trace_steps)) as a trace event file, which Perfetto opens
    /// and [`trace`](crate::trace) draws. Fails with [`ErrorKind::Busy`](crate::ErrorKind::Busy)
    /// while a rank is inside a call.
    pub fn write_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        call(|error| unsafe {
            sys::rrfp_pipeline_write_trace(self.shared.raw.as_ptr(), path.as_ptr(), error)
        })?;
        Ok(())
    }

    /// A text for people: for every rank the running task and its age, or what it waits for; ready
    /// tasks; memory held. After the watchdog has ended a step, the report of that moment.
    pub fn report(&self) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            sys::rrfp_pipeline_report(self.shared.raw.as_ptr(), buffer, capacity, size, error)
        })
    }
}

/// The handle of a pipeline: lives as long as the pipeline, a rank or a canceller.
#[derive(Debug)]
pub(crate) struct Shared {
    raw: NonNull<sys::rrfp_pipeline>,
    stages: i32,
    seats: Vec<Seat>,
    _log: Option<Log>,
}

// SAFETY: of what Canceller and Rank do with the handle, any thread may do any at any time; the
// rest is left to Pipeline, which is not Sync.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

/// Who is at work with the memory of a rank. Safe code could otherwise reset a pipeline while
/// another thread reads what its task has borrowed. On a cache line of its own, since every task
/// takes it.
#[derive(Debug)]
#[repr(align(64))]
struct Seat(AtomicU8);

const FREE: u8 = 0;
/// The owner is inside `next`, or has a task.
const OWNER: u8 = 1;
/// The pipeline is being reset.
const RESET: u8 = 2;

impl Shared {
    pub(crate) fn stages(&self) -> i32 {
        self.stages
    }

    /// Called by the owner of a rank. That it has the seat already is the work of a task that was
    /// forgotten, and which nobody can use any more.
    #[inline]
    pub(crate) fn enter(&self, rank: i32) -> Result<()> {
        let seat = &self.seats[rank as usize].0;
        match seat.compare_exchange(FREE, OWNER, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) | Err(OWNER) => Ok(()),
            Err(_) => Err(busy("the pipeline is being reset", rank)),
        }
    }

    #[inline]
    pub(crate) fn leave(&self, rank: i32) {
        let seat = &self.seats[rank as usize].0;
        if seat.load(Ordering::Relaxed) == OWNER {
            seat.store(FREE, Ordering::Release);
        }
    }

    fn take_all_seats(&self) -> Result<TakenSeats<'_>> {
        let mut taken = TakenSeats {
            seats: &self.seats,
            count: 0,
        };
        for (r, seat) in self.seats.iter().enumerate() {
            let free = seat
                .0
                .compare_exchange(FREE, RESET, Ordering::Acquire, Ordering::Relaxed);
            if free.is_err() {
                let text = "a task of the rank, or a wait for one, has not ended";
                return Err(busy(text, r as i32));
            }
            taken.count += 1;
        }
        Ok(taken)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this was the last user.
        unsafe { sys::rrfp_pipeline_destroy(self.raw.as_ptr()) }
    }
}

/// Seats of the first `count` ranks, free again when dropped.
struct TakenSeats<'a> {
    seats: &'a [Seat],
    count: usize,
}

impl Drop for TakenSeats<'_> {
    fn drop(&mut self) {
        for seat in &self.seats[..self.count] {
            seat.0.store(FREE, Ordering::Release);
        }
    }
}

#[cold]
fn busy(why: &'static str, rank: i32) -> Error {
    Error::new(sys::RRFP_ERR_BUSY, why).on_rank(rank)
}
