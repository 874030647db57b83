# SPDX-License-Identifier: Apache-2.0
"""What real models bring: several inputs and outputs, things that are no tensors, missing
gradients, frozen parts, arguments by keyword, evaluation."""

import copy
import gc
import unittest
import weakref

import models
import rrfp
import rrfp.torch
import torch
from models import blocks, chain, cut, gradients, unpipelined
from rrfp.torch._backward import can_start_at_nodes
from torch import nn
from torch.utils.checkpoint import checkpoint

mse = nn.functional.mse_loss


class Case(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(11)

    def compare(
        self, stages, loss_fn, args, target, n=4, hints=("1f1b", "bfw", "zb-h1"), **options
    ):
        """Runs the pipeline with every hint and compares all results with the plain loop."""
        arg_mbs, _ = rrfp.torch._chunks.split(args, {}, n)
        targets = target.tensor_split(n)
        states = [copy.deepcopy(stage.state_dict()) for stage in stages]
        outputs, losses = unpipelined(chain(stages), loss_fn, arg_mbs, targets)
        buffers = [b.clone() for stage in stages for b in stage.buffers()]
        expected = [*losses, *gradients(stages), *buffers]
        for hint in hints:
            for stage, state in zip(stages, states):
                stage.load_state_dict(state)
            with (
                self.subTest(hint),
                rrfp.torch.Schedule(stages, n, loss_fn, hint=hint, **options) as schedule,
            ):
                found: list = []
                schedule.step(*args, target=target, losses=found, return_outputs=False)
                found += gradients(stages) + [b for stage in stages for b in stage.buffers()]
                self.assertEqual(len(expected), len(found))
                for i, (a, b) in enumerate(zip(expected, found)):
                    self.assertEqual(a is None, b is None, f"result {i}")
                    self.assertTrue(a is None or torch.equal(a, b), f"result {i}")


class Inputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.unused = nn.Linear(8, 8)

    def forward(self, tokens, scale):
        x = self.embedding(tokens)
        mask = tokens > 4
        # gradient; integers; booleans; no tensor; a container; floating point without a gradient
        return x, tokens, mask, "text", {"twice": 2 * x, "half": x.detach() / 2}, scale


class Middle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, tokens, mask, text, more, scale):
        assert text == "text" and tokens.dtype == torch.int64 and mask.dtype == torch.bool
        assert x.requires_grad and not more["half"].requires_grad and not scale.requires_grad
        y = torch.where(mask.unsqueeze(-1), self.linear(x), x) * scale.view(-1, 1, 1)
        # `twice` is not used: its gradient is None. x goes on as it came.
        return [y, x, more["half"], None]


class Last(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 3)

    def forward(self, y, x, half, nothing):
        assert nothing is None
        return {"scores": self.linear(y + x + half).mean(1), "note": (y.shape[0], "x")}


class Values(Case):
    def test_several_inputs_and_outputs(self) -> None:
        stages = [Inputs(), Middle(), Last()]
        tokens, scale = torch.randint(0, 20, (8, 5)), torch.rand(8)

        def loss(output, target):
            return nn.functional.cross_entropy(output["scores"], target)

        reference = chain([stages[0], _Unpack(stages[1]), stages[2]])
        target = torch.randint(0, 3, (8,))
        _, losses = unpipelined(
            reference,
            loss,
            list(zip(tokens.tensor_split(4), scale.tensor_split(4))),
            target.tensor_split(4),
        )
        expected = [*losses, *gradients(stages)]
        for hint in models.ANY_LAYOUT:
            with self.subTest(hint), rrfp.torch.Schedule(stages, 4, loss, hint=hint) as schedule:
                found: list = []
                output = schedule.step(tokens, scale, target=target, losses=found)
                self.assertEqual(output["scores"].shape, (8, 3))
                self.assertEqual(output["note"], ([2, 2, 2, 2], ["x"] * 4))
                self.assertFalse(output["scores"].requires_grad)
                for a, b in zip(expected, found + gradients(stages)):
                    self.assertTrue(a is b is None or torch.equal(a, b))
        self.assertIsNone(expected[-6])  # the unused layer has no gradient

    def test_arguments_by_keyword(self) -> None:
        class Masked(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x, mask=None, *, scale=1.0):
                return self.linear(x) * mask * scale

        stages = [Masked(), nn.Linear(4, 4), Masked()]
        x, mask = torch.randn(6, 4), torch.rand(6, 1, requires_grad=True)
        expected = stages[2](stages[1](stages[0](x, mask, scale=2.0)), mask, scale=2.0)
        mse(expected, x).backward()
        wanted = [mask.grad, *gradients(stages)]
        mask.grad = None
        with rrfp.torch.Schedule(stages, 3, mse) as schedule:
            output = schedule.step(x, mask=mask, scale=2.0, target=x)
            torch.testing.assert_close(output, expected.detach())
            for a, b in zip(wanted, [mask.grad, *gradients(stages)]):
                torch.testing.assert_close(a, b)
            with self.assertRaisesRegex(TypeError, "no stage takes the keyword argument 'musk'"):
                schedule.step(x, musk=mask, target=x)
            kwarg_mbs = [{"mask": m, "scale": 2.0} for m in mask.tensor_split(2)]
            output = schedule.step(
                arg_mbs=[(part,) for part in x.tensor_split(2)],
                kwarg_mbs=kwarg_mbs,
                target_mbs=list(x.tensor_split(2)),
            )
            torch.testing.assert_close(output, expected.detach())

    def test_gradients_flow_into_inputs(self) -> None:
        before = nn.Linear(4, 4)  # of the caller, outside of the pipeline
        stages = cut(blocks(2, 4), 2)
        x = torch.randn(6, 4)
        mse(chain(stages)(before(x)), x).backward()
        expected = gradients([before, *stages])
        for hint in models.ANY_LAYOUT:
            with self.subTest(hint), rrfp.torch.Schedule(stages, 3, mse, hint=hint) as schedule:
                schedule.step(before(x), target=x)
                for a, b in zip(expected, gradients([before, *stages])):
                    torch.testing.assert_close(a, b)

    def test_other_dtypes_devices_and_strides(self) -> None:
        class Turn(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.randn(4, 4, dtype=torch.complex64))

            def forward(self, x):
                return (x @ self.weight).transpose(0, 1)

        self.compare(
            [Turn(), Turn(), Turn()],
            lambda output, target: (output.abs() ** 2).mean(),
            (torch.randn(8, 4, dtype=torch.complex64),),
            torch.zeros(8),
            n=2,
        )

    def test_autocast_of_the_caller(self) -> None:
        stages = [nn.Linear(8, 8), nn.Linear(8, 8)]
        x = torch.randn(4, 8)
        with rrfp.torch.Schedule(stages, 2) as schedule:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                self.assertEqual(schedule.eval(x).dtype, torch.bfloat16)
            self.assertEqual(schedule.eval(x).dtype, torch.float32)

    def test_checkpointing(self) -> None:
        class Repeated(nn.Module):
            def __init__(self, block: nn.Module) -> None:
                super().__init__()
                self.block = block

            def forward(self, x):
                return checkpoint(self.block, x, use_reentrant=False)

        x = torch.randn(8, 16)
        self.compare([Repeated(b) for b in blocks(3)], mse, (x,), torch.randn(8, 16))
        stages = [Repeated(b) for b in blocks(2, dropout=0.5)]
        with rrfp.torch.Schedule(stages, 2, mse) as schedule:
            with self.assertRaisesRegex(rrfp.StageFailed, "inside torch.utils.checkpoint"):
                schedule.step(x, target=x)


class _Unpack(nn.Module):
    """Gives a list as a tuple, for the plain loop."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args):
        return tuple(self.module(*args))


class Parts(Case):
    def setUp(self) -> None:
        super().setUp()
        self.x, self.y = torch.randn(8, 16), torch.randn(8, 16)

    def test_frozen_parameters(self) -> None:
        for frozen in ((0,), (1,), (0, 1), (2,), (1, 2)):
            stages = cut(blocks(3), 3)
            for s in frozen:
                stages[s].requires_grad_(False)
            with self.subTest(frozen=frozen):
                self.compare(stages, mse, (self.x,), self.y)
        stages = blocks(3)
        stages[1].up.requires_grad_(False)
        self.compare(stages, mse, (self.x,), self.y)

    def test_freezing_between_steps(self) -> None:
        stages = cut(blocks(2), 2)
        with rrfp.torch.Schedule(stages, 2, mse, hint="zb-h1") as schedule:
            for frozen in (False, True, False):
                stages[0].requires_grad_(not frozen)
                schedule.step(self.x, target=self.y)
                found = gradients(stages)
                self.assertEqual([g is None for g in found], [frozen] * 6 + [False] * 6)
            for stage in stages:
                stage.requires_grad_(False)
            with self.assertRaisesRegex(RuntimeError, "no parameter and no input"):
                schedule.step(self.x, target=self.y)

    def test_stages_without_parameters(self) -> None:
        self.compare(
            [nn.Identity(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Softmax(-1)],
            mse,
            (self.x,),
            self.y,
        )

    def test_a_stage_whose_output_has_no_gradient(self) -> None:
        class Cut(nn.Module):
            def forward(self, x):
                return x.detach()

        self.compare([nn.Linear(16, 16), Cut(), nn.Linear(16, 16)], mse, (self.x,), self.y)

    def test_running_statistics(self) -> None:
        stages = [nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16)) for _ in range(3)]
        self.compare(stages, mse, (self.x,), self.y)

    def test_one_module_as_two_stages(self) -> None:
        block = nn.Linear(16, 16)
        self.compare([block, nn.Tanh(), block], mse, (self.x,), self.y)

    def test_sparse_gradients(self) -> None:
        stages = [nn.Embedding(20, 16, sparse=True), nn.Linear(16, 16)]
        tokens = torch.randint(0, 20, (8,))
        with rrfp.torch.Schedule(stages, 2, mse) as schedule:
            schedule.step(tokens, target=self.y)
        found = stages[0].weight.grad
        self.assertTrue(found.is_sparse)
        stages[0].weight.grad = None
        mse(chain(stages)(tokens), self.y).backward()
        torch.testing.assert_close(found.to_dense(), stages[0].weight.grad.to_dense())

    def test_gradients_of_parameters_do_not_share_memory(self) -> None:
        class Sum(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a = nn.Parameter(torch.ones(16))
                self.b = nn.Parameter(torch.ones(16))

            def forward(self, x):
                return x.mean() + (self.a + self.b).sum()

        stage = Sum()
        with rrfp.torch.Schedule([stage], 2, lambda o, _: o) as schedule:
            schedule.step(self.x, target=self.y)
        self.assertEqual(stage.a.grad.stride(), (1,))
        stage.a.grad += 1
        self.assertEqual(stage.b.grad.tolist(), [1.0] * 16)


class Evaluation(Case):
    def test_forward_only(self) -> None:
        stages = blocks(3, dropout=0.5)
        x, y = torch.randn(7, 16), torch.randn(7, 16)
        for stage in stages:
            stage.eval()
        expected = chain(stages)(x)
        losses: list = []
        seen: list = []
        hook = stages[1].register_forward_hook(lambda *_: seen.append(torch.is_grad_enabled()))
        with rrfp.torch.Schedule(stages, 3, mse) as schedule:
            output = schedule.eval(x, target=y, losses=losses)
            torch.testing.assert_close(output, expected)
            self.assertFalse(output.requires_grad)
            self.assertEqual(seen, [False] * 3)
            parts = zip(expected.tensor_split(3), y.tensor_split(3))
            torch.testing.assert_close(losses, [mse(a, b).detach() for a, b in parts])
            self.assertEqual(gradients(stages), [None] * 18)
            with torch.no_grad():
                torch.testing.assert_close(schedule.eval(x), expected)  # no target, no loss
                with self.assertRaisesRegex(RuntimeError, "under torch.no_grad"):
                    schedule.step(x, target=y)
        hook.remove()

    def test_evaluation_between_steps_changes_nothing(self) -> None:
        x, y = torch.randn(8, 16), torch.randn(8, 16)

        def run(evaluate: bool):
            stages = blocks(2, dropout=0.3)
            with rrfp.torch.Schedule(stages, 4, mse, hint="zb-h1") as schedule:
                schedule.step(x, target=y)
                if evaluate:
                    schedule.eval(x[:3])
                schedule.step(x, target=y)
            return gradients(stages)

        for a, b in zip(run(False), run(True)):
            self.assertTrue(torch.equal(a, b))

    def test_without_a_loss_function_step_is_forward_only(self) -> None:
        stages = blocks(2)
        x = torch.randn(4, 16)
        with rrfp.torch.Schedule(stages, 2) as schedule:
            torch.testing.assert_close(schedule.step(x), chain(stages)(x).detach())
            self.assertIsNone(schedule.step(x, return_outputs=False))


class Random(Case):
    def test_masks_depend_on_seed_step_and_microbatch_alone(self) -> None:
        def masks(stages: int, seed: int = 0, step: int = 0, hint: str = "1f1b") -> torch.Tensor:
            layers = [nn.Dropout(0.5) for _ in range(4)]
            with rrfp.torch.Schedule(cut(layers, stages), 4, seed=seed, hint=hint) as schedule:
                schedule.step_index = step
                return schedule.step(torch.ones(8, 16))

        first = masks(1)
        for stages in (2, 4):
            for hint in models.ANY_LAYOUT:
                self.assertTrue(torch.equal(masks(stages, hint=hint), first))
        self.assertFalse(torch.equal(masks(1, seed=1), first))
        self.assertFalse(torch.equal(masks(1, step=1), first))
        self.assertFalse(torch.equal(first[:2], first[2:4]))

    def test_the_process_generator_is_left_alone(self) -> None:
        stages = blocks(2, dropout=0.5)
        before = torch.get_rng_state()
        with rrfp.torch.Schedule(stages, 2, mse) as schedule:
            schedule.step(torch.ones(4, 16), target=torch.ones(4, 16))
        self.assertTrue(torch.equal(before, torch.get_rng_state()))

    def test_all_ways_of_drawing(self) -> None:
        class Draws(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.attention = nn.MultiheadAttention(16, 2, dropout=0.3, batch_first=True)
                self.lstm = nn.LSTM(16, 16, 2, dropout=0.3, batch_first=True)

            def forward(self, x):
                x = x + torch.rand(1) + torch.randn_like(x) + torch.empty(16).uniform_()
                x = nn.functional.rrelu(x, training=True) + torch.bernoulli(torch.full_like(x, 0.5))
                x = nn.functional.gumbel_softmax(x) + torch.randint(0, 9, (16,))
                return self.lstm(self.attention(x, x, x)[0])[0]

        self.compare(
            [Draws() for _ in range(3)], mse, (torch.randn(4, 3, 16),), torch.randn(4, 3, 16)
        )

    def test_draws_that_nobody_sees_are_told(self) -> None:
        class Hidden(nn.Module):
            def forward(self, x):
                torch.default_generator.manual_seed(torch.default_generator.initial_seed() + 1)
                return x

        x = torch.ones(4, 16)
        with rrfp.torch.Schedule([Hidden()], 2) as schedule:
            with self.assertWarnsRegex(UserWarning, "process's generator"):
                schedule.step(x)
        with rrfp.torch.Schedule([Hidden()], 2, seed=None) as schedule:
            schedule.step(x)


class Memory(Case):
    """Tensors go from stage to stage without a copy, and are freed when they should be."""

    def test_activations_and_gradients_alias(self) -> None:
        seen: dict[str, list[torch.Tensor]] = {}  # kept, or a freed address would come again

        class Look(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, name):
                ctx.name = name
                seen.setdefault("F " + name, []).append(x.detach())
                return x.view_as(x)

            @staticmethod
            def backward(ctx, gradient):
                seen.setdefault("B " + ctx.name, []).append(gradient)
                return gradient, None

        class Looked(nn.Module):
            def __init__(self, name: str) -> None:
                super().__init__()
                self.linear = nn.Linear(16, 16)
                self.name = name

            def forward(self, x):
                return Look.apply(
                    self.linear(Look.apply(x, "into " + self.name)), "from " + self.name
                )

        x = torch.randn(4, 16)
        # A torch that repeats I in W goes through more gradients.
        for hint in ("1f1b", "zb-h1") if can_start_at_nodes else ("1f1b",):
            seen.clear()
            with rrfp.torch.Schedule([Looked(n) for n in "abc"], 4, mse, hint=hint) as schedule:
                schedule.step(x, target=x)

            def addresses(name: str) -> list[int]:
                return [tensor.data_ptr() for tensor in seen[name]]

            self.assertEqual(addresses("F into a"), [part.data_ptr() for part in x.tensor_split(4)])
            for sender, receiver in ("ab", "bc"):
                self.assertEqual(addresses("F from " + sender), addresses("F into " + receiver))
                self.assertEqual(addresses("B into " + receiver), addresses("B from " + sender))
                self.assertEqual(len(set(addresses("B from " + sender))), 4)

    def test_nothing_lives_after_a_step(self) -> None:
        alive: list = []
        stages = blocks(3)
        for stage in stages:
            stage.register_forward_hook(lambda _m, _a, output: alive.append(weakref.ref(output)))
        x = torch.randn(8, 16)
        gc.collect()
        gc.disable()  # cycles would show
        try:
            for hint in ("1f1b", "bfw"):
                with rrfp.torch.Schedule(stages, 4, mse, hint=hint) as schedule:
                    schedule.step(x, target=x)
                    self.assertEqual([ref() for ref in alive if ref() is not None], [])
                    schedule.eval(x)
                    self.assertEqual([ref() for ref in alive if ref() is not None], [])
                self.assertGreater(len(alive), 0)
        finally:
            gc.enable()

    def test_a_cap_bounds_what_lives(self) -> None:
        class Watched(nn.Module):
            peak = 0
            alive: "weakref.WeakSet" = weakref.WeakSet()

            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x):
                token = _Token()
                Watched.alive.add(token)
                Watched.peak = max(Watched.peak, len(Watched.alive))
                return _Holds.apply(self.linear(x), token)

        stages = [Watched(), nn.Linear(16, 16)]
        x = torch.randn(32, 16)
        for cap, hint in ((2, "1f1b"), (3, "zb-h1"), (1, "bfw")):
            Watched.peak = 0
            with rrfp.torch.Schedule(stages, 32, mse, hint=hint, cap_slots=cap) as schedule:
                schedule.step(x, target=x, return_outputs=False)
            self.assertLessEqual(Watched.peak, cap, hint)
            self.assertEqual(len(Watched.alive), 0)


class _Token:
    """Lives as long as a graph."""


class _Holds(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, token):
        ctx.token = token
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


if __name__ == "__main__":
    unittest.main()
