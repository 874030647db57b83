# SPDX-License-Identifier: Apache-2.0
"""The tasks of a step, as a rank pulls them."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

import numpy

from . import _native, _raw, errors
from ._support import report_of
from .enums import Kind, dtype_code
from .reports import StepReport

if TYPE_CHECKING:
    from .pipeline import Rank

__all__ = ["Step", "Task"]

_FORWARD = Kind.FORWARD


def quietly(call: Callable[[], object]) -> None:
    """For what may be refused while an exception that says more is on its way."""
    try:
        call()
    except errors.Error:
        pass


class Task(_native.TaskBase):
    """A task in the hands of its rank. Use it on the thread of the rank, until it is done. ``with``
    says done at its end, or makes it fail with the exception.

    Attributes:
        stage, microbatch: numbers.
        kind: what to compute, a :class:`rrfp.Kind`. B is I and W in one task.
        ticket: names this hand-out in the raw layer.
        step: the :class:`Step` it belongs to.

    Methods, besides those below:
        done(): the task is done, its outputs are sent; returns flags of :class:`rrfp.Events`.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        stage: int
        microbatch: int
        kind: Kind
        ticket: int
        step: Step

        def done(self) -> int: ...

    @property
    def _handle(self) -> Any:
        return self.step._handle

    @property
    def rank(self) -> int:
        return self.step.rank.number

    @property
    def is_loss(self) -> bool:
        """Whether the stage is a loss stage."""
        return bool(self._flags & _raw.RRFP_TASK_LOSS)

    def __repr__(self) -> str:
        return f"<rrfp.Task {self.stage}{self.kind.letter}{self.microbatch}>"

    def input(self, edge: int) -> list[numpy.ndarray] | None:
        """What came along an edge of the stage: activations if it enters the stage, gradients if it
        leaves it (B, I and W only). None if nothing travels there for this microbatch.

        The arrays are read-only views of engine memory, which they keep alive. bfloat16 shows its
        bits, as uint16; :meth:`input_tensors` has the type.
        """
        tensors = _native.rank_input(self._handle, self.ticket, edge)
        return None if tensors is None else [numpy.asarray(tensor) for tensor in tensors]

    def input_tensors(self, edge: int) -> list[Any] | None:
        """The same as :class:`rrfp.Tensor` objects, for DLPack: ``torch.from_dlpack(tensor)``.
        DLPack cannot say so, but they must not be written to."""
        return _native.rank_input(self._handle, self.ticket, edge)

    def alloc(self, shape: Sequence[int] | int, dtype: Any = "float32") -> numpy.ndarray:
        """A writable array in engine memory, not cleared, to compute an output in. Putting it costs
        neither a copy nor a wrapper."""
        return numpy.asarray(self.alloc_tensor(shape, dtype))

    def alloc_tensor(self, shape: Sequence[int] | int, dtype: Any = "float32") -> Any:
        """The same as a :class:`rrfp.Tensor`, for DLPack."""
        extents = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
        return _native.rank_alloc(self._handle, self.ticket, dtype_code(dtype), extents)

    def wanted(self, edge: int) -> bool:
        """Whether this task must put an output for an edge of its stage."""
        return _native.rrfp_rank_output_wanted(self._handle, self.ticket, edge)

    def put(self, edge: int, tensors: Any,
            wants_gradient: bool | Sequence[bool] | None = None) -> None:
        """Gives the output for an edge: F gives activations to each edge that leaves its stage, B
        and I give gradients to each edge that enters it, one for each tensor that asked for one
        (None = zero).

        Args:
            tensors: an array or a list of them: NumPy, anything with the buffer protocol, or with
                DLPack. Contiguous memory is handed over as it is: it stays in use until every
                reader is done, and must not be written to any more. Other strides are copied
                (DLPack: refused).
            wants_gradient: whether the consumer must send gradients back, for all floating-point
                tensors or for each tensor. By default what was declared, else True where the edge
                carries them.
        """
        if not isinstance(tensors, (list, tuple)):
            tensors = (tensors,)
        if wants_gradient is None:
            wants_gradient = self.kind is _FORWARD and self.step.rank.pipeline._wants(
                edge, len(tensors))
        _native.rank_put(self._handle, self.ticket, edge, tensors, wants_gradient)

    def fail(self, reason: BaseException | str, code: int = 0) -> None:
        """The task failed: the step fails on every rank with :class:`rrfp.StageFailed` and this
        text."""
        self.step._fail(self.ticket, reason, code)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self.step._running != self.ticket:
            return  # done or failed already
        if error is None:
            self.done()
        else:
            quietly(lambda: self.fail(error))  # refused if the step has failed already


class Step(_native.StepBase):
    """A step of one rank, as made by :meth:`Rank.step`: iterate over its tasks inside ``with``.

    Leaving ends the step on this rank; other ranks may still be working. If the step has failed, on
    whatever rank, that raises here; when every rank has left, :meth:`Pipeline.reset` clears the
    way.

    Attributes:
        report: a :class:`StepReport`, once the step has ended well.
    """

    def __init__(self, rank: "Rank", options: Any, *, together: bool = False):
        self.rank = rank
        self._together = together  # the other ranks begin too, and wait for this one
        self.report: StepReport | None = None
        self._options = options
        self._bind(rank._handle, Task)
        self._reason: BaseException | None = None

    def __enter__(self) -> "Step":
        try:
            _raw.rrfp_rank_begin_step(self.rank._handle, self._options)
        except errors.Error as error:
            if self._together:
                text = str(error)
                quietly(lambda: self.rank.pipeline.cancel(text))
            raise
        return self

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Task]: ...

        def __next__(self) -> Task: ...

    def next(self, timeout: float | None = None) -> Task | None:
        """The next task. None after `timeout` seconds (0 = only look), after :meth:`Rank.wake`, and
        when all tasks are done."""
        return self._next(-1 if timeout is None else max(0, int(timeout * 1e6)))

    @property
    def finished(self) -> bool:
        """Whether the last look for a task found that all of this rank are done."""
        return self._finished

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            self._leave(error)
        finally:
            self._reason = None  # its traceback refers to frames that refer to this step

    def _leave(self, error: BaseException | None) -> None:
        if error is None:
            try:
                self._end()
            except errors.StateError:  # left before its tasks were done: free the others too
                self._abandon("rank %d left the step" % self.rank.number)
                raise
            except errors.Error as failure:
                self._explain(failure)
                raise
            return
        if self._running:
            quietly(lambda: self._fail(self._running, error))
        try:
            self._end()
        except errors.StateError:
            self._abandon(f"{type(error).__name__}: {error}")
        except errors.Error as failure:
            self._explain(failure)
            if error is self._reason and isinstance(error, Exception):
                raise failure from failure.__cause__
        self._explain(error)

    def _fail(self, ticket: int, reason: BaseException | str, code: int = 0) -> None:
        text = reason
        if isinstance(reason, BaseException):
            text = "".join(traceback.format_exception_only(type(reason), reason)).strip()
        # The C interface takes text without zero bytes.
        _native.rrfp_rank_fail(self._handle, ticket, code, str(text).replace("\0", "\\0"))
        self._running = 0
        if isinstance(reason, BaseException):
            self._reason = reason

    def _end(self) -> None:
        raw = _raw.rrfp_rank_end_step(self.rank._handle)
        self.report = report_of(StepReport, raw)

    def _explain(self, failure: BaseException) -> None:
        """Gives a failure that arose here the exception that caused it."""
        if (isinstance(failure, errors.StageFailed) and self._reason is not None
                and failure.rank == self.rank.number and failure is not self._reason):
            failure.__cause__ = self._reason

    def _abandon(self, text: str) -> None:
        quietly(lambda: self.rank.pipeline.cancel(text))
        quietly(self._end)
