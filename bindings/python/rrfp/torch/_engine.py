# SPDX-License-Identifier: Apache-2.0
"""From a chain of stages to the engine's graph and pipeline, and the state that torch keeps per
thread."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import torch

from .. import Graph, Hint, Pipeline, Placement, StepReport


class Traits(NamedTuple):
    """What the engine must know of a stage in a step."""

    trainable: bool  # has parameters that require a gradient
    outside: bool  # its caller wants gradients of inputs
    split: bool  # may run I and W apart
    requires: bool  # it or a stage before it is trainable or outside: it has backward tasks


class Engine:
    """Makes the pipeline, and makes it anew when the traits of the stages have changed."""

    def __init__(
        self,
        stages: int,
        hint: str | Hint,
        ranks: int | None,
        placement: str | Placement | Sequence[int] | None,
        threads_per_rank: int | None,
        options: dict[str, Any],
    ) -> None:
        self._stages = stages
        self._hint = Hint(hint) if isinstance(hint, str) else hint
        self._ranks, self._placement = _choose_layout(stages, hint, ranks, placement)
        self._threads = threads_per_rank
        self._options = options
        self._made_for: list[Traits] | None = None
        self._pipeline: Pipeline | None = None
        # Tells what is wrong with the layout and the options before the first step does.
        self._pipeline_for([Traits(True, False, True, True)] * stages)

    def run(
        self,
        function: Callable[[Any], object],
        traits: list[Traits],
        microbatches: int,
        step: int,
        train: bool,
    ) -> list[StepReport]:
        """Calls ``function(task)`` for every task of a step, on the threads of the ranks, in the
        state of the calling thread: autocast, and no gradients unless ``train``."""
        pipeline = self._pipeline_for(traits)
        state = _ThreadState(train, self._threads)

        with _intra_op_threads(self._threads):
            return pipeline.run(
                lambda task: state.run(function, task),
                microbatches=microbatches,
                hint=self._hint,
                mode="train" if train else "forward",
                step=step,
            )

    def write_trace(self, path: Any) -> None:
        assert self._pipeline is not None
        self._pipeline.write_trace(path)

    def close(self) -> None:
        if self._pipeline is not None:
            self._pipeline.close()
        self._pipeline, self._made_for = None, None

    def _pipeline_for(self, traits: list[Traits]) -> Pipeline:
        if self._pipeline is not None and self._made_for == traits:
            return self._pipeline
        graph = Graph(self._ranks)
        for stage, trait in enumerate(traits):
            graph.add_stage(
                loss=stage == len(traits) - 1,
                frozen=not trait.trainable,
                input_gradient=trait.outside,
                fused_only=not trait.split,
            )
            if stage > 0:
                graph.add_edge(stage - 1, stage)
        if isinstance(self._placement, list):
            for stage, rank in enumerate(self._placement):
                graph.place_stage(stage, rank)
        elif self._placement is None:
            graph.place_by_hint(self._hint)
        else:
            graph.place(self._placement)
        self.close()
        self._pipeline = Pipeline(graph, **self._options)
        self._made_for = list(traits)
        return self._pipeline


def _choose_layout(
    stages: int,
    hint: str | Hint,
    ranks: int | None,
    placement: str | Placement | Sequence[int] | None,
) -> tuple[int, Any]:
    """The number of ranks, and a placement: a name, the rank of each stage, or None for the hint's
    own."""
    if placement is not None and not isinstance(placement, (str, Placement)):
        of_stage = [int(rank) for rank in placement]
        if len(of_stage) != stages:
            raise ValueError(f"placement names {len(of_stage)} ranks for {stages} stages")
        return ranks or max(of_stage) + 1, of_stage
    if placement is not None:
        linear = str(placement).lower() in ("linear", str(int(Placement.LINEAR)))
        return ranks or (stages if linear else (stages + 1) // 2), placement
    if isinstance(hint, Hint):
        if hint.info.ranks:
            return hint.info.ranks, None
        return ranks or stages, "linear" if ranks in (None, stages) else "loop"
    layout = Hint.layout(hint)
    if layout.streams > 1:
        raise ValueError(f"{hint!r} wants two chains of stages; a list of modules is one")
    if layout.placement == Placement.LINEAR:
        return ranks or stages, "linear" if ranks in (None, stages) else "loop"
    return ranks or max(1, stages // layout.chunks), layout.placement


class _ThreadState:
    """What the calling thread's state means for the threads of the ranks, which do not inherit
    it."""

    def __init__(self, train: bool, threads: int | None) -> None:
        self._train = train
        self._threads = threads
        self._autocast = [
            (device, dtype) for device in ("cpu", "cuda") for dtype in _autocast_dtype(device)
        ]

    def run(self, function: Callable[[Any], object], task: Any) -> None:
        """Calls ``function(task)`` in that state. The thread is a rank's own: what stays set harms
        nobody."""
        if self._threads is not None and torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        if torch.is_grad_enabled() != self._train:
            torch.set_grad_enabled(self._train)
        if not self._autocast:
            function(task)
            return
        with ExitStack() as stack:
            for device, dtype in self._autocast:
                # Cached casts would tie the graphs of microbatches together.
                stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
            function(task)


def _autocast_dtype(device: str) -> list[torch.dtype]:
    """The type of autocast in this thread, or nothing if it is off."""
    if hasattr(torch, "get_autocast_dtype"):
        on = torch.is_autocast_enabled(device)
        return [torch.get_autocast_dtype(device)] if on else []
    if device == "cpu":
        return [torch.get_autocast_cpu_dtype()] if torch.is_autocast_cpu_enabled() else []
    return [torch.get_autocast_gpu_dtype()] if torch.is_autocast_enabled() else []


@contextmanager
def _intra_op_threads(count: int | None) -> Iterator[None]:
    """Torch's threads inside operations. Torch keeps the number partly per process, partly per
    thread."""
    before = torch.get_num_threads()
    if count is not None and count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
