// SPDX-License-Identifier: Apache-2.0
use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;

use crate::ffi::sys;
use crate::TaskKind;

/// What a function of this crate gives.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $kind:ident = $raw:ident,)*) => {
        /// What went wrong, for programs. New kinds may come with new versions of the library.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
            /// A status that this version of the crate has no name for; see [`Error::status`].
            Unknown,
        }

        impl ErrorKind {
            fn from_status(status: i32) -> Self {
                match status {
                    $(sys::$raw => Self::$kind,)*
                    _ => Self::Unknown,
                }
            }
        }
    };
}

error_kinds! {
    InvalidArgument = RRFP_ERR_INVALID_ARGUMENT,
    NullHandle = RRFP_ERR_NULL_HANDLE,
    StructSize = RRFP_ERR_STRUCT_SIZE,
    OutOfRange = RRFP_ERR_OUT_OF_RANGE,
    UnknownName = RRFP_ERR_UNKNOWN_NAME,
    Syntax = RRFP_ERR_SYNTAX,
    Cycle = RRFP_ERR_CYCLE,
    UnplacedStage = RRFP_ERR_UNPLACED_STAGE,
    CapTooSmall = RRFP_ERR_CAP_TOO_SMALL,
    /// An order that cannot be obeyed.
    BadOrder = RRFP_ERR_BAD_ORDER,
    /// A tensor of another type or shape than is expected, or not contiguous.
    TensorMismatch = RRFP_ERR_TENSOR_MISMATCH,
    NoMemory = RRFP_ERR_NO_MEMORY,
    /// A file cannot be read or written.
    Io = RRFP_ERR_IO,
    /// A file is not what it should be.
    BadData = RRFP_ERR_BAD_DATA,
    /// Ranks disagree about the step.
    HeaderMismatch = RRFP_ERR_HEADER_MISMATCH,
    /// Stage code failed, on this rank or on another.
    StageFailed = RRFP_ERR_STAGE_FAILED,
    /// A loss or a gradient is infinite or not a number.
    NonFinite = RRFP_ERR_NON_FINITE,
    /// The call does not fit what the object is doing.
    BadState = RRFP_ERR_BAD_STATE,
    /// A rank is in use by another thread.
    Busy = RRFP_ERR_BUSY,
    /// The watchdog ended the step.
    Timeout = RRFP_ERR_TIMEOUT,
    Cancelled = RRFP_ERR_CANCELLED,
    /// A rank was dropped while it was needed.
    Closed = RRFP_ERR_CLOSED,
    /// The object was made before `fork()`, and this is the child.
    Forked = RRFP_ERR_FORKED,
    Internal = RRFP_ERR_INTERNAL,
}

/// An error with the task that it concerns, as far as there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: i32,
    rank: i32,
    stage: i32,
    microbatch: i32,
    task_kind: i32,
    user_code: i32,
    text: Cow<'static, str>,
}

impl Error {
    #[cold]
    pub(crate) fn from_raw(status: i32, raw: &sys::rrfp_error) -> Self {
        // SAFETY: the library ends the text of every error with a zero byte.
        let text = unsafe { CStr::from_ptr(raw.text.as_ptr()) };
        Self {
            status,
            rank: raw.rank,
            stage: raw.stage,
            microbatch: raw.microbatch,
            task_kind: raw.kind,
            user_code: raw.user_code,
            text: Cow::Owned(text.to_string_lossy().into_owned()),
        }
    }

    /// An error that was found on this side of the C interface.
    #[cold]
    pub(crate) fn new(status: i32, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            rank: -1,
            stage: -1,
            microbatch: -1,
            task_kind: -1,
            user_code: 0,
            text: text.into(),
        }
    }

    pub(crate) fn on_rank(mut self, rank: i32) -> Self {
        self.rank = rank;
        self
    }

    /// What went wrong, for programs.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::from_status(self.status)
    }

    /// The status of the C interface, below 0. One that [`kind`](Self::kind) does not know can be
    /// told by its hundred: arguments -100, resources -200, channels -300, stages -400, engine
    /// -500.
    pub fn status(&self) -> i32 {
        self.status
    }

    /// The name of the status, such as `RRFP_ERR_BUSY`.
    pub fn status_name(&self) -> &'static str {
        // SAFETY: takes any number and gives static memory.
        let name = unsafe { CStr::from_ptr(sys::rrfp_status_name(self.status)) };
        name.to_str().unwrap_or("unknown")
    }

    /// The rank concerned.
    pub fn rank(&self) -> Option<i32> {
        known(self.rank)
    }

    /// The stage of the task concerned.
    pub fn stage(&self) -> Option<i32> {
        known(self.stage)
    }

    /// The microbatch of the task concerned.
    pub fn microbatch(&self) -> Option<i32> {
        known(self.microbatch)
    }

    /// The kind of the task concerned.
    pub fn task_kind(&self) -> Option<TaskKind> {
        TaskKind::from_raw(self.task_kind)
    }

    /// [`ErrorKind::StageFailed`]: the code that was given to [`Task::fail`](crate::Task::fail).
    pub fn user_code(&self) -> i32 {
        self.user_code
    }

    /// What went wrong, for people: names the wrong value and what was expected.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.status_name())
    }
}

impl std::error::Error for Error {}

fn known(id: i32) -> Option<i32> {
    (id >= 0).then_some(id)
}
