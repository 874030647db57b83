# SPDX-License-Identifier: Apache-2.0
"""Pipelines with stage code of one's own: each rank pulls tasks whose inputs are here.

The short way::

    pipeline = rrfp.Pipeline(rrfp.Graph.chain(4))
    reports = pipeline.run(compute, microbatches=8, hint="1f1b")  # compute(task) for every task

and with a thread of one's own for each rank::

    with pipeline.rank(r) as rank:
        with rank.step(microbatches=8, hint="1f1b") as step:
            for task in step:
                with task:  # done at its end, or failed by an exception
                    ...
        step.report
"""

from __future__ import annotations

import threading
from os import PathLike, fspath
from typing import Any, Callable, Sequence

import numpy

from . import _native, _raw, errors
from ._support import (Outcome, Worker, close_at_exit, fill, integers, log_function, milliseconds,
                       text_of)
from .enums import Mode, Order, Wake, parse
from .graph import Graph, Hint, hint_of
from .reports import StepReport
from .tasks import Step, Task, quietly
from .trace import Trace

__all__ = ["Pipeline", "Rank"]


class Rank:
    """One rank of a pipeline. One thread at a time may use it; a second one gets
    :class:`rrfp.Busy`. ``with`` closes it at the end. A rank that is closed in the middle of a step
    fails it for all."""

    def __init__(self, pipeline: "Pipeline", number: int):
        self.pipeline = pipeline
        self.number = number
        self._handle = _raw.rrfp_rank_create(pipeline._handle, number)
        self._handle.keep(pipeline._log)
        close_at_exit(self)

    def step(self, microbatches: int, hint: Hint | str = "1f1b", **options: Any) -> Step:
        """A step, which begins when its ``with`` block does. All ranks must describe it alike; see
        :meth:`Pipeline.run` for the options."""
        return Step(self, self.pipeline._step_options(microbatches, hint, **options))

    def wake(self) -> None:
        """Ends the current or the next wait for a task: :meth:`Step.next` gives None. From any
        thread."""
        _native.rank_wake(self._handle)

    def close(self) -> None:
        """Frees it. A thread that waits in it gets :class:`rrfp.Closed`. From any thread."""
        self._handle.close()

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def __enter__(self) -> "Rank":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


class Pipeline:
    """The ranks of one pipeline, as threads of this process.

    Args:
        graph: copied.
        order: "ready" (default) or "strict".
        wake: how a rank waits: "yield", "spin" or "park".
        cap_slots, cap_bytes: the most that a rank's activations hold at once, one for all ranks or
            a sequence with one for each; 0 = no limit.
        credits: forward messages of an edge that may wait for their consumer; 0 = by the layout.
        hold_permille: how long a ready task may wait for a better one that is announced.
        mailbox_capacity: messages that may lie in a rank's mailbox; 0 = 1024.
        nondeterministic: weight gradients as they become ready, not in the order of the
            microbatches.
        trace_steps: keep the timeline of the last so many steps.
        watchdog: seconds without progress after which a step fails; 0 = 600, negative = never.
        log: a logger, or f(level, text); by default the logger "rrfp".
    """

    def __init__(self, graph: Graph, *, order: Order | str = Order.DEFAULT,
                 wake: Wake | str = Wake.YIELD, cap_slots: int | Sequence[int] = 0,
                 cap_bytes: int | Sequence[int] = 0, credits: int = 0, hold_permille: int = 0,
                 mailbox_capacity: int = 0, nondeterministic: bool = False, trace_steps: int = 0,
                 watchdog: float = 0, log: Any = None):
        self.ranks = graph.ranks
        self.stages = graph.stages
        self._edges = [(edge.gradient, tuple(edge.declared)) for edge in graph.edges]
        self._log = log_function(log)
        self._own: list[tuple[Rank, Worker]] = []
        self._running: int | None = None  # the thread that is inside run()
        self._settled = True  # false while the threads of run() may be inside a step
        options = fill(
            _raw.rrfp_pipeline_options(), order=parse(Order, order), wake=parse(Wake, wake),
            flags=_raw.RRFP_PIPELINE_NONDETERMINISTIC if nondeterministic else 0, credits=credits,
            hold_permille=hold_permille, mailbox_capacity=mailbox_capacity,
            trace_steps=trace_steps, watchdog_ms=milliseconds(watchdog),
            **self._cap("cap_slots", cap_slots), **self._cap("cap_bytes", cap_bytes))
        _native.set_pipeline_log(options, self._log)
        self._handle = _raw.rrfp_pipeline_create(graph._handle, options)
        self._handle.keep(self._log)
        close_at_exit(self)

    def _cap(self, name: str, value: int | Sequence[int]) -> dict[str, Any]:
        if not hasattr(value, "__iter__"):
            return {name: value}
        caps = integers(value, numpy.int64)
        if caps.shape != (self.ranks,):
            raise ValueError(f"{name} has shape {caps.shape}; {self.ranks} ranks are expected")
        return {"rank_" + name: caps}

    def _wants(self, edge: int, count: int) -> bool | tuple[bool, ...]:
        """Whether tensors that are put on an edge want gradients, if nothing else is said."""
        if not 0 <= edge < len(self._edges):
            return False  # put() will say what is wrong
        gradient, declared = self._edges[edge]
        return declared if declared and len(declared) == count else gradient

    def _cells(self, name: str, cells: Any, microbatches: int) -> Any:
        if cells is not None and cells.shape != (self.stages, microbatches):
            raise ValueError(f"{name} has shape {cells.shape}; (stages, microbatches) = "
                             f"{(self.stages, microbatches)} is expected")
        return cells

    def _step_options(self, microbatches: int, hint: Hint | str, *, mode: Mode | str = Mode.TRAIN,
                      step: int = 0, order: Order | str = Order.DEFAULT, skip: Any = None,
                      activation_bytes: Any = None) -> Any:
        hint = hint_of(hint)
        if skip is not None:
            skip = numpy.ascontiguousarray(skip, dtype=numpy.bool_)
        if activation_bytes is not None:
            activation_bytes = integers(activation_bytes, numpy.int64)
        options = fill(
            _raw.rrfp_step_options(), mode=parse(Mode, mode), step=step, microbatches=microbatches,
            order=parse(Order, order), hint=hint._handle,
            skip=self._cells("skip", skip, microbatches),
            activation_bytes=self._cells("activation_bytes", activation_bytes, microbatches))
        return options

    def rank(self, number: int) -> Rank:
        """Makes the handle of a rank; a rank has at most one. :meth:`run` makes its own."""
        return Rank(self, number)

    def run(self, function: Callable[[Task], object], *, microbatches: int,
            hint: Hint | str = "1f1b", mode: Mode | str = Mode.TRAIN, step: int = 0,
            order: Order | str = Order.DEFAULT, skip: Any = None,
            activation_bytes: Any = None) -> list[StepReport]:
        """Runs one step: calls `function(task)` for every task, on a thread for each rank.

        A task is done when the function returns, unless it has called :meth:`Task.done` itself. If
        it raises, the step fails on every rank, and :class:`rrfp.StageFailed` is raised here from
        that exception. Afterwards, also after Ctrl-C, the pipeline is ready for the next step.

        Args:
            hint: a :class:`Hint` or the name of one.
            mode: "train" or "forward" (evaluation, inference).
            step: the caller's number, for reports.
            order: "ready" or "strict", for this step.
            skip: stages x microbatches, true where a microbatch skips a stage.
            activation_bytes: stages x microbatches, in place of the stages' own.
        Returns: a report for each rank.
        """
        options = self._step_options(microbatches, hint, mode=mode, step=step, order=order,
                                     skip=skip, activation_bytes=activation_bytes)
        # Not a lock: Ctrl-C just after it was taken would leave it taken.
        thread = threading.get_ident()
        if self._running not in (None, thread):
            raise errors.Busy("another thread is inside run() of this pipeline",
                              _raw.RRFP_ERR_BUSY)
        self._running = thread
        try:
            return self._run(lambda rank: _run_rank(rank, options, function))
        finally:
            self._running = None

    def _run(self, call: Callable[[Rank], StepReport | None]) -> list[Any]:
        """Calls `call(rank)` on the thread of each rank."""
        while len(self._own) < self.ranks:
            number = len(self._own)
            self._own.append((Rank(self, number), Worker(f"rrfp rank {number}")))
        if not self._settled:
            self._settle()
        self._settled = False
        outcomes: list[Outcome] = []
        try:
            for rank, worker in self._own:
                outcomes.append(worker.submit(lambda rank=rank: call(rank)))
            for outcome in outcomes:
                outcome.wait()
        except BaseException:  # Ctrl-C
            self._settle()
            for outcome in outcomes:
                outcome.take_error()
            raise
        failures = [error for outcome in outcomes if (error := outcome.take_error()) is not None]
        if failures:
            quietly(self.reset)
            self._settled = True
            try:
                raise min(failures, key=_blame)
            finally:
                del failures, outcomes, outcome, error  # tracebacks refer to this frame
        self._settled = True
        return [outcome.value for outcome in outcomes]

    def _settle(self) -> None:
        """After Ctrl-C: waits for tasks that run, and makes the pipeline ready for the next step. A
        second Ctrl-C ends that, and the next run() does it."""
        quietly(lambda: self.cancel("interrupted"))
        for _, worker in self._own:
            worker.drain()
        quietly(self.reset)
        self._settled = True

    def cancel(self, reason: str = "by the caller") -> None:
        """Fails the current step on every rank with :class:`rrfp.Cancelled`; between steps, the
        next one. :meth:`reset` ends that state. From any thread."""
        _raw.rrfp_pipeline_cancel(self._handle, reason.replace("\0", "\\0"))

    def reset(self) -> None:
        """After a failed step, when every rank has left it: forgets it, so that a new one can
        begin."""
        _raw.rrfp_pipeline_reset(self._handle)

    def report(self) -> str:
        """For people: what each rank does or waits for, from whom and since when. From any
        thread."""
        return text_of(_raw.rrfp_pipeline_report, self._handle)

    def write_trace(self, path: str | PathLike) -> None:
        """Writes the timeline of the last steps (`trace_steps`) as a trace event file."""
        _raw.rrfp_pipeline_write_trace(self._handle, fspath(path))

    def trace(self) -> Trace:
        """The timeline of the last steps, which a notebook shows as a picture."""
        return Trace.written_by(self.write_trace)

    def close(self) -> None:
        """Frees it, with the ranks that :meth:`run` has made. Others go on working."""
        for rank, _ in self._own:
            rank.close()
        self._own.clear()
        self._handle.close()

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


def _run_rank(rank: Rank, options: Any, function: Callable[[Task], object]) -> StepReport | None:
    with Step(rank, options, together=True) as step:
        for task in step:
            with task:
                function(task)
    return step.report


def _blame(error: BaseException) -> int:
    """The exception to show first: what says most about where a failure arose."""
    if not isinstance(error, Exception):
        return 0
    if error.__cause__ is not None:
        return 1
    return 3 if isinstance(error, errors.Cancelled) else 2
