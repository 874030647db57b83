# SPDX-License-Identifier: Apache-2.0
"""Results equal those of the unpipelined module, and to the bit those of every other hint, number
of stages, placement and timing."""

import random
import time
import unittest
from unittest import mock

import models
import rrfp
import rrfp.torch
import torch
from models import Scale, blocks, chain, cut, gradients, mean_of_outputs, unpipelined
from rrfp.torch._stage import Stage
from torch import nn

mse = nn.functional.mse_loss


class ToyChain(unittest.TestCase):
    """Numbers that are known: stages multiply by 2, 3, 5, 7."""

    def step(self, hint, x, weights=(2.0, 3.0, 5.0, 7.0), **options):
        stages = [Scale(w) for w in weights]
        losses: list = []
        n = options.pop("n_microbatches", len(x))
        of_step = {"loss_weights", "arg_mbs", "target_mbs"} & set(options)
        step_options = {k: options.pop(k) for k in of_step}
        with rrfp.torch.Schedule(stages, n, mean_of_outputs, hint=hint, **options) as schedule:
            inputs = torch.tensor(x)
            given = () if "arg_mbs" in step_options else (inputs,)
            target = {} if "arg_mbs" in step_options else {"target": inputs}
            output = schedule.step(*given, losses=losses, **target, **step_options)
        return output, [float(loss) for loss in losses], [float(s.weight.grad) for s in stages]

    def assertClose(self, found, expected) -> None:
        """A third has no exact value."""
        for a, b in zip(found, expected):
            self.assertAlmostEqual(a / b, 1.0, delta=1e-6)

    def test_every_hint(self) -> None:
        for hint in models.ANY_LAYOUT + models.TWO_A_RANK:
            with self.subTest(hint):
                output, losses, dw = self.step(hint, [1.0, 2.0, 3.0, 4.0])
                self.assertEqual(losses, [210.0, 420.0, 630.0, 840.0])
                self.assertEqual(dw, [262.5, 175.0, 105.0, 75.0])
                self.assertEqual(output.tolist(), losses)

    def test_sum_of_losses(self) -> None:
        _, _, dw = self.step("1f1b", [1.0, 2.0, 3.0, 4.0], scale_grads=False)
        self.assertEqual(dw, [1050.0, 700.0, 420.0, 300.0])

    def test_fewer_microbatches_than_stages(self) -> None:
        for x, scale in (([1.0], 1.0), ([1.0, 2.0], 1.5), ([1.0, 2.0, 3.0], 2.0)):
            for hint in models.ANY_LAYOUT:
                with self.subTest(hint, microbatches=len(x)):
                    _, _, dw = self.step(hint, x)
                    self.assertClose(dw, [scale * g for g in (105.0, 70.0, 42.0, 30.0)])

    def test_microbatches_of_different_sizes(self) -> None:
        x = [float(i) for i in range(1, 9)]
        _, losses, dw = self.step("1f1b", x, (2.0, 3.0, 5.0), n_microbatches=3)
        self.assertEqual(losses, [60.0, 150.0, 225.0])
        self.assertClose(dw, [72.5, 145.0 / 3.0, 29.0])  # the mean of means
        weights = [3 / 8, 3 / 8, 2 / 8]
        _, _, dw = self.step("1f1b", x, (2.0, 3.0, 5.0), n_microbatches=3, loss_weights=weights)
        self.assertEqual(dw, [67.5, 45.0, 27.0])  # the mean over samples
        arg_mbs = [(torch.tensor(x[:1]),), (torch.tensor(x[1:7]),), (torch.tensor(x[7:]),)]
        weights = [1 / 8, 6 / 8, 1 / 8]
        output, _, dw = self.step(
            "zb-h1",
            x,
            (2.0, 3.0, 5.0),
            n_microbatches=3,
            loss_weights=weights,
            arg_mbs=arg_mbs,
            target_mbs=[None] * 3,
        )
        self.assertEqual(dw, [67.5, 45.0, 27.0])
        self.assertEqual(output.tolist(), [30.0 * value for value in x])

    def test_existing_gradients_are_added_to_and_not_scaled(self) -> None:
        stage = Scale(1.0)
        with rrfp.torch.Schedule([stage], 4, mean_of_outputs) as schedule:
            for _ in range(2):
                schedule.step(torch.ones(4), target=torch.ones(4))
        self.assertEqual(float(stage.weight.grad), 2.0)

    def test_a_tied_weight(self) -> None:
        first, middle = Scale(3.0), Scale(2.0)
        for hint in models.ANY_LAYOUT:
            for stages, x in (([first, middle, first], [1.0]), ([first, middle, first], [1.0] * 4)):
                with self.subTest(hint, microbatches=len(x)):
                    schedule = rrfp.torch.Schedule(stages, len(x), mean_of_outputs, hint=hint)
                    with schedule:
                        schedule.step(torch.tensor(x), target=torch.tensor(x))
                    self.assertEqual(float(first.weight.grad), 12.0)
                    self.assertEqual(float(middle.weight.grad), 9.0)
                    gradients([first, middle])


class Tied(nn.Module):
    """A language model whose embedding is its head's weight as well."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding = nn.Embedding(32, 16)
        self.layers = blocks(4, 16, 0.2)
        self.head = nn.Linear(16, 32, bias=False)
        self.head.weight = self.embedding.weight

    def cut(self, stages: int) -> list[nn.Module]:
        return cut([self.embedding, *self.layers, self.head], stages)


def cross_entropy(output, target):
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


class SameBits(unittest.TestCase):
    def setUp(self) -> None:
        self.model = Tied()
        self.tokens = torch.randint(0, 32, (10, 7), generator=torch.Generator().manual_seed(2))
        self.target = self.tokens.roll(1, 1)

    def expected(self, n: int = 4):
        modules = self.model.cut(1)
        outputs, losses = unpipelined(
            chain(modules),
            cross_entropy,
            [(part,) for part in self.tokens.tensor_split(n)],
            self.target.tensor_split(n),
        )
        return [torch.cat(outputs), *losses, *gradients(modules)]

    def pipelined(self, stages: int, n: int = 4, delays: int | None = None, **options):
        modules = self.model.cut(stages)
        if delays is not None:
            options["wake"] = "park"
            rng = random.Random(delays)
            for module in modules:
                handle = module.register_forward_pre_hook(
                    lambda *_: time.sleep(rng.uniform(0, 4e-3))
                )
                self.addCleanup(handle.remove)
        losses: list = []
        with rrfp.torch.Schedule(modules, n, cross_entropy, **options) as schedule:
            output = schedule.step(self.tokens, target=self.target, losses=losses)
        return [output, *losses, *gradients(modules)]

    def assertSame(self, expected, found) -> None:
        self.assertEqual(len(expected), len(found))
        for i, (a, b) in enumerate(zip(expected, found)):
            self.assertTrue(torch.equal(a, b), f"result {i} differs by {(a - b).abs().max()}")

    def test_every_hint_and_number_of_stages(self) -> None:
        expected = self.expected()
        for hint in models.ANY_LAYOUT:
            for stages in (1, 2, 3, 6):
                with self.subTest(hint, stages=stages):
                    self.assertSame(expected, self.pipelined(stages, hint=hint))
        expected = self.expected(6)
        for hint in models.TWO_A_RANK:
            for stages in (2, 4, 6):
                with self.subTest(hint, stages=stages):
                    self.assertSame(expected, self.pipelined(stages, 6, hint=hint))

    def test_placements_orders_and_caps(self) -> None:
        expected = self.expected()
        for options in (
            {"placement": [0, 1, 0]},
            {"placement": "loop", "ranks": 2},
            {"placement": [0, 0, 0]},
            {"order": "strict", "hint": "zb-h1"},
            {"split_backward": False, "hint": "zb-h1"},
            {"split_backward": [True, False, True], "hint": "bfw"},
            {"cap_slots": 1},
            {
                "hint": rrfp.Hint.from_text(
                    "0F0,0F1,0F2,0F3,0B3,0B0,0B2,0B1\n"
                    "1F3,1F2,1F1,1F0,1B3,1I1,1B2,1W1,1B0\n"
                    "2F3,2F2,2F1,2F0,2B3,2B2,2B1,2B0\n"
                )
            },
        ):
            with self.subTest(**options):
                self.assertSame(expected, self.pipelined(3, **options))

    def test_random_delays(self) -> None:
        expected = self.expected(5)
        for seed in range(6):
            for hint in ("1f1b", "bfw"):
                with self.subTest(hint, seed=seed):
                    self.assertSame(expected, self.pipelined(3, 5, delays=seed, hint=hint))

    def test_without_determinism_the_numbers_are_close(self) -> None:
        found = self.pipelined(3, hint="zb-h1", deterministic=False)
        for a, b in zip(self.expected(), found):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)

    def test_training_for_some_steps(self) -> None:
        def train(run) -> list[float]:
            torch.manual_seed(9)
            model = Tied()
            optimizer = torch.optim.AdamW(nn.ModuleList(model.cut(1)).parameters(), lr=1e-2)
            losses = []
            for step in range(6):
                optimizer.zero_grad()
                losses += run(model, step)
                optimizer.step()
            return [float(loss) for loss in losses]

        def plain(model, step):
            return unpipelined(
                chain(model.cut(1)),
                cross_entropy,
                [(part,) for part in self.tokens.tensor_split(4)],
                self.target.tensor_split(4),
                step=step,
            )[1]

        schedules: dict = {}

        def pipelined(model, step):
            losses: list = []
            if model not in schedules:
                schedules[model] = rrfp.torch.Schedule(model.cut(3), 4, cross_entropy, hint="zb-h1")
            schedules[model].step(
                self.tokens, target=self.target, losses=losses, return_outputs=False
            )
            return losses

        expected = train(plain)
        self.assertLess(sum(expected[-4:]), sum(expected[:4]))
        self.assertEqual(train(pipelined), expected)
        for schedule in schedules.values():
            schedule.close()


class Kinds(unittest.TestCase):
    """B is split where the hint says so."""

    def tasks(self, hint: str, **options) -> dict[str, int]:
        counts = dict.fromkeys(("backward", "input_gradient", "weight_gradient"), 0)
        patches = []
        for name in counts:

            def counted(stage, *args, name=name, real=getattr(Stage, name)):
                counts[name] += 1
                return real(stage, *args)

            patches.append(mock.patch.object(Stage, name, counted))
        for patch in patches:
            patch.start()
        try:
            with rrfp.torch.Schedule(cut(blocks(4), 4), 4, mse, hint=hint, **options) as schedule:
                schedule.step(torch.randn(4, 16), target=torch.randn(4, 16))
        finally:
            for patch in patches:
                patch.stop()
        return counts

    def test_hints_with_halves(self) -> None:
        for hint in ("bfw", "zb-h1", "zb-v"):
            with self.subTest(hint):
                counts = self.tasks(hint)
                self.assertEqual(counts["input_gradient"], counts["weight_gradient"])
                self.assertGreater(counts["input_gradient"], 0)
                self.assertEqual(counts["input_gradient"] + counts["backward"], 16)

    def test_stages_that_do_not_split(self) -> None:
        counts = self.tasks("zb-h1", split_backward=False)
        self.assertEqual(counts, {"backward": 16, "input_gradient": 0, "weight_gradient": 0})


if __name__ == "__main__":
    unittest.main()
