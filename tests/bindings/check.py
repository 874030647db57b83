#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the bindings against an installed tree.

    tests/bindings/check.py --build build --prefix build/prefix NAME...

NAME is one of

    python     the tests of the Python package, and its examples
    torch      the tests of rrfp.torch
    rust       tests, documentation, lints and format of the Rust crates, and drift of the generated one
    julia      the tests of RRFP.jl, its examples, and drift of its generated layer
    scenarios  the files in scenarios/, in every language, compared with one another, with what is known
               and with the command; a checkpoint goes from each language to the next
    wheel      builds the wheel and uses it where no librrfp is installed

Works below BUILD/bindings. Exit status 0 if everything is as expected, 77 if it cannot be checked here.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
PYTHON = "/usr/bin/python3"  # the distribution's, which has its NumPy and torch

# What is known of the scenarios without running anything.
CHAIN = """loss 525
dw 262.5 175 105 75
dx 52.5 52.5 52.5 52.5
"""
KNOWN = {
    "chain": CHAIN,
    "chain_csv": """order 0 0F0 0F1 0F2 0F3 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3
order 1 1F0 1F1 1F2 1F3 1I0 1W0 1I1 1W1 1I2 1W2 1I3 1W3
loss 15
dw 7.5 5
dx 1.5 1.5 1.5 1.5
""",
    "chain_fail": "".join(
        f"failed {rank} RRFP_ERR_STAGE_FAILED 1 2 the third microbatch is too hot: 451 °F\n"
        for rank in range(4)) + CHAIN,
}


class Failed(Exception):
    """Something is not as expected; the text says what."""


class Skipped(Exception):
    """Cannot be checked on this machine; the text says why."""


class Tree:
    """The installed tree, and a folder to work in."""

    def __init__(self, build, prefix):
        self.prefix = prefix
        self.work = build / "bindings"
        self.work.mkdir(parents=True, exist_ok=True)
        libraries = [path.parent for path in prefix.glob("lib/**/librrfp.so")]
        if len(libraries) != 1:
            raise Failed(f"expected one librrfp.so below {prefix}/lib, found {len(libraries)}")
        self.libdir = libraries[0]
        packages = [path.parent for path in prefix.glob("**/python3*/*-packages/rrfp")]
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("RRFP_", "PYTHON", "RUST", "JULIA", "PKG_CONFIG", "MALLOC_", "LD_"))}
        self.environment.update(
            PKG_CONFIG_PATH=str(self.libdir / "pkgconfig"),
            LD_LIBRARY_PATH=str(self.libdir),
            PYTHONPATH=os.pathsep.join(map(str, packages)),
            PYTHONDONTWRITEBYTECODE="1",
            CARGO_TARGET_DIR=str(self.work / "cargo"),
            CARGO_NET_OFFLINE="true",
            OPENBLAS_NUM_THREADS="1",
            OMP_NUM_THREADS="1")

    def run(self, *command, cwd=ROOT, timeout=900, **environment):
        """The standard output; Failed with everything that was printed if the status is not 0."""
        done = subprocess.run(
            list(map(str, command)), cwd=cwd, env={**self.environment, **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=timeout, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n"
                         f"{done.stdout[-6000:]}{done.stderr[-6000:]}")
        return done.stdout

    def julia(self):
        """The command line of Julia and the environment that it needs."""
        try:
            folder = self.run(HERE / "julia/install_julia.sh").strip()
        except Failed as failed:
            if "VERSION_CODENAME=bookworm" in pathlib.Path("/etc/os-release").read_text(
                    encoding="utf-8"):
                raise
            raise Skipped(f"there is no Julia: {str(failed).splitlines()[-1]}") from failed
        paths = [folder] if folder else []
        return ["julia", "--startup-file=no"], {
            "LD_LIBRARY_PATH": os.pathsep.join([*paths, str(self.libdir)]),
            "JULIA_LOAD_PATH": f"{ROOT / 'bindings/julia'}{os.pathsep}@stdlib",
            "JULIA_DEPOT_PATH": str(self.work / "julia")}


def expect(condition, text):
    """Raises Failed unless the condition holds."""
    if not condition:
        raise Failed(text)


def check_python(tree):
    """The package as installed, not as in the source tree."""
    where = tree.run(PYTHON, "-c", "import rrfp; print(rrfp.__file__)", cwd=tree.work).strip()
    expect(where.startswith(str(tree.prefix)), f"import rrfp finds {where}")
    print(tree.run(PYTHON, "-m", "unittest", "discover", "-s", HERE / "python"))
    check_examples(tree, lambda name: [PYTHON, ROOT / "examples" / name / "main.py"], {})


def check_torch(tree):
    """Also the example with torch modules."""
    print(tree.run(PYTHON, "-m", "unittest", "discover", "-s", HERE / "python/torch"))
    print(tree.run(PYTHON, ROOT / "examples/06_torch_stages/main.py"))


def check_rust(tree):
    """cargo test runs the unit tests and the examples in the documentation."""
    workspace = ROOT / "bindings/rust"
    tree.run(workspace / "rrfp-sys/generate.sh", "--check")
    for folder in (workspace, HERE / "rust"):
        tree.run("cargo", "fmt", "--all", "--check", cwd=folder)
        tree.run("cargo", "clippy", "--all-targets", "--", "-D", "warnings", cwd=folder)
    print(tree.run("cargo", "test", cwd=workspace))
    tree.run("cargo", "doc", "--no-deps", cwd=workspace, RUSTDOCFLAGS="-D warnings")
    tree.run("cargo", "build", "--examples", cwd=workspace)
    check_examples(tree, lambda name: [tree.work / "cargo/debug/examples" / name[3:]], {})


def check_julia(tree):
    """Runs on the Julia that is there; see install_julia.sh."""
    command, environment = tree.julia()
    tree.run(PYTHON, ROOT / "bindings/julia/generate.py", "--check")
    print(tree.run(*command, ROOT / "bindings/julia/test/runtests.jl", **environment))
    check_examples(tree, lambda name: [*command, ROOT / "examples" / name / "main.jl"],
                   environment)


def check_examples(tree, command, environment):
    """The examples of a language do what those in C do, which tests/install_test.sh checks."""
    flags = tree.run("pkg-config", "--cflags", "--libs", "rrfp").split()

    def in_c(name, *arguments):
        program = tree.work / f"c-{name}"
        tree.run("cc", "-std=c99", ROOT / "examples" / name / "main.c", *flags, "-lm", "-o", program)
        return tree.run(program, *arguments)

    output = tree.run(*command("01_toy_chain"), **environment)
    expect("525" in output and "262.5" in output, f"01_toy_chain prints {output}")
    output = tree.run(*command("02_train_gpt"), HERE / "scenarios/text.txt", 30, **environment)
    losses = [float(line.rsplit(None, 1)[1]) for line in output.splitlines() if "loss" in line]
    expect(losses[-1] < 0.8 * losses[0], f"02_train_gpt does not learn: {output}")
    for name, argument in (("03_custom_hint", ROOT / "examples/03_custom_hint/hint.csv"),
                           ("05_simulation", "language"), ("07_vision_language", 100)):
        output = tree.run(*command(name), argument, **environment)
        expect(output == in_c(name, argument), f"{name} does not print what C does: {output}")
    output = tree.run(*command("04_own_stage_code"), 300, **environment)
    losses = [float(line.rsplit(None, 1)[1]) for line in output.splitlines() if "loss" in line]
    expect(losses[-1] < 0.2 * losses[0], f"04_own_stage_code does not learn: {output}")


class Runners:
    """Runs a scenario in a language; without Julia where there is none."""

    def __init__(self, tree):
        self.tree = tree
        flags = tree.run("pkg-config", "--cflags", "--libs", "rrfp").split()
        program = tree.work / "scenario"
        tree.run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pthread",
                 *sorted((HERE / "c").glob("*.c")), *flags, "-o", program)
        tree.run("cargo", "build", "--release", cwd=HERE / "rust")
        self.commands = {
            "c": ([program], {}),
            "python": ([PYTHON, HERE / "python/scenario.py"], {}),
            "rust": ([tree.work / "cargo/release/scenario"], {}),
        }
        try:
            julia, environment = tree.julia()
            self.commands["julia"] = ([*julia, HERE / "julia/scenario.jl"], environment)
        except Skipped as skipped:
            print(skipped)
        self.languages = tuple(self.commands)

    def run(self, language, file):
        """What it prints."""
        command, environment = self.commands[language]
        return self.tree.run(*command, file, timeout=300, **environment)


def check_scenarios(tree):
    """One file, every language, one result."""
    runners = Runners(tree)
    for file in sorted((HERE / "scenarios").glob("*.txt")):
        if file.stem == "text":
            continue
        outputs = {language: runners.run(language, file) for language in runners.languages}
        known = KNOWN.get(file.stem, outputs["c"])
        for language, output in outputs.items():
            expect(output == known,
                   f"{file.stem} in {language} prints\n{output}expected\n{known}")
        print(f"{file.stem}: the same in {', '.join(outputs)}")
        if file.stem == "gpt":
            check_command(tree, outputs["c"])
            check_checkpoints(tree, runners, file, outputs["c"])


def check_command(tree, expected):
    """The command trains the same model to the same bits."""
    output = tree.run(
        tree.prefix / "bin/rrfp", "train", "--data", HERE / "scenarios/text.txt", "--context", 16,
        "--layers", 2, "--dim", 32, "--heads", 4, "--dropout", 0.1, "--stages", 2, "--hint",
        "zb-h1", "--batch", 8, "--microbatches", 4, "--steps", 6, "--lr", 0.003, "--seed", 0,
        *COMMAND_DEFAULTS, "--json")
    lines = [json.loads(line) for line in output.splitlines()]
    bits = [struct.pack(">d", line["loss"]).hex() for line in lines if "loss" in line]
    known = [line.split()[2] for line in expected.splitlines() if line.startswith("loss ")]
    expect(bits[:len(known)] == known, f"the command's losses are {bits}; expected {known}")
    print("gpt: the same from the command")


# The command's own defaults are those of a good first run; these are the library's.
COMMAND_DEFAULTS = ("--warmup", 0, "--clip", 0, "--decay", "none")


def check_checkpoints(tree, runners, file, expected):
    """Each language goes on where the one before has stopped, and ends where a single run ends."""
    known = expected.splitlines()
    languages = runners.languages
    for writer, reader in zip(languages, languages[1:] + languages[:1]):
        folder = tree.work / f"checkpoint-{writer}"
        shutil.rmtree(folder, ignore_errors=True)
        text = file.read_text(encoding="utf-8").replace(
            "data text.txt", f"data {HERE / 'scenarios/text.txt'}")
        first = tree.work / "first.txt"
        first.write_text(text.replace("steps 6", "steps 3") + f"save {folder}\n",
                         encoding="utf-8")
        second = tree.work / "second.txt"
        second.write_text(text.replace("stages 2", "stages 1") + f"load {folder}\n",
                          encoding="utf-8")
        begun = runners.run(writer, first).splitlines()
        expect(begun[:3] == known[:3], f"{writer}: the first steps are {begun}")
        ended = runners.run(reader, second).splitlines()
        expect(ended == known[3:], f"{reader} goes on from {writer} with {ended}; "
                                   f"expected {known[3:]}")
        print(f"checkpoint: {reader} goes on where {writer} has stopped")


def check_wheel(tree):
    """Where ccache is installed, what examples/quickstart builds beside it is then compiled already."""
    folder = tree.work / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(ROOT / "build-wheel", ignore_errors=True)
    tree.run(PYTHON, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir",
             folder, "--config-settings=builddir=build-wheel", ROOT)
    wheels = list(folder.glob("rrfp-*.whl"))
    expect(len(wheels) == 1, f"expected one wheel, found {wheels}")
    target = folder / "site"
    tree.run(PYTHON, "-m", "pip", "install", "--no-deps", "--no-index", "--target", target,
             wheels[0])
    output = tree.run(PYTHON, HERE / "python/scenario.py", HERE / "scenarios/chain.txt",
                      PYTHONPATH=str(target), LD_LIBRARY_PATH="")
    expect(output == CHAIN, f"the wheel prints {output}")


CHECKS = {"python": check_python, "torch": check_torch, "rust": check_rust,
          "julia": check_julia, "scenarios": check_scenarios, "wheel": check_wheel}


def main():
    """Runs the checks that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--prefix", type=pathlib.Path, help="default: BUILD/prefix")
    parser.add_argument("names", nargs="+", choices=CHECKS, metavar="NAME")
    options = parser.parse_args()
    # A shell starts what runs in the background with the signal ignored, and all programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    build = options.build.resolve()
    try:
        tree = Tree(build, (options.prefix or build / "prefix").resolve())
        for name in options.names:
            CHECKS[name](tree)
    except Skipped as skipped:
        print(f"skipped: {skipped}")
        sys.exit(SKIPPED)
    except (Failed, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"check.py: {error}")


if __name__ == "__main__":
    main()
