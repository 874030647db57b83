# SPDX-License-Identifier: Apache-2.0
"""Pictures and text from files."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, NamedTuple, Sequence

import numpy

from . import _raw
from ._support import close_at_exit, fill, integers, report_of
from .enums import Grouping, Split, parse

__all__ = ["Samples", "SamplesInfo", "PackedSamples", "TOKEN_IMAGE", "TOKEN_END",
           "SAMPLES_VOCABULARY", "read_picture"]

TOKEN_IMAGE = _raw.RRFP_TOKEN_IMAGE  #: where the rows of a picture go
TOKEN_END = _raw.RRFP_TOKEN_END  #: ends each sample
SAMPLES_VOCABULARY = _raw.RRFP_SAMPLES_VOCABULARY  #: the bytes and these

#: Element types of the inputs of :meth:`rrfp.Model.vision_language`.
INPUT_TYPES = (_raw.RRFP_I32,) * (_raw.RRFP_SAMPLES_INPUTS - 1) + (_raw.RRFP_F32,)


@dataclass(frozen=True)
class SamplesInfo:
    train_samples: int
    validation_samples: int
    images: int  #: of both
    images_max: int  #: of one sample
    tokens: int  #: of both, those of pictures and ends counted


class PackedSamples(NamedTuple):
    """A microbatch: samples side by side in one sequence of T tokens, and their N pictures."""

    tokens: numpy.ndarray  #: int32 [1, T]
    targets: numpy.ndarray  #: int32 [1, T]; -100 before rows of pictures and behind ends
    segments: numpy.ndarray  #: int32 [1, T]: the sample of each position
    positions: numpy.ndarray  #: int32 [1, T]: of each position in its sample
    sources: numpy.ndarray  #: int32 [1, T]: -1, or the row of a picture that takes this place
    images: numpy.ndarray  #: float32 [N, image_size, image_size, 3], N >= 0


class Samples:
    """The samples of a manifest, a file of JSON lines, each an object with

        "text"    more than spaces and marks: every picture is marked by "<image>"
        "images"  optional: paths of PNG files, relative to the manifest's folder, one for each mark

    A token of text is a byte, a picture is `image_tokens` tokens, and each sample ends with an end
    token. Pictures are decoded ahead of their use on a thread that this owns. One thread at a time
    may use it; another one gets :class:`rrfp.Busy`.

    Args:
        path: of the manifest.
        image_size: pixels a side that pictures are resized to; transparent is white.
        image_tokens: rows that the model makes of a picture: (image_size / patch)^2.
        context: most tokens of a sample.
        grouping: of samples into microbatches: "count" (in their order, numbers that differ by at
            most one) or "cost" (so that microbatches cost alike). A function of the data alone.
        ahead: samples that may be decoded ahead of use; 0 = 64.
        validation_share: of the samples, spread evenly.
        image_cost: of a picture in the encoder, in tokens of text; 0 = image_tokens.
        seed: of the order of the training samples.
        pixels_max: of a picture in its file; 0 = 2^24.

    Raises:
        rrfp.FileError, rrfp.DataError: naming the file and the line: one that is no JSON object,
            empty text, marks and pictures that differ in number, a sample longer than `context`, a
            picture that is missing, is no PNG file or has more than `pixels_max` pixels.
    """

    def __init__(self, path: str | PathLike, *, image_size: int, image_tokens: int, context: int,
                 grouping: Grouping | str = Grouping.COUNT, ahead: int = 0,
                 validation_share: float = 0.1, image_cost: float = 0.0, seed: int = 0,
                 pixels_max: int = 0):
        self._handle = _raw.rrfp_samples_open(fill(
            _raw.rrfp_samples_options(), grouping=parse(Grouping, grouping), path=fspath(path),
            image_size=image_size, image_tokens=image_tokens, context=context, ahead=ahead,
            validation_share=validation_share, image_cost=image_cost, seed=seed,
            pixels_max=pixels_max))
        close_at_exit(self)

    @property
    def info(self) -> SamplesInfo:
        return report_of(SamplesInfo, _raw.rrfp_samples_get_info(self._handle))

    def read(self, position: int, count: int, microbatches: int,
             split: Split | str = Split.TRAIN) -> list[PackedSamples]:
        """Samples position .. position + count - 1 in so many microbatches (1 .. count), as
        :meth:`rrfp.Trainer.step` takes them. Training samples are an endless run through the
        manifest, every epoch in another order; validation sample p is that at p modulo their
        number. Both are a function of the position alone.

        Waits until the pictures are decoded; :class:`rrfp.DataError` if one cannot be. The arrays
        are copies, which stay: the library's own memory is that of the last read only."""
        return _packed(_raw.rrfp_samples_read(self._handle, parse(Split, split), position, count,
                                              microbatches))

    def read_at(self, positions: Sequence[int], microbatches: int,
                split: Split | str = Split.TRAIN) -> list[PackedSamples]:
        """The same for samples from anywhere; nothing is decoded ahead."""
        array = integers(positions, numpy.uint64)
        if array.ndim != 1:
            raise ValueError(f"positions has shape {array.shape}; a list is expected")
        return _packed(_raw.rrfp_samples_read_at(self._handle, parse(Split, split), array,
                                                 len(array), microbatches))

    #: What :meth:`rrfp.Trainer.fit` calls.
    batch = read

    def close(self) -> None:
        """Frees it and ends its thread."""
        self._handle.close()

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def __enter__(self) -> "Samples":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


_TYPES = {_raw.RRFP_F32: numpy.float32, _raw.RRFP_I32: numpy.int32}


def _packed(tensors: Sequence[tuple[int, tuple[int, ...], bytearray]]) -> list[PackedSamples]:
    arrays = [numpy.ndarray(shape, _TYPES[code], memory) for code, shape, memory in tensors]
    size = len(PackedSamples._fields)
    return [PackedSamples(*arrays[i:i + size]) for i in range(0, len(arrays), size)]


def read_picture(path: str | PathLike, image_size: int, *, pixels_max: int = 0) -> numpy.ndarray:
    """Decodes and resizes one PNG file as those of samples are: float32 [image_size, image_size,
    3], -1 .. 1. Raises :class:`rrfp.FileError`, or :class:`rrfp.DataError` also if it has more than
    `pixels_max` pixels (0 = 2^24)."""
    size = max(image_size, 0)
    pixels = numpy.empty((size, size, 3), dtype=numpy.float32)
    _raw.rrfp_picture_read(fspath(path), image_size, pixels_max, pixels)
    return pixels
