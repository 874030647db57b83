# SPDX-License-Identifier: Apache-2.0
"""The same call gives what torch's own schedule gives."""

import os
import tempfile
import unittest

import models
import rrfp.torch
import torch
from torch import nn

try:
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
except ImportError:  # before torch 2.4
    ScheduleGPipe = None


@unittest.skipIf(ScheduleGPipe is None, "this torch has no schedules")
class OneLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "store")
        dist.init_process_group("gloo", init_method=f"file://{path}", rank=0, world_size=1)

    @classmethod
    def tearDownClass(cls) -> None:
        dist.destroy_process_group()
        cls.folder.cleanup()

    def test_step_and_eval(self) -> None:
        layers = models.blocks(3)
        x, y = torch.randn(8, 16), torch.randn(8, 16)
        mse = nn.functional.mse_loss

        def run(schedule):
            losses: list = []
            output = schedule.step(x, target=y, losses=losses)
            gradients = models.gradients(layers)  # torch's eval would scale them once more
            return [output, schedule.eval(x, target=y), *losses, *gradients]

        for scale_grads in (True, False):
            with self.subTest(scale_grads=scale_grads):
                stage = PipelineStage(nn.Sequential(*layers), 0, 1, torch.device("cpu"))
                theirs = run(ScheduleGPipe(stage, 4, mse, scale_grads=scale_grads))
                stages = models.cut(layers, 3)
                ours = run(rrfp.torch.Schedule(stages, 4, mse, scale_grads=scale_grads))
                self.assertEqual(len(theirs), len(ours))
                for a, b in zip(theirs, ours):
                    torch.testing.assert_close(a.detach(), b, rtol=1e-6, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
