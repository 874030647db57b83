#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.pipelining against rrfp on one realisation of a workload.

    tests/bench/pipelining_compare.py --build build --torch-python VENV/bin/python

Both run the same task durations on this machine: stages sleep instead of computing, one process a
rank there, one thread a rank here. Torch's schedules take the microbatches as the data give them and
the memory that they need; rrfp runs `auto` in the memory of 1F1B. The work per task of the two
runtimes themselves is part of the times; `ideal` is torch's own order without it.
Without a torch that has torch.distributed.pipelining it says so and compares nothing.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
# Peak activation memory in multiples of 1F1B's, for sizes that are all alike.
MEMORY = {"1F1B": "1.0", "ZBVZeroBubble": "1.0", "Interleaved1F1B": "1.4",
          "InterleavedZeroBubble": "1.0"}


def arguments():
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build", help="where meson has built")
    parser.add_argument("--torch-python", default=sys.executable,
                        help="a Python whose torch has torch.distributed.pipelining")
    parser.add_argument("--presets", default="language,multimodal")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--microbatches", type=int, default=32)
    parser.add_argument("--scale", type=float, default=4.0, help="1 = tasks of 10 ms on average")
    parser.add_argument("--steps", type=int, default=3, help="timed steps of each")
    return parser.parse_args()


def torch_results(options, realization):
    """What torch takes, a dict for each schedule; None if it cannot run here."""
    done = subprocess.run(
        [options.torch_python, HERE / "peers/torch_pipelining.py", "--realization", realization,
         "--schedule", "all", "--steps", str(options.steps)],
        stdout=subprocess.PIPE, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for result in results:
        if "skipped" in result:
            print("torch:", result.get("schedule", ""), result["skipped"])
    if done.returncode not in (0, SKIPPED):
        sys.exit(f"pipelining_compare.py: torch_pipelining.py ended with {done.returncode}")
    return [result for result in results if "makespan_ms" in result]


def rrfp_results(options, preset):
    """The lines of `variability`: {way: (real ms, simulated ms)}."""
    command = [pathlib.Path(options.build) / "tests/bench/variability",
               "--ranks", str(options.ranks), "--microbatches", str(options.microbatches),
               "--scale", str(options.scale), "--presets", preset]
    runs = [subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            for _ in range(options.steps)]
    ways = {}
    for text in runs:
        for line in text.splitlines()[2:]:
            match = re.match(r"  (\S.{13}) +([\d.]+) +([\d.]+) ", line)
            real, simulated = float(match[2]), float(match[3])
            ways.setdefault(match[1].strip(), ([], simulated))[0].append(real)
    return {way: (statistics.median(real), simulated) for way, (real, simulated) in ways.items()}


def compare(options, preset):
    """Prints the table of one preset. False if there was nothing to compare with."""
    with tempfile.TemporaryDirectory() as folder:
        realization = pathlib.Path(folder) / "realization.json"
        subprocess.run(
            [pathlib.Path(options.build) / "tests/bench/variability", "--dump", realization,
             "--ranks", str(options.ranks), "--microbatches", str(options.microbatches),
             "--scale", str(options.scale), "--presets", preset], check=True)
        theirs = torch_results(options, realization)
    if not theirs:
        return False
    ours = rrfp_results(options, preset)
    print(f"{preset}: {options.ranks} ranks, {options.microbatches} microbatches, "
          f"{10 * options.scale:g} ms tasks, medians of {options.steps}")
    print(f"  {'':32} {'real ms':>9} {'ideal ms':>9} {'memory':>7} {'rrfp auto is':>13}")
    auto = ours["auto"][0]
    for result in theirs:
        real = statistics.median(result["makespan_ms"])
        print(f"  torch {result['schedule']:26} {real:9.0f} {result['ideal_ms']:9.0f} "
              f"{MEMORY.get(result['schedule'], '?'):>6}x {real / auto:9.2f}x as fast")
    for way, (real, simulated) in ours.items():
        print(f"  rrfp {way:27} {real:9.0f} {simulated:9.0f} {'':>7} {real / auto:9.2f}x as fast")
    return True


def main():
    """Compares on each preset."""
    options = arguments()
    compared = [compare(options, preset) for preset in options.presets.split(",")]
    if not any(compared):
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
