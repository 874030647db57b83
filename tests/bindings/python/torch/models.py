# SPDX-License-Identifier: Apache-2.0
"""Models, and the unpipelined loop that results are compared with."""

from __future__ import annotations

import os

# Before torch is loaded: its BLAS must not start threads that compete with the ranks.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any, Callable, Sequence  # noqa: E402

import rrfp.torch  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

torch.set_num_threads(1)

ANY_LAYOUT = ("gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2")
TWO_A_RANK = (
    "interleaved",
    "looped-bfs",
    "interleaved-zb",
    "zb-v",
    "v-half",
    "v-min",
    "dualpipe-v",
)


class Scale(nn.Module):
    """The stage of the toy chain: multiplies by one weight."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


class Block(nn.Module):
    """A residual block in which dropout is once a module and once a function."""

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.drop = nn.Dropout(dropout)
        self.down = nn.Linear(2 * width, width)
        self.dropout = dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.down(self.drop(nn.functional.gelu(self.up(self.norm(x)))))
        return x + nn.functional.dropout(hidden, self.dropout, self.training)


def blocks(count: int, width: int = 16, dropout: float = 0.0, seed: int = 1) -> list[nn.Module]:
    torch.manual_seed(seed)
    return [Block(width, dropout) for _ in range(count)]


def cut(layers: Sequence[nn.Module], stages: int) -> list[nn.Module]:
    """The layers as so many stages."""
    bounds = [len(layers) * s // stages for s in range(stages + 1)]
    return [nn.Sequential(*layers[a:b]) for a, b in zip(bounds, bounds[1:])]


def mean_of_outputs(output: torch.Tensor, target: Any) -> torch.Tensor:
    return output.mean()


def gradients(modules: Sequence[nn.Module]) -> list[torch.Tensor | None]:
    """Of all parameters, each once; takes them away."""
    seen = {id(p): p for m in modules for p in m.parameters()}.values()
    found = [p.grad for p in seen]
    for parameter in seen:
        parameter.grad = None
    return found


def unpipelined(
    forward: Callable[..., Any],
    loss_fn: Callable[..., torch.Tensor],
    arg_mbs: Sequence[tuple[Any, ...]],
    target_mbs: Sequence[Any],
    weights: Sequence[float] | None = None,
    seed: int = 0,
    step: int = 0,
) -> tuple[list[Any], list[torch.Tensor]]:
    """Outputs and losses of the microbatches, one after another; gradients are added to
    ``.grad``."""
    outputs, losses = [], []
    for i, (args, target) in enumerate(zip(arg_mbs, target_mbs)):
        torch.manual_seed(rrfp.torch.microbatch_seed(seed, step, i))
        output = forward(*args)
        loss = loss_fn(output, target)
        (loss * (weights[i] if weights else 1 / len(arg_mbs))).backward()
        outputs.append(output)
        losses.append(loss.detach())
    return outputs, losses


def chain(modules: Sequence[nn.Module]) -> Callable[..., Any]:
    """The stages one after another, without a pipeline."""

    def forward(*args: Any) -> Any:
        for module in modules[:-1]:
            output = module(*args)
            args = output if type(output) is tuple else (output,)
        return modules[-1](*args)

    return forward
