#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/quickstart as a newcomer would, and looks at what it says and leaves behind.

The model must learn: its loss on text that it has not seen must be clearly below the entropy of
single bytes, and be what this seed has always given (but for rounding, which depends on the
processor).
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS_MAX = 240  # of training, generating and a build with nothing to do
VALIDATION_LOSS = 1.335
TOLERANCE = 0.05
CLEARLY_BELOW = 0.6


def run(*arguments):
    start = time.monotonic()
    result = subprocess.run([ROOT / "examples" / "quickstart", *arguments], cwd="/", check=False,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    text = result.stdout.decode("utf-8", "replace")
    return result.returncode, text, time.monotonic() - start


def number_after(label, text):
    match = re.search(re.escape(label) + r"\s+([0-9.]+)", text)
    if not match:
        sys.exit(f"the output has no line '{label} NUMBER'")
    return float(match[1])


def check(holds, what):
    if not holds:
        sys.exit(what)


def main():
    status, text, _ = run("--no-such-option")
    check(status == 2 and "--no-such-option" in text, f"a wrong option: {status}, {text}")
    status, text, _ = run("--steps", "1")  # installs and builds what is missing
    check(status == 0, f"exit status {status}\n{text}")
    first = re.search(r"^Checkpoint: (\S+)", text, re.MULTILINE)[1]
    shutil.rmtree(ROOT / first)

    status, text, seconds = run()
    print(text)
    check(status == 0, f"exit status {status}")
    check(seconds <= SECONDS_MAX, f"took {seconds:.0f} s, expected at most {SECONDS_MAX}")
    loss = number_after("validation loss", text)
    entropy = number_after("unigram entropy", text)
    check(loss < CLEARLY_BELOW * entropy, f"validation loss {loss}, unigram entropy {entropy}")
    check(abs(loss - VALIDATION_LOSS) < TOLERANCE,
          f"validation loss {loss}, expected {VALIDATION_LOSS} +- {TOLERANCE}")
    folder = ROOT / re.search(r"^Checkpoint: (\S+)", text, re.MULTILINE)[1]
    check(folder.name == "quickstart" or folder.name.startswith("quickstart-"), folder)
    names = sorted(p.name for p in (folder / "step-00000300").iterdir())
    check(names == ["model.safetensors", "optimizer.safetensors", "state.json"], names)
    with open(folder / "timeline.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    check({e["tid"] for e in events if e["ph"] == "X"} == {0, 1, 2, 3}, "the timeline has 4 ranks")
    shutil.rmtree(folder)
    print(f"{seconds:.0f} s")


if __name__ == "__main__":
    main()
