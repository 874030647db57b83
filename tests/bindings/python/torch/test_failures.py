# SPDX-License-Identifier: Apache-2.0
"""When something goes wrong: the caller gets the original error, nothing leaks, the next step
works."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import models  # noqa: F401
import rrfp
import rrfp.torch
import torch
from models import blocks, cut, gradients
from torch import nn

mse = nn.functional.mse_loss


class Broken(Exception):
    """What a stage raises."""

    alive: "weakref.WeakSet" = weakref.WeakSet()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        Broken.alive.add(self)


class Fuse(nn.Module):
    """A stage that fails where it is told to: "forward", "backward" of its input, or "weight"."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.where = ""
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.where == "forward" and self.calls == 3:
            raise Broken("the answer is 42")
        weight = self.linear.weight
        if self.where == "weight":
            weight = _Breaks.apply(weight)
        if self.where == "backward":
            x = _Breaks.apply(x)
        return nn.functional.linear(x, weight, self.linear.bias)


class _Breaks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        raise Broken("the answer is 42")


class Failing(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(7)
        self.x = torch.randn(8, 16)

    def test_the_original_error_arrives_and_the_next_step_works(self) -> None:
        for hint in ("1f1b", "zb-h1", "bfw"):
            fuse = Fuse()
            stages = [nn.Linear(16, 16), fuse, nn.Linear(16, 16)]
            with rrfp.torch.Schedule(stages, 4, mse, hint=hint) as schedule:
                schedule.step(self.x, target=self.x)
                expected = gradients(stages)
                for where in ("forward", "backward", "weight"):
                    with self.subTest(hint, where=where):
                        fuse.where, fuse.calls = where, 0
                        text = "Broken: the answer is 42"
                        with self.assertRaisesRegex(rrfp.StageFailed, text) as got:
                            schedule.step(self.x, target=self.x)
                        self.assertIsInstance(got.exception.__cause__, Broken)
                        self.assertEqual(got.exception.stage, 1)
                        if where == "forward":
                            self.assertEqual(got.exception.microbatch, 2)
                        fuse.where = ""
                        gradients(stages)  # what the step had added before it failed
                        schedule.step(self.x, target=self.x)
                        for a, b in zip(expected, gradients(stages)):
                            self.assertTrue(torch.equal(a, b))

    def test_loss_functions_that_fail(self) -> None:
        def no_loss(output, target):
            raise Broken("no loss today")

        for loss_fn, text in (
            (no_loss, "no loss today"),
            (lambda output, target: target.sum(), "does not depend on anything"),
        ):
            with rrfp.torch.Schedule(blocks(2), 4, loss_fn) as schedule:
                with self.assertRaisesRegex(rrfp.StageFailed, text):
                    schedule.step(self.x, target=self.x)

    def test_stages_that_do_not_fit_together(self) -> None:
        with rrfp.torch.Schedule([nn.Linear(16, 8), nn.Linear(16, 8)], 2, mse) as schedule:
            with self.assertRaisesRegex(rrfp.StageFailed, "8 and 16x8|8x16|shapes") as got:
                schedule.step(self.x, target=self.x)
            self.assertEqual(got.exception.stage, 1)

    def test_changing_an_input_in_place_is_refused(self) -> None:
        stages = [nn.Linear(16, 16), nn.ReLU(inplace=True)]
        with rrfp.torch.Schedule(stages, 2, mse) as schedule:
            with self.assertRaisesRegex(rrfp.StageFailed, "in-place"):
                schedule.step(self.x, target=self.x)

    def test_failures_leak_nothing(self) -> None:
        fuse = Fuse()
        stages = [nn.Linear(16, 16), fuse, nn.Linear(16, 16)]
        alive: list = []
        for stage in stages:
            stage.register_forward_hook(lambda _m, _a, output: alive.append(weakref.ref(output)))
        with rrfp.torch.Schedule(stages, 4, mse, hint="bfw") as schedule:
            for where in ("forward", "backward", "weight") * 3:
                fuse.where, fuse.calls = where, 0
                with self.assertRaises(rrfp.StageFailed):
                    schedule.step(self.x, target=self.x)
            gc.collect()
            self.assertGreater(len(alive), 9)
            self.assertEqual(len(Broken.alive), 0)
            self.assertEqual([ref() for ref in alive if ref() is not None], [])

    def test_ctrl_c(self) -> None:
        class Slow(nn.Module):
            def forward(self, x):
                time.sleep(0.05)
                return x

        stages = [nn.Linear(16, 16), Slow(), nn.Linear(16, 16)]
        with rrfp.torch.Schedule(stages, 40, mse) as schedule:
            x = torch.randn(40, 16)
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            begin = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                schedule.step(x, target=x)
            self.assertLess(time.monotonic() - begin, 1.5)  # the whole step takes 2 s
            timer.join()
            gradients(stages)
            schedule.step(self.x, target=self.x)
            self.assertTrue(all(g is not None for g in gradients(stages)))

    def test_one_step_at_a_time(self) -> None:
        inside, go_on = threading.Event(), threading.Event()

        class Waits(nn.Module):
            def forward(self, x):
                inside.set()
                go_on.wait(10)
                return x

        with rrfp.torch.Schedule([Waits()], 2) as schedule:
            thread = threading.Thread(target=schedule.eval, args=(self.x,))
            thread.start()
            inside.wait(10)
            with self.assertRaises(rrfp.Busy):
                schedule.eval(self.x)
            go_on.set()
            thread.join()
            schedule.eval(self.x)

    def test_schedules_at_the_same_time(self) -> None:
        layers = [blocks(2, dropout=0.3) for _ in range(4)]

        def train(stages) -> None:
            with rrfp.torch.Schedule(stages, 4, mse, hint="zb-h1") as schedule:
                for _ in range(3):
                    schedule.step(self.x, target=self.x)

        train(layers[0])
        expected = gradients(layers[0])
        threads = [threading.Thread(target=train, args=(stages,)) for stages in layers[1:]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for stages in layers[1:]:
            for a, b in zip(expected, gradients(stages)):
                self.assertTrue(torch.equal(a, b))


class Misuse(unittest.TestCase):
    def test_arguments_of_the_schedule(self) -> None:
        stages = cut(blocks(4), 4)
        for wrong, error, text in (
            ({"stages": []}, TypeError, "at least one"),
            ({"stages": [1]}, TypeError, "at least one"),
            ({"n_microbatches": 0}, ValueError, "n_microbatches is 0"),
            ({"hint": "2f2b"}, ValueError, "2f2b"),
            ({"hint": "dualpipe"}, ValueError, "two chains"),
            ({"placement": [0, 1]}, ValueError, "names 2 ranks for 4 stages"),
            ({"placement": [0, 1, 2, 2], "ranks": 2}, ValueError, "rank"),
            ({"ranks": 5}, ValueError, "rank"),
            ({"placement": "everywhere"}, ValueError, "everywhere"),
            ({"split_backward": [True]}, ValueError, "1 entries for 4 stages"),
            ({"order": "later"}, ValueError, "later"),
            ({"cap_slots": -1}, ValueError, "cap"),
            ({"colour": "red"}, TypeError, "colour"),
        ):
            with self.subTest(**wrong), self.assertRaisesRegex(error, text):
                usual = {"stages": stages, "n_microbatches": 2, "loss_fn": mse}
                rrfp.torch.Schedule(**{**usual, **wrong})

    def test_arguments_of_a_step(self) -> None:
        x = torch.randn(4, 16)
        with rrfp.torch.Schedule(blocks(2), 2, mse) as schedule:
            for args, kwargs, error, text in (
                ((x,), {}, ValueError, "needs target"),
                ((x,), {"target": x[:1]}, ValueError, "the target makes 1 microbatches"),
                ((x,), {"target": x, "losses": ()}, TypeError, "losses must be a list"),
                ((x,), {"target": x, "loss_weights": [1.0]}, ValueError, "1 loss_weights for 2"),
                ((x,), {"arg_mbs": [(x,)]}, ValueError, "not both"),
                (
                    (),
                    {"arg_mbs": [(x,)], "target_mbs": [x, x]},
                    ValueError,
                    "one entry a microbatch",
                ),
                ((), {"arg_mbs": [x], "target_mbs": [x]}, TypeError, "list of tuples"),
                ((), {"kwarg_mbs": [1], "target_mbs": [x]}, TypeError, "list of dicts"),
            ):
                with self.subTest(text), self.assertRaisesRegex(error, text):
                    schedule.step(*args, **kwargs)
            schedule.step(x, target=x)

    def test_a_closed_schedule_makes_its_threads_anew(self) -> None:
        x = torch.randn(4, 16)
        schedule = rrfp.torch.Schedule(blocks(2), 2, mse)
        for _ in range(2):
            schedule.step(x, target=x)
            schedule.close()
            schedule.close()

    def test_threads_inside_operations_are_as_before(self) -> None:
        seen: list = []

        class Looks(nn.Module):
            def forward(self, x):
                seen.append(torch.get_num_threads())
                return x

        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            for wanted, expected in ((1, 1), (None, 2)):
                stages = [Looks(), Looks()]
                with rrfp.torch.Schedule(stages, 2, threads_per_rank=wanted) as schedule:
                    schedule.eval(torch.ones(4))
                self.assertEqual(set(seen), {expected})
                self.assertEqual(torch.get_num_threads(), 2)
                seen.clear()
        finally:
            torch.set_num_threads(before)


class Programs(unittest.TestCase):
    def run_python(self, code: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )

    def test_rrfp_alone_does_not_import_torch(self) -> None:
        done = self.run_python("import sys, rrfp; print('torch' in sys.modules)")
        self.assertEqual((done.stdout, done.stderr), ("False\n", ""))

    def test_without_torch_the_import_says_so(self) -> None:
        done = self.run_python("import sys; sys.modules['torch'] = None; import rrfp.torch")
        self.assertRegex(done.stderr, "(ModuleNotFound|Import)Error: .*torch")

    def test_a_program_that_forgets_to_close_ends(self) -> None:
        def seconds_to_end(code: str) -> float:
            done = self.run_python(code + "import time; print(time.time(), flush=True)")
            end = time.time()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return end - float(done.stdout)

        of_torch = seconds_to_end("import torch\n")
        self.assertLess(
            seconds_to_end(
                "import torch, rrfp.torch\n"
                "stages = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]\n"
                "schedule = rrfp.torch.Schedule(stages, 2, torch.nn.functional.mse_loss)\n"
                "schedule.step(torch.ones(4, 4), target=torch.ones(4, 4))\n"
            ),
            of_torch + 2,
        )


if __name__ == "__main__":
    unittest.main()
