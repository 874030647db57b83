# SPDX-License-Identifier: Apache-2.0
"""Models: graphs of operations, grouped in blocks, which a trainer cuts into stages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Mapping, NewType, Sequence

import numpy

from . import _native, _raw
from ._support import fill, integers, report_of, text_of
from .enums import Init, dtype_code, parse

__all__ = ["Model", "ModelInfo", "Value", "Parameter"]

#: Numbers of values (inputs, outputs of operations) and of parameters; each counts from 0.
Value = NewType("Value", int)
Parameter = NewType("Parameter", int)


@dataclass(frozen=True)
class ModelInfo:
    inputs: int
    values: int
    parameters: int
    blocks: int
    losses: int
    parameter_elements: int
    trainable_elements: int


class Model:
    """A graph of operations::

        model = rrfp.Model()
        x = model.input("x", (-1, 8))
        y = model.input("y", (-1, 1))
        with_bias = model.parameter("w", (1, 8)), model.parameter("b", (1,))
        model.begin_block()
        model.set_loss(model.squared_error(model.linear(x, *with_bias), y))

    Operations are added to the block that was begun last; stages are runs of whole blocks. "rows"
    are all axes but the last, d is the last extent. A trainer copies the model. Use it from one
    thread at a time.
    """

    def __init__(self) -> None:
        self._handle = _raw.rrfp_model_create()
        self._inputs: list[int] = []  # element type of each

    @classmethod
    def _of(cls, handle: Any) -> "Model":
        """A built-in model: all inputs are int32, but for the pictures, the last of six."""
        model = cls.__new__(cls)
        model._handle = handle
        model._inputs = [_raw.RRFP_I32] * model.info.inputs
        if len(model._inputs) == _raw.RRFP_SAMPLES_INPUTS:
            model._inputs[-1] = _raw.RRFP_F32
        return model

    @classmethod
    def gpt(cls, *, vocabulary: int, context: int, layers: int, dim: int, heads: int,
            kv_heads: int = 0, hidden: int = 0, dropout: float = 0.0, tied: bool = False,
            rotary: bool = False, rms_norm: bool = False, swiglu: bool = False) -> "Model":
        """A decoder-only language model: inputs "tokens" and "targets", both int32 [B, T]; blocks:
        embedding, one per layer, head.

        Args:
            context: the longest sequence.
            kv_heads: 0 = heads.
            hidden: of the feed-forward layers; 0 = 4 dim, with `swiglu` 8/3 dim rounded up to 8.
            tied: the embedding is also the output layer.
            rotary: instead of learned positions.
            rms_norm, swiglu: instead of layer norm, of GELU.
        """
        return cls._of(_raw.rrfp_model_create_gpt(_gpt_options(
            vocabulary=vocabulary, context=context, layers=layers, dim=dim, heads=heads,
            kv_heads=kv_heads, hidden=hidden, dropout=dropout, tied=tied, rotary=rotary,
            rms_norm=rms_norm, swiglu=swiglu)))

    @classmethod
    def vision_language(cls, *, language: Mapping[str, Any],
                        vision: Mapping[str, Any]) -> "Model":
        """A language model that reads pictures: an encoder makes (image_size / patch)^2 rows of
        each picture, a projector turns them into rows of the language model's width, and these take
        the places of marked tokens. Several samples may lie in one sequence, side by side.

        Inputs, all int32 [B, T] but the last one; :meth:`rrfp.Samples.read` makes them:

            tokens     ids below the vocabulary
            targets    the next token, or -100 where there is nothing to predict
            segments   the sample of each position, a run of equal numbers
            positions  of each position in its sample, 0 .. context - 1
            sources    -1, or the row that takes this place: k (image_size / patch)^2 + p for patch
                       p of picture k of the microbatch
            images     float32 [N, image_size, image_size, 3], N >= 0

        Blocks: "vision.embedding", "vision.layers.<i>", "projector", "embedding", "layers.<i>",
        "head". See :meth:`place` for the stages of such a model.

        Args:
            language: the arguments of :meth:`gpt`.
            vision: image_size and patch (pixels a side; patch divides image_size), layers, dim,
                heads; hidden (of the feed-forward layers; 0 = 4 dim), frozen (the encoder is not
                trained; the projector is), conv_stem (convolutions instead of one linear layer
                make the patches; patch is a power of two then, at least 4).
        """
        return cls._of(_raw.rrfp_model_create_vision_language(_gpt_options(**language),
                                                              _vision_options(**vision)))

    @classmethod
    def from_checkpoint(cls, path: str | PathLike) -> "Model":
        """The model that a checkpoint was made from, if that was made by :meth:`gpt` or
        :meth:`vision_language`."""
        return cls._of(_raw.rrfp_model_create_from_checkpoint(fspath(path)))

    # ---- Building -------------------------------------------------------------------------------

    def begin_block(self, name: str | None = None, *, recompute: bool = False) -> int:
        """Begins the next block. With `recompute` only what enters it is kept, and the rest is
        computed again for backward."""
        flags = _raw.RRFP_BLOCK_RECOMPUTE if recompute else 0
        return _raw.rrfp_model_begin_block(self._handle, name, flags)

    def input(self, name: str, shape: Sequence[int], dtype: Any = "float32") -> Value:
        """An input, float32 or int32, which every microbatch gives anew; -1 where extents may
        differ. An extent may be 0: a microbatch without pictures has [0, ..] of them."""
        code = dtype_code(dtype)
        value = _raw.rrfp_model_add_input(self._handle, name, code, tuple(shape))
        self._inputs.append(code)
        return Value(value)

    def parameter(self, name: str, shape: Sequence[int], *, init: Init | str = Init.CONSTANT,
                  value: float = 0.0, scale: float = 0.0, frozen: bool = False,
                  decay: bool = True) -> Parameter:
        """A float32 parameter with a name that is unique in the model.

        Args:
            init: "constant" (every element is `value`), "normal" (around `value`, with the standard
                deviation `scale`) or "uniform" (value - scale .. value + scale). Random numbers are
                a function of the trainer's seed and the name.
            frozen: it is not trained.
            decay: weight decay applies.
        """
        extents = numpy.array(tuple(shape), dtype=numpy.int64)
        flags = (frozen * _raw.RRFP_PARAMETER_FROZEN
                 | (not decay) * _raw.RRFP_PARAMETER_NO_DECAY)
        return Parameter(_raw.rrfp_model_add_parameter(self._handle, fill(
            _raw.rrfp_parameter_options(), name=name, shape=extents, ndim=len(extents),
            init=parse(Init, init), init_value=value, init_scale=scale, flags=flags)))

    def _add(self, op: int, inputs: Sequence[int], parameters: Sequence[int] = (),
             **fields: Any) -> Value:
        return Value(_raw.rrfp_model_add_operation(self._handle, fill(
            _raw.rrfp_operation(), op=op, inputs=numpy.array(inputs, dtype=numpy.int32),
            parameters=numpy.array(parameters, dtype=numpy.int32), input_count=len(inputs),
            parameter_count=len(parameters), **fields)))

    def linear(self, x: Value, weight: Parameter, bias: Parameter | None = None) -> Value:
        """[.., in] -> [.., out]; weight [out, in], bias [out]."""
        return self._add(_raw.RRFP_OP_LINEAR, (x,), _without_none(weight, bias))

    def embedding(self, ids: Value, table: Parameter) -> Value:
        """int32 [..] -> [.., d]; table [vocabulary, d]."""
        return self._add(_raw.RRFP_OP_EMBEDDING, (ids,), (table,))

    def positions(self, x: Value, table: Parameter) -> Value:
        """x [.., T, d] + table[0 .. T-1]; table [at least T, d]."""
        return self._add(_raw.RRFP_OP_POSITIONS, (x,), (table,))

    def rotary(self, x: Value, positions: Value | None = None, *, heads: int, head_dim: int,
               base: float = 10000.0) -> Value:
        """x [.., T, d]: turns the first `heads` heads of `head_dim`, by int32 positions [.., T], or
        by 0 .. T - 1."""
        return self._add(_raw.RRFP_OP_ROTARY, _without_none(x, positions), heads=heads,
                         head_dim=head_dim, base=base)

    def layer_norm(self, x: Value, gamma: Parameter, beta: Parameter | None = None, *,
                   epsilon: float = 1e-5) -> Value:
        """Over the last axis; gamma [d], beta [d]."""
        return self._add(_raw.RRFP_OP_LAYER_NORM, (x,), _without_none(gamma, beta),
                         epsilon=epsilon)

    def rms_norm(self, x: Value, gamma: Parameter, *, epsilon: float = 1e-5) -> Value:
        return self._add(_raw.RRFP_OP_RMS_NORM, (x,), (gamma,), epsilon=epsilon)

    def gelu(self, x: Value) -> Value:
        """The tanh form."""
        return self._add(_raw.RRFP_OP_GELU, (x,))

    def silu(self, x: Value) -> Value:
        """x sigmoid(x)"""
        return self._add(_raw.RRFP_OP_SILU, (x,))

    def swiglu(self, gate: Value, up: Value) -> Value:
        """silu(gate) up"""
        return self._add(_raw.RRFP_OP_SWIGLU, (gate, up))

    def attention(self, q: Value, k: Value | None = None, v: Value | None = None, *, heads: int,
                  kv_heads: int = 0, causal: bool = False,
                  segments: Value | None = None) -> Value:
        """q [B, T, heads * head_dim], k and v [B, S, kv_heads * head_dim], or all three side by
        side in one value, gives [B, T, heads * head_dim]; with `causal` position t sees 0 .. t
        only. With int32 `segments` [B, T], which pack several samples into a sequence (S = T), a
        position sees those of its own segment only, a run of equal numbers."""
        return self._add(_raw.RRFP_OP_ATTENTION, _without_none(q, k, v, segments), heads=heads,
                         kv_heads=kv_heads, flags=_raw.RRFP_OP_CAUSAL if causal else 0)

    def patches(self, pictures: Value, *, kernel: int, stride: int, padding: int = 0) -> Value:
        """[N, H, W, C] -> [N, H', W', kernel * kernel * C]: the squares of `kernel` pixels a side,
        `stride` apart, with `padding` pixels of 0 around the picture; H' = (H + 2 padding -
        kernel) / stride + 1. A linear layer behind it makes it a convolution."""
        return self._add(_raw.RRFP_OP_PATCHES, (pictures,), kernel=kernel, stride=stride,
                         padding=padding)

    def merge_rows(self, x: Value, rows: Value, sources: Value) -> Value:
        """x [.., d], rows [.., d], int32 sources of x's rows -> the shape of x: row r is row
        sources[r] of `rows`, or that of x where sources[r] is -1."""
        return self._add(_raw.RRFP_OP_MERGE_ROWS, (x, rows, sources))

    def dropout(self, x: Value, probability: float) -> Value:
        """In training steps only."""
        return self._add(_raw.RRFP_OP_DROPOUT, (x,), probability=probability)

    def add(self, a: Value, b: Value) -> Value:
        return self._add(_raw.RRFP_OP_ADD, (a, b))

    def mul(self, a: Value, b: Value) -> Value:
        return self._add(_raw.RRFP_OP_MUL, (a, b))

    def concat(self, values: Sequence[Value], axis: int = -1) -> Value:
        """1 or more values along an axis."""
        return self._add(_raw.RRFP_OP_CONCAT, tuple(values), axis=axis)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """0 = the extent at that place, one -1 = what is left."""
        extents = numpy.array(tuple(shape), dtype=numpy.int64)
        return self._add(_raw.RRFP_OP_RESHAPE, (x,), shape=extents, ndim=len(extents))

    def mean(self, x: Value, axis: int = -1) -> Value:
        """Over an axis, which goes away."""
        return self._add(_raw.RRFP_OP_MEAN, (x,), axis=axis)

    def cross_entropy(self, logits: Value, targets: Value, *, ignore_index: int = -100) -> Value:
        """logits [.., classes], int32 targets [..] -> [..]"""
        return self._add(_raw.RRFP_OP_CROSS_ENTROPY, (logits, targets), ignore_index=ignore_index)

    def squared_error(self, a: Value, b: Value) -> Value:
        return self._add(_raw.RRFP_OP_SQUARED_ERROR, (a, b))

    def set_loss(self, value: Value) -> None:
        """The value whose elements are the losses; the loss of a microbatch is their sum. Its
        weight in the mean over a batch is the number of its elements, for a cross-entropy of those
        not ignored."""
        _raw.rrfp_model_set_loss(self._handle, value)

    def add_loss(self, value: Value, factor: float = 1.0) -> None:
        """One more loss, such as that of a second head, after :meth:`set_loss`. Each is reduced by
        itself, multiplied by its factor (finite; 1 for the first), and added up; one that counts
        nothing in a batch adds 0. No operation may read a loss. See
        :meth:`rrfp.Trainer.losses`."""
        _raw.rrfp_model_add_loss(self._handle, value, factor)

    def set_output(self, value: Value) -> None:
        """The value that predictions are read from, such as logits [B, T, vocabulary]."""
        _raw.rrfp_model_set_output(self._handle, value)

    # ---- Looking --------------------------------------------------------------------------------

    @property
    def info(self) -> ModelInfo:
        return report_of(ModelInfo, _raw.rrfp_model_get_info(self._handle))

    def value_shape(self, value: Value) -> tuple[int, ...]:
        """-1 where extents vary."""
        return _raw.rrfp_model_value_shape(self._handle, value)

    def parameter_names(self) -> list[str]:
        return [text_of(_raw.rrfp_model_parameter_name, self._handle, parameter)
                for parameter in range(self.info.parameters)]

    def parameter_shape(self, parameter: Parameter) -> tuple[int, ...]:
        return _raw.rrfp_model_parameter_shape(self._handle, parameter)

    def describe(self) -> dict[str, Any]:
        """The model and its options, for people and logs."""
        return json.loads(text_of(_raw.rrfp_model_describe, self._handle))

    def measure(self, inputs: Sequence[Any]) -> numpy.ndarray:
        """Nanoseconds of each block, forward and backward, the median of a few runs on this thread.
        `inputs` has an array for each input of the model. Sets OpenBLAS to one thread."""
        if len(inputs) != self.info.inputs:
            raise ValueError(f"{len(inputs)} inputs were given; {self.info.inputs} are expected")
        tensors = _native.tensors([as_input(array, code)
                                   for array, code in zip(inputs, self._inputs)])
        block_ns = numpy.zeros(self.info.blocks, dtype=numpy.int64)
        _raw.rrfp_model_measure(self._handle, tensors, block_ns)
        return block_ns

    def partition(self, stages: int, block_costs: Any = None) -> list[int]:
        """Cuts the blocks into runs so that the most expensive one is as cheap as possible: the
        first block of each stage. `block_costs`, whole numbers in any unit, one per block, may come
        from :meth:`measure`."""
        costs = self._costs(block_costs)
        first_blocks = numpy.zeros(max(stages, 1), dtype=numpy.int32)
        _raw.rrfp_model_partition(self._handle, stages, costs, first_blocks)
        return first_blocks.tolist()

    def place(self, stages: int, ranks: int,
              block_costs: Any = None) -> tuple[list[int], list[int]]:
        """The same for a model with branches, such as encoders and a text embedding that feed one
        language model: no stage has blocks of two branches, and stages go to ranks by longest
        processing time first (Graham 1969): the busiest rank has at most 4/3 of the least that it
        could have. A branch is a run of blocks of which each reads the one before it; a block at
        which branches meet for the first time begins a new one.

        Returns the first block and the rank of each stage, for the options `first_blocks` and
        `stage_ranks` of :class:`rrfp.Trainer`; every rank has 1 or more stages. Raises
        :class:`rrfp.OutOfRange` unless branches <= stages <= blocks and 1 <= ranks <= stages."""
        costs = self._costs(block_costs)
        first_blocks, stage_ranks = (numpy.zeros(max(stages, 1), dtype=numpy.int32)
                                     for _ in range(2))
        _raw.rrfp_model_place(self._handle, stages, ranks, costs, first_blocks, stage_ranks)
        return first_blocks.tolist(), stage_ranks.tolist()

    def _costs(self, block_costs: Any) -> numpy.ndarray | None:
        if block_costs is None:
            return None
        costs = integers(block_costs, numpy.int64)
        if costs.shape != (self.info.blocks,):
            raise ValueError(f"block_costs has shape {costs.shape}; {self.info.blocks} blocks are "
                             "expected")
        return costs


def _gpt_options(*, vocabulary: int, context: int, layers: int, dim: int, heads: int,
                 kv_heads: int = 0, hidden: int = 0, dropout: float = 0.0, tied: bool = False,
                 rotary: bool = False, rms_norm: bool = False, swiglu: bool = False) -> Any:
    flags = (tied * _raw.RRFP_GPT_TIED | rotary * _raw.RRFP_GPT_ROTARY
             | rms_norm * _raw.RRFP_GPT_RMS_NORM | swiglu * _raw.RRFP_GPT_SWIGLU)
    return fill(_raw.rrfp_gpt_options(), vocabulary=vocabulary, context=context, layers=layers,
                dim=dim, heads=heads, kv_heads=kv_heads, hidden=hidden, dropout=dropout,
                flags=flags)


def _vision_options(*, image_size: int, patch: int, layers: int, dim: int, heads: int,
                    hidden: int = 0, frozen: bool = False, conv_stem: bool = False) -> Any:
    flags = frozen * _raw.RRFP_VISION_FROZEN | conv_stem * _raw.RRFP_VISION_CONV_STEM
    return fill(_raw.rrfp_vision_options(), image_size=image_size, patch=patch, layers=layers,
                dim=dim, heads=heads, hidden=hidden, flags=flags)


def _without_none(*items: Any) -> tuple[Any, ...]:
    return tuple(item for item in items if item is not None)


_INPUT_TYPES = {_raw.RRFP_F32: numpy.float32, _raw.RRFP_I32: numpy.int32}


def as_input(array: Any, code: int | None) -> Any:
    """An input of a microbatch. Arrays and whatever speaks DLPack are taken as they are, and the
    library says if their type is wrong; lists become arrays."""
    if isinstance(array, numpy.ndarray) or hasattr(array, "__dlpack__"):
        return array
    return numpy.asarray(array, dtype=_INPUT_TYPES.get(code))
