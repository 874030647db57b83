# SPDX-License-Identifier: Apache-2.0
"""Random numbers that depend on the microbatch, not on who draws first.

Torch has one default generator for the process, and rank threads would take numbers from it in the
order of their luck. Here every microbatch of a step has a *stream* of its own:

    The stages of microbatch ``i`` of step ``n`` draw what the unpipelined model would draw after
    ``torch.manual_seed(microbatch_seed(seed, n, i))``.

The state of the stream travels from stage to stage beside the activations, so masks are the same
for every number of stages, hint, placement and order of events. The state of the process's
generator is as before after each draw.

A ``TorchFunctionMode``, which torch keeps per thread, finds the calls that draw: it costs 2 to 4
microseconds for each call of a torch function in a forward. Only the CPU generator is treated.
Functions that draw where Python cannot see it (scripted or compiled modules, extensions in C++)
take from the process's generator; the schedule notices that at the end of the step and warns.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import threading
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode

# Held while the default generator carries the state of a stream.
_generator_lock = threading.Lock()

_DRAWS = frozenset(
    """
    alpha_dropout alpha_dropout_ bernoulli bernoulli_ binomial cauchy_ dropout dropout_
    dropout1d dropout2d dropout3d exponential_ feature_alpha_dropout feature_alpha_dropout_
    feature_dropout feature_dropout_ fractional_max_pool2d
    fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices geometric_ gumbel_softmax kaiming_normal_
    kaiming_uniform_ log_normal_ multinomial native_dropout normal normal_ pca_lowrank
    poisson rand rand_like randint randint_like randn randn_like random_ randperm rrelu
    rrelu_ rrelu_with_noise svd_lowrank trunc_normal_ uniform_ xavier_normal_
    xavier_uniform_
    """.split()
)
# These are long and draw only if a probability, at this position, is not zero.
_MAY_DRAW: dict[str, int] = {
    "multi_head_attention_forward": 10,
    "scaled_dot_product_attention": 4,
    "lstm": 5,
    "gru": 5,
    "rnn_tanh": 5,
    "rnn_relu": 5,
}


def microbatch_seed(seed: int, step: int, microbatch: int) -> int:
    """The seed of the stream of a microbatch; see the rule at the top of this module."""
    key = struct.pack("<QQQ", seed & (2**64 - 1), step & (2**64 - 1), microbatch)
    return int.from_bytes(hashlib.blake2b(key, digest_size=4).digest(), "little")


class Stream:
    """The random numbers of one microbatch; used by one thread at a time."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._state: torch.Tensor | None = None  # null until something is drawn

    def draw(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        generator = torch.default_generator
        with _generator_lock:
            before = generator.get_state()
            try:
                if self._state is None:
                    generator.manual_seed(self._seed)
                else:
                    generator.set_state(self._state)
                result = function(*args, **kwargs)
                self._state = generator.get_state()
            finally:
                generator.set_state(before)
        return result


class DrawFrom(TorchFunctionMode):
    """In this context, in this thread, what torch functions draw comes from ``stream``.

    Calls with a generator of their own keep it.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not _may_draw(func, args, kwargs):
            return func(*args, **kwargs)
        if _inside_checkpoint():
            raise RuntimeError(
                f"{func.__name__} draws random numbers inside torch.utils.checkpoint, which would "
                "get other numbers when it repeats the forward; with seed=None in the schedule "
                "nobody checks that"
            )
        return self._stream.draw(func, args, kwargs)


def generator_state() -> torch.Tensor:
    """The state of the process's generator, not while a stream is in it."""
    with _generator_lock:
        return torch.default_generator.get_state()


def _inside_checkpoint() -> bool:
    """Whether a caller is torch's checkpointing, which knows only the process's generator."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch.utils.checkpoint":
            return True
        frame = frame.f_back
    return False


def _may_draw(function: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    name = getattr(function, "__name__", "")
    if name in _DRAWS:
        if "dropout" in name:  # as a module or a function of torch.nn it names what it is given
            return bool(kwargs.get("p", 1.0)) and kwargs.get("training", True) is not False
        return kwargs.get("generator") is None
    position = _MAY_DRAW.get(name)
    if position is None:
        return False
    probability = args[position] if len(args) > position else kwargs.get("dropout_p", 0.0)
    return bool(probability)
