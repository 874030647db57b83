# SPDX-License-Identifier: Apache-2.0
"""The backward of one forward of a stage, whole (B) or in two halves (I and W).

I computes the gradients of the stage's inputs and nothing else. On its way it notes the gradient
that arrives at each node of the autograd graph where the path to a parameter leaves the path to the
inputs. W starts at these nodes, so it does not repeat the work of I.

Cost, for a torch whose ``autograd.grad`` can start at a node (2.x from the version where
``can_start_at_nodes`` is true): I and W together compute what B computes, plus about 3 microseconds
for each node of the graph. Exception: if a parameter is used at several places of one stage, W
repeats the input gradients between these places. Without that ability (torch 1.13) W repeats the
input gradients of the whole stage: I + W is then about 3/2 of B, so hints without I and W are the
better choice there.

Memory: what the forward saved lives until B or W has run, as the engine's caps count it; between I
and W also the noted gradients. On a torch that starts at nodes, the outputs of the stage are not
held.

The order in which autograd adds up several uses of a parameter is the same in B and in W, so both
give the same bits. Threads: one at a time for each object; objects of different threads are
independent.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch

Gradients = list[torch.Tensor | None]


def _try_nodes() -> bool:
    """Whether autograd.grad takes nodes as starting points, tried on the smallest case."""
    try:
        from torch.autograd.graph import GradientEdge, get_gradient_edge

        leaf = torch.ones((), requires_grad=True)
        edge = get_gradient_edge(leaf * 2)
        note: list[Any] = []
        edge.node.register_prehook(note.append).remove()
        (gradient,) = torch.autograd.grad(
            [GradientEdge(edge.node, edge.output_nr)], [leaf], [torch.ones(())]
        )
        return float(gradient) == 2
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return False


can_start_at_nodes: bool = _try_nodes()


class StageBackward:
    """The backward of one forward.

    roots        the outputs that need a gradient, or the loss
    inputs       leaves that need a gradient, made for this forward
    parameters   trainable parameters of the stage, each once
    """

    def __init__(
        self,
        roots: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        parameters: Sequence[torch.Tensor],
    ) -> None:
        self._roots: list[Any] = list(roots)
        if can_start_at_nodes:
            self._roots = [torch.autograd.graph.get_gradient_edge(root) for root in roots]
        self._inputs = list(inputs)
        self._parameters = list(parameters)
        self._seeds: list[torch.Tensor] = []
        self._branches: list[_Branches] | None = None

    def run(self, gradients: Gradients) -> tuple[Gradients, Gradients]:
        """B: takes a gradient, or None for zero, for each root.

        Returns the gradients of the inputs and of the parameters; None where there is none.
        """
        self._take(gradients)
        wanted = self._inputs + self._parameters
        found = self._grad(self._roots, self._seeds, wanted, retain=False)
        count = len(self._inputs)
        self._forget()
        return found[:count], found[count:]

    def run_input(self, gradients: Gradients) -> Gradients:
        """I: as ``run``, for the inputs only. ``run_weight`` must follow if there are
        parameters."""
        self._take(gradients)
        if not self._inputs or not self._roots:
            return [None] * len(self._inputs)
        if not self._parameters:
            found = self._grad(self._roots, self._seeds, self._inputs, retain=False)
            self._forget()
            return found
        hooks: list[Any] = []
        if can_start_at_nodes:
            self._branches = _find_branches(
                self._roots, self._seeds, self._inputs, self._parameters
            )
            hooks = [hook for group in self._branches for hook in group.note_gradients()]
        try:
            found = self._grad(self._roots, self._seeds, self._inputs, retain=True)
        finally:
            for hook in hooks:
                hook.remove()
        self._inputs = []
        return found

    def run_weight(self) -> Gradients:
        """W: the gradients of the parameters, after ``run_input``."""
        if self._branches is None:
            found = self._grad(self._roots, self._seeds, self._parameters, retain=False)
        else:
            by_id: dict[int, torch.Tensor | None] = {}
            for group in self._branches:
                by_id.update(group.run())
            found = [by_id.get(id(parameter)) for parameter in self._parameters]
        self._forget()
        return found

    def _take(self, gradients: Gradients) -> None:
        pairs = [(r, g) for r, g in zip(self._roots, gradients) if g is not None]
        self._roots = [root for root, _ in pairs]
        self._seeds = [seed for _, seed in pairs]

    def _forget(self) -> None:
        self._roots, self._seeds, self._inputs, self._branches = [], [], [], None

    @staticmethod
    def _grad(
        roots: Sequence[Any], seeds: Sequence[Any], wanted: Sequence[Any], retain: bool
    ) -> Gradients:
        if not roots or not wanted:
            return [None] * len(wanted)
        return list(
            torch.autograd.grad(roots, wanted, seeds, retain_graph=retain, allow_unused=True)
        )


class _Branches:
    """Parameters that share places where their paths leave those to the inputs, and these places.

    nodes      on the way to an input; W starts at their noted gradients
    entries    (root, seed) of outputs that do not depend on an input at all; W starts there too
    """

    def __init__(self) -> None:
        self.parameters: dict[int, torch.Tensor] = {}
        self.nodes: list[Any] = []
        self.entries: list[tuple[Any, torch.Tensor]] = []
        self._noted: list[Any] = []

    def note_gradients(self) -> list[Any]:
        """Hooks that keep the gradients which arrive at the nodes. They hold no node: no cycle."""
        self._noted = [None] * len(self.nodes)

        def keep(noted: list[Any], i: int) -> Any:
            def hook(gradients: Any) -> None:
                noted[i] = tuple(gradients)

            return hook

        return [n.register_prehook(keep(self._noted, i)) for i, n in enumerate(self.nodes)]

    def run(self) -> dict[int, torch.Tensor | None]:
        edge = torch.autograd.graph.GradientEdge
        starts = [root for root, _ in self.entries]
        seeds = [seed for _, seed in self.entries]
        hooks = []
        try:
            for node, noted in zip(self.nodes, self._noted):
                if noted is None:  # no gradient came this way
                    continue
                for output, gradient in enumerate(noted):
                    if gradient is not None:
                        starts.append(edge(node, output))
                        seeds.append(gradient)
                # What flows here from another node of the group is part of the noted gradient
                # already.
                if len(self.nodes) > 1:
                    hooks.append(node.register_prehook(lambda _, noted=noted: noted))
            parameters = list(self.parameters.values())
            # Retained: groups may run through one another's nodes. All goes with the last
            # reference.
            found = StageBackward._grad(starts, seeds, parameters, retain=True)
        finally:
            for hook in hooks:
                hook.remove()
        return dict(zip(self.parameters, found))


def _find_branches(
    roots: Sequence[Any],
    seeds: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    parameters: Sequence[torch.Tensor],
) -> list[_Branches]:
    """Groups the parameters of the graph under ``roots`` (edges) by the nodes where W has to
    start."""
    input_ids = {id(tensor) for tensor in inputs}
    by_id = {id(tensor): tensor for tensor in parameters}
    to_input: dict[Any, bool] = {}  # node -> an input can be reached
    reach: dict[Any, set[int]] = {}  # node -> ids of parameters it leads to past such nodes

    for node in _children_first([root.node for root in roots]):
        leaf = id(getattr(node, "variable", None))
        children = [child for child, _ in node.next_functions if child is not None]
        to_input[node] = leaf in input_ids or any(to_input[child] for child in children)
        reach[node] = {leaf} if leaf in by_id else set()
        for child in children:
            if not to_input[child]:
                reach[node] |= reach[child]

    groups: list[_Branches] = []
    of_parameter: dict[int, _Branches] = {}

    def group_of(ids: set[int]) -> _Branches:
        """The group of these parameters; groups that they connect become one."""
        known = [of_parameter[i] for i in ids if i in of_parameter]
        old = list({id(group): group for group in known}.values())
        group = old[0] if old else _Branches()
        if not old:
            groups.append(group)
        for other in old[1:]:
            group.parameters.update(other.parameters)
            group.nodes += other.nodes
            group.entries += other.entries
            groups.remove(other)
        group.parameters.update((i, by_id[i]) for i in ids)
        for i in group.parameters:
            of_parameter[i] = group
        return group

    for node, ids in reach.items():
        if ids and to_input[node]:
            group_of(ids).nodes.append(node)
    for root, seed in zip(roots, seeds):
        if reach[root.node] and not to_input[root.node]:
            group_of(reach[root.node]).entries.append((root, seed))
    return groups


def _children_first(roots: Sequence[Any]) -> list[Any]:
    """The nodes under ``roots``, each once and after all that it leads to."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(c, False) for c, _ in node.next_functions if c is not None and c not in seen]
    return order
