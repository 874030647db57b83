# SPDX-License-Identifier: Apache-2.0
"""Stage code of one's own: an MLP cut into two stages, y = W2 tanh(W1 x), whose gradients are
written by hand. It learns sin(2 a + b) and a - b^3 by gradient descent on the mean of squared
errors. What to look at:

  - activations live in engine memory and reach the next stage without a copy;
  - I (the gradient of what came in) and W (that of the weights) are separate tasks here; a stage
    keeps what its W needs by microbatch;
  - the sum over microbatches is the same to the bit whatever order the engine chooses.

    main.py [STEPS]
"""

import sys

import numpy as np

import rrfp

INPUT, HIDDEN, OUTPUT, ROWS, MICROBATCHES = 2, 16, 2, 8, 4
RATE = np.float32(0.2)
F, I, W = rrfp.Kind.FORWARD, rrfp.Kind.INPUT_GRADIENT, rrfp.Kind.WEIGHT_GRADIENT


class FirstStage:
    """h = tanh(W1 x)"""

    def __init__(self, random, x):
        self.w = random.uniform(-1, 1, (HIDDEN, INPUT)).astype(np.float32)
        self.dw = np.zeros_like(self.w)
        self.x = x
        self.slope = {}  # d h / d (W1 x), kept from F to W

    def __call__(self, task):
        m = task.microbatch
        if task.kind is F:
            h = task.alloc((ROWS, HIDDEN))  # the next stage reads this memory
            np.tanh(self.x[m] @ self.w.T, out=h)
            self.slope[m] = 1 - h * h
            task.put(0, h)
        elif task.kind is not I:  # nobody wants the gradient of x: I has nothing to do
            self.dw += (task.input(0)[0] * self.slope.pop(m)).T @ self.x[m]


class SecondStage:
    """y = W2 h and the loss"""

    def __init__(self, random, target):
        self.w = random.uniform(-0.25, 0.25, (OUTPUT, HIDDEN)).astype(np.float32)
        self.dw = np.zeros_like(self.w)
        self.target = target
        self.residual = {}  # d loss / d y, kept from F to W
        self.losses = np.zeros(MICROBATCHES)

    def __call__(self, task):
        m = task.microbatch
        h = task.input(0)[0]
        if task.kind is F:
            difference = h @ self.w.T - self.target[m]
            self.losses[m] = np.square(difference).sum()
            self.residual[m] = 2 * difference / np.float32(ROWS * MICROBATCHES)
            return
        if task.kind is not I:  # W, or the W half of B
            self.dw += self.residual[m].T @ h
        if task.kind is not W:  # I, or the I half of B
            dh = task.alloc((ROWS, HIDDEN))
            np.matmul(self.residual[m], self.w, out=dh)
            task.put(0, dh)


def main(steps):
    random = np.random.default_rng(1)
    x = random.uniform(-1, 1, (MICROBATCHES, ROWS, INPUT)).astype(np.float32)
    a, b = x[..., 0], x[..., 1]
    target = np.stack([np.sin(2 * a + b), a - b**3], axis=-1)
    stages = FirstStage(random, x), SecondStage(random, target)
    with rrfp.Pipeline(rrfp.Graph.chain(2)) as pipeline:
        for step in range(steps):
            for stage in stages:
                stage.dw[:] = 0
            pipeline.run(lambda task: stages[task.stage](task), microbatches=MICROBATCHES,
                         hint="zb-h1", step=step)
            for stage in stages:
                stage.w -= RATE * stage.dw
            if step % 100 == 0 or step == steps - 1:
                loss = stages[1].losses.sum() / (ROWS * MICROBATCHES)
                print(f"step {step + 1}: loss {loss:.6f}")


if __name__ == "__main__":
    steps = sys.argv[1] if len(sys.argv) > 1 else "300"
    if len(sys.argv) > 2 or not steps.isdecimal() or int(steps) < 1:
        sys.exit(__doc__)
    try:
        main(int(steps))
    except rrfp.Error as error:
        sys.exit(f"own_stage_code: {error.status_name}: {error}")
