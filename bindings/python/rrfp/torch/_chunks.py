# SPDX-License-Identifier: Apache-2.0
"""Cutting the inputs of a step into microbatches, and putting the outputs together again.

The rules are those of ``torch.distributed.pipelining``: tensors are cut along dimension 0 with
``torch.tensor_split`` (so sizes differ by at most one), everything else goes to every microbatch as
it is, and a specification may say otherwise. Chunks are views; nothing is copied.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten


class TensorChunkSpec:
    """Says along which dimension a tensor is cut, or outputs are put together.

    ``torch.distributed.pipelining.microbatch.TensorChunkSpec`` may be used instead: any object with
    ``split_dim`` is read in this way, and any without means "the same for every microbatch".
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"


_ALONG_0 = TensorChunkSpec(0)
_REPLICATE = object()


def split(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    chunks: int,
    args_spec: Sequence[Any] | None = None,
    kwargs_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """Cuts positional and keyword arguments into at most ``chunks`` microbatches.

    There are fewer if a tensor has fewer rows. Returns the arguments of each microbatch.
    """
    arg_leaves, arg_tree = tree_flatten(args)
    kwarg_leaves, kwarg_tree = tree_flatten(kwargs)
    leaves = arg_leaves + kwarg_leaves
    specs = _specs(arg_leaves, args_spec, "args_chunk_spec")
    specs += _specs(kwarg_leaves, kwargs_spec, "kwargs_chunk_spec")
    rows = [leaf.size(spec.split_dim) for leaf, spec in zip(leaves, specs) if _is_cut(spec)]
    count = min([chunks, *rows])
    if count < 1:
        raise ValueError("an input has no rows to make microbatches of")
    columns = [_cut(leaf, spec, count) for leaf, spec in zip(leaves, specs)]
    split_args, split_kwargs = [], []
    for i in range(count):
        row = [column[i] for column in columns]
        split_args.append(tuple(tree_unflatten(row[: len(arg_leaves)], arg_tree)))
        split_kwargs.append(tree_unflatten(row[len(arg_leaves) :], kwarg_tree))
    return split_args, split_kwargs


def split_target(target: Any, chunks: int) -> list[Any]:
    """Cuts a target (a tensor, or a container of tensors) into exactly ``chunks`` along dimension
    0."""
    parts, _ = split((target,), {}, chunks)
    if len(parts) != chunks:
        raise ValueError(f"the target makes {len(parts)} microbatches, the inputs make {chunks}")
    return [part[0] for part in parts]


def merge(chunks: Sequence[Any], spec: Any = None) -> Any:
    """Puts the outputs of the microbatches together.

    Without ``spec``, tensors are joined along dimension 0, scalars are stacked into a vector, and
    what is no tensor becomes the list of its values. ``spec`` has the structure of one output; its
    leaves have ``split_dim`` (join), or ``init_value`` and ``reduce_fn`` (fold), or are anything
    else (the value is the same in each microbatch).
    """
    leaves, tree = tree_flatten(chunks[0])
    columns = [leaves]
    for i, chunk in enumerate(chunks[1:], 1):
        columns.append(tree_flatten(chunk)[0])
        if len(columns[-1]) != len(leaves):
            raise ValueError(
                f"the output of microbatch {i} has {len(columns[-1])} parts, that of microbatch 0 "
                f"has {len(leaves)}: they cannot be merged (return_outputs=False does without)"
            )
    if spec is None:
        return tree_unflatten([_join(list(values)) for values in zip(*columns)], tree)
    specs, spec_tree = tree_flatten(spec)
    if len(specs) != len(leaves):
        raise ValueError(f"output_merge_spec has {len(specs)} parts, the output has {len(leaves)}")
    return tree_unflatten([_merge(list(v), s) for v, s in zip(zip(*columns), specs)], spec_tree)


def _is_cut(spec: Any) -> bool:
    return hasattr(spec, "split_dim")


def _specs(leaves: Sequence[Any], spec: Any, name: str) -> list[Any]:
    if spec is None:
        cut = (isinstance(leaf, torch.Tensor) and leaf.dim() > 0 for leaf in leaves)
        return [_ALONG_0 if yes else _REPLICATE for yes in cut]
    specs, _ = tree_flatten(spec)
    if len(specs) != len(leaves):
        raise ValueError(f"{name} has {len(specs)} parts, the arguments have {len(leaves)}")
    for leaf, part in zip(leaves, specs):
        if _is_cut(part) and not isinstance(leaf, torch.Tensor):
            raise ValueError(f"{name}: {part} for a {type(leaf).__name__}, which is no tensor")
    return specs


def _cut(leaf: Any, spec: Any, count: int) -> Sequence[Any]:
    return torch.tensor_split(leaf, count, spec.split_dim) if _is_cut(spec) else [leaf] * count


def _join(values: list[Any]) -> Any:
    if not isinstance(values[0], torch.Tensor):
        return values
    return torch.cat(values) if values[0].dim() else torch.stack(values)


def _merge(values: list[Any], spec: Any) -> Any:
    if _is_cut(spec):
        return torch.cat(values, dim=spec.split_dim)
    if hasattr(spec, "reduce_fn"):
        total = spec.init_value
        for value in values:
            total = spec.reduce_fn(total, value)
        return total
    return values[0]
