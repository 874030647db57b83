#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of README.md: each line of the blocks marked sh, as a user would type it.

Lines that call tests/run are not run, since that is what calls this, nor the quickstarts, which have
tests of their own. The directory build/ is there.
What a line installs goes to a folder that is thrown away.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIMEOUT_S = 600
ELSEWHERE = ("tests/run", "examples/quickstart")


def command_lines(text):
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield line.strip()


def main():
    readme = ROOT / "README.md"
    if not readme.exists():
        print("README.md does not exist; this test runs its commands")
        return 1
    lines = list(command_lines(readme.read_text(encoding="utf-8")))
    for command in ELSEWHERE:
        if not any(line.startswith(command) for line in lines):
            print(f"README.md does not name {command} in a block marked sh")
            return 1
    with tempfile.TemporaryDirectory() as stage:
        for line in lines:
            if line.startswith(ELSEWHERE):
                continue
            print(f"$ {line}", flush=True)
            try:
                status = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=ROOT,
                                        env={**os.environ, "DESTDIR": stage}, check=False,
                                        stdin=subprocess.DEVNULL, timeout=TIMEOUT_S).returncode
            except subprocess.TimeoutExpired:
                status = f"none after {TIMEOUT_S} s"
            if status != 0:
                print(f"README.md: the command `{line}` fails: exit status {status}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
