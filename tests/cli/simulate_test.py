#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rrfp simulate: figures that are known exactly, the JSON that programs read, charts, Ctrl-C."""
import json
import re
import signal
import time
import xml.etree.ElementTree

import support

PRESETS = ("ideal uniform language multimodal straggler slow-link language-long-tail "
           "multimodal-heavy").split()
SMALL = ["--stages", 4, "--microbatches", 8]
SUMMARY_KEYS = {"preset", "stages", "microbatches", "hint", "order", "cap", "seeds", "makespan_ms",
                "ratio_to_bound", "peak_ratio", "chosen"}
SEED_KEYS = {"seed", "makespan_ms", "ratio_to_bound", "peak_ratio", "busy_share", "wait_shares",
             "tasks", "messages", "ran", "why"}
BAD_KEYS = ["stalls", "cap_violations", "task_errors", "failure_errors"]


class SimulateTest(support.CliTest):
    def simulate(self, *arguments):
        """The lines of the seeds and the summary."""
        return self.lines(self.ok("simulate", "--json", *arguments).stdout)

    def median(self, *arguments):
        return self.simulate(*arguments)[1]["makespan_ms"]["median"]


class FiguresTest(SimulateTest):
    def test_published_makespans(self):
        for hint, milliseconds in (("gpipe", 2370), ("1f1b", 2370), ("interleaved", 2145),
                                   ("zb-h1", 2070)):
            with self.subTest(hint):
                lines, summary = self.simulate(
                    "--preset", "ideal", "--stages", 16, "--microbatches", 64, "--order", "strict",
                    "--seeds", 1, "--cap", 0, "--hint", hint)
                self.assertEqual(len(lines), 1)
                self.assertEqual(lines[0]["makespan_ms"], milliseconds)
                self.assertEqual(summary["makespan_ms"],
                                 {"median": milliseconds, "min": milliseconds, "max": milliseconds})
                self.assertEqual(summary["chosen"], {hint: 1})

    def test_memory(self):
        ideal = ["--preset", "ideal", "--stages", 4, "--microbatches", 16, "--seeds", 1]
        # GPipe holds all microbatches where 1F1B holds one for each stage.
        for hint, peak in (("gpipe", 4), ("1f1b", 1), ("zb-h1", 1)):
            lines, _ = self.simulate(*ideal, "--order", "strict", "--cap", 0, "--hint", hint)
            self.assertEqual(lines[0]["peak_ratio"], peak, hint)
        # A strict order takes what it needs; as a ranking it stays within any cap.
        lines, _ = self.simulate(*ideal, "--order", "strict", "--cap", 1, "--hint", "gpipe")
        self.assertEqual(lines[0]["peak_ratio"], 4)
        self.refused("simulate", *ideal, "--cap", "0.1", "--hint", "gpipe", names=["cap"])
        self.refused("simulate", *ideal, "--cap", "0.1", names=["cap of 0.1"])
        for cap in (1, 2):
            lines, summary = self.simulate(*ideal, "--cap", cap, "--hint", "gpipe")
            self.assertLessEqual(lines[0]["peak_ratio"], cap)
            self.assertEqual(summary["cap"], cap)
        # More memory is never worse here, and is used.
        language = ["--preset", "language", "--hint", "rf-m", "--seeds", 4]
        self.assertLess(self.median(*language, "--cap", 2), self.median(*language, "--cap", 1))

    def test_auto_beats_fixed_order(self):
        language = ["--preset", "language", "--seeds", 3]
        _, auto = self.simulate(*language)
        strict = self.median(*language, "--hint", "1f1b", "--order", "strict")
        paired = self.median(*language, "--hint", "1f1b", "--order", "paired")
        self.assertEqual(auto["hint"], "auto")
        self.assertEqual(sum(auto["chosen"].values()), 3)
        self.assertLess(auto["makespan_ms"]["median"], strict)
        self.assertLess(strict, paired)
        self.assertGreaterEqual(auto["ratio_to_bound"]["min"], 1)

    def test_options_reach_the_simulation(self):
        base = ["--preset", "language", *SMALL, "--seeds", 2, "--hint", "bfw"]
        expected = self.median(*base)
        for arguments in (["--tp", 4], ["--tp", 4, "--tp-readiness", "leader"], ["--dp", 3],
                          ["--injection", "tent"], ["--dispatch-us", 500], ["--report-us", 500],
                          ["--first-seed", 7]):
            with self.subTest(arguments):
                self.simulate(*base, *arguments)
        for arguments in (["--dp", 3], ["--dispatch-us", 500], ["--report-us", 5000]):
            with self.subTest(arguments):
                self.assertGreater(self.median(*base, *arguments), expected)
        lines, _ = self.simulate(*base, "--offload-ms", 2)
        self.assertGreater(sum(line["offloads"] for line in lines), 0)
        self.simulate(*base, "--nondeterministic")
        self.simulate("--preset", "language", *SMALL, "--seeds", 1, "--history", 2)

    def test_every_hint_and_preset(self):
        linear = ["gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2", "rf-1", "bfw-sort", "rf-d"]
        others = ["interleaved", "interleaved:4", "interleaved-zb", "looped-bfs", "zb-v", "v-half",
                  "v-min", "dualpipe", "dualpipe-v", "rf-v", "rf-m"]
        for hint in linear + others:
            with self.subTest(hint):
                _, summary = self.simulate("--preset", "uniform", *SMALL, "--seeds", 1, "--cap", 0,
                                           "--hint", hint)
                self.assertEqual(summary["hint"], hint)
        for preset in PRESETS:
            with self.subTest(preset):
                _, summary = self.simulate("--preset", preset, *SMALL, "--seeds", 1)
                self.assertEqual(summary["preset"], preset)


class OutputTest(SimulateTest):
    def test_json(self):
        lines, summary = self.simulate("--preset", "straggler", *SMALL, "--seeds", 4,
                                       "--first-seed", 5)
        self.assertEqual([line["seed"] for line in lines], [5, 6, 7, 8])
        for line in lines:
            self.assertLessEqual(SEED_KEYS, line.keys())
            shares = line["busy_share"] + sum(line["wait_shares"].values())
            self.assertTrue(0 < shares <= 1 + 1e-9, line)
            self.assertIn(line["ran"], line["why"])
        self.assertLessEqual(SUMMARY_KEYS, summary.keys())
        self.assertEqual((summary["stages"], summary["microbatches"]), (4, 8))
        self.assertEqual((summary["order"], summary["seeds"]), ("ready", 4))
        for key in ("makespan_ms", "ratio_to_bound", "peak_ratio"):
            values = sorted(line[key] for line in lines)
            self.assertEqual(summary[key], {"median": (values[1] + values[2]) / 2,
                                            "min": values[0], "max": values[3]})
        counts = {}
        for line in lines:
            counts[line["ran"]] = counts.get(line["ran"], 0) + 1
        self.assertEqual(summary["chosen"], counts)
        again, _ = self.simulate("--preset", "straggler", *SMALL, "--seeds", 1, "--first-seed", 7)
        self.assertEqual(again[0], lines[2])

    def test_defaults(self):
        _, summary = self.simulate("--preset", "ideal", "--hint", "1f1b", "--seeds", 1)
        self.assertEqual((summary["stages"], summary["microbatches"], summary["cap"]), (16, 64, 1))

    def test_table(self):
        text = self.ok("simulate", "--preset", "language", *SMALL, "--seeds", 3).stdout.decode()
        self.assertRegex(text, r"^language: 4 stages, 8 microbatches; hint auto")
        for name in ("0", "1", "2", "median", "min", "max"):
            self.assertRegex(text, rf"(?m)^ *{name} +\d+\.\d{{3}} +\d\.\d{{3}} ")
        self.assertRegex(text, r"(?m)^chosen: \S.* in \d")
        text = self.ok("simulate", "--preset", "language", *SMALL, "--seeds", 1, "--hint", "1f1b",
                       "--order", "strict").stdout.decode()
        self.assertIn("hint 1f1b, order strict", text)
        self.assertNotIn("chosen", text)

    def test_trace_and_chart(self):
        trace = self.dir / "trace.json"
        chart = self.dir / "chart.svg"
        lines, _ = self.simulate("--preset", "language", *SMALL, "--seeds", 2, "--trace", trace,
                                 "--chart", chart)
        summary = json.loads(self.ok("trace", trace, "--json").stdout)
        self.assertAlmostEqual(summary["makespan_ms"], lines[0]["makespan_ms"], places=5)
        root = xml.etree.ElementTree.parse(chart).getroot()
        self.assertTrue(root.tag.endswith("svg"), root.tag)
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()),
                         ["chart.svg", "text.txt", "trace.json"])

    def test_closed_output(self):
        with open("/dev/full", "wb") as full:
            result = support.run("simulate", *SMALL, "--seeds", 1, stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot write to standard output", result.stderr)


class MeasuredTest(SimulateTest):
    def traced(self, *arguments):
        trace = self.dir / "measured.json"
        lines, _ = self.simulate(*arguments, "--seeds", 1, "--trace", trace)
        return trace, lines[0]["makespan_ms"]

    def test_the_same_again(self):
        for hint in ("1f1b", "zb-h1", "interleaved", "zb-v"):
            with self.subTest(hint):
                way = ["--hint", hint, "--order", "strict", "--cap", 0]
                trace, expected = self.traced("--preset", "ideal", *SMALL, *way)
                lines, summary = self.simulate("--measured", trace, *way)
                self.assertEqual(lines[0]["makespan_ms"], expected)
                self.assertEqual((summary["stages"], summary["microbatches"]), (4, 8))
                self.assertIsNone(summary["ratio_to_bound"])
                self.assertIsNone(summary["preset"])
                self.assertEqual(summary["measured"], str(trace))

    def test_with_links(self):
        # Equal messages over links that are never busy: each takes what the mean takes.
        way = ["--hint", "1f1b", "--order", "strict"]
        trace, expected = self.traced("--preset", "uniform", *SMALL, *way)
        found = self.median("--measured", trace, *way, "--seeds", 1)
        self.assertAlmostEqual(found / expected, 1, places=4)

    def test_other_ways(self):
        trace, _ = self.traced("--preset", "language", *SMALL, "--hint", "gpipe", "--cap", 0)
        for hint in ("auto", "bfw", "rf-1"):
            _, summary = self.simulate("--measured", trace, "--hint", hint, "--seeds", 2)
            self.assertEqual(summary["seeds"], 2)

    def test_a_run(self):
        trace = self.dir / "run.json"
        self.train("--steps", 3, "--stages", 2, "--trace", trace)
        _, summary = self.simulate("--measured", trace, "--hint", "1f1b", "--seeds", 3)
        self.assertEqual((summary["stages"], summary["microbatches"]), (2, 4))
        self.assertIn("2 stages", self.ok("simulate", "--measured", trace).stdout.decode())

    def test_refused(self):
        trace, _ = self.traced("--preset", "ideal", *SMALL, "--hint", "1f1b")
        for arguments, names in ((["--stages", 8], ["8", "4"]),
                                 (["--microbatches", 7], ["7", "8"]),
                                 (["--preset", "ideal"], ["--preset"]),
                                 (["--injection", "tent"], ["--injection tent"]),
                                 (["--history", 3], ["--history"])):
            with self.subTest(arguments):
                self.refused("simulate", "--measured", trace, *arguments,
                             names=["--measured", "measured.json", *names])
        self.refused("simulate", "--measured", self.dir / "missing.json",
                     names=["--measured", "missing.json"])
        self.refused("simulate", "--measured", self.text, names=["--measured", "text.txt"])
        trace.write_text(re.sub(r'"arrived_us":\d[\d.]*', '"arrived_us":2e12',
                                trace.read_text(encoding="utf-8")), encoding="utf-8")
        self.refused("simulate", "--measured", trace, names=["message took", "1099511 ms"])


class StressTest(SimulateTest):
    def test_nothing_bad(self):
        report = json.loads(self.ok("simulate", "--stress", 300, "--json").stdout)
        self.assertEqual(report["cases"], 300)
        self.assertGreater(report["faults"], 0)
        self.assertLess(report["refused"], 300)
        for key in BAD_KEYS:
            self.assertEqual(report[key], 0, report)
        self.assertIsNone(report["first_bad"])

    def test_text(self):
        result = self.ok("simulate", "--stress", 40, "--first-seed", 1000)
        text = result.stdout.decode()
        for name in ("cases", "faults", "refused", "stalls", "cap violations", "task errors",
                     "failure errors"):
            self.assertRegex(text, rf"(?m)^{name} +\d+$")
        self.assertIn(b"case 40/40", result.stderr)
        self.assertNotIn("bad", text)

    def test_alone(self):
        self.refused("simulate", "--stress", 5, "--preset", "ideal", names=["--preset", "--stress"])
        self.refused("simulate", "--stress", 0, names=["--stress", "0"])


class StopTest(SimulateTest):
    def stopped(self, process, seconds):
        """Sends Ctrl-C once the command works; returns its output."""
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        out, errors = process.communicate(timeout=support.TIMEOUT_S)
        self.assertLess(time.monotonic() - start, 3)  # one second, on a machine with nothing to do
        self.assertEqual(process.returncode, 130, errors)
        return out

    def test_between_seeds(self):
        process = support.start("simulate", "--preset", "language", "--hint", "1f1b", "--seeds",
                                1000000, "--json")
        lines, summary = self.lines(self.stopped(process, 1))
        self.assertEqual(summary["seeds"], len(lines))
        self.assertGreater(len(lines), 0)
        self.assertIsNotNone(summary["makespan_ms"]["median"])

    def test_within_a_seed(self):
        # A step that takes minutes.
        process = support.start("simulate", "--preset", "language", "--hint", "gpipe", "--stages",
                                512, "--microbatches", 20000, "--seeds", 3)
        self.assertEqual(self.stopped(process, 1), b"no seed was simulated\n")

    def test_stress(self):
        process = support.start("simulate", "--stress", 100000000, "--json")
        report = json.loads(self.stopped(process, 1))
        self.assertGreater(report["cases"], 0)


class RefusalTest(SimulateTest):
    def test_names(self):
        text = self.refused("simulate", "--preset", "languages", names=["--preset languages"])
        for preset in PRESETS:
            self.assertIn(preset, text)
        text = self.refused("simulate", "--hint", "zigzag", names=["--hint zigzag"])
        for hint in ("auto", "rf-d", "rf-m", "interleaved-zb", "dualpipe-v"):
            self.assertIn(hint, text)

    def test_values(self):
        for arguments in (["--stages", "0"], ["--microbatches", "-1"], ["--cap", "-1"],
                          ["--cap", "nan"], ["--seeds", "0"], ["--first-seed", "-3"], ["--tp", "0"],
                          ["--tp", "5000"], ["--dp", "0"], ["--tp-readiness", "some"],
                          ["--order", "any"], ["--injection", "none"], ["--offload-ms", "-1"],
                          ["--history", "0"], ["--dispatch-us", "-1"], ["--report-us", "soon"]):
            with self.subTest(arguments):
                self.refused("simulate", *arguments, names=arguments)

    def test_combinations(self):
        for hint in ("auto", "rf-d"):
            self.refused("simulate", "--hint", hint, "--order", "strict",
                         names=["--order strict", f"--hint {hint}"])
        self.refused("simulate", "--hint", "1f1b", "--history", 4, names=["--history 4"])
        self.refused("simulate", *SMALL, "--hint", "interleaved:9", names=["interleaved:9"])
        self.refused("simulate", "--stages", 4, "--microbatches", 3, "--hint", "dualpipe",
                     names=["--hint dualpipe", "4 ranks"])

    def test_order_that_cannot_be_obeyed(self):
        text = self.refused("simulate", "--preset", "ideal", *SMALL, "--hint", "bfw", "--order",
                            "strict", "--seeds", 1)
        self.assertTrue(re.search("bfw|rank", text), text)

    def test_output_paths(self):
        for option in ("--trace", "--chart"):
            self.refused("simulate", *SMALL, option, self.dir, names=[option, str(self.dir)])
            missing = self.dir / "missing" / "file"
            self.refused("simulate", *SMALL, option, missing, names=[option, str(missing)])
        self.assertEqual(list(self.contents()), [self.text.relative_to(self.dir)])


if __name__ == "__main__":
    support.main()
