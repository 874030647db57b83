# SPDX-License-Identifier: Apache-2.0
"""Hints, the stage graph, simulations, timelines, errors."""

import copy
import os
import pickle
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from toy_chain import ToyChain

import rrfp

LISTS = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]
TEXT = "\n".join(",".join(row) for row in LISTS) + "\n"


class Hints(unittest.TestCase):
    def setUp(self):
        self.graph = rrfp.Graph.chain(2)

    def test_ways_to_make_one(self):
        tuples = [[(int(c[0]), c[1], int(c[2])) for c in row] for row in LISTS]
        priorities = {cell: i for row in LISTS for i, cell in enumerate(row)}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hint.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(TEXT)
            hints = [rrfp.Hint("1f1b"), rrfp.Hint.from_lists(LISTS), rrfp.Hint.from_lists(tuples),
                     rrfp.Hint.from_priorities(priorities), rrfp.Hint.from_text(TEXT),
                     rrfp.Hint.read(path)]
        for hint in hints:
            self.assertEqual(hint.to_text(self.graph, 2).split(), TEXT.split())
            hint.check(self.graph, 2, "ready")
        self.assertEqual(hints[0].info, rrfp.HintInfo(0, 0, 0))
        self.assertEqual(hints[4].info, rrfp.HintInfo(2, 2, 2))
        self.assertEqual(hints[4].note, "")

    def test_it_is_obeyed(self):
        # The second rank does its backwards last.
        rows = "0F0,0F1,0I0,0W0,0I1,0W1", "1F0,1F1,1I0,1W0,1I1,1W1"
        chain = ToyChain((2, 3), (1, 2))
        with rrfp.Pipeline(self.graph) as pipeline:
            pipeline.run(chain, microbatches=2, hint=rrfp.Hint.from_text("\n".join(rows)),
                         order="strict")
        self.assertEqual([",".join(order) for order in chain.order], list(rows))

    def test_lower_and_layout(self):
        text = rrfp.Hint("1f1b").lower(self.graph, 2)
        self.assertIn("SEND_F", text)
        self.assertIn("REDUCE", rrfp.Hint("1f1b").lower(self.graph, 2, reduce=True))
        self.assertIn("UNSHARD", rrfp.Hint("1f1b").lower(self.graph, 2, fsdp=True))
        self.assertEqual(rrfp.Hint.layout("zb-v"), (rrfp.Placement.V, 2, 1))
        self.assertEqual(rrfp.Hint.layout("dualpipe").streams, 2)
        graph = rrfp.Graph(2)
        for stage in range(2):
            graph.add_stage(loss=stage == 1)
        graph.add_edge(0, 1)
        graph.place_by_hint(rrfp.Hint.from_text(TEXT))
        graph.check()

    def test_long_texts(self):
        lines = rrfp.Hint("gpipe").to_text(self.graph, 2000).split()
        self.assertEqual([line.count(",") for line in lines], [3999, 3999])

    def test_mistakes(self):
        for call, kind in (
                (lambda: rrfp.Hint("nobody"), rrfp.UnknownName),
                (lambda: rrfp.Hint.layout("nobody"), rrfp.UnknownName),
                (lambda: rrfp.Hint.from_text("0F0,0X1"), rrfp.HintSyntaxError),
                (lambda: rrfp.Hint.from_lists([["0F"]]), ValueError),
                (lambda: rrfp.Hint.from_lists([["F"]]), ValueError),
                (lambda: rrfp.Hint.from_lists([[(0, "Q", 1)]]), ValueError),
                (lambda: rrfp.Hint.from_lists([LISTS[1], LISTS[0]]).check(self.graph, 2),
                 rrfp.Error),
                (lambda: rrfp.Hint.from_text("1B0,1F0\n0F0,0B0").check(self.graph, 1),
                 rrfp.Error),
                (lambda: rrfp.Hint("1f1b").to_text(self.graph, 0), rrfp.Error),
                (lambda: self.graph.add_edge(0, 5), rrfp.OutOfRange),
                (lambda: self.graph.place_stage(9, 0), rrfp.OutOfRange),
                (lambda: self.graph.place("upside-down"), ValueError),
                (lambda: self.graph.declare(4, (1,)), rrfp.OutOfRange),
                (lambda: rrfp.Graph(0), rrfp.ArgumentError),
                (lambda: rrfp.Graph(2).check(), rrfp.ArgumentError)):
            with self.assertRaises(kind):
                call()

    def test_a_cycle(self):
        graph = rrfp.Graph.chain(2)
        graph.add_edge(1, 0)
        with self.assertRaises(rrfp.GraphError):
            rrfp.Pipeline(graph)


class Simulations(unittest.TestCase):
    def test_a_preset(self):
        self.assertIn("language", rrfp.presets())
        with rrfp.Simulation("language", hint="zb-h1", stages=4, microbatches=8) as simulation:
            first, second = simulation.run(1), simulation.run(2)
            self.assertEqual(simulation.run(1), first)
            self.assertNotEqual(first, second)
            self.assertGreaterEqual(first.makespan_ns, first.bound_ns)
            self.assertEqual((first.ranks, first.microbatches), (4, 8))
            self.assertIn("zb-h1", simulation.describe())
            trace = simulation.trace()
        with rrfp.Simulation(trace=trace, hint="1f1b") as again:
            self.assertEqual(again.run(0).ranks, 4)
        with self.assertRaises(rrfp.Closed):
            simulation.run(1)

    def test_auto(self):
        with rrfp.Simulation("uniform", stages=4, microbatches=8) as simulation:
            simulation.run(1)
            self.assertTrue(simulation.describe())

    def test_mistakes(self):
        for options in (dict(preset="nobody"), dict(), dict(trace="/nonexistent"),
                        dict(preset="language", hint="nobody"),
                        dict(preset="language", stages=-1)):
            with self.assertRaises(rrfp.Error):
                rrfp.Simulation(**options).run(1)

    def test_stress(self):
        done = []
        report = rrfp.stress(100, progress=done.append)
        self.assertEqual((report.cases, report.stalls, report.task_errors, report.bad_case),
                         (100, 0, 0, ""))
        self.assertTrue(done)
        self.assertLess(rrfp.stress(100000, progress=lambda cases: cases < 10).cases, 100000)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            rrfp.stress(1000, progress=lambda cases: 1 / 0)


class Traces(unittest.TestCase):
    def test_pictures_and_numbers(self):
        with rrfp.Pipeline(rrfp.Graph.chain(4), trace_steps=3) as pipeline:
            pipeline.run(ToyChain((1, 2, 3, 4), range(8)), microbatches=8, hint="zb-h1")
            trace = pipeline.trace()
        picture = ElementTree.fromstring(trace._repr_svg_())
        self.assertTrue(picture.tag.endswith("svg"))
        self.assertIn("<html", trace.html().lower())
        summary = trace.summary()
        self.assertGreaterEqual(sum(rank["tasks"] for rank in summary["ranks"]), 4 * 16)
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "trace.json")
            trace.save(saved)
            rrfp.Trace(saved).draw(os.path.join(folder, "trace.html"))
            with self.assertRaises(ValueError):
                trace.draw(os.path.join(folder, "trace.png"))
            with open(saved, "w", encoding="utf-8") as file:
                file.write("[1")
            with self.assertRaises(rrfp.DataError):
                rrfp.Trace(saved).summary()
        path = trace.path
        del trace
        self.assertFalse(os.path.exists(path))

    def test_a_hint_as_a_picture(self):
        trace = rrfp.Hint("zb-h1").trace(rrfp.Graph.chain(4), 8)
        self.assertEqual(len(trace.summary()["ranks"]), 4)

    def test_without_trace_steps(self):
        with rrfp.Pipeline(rrfp.Graph.chain(1)) as pipeline:
            with self.assertRaises(rrfp.StateError):
                pipeline.trace()


class Errors(unittest.TestCase):
    def test_kinds(self):
        with self.assertRaises(rrfp.UnknownName) as caught:
            rrfp.Hint("nobody")
        error = caught.exception
        self.assertIsInstance(error, (ValueError, rrfp.ArgumentError, LookupError))
        self.assertEqual((error.status, error.status_name), (-104, "RRFP_ERR_UNKNOWN_NAME"))
        self.assertIn("nobody", str(error))
        self.assertIsNone(error.rank)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), again.text, again.status),
                         (type(error), error.text, error.status))
        copy.copy(error)

    def test_every_status_has_a_class(self):
        named = {name: getattr(rrfp._raw, name) for name in dir(rrfp._raw)
                 if name.startswith("RRFP_ERR_")}
        self.assertEqual(set(named.values()), set(rrfp.errors._BY_STATUS))
        for status in named.values():
            error = rrfp.errors._from_status(status, 1, 2, 3, 0, 4, "text")
            self.assertEqual((error.status, str(error), error.rank), (status, "text", 1))
        # Of a newer library: by its group.
        self.assertIs(type(rrfp.errors._from_status(-598, 0, 0, 0, 0, 0, "")), rrfp.EngineError)
        self.assertIs(type(rrfp.errors._from_status(-9998, 0, 0, 0, 0, 0, "")), rrfp.Error)

    def test_version(self):
        self.assertRegex(rrfp.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
