# SPDX-License-Identifier: Apache-2.0
"""Training of ``torch.nn.Module`` stages by readiness.

A pipeline of modules on threads of one process, used like a schedule of
torch.distributed.pipelining::

    schedule = rrfp.torch.Schedule(stages, n_microbatches=8, loss_fn=loss_fn, hint="zb-h1")

    output = schedule.step(x, target=y, losses=losses)
    optimizer.step()

Import it as ``import rrfp.torch``; ``import rrfp`` alone does not need torch. Works with torch 1.13
and 2.x.

    Schedule          see there for what all arguments mean, and for the limits
    TensorChunkSpec   how an input is cut into microbatches
    microbatch_seed   the rule for random numbers: what the unpipelined model must be seeded with to
                      drop out the same
"""

from ._chunks import TensorChunkSpec
from ._random import microbatch_seed
from ._schedule import Schedule

__all__ = ["Schedule", "TensorChunkSpec", "microbatch_seed"]
