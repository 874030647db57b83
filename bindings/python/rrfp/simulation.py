# SPDX-License-Identifier: Apache-2.0
"""The scheduler in virtual time: what a schedule would give on a workload, and whether it can
hang."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Callable

from . import _raw
from ._support import fill, report_of, text_of
from .enums import Injection, Order, Readiness, parse
from .trace import Trace

__all__ = ["Simulation", "SimulatedStep", "StressReport", "presets", "stress"]


@dataclass(frozen=True)
class SimulatedStep:
    """Times are virtual. Sums are over the ranks of the slowest replica."""

    ranks: int
    stages: int
    microbatches: int  #: of each replica
    makespan_ns: int
    bound_ns: int  #: no order in a V layout is faster; 0 for a trace
    peak_bytes: int  #: of the rank that held most; a microbatch of size 1 holds 10^6
    native_bytes: int  #: the same of strict 1F1B on this step
    tasks: int
    messages: int
    offloads: int
    busy_ns: int
    wait_input_ns: int
    wait_memory_ns: int
    wait_credit_ns: int
    wait_policy_ns: int
    wait_group_ns: int


def presets() -> list[str]:
    """The names of the workloads."""
    names: list[str] = []
    while (name := _raw.rrfp_preset_name(len(names))) is not None:
        names.append(name)
    return names


class Simulation:
    """A workload and a way to run it. One thread at a time may use it.

    Args:
        preset: a workload by name, see :func:`presets`; or
        trace: the tasks of a timeline that was measured, a path or a :class:`rrfp.Trace`; each of
            its steps is one seed, modulo their number.
        hint: a named schedule or policy, "rf-d" (plans without jitter; obeys until it is late) or
            "auto" (simulates past steps and takes what is fastest), the default.
        order: "ready", or "strict" and "paired" for schedules that can be obeyed.
        stages: devices; a layout with two chunks cuts each in two. 0 = 16, or the trace's.
        microbatches: of each replica. 0 = 64, or the trace's.
        cap: memory of a device, as a multiple of what strict 1F1B takes; 0 = no limit.
        offload_ms: to copy the activations of a mean stage to the host; 0 = there is no host.
        tensor_parallel: ranks of each group; readiness: whose arrivals its leader goes by,
            "all"/"leader".
        data_parallel: replicas, with microbatches of their own.
        history: auto: steps that it replays.
        dispatch_ns, report_ns: delays of the start of a task, and of news.
    """

    def __init__(self, preset: str | None = None, *, trace: str | PathLike | Trace | None = None,
                 hint: str | None = None, order: Order | str = Order.DEFAULT, stages: int = 0,
                 microbatches: int = 0, injection: Injection | str = Injection.DEFAULT,
                 cap: float = 1.0, offload_ms: float = 0.0, tensor_parallel: int = 0,
                 readiness: Readiness | str = Readiness.ALL, data_parallel: int = 0,
                 history: int = 0, dispatch_ns: int = 0, report_ns: int = 0,
                 nondeterministic: bool = False):
        path = trace.path if isinstance(trace, Trace) else trace and fspath(trace)
        self._handle = _raw.rrfp_simulation_create(fill(
            _raw.rrfp_simulation_options(), preset=preset, trace=path, hint=hint,
            order=parse(Order, order), stages=stages, microbatches=microbatches,
            injection=parse(Injection, injection), cap=cap, offload_ms=offload_ms,
            tensor_parallel=tensor_parallel, readiness=parse(Readiness, readiness),
            data_parallel=data_parallel, history=history, dispatch_ns=dispatch_ns,
            report_ns=report_ns,
            flags=_raw.RRFP_SIMULATION_NONDETERMINISTIC if nondeterministic else 0))

    def run(self, seed: int = 1) -> SimulatedStep:
        """Simulates one step; `seed` says which. The same seed gives the same result everywhere."""
        return report_of(SimulatedStep, _raw.rrfp_simulation_run(self._handle, seed))

    def describe(self) -> str:
        """What ran last, and for "auto" and "rf-d" why."""
        return text_of(_raw.rrfp_simulation_describe, self._handle)

    def write_trace(self, path: str | PathLike) -> None:
        """Writes the timeline of the step that ran last, of its first replica."""
        _raw.rrfp_simulation_write_trace(self._handle, fspath(path))

    def trace(self) -> Trace:
        """The timeline of the step that ran last, which a notebook shows as a picture."""
        return Trace.written_by(self.write_trace)

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


@dataclass(frozen=True)
class StressReport:
    """What random pipelines did; all but cases, refused and faults should be 0."""

    cases: int
    stalls: int
    cap_violations: int
    task_errors: int  #: lost, or run twice
    failure_errors: int  #: a failure that did not end a rank, or that nothing caused
    refused: int  #: cases that cannot be run, such as an order that nobody can obey
    faults: int  #: cases in which a rank died or a message was lost
    bad_seed: int  #: of the first bad case
    bad_case: str  #: what was wrong there, or empty

    def __add__(self, later: "StressReport") -> "StressReport":
        """Of two runs together."""
        first = self if self.bad_case else later
        counts = {name: getattr(self, name) + getattr(later, name)
                  for name in ("cases", "stalls", "cap_violations", "task_errors",
                               "failure_errors", "refused", "faults")}
        return StressReport(**counts, bad_seed=first.bad_seed, bad_case=first.bad_case)


_CASES_OF_A_RUN = 50


def stress(cases: int, first_seed: int = 1, *,
           progress: Callable[[int], object] | None = None) -> StressReport:
    """Simulates random pipelines with random policies, jitter and faults, one seed after another.

    `progress` is called now and then with the cases done; False ends the run. Ctrl-C is raised.
    """
    total: StressReport | None = None
    while total is None or total.cases < cases:
        done = total.cases if total else 0
        run = _raw.rrfp_simulation_stress(first_seed + done, min(cases - done, _CASES_OF_A_RUN))
        report = report_of(StressReport, run)
        total = total + report if total else report
        if progress and progress(total.cases) is False:
            break
    return total
