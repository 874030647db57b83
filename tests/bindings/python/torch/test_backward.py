# SPDX-License-Identifier: Apache-2.0
"""The halves of a backward: I and W give the bits of B, compute each thing once, keep nothing."""

import gc
import unittest
import weakref

import models
import torch
from rrfp.torch import _backward
from rrfp.torch._backward import StageBackward
from torch import nn


class Knot(nn.Module):
    """Uses parameters in all the ways that make a cut between I and W hard."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.randn(8))
        self.norm = nn.LayerNorm(8)
        self.only_y = nn.Parameter(torch.randn(8))
        self.unused = nn.Parameter(torch.randn(8))
        self.apart = nn.Parameter(torch.randn(8))
        self.matrix = nn.Parameter(torch.randn(8, 8))

    def forward(self, x, y):
        normed = self.matrix / self.matrix.norm()  # a parameter's own path, used at two places
        h = nn.functional.gelu(self.twice(x) * self.scale)
        h = self.norm(h @ normed + x)
        h = torch.tanh(self.twice(h)) @ normed * self.scale
        # a usual output; one without inputs; a scalar; an input as it came
        return h + y * self.only_y, self.only_y * 2 + self.apart, (h * self.apart).sum(), x


class Double(torch.autograd.Function):
    """A function in Python, whose node is another kind of object than those of torch."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return 2 * x * weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return 2 * gradient * weight, (2 * gradient * x).sum(0)


class Doubling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return Double.apply(torch.sin(Double.apply(x, self.weight)), self.weight)


class Halves(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(3)

    def check(self, module, inputs, seeds) -> None:
        parameters = list(module.parameters())

        def backward():
            output = module(*inputs)
            outputs = output if isinstance(output, tuple) else (output,)
            return outputs, StageBackward(outputs, inputs, parameters)

        outputs, whole = backward()
        pairs = [(o, s) for o, s in zip(outputs, seeds) if s is not None]
        expected = torch.autograd.grad(
            [o for o, _ in pairs],
            [*inputs, *parameters],
            [s for _, s in pairs],
            retain_graph=True,
            allow_unused=True,
        )
        to_inputs, to_parameters = whole.run(seeds)
        _, halves = backward()
        split = [*halves.run_input(seeds), *halves.run_weight()]
        for name, found in (("B", to_inputs + to_parameters), ("I and W", split)):
            for i, (a, b) in enumerate(zip(expected, found)):
                with self.subTest(name, gradient=i):
                    self.assertEqual(a is None, b is None)
                    self.assertTrue(a is None or torch.equal(a, b))

    def test_the_halves_give_the_bits_of_the_whole(self) -> None:
        inputs = [torch.randn(5, 8, requires_grad=True) for _ in range(2)]
        seeds = [torch.randn(5, 8), torch.randn(8), torch.tensor(0.7), torch.randn(5, 8)]
        knot = Knot()
        self.check(knot, inputs, seeds)
        for missing in range(4):
            self.check(knot, inputs, [None if i == missing else s for i, s in enumerate(seeds)])

    def test_functions_in_python(self) -> None:
        self.check(Doubling(), [torch.randn(5, 8, requires_grad=True)], [torch.randn(5, 8)])

    def test_random_graphs(self) -> None:
        for seed in range(40):
            with self.subTest(seed=seed):
                self.check(*_random_graph(seed))

    def test_usual_layers(self) -> None:
        layers = {
            "transformer": nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
            "lstm": _First(nn.LSTM(8, 8, 2, batch_first=True)),
            "attention": _SelfAttention(),
            "batch norm": nn.Sequential(nn.Conv1d(4, 4, 3, padding=1), nn.BatchNorm1d(4)),
        }
        for name, layer in layers.items():
            with self.subTest(name):
                x = torch.randn(3, 4, 8, requires_grad=True)
                self.check(layer, [x], [torch.randn(3, 4, 8)])

    def test_no_inputs_and_no_parameters(self) -> None:
        layer = nn.Linear(8, 8)
        x = torch.randn(2, 8)
        backward = StageBackward([layer(x)], [], list(layer.parameters()))
        self.assertEqual(backward.run_input([torch.ones(2, 8)]), [])
        weight, bias = backward.run_weight()
        self.assertTrue(torch.equal(weight, x.sum(0).expand(8, 8)))
        self.assertTrue(torch.equal(bias, torch.full((8,), 2.0)))
        x.requires_grad_()
        backward = StageBackward([x * 3], [x], [])
        self.assertTrue(
            torch.equal(backward.run_input([torch.ones(2, 8)])[0], torch.full((2, 8), 3.0))
        )

    @unittest.skipUnless(_backward.can_start_at_nodes, "this torch repeats I in W, as documented")
    def test_weight_gradients_do_not_repeat_input_gradients(self) -> None:
        calls = []

        class Counted(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                calls.append(1)
                return gradient

        layers = [nn.Linear(8, 8) for _ in range(3)]
        x = torch.randn(2, 8, requires_grad=True)
        h = x
        for layer in layers:
            h = Counted.apply(layer(h))
        backward = StageBackward([h], [x], [p for layer in layers for p in layer.parameters()])
        backward.run_input([torch.ones_like(h)])
        self.assertEqual(len(calls), 3)
        backward.run_weight()
        self.assertEqual(len(calls), 3)

    def test_nothing_is_kept(self) -> None:
        layer = models.Block(8)
        x = torch.randn(2, 8, requires_grad=True)
        gc.disable()  # cycles would show
        try:
            for halves in (False, True):
                output = layer(x)
                # A copy of what the graph has saved dies with the graph.
                output = output * _watched(alive := [])
                backward = StageBackward([output], [x], list(layer.parameters()))
                del output
                if halves:
                    backward.run_input([torch.ones(2, 8)])
                    backward.run_weight()
                else:
                    backward.run([torch.ones(2, 8)])
                self.assertIsNone(alive[0]())
        finally:
            gc.enable()


def _watched(alive: list) -> torch.Tensor:
    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = Note()
            alive.append(weakref.ref(ctx.note))
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Note:
        pass

    return Watched.apply(torch.ones(8, requires_grad=True))


class _First(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class _SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class _RandomGraph(nn.Module):
    """Joins random earlier values by random operations with random, often repeated, parameters."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(4, 4, generator=generator) for _ in range(4)])
        self.program = torch.randint(0, 1000, (12, 4), generator=generator).tolist()

    def forward(self, x, y):
        values = [x, y]
        made = [self.weights[0] * 1.0]
        for operation, a, b, w in self.program:
            first, second = values[a % len(values)], values[b % len(values)]
            weight = self.weights[w % 4] if operation % 2 else made[w % len(made)]
            if operation % 5 == 0:
                values.append(first @ weight)
            elif operation % 5 == 1:
                values.append(torch.tanh(first) * second)
            elif operation % 5 == 2:
                made.append(torch.sin(weight @ self.weights[b % 4]))
            elif operation % 5 == 3:
                values.append(first * weight.sum(0) + second)
            else:
                values.append(first - 0.5 * second)
        return values[-1], made[-1], values[len(values) // 2]


def _random_graph(seed: int):
    generator = torch.Generator().manual_seed(seed)
    module = _RandomGraph(generator)
    inputs = [torch.randn(4, 4, generator=generator, requires_grad=True) for _ in range(2)]
    seeds = [torch.randn(4, 4, generator=generator) for _ in range(3)]
    return module, inputs, seeds


if __name__ == "__main__":
    unittest.main()
