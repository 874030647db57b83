# SPDX-License-Identifier: Apache-2.0
"""Exceptions, one class for each kind of failure.

Every exception of the library is an :class:`Error`. The classes follow what is broken (an argument,
a resource, a channel between ranks, a stage, the engine) and, where Python has a built-in exception
for it, derive from that too, so that ``except ValueError`` and ``except TimeoutError`` do what one
expects.
"""

from __future__ import annotations

from . import _raw

__all__ = [
    "Error", "ArgumentError", "NullHandle", "OutOfRange", "UnknownName", "HintSyntaxError",
    "GraphError", "CapTooSmall", "BadOrder", "TensorMismatch", "ResourceError", "OutOfMemory",
    "FileError", "DataError", "ChannelError", "HeaderMismatch", "StageError", "StageFailed",
    "NonFinite", "EngineError", "StateError", "Busy", "Timeout", "Cancelled", "Closed", "Forked",
    "InternalError",
]


class Error(Exception):
    """A call of the library failed.

    Attributes:
        status: the number, such as ``-501``.
        status_name: its name, such as ``"RRFP_ERR_BUSY"``.
        text: what was wrong, naming the value and what was expected.
        rank, stage, microbatch, kind: the task concerned, or None.
        user_code: the code given to :meth:`rrfp.Task.fail`, else 0.
    """

    def __init__(self, text: str, status: int = _raw.RRFP_ERR_INTERNAL, rank: int | None = None,
                 stage: int | None = None, microbatch: int | None = None,
                 kind: int | None = None, user_code: int = 0):
        Exception.__init__(self, text)
        self.text = text
        self.status = status
        self.rank = rank
        self.stage = stage
        self.microbatch = microbatch
        self.kind = kind
        self.user_code = user_code

    @property
    def status_name(self) -> str:
        return _raw.rrfp_status_name(self.status)

    def __str__(self) -> str:
        return self.text

    def __reduce__(self):
        return (type(self), (self.text, self.status, self.rank, self.stage, self.microbatch,
                             self.kind, self.user_code))


class ArgumentError(Error, ValueError):
    """An argument is not what it should be."""


class NullHandle(ArgumentError):
    """A handle is missing."""


class OutOfRange(ArgumentError, IndexError):
    """A number is outside of what exists, such as a stage, a rank or a token."""


class UnknownName(ArgumentError, LookupError):
    """No schedule or preset has this name."""


class HintSyntaxError(ArgumentError):
    """The text of a hint cannot be read; says row and column, counted from 1."""


class GraphError(ArgumentError):
    """The stage graph has a cycle, or a stage or a rank that is not placed."""


class CapTooSmall(ArgumentError):
    """A cap on activations does not let the step run."""


class BadOrder(ArgumentError):
    """A hint cannot be obeyed; says where each rank would wait."""


class TensorMismatch(ArgumentError):
    """A tensor has another element type, shape or layout than what is wanted."""


class ResourceError(Error):
    """Memory or files."""


class OutOfMemory(ResourceError, MemoryError):
    """No memory is left."""


class FileError(ResourceError, OSError):
    """A file cannot be read or written; the text names it and the reason."""


class DataError(ResourceError, ValueError):
    """A file is not what it should be; the text names it."""


class ChannelError(Error):
    """Between ranks."""


class HeaderMismatch(ChannelError):
    """The ranks disagree about the step."""


class StageError(Error):
    """In the code or in the numbers of a stage."""


class StageFailed(StageError):
    """The code of a stage failed, on some rank; ``text`` is that of the original exception. On the
    rank where it was raised, that exception is ``__cause__``."""


class NonFinite(StageError, ArithmeticError):
    """A loss or a gradient is infinite or not a number."""


class EngineError(Error):
    """The state of the engine."""


class StateError(EngineError, RuntimeError):
    """The call does not fit what the object is doing."""


class Busy(EngineError, RuntimeError):
    """Another thread is inside a call on this object."""


class Timeout(EngineError, TimeoutError):
    """The watchdog ended the step; :meth:`rrfp.Pipeline.report` says what each rank waited for."""


class Cancelled(EngineError):
    """The step was cancelled."""


class Closed(EngineError, RuntimeError):
    """The object is closed, or a rank was closed while it was needed."""


class Forked(EngineError, RuntimeError):
    """The object was made before ``fork()`` and this is the child; only closing it is possible."""


class InternalError(EngineError):
    """A fault of the library."""


_BY_STATUS: dict[int, type[Error]] = {
    _raw.RRFP_ERR_INVALID_ARGUMENT: ArgumentError,
    _raw.RRFP_ERR_NULL_HANDLE: NullHandle,
    _raw.RRFP_ERR_STRUCT_SIZE: ArgumentError,
    _raw.RRFP_ERR_OUT_OF_RANGE: OutOfRange,
    _raw.RRFP_ERR_UNKNOWN_NAME: UnknownName,
    _raw.RRFP_ERR_SYNTAX: HintSyntaxError,
    _raw.RRFP_ERR_CYCLE: GraphError,
    _raw.RRFP_ERR_UNPLACED_STAGE: GraphError,
    _raw.RRFP_ERR_CAP_TOO_SMALL: CapTooSmall,
    _raw.RRFP_ERR_BAD_ORDER: BadOrder,
    _raw.RRFP_ERR_TENSOR_MISMATCH: TensorMismatch,
    _raw.RRFP_ERR_NO_MEMORY: OutOfMemory,
    _raw.RRFP_ERR_IO: FileError,
    _raw.RRFP_ERR_BAD_DATA: DataError,
    _raw.RRFP_ERR_HEADER_MISMATCH: HeaderMismatch,
    _raw.RRFP_ERR_STAGE_FAILED: StageFailed,
    _raw.RRFP_ERR_NON_FINITE: NonFinite,
    _raw.RRFP_ERR_BAD_STATE: StateError,
    _raw.RRFP_ERR_BUSY: Busy,
    _raw.RRFP_ERR_TIMEOUT: Timeout,
    _raw.RRFP_ERR_CANCELLED: Cancelled,
    _raw.RRFP_ERR_CLOSED: Closed,
    _raw.RRFP_ERR_FORKED: Forked,
    _raw.RRFP_ERR_INTERNAL: InternalError,
}

# For statuses of a newer library: the group of a status is a promise.
_BY_GROUP: dict[int, type[Error]] = {
    1: ArgumentError, 2: ResourceError, 3: ChannelError, 4: StageError, 5: EngineError,
}


def _from_status(status: int, rank: int, stage: int, microbatch: int, kind: int, user_code: int,
                 text: str) -> Error:
    """What the raw layer raises."""
    kind_of_error = _BY_STATUS.get(status) or _BY_GROUP.get(-status // 100, Error)
    rank_, stage_, microbatch_, kind_ = (
        None if number < 0 else number for number in (rank, stage, microbatch, kind))
    return kind_of_error(text, status, rank_, stage_, microbatch_, kind_, user_code)
