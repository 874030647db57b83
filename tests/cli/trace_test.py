#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rrfp trace: sums and pictures of timelines, of simulations and of runs."""
import html.parser
import json
import xml.etree.ElementTree

import support

PARTS = "computing input memory credit policy group complete engine".split()


class TraceTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.trace = self.dir / "trace.json"

    def simulate(self, *arguments):
        """Writes the timeline; returns the makespan."""
        result = self.ok("simulate", "--json", "--stages", 4, "--microbatches", 8, "--seeds", 1,
                         "--trace", self.trace, *arguments)
        return self.lines(result.stdout)[0][0]["makespan_ms"]

    def check_sums(self, ranks):
        summary = json.loads(self.ok("trace", self.trace, "--json").stdout)
        self.assertEqual(len(summary["ranks"]), ranks)
        idle = 0
        for rank in summary["ranks"]:
            parts = [rank[part + "_ms"] for part in PARTS]
            self.assertAlmostEqual(sum(parts), summary["makespan_ms"], places=4)
            self.assertGreater(rank["tasks"], 0)
            idle += sum(parts[1:])
        self.assertAlmostEqual(idle / summary["makespan_ms"] / ranks, summary["idle_share"],
                               places=6)
        return summary

    def test_simulation(self):
        for arguments in (["--preset", "ideal", "--hint", "1f1b", "--order", "strict"],
                          ["--preset", "multimodal"], ["--preset", "language", "--tp", 4],
                          ["--preset", "slow-link", "--hint", "rf-m", "--dispatch-us", 100]):
            with self.subTest(arguments):
                makespan = self.simulate(*arguments)
                summary = self.check_sums(4)
                self.assertAlmostEqual(summary["makespan_ms"], makespan, places=5)
        self.assertGreater(sum(rank["engine_ms"] for rank in summary["ranks"]), 0)

    def test_exact(self):
        self.simulate("--preset", "ideal", "--hint", "gpipe", "--order", "strict", "--cap", 0)
        summary = self.check_sums(4)
        self.assertEqual(summary["makespan_ms"], 330)
        for rank in summary["ranks"]:
            self.assertEqual(rank["computing_ms"], 240)
            self.assertEqual(rank["tasks"], 16)

    def test_run(self):
        self.train("--steps", 4, "--stages", 2, "--trace", self.trace, "--trace-steps", 3)
        self.check_sums(2)

    def test_table(self):
        self.simulate("--preset", "language")
        text = self.ok("trace", self.trace).stdout.decode()
        for line in text.splitlines():
            self.assertLessEqual(len(line), 85, line)
        head, milliseconds, percent = text.split("\n\n")
        self.assertRegex(head, r"^4 ranks, \d+\.\d{3} ms, idle \d+\.\d %$")
        makespan = float(head.split()[2])
        for block, unit, whole, delta in ((milliseconds, "ms", makespan, 0.01),
                                          (percent, "%", 100, 0.5)):
            rows = [line.split() for line in block.splitlines()]
            self.assertEqual(rows[0], [unit, *PARTS])
            self.assertEqual([row[0] for row in rows[1:]], ["0", "1", "2", "3", "mean"])
            for row in rows[1:]:
                self.assertAlmostEqual(sum(map(float, row[1:])), whole, delta=delta)

    def test_branches(self):
        self.simulate("--preset", "multimodal")
        summary = self.check_sums(4)
        computing = sum(rank["computing_ms"] for rank in summary["ranks"])
        self.assertEqual([branch["name"] for branch in summary["branches"]],
                         ["encoder", "language"])
        self.assertAlmostEqual(sum(b["share"] for b in summary["branches"]), 1)
        for branch in summary["branches"]:
            self.assertAlmostEqual(branch["computing_ms"] / computing, branch["share"], places=6)
        self.assertEqual(sum(b["tasks"] for b in summary["branches"]),
                         sum(rank["tasks"] for rank in summary["ranks"]))
        text = self.ok("trace", self.trace).stdout.decode()
        rows = text.split("\n\n")[3].splitlines()
        self.assertRegex(rows[0], r"^branch +computing, ms +% +tasks$")
        for row, branch in zip(rows[1:], summary["branches"], strict=True):
            name, milliseconds, share, tasks = row.split()
            self.assertEqual((name, int(tasks)), (branch["name"], branch["tasks"]))
            self.assertAlmostEqual(float(milliseconds), branch["computing_ms"], places=3)
            self.assertAlmostEqual(float(share), 100 * branch["share"], delta=0.06)
            self.assertLessEqual(len(row), 85)

    def test_a_model_without_branches(self):
        self.simulate("--preset", "language")
        self.assertNotIn("branches", self.check_sums(4))
        self.assertEqual(len(self.ok("trace", self.trace).stdout.split(b"\n\n")), 3)

    def test_hostile_branches(self):
        self.simulate("--preset", "multimodal")
        trace = json.loads(self.trace.read_text(encoding="utf-8"))
        for stage in trace["otherData"]["stages"]:
            stage[1] += "\x1b[2J\n\t\u009b<script>" + 30 * "\u00e4"
        self.trace.write_text(json.dumps(trace), encoding="utf-8")
        rows = self.ok("trace", self.trace).stdout.decode().split("\n\n")[3].splitlines()
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertTrue(row.isprintable(), row)
            self.assertEqual(len(row), len(rows[0]))
        svg, page = self.dir / "picture.svg", self.dir / "page.html"
        self.ok("trace", self.trace, "--svg", svg, "--html", page)
        xml.etree.ElementTree.parse(svg)
        self.assertEqual(page.read_text(encoding="utf-8").count("<script>"), 1)

    def test_pictures(self):
        self.simulate("--preset", "language")
        svg = self.dir / "picture.svg"
        page = self.dir / "page.html"
        self.assertEqual(self.ok("trace", self.trace, "--svg", svg, "--html", page).stdout, b"")
        root = xml.etree.ElementTree.parse(svg).getroot()
        self.assertTrue(root.tag.endswith("svg"), root.tag)
        tags = set()

        class Parser(html.parser.HTMLParser):
            def handle_starttag(self, tag, attrs):
                tags.add(tag)

        Parser().feed(page.read_text(encoding="utf-8"))
        self.assertLessEqual({"html", "body", "script"}, tags)
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()),
                         ["page.html", "picture.svg", "text.txt", "trace.json"])
        result = self.ok("trace", self.trace, "--svg", svg, "--json")
        self.assertIn("ranks", json.loads(result.stdout))

    def test_refused(self):
        self.refused("trace", names=["timeline"])
        self.refused("trace", self.dir / "missing.json", names=["missing.json"])
        self.refused("trace", self.text, names=["text.txt"])
        self.simulate("--preset", "ideal", "--hint", "1f1b")
        broken = self.dir / "broken.json"
        broken.write_bytes(self.trace.read_bytes()[:1000])
        self.refused("trace", broken, names=["broken.json"])
        self.refused("trace", broken, "--svg", self.dir / "broken.svg", names=["broken.json"])
        self.assertFalse((self.dir / "broken.svg").exists())
        for option in ("--svg", "--html"):
            self.refused("trace", self.trace, option, self.dir, names=[option, str(self.dir)])
            missing = self.dir / "none" / "picture"
            self.refused("trace", self.trace, option, missing, names=[option, str(missing)])

    def test_disk_full(self):
        self.simulate("--preset", "language")
        before = self.contents()
        for option in ("--svg", "--html"):
            self.refused("trace", self.trace, option, self.dir / "picture", file_size_max=500,
                         names=["picture"])
            self.assertEqual(self.contents(), before)
        with open("/dev/full", "wb") as full:
            result = support.run("trace", self.trace, stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot write to standard output", result.stderr)


if __name__ == "__main__":
    support.main()
