# SPDX-License-Identifier: Apache-2.0
"""What a stage does in a task: runs its module, cuts the autograd graph at its borders, keeps what
the backward needs.

Between stages of a process tensors go by reference: the receiver's tensor is ``output.detach()``,
which has the memory of the sender's output. A stage must therefore not change its inputs in place.

A stage and its states belong to one rank thread. What crosses threads crosses through a message
that the engine orders (``Message``), or is read after the step.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Callable

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ._accumulate import GradientSums
from ._backward import Gradients, StageBackward
from ._random import DrawFrom, Stream


@dataclass
class Message:
    """What a forward sends to the next stage.

    arguments   positional, with whatever they contain; tensors are leaves that alias the sender's
                outputs and require a gradient where those do
    leaves      those of the tensors that require a gradient, in their order in the tree
    stream      random numbers of the microbatch; null without keyed random numbers
    """

    arguments: tuple[Any, ...]
    leaves: list[torch.Tensor]
    stream: Stream | None


@dataclass
class Step:
    """The data of one step; lists are by microbatch. Each entry is written by one stage."""

    args: list[tuple[Any, ...]]  # of stage 0
    kwargs: list[list[dict[str, Any]]]  # by stage, then by microbatch
    targets: list[Any] | None
    loss_kwargs: dict[str, Any]
    weights: list[float]  # of the losses; a step with backward
    train: bool
    keep_outputs: bool
    streams: list[Stream | None]
    sums: GradientSums | None = None  # a step with backward
    outputs: list[Any] = field(default_factory=list)
    losses: list[torch.Tensor | None] = field(default_factory=list)
    # (microbatch, stage) -> (tensor of the caller, its gradient)
    outside: dict[tuple[int, int], list[tuple[torch.Tensor, torch.Tensor]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.outputs = [None] * len(self.args)
        self.losses = [None] * len(self.args)


@dataclass
class _Live:
    """Of one microbatch, from its forward to its last backward task."""

    backward: StageBackward
    received: int  # so many inputs came from the stage before; the others are the caller's
    outside: list[torch.Tensor]
    loss: torch.Tensor | None


class Stage:
    """One module of the pipeline.

    loss_fn   of the last stage, in a schedule that has one; else null
    """

    def __init__(
        self,
        index: int,
        module: torch.nn.Module,
        is_last: bool,
        loss_fn: Callable[..., torch.Tensor] | None,
    ) -> None:
        self.index = index
        self.module = module
        self._is_last = is_last
        self._loss_fn = loss_fn
        self._parameters: list[torch.Tensor] = []
        self._has_backward = False
        self._live: dict[int, _Live] = {}

    def trainable(self) -> list[torch.Tensor]:
        return [p for p in self.module.parameters() if p.requires_grad]

    def begin(self, parameters: list[torch.Tensor], has_backward: bool) -> None:
        """Before a step. ``parameters``: what ``trainable`` gives; ``has_backward``: whether the
        step has backward tasks of this stage."""
        self._parameters = parameters
        self._has_backward = has_backward

    def end(self) -> None:
        """After a step, also one that failed: gives up all states."""
        self._live.clear()
        self._parameters = []

    def forward(self, step: Step, microbatch: int, message: Message | None) -> Message | None:
        """F. ``message`` is that of the stage before, null for the first; returns that for the
        next, null from the last."""
        arguments, received, stream = (), [], step.streams[microbatch]
        given = step.kwargs[self.index][microbatch]  # by the caller
        if message is None:
            (arguments, kwargs), outside, leaves = _own_leaves((step.args[microbatch], given))
        else:
            arguments, received, stream = message.arguments, message.leaves, message.stream
            kwargs, outside, leaves = _own_leaves(given) if given else (given, [], [])

        with DrawFrom(stream) if stream is not None else nullcontext():
            output = self.module(*arguments, **kwargs)
            loss = self._loss(step, microbatch, output) if self._is_last else None

        following: Message | None = None
        roots = [loss] if loss is not None else []
        if not self._is_last:
            following, roots = _send(output, stream)
        elif step.keep_outputs:
            step.outputs[microbatch] = tree_map(_detach, output)
        if self._has_backward:
            backward = StageBackward(roots, received + leaves, self._parameters)
            loss = None if loss is None else loss.detach()
            self._live[microbatch] = _Live(backward, len(received), outside, loss)
        return following

    def backward(self, step: Step, microbatch: int, gradients: Gradients | None) -> Gradients:
        """B. ``gradients`` are those of the next stage, null for the last stage; returns those for
        the stage before."""
        live = self._live.pop(microbatch)
        to_inputs, to_parameters = live.backward.run(self._seeds(step, microbatch, live, gradients))
        self._add(step, microbatch, to_parameters)
        return self._sort(step, microbatch, live, to_inputs)

    def input_gradient(self, step: Step, microbatch: int, gradients: Gradients | None) -> Gradients:
        """I, as ``backward``; keeps what ``weight_gradient`` needs, if the stage has parameters."""
        live = self._live[microbatch] if self._parameters else self._live.pop(microbatch)
        to_inputs = live.backward.run_input(self._seeds(step, microbatch, live, gradients))
        return self._sort(step, microbatch, live, to_inputs)

    def weight_gradient(self, step: Step, microbatch: int) -> None:
        """W, after I."""
        live = self._live.pop(microbatch)
        self._add(step, microbatch, live.backward.run_weight())

    def _loss(self, step: Step, microbatch: int, output: Any) -> torch.Tensor | None:
        if self._loss_fn is None or step.targets is None:
            return None
        loss = self._loss_fn(output, step.targets[microbatch], **step.loss_kwargs)
        step.losses[microbatch] = loss.detach()
        if step.train and not loss.requires_grad:
            raise RuntimeError("the loss does not depend on anything that requires a gradient")
        return loss

    def _seeds(
        self, step: Step, microbatch: int, live: _Live, gradients: Gradients | None
    ) -> Gradients:
        if live.loss is not None:
            return [torch.full_like(live.loss, step.weights[microbatch])]
        return gradients or []

    def _add(self, step: Step, microbatch: int, gradients: Gradients) -> None:
        assert step.sums is not None, "a step with backward has sums"
        step.sums.add(self.index, microbatch, self._parameters, gradients)

    def _sort(self, step: Step, microbatch: int, live: _Live, found: Gradients) -> Gradients:
        """Keeps the gradients of the caller's tensors, returns those for the stage before."""
        pairs = zip(live.outside, found[live.received :])
        kept = [(tensor, gradient) for tensor, gradient in pairs if gradient is not None]
        if kept:
            step.outside[microbatch, self.index] = kept
        return found[: live.received]


def _send(output: Any, stream: Stream | None) -> tuple[Message, list[torch.Tensor]]:
    """The message for the next stage, and the outputs for which it will return gradients."""
    values, structure = tree_flatten(tuple(output) if type(output) is list else output)
    roots, leaves = [], []
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            values[i] = _cut_off(value)
            if value.requires_grad:
                roots.append(value)
                leaves.append(values[i])
    arguments = tree_unflatten(values, structure)
    return Message(arguments if type(arguments) is tuple else (arguments,), leaves, stream), roots


def _detach(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _cut_off(tensor: torch.Tensor) -> torch.Tensor:
    """A leaf with the same memory, for another graph."""
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _own_leaves(tree: Any) -> tuple[Any, list[torch.Tensor], list[torch.Tensor]]:
    """Replaces the caller's tensors that require a gradient by leaves of this stage.

    Returns the tree, the caller's tensors, and the leaves made for them.
    """
    values, structure = tree_flatten(tree)
    outside, leaves = [], []
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled():
            outside.append(value)
            leaves.append(_cut_off(value))
            values[i] = leaves[-1]
    return tree_unflatten(values, structure), outside, leaves
