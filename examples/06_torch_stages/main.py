# SPDX-License-Identifier: Apache-2.0
"""A pipeline of torch modules, trained by readiness.

A small transformer learns to sort: each sample is a row of digits, and the model says for every
place which digit stands there once the row is sorted. The stages run on threads of this process;
`--hint` says in which order tasks are preferred, and changes nothing in the losses that are
printed.

    main.py [--hint 1f1b|zb-h1|...] [--stages 4] [--steps 60] [--trace FILE]

Needs the Python packages rrfp and torch (Debian: python3-torch).
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the ranks are the threads

import rrfp.torch  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

DIGITS, PLACES, WIDTH, LAYERS = 10, 8, 64, 4


class Embedding(nn.Module):
    """Digits and their places as vectors: integers come in, no gradient goes out."""

    def __init__(self) -> None:
        super().__init__()
        self.digits = nn.Embedding(DIGITS, WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(PLACES, WIDTH))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.digits(rows) + self.places


def model(stages: int) -> list[nn.Module]:
    """The layers in `stages` parts, the first with the embedding, the last with the head."""
    layers: list[nn.Module] = [Embedding()]
    for _ in range(LAYERS):
        layers.append(nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.05, batch_first=True))
    layers.append(nn.Linear(WIDTH, DIGITS))
    inner = [1 + LAYERS * s // stages for s in range(1, stages)]
    cuts = [0, *inner, len(layers)]
    return [nn.Sequential(*layers[a:b]) for a, b in zip(cuts, cuts[1:])]


def loss_fn(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hint", default="1f1b")
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--trace", help="write the timeline of the last step there")
    args = parser.parse_args()

    torch.manual_seed(1)
    stages = model(args.stages)
    optimizer = torch.optim.AdamW(nn.ModuleList(stages).parameters(), lr=2e-3)

    # In a program that uses torch.distributed.pipelining, this line is the one that changes.
    schedule = rrfp.torch.Schedule(
        stages, n_microbatches=8, loss_fn=loss_fn, hint=args.hint, trace_steps=1
    )
    with schedule:
        for step in range(1, args.steps + 1):
            rows = torch.randint(0, DIGITS, (64, PLACES))
            losses: list[torch.Tensor] = []
            optimizer.zero_grad()
            schedule.step(rows, target=rows.sort(1).values, losses=losses, return_outputs=False)
            optimizer.step()
            if step == 1 or step % 10 == 0:
                print(f"step {step}: loss {float(sum(losses)) / len(losses):.6f}", flush=True)

        for report in schedule.reports:
            times = f"{report.total_ns / 1e6:.1f} ms, idle {100 * report.idle_share:.0f} %"
            print(f"rank {report.rank}: {report.tasks} tasks in {times}")
        if args.trace:
            schedule.write_trace(args.trace)

        for stage in stages:
            stage.eval()
        rows = torch.randint(0, DIGITS, (256, PLACES))
        right = schedule.eval(rows).argmax(-1) == rows.sort(1).values
        print(f"sorted right: {100 * float(right.float().mean()):.1f} % of places")


if __name__ == "__main__":
    main()
