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

    def test_longer_run_keeps_its_learning_rate(self):
        save = self.dir / "save"
        self.train("--steps", 20, "--save", save)
        result = self.ok("train", "--json", "--resume", save, "--steps", 30)
        self.assertIn(b"learning rate stays at 0.0001 from step 20 on", result.stderr)
        _, summary = self.lines(result.stdout)
        _, whole = self.train("--steps", 30, "--decay-steps", 20, "--warmup", 1, "--lr-min", "1e-4")
        self.assertEqual(summary["weights_sha256"], whole["weights_sha256"])
        _, again = self.resume(next(save.glob("step-*20")), "--steps", 30, "--decay-steps", 30)
        self.assertNotEqual(again["weights_sha256"], whole["weights_sha256"])

    def test_nothing_left_but_another_folder(self):
        save = self.dir / "save"
        self.train("--steps", 2, "--save", save)
        other = self.dir / "other"
        _, summary = self.resume(save, "--save", other)
        self.assertEqual(summary["checkpoint"], str(other / "step-00000002"))
        self.assertEqual(support.steps_in(other), [2])
        before = self.contents()
        _, summary = self.resume(save / "step-00000002", "--save", save)
        self.assertEqual(summary["checkpoint"], str(save / "step-00000002"))
        self.assertEqual(self.contents(), before)

    def test_folders_that_are_no_checkpoints(self):
        save = self.dir / "save"
        self.train("--steps", 2, "--save", save)
        (save / "step-00000009").mkdir()  # no state.json
        shutil.copytree(save / "step-00000002", save / "step-7")  # not what the library calls it
        _, summary = self.resume(save, "--steps", 3)
        self.assertEqual(summary["steps"], 3)
        self.assertEqual(summary["checkpoint"], str(save / "step-00000003"))
        about = json.loads(self.ok("info", "--json", "--checkpoint", save).stdout)
        self.assertEqual(about["checkpoint"], str(save / "step-00000003"))

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
        result = support.run("train", "--json", "--quiet", "--resume", save, "--steps", 4,
                             "--save-every", 1, file_size_max=4096)
        self.assertEqual(result.returncode, 2, result.stderr)
        for step in (3, 4):
            self.assertRegex(result.stderr.decode(),
                             f"(?m)^rrfp train: step {step} is not saved: .*save.*"
                             "([Ff]ile too large|[Nn]o space)")
        lines, summary = self.lines(result.stdout)
        self.assertEqual([line["step"] for line in lines], [3, 4])
        self.assertIsNone(summary["checkpoint"])
        after = self.contents()
        self.assertEqual({name: after.get(name) for name in before}, before)
        self.assertEqual(support.steps_in(save), [2])
        _, summary = self.resume(save, "--steps", 4)
        self.assertEqual(summary["steps"], 4)

    def test_disk_that_recovers(self):
        good = self.dir / "good"
        good.mkdir()
        save = self.dir / "save"

        def point_to(target):
            link = self.dir / "link"
            link.symlink_to(target)
            link.rename(save)

        point_to(good)
        process = support.start("train", "--json", "--quiet", "--data", self.text, *support.TINY,
                                "--steps", 100, "--delay-us", 5000, "--save", save,
                                "--save-every", 1)
        process.stdout.readline()
        point_to(self.text)
        complaint = process.stderr.readline()
        point_to(good)
        output, errors = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn(b"is not saved", complaint)
        self.assertEqual(json.loads(output.splitlines()[-1])["steps"], 100)
        self.assertEqual(support.steps_in(good)[-1], 100)

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
                                 (["--seed", 7], ["--seed", "7", "1"]),
                                 (["--rotary"], ["--rotary", "true", "false"])):
            self.refused("train", "--resume", self.save, "--steps", 4, *arguments, names=names)
        self.resume(self.save, "--steps", 3, "--dim", 16, "--hidden", 64, "--seed", 1)

    def test_kept_values(self):
        for key, value in (("accumulate", 0), ("accumulate", "4"), ("accumulate", None),
                           ("accumulate", 3), ("microbatches", -1), ("microbatches", 9),
                           ("batch", 1.5), ("batch", 1 << 40), ("seed", "one")):
            copy = self.dir / f"{key} {value}"
            shutil.copytree(self.checkpoint, copy)
            self.edit_state(copy, **{key: value})
            for command in (["train", "--steps", 4, "--resume"], ["eval", "--checkpoint"]):
                with self.subTest((command, key, value)):
                    text = self.refused(*command, copy, names=[key])
                    self.assertNotIn("json.exception", text)
        for key, value in (("lr", "much"), ("decay", "slow"), ("beta1", 2)):
            copy = self.dir / key
            shutil.copytree(self.checkpoint, copy)
            self.edit_state(copy, **{key: value})
            self.refused("train", "--steps", 4, "--resume", copy, names=[key, str(value)])

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
        everything = json.loads(self.ok("eval", "--json", "--checkpoint", self.save, "--samples",
                                        100000).stdout)
        self.assertEqual(everything["samples"], 37)
        train = json.loads(self.ok("eval", "--json", "--checkpoint", self.save, "--split", "train",
                                   "--samples", 21).stdout)
        self.assertEqual(train["samples"], 21)
        self.assertNotEqual(train["loss"], summary["val_loss"])
        self.assertIn("nats per token", self.ok("eval", "--checkpoint", self.save).stdout.decode())

    def test_eval_of_accumulated_rounds(self):
        save = self.dir / "rounds"
        _, summary = self.train("--steps", 2, "--accumulate", 4, "--save", save)
        for options in ([], ["--microbatches", 2], ["--batch", 8],
                        ["--batch", 6, "--microbatches", 3]):
            with self.subTest(options):
                result = json.loads(self.ok("eval", "--json", "--checkpoint", save, "--samples", 8,
                                            *options).stdout)
                self.assertAlmostEqual(result["loss"], summary["val_loss"], places=5)
                if not options:
                    self.assertEqual(result["loss"], summary["val_loss"])
        self.refused("eval", "--checkpoint", save, "--microbatches", 3,
                     names=["--batch 2", "--microbatches 3"])


if __name__ == "__main__":
    support.main()
