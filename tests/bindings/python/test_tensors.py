# SPDX-License-Identifier: Apache-2.0
"""Arrays between Python and the engine: no copies, right lifetimes, nothing leaks."""

import gc
import sys
import unittest
import weakref

import numpy as np

import rrfp

DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "bool")


def address(array):
    return array.__array_interface__["data"][0]


class Opaque:
    """What only speaks DLPack, on behalf of an array."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Tensors(unittest.TestCase):
    """Stage 0 sends what `send` puts, stage 1 shows it to `receive`; forwards only."""

    def setUp(self):
        graph = rrfp.Graph(2)
        graph.add_stage(rank=0)
        graph.add_stage(rank=1, loss=True)
        graph.add_edge(0, 1)
        self.pipeline = rrfp.Pipeline(graph)
        self.addCleanup(self.pipeline.close)

    def send(self, send, receive=lambda task: None, microbatches=1):
        def compute(task):
            (send if task.stage == 0 else receive)(task)

        return self.pipeline.run(compute, microbatches=microbatches, mode="forward")

    def settle(self):
        """The rank that wrapped memory releases it in one of its next calls."""
        gc.collect()
        self.send(lambda task: task.put(0, []))

    def test_arrays_arrive_where_they_lie(self):
        for dtype in DTYPES:
            with self.subTest(dtype=dtype):
                source = np.arange(12).reshape(3, 4).astype(dtype)
                got = []
                self.send(lambda task: task.put(0, source),
                          lambda task: got.extend(task.input(0)))
                self.assertEqual(got[0].dtype, source.dtype)
                self.assertEqual(address(got[0]), address(source))
                self.assertFalse(got[0].flags.writeable)
                np.testing.assert_array_equal(got[0], source)
                with self.assertRaises(ValueError):
                    got[0][0, 0] = 1

    def test_shapes(self):
        for shape in ((), (0,), (3, 0, 2), (1,) * 8, (2, 3, 4)):
            source = np.ones(shape, np.float32)
            got = []
            self.send(lambda task: task.put(0, [source]),
                      lambda task: got.extend(task.input(0)))
            self.assertEqual(got[0].shape, shape)
            np.testing.assert_array_equal(got[0], source)
        with self.assertRaises(rrfp.StageFailed) as caught:
            self.send(lambda task: task.put(0, np.ones((1,) * 9)))
        self.assertIsInstance(caught.exception.__cause__, rrfp.TensorMismatch)

    def test_engine_memory_is_handed_over(self):
        made, got = [], []

        def send(task):
            array = task.alloc((5, 7), "float64")
            self.assertTrue(array.flags.writeable and array.flags.c_contiguous)
            self.assertEqual(address(array) % 64, 0)
            array[:] = np.arange(35).reshape(5, 7)
            made.append(address(array))
            task.put(0, [array, array[2:4], array.reshape(-1), array.T])

        self.send(send, lambda task: got.extend(task.input(0)))
        whole, part, flat, turned = got
        self.assertEqual([address(whole), address(part), address(flat)],
                         [made[0], made[0] + 2 * 7 * 8, made[0]])
        np.testing.assert_array_equal(part, np.arange(14, 28).reshape(2, 7))
        self.assertNotEqual(address(turned), made[0])  # not contiguous: a copy
        np.testing.assert_array_equal(turned, whole.T)

    def test_an_input_is_handed_on(self):
        graph = rrfp.Graph.chain(3)
        source, got = np.arange(4.0), []

        def compute(task):
            if task.stage == 0:
                task.put(0, source)
            elif task.stage == 1:
                task.put(1, task.input(0))
            else:
                got.extend(task.input(1))

        with rrfp.Pipeline(graph) as pipeline:
            pipeline.run(compute, microbatches=1, mode="forward")
        self.assertEqual(address(got[0]), address(source))

    def test_what_is_not_contiguous_is_copied(self):
        base = np.arange(24, dtype=np.int32).reshape(4, 6)
        sources = [base.T, base[::2], base[:, 1:3], base[::-1], np.asfortranarray(base)]
        got = []
        self.send(lambda task: task.put(0, sources), lambda task: got.extend(task.input(0)))
        for source, arrived in zip(sources, got):
            np.testing.assert_array_equal(arrived, source)
            self.assertFalse(np.shares_memory(arrived, base))

    def test_buffers_of_all_kinds(self):
        import array
        got = []
        sources = [b"bytes", bytearray(b"more"), array.array("d", [1, 2]), memoryview(b"abc"),
                   np.float32(2.5)]
        self.send(lambda task: task.put(0, sources), lambda task: got.extend(task.input(0)))
        self.assertEqual(bytes(got[0]), b"bytes")
        self.assertEqual(got[2].tolist(), [1, 2])
        self.assertEqual(got[4].shape, ())

    def test_types_that_the_engine_does_not_have(self):
        for array in (np.zeros(2, complex), np.zeros(2, ">f4"), np.zeros(2, "datetime64[s]"),
                      np.zeros(2, [("a", "f4")]), np.array(["text"]), np.array([None])):
            with self.subTest(dtype=array.dtype):
                with self.assertRaises(rrfp.StageFailed) as caught:
                    self.send(lambda task: task.put(0, array))
                self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_declared_tensors_are_checked(self):
        graph = rrfp.Graph.chain(2)
        graph.declare(0, (-1, 3), "float32")
        graph.declare(0, (2,), "int32")
        good = [np.zeros((5, 3), np.float32), np.zeros(2, np.int32)]
        with rrfp.Pipeline(graph) as pipeline:
            def compute(task):
                if task.stage == 0 and task.kind is rrfp.Kind.FORWARD:
                    task.put(0, sent)
                elif task.stage == 1 and task.kind is not rrfp.Kind.FORWARD:
                    if task.kind is not rrfp.Kind.WEIGHT_GRADIENT:
                        task.put(0, None)

            sent = good
            pipeline.run(compute, microbatches=2)
            for sent in ([good[0]], [good[0][:, :2].copy(), good[1]],
                         [good[0].astype("f8"), good[1]]):
                with self.assertRaises(rrfp.StageFailed) as caught:
                    pipeline.run(compute, microbatches=2)
                self.assertIsInstance(caught.exception.__cause__, rrfp.TensorMismatch)

    def test_gradients_are_those_that_were_wanted(self):
        floats, ints = np.ones(3, np.float32), np.ones(3, np.int32)
        seen = []

        def compute(task):
            if task.stage == 0:
                if task.kind is rrfp.Kind.FORWARD:
                    task.put(0, [floats, ints, floats], wants)
                else:
                    seen.append([g.tolist() for g in task.input(0)])
            elif task.kind in (rrfp.Kind.BACKWARD, rrfp.Kind.INPUT_GRADIENT):
                flags = [t.wants_gradient for t in task.input_tensors(0)]
                task.put(0, [2 * floats] * sum(flags))

        for wants, count in ((None, 2), (True, 2), ([True, False, False], 1), (False, 0)):
            seen.clear()
            self.pipeline.run(compute, microbatches=1)
            self.assertEqual(seen[0], [[2.0] * 3] * count)

    def test_dlpack_in(self):
        source, got = np.arange(6, dtype=np.float32).reshape(2, 3), []
        references = sys.getrefcount(source)
        self.send(lambda task: task.put(0, Opaque(source)),
                  lambda task: got.extend(task.input(0)))
        self.assertEqual(address(got[0]), address(source))
        self.assertGreater(sys.getrefcount(source), references)
        got.clear()
        self.settle()
        self.assertEqual(sys.getrefcount(source), references)
        with self.assertRaises(rrfp.StageFailed) as caught:
            self.send(lambda task: task.put(0, Opaque(source.T)))
        self.assertIsInstance(caught.exception.__cause__, rrfp.Error)
        del caught
        self.settle()
        self.assertEqual(sys.getrefcount(source), references)

    def test_dlpack_out(self):
        got = []
        self.send(lambda task: task.put(0, np.arange(4, dtype=np.int16)),
                  lambda task: got.extend(task.input_tensors(0)))
        tensor = got[0]
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        self.assertEqual(tensor.shape, (4,))
        array = np.from_dlpack(tensor)
        self.assertEqual(address(array), tensor.address)
        tensor.__dlpack__()  # a capsule that nobody takes
        got.clear()
        del tensor
        np.testing.assert_array_equal(array, np.arange(4))

    def test_bfloat16_shows_its_bits(self):
        got, made = [], []

        def send(task):
            array = task.alloc(3, "bfloat16")
            self.assertEqual(array.dtype, np.uint16)
            array[:] = (0x3F80, 0x4000, 0x4040)
            made.append(address(array))
            task.put(0, array)

        self.send(send, lambda task: got.extend(task.input_tensors(0)))
        self.assertEqual(got[0].dtype_code, rrfp._raw.RRFP_BF16)
        self.assertEqual(got[0].address, made[0])

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        source = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        half = torch.tensor([1.5, 2.5], dtype=torch.bfloat16)
        got = []
        self.send(lambda task: task.put(0, [source, half]),
                  lambda task: got.extend(task.input_tensors(0)))
        arrived = [torch.from_dlpack(tensor) for tensor in got]
        self.assertEqual(arrived[0].data_ptr(), source.data_ptr())
        self.assertEqual(arrived[1].data_ptr(), half.data_ptr())
        self.assertTrue(torch.equal(arrived[1], half))

    def test_arrays_outlive_everything(self):
        graph = rrfp.Graph.chain(2)
        pipeline, got = rrfp.Pipeline(graph), []

        def compute(task):
            if task.stage == 0:
                array = task.alloc(1000)
                array[:] = 3
                task.put(0, array)
            else:
                got.extend(task.input(0))

        pipeline.run(compute, microbatches=1, mode="forward")
        pipeline.close()
        del pipeline
        gc.collect()
        self.assertEqual(float(got[0].sum()), 3000)

    def test_nothing_leaks(self):
        """Counters of the engine, references, and the memory of the process."""
        source = np.ones((64, 64), np.float32)
        failing = [False]

        def send(task):
            array = task.alloc((64, 64))
            array[:] = task.microbatch
            task.put(0, [source, array, source[::2]])
            if failing[0] and task.microbatch == 2:
                raise ValueError("on purpose")

        def receive(task):
            task.input(0)
            task.input_tensors(0)

        def steps(count):
            for i in range(count):
                failing[0] = i % 5 == 4
                try:
                    reports = self.send(send, receive, microbatches=4)
                    # What earlier steps had left behind would count. What a step has sent may come
                    # back while the next one is under way, so a few add up, but not all.
                    self.assertLessEqual(reports[0].tensor_bytes_peak, 2 * 4 * (16384 + 8192))
                except rrfp.StageFailed:
                    pass
            self.settle()

        gc.disable()  # nothing may need it
        self.addCleanup(gc.enable)
        steps(20)
        references, objects, before = sys.getrefcount(source), len(gc.get_objects()), resident()
        steps(400)
        self.assertEqual(sys.getrefcount(source), references)
        self.assertLess(len(gc.get_objects()) - objects, 100)
        self.assertLess(resident() - before, 4 << 20)  # 400 steps move 40 MiB

    def test_objects_that_change_while_they_are_read(self):
        objects = []

        class Clears(Opaque):
            def __dlpack__(self, stream=None):
                objects.clear()
                return super().__dlpack__(stream)

        def send(task):
            objects.extend(Clears(np.ones(3)) for _ in range(20))
            task.put(0, objects)

        got = []
        self.send(send, lambda task: got.extend(task.input(0)))
        self.assertEqual([array.tolist() for array in got], [[1.0] * 3] * 20)

    def test_a_memoryview_that_is_released(self):
        def send(task):
            view = memoryview(task.alloc_tensor(1000))
            view.release()
            task.put(0, view)

        with self.assertRaises(rrfp.StageFailed) as caught:
            self.send(send)
        self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_owners_of_logs_are_collected(self):
        class Owner:
            def __init__(self):
                self.pipeline = rrfp.Pipeline(rrfp.Graph.chain(1), log=self.log)
                self.step = self.pipeline.rank(0).step(1)
                self.model = rrfp.Model.gpt(vocabulary=16, context=4, layers=1, dim=8, heads=1)
                self.trainer = rrfp.Trainer(self.model, log=self.log)
                self.generator = self.trainer.generator(4)

            def log(self, level, text):
                pass

        alive = weakref.ref(Owner())
        gc.collect()
        self.assertIsNone(alive())

    def test_live_bytes_count_what_is_held(self):
        held = []
        for report in self.send(lambda task: task.put(0, task.alloc(256)),
                                lambda task: held.extend(task.input(0))):
            if report.rank == 0:
                self.assertEqual(report.tensor_bytes_peak, 1024)
        self.assertEqual(held[0].shape, (256,))


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


if __name__ == "__main__":
    unittest.main()
