#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/quickstart-multimodal as a newcomer would, and looks at what it says and leaves
behind.

The model must learn: of pictures that it has not seen it must get clearly more words right, and more
whole captions, than who guesses without looking.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS_MAX = 240  # of all but the build; about a minute on two cores that do nothing else
WORDS_MARGIN = 20  # percent of the words, above a guess
EXACT_MARGIN = 10


def run(*arguments):
    start = time.monotonic()
    result = subprocess.run([ROOT / "examples" / "quickstart-multimodal", *arguments], cwd="/",
                            check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    text = result.stdout.decode("utf-8", "replace")
    return result.returncode, text, time.monotonic() - start


def check(holds, what):
    if not holds:
        sys.exit(what)


def shares(label, text):
    """What the model got right and what a guess does, in percent."""
    match = re.search(rf"^{label} +([0-9.]+) %, a guess without the picture ([0-9.]+) %$", text,
                      re.MULTILINE)
    check(match, f"the output has no line '{label}  X %, a guess without the picture Y %'")
    return float(match[1]), float(match[2])


def folder_of(text):
    return ROOT / re.search(r"^Checkpoint: (\S+)", text, re.MULTILINE)[1]


def main():
    status, text, _ = run("--no-such-option")
    check(status == 2 and "--no-such-option" in text, f"a wrong option: {status}, {text}")
    status, text, _ = run("--steps", "1")  # installs and builds what is missing
    check(status == 0, f"exit status {status}\n{text}")
    first = folder_of(text)

    status, text, seconds = run()
    print(text)
    check(status == 0, f"exit status {status}")
    check(seconds <= SECONDS_MAX, f"took {seconds:.0f} s, expected at most {SECONDS_MAX}")
    folder = folder_of(text)
    check(folder != first and first.exists(), f"{folder}: a second run starts in a folder of its own")
    check(folder.name.startswith("quickstart-multimodal"), folder)
    words, guessed_words = shares("right words", text)
    exact, guessed_exact = shares("exact captions", text)
    check(words >= guessed_words + WORDS_MARGIN, f"{words} % of the words, a guess {guessed_words} %")
    check(exact >= guessed_exact + EXACT_MARGIN, f"{exact} % exact, a guess {guessed_exact} %")
    check(re.search(r"^computing for +.*vision \d+ %", text, re.MULTILINE), "the work of the branches")
    with open(folder / "icons.jsonl", encoding="utf-8") as file:
        samples = [json.loads(line) for line in file]
    files = [name for sample in samples for name in sample.get("images", [])]
    check(len(files) == len(set(files)) > 800, f"{len(files)} pictures, each in one sample")
    share = sum("images" not in sample for sample in samples) / len(samples)
    check(0.15 <= share <= 0.35, f"{share:.0%} of the samples have no picture")
    with open(folder / "timeline.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    check({e["tid"] for e in events if e["ph"] == "X"} == {0, 1, 2, 3}, "the timeline has 4 ranks")
    for each in (first, folder):
        shutil.rmtree(each)
    print(f"{seconds:.0f} s")


if __name__ == "__main__":
    main()
