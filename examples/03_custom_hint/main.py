# SPDX-License-Identifier: Apache-2.0
"""A schedule from a file, in the text form of torch.distributed.pipelining: one row per rank, cells
such as 2F3 (stage 2, forward of microbatch 3; F, B or I and W). A chain whose stages double what
enters them runs by it, once as a ranking of what is ready and once obeyed to the letter, and shows
what each rank did.

    main.py FILE

Everything happens on one thread, which goes round the ranks: they need no threads of their own.
"""

import contextlib
import sys

import numpy as np

import rrfp


def make_graph(hint):
    """A chain of all stages that the hint names, each on the rank in whose row it stands."""
    info = hint.info
    graph = rrfp.Graph(info.ranks)
    for stage in range(info.stages):
        graph.add_stage(loss=stage == info.stages - 1)
        if stage > 0:
            graph.add_edge(stage - 1, stage)
    graph.place_by_hint(hint)
    return graph


def compute(task, stages):
    """Every stage doubles what enters it; edge s leads from stage s to stage s + 1. Returns the
    loss of the microbatch, from the forward of the last stage."""
    forward = task.kind is rrfp.Kind.FORWARD
    if task.kind is rrfp.Kind.WEIGHT_GRADIENT:
        return 0.0  # there is no weight to train here
    source, target = (task.stage - 1, task.stage) if forward else (task.stage, task.stage - 1)
    value = np.float32(task.microbatch + 1 if forward else 1)
    if 0 <= source < stages - 1:
        value = task.input(source)[0]
    if 0 <= target < stages - 1:
        task.put(target, np.float32(2) * value)
    elif forward:
        return float(2 * value)
    return 0.0


def run(graph, hint, order):
    print("obeyed" if order == "strict" else "as a ranking")
    microbatches, loss, done, number = hint.info.microbatches, 0.0, 0, 0
    with contextlib.ExitStack() as stack:
        pipeline = stack.enter_context(rrfp.Pipeline(graph, order=order))
        ranks = [stack.enter_context(pipeline.rank(r)) for r in range(graph.ranks)]
        steps = [stack.enter_context(rank.step(microbatches, hint)) for rank in ranks]
        while done < len(steps):  # a round gives each rank one task if it has one ready
            cells = []
            done = 0
            for step in steps:
                task = step.next(timeout=0)
                if task is None:
                    cells.append("---")
                    done += step.finished
                    continue
                cells.append(f"{task.stage}{task.kind.letter}{task.microbatch}")
                with task:
                    loss += compute(task, graph.stages)
            print(f"  round {number:2}:  " + "  ".join(cells))
            number += 1
    print("  sum of losses %g" % loss)


def main(path):
    hint = rrfp.Hint.read(path)
    graph = make_graph(hint)
    hint.check(graph, hint.info.microbatches, "strict")
    run(graph, hint, "ready")
    run(graph, hint, "strict")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except (rrfp.Error, OSError) as error:
        sys.exit(f"custom_hint: {error}")
