// SPDX-License-Identifier: Apache-2.0
use std::any::Any;
use std::ffi::{CStr, CString};
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::ffi::{self, c_enum, c_path, c_string, call, report, set_flag, setters, sys, Raw};
use crate::{Injection, Order, Result};

c_enum! {
    /// Whose arrivals the leader of a tensor-parallel group goes by.
    Readiness {
        /// Those of all members, which they report.
        All = RRFP_READINESS_ALL,
        /// Its own; the task starts when the others have their inputs too.
        Leader = RRFP_READINESS_LEADER,
    }
}

/// A workload and a way to run it.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    raw: Raw<sys::rrfp_simulation_options>,
    preset: Option<CString>,
    trace: Option<CString>,
    hint: Option<CString>,
}

impl SimulationOptions {
    fn new() -> Self {
        let raw = Raw(ffi::init(sys::rrfp_simulation_options_init));
        Self {
            raw,
            preset: None,
            trace: None,
            hint: None,
        }
    }

    /// A made workload by its name; see [`presets`].
    pub fn preset(name: &str) -> Result<Self> {
        Ok(Self {
            preset: Some(c_string(name, "preset")?),
            ..Self::new()
        })
    }

    /// The tasks of a timeline that was written by a pipeline, a trainer or a simulation: each of
    /// its steps is one seed, modulo their number.
    pub fn trace(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self {
            trace: Some(c_path(path)?),
            ..Self::new()
        })
    }

    /// A named schedule or policy ([`Hint::named`](crate::Hint::named)), `rf-d` or, unless said
    /// otherwise, `auto`, which simulates past steps and takes what is fastest.
    pub fn hint(mut self, name: &str) -> Result<Self> {
        self.hint = Some(c_string(name, "hint")?);
        Ok(self)
    }

    /// Weight gradients are computed as they become ready.
    #[must_use]
    pub fn nondeterministic(mut self, on: bool) -> Self {
        set_flag(
            &mut self.raw.0.flags,
            sys::RRFP_SIMULATION_NONDETERMINISTIC,
            on,
        );
        self
    }

    setters! {
        /// Strict and paired: with a named schedule that can be obeyed.
        order: Order as i32,
        /// Devices; a layout with two chunks cuts each in two. 0 = 16, or the trace's.
        stages: i32,
        /// Of each replica. 0 = 64, or the trace's.
        microbatches: i32,
        injection: Injection as i32,
        /// Memory of a device, as a multiple of what strict 1F1B takes; 0 = no limit.
        cap: f64,
        /// To copy the activations of a mean stage to the host; 0 = there is no host.
        offload_ms: f64,
        /// Ranks of each group; 0 = 1.
        tensor_parallel: i32,
        readiness: Readiness as i32,
        /// Replicas, with microbatches of their own; 0 = 1.
        data_parallel: i32,
        /// Auto: steps that it replays; 0 = 3, or 8 where links have slow episodes.
        history: i32,
        /// Between a decision and the start of its task.
        dispatch_ns: i64,
        /// An arrival becomes known so much later.
        report_ns: i64,
    }
}

/// The names of all presets.
pub fn presets() -> Vec<&'static str> {
    let mut names = Vec::new();
    loop {
        // SAFETY: any index is fine, the names are static memory.
        let name = unsafe { sys::rrfp_preset_name(names.len() as i32) };
        if name.is_null() {
            return names;
        }
        // SAFETY: see above.
        names.push(unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default());
    }
}

report! {
    /// A step in virtual time. Sums are over the ranks of the slowest replica.
    SimulatedStep from rrfp_simulated_step, rrfp_simulated_step_init {
        ranks: i32,
        stages: i32,
        /// Of each replica.
        microbatches: i32,
        makespan_ns: i64,
        /// No order in a V layout is faster; 0 for a trace.
        bound_ns: i64,
        /// Of the rank that held most; a microbatch of size 1 holds 10^6.
        peak_bytes: i64,
        /// The same of strict 1F1B on this step.
        native_bytes: i64,
        tasks: i64,
        messages: i64,
        offloads: i64,
        busy_ns: i64,
        wait_input_ns: i64,
        wait_memory_ns: i64,
        wait_credit_ns: i64,
        wait_policy_ns: i64,
        wait_group_ns: i64,
    }
}

/// The scheduler in virtual time. It may move between threads, and is used by one at a time.
#[derive(Debug)]
pub struct Simulation {
    raw: NonNull<sys::rrfp_simulation>,
}

// SAFETY: a handle is bound to no thread. Not Sync: one thread at a time may use it.
unsafe impl Send for Simulation {}

impl Simulation {
    /// Checks the options; for `auto` also chooses the layout, which takes some simulated steps.
    pub fn new(options: &SimulationOptions) -> Result<Self> {
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |t| t.as_ptr());
        let mut raw = options.raw.0;
        raw.preset = pointer(&options.preset);
        raw.trace = pointer(&options.trace);
        raw.hint = pointer(&options.hint);
        // SAFETY (here and below): the pointers are valid during the call.
        let raw =
            ffi::create(|out, error| unsafe { sys::rrfp_simulation_create(&raw, out, error) })?;
        Ok(Self { raw })
    }

    /// Simulates one step; `seed` says which.
    pub fn run(&mut self, seed: u64) -> Result<SimulatedStep> {
        SimulatedStep::read(|out, error| unsafe {
            sys::rrfp_simulation_run(self.raw.as_ptr(), seed, out, error)
        })
    }

    /// What ran last, and for `auto` and `rf-d` why: one line.
    pub fn describe(&self) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            sys::rrfp_simulation_describe(self.raw.as_ptr(), buffer, capacity, size, error)
        })
    }

    /// Writes the timeline of the step that ran last, of its first replica.
    pub fn write_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        call(|error| unsafe {
            sys::rrfp_simulation_write_trace(self.raw.as_ptr(), path.as_ptr(), error)
        })?;
        Ok(())
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing else points to it.
        unsafe { sys::rrfp_simulation_destroy(self.raw.as_ptr()) }
    }
}

/// What random pipelines did that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StressReport {
    pub cases: i64,
    pub stalls: i64,
    pub cap_violations: i64,
    /// Lost, or run twice.
    pub task_errors: i64,
    /// A failure that did not end a rank, or that nothing caused.
    pub failure_errors: i64,
    /// Cases that cannot be run, such as a strict order that nobody can obey.
    pub refused: i64,
    /// Cases in which a rank died or a message was lost.
    pub faults: i64,
    /// The seed of the first bad case, and what was wrong there.
    pub bad_case: Option<(u64, String)>,
}

/// Simulates random pipelines with random policies, jitter and faults, one seed after another, and
/// counts what must not happen. `progress` is called now and then with the cases done; `false` ends
/// the run, and so does a panic, which comes out of this function.
pub fn stress(
    first_seed: u64,
    cases: i64,
    progress: impl FnMut(i64) -> bool,
) -> Result<StressReport> {
    let mut watcher = Watcher {
        progress,
        panic: None,
    };
    let mut raw = ffi::init(sys::rrfp_stress_report_init);
    let result = call(|error| {
        let user_data = &mut watcher as *mut _ as *mut c_void;
        let progress = progress_fn(&watcher);
        // SAFETY: the watcher outlives the call, during which only the callback uses it.
        unsafe {
            sys::rrfp_simulation_stress(first_seed, cases, progress, user_data, &mut raw, error)
        }
    });
    if let Some(payload) = watcher.panic {
        resume_unwind(payload);
    }
    result?;
    // SAFETY: the library ends the text with a zero byte.
    let bad_case = unsafe { CStr::from_ptr(raw.bad_case.as_ptr()) }
        .to_string_lossy()
        .into_owned();
    Ok(StressReport {
        cases: raw.cases,
        stalls: raw.stalls,
        cap_violations: raw.cap_violations,
        task_errors: raw.task_errors,
        failure_errors: raw.failure_errors,
        refused: raw.refused,
        faults: raw.faults,
        bad_case: (!bad_case.is_empty()).then_some((raw.bad_seed, bad_case)),
    })
}

struct Watcher<F> {
    progress: F,
    panic: Option<Box<dyn Any + Send>>,
}

/// The callback for a watcher of this type.
fn progress_fn<F: FnMut(i64) -> bool>(_: &Watcher<F>) -> sys::rrfp_progress_fn {
    unsafe extern "C" fn on_progress<F: FnMut(i64) -> bool>(data: *mut c_void, done: i64) -> bool {
        // SAFETY: `data` is the watcher of stress().
        let watcher = unsafe { &mut *(data as *mut Watcher<F>) };
        // A panic must not unwind into C.
        let go_on = catch_unwind(AssertUnwindSafe(|| (watcher.progress)(done)));
        go_on.unwrap_or_else(|payload| {
            watcher.panic = Some(payload);
            false
        })
    }
    Some(on_progress::<F>)
}
