// SPDX-License-Identifier: Apache-2.0
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::ffi::{self, c_path, c_string, call, report, set_flag, sys};
use crate::{Graph, Order, Placement, Result, TaskKind};

/// One entry of an explicit hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintTask {
    /// In whose list it stands; of no meaning for priorities.
    pub rank: i32,
    pub stage: i32,
    pub kind: TaskKind,
    pub microbatch: i32,
    /// Smaller = earlier; of no meaning for lists.
    pub priority: i64,
}

impl HintTask {
    fn raw(&self) -> sys::rrfp_hint_task {
        sys::rrfp_hint_task {
            rank: self.rank,
            stage: self.stage,
            kind: self.kind as i32,
            microbatch: self.microbatch,
            priority: self.priority,
        }
    }
}

report! {
    /// What the lists or the text of a hint name; for other hints all three are 0.
    HintInfo from rrfp_hint_info, rrfp_hint_info_init {
        /// Lists, or rows of a text.
        ranks: i32,
        /// The largest number + 1.
        stages: i32,
        /// The largest number + 1.
        microbatches: i32,
    }
}

/// What [`Hint::lower`] adds to sends and receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lower {
    /// UNSHARD and RESHARD of the stages that are needed next.
    pub fsdp: bool,
    /// REDUCE_GRAD after the last weight gradient of a stage.
    pub reduce: bool,
}

/// Where a named schedule puts stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub placement: Placement,
    /// The usual number of stages a rank.
    pub chunks: i32,
    /// 2 for `dualpipe`, else 1.
    pub streams: i32,
}

/// A total order over the tasks of each rank. In ready order it ranks what is ready; in strict
/// order it is obeyed.
///
/// It never changes; clones are the same hint and may be used by threads and pipelines at once.
#[derive(Clone, Debug)]
pub struct Hint {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle(NonNull<sys::rrfp_hint>);

// SAFETY: a hint never changes and may be shared by threads.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: this was the last user.
        unsafe { sys::rrfp_hint_destroy(self.0.as_ptr()) }
    }
}

impl Hint {
    fn create(
        f: impl FnOnce(*mut *mut sys::rrfp_hint, *mut sys::rrfp_error) -> i32,
    ) -> Result<Self> {
        Ok(Self {
            handle: Arc::new(Handle(ffi::create(f)?)),
        })
    }

    /// A published schedule or a policy by name, such as `1f1b`, `zb-v`, `bfw` or `rf-1`;
    /// `rrfp/rrfp.h` lists them.
    pub fn named(name: &str) -> Result<Self> {
        let name = c_string(name, "the name of a hint")?;
        // SAFETY (here and below): the pointers are valid during the call.
        Self::create(|out, error| unsafe { sys::rrfp_hint_create(name.as_ptr(), out, error) })
    }

    /// An explicit order: the entries of a rank, in the order in which they stand in `tasks`, are
    /// its list. Each (stage, microbatch) has F and either B or I and W. Entries for tasks that a
    /// step does not have are passed over. `ranks` is that of the pipeline.
    pub fn from_tasks(ranks: i32, tasks: &[HintTask]) -> Result<Self> {
        let tasks: Vec<_> = tasks.iter().map(HintTask::raw).collect();
        Self::create(|out, error| unsafe {
            sys::rrfp_hint_create_from_tasks(ranks, tasks.as_ptr(), tasks.len(), out, error)
        })
    }

    /// A priority per task; equal priorities go by stage, microbatch and kind.
    pub fn from_priorities(tasks: &[HintTask]) -> Result<Self> {
        let tasks: Vec<_> = tasks.iter().map(HintTask::raw).collect();
        Self::create(|out, error| unsafe {
            sys::rrfp_hint_create_from_priorities(tasks.as_ptr(), tasks.len(), out, error)
        })
    }

    /// The compute-only schedule text of torch.distributed.pipelining: a row per rank, cells such
    /// as `3F4` separated by commas. Errors name row and column, both counted from 1.
    pub fn from_text(text: &str) -> Result<Self> {
        Self::create(|out, error| unsafe {
            sys::rrfp_hint_create_from_text(text.as_ptr().cast(), text.len(), out, error)
        })
    }

    /// What the reader of a text had to assume (old spelling of B), or an empty text.
    pub fn note(&self) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            sys::rrfp_hint_note(self.raw(), buffer, capacity, size, error)
        })
    }

    pub fn info(&self) -> Result<HintInfo> {
        HintInfo::read(|out, error| unsafe { sys::rrfp_hint_get_info(self.raw(), out, error) })
    }

    /// The order that the hint gives to a training step of `microbatches` on `graph`, as schedule
    /// text.
    pub fn to_text(&self, graph: &Graph, microbatches: i32) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            let graph = graph.raw();
            sys::rrfp_hint_to_text(
                self.raw(),
                graph,
                microbatches,
                buffer,
                capacity,
                size,
                error,
            )
        })
    }

    /// The same in the complete form, with sends and receives.
    pub fn lower(&self, graph: &Graph, microbatches: i32, with: Lower) -> Result<String> {
        let mut flags = 0;
        set_flag(&mut flags, sys::RRFP_LOWER_FSDP, with.fsdp);
        set_flag(&mut flags, sys::RRFP_LOWER_REDUCE, with.reduce);
        ffi::text(|buffer, capacity, size, error| unsafe {
            let (hint, graph) = (self.raw(), graph.raw());
            sys::rrfp_hint_lower(
                hint,
                graph,
                microbatches,
                flags,
                buffer,
                capacity,
                size,
                error,
            )
        })
    }

    /// Where the schedule of this name puts stages.
    pub fn layout(name: &str) -> Result<Layout> {
        let name = c_string(name, "the name of a hint")?;
        let (mut placement, mut chunks, mut streams) = (0, 0, 0);
        call(|error| unsafe {
            sys::rrfp_hint_layout(
                name.as_ptr(),
                &mut placement,
                &mut chunks,
                &mut streams,
                error,
            )
        })?;
        let placement = Placement::from_raw(placement)
            .ok_or_else(|| ffi::invalid(format!("placement {placement} is not known here")))?;
        Ok(Layout {
            placement,
            chunks,
            streams,
        })
    }

    /// Draws a training step as the hint orders it into a trace event file: F, I and W take one
    /// millisecond each, messages no time.
    pub fn write_trace(
        &self,
        graph: &Graph,
        microbatches: i32,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        let path = c_path(path)?;
        call(|error| unsafe {
            sys::rrfp_hint_write_trace(self.raw(), graph.raw(), microbatches, path.as_ptr(), error)
        })?;
        Ok(())
    }

    /// Checks the hint against a training step: that it names every task and, for
    /// [`Order::Strict`], that it can be obeyed.
    pub fn check(&self, graph: &Graph, microbatches: i32, order: Order) -> Result<()> {
        call(|error| unsafe {
            sys::rrfp_hint_check(self.raw(), graph.raw(), microbatches, order as i32, error)
        })?;
        Ok(())
    }

    pub(crate) fn raw(&self) -> *const sys::rrfp_hint {
        self.handle.0.as_ptr()
    }
}
