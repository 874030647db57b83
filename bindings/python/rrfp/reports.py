# SPDX-License-Identifier: Apache-2.0
"""What steps report: plain numbers, which a notebook shows as bars."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["StageReport", "StepReport", "TrainReport"]

#: Where the time of a step goes: field, label, colour.
_SHARES = (
    ("busy_ns", "computing", "#4c956c"), ("wait_input_ns", "waits for input", "#e9c46a"),
    ("wait_memory_ns", "waits for memory", "#e76f51"),
    ("wait_credit_ns", "waits for credit", "#f4a261"),
    ("wait_policy_ns", "waits by policy", "#9d8189"), ("other_ns", "engine", "#adb5bd"),
)


class _Times:
    """The times in nanoseconds that reports share; total = busy + waits + other."""

    total_ns: int
    busy_ns: int

    @property
    def idle_share(self) -> float:
        """The part of the time in which nothing was computed, 0 .. 1."""
        return 1 - self.busy_ns / self.total_ns if self.total_ns else 0.0

    def _repr_svg_(self) -> str:
        """One bar, cut by what the time went to."""
        width, total = 640, max(self.total_ns, 1)
        parts, x, legend = [], 0.0, 0
        for field, label, colour in _SHARES:
            share = getattr(self, field) / total
            if share <= 0:
                continue
            parts.append(f'<rect x="{x:.1f}" y="0" width="{share * width:.1f}" height="24" '
                         f'fill="{colour}"><title>{label}: {share:.1%}</title></rect>')
            parts.append(f'<rect x="{legend * 160}" y="34" width="10" height="10" '
                         f'fill="{colour}"/><text x="{legend * 160 + 14}" y="43" '
                         f'font-size="11" font-family="sans-serif">{label} {share:.1%}</text>')
            x += share * width
            legend += 1
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, legend * 160)}" '
                f'height="50">{"".join(parts)}</svg>')


@dataclass(frozen=True)
class StepReport(_Times):
    """How a rank spent a step."""

    rank: int
    step: int
    total_ns: int  #: from the begin to the end of the last task
    busy_ns: int  #: tasks were in the caller's hands
    wait_input_ns: int  #: nothing was ready
    wait_memory_ns: int  #: a forward was ready, but the cap did not admit it
    wait_credit_ns: int  #: a forward was ready, but its consumer was too far behind
    wait_policy_ns: int  #: a task was ready, but strict order or holding forbade it
    other_ns: int  #: the engine, and the caller between its calls
    tasks: int
    messages_sent: int
    peak_slots: int  #: activations held at once
    peak_bytes: int  #: of activations, as declared
    tensor_bytes_peak: int  #: of tensors made by this rank
    tensor_bytes_live: int  #: of these, still referred to at the end of the step


@dataclass(frozen=True)
class StageReport:
    """What a stage of a trainer is, and what it did in the last step or evaluation."""

    rank: int
    first_block: int
    last_block: int
    branch: int  #: of the first block, from 0; see :meth:`rrfp.Model.place`
    microbatches: int  #: that took part: not those that have nothing for it
    busy_ns: int  #: of its tasks, those of all rounds


@dataclass(frozen=True)
class TrainReport(_Times):
    """What a step or an evaluation of a trainer gave. Times are sums over ranks and rounds."""

    step: int  #: steps done, this one included
    skipped: bool  #: not finite, and the policy is to skip
    loss: float  #: reduced as the options say; of all losses
    loss_sum: float  #: of the first loss, over the batch
    loss_weight: float  #: of the first loss: for a language model the tokens that count
    gradient_norm: float  #: global, before clipping, without the loss scale; training only
    lr: float  #: of this step; training only
    loss_scale: float
    wall_ns: int
    total_ns: int
    busy_ns: int
    wait_input_ns: int
    wait_memory_ns: int
    wait_credit_ns: int
    wait_policy_ns: int
    other_ns: int
    state_bytes: int  #: weights, gradients, optimizer
    tensor_bytes_peak: int  #: activations, messages and scratch of all ranks, each at its peak
