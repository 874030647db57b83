#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generating text: the same for the same seed, and safe to look at."""
import json
import os
import pty
import struct

import support


class GenerateTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.save = self.dir / "save"
        self.train("--steps", 20, "--lr", "1e-2", "--save", self.save)

    def generate(self, *options):
        return self.ok("generate", "--checkpoint", self.save, "--tokens", 40, *options).stdout

    def test_seed(self):
        first = self.generate("--prompt", "the ", "--seed", 3)
        self.assertEqual(len(first), 40)
        self.assertEqual(self.generate("--prompt", "the ", "--seed", 3), first)
        self.assertNotEqual(self.generate("--prompt", "the ", "--seed", 4), first)

    def test_greedy(self):
        greedy = self.generate("--prompt", "the ", "--temperature", 0)
        self.assertEqual(self.generate("--prompt", "the ", "--top-k", 1, "--seed", 5), greedy)
        self.assertEqual(self.generate("--prompt", "the ", "--temperature", 0, "--seed", 9), greedy)

    def test_prompts(self):
        # No prompt is a new line; a prompt is its bytes.
        self.assertEqual(self.generate(), self.generate("--prompt-tokens", "10"))
        self.assertEqual(self.generate("--prompt", ""), self.generate("--prompt-tokens", "10"))
        self.assertEqual(self.generate("--prompt", "az"),
                         self.generate("--prompt-tokens", "97,122"))
        # Longer than the context, and a context of its own.
        self.assertEqual(len(self.generate("--prompt", "x" * 100)), 40)
        self.assertEqual(len(self.generate("--context", 4)), 40)

    def test_json(self):
        result = json.loads(self.generate("--json", "--prompt", "the "))
        self.assertEqual(bytes(result["tokens"]), self.generate("--prompt", "the "))
        self.assertEqual(result["prompt_tokens"], list(b"the "))
        self.assertIn("text", result)

    def test_terminal(self):
        # Nearly uniform draws have all control characters among them.
        options = ["generate", "--checkpoint", self.save, "--tokens", 600, "--temperature", 100]
        controller, terminal = pty.openpty()
        process = support.start(*options, stdout=terminal)
        os.close(terminal)
        output = b""
        try:
            while part := os.read(controller, 65536):
                output += part
        except OSError:  # the other end was closed
            pass
        os.close(controller)
        process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 0)
        self.assertFalse(set(output) & (set(range(32)) - set(b"\n\r\t") | {127}))
        raw = self.ok(*options).stdout
        self.assertEqual(len(raw), 600)
        self.assertTrue(set(raw) & set(range(9)))

    def test_other_vocabulary(self):
        data = self.dir / "tokens"
        data.write_bytes(struct.pack("<3000H", *(i * i % 300 for i in range(3000))))
        save = self.dir / "ids"
        self.ok("train", *support.TINY, "--steps", 2, "--data", data, "--format", "u16",
                "--vocabulary", 300, "--save", save)
        ids = self.ok("generate", "--checkpoint", save, "--prompt-tokens", "1,299", "--tokens",
                      5).stdout.split()
        self.assertEqual(len(ids), 5)
        self.assertTrue(all(0 <= int(i) < 300 for i in ids))
        self.refused("generate", "--checkpoint", save, "--prompt", "text",
                     names=["300", "--prompt-tokens"])
        self.refused("generate", "--checkpoint", save, "--prompt-tokens", "1,300",
                     names=["300", "299"])

    def test_refused(self):
        for options, names in ((["--temperature", "-1"], ["--temperature", "-1"]),
                               (["--top-p", "1.5"], ["--top-p", "1.5"]),
                               (["--top-k", "-2"], ["--top-k", "-2"]),
                               (["--prompt", "a", "--prompt-tokens", "1"], ["--prompt"])):
            self.refused("generate", "--checkpoint", self.save, *options, names=names)


if __name__ == "__main__":
    support.main()
