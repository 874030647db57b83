#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: a run that was interrupted in any way goes on as if it had not been."""
import json
import os
import shutil
import signal

import support


class ResumeTest(support.CliTest):
    def check_continuation(self, save, *options):
        """A run resumed from `save` for two steps ends like one that was never interrupted."""
        done = support.steps_in(save)[-1]
        lines, summary = self.resume(save, "--steps", done + 2, *options)
        self.assertEqual([line["step"] for line in lines], [done + 1, done + 2])
        whole_lines, whole = self.train("--steps", done + 2, *support.STEADY)
        self.assertEqual(support.losses(lines), support.losses(whole_lines)[done:])
        self.assertEqual(summary["weights_sha256"], whole["weights_sha256"])
        self.assertEqual(summary["val_loss"], whole["val_loss"])

    def test_other_pipeline(self):
        whole_lines, whole = self.train("--steps", 8, "--stages", 2, "--save", self.dir / "whole",
                                        "--save-every", 3, "--keep", 0, "--dropout", "0.1")
        self.assertEqual(support.steps_in(self.dir / "whole"), [3, 6, 8])
        third = next((self.dir / "whole").glob("step-*3"))
        for i, options in enumerate(([], ["--stages", 4, "--placement", "v"],
                                     ["--stages", 3, "--hint", "gpipe", "--recompute"])):
            with self.subTest(options):
                lines, summary = self.resume(third, "--save", self.dir / f"again{i}", *options)
                self.assertEqual(support.losses(lines), support.losses(whole_lines)[3:])
                self.assertEqual(summary["weights_sha256"], whole["weights_sha256"])
                self.assertEqual(summary["val_loss"], whole["val_loss"])
                self.assertEqual(support.steps_in(self.dir / f"again{i}"), [8])

    def test_more_steps(self):
        save = self.dir / "save"
        self.train("--steps", 3, *support.STEADY, "--save", save)
        self.check_continuation(save, "--stages", 2)
        self.assertEqual(support.steps_in(save), [3, 5])

    def test_from_another_folder(self):
        self.ok("train", "--data", "text.txt", *support.TINY, "--steps", 2, "--save", "save",
                cwd=self.dir)
        _, summary = self.resume(self.dir / "save")
        self.assertEqual(summary["steps"], 2)
        self.assertIsNone(summary["loss"])
        self.assertIsNotNone(summary["val_loss"])

    def interrupt(self, number, *options):
        """Stops a run after some steps. Returns its exit code and what it wrote."""
        process = support.start("train", "--json", "--data", self.text, *support.TINY,
                                "--steps", 1000000, *support.STEADY, *options)
        output = [process.stdout.readline() for _ in range(5)]
        process.send_signal(number)
        rest, errors = process.communicate(timeout=support.TIMEOUT_S)
        return process.returncode, b"".join(output) + rest, errors

    def test_signals(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            save = self.dir / f"save{number}"
            code, output, errors = self.interrupt(number, "--save", save, "--stages", 2)
            self.assertEqual(code, status, errors)
            lines, summary = self.lines(output)
            self.assertEqual(support.steps_in(save), [lines[-1]["step"]])
            self.assertEqual(summary["steps"], lines[-1]["step"])
            self.check_continuation(save, "--stages", 4)

    def test_kill(self):
        save = self.dir / "save"
        code, _, _ = self.interrupt(signal.SIGKILL, "--save", save, "--save-every", 2)
        self.assertEqual(code, -signal.SIGKILL)
        self.check_continuation(save)

    def test_full_disk(self):
        save = self.dir / "save"
        self.train("--steps", 2, "--save", save)
        before = self.contents()
        text = self.refused("train", "--resume", save, "--steps", 4, file_size_max=4096,
                            names=["save"])
        self.assertRegex(text, "[Ff]ile too large|[Nn]o space")
        after = self.contents()
        self.assertEqual({name: after.get(name) for name in before}, before)
        self.assertEqual(support.steps_in(save), [2])
        _, summary = self.resume(save, "--steps", 4)
        self.assertEqual(summary["steps"], 4)

    def test_reader_that_goes_away(self):
        save = self.dir / "save"
        process = support.start("train", "--json", "--data", self.text, *support.TINY,
                                "--steps", 1000000, "--save", save)
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        self.assertEqual(process.wait(timeout=support.TIMEOUT_S), 1, errors)
        process.stderr.close()
        self.assertIn(b"standard output", errors)
        self.assertEqual(len(support.steps_in(save)), 1)

    def test_full_output(self):
        save = self.dir / "save"
        with open("/dev/full", "wb") as full:
            self.refused("train", "--data", self.text, *support.TINY, "--steps", 3, "--save", save,
                         stdout=full, status=1, names=["standard output"])
        self.assertEqual(len(support.steps_in(save)), 1)


class RefusedCheckpointTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.save = self.dir / "save"
        self.train("--steps", 2, "--save", self.save)
        self.checkpoint = next(self.save.glob("step-*"))

    def refused_everywhere(self, path, names):
        before = self.contents()
        for arguments in (["train", "--resume", path, "--steps", 4], ["eval", "--checkpoint", path],
                          ["generate", "--checkpoint", path]):
            with self.subTest(arguments):
                self.refused(*arguments, names=names)
                self.assertEqual(self.contents(), before)

    def test_truncated(self):
        for name in ("model.safetensors", "state.json"):
            copy = self.dir / f"copy-{name}"
            shutil.copytree(self.save, copy)
            path = copy / self.checkpoint.name / name
            os.truncate(path, path.stat().st_size // 2)
            self.refused_everywhere(copy / self.checkpoint.name, [name])

    def test_foreign(self):
        foreign = self.dir / "foreign"
        foreign.mkdir()
        self.refused_everywhere(foreign, ["foreign"])
        (foreign / "state.json").write_text('{"step": "three"}')
        self.refused_everywhere(foreign, ["foreign"])
        self.refused_everywhere(self.dir / "absent", ["absent"])
        self.refused_everywhere(self.text, ["text.txt"])

    def test_contradictions(self):
        for arguments, names in ((["--dim", 32], ["--dim", "32", "16"]),
                                 (["--layers", 3], ["--layers", "3", "2"]),
                                 (["--context", 32], ["--context", "32", "16"]),
                                 (["--kv-heads", 1], ["--kv-heads", "1", "2"]),
                                 (["--hidden", 32], ["--hidden", "32", "64"]),
                                 (["--rotary"], ["--rotary", "true", "false"])):
            self.refused("train", "--resume", self.save, "--steps", 4, *arguments, names=names)
        self.resume(self.save, "--steps", 3, "--dim", 16, "--hidden", 64)

    def test_fewer_steps(self):
        self.refused("train", "--resume", self.save, "--steps", 1, names=["2", "--steps 1"])

    def test_another_run_in_the_folder(self):
        before = self.contents()
        self.refused("train", "--data", self.text, *support.TINY, "--save", self.save,
                     names=[str(self.save), "--resume"])
        self.assertEqual(self.contents(), before)

    def test_info(self):
        about = json.loads(self.ok("info", "--json", "--checkpoint", self.save).stdout)
        self.assertEqual(about["step"], 2)
        self.assertEqual(about["position"], 16)
        self.assertEqual(about["model"]["dim"], 16)
        self.assertGreater(about["parameters"], 0)
        self.assertEqual(about["training"]["batch"], 8)
        text = self.ok("info", "--checkpoint", self.checkpoint).stdout.decode()
        self.assertIn("parameters", text)

    def test_eval(self):
        _, summary = self.resume(self.save)
        for options in ([], ["--stages", 2], ["--data", self.text]):
            result = json.loads(self.ok("eval", "--json", "--checkpoint", self.save, "--samples",
                                        8, *options).stdout)
            self.assertEqual(result["loss"], summary["val_loss"])
            self.assertEqual(result["unigram_entropy"], summary["unigram_entropy"])
        train = json.loads(self.ok("eval", "--json", "--checkpoint", self.save, "--split", "train",
                                   "--samples", 21).stdout)
        self.assertEqual(train["samples"], 21)
        self.assertNotEqual(train["loss"], summary["val_loss"])
        self.assertIn("nats per token", self.ok("eval", "--checkpoint", self.save).stdout.decode())


if __name__ == "__main__":
    support.main()
