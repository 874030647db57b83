# SPDX-License-Identifier: Apache-2.0
"""The toy chain of the scenarios: stage s multiplies by weight s, the last output is the loss of
the microbatch, the loss of the step is the mean."""

import numpy as np

import rrfp


class ToyChain:
    """Call it with a task. Each stage writes only what belongs to it, so ranks need no locks."""

    def __init__(self, weights, inputs, fail=None):
        self.weights = [np.float32(w) for w in weights]
        self.inputs = [np.float32(x) for x in inputs]
        self.fail = fail  # (stage, microbatch, exception), raised by that forward
        self.clear()

    def clear(self):
        self.losses = np.zeros(len(self.inputs), np.float32)
        self.dw = np.zeros(len(self.weights), np.float32)
        self.dx = np.zeros(len(self.inputs), np.float32)
        self.order = [[] for _ in self.weights]

    @property
    def loss(self):
        return self.losses.mean(dtype=np.float32)

    def __call__(self, task):
        s, m, last = task.stage, task.microbatch, len(self.weights) - 1
        self.order[s].append(f"{s}{task.kind.letter}{m}")
        w = self.weights[s]
        x = self.inputs[m] if s == 0 else task.input(s - 1)[0]
        if task.kind is rrfp.Kind.FORWARD:
            if self.fail is not None and self.fail[:2] == (s, m):
                raise self.fail[2]
            if s < last:
                task.put(s, w * x)
            else:
                self.losses[m] = w * x
            return
        gradient = np.float32(1 / len(self.inputs)) if s == last else task.input(s)[0]
        if task.kind is not rrfp.Kind.INPUT_GRADIENT:
            self.dw[s] += x * gradient
        if task.kind is not rrfp.Kind.WEIGHT_GRADIENT:
            if s > 0:
                task.put(s - 1, w * gradient)
            else:
                self.dx[m] = w * gradient
