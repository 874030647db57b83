# SPDX-License-Identifier: Apache-2.0
"""The smallest pipeline: a chain of four stages, one on each of four ranks (threads). Stage s
multiplies by W[s], the loss of a microbatch is what the last stage gives, the loss of the step is
the mean.

    main.py [HINT]     gpipe, 1f1b (default), bf, bfw or zb-h1; the result is the same
"""

import sys

import numpy as np

import rrfp

W = np.array([2, 3, 5, 7], np.float32)
X = np.array([1, 2, 3, 4], np.float32)
STAGES, MICROBATCHES = len(W), len(X)

# Each rank writes only what belongs to its stage.
losses, dw, dx = np.zeros_like(X), np.zeros_like(W), np.zeros_like(X)


def compute(task):
    """Called for every task, on the thread of its rank. Edge e goes from stage e to stage e + 1."""
    s, m = task.stage, task.microbatch
    x = X[m] if s == 0 else task.input(s - 1)[0]
    if task.kind is rrfp.Kind.FORWARD:
        if s < STAGES - 1:
            task.put(s, W[s] * x)
        else:
            losses[m] = W[s] * x
        return
    # The gradient of the mean, for the last stage.
    gradient = np.float32(1 / MICROBATCHES) if s == STAGES - 1 else task.input(s)[0]
    if task.kind is not rrfp.Kind.INPUT_GRADIENT:  # W, or the W half of B
        dw[s] += x * gradient
    if task.kind is not rrfp.Kind.WEIGHT_GRADIENT:  # I, or the I half of B
        if s > 0:
            task.put(s - 1, W[s] * gradient)
        else:
            dx[m] = W[s] * gradient


def main():
    hint = sys.argv[1] if len(sys.argv) > 1 else "1f1b"
    with rrfp.Pipeline(rrfp.Graph.chain(STAGES)) as pipeline:
        reports = pipeline.run(compute, microbatches=MICROBATCHES, hint=hint)
    print("loss %g" % losses.mean())
    for s in range(STAGES):
        print("dw%d %g" % (s, dw[s]))
    for m in range(MICROBATCHES):
        print("dx%d %g" % (m, dx[m]))
    for report in reports:
        print(f"rank {report.rank}: {report.tasks} tasks, "
              f"at most {report.peak_slots} activations held")


if __name__ == "__main__":
    try:
        main()
    except rrfp.Error as error:
        sys.exit(f"toy_chain: {error.status_name}: {error}")
