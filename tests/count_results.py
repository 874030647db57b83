#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of a run of `meson test`: prints "PASSED FAILED" on standard output.

    count_results.py BUILD_DIR [--suite NAME]...

Each case of a GoogleTest program counts by itself, any other test as one. Whatever did not run to a
pass has failed: a test that meson lists but did not run, a time-out, a crash, a skipped or disabled
case, a program that reports no failed case but ends with an error. What failed goes to standard
error, with the end of its output.

The cases are read from what the programs print. Their XML reports would not do: meson gives programs
of the same name in different suites the same file, and a crash leaves that of an earlier run.
"""
import argparse
import json
import os
import re
import subprocess
import sys

SHOWN_LINES_MAX = 60


def listed_tests(build_dir, suites):
    """The names, with repetitions, of the tests that should have run."""
    result = subprocess.run(["meson", "introspect", build_dir, "--tests"], check=True,
                            stdout=subprocess.PIPE, text=True)
    tests = json.loads(result.stdout)
    if suites:
        tests = [t for t in tests if {s.split(":")[-1] for s in t["suite"]} & set(suites)]
    return [t["name"] for t in tests]


def run_results(build_dir):
    """What meson wrote about each test that it ran."""
    path = os.path.join(build_dir, "meson-logs", "testlog.json")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def count(result):
    """(passed, what failed) of one test."""
    ok = result["result"] in ("OK", "EXPECTEDFAIL")
    output = result.get("stdout", "")
    plan = re.search(r"^\[==========\] Running (\d+) tests? ", output, re.MULTILINE)
    if not plan:  # no GoogleTest program, or it did not come so far
        return (1, []) if ok else (0, ["the test"])
    started = list(dict.fromkeys(re.findall(r"\[ RUN      \] (\S+)", output)))
    passed = set(re.findall(r"\[       OK \] ([^\s,]+)", output))
    failed = [name for name in started if name not in passed]
    failed += ["a case that did not start"] * (int(plan[1]) - len(started))
    if disabled := re.search(r"YOU HAVE (\d+) DISABLED TEST", output):
        failed += ["a disabled case"] * int(disabled[1])
    if not failed and (not ok or not passed):
        failed = ["the program as a whole"]
    return len(passed), failed


def show(title, result):
    print(f"FAILED: {title}", file=sys.stderr)
    output = result.get("stdout", "") + result.get("stderr", "")
    # The cases that passed say nothing about those that did not.
    lines = [line for line in output.splitlines()
             if not re.match(r"\[( RUN      |       OK |----------)\]", line)]
    if len(lines) > SHOWN_LINES_MAX:
        lines = [f"... {len(lines) - SHOWN_LINES_MAX} lines", *lines[-SHOWN_LINES_MAX:]]
    print("".join(f"    {line}\n" for line in lines), end="", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build_dir")
    parser.add_argument("--suite", action="append")
    arguments = parser.parse_args()

    passed = failed = 0
    missing = listed_tests(arguments.build_dir, arguments.suite)
    for result in run_results(arguments.build_dir):
        name = result["name"].rpartition(" / ")[2]
        if name in missing:
            missing.remove(name)
        passed_here, failed_here = count(result)
        passed += passed_here
        failed += len(failed_here)
        if failed_here:
            show(f"{result['name']} ({result['result']}): {', '.join(failed_here)}", result)
    for name in missing:
        print(f"FAILED: {name} did not run", file=sys.stderr)
    failed += len(missing)
    if passed + failed == 0:
        print("FAILED: there are no tests", file=sys.stderr)
        failed = 1
    print(passed, failed)


if __name__ == "__main__":
    main()
