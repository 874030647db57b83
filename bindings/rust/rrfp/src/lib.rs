// SPDX-License-Identifier: Apache-2.0
//! Pipeline-parallel training that never waits when it could work.
//!
//! A [`Graph`] describes stages and the ranks that own them, a [`Hint`] ranks the tasks of each
//! rank, and each [`Rank`] of a [`Pipeline`] pulls tasks whose inputs are here. Bring the code of
//! the stages:
//!
//! ```
//! use rrfp::{run_step, Graph, Hint, Pipeline, PipelineOptions, Step, StageError, Task, Tensor};
//!
//! // Two stages that double what they get; the gradient of the loss with respect to it is 2.
//! fn compute(task: &Task<'_>) -> Result<(), StageError> {
//!     let first = task.stage() == 0;
//!     if task.kind() == rrfp::TaskKind::Forward {
//!         let x = if first { 1.0 } else { task.input(0)?.ok_or("no input")?[0].item::<f32>()? };
//!         if first {
//!             let y = [2.0 * x];
//!             task.put(0, &[Tensor::from_slice(&y, &[])?.wants_gradient(true)])?;
//!         }
//!     } else if !first && task.kind().gives_input_gradient() {
//!         task.put_copy(0, &[2f32], &[])?;
//!     }
//!     Ok(())
//! }
//!
//! # fn main() -> rrfp::Result<()> {
//! let graph = Graph::chain(2)?;
//! let pipeline = Pipeline::new(&graph, &PipelineOptions::new())?;
//! let mut ranks = pipeline.ranks()?;
//! let step = Step::new(&Hint::named("1f1b")?, 8);
//! for report in run_step(&mut ranks, &step, compute) {
//!     assert!(report?.tasks >= 16);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`run_step`] gives every rank a thread and turns errors and panics of stage code into a failure
//! of the step on every rank, with their text. Below it are [`Rank::run_step`] for threads of your
//! own, and [`Rank::next`] for loops of your own.
//!
//! Or describe a [`Model`] as a graph of operations, or take the language model that is there
//! ([`Model::gpt`]), and let a [`Trainer`] train it on [`Data`]; a [`Generator`] writes with it.
//! [`Model::vision_language`] also reads pictures, and [`Samples`] has pictures and text for it. A
//! [`Simulation`] runs the same scheduler in virtual time, and [`trace`] draws timelines.
//!
//! # Memory
//!
//! Inputs are slices of engine memory that the [`Task`] lends. Outputs are written in engine memory
//! ([`Task::alloc`]) or are vectors that are given away ([`Task::put_owned`]), and travel without a
//! copy; slices are copied ([`Task::put_copy`]). All tensors are row-major and contiguous. What
//! must live longer than its task is a [`SharedTensor`].
//!
//! # Threads
//!
//! All objects may move to another thread. [`Hint`], [`Data`] and [`SharedTensor`] may be shared;
//! the others are used by one thread at a time, which the compiler checks. A [`Waker`] or a
//! [`Canceller`] is for the other threads.
//!
//! # Failures
//!
//! An [`Error`] names the task concerned. After a step that failed, every rank gives the same
//! error, and [`Pipeline::reset`] makes the pipeline ready for the next step.
//!
//! # Leaving things behind
//!
//! Everything is released when dropped, in any order. A program that forgets an object
//! ([`std::mem::forget`]) still ends. In the child of a `fork()`, ranks, pipelines and trainers of
//! the parent give [`ErrorKind::Forked`] and may be dropped; make your own there.
//!
//! # Building
//!
//! `pkg-config` must know `rrfp`. No rpath is set, so a library outside of the loader's folders
//! needs `LD_LIBRARY_PATH` at run time, or `RUSTFLAGS="-C link-arg=-Wl,-rpath,<folder>"`.

#![deny(unsafe_op_in_unsafe_fn)]

mod batch;
mod data;
mod dtype;
mod enums;
mod error;
mod ffi;
mod generator;
mod graph;
mod hint;
mod model;
mod operation;
mod pipeline;
mod rank;
mod run;
mod samples;
mod simulation;
mod task;
mod tensor;
pub mod trace;
mod trainer;
mod trainer_options;

pub use batch::Batch;
pub use data::{Data, DataFormat, DataInfo, DataOptions, Split};
pub use dtype::{Bool, DType, Element, BF16, F16};
pub use enums::{Injection, LogLevel, Order, Placement, TaskKind, Wake};
pub use error::{Error, ErrorKind, Result};
pub use generator::{Generator, Sampling};
pub use graph::{Graph, Stage};
pub use hint::{Hint, HintInfo, HintTask, Layout, Lower};
pub use model::{GptOptions, Init, Model, ModelInfo, Parameter, Training, Value, VisionOptions};
pub use operation::Operation;
pub use pipeline::{Canceller, Pipeline, PipelineOptions};
pub use rank::{Next, Rank, Step, StepReport, Waker};
/// The C interface as it is; its `DLManagedTensor` is what other libraries exchange.
pub use rrfp_sys as sys;
pub use run::{run_step, StageError};
pub use samples::{
    read_picture, Grouping, Samples, SamplesInfo, SamplesOptions, SAMPLES_VOCABULARY, TOKEN_END,
    TOKEN_IMAGE,
};
pub use simulation::{
    presets, stress, Readiness, SimulatedStep, Simulation, SimulationOptions, StressReport,
};
pub use task::{Events, Task};
pub use tensor::{Message, Output, SharedTensor, Tensor};
pub use trainer::{
    describe_checkpoint, SaveOptions, Slot, StageReport, TrainReport, Trainer, TrainerCanceller,
    TrainerInfo,
};
pub use trainer_options::{Decay, NonFinite, Optimizer, Reduction, TrainerOptions};

/// The version of the library in use: major, minor, patch.
pub fn version() -> (u32, u32, u32) {
    // SAFETY: takes nothing, reads nothing.
    let version = unsafe { sys::rrfp_version() };
    (version / 1_000_000, version / 1000 % 1000, version % 1000)
}

/// The version of the library's ABI, which is the number in the name of its file.
pub fn abi_version() -> u32 {
    // SAFETY: takes nothing, reads nothing.
    unsafe { sys::rrfp_abi_version() }
}
