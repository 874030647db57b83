#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a task costs in each language: one rank that pulls empty tasks.

    tests/bench/pull_compare.py --build build-release --prefix PREFIX

The languages take turns, several times, so that what else the machine does meets all of them. PREFIX is
a tree that was installed from BUILD, a release build (-Dbuildtype=release). Prints medians; never
fails on time.
"""
import argparse
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bindings"))

import check  # pylint: disable=wrong-import-position


def commands(tree, build):
    """{language: (command, environment)}."""
    tree.run("cargo", "build", "--release", cwd=ROOT / "tests/bindings/rust")
    found = {
        "C": ([build / "tests/bench/pull_bench"], {}),
        "Rust": ([tree.work / "cargo/release/pull_bench"], {}),
        "Python": ([check.PYTHON, ROOT / "tests/bindings/python/pull_bench.py"], {}),
    }
    try:
        julia, environment = tree.julia()
        found["Julia"] = ([*julia, ROOT / "tests/bindings/julia/pull_bench.jl"], environment)
    except check.Skipped as skipped:
        print(skipped)
    return found


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    tree = check.Tree(options.build.resolve(), options.prefix.resolve())
    times = {}
    ways = commands(tree, options.build.resolve())
    for _ in range(options.rounds):
        for language, (command, environment) in ways.items():
            output = tree.run(*command, **environment)
            for what, ns in re.findall(r"^(.*?):? ([\d.]+) ns per task", output, re.MULTILINE):
                times.setdefault((language, what), []).append(float(ns))
    for (language, what), each in times.items():
        print(f"{language:7} {what:30} {statistics.median(each):7.0f} ns per task "
              f"({min(each):.0f} to {max(each):.0f})")


if __name__ == "__main__":
    main()
