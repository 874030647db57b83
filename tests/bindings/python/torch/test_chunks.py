# SPDX-License-Identifier: Apache-2.0
"""Cutting inputs into microbatches and putting outputs together."""

import unittest

import models  # noqa: F401
import torch
from rrfp.torch import TensorChunkSpec, _chunks


class Reducer:
    init_value = torch.tensor(0.0)

    @staticmethod
    def reduce_fn(total, value):
        return total + value


class Split(unittest.TestCase):
    def test_tensors_are_cut_and_everything_else_is_the_same(self) -> None:
        x, extra = torch.arange(8.0).view(8, 1), object()
        args, kwargs = _chunks.split(
            (x, {"y": [x + 1, extra]}), {"scale": torch.tensor(2.0), "flag": True}, 3
        )
        self.assertEqual([len(a[0]) for a in args], [3, 3, 2])
        self.assertTrue(torch.equal(torch.cat([a[1]["y"][0] for a in args]), x + 1))
        self.assertTrue(all(a[1]["y"][1] is extra for a in args))
        self.assertTrue(all(k["flag"] is True and k["scale"] == 2 for k in kwargs))

    def test_chunks_are_views(self) -> None:
        x = torch.arange(8.0)
        args, _ = _chunks.split((x,), {}, 2)
        self.assertEqual(args[0][0].data_ptr(), x.data_ptr())

    def test_fewer_rows_than_chunks(self) -> None:
        args, kwargs = _chunks.split((torch.ones(2, 3),), {"k": torch.ones(5)}, 4)
        self.assertEqual((len(args), len(kwargs)), (2, 2))
        with self.assertRaisesRegex(ValueError, "no rows"):
            _chunks.split((torch.ones(0, 3),), {}, 4)

    def test_specs(self) -> None:
        x, y = torch.ones(4, 6), torch.ones(4)
        args, kwargs = _chunks.split(
            (x, y), {"z": x}, 2, (TensorChunkSpec(1), None), {"z": TensorChunkSpec(0)}
        )
        self.assertEqual(args[0][0].shape, (4, 3))
        self.assertIs(args[1][1], y)
        self.assertEqual(kwargs[0]["z"].shape, (2, 6))
        with self.assertRaisesRegex(ValueError, "args_chunk_spec has 1 parts"):
            _chunks.split((x, y), {}, 2, (TensorChunkSpec(1),))
        with self.assertRaisesRegex(ValueError, "which is no tensor"):
            _chunks.split((1,), {}, 2, (TensorChunkSpec(0),))

    def test_targets(self) -> None:
        target = {"a": torch.arange(6), "b": torch.ones(6, 2)}
        parts = _chunks.split_target(target, 3)
        self.assertEqual([p["a"].tolist() for p in parts], [[0, 1], [2, 3], [4, 5]])
        with self.assertRaisesRegex(ValueError, "makes 2 microbatches, the inputs make 3"):
            _chunks.split_target(torch.ones(2), 3)


class Merge(unittest.TestCase):
    def test_default(self) -> None:
        parts = [(torch.ones(n, 2), torch.tensor(float(n)), "text") for n in (1, 2)]
        rows, scalars, texts = _chunks.merge(parts)
        self.assertEqual(rows.shape, (3, 2))
        self.assertEqual(scalars.tolist(), [1.0, 2.0])
        self.assertEqual(texts, ["text", "text"])

    def test_specs(self) -> None:
        parts = [(torch.ones(2, n), torch.tensor(float(n)), n) for n in (1, 2)]
        wide, total, first = _chunks.merge(parts, (TensorChunkSpec(1), Reducer(), None))
        self.assertEqual(wide.shape, (2, 3))
        self.assertEqual(float(total), 3.0)
        self.assertEqual(first, 1)

    def test_outputs_that_do_not_fit_together(self) -> None:
        with self.assertRaisesRegex(ValueError, "microbatch 1 has 2 parts"):
            _chunks.merge([torch.ones(1), (torch.ones(1), torch.ones(1))])


@unittest.skipUnless(int(torch.__version__.split(".")[0]) >= 2, "torch has these specs from 2 on")
class SpecsOfTorch(unittest.TestCase):
    def test_the_result_is_that_of_torch(self) -> None:
        from torch.distributed.pipelining import microbatch

        x, y = torch.randn(7, 6), torch.randn(7, 4)
        specs = (microbatch.TensorChunkSpec(1), microbatch._Replicate())
        for args_spec in (None, specs):
            theirs = microbatch.split_args_kwargs_into_chunks((x, y), {"k": y}, 3, args_spec)
            ours = _chunks.split((x, y), {"k": y}, 3, args_spec)
            for a, b in zip(theirs[0], ours[0]):
                self.assertTrue(all(torch.equal(p, q) for p, q in zip(a, b)))
            for a, b in zip(theirs[1], ours[1]):
                self.assertTrue(torch.equal(a["k"], b["k"]))
        spec = (microbatch.TensorChunkSpec(1), microbatch.sum_reducer)
        parts = [(torch.randn(2, n), torch.tensor(float(n))) for n in (1, 2)]
        for a, b in zip(microbatch.merge_chunks(parts, spec), _chunks.merge(parts, spec)):
            self.assertTrue(torch.equal(a, b))


if __name__ == "__main__":
    unittest.main()
