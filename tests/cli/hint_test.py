#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rrfp hint: schedules as text in both forms, back and forth, checked and drawn."""
import xml.etree.ElementTree

import support

TWO = ["--stages", 2, "--microbatches", 2]
# Published forms for two ranks.
COMPUTE = {
    "1f1b": "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",
    "zb-h1": "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n",
}
COMPLETE = {
    "1f1b": "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
    "zb-h1": "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0I0,0W0,0RECV_B1,0I1,0W1\n"
             "1RECV_F0,1F0,1RECV_F1,1I0,1SEND_B0,1F1,1I1,1SEND_B1,1W0,1W1\n",
}
ZB_V = (  # two ranks, three microbatches, complete
    "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,0F2,0SEND_F2,3F0,3RECV_F1,3I0,3SEND_B0,3W0,3F1,3I1,"
    "3SEND_B1,0RECV_B0,3W1,0I0,3RECV_F2,0W0,3F2,3I2,3SEND_B2,0RECV_B1,3W2,0I1,0RECV_B2,0W1,0I2,"
    "0W2\n"
    "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1RECV_F2,1F1,2F1,2SEND_F1,2RECV_B0,2I0,2W0,1F2,2RECV_B1,"
    "1I0,1SEND_B0,1W0,2F2,2SEND_F2,2I1,2W1,2RECV_B2,1I1,1SEND_B1,2I2,1I2,1SEND_B2,1W1,2W2,1W2\n")
# Name, ranks and microbatches, for which each schedule exists.
ALL = [("gpipe", 3, 4), ("1f1b", 3, 4), ("bf", 3, 4), ("bfw", 3, 4), ("zb-h1", 3, 4),
       ("zb-h2", 3, 4), ("interleaved", 2, 4), ("interleaved:3", 2, 6), ("interleaved-zb", 2, 4),
       ("looped-bfs", 2, 2), ("zb-v", 2, 3), ("v-half", 2, 4), ("v-min", 3, 4), ("dualpipe", 2, 4),
       ("dualpipe-v", 2, 4), ("rf-1", 3, 4), ("rf-v", 2, 4), ("rf-m", 2, 4), ("bfw-sort", 3, 4)]
RANKINGS = ("bf", "bfw", "rf-v", "bfw-sort")


class HintTest(support.CliTest):
    def text_of(self, *arguments):
        return self.ok("hint", *arguments).stdout.decode()

    def file_of(self, text, name="schedule.csv"):
        path = self.dir / name
        path.write_bytes(text.encode())
        return path


class TextTest(HintTest):
    def test_published_forms(self):
        for name, text in COMPUTE.items():
            self.assertEqual(self.text_of(name, *TWO), text)
            self.assertEqual(self.text_of(name, *TWO, "--format", "compute"), text)
            self.assertEqual(self.text_of(name, *TWO, "--format", "complete"), COMPLETE[name])
        self.assertEqual(self.text_of("zb-v", "--stages", 2, "--microbatches", 3, "--format",
                                      "complete"), ZB_V)

    def test_every_name(self):
        for name, ranks, microbatches in ALL:
            with self.subTest(name):
                layout = [name, "--stages", ranks, "--microbatches", microbatches]
                rows = self.text_of(*layout).splitlines()
                self.assertEqual(len(rows), ranks)
                cells = [cell for row in rows for cell in row.split(",")]
                self.assertEqual(len(set(cells)), len(cells))
                if name not in RANKINGS:
                    verdict = self.text_of(*layout, "--validate")
                    self.assertRegex(verdict, r"complete +yes\nstrict +yes\n")

    def test_conversions(self):
        for name, ranks, microbatches in ALL:
            if name in RANKINGS or name == "dualpipe":  # two chains: a text does not say so
                continue
            with self.subTest(name):
                layout = [name, "--stages", ranks, "--microbatches", microbatches]
                compute = self.text_of(*layout)
                complete = self.text_of(*layout, "--format", "complete")
                self.assertIn("SEND_F", complete)
                file = self.file_of(complete)
                self.assertEqual(self.text_of(file), compute)
                self.assertEqual(self.text_of(file, "--format", "complete"), complete)
                file = self.file_of(compute.replace("\n", "\r\n"))
                self.assertEqual(self.text_of(file, "--format", "complete"), complete)
                self.assertEqual(self.text_of(file, "--stages", ranks, "--microbatches",
                                              microbatches), compute)

    def test_actions_of_sharded_stages(self):
        text = self.text_of("1f1b", *TWO, "--format", "complete", "--fsdp", "--reduce")
        for action in ("0UNSHARD", "1RESHARD", "0REDUCE_GRAD", "1REDUCE_GRAD"):
            self.assertIn(action, text)
        self.assertEqual(self.text_of(self.file_of(text)), COMPUTE["1f1b"])
        self.assertNotIn("SHARD", self.text_of("1f1b", *TWO, "--format", "complete", "--reduce"))

    def test_layout(self):
        rows = self.text_of("1f1b", *TWO, "--chunks", 3).splitlines()
        self.assertEqual({cell[0] for cell in rows[0].split(",")}, {"0", "2", "4"})
        rows = self.text_of("gpipe", *TWO, "--placement", "v").splitlines()
        self.assertEqual({cell[0] for cell in rows[0].split(",")}, {"0", "3"})
        rows = self.text_of("interleaved", *TWO, "--chunks", 4).splitlines()
        self.assertEqual({cell[0] for cell in rows[1].split(",")}, {"1", "3", "5", "7"})

    def test_old_spelling(self):
        # Of older releases of PyTorch: B is the input gradient.
        file = self.file_of("0F0,0B0,0W0\n1F0,1B0,1W0\n")
        result = self.ok("hint", file)
        self.assertEqual(result.stdout.decode(), "0F0,0I0,0W0\n1F0,1I0,1W0\n")
        self.assertTrue(result.stderr.startswith(b"rrfp hint: "), result.stderr)
        self.assertIn(b"schedule.csv", result.stderr)
        self.assertEqual(self.ok("hint", self.file_of(COMPUTE["zb-h1"])).stderr, b"")

    def test_out(self):
        out = self.dir / "out.csv"
        self.assertEqual(self.text_of("1f1b", *TWO, "--out", out), "")
        self.assertEqual(out.read_text(), COMPUTE["1f1b"])
        self.text_of("zb-h1", *TWO, "--out", out, "--format", "complete")
        self.assertEqual(out.read_text(), COMPLETE["zb-h1"])
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["out.csv", "text.txt"])
        before = self.contents()
        self.refused("hint", "gpipe", "--stages", 8, "--microbatches", 2000, "--out", out,
                     file_size_max=1000, names=["--out", "out.csv"])
        self.assertEqual(self.contents(), before)

    def test_svg(self):
        svg = self.dir / "schedule.svg"
        for name in ("zb-v", "bfw", "dualpipe"):
            self.text_of(name, "--stages", 2, "--microbatches", 4, "--svg", svg)
            root = xml.etree.ElementTree.parse(svg).getroot()
            self.assertTrue(root.tag.endswith("svg"), root.tag)
            svg.unlink()
        self.text_of(self.file_of(ZB_V), "--svg", svg, "--validate")
        self.assertGreater(len(svg.read_bytes()), 1000)

    def test_trained_with(self):
        out = self.dir / "order.csv"
        self.text_of("zb-h1", "--stages", 2, "--microbatches", 4, "--format", "complete", "--out",
                     out)
        _, named = self.train("--steps", 2, "--stages", 2, "--hint", "zb-h1", "--order", "strict")
        _, read = self.train("--steps", 2, "--stages", 2, "--hint", out, "--order", "strict")
        self.assertEqual(read["weights_sha256"], named["weights_sha256"])


class ValidateTest(HintTest):
    def test_good(self):
        text = self.text_of("1f1b", *TWO, "--validate")
        self.assertRegex(text, r"^complete +yes\nstrict +yes\npaired +(yes|no: .*)\n$")
        out = self.dir / "out.csv"
        self.text_of("1f1b", *TWO, "--validate", "--out", out, "--order", "ready")
        self.assertEqual(out.read_text(), COMPUTE["1f1b"])

    def test_missing_task(self):
        file = self.file_of("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n")
        result = support.run("hint", file, "--validate")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stdout.decode(), r"^complete +no: .*\n")
        self.assertIn(b"schedule.csv", result.stderr)

    def test_order_that_nobody_can_obey(self):
        # Each rank would wait for the other for ever.
        file = self.file_of("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")
        result = support.run("hint", file, "--validate")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stdout.decode(), r"^complete +yes\nstrict +no: .*\npaired +no: ")
        text = result.stderr.decode()
        self.assertIn("--order strict", text)
        self.assertIn("rank 0", text)
        self.refused("hint", file, "--order", "paired", names=["--order paired"])
        self.text_of(file, "--validate", "--order", "ready")
        self.assertEqual(self.text_of(file, "--order", "ready"), file.read_text())


class RefusalTest(HintTest):
    def test_files(self):
        for text, names in (("0F0,0X0\n", ["schedule.csv", "row 1", "column 2", "0X0"]),
                            ("0F0,0F0,0B0\n", ["schedule.csv", "0F0"]),
                            ("0B0,0F0\n", ["schedule.csv", "0B0"]),
                            ("", ["schedule.csv", "empty"]),
                            ("0F0zz,0B0\n", ["schedule.csv", "zz"]),
                            ("2F0,2B0\n", ["stage 0"])):
            with self.subTest(text):
                self.refused("hint", self.file_of(text), names=names)
        self.refused("hint", self.dir / "missing.csv", names=["missing.csv", "1f1b", "zb-v"])
        self.refused("hint", self.dir, names=[str(self.dir)])

    def test_options(self):
        file = self.file_of(COMPUTE["1f1b"])
        for arguments, names in (
                ([], ["schedule"]),
                (["1f1b", "--microbatches", "2"], ["--stages"]),
                (["1f1b", "--stages", "2"], ["--microbatches"]),
                (["1f1b", *TWO, "--chunks", "0"], ["--chunks", "0"]),
                (["1f1b", *TWO, "--stages", "0"], ["--stages"]),
                (["1f1b", *TWO, "--placement", "ring"], ["--placement", "ring"]),
                (["1f1b", *TWO, "--format", "both"], ["--format", "both"]),
                (["1f1b", *TWO, "--fsdp"], ["--fsdp", "--format complete"]),
                (["1f1b", *TWO, "--reduce"], ["--reduce", "--format complete"]),
                (["1f1b", *TWO, "--chunks", "2", "--placement", "linear"],
                 ["--chunks 2", "--placement linear"]),
                (["zb-v", *TWO, "--chunks", "3"], ["--chunks 3", "--placement v"]),
                (["zb-v", *TWO, "--placement", "loop"], ["zb-v"]),
                (["dualpipe", *TWO, "--chunks", "2"], ["--chunks 2", "dualpipe"]),
                (["dualpipe", *TWO, "--placement", "v"], ["--placement v", "dualpipe"]),
                (["dualpipe", *TWO], ["dualpipe"]),
                (["interleaved:1", *TWO], ["interleaved:1"]),
                (["gpipe:2", *TWO], ["gpipe:2"]),
                (["auto", *TWO], ["auto"]),
                ([file, "--stages", "3"], ["--stages 3", "schedule.csv"]),
                ([file, "--microbatches", "3"], ["--microbatches 3", "schedule.csv"]),
                ([file, "--chunks", "1"], ["--chunks 1", "schedule.csv"]),
                ([file, "--placement", "v"], ["--placement v", "schedule.csv"]),
                ([file, "--out", self.dir], ["--out", str(self.dir)]),
                ([file, "--svg", self.dir / "none" / "x.svg"], ["--svg", "none"])):
            with self.subTest(arguments):
                self.refused("hint", *arguments, names=names)

    def test_closed_output(self):
        with open("/dev/full", "wb") as full:
            result = support.run("hint", "1f1b", *TWO, stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot write to standard output", result.stderr)


if __name__ == "__main__":
    support.main()
