#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people see: the live line on a terminal, plain lines elsewhere, and the summary."""
import errno
import fcntl
import os
import pty
import re
import struct
import termios
import time

import support


def read_terminal(descriptor):
    """All that is written to a terminal until the last writer closes it."""
    output = b""
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return output
        if not part:
            return output
        output += part


class OutputTest(support.CliTest):
    def terminal_output(self, columns, *arguments):
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        start = time.monotonic()
        process = support.start(*arguments, stdout=terminal)
        os.close(terminal)
        output = read_terminal(controller).decode()
        os.close(controller)
        errors = process.stderr.read()
        self.assertEqual(process.wait(timeout=support.TIMEOUT_S), 0, errors)
        process.stderr.close()
        return output, time.monotonic() - start

    def test_live_line(self):
        for columns in (80, 40, 200):
            output, seconds = self.terminal_output(
                columns, "train", "--data", self.text, *support.TINY, "--steps", 300, "--stages", 2,
                "--delay-us", 500)
            self.assertTrue(output.startswith("model"), output)
            live, _, rest = output.rpartition("\x1b[K")
            drawn = live.split("\r\x1b[K")[1:] + [rest.splitlines()[0]]
            for line in drawn:
                self.assertLessEqual(len(line), min(columns, 80), line)
                self.assertNotIn("\x1b", line)
            self.assertGreaterEqual(len(drawn), 2)
            self.assertLessEqual(len(drawn), 10 * seconds + 3)
            self.assertIn("step 300/300", drawn[-1])
            self.assertTrue(columns < 80 or drawn[0].endswith("left"), drawn[0])
            self.assertIn("weights sha256", rest)

    def test_plain_lines(self):
        text = self.ok("train", "--data", self.text, *support.TINY, "--steps", 130,
                       "--eval-every", 50).stdout.decode()
        self.assertNotIn("\r", text)
        self.assertNotIn("\x1b", text)
        self.assertTrue(20 <= len(re.findall(r"^step \d+/130  loss", text, re.MULTILINE)) <= 30)
        self.assertEqual(len(re.findall(r"^step (50|100)  validation loss", text, re.MULTILINE)), 2)
        self.assertIn("unigram entropy", text)

    def test_quiet(self):
        text = self.ok("train", "--data", self.text, *support.TINY, "--steps", 3,
                       "--quiet").stdout.decode()
        self.assertTrue(text.startswith("steps"), text)
        for name in ("loss", "validation loss", "tokens per second", "computing",
                     "waiting for input", "held back by memory", "waiting for credit",
                     "held by policy", "engine", "peak memory", "weights sha256"):
            self.assertRegex(text, f"(?m)^ *{name} ")

    def test_json_is_alone(self):
        result = self.ok("train", "--json", "--data", self.text, *support.TINY, "--steps", 3)
        self.lines(result.stdout)
        self.assertIn(b"weights sha256", result.stderr)

    def test_failed_run_keeps_its_steps(self):
        # A learning rate beyond all measure: the weights leave the numbers within a few steps.
        save = self.dir / "save"
        result = support.run("train", "--data", self.text, *support.TINY, *support.STEADY,
                             "--optimizer", "sgd", "--lr", "1e38", "--clip", 0, "--steps", 50,
                             "--save", save)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"saved step", result.stderr)
        self.assertEqual(len(support.steps_in(save)), 1)
        self.assertGreaterEqual(support.steps_in(save)[0], 1)


if __name__ == "__main__":
    support.main()
