#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What training computes does not depend on the pipeline, and is reported as promised."""
import json
import struct

import support

STEPS = ["--steps", 3]


class JsonTest(support.CliTest):
    def test_keys(self):
        trace = self.dir / "trace.json"
        save = self.dir / "save"
        lines, summary = self.train("--steps", 4, "--eval-every", 2, "--stages", 2, "--save", save,
                                    "--trace", trace)
        self.assertEqual([line["step"] for line in lines], [1, 2, 3, 4])
        for line in lines:
            self.assertLessEqual({"step", "loss", "tokens_per_s", "idle_share"}, line.keys())
            self.assertGreater(line["tokens_per_s"], 0)
            self.assertTrue(0 <= line["idle_share"] <= 1)
        self.assertIn("val_loss", lines[1])
        for key in ("steps", "loss", "val_loss", "unigram_entropy", "tokens_per_s", "idle_share",
                    "peak_bytes", "weights_sha256", "checkpoint", "trace"):
            self.assertIsNotNone(summary[key], key)
        self.assertEqual(summary["steps"], 4)
        self.assertEqual(summary["loss"], lines[-1]["loss"])
        self.assertRegex(summary["weights_sha256"], "^[0-9a-f]{64}$")
        self.assertGreater(summary["peak_bytes"], 0)
        self.assertAlmostEqual(sum(summary["time_shares"].values()), 1, places=6)
        with open(summary["trace"], encoding="utf-8") as file:
            self.assertIn("traceEvents", json.load(file))
        self.assertTrue(summary["checkpoint"].startswith(str(save)))
        self.assertEqual(support.steps_in(save), [4])

    def test_hint_that_ran(self):
        _, summary = self.train(*STEPS, "--stages", 2, "--hint", "rf-1")
        self.assertEqual((summary["hint"], summary["hint_why"]), ("rf-1", None))
        _, summary = self.train("--steps", 12, "--stages", 2, "--hint", "auto")
        self.assertNotEqual(summary["hint"], "auto")
        self.assertTrue(summary["hint_why"].startswith(summary["hint"]), summary)
        self.assertIn("measured", summary["hint_why"])
        text = self.ok("train", "--data", self.text, *support.TINY, *STEPS, "--stages", 2, "--hint",
                       "auto", "--quiet").stdout.decode()
        self.assertRegex(text, r"(?m)^hint +\S")
        self.assertRegex(text, r"(?m)^  chosen +.*measured")

    def test_learns(self):
        lines, summary = self.train("--steps", 60, "--lr", "1e-2")
        self.assertLess(lines[-1]["loss"], lines[0]["loss"])
        self.assertLess(summary["val_loss"], lines[0]["loss"])

    def test_without_validation(self):
        _, summary = self.train(*STEPS, "--validation", 0)
        self.assertIsNone(summary["val_loss"])

    def test_nondeterministic(self):
        lines, summary = self.train(*STEPS)
        for options in ([], ["--stages", 4, "--hint", "bfw", "--delay-us", 300]):
            found_lines, found = self.train(*STEPS, "--nondeterministic", *options)
            self.assertEqual(len(found_lines), len(lines))
            for line, expected in zip(found_lines, lines):
                self.assertAlmostEqual(line["loss"], expected["loss"], places=4)
            self.assertAlmostEqual(found["val_loss"], summary["val_loss"], places=4)

    def test_validation_reaches_every_file(self):
        # Of equal length: the windows are the same, and only those in the last file differ.
        losses = []
        for last in (b"z", b"#"):
            folder = self.dir / last.hex()
            folder.mkdir()
            (folder / "1").write_bytes(support.sample_text())
            (folder / "2").write_bytes(last * 6000)
            result = self.ok("train", "--json", "--data", folder, *support.TINY, "--steps", 1,
                             "--lr", 0)
            losses.append(self.lines(result.stdout)[1]["val_loss"])
        self.assertNotEqual(*losses)

    def test_tokens(self):
        data = self.dir / "tokens"
        data.write_bytes(struct.pack("<3000I", *(i * i % 300 for i in range(3000))))
        result = self.ok("train", "--json", *support.TINY, *STEPS, "--data", data, "--format",
                         "u32", "--vocabulary", 300)
        self.lines(result.stdout)


class SameResultTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.expected = None

    def check_same(self, *arguments):
        with self.subTest(arguments):
            lines, summary = self.train(*STEPS, *arguments)
            found = (support.losses(lines), summary["val_loss"], summary["weights_sha256"])
            self.expected = self.expected or found
            self.assertEqual(found, self.expected)

    def test_stages_hints_orders(self):
        self.check_same()
        for hint in ("gpipe", "1f1b", "bf", "bfw", "zb-h1"):
            self.check_same("--stages", 2, "--hint", hint)
            self.check_same("--stages", 4, "--hint", hint, "--recompute")
        for hint in ("gpipe", "1f1b", "zb-h1"):
            self.check_same("--stages", 4, "--hint", hint, "--order", "strict")

    def test_published_schedules_and_policies(self):
        self.check_same()
        for hint in ("zb-h2", "rf-1", "bfw-sort"):
            self.check_same("--stages", 4, "--hint", hint)
        self.check_same("--stages", 4, "--hint", "zb-h2", "--order", "strict")
        self.check_same("--stages", 2, "--hint", "1f1b", "--order", "paired")
        for hint in ("interleaved", "interleaved:2", "interleaved-zb", "looped-bfs"):
            self.check_same("--stages", 4, "--ranks", 2, "--placement", "loop", "--hint", hint)
        for hint in ("zb-v", "v-half", "v-min", "dualpipe-v", "rf-v", "rf-m"):
            self.check_same("--stages", 4, "--placement", "v", "--hint", hint)

    def test_auto(self):
        self.check_same()
        self.check_same("--stages", 2, "--hint", "auto")
        self.check_same("--stages", 4, "--hint", "auto", "--placement", "v", "--delay-us", 300)

    def test_placements(self):
        self.check_same()
        for placement in ("loop", "v"):
            for hint in ("gpipe", "bfw"):
                self.check_same("--stages", 4, "--ranks", 2, "--placement", placement, "--hint",
                                hint)
        self.check_same("--stages", 4, "--placement", "v", "--wake", "yield")

    def test_timing_and_memory(self):
        self.check_same()
        self.check_same("--stages", 4, "--delay-us", 300)
        self.check_same("--stages", 4, "--delay-us", 300, "--placement", "v", "--hint", "bf")
        self.check_same("--stages", 2, "--partition", "measured")
        self.check_same("--stages", 2, "--hold", 500)
        self.check_same("--stages", 4, "--cap", 2)
        self.check_same("--recompute")

    def test_schedule_file(self):
        self.check_same()
        rows = []
        for rank in range(2):
            forwards = [f"{rank}F{m}" for m in range(4)]
            rows.append(",".join(forwards + [f"{rank}B{m}" for m in range(4)]))
        schedule = self.dir / "schedule.csv"
        schedule.write_text("\n".join(rows) + "\n")
        self.check_same("--stages", 2, "--hint", schedule)
        self.check_same("--stages", 2, "--hint", schedule, "--order", "strict")

    def test_options_that_change_the_result_do(self):
        self.check_same()
        for arguments in (["--seed", 2], ["--optimizer", "sgd", "--momentum", "0.9"],
                          ["--decay", "linear"], ["--tied", "--rotary", "--rms-norm", "--swiglu"],
                          ["--dropout", "0.1"], ["--kv-heads", 1], ["--hidden", 24]):
            with self.subTest(arguments):
                _, summary = self.train(*STEPS, *arguments)
                self.assertNotEqual(summary["weights_sha256"], self.expected[2])

    def test_injection(self):
        # Of unequal size: 3, 3, 2 and 2 samples.
        uneven = ["train", "--json", "--data", self.text, *support.MODEL, "--batch", 10,
                  "--microbatches", 4, "--steps", 3, *support.STEADY]
        found = {}
        for injection in ("tent", "data"):
            save = self.dir / injection
            result = self.ok(*uneven, "--injection", injection, "--stages", 2, "--save", save)
            found[injection] = self.lines(result.stdout)[1]["weights_sha256"]
            state = json.loads((next(save.glob("step-*3")) / "state.json").read_text())
            self.assertEqual(state["user"]["training"]["injection"], injection)
        self.assertNotEqual(found["tent"], found["data"])
        self.assertEqual(self.lines(self.ok(*uneven).stdout)[1]["weights_sha256"], found["tent"])
        # A resumed run keeps it.
        _, resumed = self.resume(self.dir / "data", "--steps", 5)
        uneven[uneven.index("--steps") + 1] = 5
        _, whole = self.lines(self.ok(*uneven, "--injection", "data").stdout)
        self.assertEqual(resumed["weights_sha256"], whole["weights_sha256"])
        _, evaluated = self.resume(self.dir / "data")
        result = json.loads(self.ok("eval", "--json", "--checkpoint", self.dir / "data").stdout)
        self.assertEqual(result["loss"], evaluated["val_loss"])

    def test_accumulation(self):
        _, summary = self.train(*STEPS, "--stages", 2, "--accumulate", 2)
        _, again = self.train(*STEPS, "--stages", 4, "--accumulate", 2)
        self.assertEqual(summary["weights_sha256"], again["weights_sha256"])


if __name__ == "__main__":
    support.main()
