# SPDX-License-Identifier: Apache-2.0
"""Token sequences from files."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import Sequence

import numpy

from . import _native, _raw
from ._support import fill, report_of
from .enums import DataFormat, Split, parse

__all__ = ["Data", "DataInfo"]


@dataclass(frozen=True)
class DataInfo:
    vocabulary: int
    tokens: int
    train_windows: int
    validation_windows: int
    unigram_entropy: float  #: nats per token, over the whole stream


class Data:
    """A stream of tokens from files, cut into windows. It never changes; any thread may read.

    Args:
        paths: a file or folder, or several; folders with all that is below them.
        context: tokens of a sample.
        format: "bytes" (any file; the vocabulary is 256), "u16" or "u32" (little-endian token ids).
        vocabulary: for u16 and u32.
        validation_share: of the windows, spread evenly.
        seed: of the order of the training windows.
    """

    def __init__(self, paths: str | PathLike | Sequence[str | PathLike], *, context: int,
                 format: DataFormat | str = DataFormat.BYTES, vocabulary: int = 0,
                 validation_share: float = 0.1, seed: int = 0):
        if isinstance(paths, (str, PathLike)):
            paths = (paths,)
        names = tuple(fspath(path) for path in paths)
        self._handle = _raw.rrfp_data_open(fill(
            _raw.rrfp_data_options(), format=parse(DataFormat, format), paths=_native.names(names),
            path_count=len(names), vocabulary=vocabulary, context=context,
            validation_share=validation_share, seed=seed))
        self._context = context

    @property
    def context(self) -> int:
        """Tokens of a sample."""
        return self._context

    @property
    def info(self) -> DataInfo:
        return report_of(DataInfo, _raw.rrfp_data_get_info(self._handle))

    def read(self, position: int, samples: int,
             split: Split | str = Split.TRAIN) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Samples position .. position + samples - 1: tokens and the tokens that follow them, both
        int32 [samples, context]. Training samples are an endless run through the windows, in
        another order in every epoch, and a function of the position alone."""
        shape = (max(samples, 0), self.context)
        tokens, targets = (numpy.empty(shape, dtype=numpy.int32) for _ in range(2))
        _raw.rrfp_data_read(self._handle, parse(Split, split), position, samples, tokens, targets)
        return tokens, targets

    def batch(self, position: int, samples: int, microbatches: int,
              split: Split | str = Split.TRAIN) -> list[tuple[numpy.ndarray, numpy.ndarray]]:
        """The same, cut into equal microbatches as :meth:`rrfp.Trainer.step` takes them."""
        if microbatches < 1 or samples % microbatches != 0:
            raise ValueError(f"{samples} samples cannot be cut into {microbatches} microbatches")
        tokens, targets = self.read(position, samples, split)
        size = samples // microbatches
        return [(tokens[i:i + size], targets[i:i + size]) for i in range(0, samples, size)]
