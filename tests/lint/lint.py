#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that need no run of the program.

    lint.py [--build DIR] [CHECK...]    the checks of tests/run, or those named; DIR has a
                                        compile_commands.json
    lint.py --list                      names the checks of tests/run

`analyze`, which is not among them, takes as long as all others: call it by name before a release.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import arrows

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP = (".c", ".cpp", ".h", ".hpp", ".cu", ".cuh")
# clang-format's output depends on its version; this one is in Debian 12 and in Ubuntu 24.04.
CLANG_FORMAT_VERSION = 14
FILE_LINES_MAX = 600
OTHER_SOURCES = ("meson_options.txt", ".clang-tidy")


def project_files():
    """The paths, relative to the root, of all files that are neither built nor ignored."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists() and shutil.which("git"):
        git = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if git.returncode == 0:
            names = git.stdout.split("\0")
            return sorted({name for name in names if name and (ROOT / name).is_file()})
    # A release archive, or a folder that git does not trust.
    found = (p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file())
    return sorted(str(p) for p in found
                  if not p.parts[0].startswith("build")
                  and not {".git", "__pycache__"} & set(p.parts))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def is_script(name, interpreter):
    with open(ROOT / name, "rb") as file:
        start = file.readline(200)
    return start.startswith(b"#!") and interpreter.encode() in start


def run(command):
    """The complaints of a program: its output if it fails."""
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, check=False)
    return [] if result.returncode == 0 else [result.stdout.rstrip() or f"{command[0]} failed"]


C_HEADERS = ("capi/include/", "bindings/python/", "tests/bindings/c/")


def is_c(name):
    return name.endswith(".c") or name.startswith(C_HEADERS)


def check_format(files, _):
    """clang-format would change nothing."""
    program = f"clang-format-{CLANG_FORMAT_VERSION}"
    if not shutil.which(program):
        return [f"{program} is not installed"]
    sources = [f for f in files if f.endswith(CPP)]
    complaints = []
    for style, names in (("file", [f for f in sources if not is_c(f)]),
                         ("file:tests/lint/c.clang-format", [f for f in sources if is_c(f)])):
        complaints += run([program, f"--style={style}", "--dry-run", "--Werror", *names])
    return complaints


# The path-sensitive checks; what they could find in a run, the sanitizers do.
ANALYZER = "clang-analyzer-*"


def check_tidy(files, build):
    """clang-tidy has nothing to say, but for its analyzer."""
    return run_tidy(files, build, f"--checks=-{ANALYZER}")


def check_analyze(files, build):
    """clang-tidy's analyzer has nothing to say."""
    return run_tidy(files, build, f"--checks=-*,{ANALYZER},-clang-analyzer-optin.performance.Padding")


def run_tidy(files, build, checks):
    """The complaints of clang-tidy about engine/ and the C API.

    Not about kernels/ and capi/cli/, where a file takes it half a minute: the former are compiled
    once for every set of vector instructions, the latter include CLI11. Run it there by hand.
    """
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    compiled = {os.path.relpath(os.path.join(e["directory"], e["file"]), ROOT) for e in entries}
    wanted = [f for f in files if f.startswith(("engine/", "capi/src/")) and f.endswith((".c", ".cpp"))]
    complaints = [f"{f} is not compiled in {build}" for f in wanted if f not in compiled]

    def tidy(name):
        # The commands are those of another compiler, which may know options that clang does not.
        result = subprocess.run(
            ["clang-tidy", "-p", build, "--quiet", checks,
             "--extra-arg=-Wno-unknown-warning-option", name],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode == 0:
            return []
        return [result.stdout.rstrip() or result.stderr.rstrip() or f"clang-tidy failed on {name}"]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(tidy, sorted(set(wanted) & compiled)):
            complaints += found
    # A finding in a header comes once for each file that includes it.
    return list(dict.fromkeys(complaints))


def check_spdx(files, _):
    """The licence stands in the first line of every source, or in the second after #!."""
    for name in files:
        is_source = name.endswith(CPP + (".py", ".sh", ".map", ".build", ".wrap", ".md", ".in"))
        if is_source or os.path.basename(name) in OTHER_SOURCES or is_script(name, ""):
            start = read(name).split("\n")[:2]
            if not any("SPDX-License-Identifier: Apache-2.0" in line for line in start):
                yield f"{name}:1: no SPDX-License-Identifier: Apache-2.0 in the first two lines"


def check_arrows(files, _):
    """Every part includes only what the design allows."""
    for name in files:
        if name.endswith(CPP):
            for line, complaint in arrows.check_file(name, read(name)):
                yield f"{name}:{line}: {complaint}"


def check_length(files, _):
    """No file of the library is too long to be read at once."""
    for name in files:
        if name.startswith(("engine/", "capi/", "kernels/")):
            lines = read(name).count("\n")
            if lines > FILE_LINES_MAX:
                yield f"{name}: {lines} lines, expected at most {FILE_LINES_MAX}"


def check_shell(files, _):
    """shellcheck has nothing to say."""
    scripts = [f for f in files if f.endswith(".sh") or is_script(f, "bash") or is_script(f, "/sh")]
    return run(["shellcheck", *scripts])


CHECKS = {
    "format": check_format,
    "tidy": check_tidy,
    "spdx": check_spdx,
    "arrows": check_arrows,
    "length": check_length,
    "shell": check_shell,
}
BY_NAME = {**CHECKS, "analyze": check_analyze}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("checks", nargs="*", metavar="CHECK", choices=[[], *BY_NAME])
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(CHECKS))
        return 0
    files = project_files()
    failed = False
    for name in arguments.checks or CHECKS:
        complaints = list(BY_NAME[name](files, os.path.abspath(arguments.build)))
        print("\n".join(complaints + [f"{name}: {'failed' if complaints else 'ok'}"]))
        failed = failed or bool(complaints)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
