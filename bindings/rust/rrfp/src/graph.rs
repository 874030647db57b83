// SPDX-License-Identifier: Apache-2.0
use std::ptr::NonNull;

use crate::ffi::{self, call, set_flag, setters, sys, Raw};
use crate::{DType, Hint, Placement, Result};

/// What a stage is like. A trainable stage that is placed later, unless said otherwise.
#[derive(Clone, Debug)]
pub struct Stage {
    raw: Raw<sys::rrfp_stage_options>,
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage {
    pub fn new() -> Self {
        Self {
            raw: Raw(ffi::init(sys::rrfp_stage_options_init)),
        }
    }

    /// Its forward starts the backward pass of a microbatch.
    #[must_use]
    pub fn loss(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_STAGE_LOSS, on);
        self
    }

    /// No weight gradient: frozen, or without parameters.
    #[must_use]
    pub fn frozen(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_STAGE_FROZEN, on);
        self
    }

    /// Wants gradients for what enters the stage from outside.
    #[must_use]
    pub fn input_gradient(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_STAGE_INPUT_GRADIENT, on);
        self
    }

    /// Its code can run B only, not I and W apart.
    #[must_use]
    pub fn fused_only(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_STAGE_FUSED_ONLY, on);
        self
    }

    setters! {
        /// The rank that owns it; -1 = placed later.
        rank: i32,
        /// Per microbatch, held from the start of F to the end of B or W.
        activation_bytes: i64,
        /// Predicted duration of F, for holding; 0 = unknown.
        forward_ns: i64,
        /// Predicted duration of I.
        input_gradient_ns: i64,
        /// Predicted duration of W.
        weight_gradient_ns: i64,
    }
}

/// Stages, the directed edges between them, and the rank that owns each stage. Ids of stages and
/// edges count from 0 in the order of adding.
///
/// ```
/// # fn main() -> rrfp::Result<()> {
/// use rrfp::{Graph, Placement, Stage};
/// let mut graph = Graph::new(2)?;
/// let first = graph.add_stage(&Stage::new())?;
/// let last = graph.add_stage(&Stage::new().loss(true))?;
/// graph.add_edge(first, last)?;
/// graph.place(Placement::Linear)?;
/// graph.check()
/// # }
/// ```
#[derive(Debug)]
pub struct Graph {
    raw: NonNull<sys::rrfp_graph>,
    ranks: i32,
    stages: i32,
}

// SAFETY: a handle is bound to no thread. Not Sync: one thread at a time may use it.
unsafe impl Send for Graph {}

impl Graph {
    /// An empty graph for `ranks` ranks (1 to 65536).
    pub fn new(ranks: i32) -> Result<Self> {
        // SAFETY (here and below): the pointers are valid during the call.
        let raw = ffi::create(|out, error| unsafe { sys::rrfp_graph_create(ranks, out, error) })?;
        Ok(Self {
            raw,
            ranks,
            stages: 0,
        })
    }

    /// A chain of trainable stages, one on each rank, the last one with the loss. Edge e goes from
    /// stage e to stage e + 1.
    pub fn chain(stages: i32) -> Result<Self> {
        let mut graph = Self::new(stages)?;
        for s in 0..stages {
            graph.add_stage(&Stage::new().loss(s == stages - 1).rank(s))?;
            if s > 0 {
                graph.add_edge(s - 1, s)?;
            }
        }
        Ok(graph)
    }

    /// Adds a stage and gives its id.
    pub fn add_stage(&mut self, stage: &Stage) -> Result<i32> {
        let mut id = 0;
        call(|error| unsafe {
            sys::rrfp_graph_add_stage(self.raw.as_ptr(), &stage.raw.0, &mut id, error)
        })?;
        self.stages += 1;
        Ok(id)
    }

    /// Adds an edge, along which forwards of `from` send activations to `to` and gradients flow
    /// back, and gives its id. Several edges may join two stages.
    pub fn add_edge(&mut self, from: i32, to: i32) -> Result<i32> {
        self.add(from, to, 0)
    }

    /// Adds an edge along which nothing flows back.
    pub fn add_edge_without_gradient(&mut self, from: i32, to: i32) -> Result<i32> {
        self.add(from, to, sys::RRFP_EDGE_NO_GRADIENT as u32)
    }

    fn add(&mut self, from: i32, to: i32, flags: u32) -> Result<i32> {
        let mut id = 0;
        call(|error| unsafe {
            sys::rrfp_graph_add_edge(self.raw.as_ptr(), from, to, flags, &mut id, error)
        })?;
        Ok(id)
    }

    /// Declares the next tensor that every forward message of an edge carries; the engine then
    /// checks what is put. An extent of -1 may vary. An edge without declarations takes anything.
    pub fn declare_tensor(
        &mut self,
        edge: i32,
        dtype: DType,
        shape: &[i64],
        wants_gradient: bool,
    ) -> Result<()> {
        let mut flags = 0;
        set_flag(&mut flags, sys::RRFP_TENSOR_WANTS_GRADIENT, wants_gradient);
        call(|error| unsafe {
            sys::rrfp_graph_declare_tensor(
                self.raw.as_ptr(),
                edge,
                dtype.raw(),
                shape.len() as i32,
                shape.as_ptr(),
                flags,
                error,
            )
        })?;
        Ok(())
    }

    /// Places all stages, in the order of their ids.
    pub fn place(&mut self, placement: Placement) -> Result<()> {
        call(|error| unsafe { sys::rrfp_graph_place(self.raw.as_ptr(), placement as i32, error) })?;
        Ok(())
    }

    /// Places one stage; any map of stages to ranks is possible.
    pub fn place_stage(&mut self, stage: i32, rank: i32) -> Result<()> {
        call(|error| unsafe {
            sys::rrfp_graph_place_stage(self.raw.as_ptr(), stage, rank, error)
        })?;
        Ok(())
    }

    /// Places every stage on the rank in whose list the hint names it (lists and text only).
    pub fn place_by_hint(&mut self, hint: &Hint) -> Result<()> {
        call(|error| unsafe {
            sys::rrfp_graph_place_by_hint(self.raw.as_ptr(), hint.raw(), error)
        })?;
        Ok(())
    }

    /// Checks that there is no cycle, that every stage has a rank and every rank a stage. Making a
    /// pipeline does this too.
    pub fn check(&self) -> Result<()> {
        call(|error| unsafe { sys::rrfp_graph_check(self.raw.as_ptr(), error) })?;
        Ok(())
    }

    pub fn ranks(&self) -> i32 {
        self.ranks
    }

    /// The number of stages so far.
    pub fn stages(&self) -> i32 {
        self.stages
    }

    pub(crate) fn raw(&self) -> *const sys::rrfp_graph {
        self.raw.as_ptr()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing else points to it.
        unsafe { sys::rrfp_graph_destroy(self.raw.as_ptr()) }
    }
}
