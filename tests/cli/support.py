# SPDX-License-Identifier: Apache-2.0
"""What the tests of the rrfp command share: a tiny model, a text, and ways to run the command.

Each test is a program: PROGRAM RRFP [UNITTEST ARGUMENT...]
"""
import json
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

RRFP = str(pathlib.Path(sys.argv.pop(1)).resolve())  # tests run it in other folders, too
TIMEOUT_S = 120
# Two blocks between embedding and head: up to four stages.
MODEL = ["--layers", "2", "--dim", "16", "--heads", "2", "--context", "16"]
TRAINING = ["--batch", "8", "--microbatches", "4", "--eval-samples", "8"]
TINY = MODEL + TRAINING
# The learning rate does not depend on the number of steps.
STEADY = ["--decay", "none", "--warmup", "0"]


def sample_text(size=6000):
    """Words that are worth learning."""
    source = random.Random(1)
    words = ["pipeline", "stage", "rank", "ready", "the", "a", "of", "gradient", "runs", "waits"]
    text = " ".join(source.choice(words) for _ in range(size // 4))
    return text[:size].encode()


def prepare_child(file_size_max=None):
    """A function that gives a child the signals of a terminal, whatever this process has, and a
    limit on the size of the files that it writes."""
    def prepare():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if file_size_max is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size_max, file_size_max))
    return prepare


def start(*arguments, **options):
    """The command, running, with pipes for its outputs."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([RRFP, *map(str, arguments)], stdin=subprocess.DEVNULL,
                            preexec_fn=prepare_child(), **options)


def run(*arguments, file_size_max=None, **options):
    """The command, once it has ended."""
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([RRFP, *map(str, arguments)], stdin=subprocess.DEVNULL, check=False,
                          stderr=subprocess.PIPE, timeout=TIMEOUT_S,
                          preexec_fn=prepare_child(file_size_max), **options)


class CliTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rrfp-cli-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.text = self.dir / "text.txt"
        self.text.write_bytes(sample_text())

    def ok(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0,
                         f"{arguments}: {result.stderr.decode(errors='replace')}")
        return result

    def refused(self, *arguments, names=(), status=2, **options):
        """The command fails with one message that names what is wrong."""
        result = run(*arguments, **options)
        text = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, status, f"{arguments}: {text}")
        self.assertTrue(text.startswith("rrfp"), text)
        for name in names:
            self.assertIn(name, text, f"{arguments}")
        return text

    def train(self, *arguments, **options):
        """Trains the tiny model. Returns the lines of the steps and the summary."""
        result = self.ok("train", "--json", "--data", self.text, *TINY, *arguments, **options)
        return self.lines(result.stdout)

    def resume(self, folder, *arguments):
        result = self.ok("train", "--json", "--resume", folder, *arguments)
        return self.lines(result.stdout)

    def lines(self, output):
        objects = [json.loads(line) for line in output.splitlines()]
        self.assertTrue(objects[-1]["summary"])
        return objects[:-1], objects[-1]

    def edit_state(self, checkpoint, **training):
        """Changes what a checkpoint keeps of the options of its training."""
        path = checkpoint / "state.json"
        state = json.loads(path.read_text())
        state["user"]["training"].update(training)
        path.write_text(json.dumps(state))

    def contents(self):
        """All files of the test's folder."""
        return {path.relative_to(self.dir): path.read_bytes()
                for path in self.dir.rglob("*") if path.is_file()}


def steps_in(folder):
    """The steps of the checkpoints in a folder, oldest first."""
    return sorted(int(path.name.partition("-")[2]) for path in folder.glob("step-*"))


def losses(lines):
    return [line["loss"] for line in lines]


def main():
    unittest.main(argv=sys.argv, verbosity=2)
