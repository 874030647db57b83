# SPDX-License-Identifier: Apache-2.0
"""Adding the gradients of microbatches into ``.grad``, in an order that depends on nothing but the
data.

The engine runs the weight gradients of a stage in the order of the microbatches, so a parameter of
one stage is simply added to. A parameter of several stages (tied embedding) gets gradients from
several threads, each at its own time: they are kept until the microbatch is complete, then added up
from the last stage to the first, as autograd does in a model that is not cut, and then into
``.grad`` in the order of the microbatches. What is kept is at most one gradient of that parameter
for each microbatch in flight and stage.
"""

from __future__ import annotations

import threading
from typing import Sequence

import torch


def add_gradient(parameter: torch.Tensor, gradient: torch.Tensor) -> None:
    """``parameter.grad += gradient``; never keeps ``gradient`` itself, which others may see."""
    if parameter.grad is None:
        parameter.grad = gradient.detach().clone()
    else:
        parameter.grad += gradient  # neither requires a gradient


class GradientSums:
    """Where the stages put gradients during one step.

    parameters   of each stage, trainable ones, each once per stage
    in_order     false: parameters of several stages are added to as gradients come, to keep none
    Threads: ``add`` from any thread, for each stage in the order of the microbatches.
    """

    def __init__(self, parameters: Sequence[Sequence[torch.Tensor]], in_order: bool = True) -> None:
        holders: dict[int, list[int]] = {}
        for stage, of_stage in enumerate(parameters):
            for parameter in of_stage:
                holders.setdefault(id(parameter), []).append(stage)
        self._shared = {
            key: _Shared(sorted(stages, reverse=True), in_order)
            for key, stages in holders.items()
            if len(stages) > 1
        }

    def add(
        self,
        stage: int,
        microbatch: int,
        parameters: Sequence[torch.Tensor],
        gradients: Sequence[torch.Tensor | None],
    ) -> None:
        for parameter, gradient in zip(parameters, gradients):
            shared = self._shared.get(id(parameter))
            if shared is not None:
                shared.add(stage, microbatch, parameter, gradient)
            elif gradient is not None:
                add_gradient(parameter, gradient)


class _Shared:
    """One parameter of several stages."""

    def __init__(self, stages: list[int], in_order: bool) -> None:
        self._stages = stages  # from the last to the first
        self._in_order = in_order
        self._lock = threading.Lock()
        self._next = 0  # the microbatch whose gradients are added next
        self._kept: dict[int, dict[int, torch.Tensor | None]] = {}

    def add(
        self, stage: int, microbatch: int, parameter: torch.Tensor, gradient: torch.Tensor | None
    ) -> None:
        with self._lock:
            if not self._in_order:
                if gradient is not None:
                    add_gradient(parameter, gradient)
                return
            self._kept.setdefault(microbatch, {})[stage] = gradient
            while len(self._kept.get(self._next, ())) == len(self._stages):
                complete = self._kept.pop(self._next)
                self._next += 1
                present = [complete[s] for s in self._stages if complete[s] is not None]
                if present:
                    add_gradient(parameter, _sum(present))


def _sum(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    total = gradients[0]
    for gradient in gradients[1:]:
        total = total + gradient
    return total
