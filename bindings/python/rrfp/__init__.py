# SPDX-License-Identifier: Apache-2.0
"""Pipeline-parallel training by readiness.

    Graph, Hint, Pipeline, Rank, Task   stage code of one's own, pulled task by task
    Model, Trainer, Data, Generator     a graph of operations that rrfp trains
    Samples, read_picture               pictures and text for it
    Simulation, Trace                   the same scheduler in virtual time; timelines as pictures

All of it stands on the C library, whose headers say more about every option.
"""

from . import _raw
from ._native import Tensor as Tensor
from .data import *  # noqa: F403
from .enums import *  # noqa: F403
from .errors import *  # noqa: F403
from .graph import *  # noqa: F403
from .model import *  # noqa: F403
from .pipeline import *  # noqa: F403
from .reports import *  # noqa: F403
from .samples import *  # noqa: F403
from .simulation import *  # noqa: F403
from .tasks import *  # noqa: F403
from .trace import *  # noqa: F403
from .trainer import *  # noqa: F403

__version__ = "%d.%d.%d" % (_raw.rrfp_version() // 1000000, _raw.rrfp_version() // 1000 % 1000,
                            _raw.rrfp_version() % 1000)
