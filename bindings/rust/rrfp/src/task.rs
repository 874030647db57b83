// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::raw::c_void;
use std::ptr;

use crate::ffi::{c_message, call, sys};
use crate::tensor::view;
use crate::{Element, Message, Output, Rank, Result, TaskKind, Tensor};

/// What a task was the last of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events(u32);

impl Events {
    /// All weight gradients of its stage are in.
    pub fn stage_gradients(self) -> bool {
        self.0 & sys::RRFP_EVENT_STAGE_GRADIENTS as u32 != 0
    }

    /// All forwards of its stage, a loss stage, are done.
    pub fn stage_losses(self) -> bool {
        self.0 & sys::RRFP_EVENT_STAGE_LOSSES as u32 != 0
    }

    /// All tasks of this rank are done.
    pub fn step_tasks(self) -> bool {
        self.0 & sys::RRFP_EVENT_STEP_TASKS as u32 != 0
    }
}

/// A task in the hands of the program. It borrows its [`Rank`], so there is one at a time, and ends
/// in [`done`](Self::done) or [`fail`](Self::fail), which consume it. One that is dropped has
/// failed: the other ranks must hear of it, or they would wait for its messages.
///
/// A task cannot be completed twice, and what it lent cannot be used afterwards:
///
/// ```compile_fail,E0382
/// fn twice(task: rrfp::Task<'_>) -> rrfp::Result<()> {
///     task.done()?;
///     task.fail(1, "too late"); // use of moved value
///     Ok(())
/// }
/// ```
/// ```compile_fail,E0505
/// fn late(task: rrfp::Task<'_>) -> rrfp::Result<f32> {
///     let message = task.input(0)?.unwrap();
///     let x: &[f32] = message[0].as_slice()?;
///     task.done()?; // cannot move out of `task` because it is borrowed
///     Ok(x[0])
/// }
/// ```
/// ```compile_fail,E0499
/// fn two(rank: &mut rrfp::Rank) -> rrfp::Result<()> {
///     let first = rank.next(None)?;
///     let second = rank.next(None)?; // cannot borrow `*rank` as mutable more than once
///     drop((first, second));
///     Ok(())
/// }
/// ```
#[must_use = "a task that is dropped has failed"]
pub struct Task<'r> {
    rank: &'r mut Rank,
    raw: sys::rrfp_task,
    kind: TaskKind,
}

impl<'r> Task<'r> {
    pub(crate) fn new(rank: &'r mut Rank, raw: sys::rrfp_task, kind: TaskKind) -> Self {
        Self { rank, raw, kind }
    }

    pub fn stage(&self) -> i32 {
        self.raw.stage
    }

    pub fn microbatch(&self) -> i32 {
        self.raw.microbatch
    }

    pub fn kind(&self) -> TaskKind {
        self.kind
    }

    /// Whether the stage is a loss stage.
    pub fn is_loss(&self) -> bool {
        self.raw.flags & sys::RRFP_TASK_LOSS as u32 != 0
    }

    /// The number of this hand-out.
    pub fn ticket(&self) -> u64 {
        self.raw.ticket
    }

    /// The rank that runs it.
    pub fn rank(&self) -> i32 {
        self.rank.index()
    }

    /// The tensors that arrived along an edge of the stage: activations if the edge enters the
    /// stage, gradients if it leaves it (B, I and W only). `None` if nothing travels there for this
    /// microbatch (skipped, frozen, no gradient). Nothing is copied; the slices end with the task,
    /// and the last task of this (stage, microbatch) still finds what the first one saw.
    #[inline]
    pub fn input(&self, edge: i32) -> Result<Option<Message<'_>>> {
        Message::read(|tensors, capacity, opaque| {
            let mut count = 0;
            // SAFETY: the rank is ours, and `tensors` has room for `capacity`.
            let status = call(|error| unsafe {
                let (rank, ticket) = (self.rank.raw(), self.raw.ticket);
                sys::rrfp_rank_input(
                    rank, ticket, edge, tensors, capacity, &mut count, opaque, error,
                )
            })?;
            Ok((status == sys::RRFP_OK).then_some(count))
        })
    }

    /// Whether the task must put an output for an edge of its stage.
    pub fn wants_output(&self, edge: i32) -> Result<bool> {
        // SAFETY: the rank is ours.
        let status = call(|error| unsafe {
            sys::rrfp_rank_output_wanted(self.rank.raw(), self.raw.ticket, edge, error)
        })?;
        Ok(status == sys::RRFP_OK)
    }

    /// A tensor of zeros in engine memory, to be written and put without a copy.
    pub fn alloc<T: Element>(&self, shape: &[i64]) -> Result<Output<'_, T>> {
        let mut output = self.alloc_uninit::<T>(shape)?;
        let bytes = output.bytes();
        // SAFETY: the memory is ours and has so many bytes; all elements may be zero.
        unsafe {
            ptr::write_bytes(output.as_mut_ptr() as *mut u8, 0, bytes);
            Ok(output.assume_init())
        }
    }

    /// The same without the time to clear it.
    pub fn alloc_uninit<T: Element>(&self, shape: &[i64]) -> Result<Output<'_, MaybeUninit<T>>> {
        let mut raw = crate::tensor::EMPTY;
        // SAFETY: the rank is ours, the pointers are valid during the call.
        call(|error| unsafe {
            let (rank, ticket, ndim) = (self.rank.raw(), self.raw.ticket, shape.len() as i32);
            sys::rrfp_rank_alloc(rank, ticket, T::RAW, ndim, shape.as_ptr(), &mut raw, error)
        })?;
        Ok(Output::from_raw(raw))
    }

    /// Wraps a vector so that it can be put without a copy. It is dropped when nobody needs it any
    /// more; at once if the call fails.
    pub fn wrap<T: Element>(&self, data: Vec<T>, shape: &[i64]) -> Result<Tensor<'_>> {
        let mut raw = view(data.as_ptr(), data.len(), shape)?;
        let bytes = data.len() * std::mem::size_of::<T>();
        let owner = Box::into_raw(Box::new(data));
        // SAFETY: the vector stays where it is until `drop_vec` gets it back.
        let wrapped = call(|error| unsafe {
            let (rank, ticket) = (self.rank.raw(), self.raw.ticket);
            let out = &mut raw.buffer;
            let release = Some(drop_vec::<T> as unsafe extern "C" fn(*mut c_void));
            sys::rrfp_rank_wrap(
                rank,
                ticket,
                raw.data,
                bytes,
                release,
                owner.cast(),
                out,
                error,
            )
        });
        if let Err(error) = wrapped {
            // SAFETY: a call that failed does not release.
            drop(unsafe { Box::from_raw(owner) });
            return Err(error);
        }
        Ok(Tensor::from_raw(raw))
    }

    /// The same for a tensor of another library: on success the engine owns `managed` and calls its
    /// deleter, on an error it stays the caller's.
    ///
    /// # Safety
    /// `managed` points to a valid `DLManagedTensor` that is the caller's to give away, nobody
    /// writes to its elements any more, and its deleter may be called on any thread.
    pub unsafe fn wrap_dlpack(&self, managed: *mut sys::DLManagedTensor) -> Result<Tensor<'_>> {
        let mut raw = crate::tensor::EMPTY;
        // SAFETY: the rank is ours; the rest is as the caller promises.
        call(|error| unsafe {
            let (rank, ticket) = (self.rank.raw(), self.raw.ticket);
            sys::rrfp_rank_wrap_dlpack(rank, ticket, managed, &mut raw, error)
        })?;
        Ok(Tensor::from_raw(raw))
    }

    /// Gives the output for an edge: F gives activations to each edge that leaves its stage, B and
    /// I give gradients to each edge that enters it, one for each tensor that asked, in that order.
    ///
    /// Tensors in counted memory (from [`alloc`](Self::alloc), [`wrap`](Self::wrap), an input, a
    /// [`SharedTensor`](crate::SharedTensor)) are handed over without a copy; slices are copied
    /// during the call.
    #[inline]
    pub fn put(&self, edge: i32, tensors: &[Tensor<'_>]) -> Result<()> {
        self.put_with(edge, tensors, ptr::null_mut())
    }

    /// The same with a pointer that travels along; the engine never looks at it.
    #[inline]
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // not by the engine, which only passes it on
    pub fn put_with(&self, edge: i32, tensors: &[Tensor<'_>], opaque: *mut c_void) -> Result<()> {
        // SAFETY: the rank is ours, and a Tensor is a transparent rrfp_tensor.
        call(|error| unsafe {
            let (rank, ticket) = (self.rank.raw(), self.raw.ticket);
            let first = tensors.as_ptr() as *const sys::rrfp_tensor;
            sys::rrfp_rank_put(rank, ticket, edge, first, tensors.len(), opaque, error)
        })?;
        Ok(())
    }

    /// Puts one tensor, copied from a slice.
    pub fn put_copy<T: Element>(&self, edge: i32, data: &[T], shape: &[i64]) -> Result<()> {
        self.put(edge, &[Tensor::from_slice(data, shape)?])
    }

    /// Puts one tensor, without a copy; see [`wrap`](Self::wrap).
    pub fn put_owned<T: Element>(&self, edge: i32, data: Vec<T>, shape: &[i64]) -> Result<()> {
        self.put(edge, &[self.wrap(data, shape)?])
    }

    /// The task is done: its outputs are sent. On an error, such as an output that is missing, the
    /// task has failed, with the text of that error.
    #[inline]
    pub fn done(self) -> Result<Events> {
        let mut task = ManuallyDrop::new(self); // from here on it must not fail by being dropped
        let mut events = 0;
        // SAFETY: the rank is ours.
        let result = call(|error| unsafe {
            sys::rrfp_rank_done(task.rank.raw(), task.raw.ticket, &mut events, error)
        });
        match result {
            Ok(_) => {
                task.rank.leave();
                Ok(Events(events))
            }
            Err(error) => {
                task.end_in_failure(0, error.text());
                Err(error)
            }
        }
    }

    /// The task failed: the step fails on every rank with
    /// [`ErrorKind::StageFailed`](crate::ErrorKind::StageFailed), this text and this code.
    #[cold]
    pub fn fail(self, code: i32, text: &str) {
        ManuallyDrop::new(self).end_in_failure(code, text);
    }

    fn end_in_failure(&mut self, code: i32, text: &str) {
        let text = c_message(text);
        // That the step has already failed elsewhere is no news: the next call on the rank says so.
        // SAFETY: the rank is ours.
        let _ = call(|error| unsafe {
            let (rank, ticket) = (self.rank.raw(), self.raw.ticket);
            sys::rrfp_rank_fail(rank, ticket, code, text.as_ptr(), error)
        });
        self.rank.leave();
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        let how = if std::thread::panicking() {
            "in a panic"
        } else {
            "before it was done"
        };
        self.end_in_failure(0, &format!("task {self} was dropped {how}"));
    }
}

/// As in hints: stage, kind, microbatch, such as `3F4`.
impl fmt::Display for Task<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.stage(), self.kind, self.microbatch())
    }
}

impl fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Task({self}, rank {}, ticket {})",
            self.rank(),
            self.ticket()
        )
    }
}

unsafe extern "C" fn drop_vec<T: Element>(owner: *mut c_void) {
    // SAFETY: `owner` is that of Task::wrap, and comes back once. Elements have no drop to panic.
    drop(unsafe { Box::from_raw(owner as *mut Vec<T>) });
}
