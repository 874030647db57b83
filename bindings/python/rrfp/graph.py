# SPDX-License-Identifier: Apache-2.0
"""The stage graph, and hints: which task of a rank is best."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Iterable, NamedTuple, Sequence

from . import _raw
from ._support import fill, report_of, text_of
from .enums import Kind, Order, Placement, dtype_code, parse
from .trace import Trace

__all__ = ["Graph", "Hint", "HintInfo", "Layout", "Edge"]


@dataclass
class Edge:
    """A directed edge between two stages, as a :class:`Graph` remembers it."""

    source: int
    target: int
    gradient: bool  #: whether gradients flow back along it
    declared: list[bool]  #: of each declared tensor, whether it wants a gradient


class Graph:
    """Stages, the edges between them, and the rank that owns each stage.

    Ids of stages and edges count from 0 in the order of adding. A pipeline copies the graph.
    Use it from one thread at a time.
    """

    def __init__(self, ranks: int):
        self._handle = _raw.rrfp_graph_create(ranks)
        self.ranks = ranks
        self.stages = 0
        self.edges: list[Edge] = []

    @classmethod
    def chain(cls, stages: int, ranks: int | None = None, *,
              placement: Placement | str = Placement.LINEAR, **stage_options: Any) -> "Graph":
        """A chain of stages, of which the last has the loss; edge e goes from stage e to e + 1.

        Args:
            ranks: as many as stages, if not given; for the placements "v" and "loop" half of them.
            stage_options: of every stage, as in :meth:`add_stage`.
        """
        placement = parse(Placement, placement)
        if ranks is None:
            ranks = stages if placement == Placement.LINEAR else (stages + 1) // 2
        graph = cls(ranks)
        for stage in range(stages):
            graph.add_stage(loss=stage == stages - 1, **stage_options)
            if stage > 0:
                graph.add_edge(stage - 1, stage)
        graph.place(placement)
        return graph

    def add_stage(self, *, loss: bool = False, frozen: bool = False, input_gradient: bool = False,
                  fused_only: bool = False, rank: int | None = None, activation_bytes: int = 0,
                  forward_ns: int = 0, input_gradient_ns: int = 0,
                  weight_gradient_ns: int = 0) -> int:
        """Adds a stage and returns its id.

        Args:
            loss: its forward starts the backward pass of a microbatch.
            frozen: it has no weight gradient.
            input_gradient: it wants gradients for what enters it from outside.
            fused_only: its code can run B only, not I and W apart.
            rank: where it is; None to :meth:`place` it later.
            activation_bytes: held per microbatch from the start of F to the end of B or W.
            forward_ns, input_gradient_ns, weight_gradient_ns: predicted durations, 0 = unknown.
        """
        options = fill(_raw.rrfp_stage_options(), activation_bytes=activation_bytes,
                       forward_ns=forward_ns, input_gradient_ns=input_gradient_ns,
                       weight_gradient_ns=weight_gradient_ns, rank=rank)
        options.flags = (loss * _raw.RRFP_STAGE_LOSS | frozen * _raw.RRFP_STAGE_FROZEN
                         | input_gradient * _raw.RRFP_STAGE_INPUT_GRADIENT
                         | fused_only * _raw.RRFP_STAGE_FUSED_ONLY)
        stage = _raw.rrfp_graph_add_stage(self._handle, options)
        self.stages += 1
        return stage

    def add_edge(self, source: int, target: int, *, gradient: bool = True) -> int:
        """Adds an edge, along which forwards of `source` send activations to `target`, and returns
        its id. Without `gradient` nothing flows back."""
        flags = 0 if gradient else _raw.RRFP_EDGE_NO_GRADIENT
        edge = _raw.rrfp_graph_add_edge(self._handle, source, target, flags)
        self.edges.append(Edge(source, target, gradient, []))
        return edge

    def declare(self, edge: int, shape: Sequence[int], dtype: Any = "float32", *,
                wants_gradient: bool | None = None) -> None:
        """Declares the next tensor that every forward message of an edge carries; what is put is
        then checked. Extents of -1 may vary. Whether it wants a gradient is by default whether it
        has a floating-point type and the edge carries gradients."""
        code = dtype_code(dtype)
        if wants_gradient is None:
            known = self.edges[edge].gradient if 0 <= edge < len(self.edges) else False
            wants_gradient = known and _raw.RRFP_F32 <= code <= _raw.RRFP_BF16
        _raw.rrfp_graph_declare_tensor(self._handle, edge, code, tuple(shape),
                                       _raw.RRFP_TENSOR_WANTS_GRADIENT if wants_gradient else 0)
        self.edges[edge].declared.append(wants_gradient)

    def place(self, placement: Placement | str) -> None:
        """Places all stages, in the order of their ids."""
        _raw.rrfp_graph_place(self._handle, parse(Placement, placement))

    def place_stage(self, stage: int, rank: int) -> None:
        """Places one stage; any map of stages to ranks is possible."""
        _raw.rrfp_graph_place_stage(self._handle, stage, rank)

    def place_by_hint(self, hint: "Hint") -> None:
        """Places every stage on the rank in whose list the hint names it (lists and text only)."""
        _raw.rrfp_graph_place_by_hint(self._handle, hint._handle)

    def check(self) -> None:
        """Raises :class:`GraphError` for a cycle, a stage without a rank or a rank without a
        stage."""
        _raw.rrfp_graph_check(self._handle)


@dataclass(frozen=True)
class HintInfo:
    """What the lists or the text of a hint name; 0 for other hints."""

    ranks: int
    stages: int
    microbatches: int


class Layout(NamedTuple):
    """Where a published schedule puts stages."""

    placement: Placement
    chunks: int  #: the usual number of stages a rank
    streams: int  #: 2 for "dualpipe", else 1


def _task(rank: int, cell: Any) -> tuple[int, int, int, int, int]:
    """A cell such as "3F4" or (stage, kind, microbatch) for the raw layer."""
    if isinstance(cell, str):
        at = next((i for i, c in enumerate(cell) if c in "FBIW"), 0)
        try:
            return (rank, int(cell[:at]), Kind.of(cell[at]), int(cell[at + 1:]), 0)
        except (ValueError, IndexError):
            raise ValueError(f"{cell!r} is not a task such as '3F4'") from None
    stage, kind, microbatch = cell
    return (rank, stage, Kind.of(kind), microbatch, 0)


class Hint:
    """A total order over the tasks of each rank. In ready order it ranks what is ready; in strict
    order it is obeyed. It never changes, and may be shared by threads and pipelines.

    ``Hint("zb-h1")`` is a published schedule or a policy by name; see rrfp.h for all of them.
    """

    def __init__(self, name: str):
        self._handle = _raw.rrfp_hint_create(name)

    @classmethod
    def _of(cls, handle: Any) -> "Hint":
        hint = cls.__new__(cls)
        hint._handle = handle
        return hint

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[Any]]) -> "Hint":
        """An explicit order: for each rank its tasks, written "3F4" or as (stage, kind,
        microbatch). Each (stage, microbatch) has F and either B or I and W; tasks that a step lacks
        are passed over."""
        tasks = [_task(rank, cell) for rank, cells in enumerate(lists) for cell in cells]
        return cls._of(_raw.rrfp_hint_create_from_tasks(len(lists), tasks))

    @classmethod
    def from_priorities(cls, priorities: dict[Any, int]) -> "Hint":
        """From the priority of each task ("3F4", or (stage, kind, microbatch)); smaller is
        earlier."""
        tasks = [(*_task(0, cell)[:4], priority) for cell, priority in priorities.items()]
        return cls._of(_raw.rrfp_hint_create_from_priorities(tasks))

    @classmethod
    def from_text(cls, text: str) -> "Hint":
        """From the compute-only schedule text of torch.distributed.pipelining: a row per rank,
        cells such as 3F4 separated by commas. Raises :class:`HintSyntaxError` with row and
        column."""
        return cls._of(_raw.rrfp_hint_create_from_text(text))

    @classmethod
    def read(cls, path: str | PathLike) -> "Hint":
        """:meth:`from_text` of a file."""
        with open(fspath(path), encoding="utf-8") as file:
            return cls.from_text(file.read())

    @staticmethod
    def layout(name: str) -> Layout:
        """Where the schedule of this name puts stages."""
        placement, chunks, streams = _raw.rrfp_hint_layout(name)
        return Layout(Placement(placement), chunks, streams)

    @property
    def info(self) -> HintInfo:
        return report_of(HintInfo, _raw.rrfp_hint_get_info(self._handle))

    @property
    def note(self) -> str:
        """What the reader of a text had to assume, or an empty text."""
        return text_of(_raw.rrfp_hint_note, self._handle)

    def to_text(self, graph: Graph, microbatches: int) -> str:
        """The order that it gives to a training step on a graph, as schedule text."""
        return text_of(_raw.rrfp_hint_to_text, self._handle, graph._handle, microbatches)

    def lower(self, graph: Graph, microbatches: int, *, fsdp: bool = False,
              reduce: bool = False) -> str:
        """The same in the complete form, with sends and receives; with `fsdp` also UNSHARD and
        RESHARD, with `reduce` REDUCE_GRAD after the last weight gradient of a stage."""
        flags = fsdp * _raw.RRFP_LOWER_FSDP | reduce * _raw.RRFP_LOWER_REDUCE
        return text_of(_raw.rrfp_hint_lower, self._handle, graph._handle, microbatches, flags)

    def check(self, graph: Graph, microbatches: int, order: Order | str = Order.STRICT) -> None:
        """Raises if it does not name every task of a training step or, for the strict order, cannot
        be obeyed (:class:`BadOrder` says where each stuck rank would wait)."""
        _raw.rrfp_hint_check(self._handle, graph._handle, microbatches, parse(Order, order))

    def write_trace(self, graph: Graph, microbatches: int, path: str | PathLike) -> None:
        """Writes a training step as the hint orders it, F, I and W of a millisecond each, as a
        trace event file."""
        _raw.rrfp_hint_write_trace(self._handle, graph._handle, microbatches, fspath(path))

    def trace(self, graph: Graph, microbatches: int) -> Trace:
        """The same as a timeline, which a notebook shows as a picture."""
        return Trace.written_by(lambda path: self.write_trace(graph, microbatches, path))


@functools.lru_cache(maxsize=64)
def named_hint(name: str) -> Hint:
    """One Hint for a name: a pipeline keeps its plan while the hint is the same one."""
    return Hint(name)


def hint_of(hint: Hint | str) -> Hint:
    return hint if isinstance(hint, Hint) else named_hint(hint)
