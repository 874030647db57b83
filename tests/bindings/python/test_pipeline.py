# SPDX-License-Identifier: Apache-2.0
"""Pipelines with stage code in Python: results, failures, misuse."""

import logging
import threading
import time
import unittest

import numpy as np
from toy_chain import ToyChain

import rrfp

WEIGHTS, INPUTS = (2, 3, 5, 7), (1, 2, 3, 4)
RESULT = (525.0, [262.5, 175.0, 105.0, 75.0], [52.5] * 4)


def result_of(chain):
    return (float(chain.loss), chain.dw.tolist(), chain.dx.tolist())


def on_threads(pipeline, function, microbatches=4, hint="1f1b"):
    """A step on threads of the test's own; what each rank raised."""
    raised = [None] * pipeline.ranks
    ranks = [pipeline.rank(r) for r in range(pipeline.ranks)]

    def run(rank):
        try:
            with rank.step(microbatches, hint) as step:
                for task in step:
                    with task:
                        function(task)
        except BaseException as error:
            raised[rank.number] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank in ranks:
        rank.close()
    return raised


class Results(unittest.TestCase):
    def test_every_hint_and_order_gives_the_same(self):
        for hint in ("gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2"):
            for order in ("ready", "strict"):
                if order == "strict" and hint in ("bf", "bfw"):
                    continue
                with self.subTest(hint=hint, order=order):
                    chain = ToyChain(WEIGHTS, INPUTS)
                    with rrfp.Pipeline(rrfp.Graph.chain(4), order=order) as pipeline:
                        reports = pipeline.run(chain, microbatches=4, hint=hint)
                    self.assertEqual(result_of(chain), RESULT)
                    self.assertEqual([report.rank for report in reports], [0, 1, 2, 3])
                    self.assertGreaterEqual(min(report.tasks for report in reports), 8)
                    self.assertIn("<svg", reports[0]._repr_svg_())

    def test_threads_of_ones_own(self):
        chain = ToyChain(WEIGHTS, INPUTS)
        with rrfp.Pipeline(rrfp.Graph.chain(4)) as pipeline:
            self.assertEqual(on_threads(pipeline, chain), [None] * 4)
        self.assertEqual(result_of(chain), RESULT)

    def test_one_thread_goes_round_the_ranks(self):
        chain = ToyChain(WEIGHTS, INPUTS)
        with rrfp.Pipeline(rrfp.Graph.chain(4)) as pipeline:
            ranks = [pipeline.rank(r) for r in range(4)]
            steps = [rank.step(4, "1f1b").__enter__() for rank in ranks]
            tasks = 0
            while tasks < 4 * 8:
                for step in steps:
                    task = step.next(timeout=0)
                    if task is not None:
                        chain(task)
                        task.done()
                        tasks += 1
            for step in steps:
                step.__exit__(None, None, None)
                self.assertEqual(step.report.tasks, 8)
        self.assertEqual(result_of(chain), RESULT)

    def test_placements(self):
        for placement, hint in (("v", "zb-v"), ("loop", "interleaved:2")):
            chain = ToyChain(WEIGHTS, INPUTS)
            with rrfp.Pipeline(rrfp.Graph.chain(4, placement=placement)) as pipeline:
                self.assertEqual(pipeline.ranks, 2)
                pipeline.run(chain, microbatches=4, hint=hint)
            self.assertEqual(result_of(chain), RESULT)

    def test_events_tell_when_gradients_are_in(self):
        seen = []

        def compute(task):
            chain(task)
            events = task.done()
            if events & rrfp.Events.STAGE_GRADIENTS:
                seen.append(task.stage)

        chain = ToyChain(WEIGHTS, INPUTS)
        with rrfp.Pipeline(rrfp.Graph.chain(4)) as pipeline:
            pipeline.run(compute, microbatches=4, hint="zb-h1")
        self.assertEqual(sorted(seen), [0, 1, 2, 3])

    def test_forward_only_skips_and_sizes(self):
        # 0 -> 1 -> 2 and 0 -> 2: microbatch 1 skips stage 1 and takes the short way.
        graph = rrfp.Graph(3)
        for stage in range(3):
            graph.add_stage(rank=stage, loss=stage == 2)
        first, second, short = graph.add_edge(0, 1), graph.add_edge(1, 2), graph.add_edge(0, 2)
        skip = np.array([[0, 0], [0, 1], [0, 0]])
        seen = {}

        def compute(task):
            if task.stage == 0:
                for edge in (first, short):
                    if task.wanted(edge):
                        task.put(edge, np.float32(task.microbatch))
            elif task.stage == 1:
                task.put(second, task.input(first)[0] + np.float32(10))
            else:
                came = task.input(second)
                seen[task.microbatch] = (None if came is None else float(came[0]),
                                         float(task.input(short)[0]))

        with rrfp.Pipeline(graph) as pipeline:
            pipeline.run(compute, microbatches=2, mode="forward", skip=skip,
                         activation_bytes=np.full((3, 2), 5))
        self.assertEqual(seen, {0: (10.0, 0.0), 1: (None, 1.0)})

    def test_caps_are_kept(self):
        chain = ToyChain(WEIGHTS, INPUTS)
        with rrfp.Pipeline(rrfp.Graph.chain(4), cap_slots=[2, 2, 1, 1]) as pipeline:
            reports = pipeline.run(chain, microbatches=4)
        self.assertEqual(result_of(chain), RESULT)
        self.assertLessEqual(reports[0].peak_slots, 2)
        self.assertEqual(reports[3].peak_slots, 1)

    def test_two_engines_at_once(self):
        chains = [ToyChain(WEIGHTS, INPUTS) for _ in range(2)]
        pipelines = [rrfp.Pipeline(rrfp.Graph.chain(4)) for _ in chains]

        def run(pipeline, chain):
            for _ in range(5):
                chain.clear()
                pipeline.run(chain, microbatches=4)

        threads = [threading.Thread(target=run, args=pair) for pair in zip(pipelines, chains)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for pipeline, chain in zip(pipelines, chains):
            self.assertEqual(result_of(chain), RESULT)
            pipeline.close()


class Failures(unittest.TestCase):
    def setUp(self):
        self.pipeline = rrfp.Pipeline(rrfp.Graph.chain(4))
        self.addCleanup(self.pipeline.close)

    def expect_usable(self):
        chain = ToyChain(WEIGHTS, INPUTS)
        self.pipeline.run(chain, microbatches=4)
        self.assertEqual(result_of(chain), RESULT)

    def test_every_rank_hears_the_original_text(self):
        cause = KeyError("no such tensor: 451 °F")
        raised = on_threads(self.pipeline, ToyChain(WEIGHTS, INPUTS, (1, 2, cause)))
        for rank, error in enumerate(raised):
            self.assertIsInstance(error, rrfp.StageFailed)
            self.assertIn("KeyError: 'no such tensor: 451 °F'", error.text)
            self.assertEqual((error.rank, error.stage, error.microbatch, error.kind),
                             (1, 1, 2, rrfp.Kind.FORWARD))
            self.assertEqual(error.status_name, "RRFP_ERR_STAGE_FAILED")
            self.assertIs(error.__cause__, cause if rank == 1 else None)
        self.pipeline.reset()
        self.expect_usable()

    def test_run_raises_from_the_original(self):
        cause = ValueError("bad")
        for _ in range(20):
            with self.assertRaises(rrfp.StageFailed) as caught:
                self.pipeline.run(ToyChain(WEIGHTS, INPUTS, (3, 1, cause)), microbatches=4)
            self.assertIs(caught.exception.__cause__, cause)
            self.expect_usable()

    def test_what_the_library_refuses_fails_the_stage(self):
        def compute(task):
            if task.stage == 2:
                task.input(0)
            chain(task)

        chain = ToyChain(WEIGHTS, INPUTS)
        with self.assertRaises(rrfp.StageFailed) as caught:
            self.pipeline.run(compute, microbatches=4)
        self.assertIsInstance(caught.exception.__cause__, rrfp.ArgumentError)
        self.expect_usable()

    def test_an_output_that_is_missing(self):
        with self.assertRaises(rrfp.StageFailed) as caught:
            self.pipeline.run(lambda task: None, microbatches=4)
        self.assertIsInstance(caught.exception.__cause__, rrfp.StateError)
        self.assertIn("0F0", caught.exception.text)
        self.expect_usable()

    def test_codes_and_odd_texts(self):
        for text in ("", "a\0b", "°" * 3000, "% %s %n"):
            def compute(task):
                task.fail(text, code=17)

            with self.assertRaises(rrfp.StageFailed) as caught:
                self.pipeline.run(compute, microbatches=4)
            self.assertEqual(caught.exception.user_code, 17)
        self.expect_usable()

    def test_bad_step_options(self):
        for options, kind in ((dict(microbatches=0), rrfp.ArgumentError),
                              (dict(microbatches=4, hint="zb-v"), rrfp.Error),
                              (dict(microbatches=4, hint="nonsense"), rrfp.UnknownName),
                              (dict(microbatches=4, order="sideways"), ValueError),
                              (dict(microbatches=4, skip=[[0]]), ValueError),
                              (dict(microbatches=4, mode=9), ValueError)):
            with self.subTest(options=options), self.assertRaises(kind):
                self.pipeline.run(lambda task: None, **options)
        self.expect_usable()

    def test_leaving_a_step_early_frees_the_others(self):
        def compute(task):
            chain(task)

        chain = ToyChain(WEIGHTS, INPUTS)
        raised = [None] * 4
        ranks = [self.pipeline.rank(r) for r in range(4)]

        def run(rank):
            try:
                with rank.step(4, "1f1b") as step:
                    for task in step:
                        with task:
                            compute(task)
                        if rank.number == 0:
                            break
            except rrfp.Error as error:
                raised[rank.number] = error

        threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            self.assertFalse(thread.is_alive())
        self.assertIsInstance(raised[0], rrfp.StateError)
        for error in raised[1:]:
            self.assertIsInstance(error, rrfp.Cancelled)
        self.pipeline.reset()
        for rank in ranks:
            rank.close()
        self.expect_usable()

    def test_cancel(self):
        def compute(task):
            started.set()
            time.sleep(0.001)
            chain(task)

        def cancel():
            started.wait()
            self.pipeline.cancel("enough")

        started, chain = threading.Event(), ToyChain(WEIGHTS, range(1000))
        canceller = threading.Thread(target=cancel)
        canceller.start()
        with self.assertRaisesRegex(rrfp.Cancelled, "enough"):
            self.pipeline.run(compute, microbatches=1000)
        canceller.join()
        self.expect_usable()

    def test_watchdog_and_report(self):
        logged = []
        with rrfp.Pipeline(rrfp.Graph.chain(2), watchdog=0.2,
                           log=lambda level, text: logged.append((level, text))) as pipeline:
            with pipeline.rank(0) as first, pipeline.rank(1) as second:
                with self.assertRaises(rrfp.Timeout), first.step(2), second.step(2) as step:
                    step.next()  # rank 0 never sends
                self.assertIn("rank", pipeline.report())
        for level, text in logged:
            self.assertIn(level, (logging.INFO, logging.WARNING, logging.ERROR))
            self.assertIsInstance(text, str)


class Misuse(unittest.TestCase):
    def test_tasks_after_they_are_done(self):
        with rrfp.Pipeline(rrfp.Graph.chain(1)) as pipeline, pipeline.rank(0) as rank:
            with rank.step(1, "gpipe") as step:
                first = step.next()
                first.done()
                for call in (first.done, lambda: first.fail("no"), lambda: first.input(0),
                             lambda: first.alloc(3), lambda: first.put(0, np.zeros(1)),
                             lambda: first.wanted(0)):
                    with self.assertRaises(rrfp.Error):
                        call()
                second = step.next()
                second.done()
                self.assertIsNone(step.next())
            with self.assertRaises(rrfp.StateError):
                step.next()

    def test_closed_handles(self):
        pipeline = rrfp.Pipeline(rrfp.Graph.chain(1))
        rank = pipeline.rank(0)
        step = rank.step(1)
        step.__enter__()
        task = step.next()
        rank.close()
        self.assertTrue(rank.closed)
        for call in (task.done, lambda: task.alloc(1), step.next, rank.wake,
                     lambda: rank.step(1).__enter__(), lambda: list(step)):
            with self.assertRaises(rrfp.Closed):
                call()
        rank.close()
        pipeline.close()
        pipeline.close()
        for call in (pipeline.reset, pipeline.report, pipeline.cancel, lambda: pipeline.rank(0),
                     lambda: pipeline.write_trace("/dev/null"),
                     lambda: pipeline.run(lambda task: None, microbatches=1)):
            with self.assertRaises(rrfp.Closed):
                call()

    def test_wrong_types(self):
        with rrfp.Pipeline(rrfp.Graph.chain(2)) as pipeline:
            def compute(task):
                with self.assertRaises(TypeError):
                    task.put(0, [1.5])
                with self.assertRaises(TypeError):
                    task.put(0, ["text", object()])
                with self.assertRaises(ValueError):
                    task.alloc(3, "float31")
                with self.assertRaises(rrfp.Error):
                    task.alloc((1,) * 9)
                with self.assertRaises(rrfp.Error):
                    task.alloc((-1,))
                with self.assertRaises((TypeError, OverflowError)):
                    task.input(1 << 40)
                raise ValueError("reached")

            with self.assertRaisesRegex(rrfp.StageFailed, "reached"):
                pipeline.run(compute, microbatches=1)
            with self.assertRaises(TypeError):
                rrfp._raw.rrfp_rank_done(pipeline._handle, 1)
            with self.assertRaises(TypeError):
                rrfp._raw.rrfp_pipeline_reset(None)

    def test_two_threads_on_one_rank(self):
        with rrfp.Pipeline(rrfp.Graph.chain(2)) as pipeline, pipeline.rank(1) as rank:
            waited = []
            with self.assertRaises(rrfp.Cancelled), rank.step(1) as step:
                waiter = threading.Thread(target=lambda: waited.append(step.next()))
                waiter.start()
                time.sleep(0.02)
                for _ in range(100):
                    with self.assertRaises(rrfp.Busy):
                        step.next()
                    time.sleep(0.002)
                rank.wake()
                waiter.join(5)
                self.assertEqual(waited, [None])
                pipeline.cancel()
                step.next()

    def test_run_inside_run(self):
        with rrfp.Pipeline(rrfp.Graph.chain(1)) as pipeline:
            with self.assertRaises(rrfp.StageFailed) as caught:
                pipeline.run(lambda task: pipeline.run(print, microbatches=1), microbatches=1)
            self.assertIsInstance(caught.exception.__cause__, rrfp.Busy)
            self.assertEqual(caught.exception.__cause__.status_name, "RRFP_ERR_BUSY")
            pipeline.run(lambda task: None, microbatches=1)

    def test_two_threads_on_one_graph(self):
        graph, hint, seen = rrfp.Graph(1), rrfp.Hint("1f1b"), set()
        graph.add_stage(rank=0, loss=True)

        def read():
            while not seen:
                try:
                    hint.to_text(graph, 100)
                except rrfp.Error as error:
                    if not isinstance(error, rrfp.Busy):
                        seen.add(error)

        reader = threading.Thread(target=read)
        reader.start()
        end = time.monotonic() + 20
        while rrfp.Busy not in seen and time.monotonic() < end:
            try:
                graph.add_edge(graph.add_stage(rank=0), 0)
            except rrfp.Busy as error:
                seen.add(type(error))
        seen.add(None)
        reader.join()
        self.assertEqual(seen, {rrfp.Busy, None})

    def test_numbers_and_texts(self):
        with rrfp.Pipeline(rrfp.Graph.chain(2), cap_slots=np.int64(3), watchdog=1e-9,
                           log=print) as pipeline:
            def compute(task):
                if task.stage == 0:
                    task.put(np.int32(0), task.alloc(np.int64(3)))

            pipeline.run(compute, microbatches=np.int64(2), step=np.int8(1), mode="forward")
            skipped = pipeline.run(compute, microbatches=1, mode="forward",
                                   skip=[[256], [0.5]])  # true, both of them
            self.assertEqual([report.tasks for report in skipped], [0, 0])
            for options in (dict(microbatches=2.0), dict(microbatches="2"),
                            dict(microbatches=1, activation_bytes=[[0.5], [1]])):
                with self.assertRaises(TypeError):
                    pipeline.run(compute, **options)
            with self.assertRaises(OverflowError):
                pipeline.run(compute, microbatches=1 << 31)
            pipeline.cancel("a\0b")
        for call in (lambda: rrfp.Hint("1f1b\0"), lambda: rrfp.Data("/\0", context=4),
                     lambda: rrfp.Trace("a").draw("/tmp/a\0.svg")):
            with self.assertRaisesRegex(ValueError, "null character"):
                call()
        with self.assertRaises(TypeError):
            rrfp.Pipeline(rrfp.Graph.chain(2), cap_slots=[1.5, 2])

    def test_a_second_handle_of_a_rank(self):
        with rrfp.Pipeline(rrfp.Graph.chain(1)) as pipeline, pipeline.rank(0):
            with self.assertRaises(rrfp.StateError):
                pipeline.rank(0)
            with self.assertRaises(rrfp.OutOfRange):
                pipeline.rank(1)

    def test_closing_sends_a_waiting_thread_out(self):
        with rrfp.Pipeline(rrfp.Graph.chain(2)) as pipeline:
            rank, raised = pipeline.rank(1), []

            def wait():
                try:
                    with rank.step(1) as step:
                        step.next()
                except rrfp.Error as error:
                    raised.append(error)

            waiter = threading.Thread(target=wait)
            waiter.start()
            time.sleep(0.05)
            begin = time.monotonic()
            rank.close()
            waiter.join(5)
            self.assertFalse(waiter.is_alive())
            self.assertLess(time.monotonic() - begin, 1)
            self.assertIsInstance(raised[0], rrfp.Closed)

    def test_time_outs(self):
        with rrfp.Pipeline(rrfp.Graph.chain(2)) as pipeline, pipeline.rank(1) as rank:
            with self.assertRaises(rrfp.StateError), rank.step(1) as step:
                begin = time.monotonic()
                self.assertIsNone(step.next(timeout=0.15))
                self.assertGreaterEqual(time.monotonic() - begin, 0.14)


if __name__ == "__main__":
    unittest.main()
