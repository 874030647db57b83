#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help texts, and what the command refuses: exit code 2, the wrong value named, nothing written."""
import json
import struct

import support

PIPELINE = """--stages --ranks --placement --hint --order --cap --cap-bytes --hold --recompute
    --partition --wake --delay-us""".split()
DATA = "--data --format --vocabulary --validation --grouping --pixels-max".split()
OPTIONS = {
    "train": DATA + PIPELINE + """--layers --dim --heads --kv-heads --context --hidden --dropout
        --tied --rotary --rms-norm --swiglu --vision --image-size --patch --vision-layers
        --vision-dim --vision-heads --vision-hidden --conv-stem --freeze-vision --batch --microbatches --accumulate --steps --lr
        --lr-min --warmup --decay --decay-steps --optimizer --momentum --weight-decay --beta1
        --beta2 --clip --seed --injection --non-finite --nondeterministic --save --save-every --keep --resume
        --eval-every --eval-samples --trace --trace-steps --json --quiet""".split(),
    "eval": DATA + PIPELINE + """--checkpoint --samples --split --captions --batch --microbatches
        --seed --json""".split(),
    "generate": """--checkpoint --prompt --prompt-tokens --image --tokens --temperature --top-k --top-p
        --seed --context --json""".split(),
    "info": ["--checkpoint", "--json"],
    "simulate": """--preset --measured --stages --microbatches --seeds --first-seed --injection
        --hint --order --cap --history --nondeterministic --tp --tp-readiness --dp --offload-ms
        --dispatch-us --report-us --json --trace --chart --stress""".split(),
    "hint": """--stages --microbatches --chunks --placement --format --fsdp --reduce --out --svg
        --validate --order""".split(),
    "trace": ["--html", "--svg", "--json"],
}


class HelpTest(support.CliTest):
    def test_every_option_has_a_text(self):
        for command, options in OPTIONS.items():
            text = self.ok(command, "--help").stdout.decode()
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)
            shown = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
            self.assertEqual(sorted(shown), sorted(options), command)

    def test_commands_and_version(self):
        text = self.ok("--help").stdout.decode()
        for command in OPTIONS:
            self.assertIn(command, text)
        self.assertRegex(self.ok("--version").stdout.decode(), r"^rrfp \d+\.\d+\.\d+\n$")

    def test_info(self):
        about = json.loads(self.ok("info", "--json").stdout)
        self.assertLessEqual({"zb-h1", "interleaved", "dualpipe-v", "rf-m"}, set(about["hints"]))
        self.assertGreaterEqual(about["cpus"], 1)
        self.assertIn(about["version"], self.ok("--version").stdout.decode())
        self.assertIn("abi_version", self.ok("info").stdout.decode())

    def test_usage(self):
        self.refused()
        self.refused("retrain", names=["retrain"])
        self.refused("train", "--layer", "3", names=["--layer"])
        self.refused("eval", names=["--checkpoint"])
        self.refused("generate", names=["--checkpoint"])
        self.refused("simulate", "--layers", "3", names=["--layers"])


class RefusalTest(support.CliTest):
    def refused_training(self, *arguments, names, data=None):
        before = self.contents()
        self.refused("train", *support.TINY, "--data", data or self.text, "--steps", 2,
                     "--save", self.dir / "save", "--trace", self.dir / "traces" / "trace.json",
                     *arguments, names=names)
        self.assertEqual(self.contents(), before)
        self.assertFalse((self.dir / "save").exists())
        self.assertFalse((self.dir / "traces").exists())

    def test_values(self):
        for arguments, names in (
                (["--dim", "-5"], ["--dim", "-5"]),
                (["--lr", "nan"], ["--lr", "nan"]),
                (["--steps", "many"], ["--steps", "many"]),
                (["--context", "0"], ["--context", "0"]),
                (["--layers", "99999999999"], ["--layers", "99999999999"]),
                (["--placement", "ring"], ["--placement", "ring", "linear", "loop", "v", "balanced"]),
                (["--order", "any"], ["--order", "any", "strict"]),
                (["--validation", "2"], ["--validation", "2"]),
                (["--hint", "zigzag"], ["zigzag", "gpipe", "zb-h1", "rf-m"]),
                (["--hint", "gpipe:2"], ["--hint gpipe:2"]),
                (["--hint", "interleaved:no", "--stages", "4", "--placement", "loop"],
                 ["--hint interleaved:no"]),
                (["--hint", "auto", "--order", "ready"], ["--hint auto", "--order ready"]),
                (["--hint", "auto", "--hold", "0"], ["--hint auto", "--hold 0"]),
                (["--injection", "size"], ["--injection", "size", "tent"]),
                (["--dim", "30", "--heads", "4"], ["--dim 30", "--heads 4"]),
                (["--kv-heads", "3"], ["--heads 2", "--kv-heads 3"]),
                (["--batch", "3"], ["--batch 3", "--microbatches 4"]),
                (["--accumulate", "3"], ["--microbatches 4", "--accumulate 3"]),
                (["--lr", "0.1", "--lr-min", "0.2"], ["0.2", "0.1"]),
                (["--stages", "5"], ["5"]),
                (["--stages", "5", "--partition", "measured"], ["5"]),
                (["--vocabulary", "300"], ["300", "256"])):
            with self.subTest(arguments):
                # The last of two equal options would count, were it not refused.
                given = [a for a in arguments if a.startswith("--")]
                kept = [i for i in range(0, len(support.TINY), 2) if support.TINY[i] not in given]
                tiny = sum(([support.TINY[i], support.TINY[i + 1]] for i in kept), [])
                self.refused("train", *tiny, "--data", self.text, "--steps",
                             *([] if "--steps" in given else [2]),
                             *(arguments[1:] if "--steps" in given else arguments),
                             "--save", self.dir / "save", names=names)
                self.assertFalse((self.dir / "save").exists())

    def test_data(self):
        self.refused("train", *support.TINY, names=["--data"])
        self.refused_training(names=["missing.txt"], data=self.dir / "missing.txt")
        empty = self.dir / "empty.txt"
        empty.write_bytes(b"")
        self.refused_training(names=["empty.txt"], data=empty)
        short = self.dir / "short.txt"
        short.write_bytes(b"0123456789")
        self.refused_training(names=["short.txt", "10"], data=short)
        folder = self.dir / "folder"
        folder.mkdir()
        self.refused_training(names=["folder"], data=folder)

    def test_tokens(self):
        tokens = self.dir / "tokens.u16"
        ids = [i % 50 for i in range(2000)]
        ids[1234] = 77
        tokens.write_bytes(struct.pack("<2000H", *ids))
        self.refused_training("--format", "u16", names=["--vocabulary"], data=tokens)
        self.refused_training("--format", "u16", "--vocabulary", 50, names=["77", "tokens.u16"],
                              data=tokens)
        self.refused_training("--format", "u16", "--vocabulary", 77, names=["77", "1234"],
                              data=tokens)

    def test_hint_for_another_layout(self):
        self.refused("train", *support.TINY, "--data", self.text, "--steps", 2, "--stages", 4,
                     "--hint", "zb-v", names=["zb-v"])

    def test_hint_file(self):
        hint = self.dir / "schedule.csv"
        hint.write_text("not a schedule\n")
        self.refused_training("--hint", hint, names=["schedule.csv"])

    def test_outputs_that_cannot_be(self):
        for option in ("--save", "--trace"):
            self.refused("train", *support.TINY, "--data", self.text, "--steps", 2, option,
                         self.text / "below", names=[option, "text.txt"])
        self.refused("train", *support.TINY, "--data", self.text, "--save", self.text,
                     names=["text.txt"])
        self.refused("train", *support.TINY, "--data", self.text, "--trace", self.dir,
                     names=[str(self.dir)])
        self.refused("train", *support.TINY, "--data", self.text, "--save-every", 2,
                     names=["--save"])


if __name__ == "__main__":
    support.main()
