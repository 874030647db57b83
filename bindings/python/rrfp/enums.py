# SPDX-License-Identifier: Apache-2.0
"""Named numbers of the C interface. Wherever one is wanted its name as a string will do too, in
lower case: ``order="strict"``."""

from __future__ import annotations

import enum
from typing import TypeVar

from . import _raw

__all__ = ["Kind", "Placement", "Order", "Wake", "Mode", "Events", "Injection", "Slot", "Split"]


class Kind(enum.IntEnum):
    """What a task computes."""

    FORWARD = _raw.RRFP_FORWARD
    BACKWARD = _raw.RRFP_BACKWARD
    INPUT_GRADIENT = _raw.RRFP_INPUT_GRADIENT
    WEIGHT_GRADIENT = _raw.RRFP_WEIGHT_GRADIENT

    @property
    def letter(self) -> str:
        """F, B, I or W, as in schedule texts."""
        return "FBIW"[self]

    @classmethod
    def of(cls, value: "Kind | int | str") -> "Kind":
        """From a letter, a name or a number."""
        if isinstance(value, str) and len(value) == 1 and value in "FBIW":
            return cls("FBIW".index(value))
        return parse(cls, value)


class Placement(enum.IntEnum):
    LINEAR = _raw.RRFP_PLACEMENT_LINEAR  #: stage s on rank s
    LOOP = _raw.RRFP_PLACEMENT_LOOP  #: stage s on rank s mod ranks
    V = _raw.RRFP_PLACEMENT_V  #: rank r owns stages r and 2 * ranks - 1 - r


class Order(enum.IntEnum):
    DEFAULT = _raw.RRFP_ORDER_DEFAULT  #: the pipeline's; there, ready
    READY = _raw.RRFP_ORDER_READY  #: the hint ranks what is ready
    STRICT = _raw.RRFP_ORDER_STRICT  #: the hint is obeyed
    PAIRED = _raw.RRFP_ORDER_PAIRED


class Wake(enum.IntEnum):
    """How a rank waits for messages."""

    YIELD = _raw.RRFP_WAKE_YIELD
    SPIN = _raw.RRFP_WAKE_SPIN
    PARK = _raw.RRFP_WAKE_PARK


class Mode(enum.IntEnum):
    TRAIN = _raw.RRFP_MODE_TRAIN
    FORWARD = _raw.RRFP_MODE_FORWARD


class Events(enum.IntFlag):
    """What a task was the last of; see :meth:`rrfp.Task.done`."""

    STAGE_GRADIENTS = _raw.RRFP_EVENT_STAGE_GRADIENTS
    STAGE_LOSSES = _raw.RRFP_EVENT_STAGE_LOSSES
    STEP_TASKS = _raw.RRFP_EVENT_STEP_TASKS


class Injection(enum.IntEnum):
    """The order in which the microbatches of a batch enter."""

    DEFAULT = _raw.RRFP_INJECTION_DEFAULT
    DATA = _raw.RRFP_INJECTION_DATA
    TENT = _raw.RRFP_INJECTION_TENT


class Slot(enum.IntEnum):
    """The arrays that belong to a parameter."""

    WEIGHT = _raw.RRFP_SLOT_WEIGHT
    GRADIENT = _raw.RRFP_SLOT_GRADIENT
    MOMENT1 = _raw.RRFP_SLOT_MOMENT1
    MOMENT2 = _raw.RRFP_SLOT_MOMENT2


class Split(enum.IntEnum):
    TRAIN = _raw.RRFP_SPLIT_TRAIN
    VALIDATION = _raw.RRFP_SPLIT_VALIDATION


class Optimizer(enum.IntEnum):
    ADAMW = _raw.RRFP_OPTIMIZER_ADAMW
    SGD = _raw.RRFP_OPTIMIZER_SGD


class Decay(enum.IntEnum):
    NONE = _raw.RRFP_DECAY_NONE
    COSINE = _raw.RRFP_DECAY_COSINE
    LINEAR = _raw.RRFP_DECAY_LINEAR


class Reduction(enum.IntEnum):
    MEAN = _raw.RRFP_REDUCTION_MEAN
    SUM = _raw.RRFP_REDUCTION_SUM


class NonFinitePolicy(enum.IntEnum):
    STOP = _raw.RRFP_NON_FINITE_STOP
    SKIP = _raw.RRFP_NON_FINITE_SKIP


class Init(enum.IntEnum):
    """How a parameter begins."""

    CONSTANT = _raw.RRFP_INIT_CONSTANT
    NORMAL = _raw.RRFP_INIT_NORMAL
    UNIFORM = _raw.RRFP_INIT_UNIFORM


class DataFormat(enum.IntEnum):
    BYTES = _raw.RRFP_DATA_BYTES
    U16 = _raw.RRFP_DATA_U16
    U32 = _raw.RRFP_DATA_U32


class Grouping(enum.IntEnum):
    """How samples are grouped into microbatches."""

    COUNT = _raw.RRFP_GROUPING_COUNT  #: in their order, numbers that differ by at most one
    COST = _raw.RRFP_GROUPING_COST  #: so that microbatches cost alike


class Readiness(enum.IntEnum):
    ALL = _raw.RRFP_READINESS_ALL
    LEADER = _raw.RRFP_READINESS_LEADER


_Enum = TypeVar("_Enum", bound=enum.IntEnum)


def parse(kind: type[_Enum], value: "_Enum | int | str") -> _Enum:
    """A member from itself, its number or its name."""
    if isinstance(value, str):
        try:
            return kind[value.upper().replace("-", "_")]
        except KeyError:
            known = ", ".join(repr(member.name.lower()) for member in kind)
            raise ValueError(f"{value!r} is not one of {known}") from None
    return kind(value)


#: Element types by name. bfloat16 has no NumPy type: as an array it shows its bits, as uint16.
DTYPES: dict[str, int] = {
    "float32": _raw.RRFP_F32, "float64": _raw.RRFP_F64, "float16": _raw.RRFP_F16,
    "bfloat16": _raw.RRFP_BF16, "int8": _raw.RRFP_I8, "int16": _raw.RRFP_I16,
    "int32": _raw.RRFP_I32, "int64": _raw.RRFP_I64, "uint8": _raw.RRFP_U8,
    "uint16": _raw.RRFP_U16, "uint32": _raw.RRFP_U32, "uint64": _raw.RRFP_U64,
    "bool": _raw.RRFP_BOOL,
}


def dtype_code(dtype: object) -> int:
    """RRFP_F32 .. from a name, a NumPy type or dtype, or something that prints as
    ``torch.float32``."""
    code = DTYPES.get(dtype) if isinstance(dtype, str) else None
    if code is None and str(dtype).startswith("torch."):
        code = DTYPES.get(str(dtype)[len("torch."):])
    if code is None:
        import numpy
        try:
            code = DTYPES.get(numpy.dtype(dtype).name)  # type: ignore[call-overload]
        except TypeError:
            code = None
    if code is None:
        raise ValueError(f"{dtype!r} is not one of {', '.join(DTYPES)}")
    return code
