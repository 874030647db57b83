#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training a small language model: rrfp beside PyTorch, and two stages beside one.

    gpt_compare.py BUILD_DIR [ROUNDS]     default 5

Runs the programs in turn, so that what else the machine does hits all alike, and prints medians and
their ratios. Without Debian's python3-torch the comparison with it is left out, and said so.
"""
import re
import statistics
import subprocess
import sys

FIGURE = re.compile(r"(\w+) ([0-9]+(?:\.[0-9]+)?)(?=\s)")
TORCH = ["/usr/bin/python3", sys.path[0] + "/peers/torch_gpt.py"]
STEPS = "10"


def run(command):
    """The figures that a program prints, or None if it cannot run."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            check=False)
    if result.returncode != 0:
        return None
    return {name: float(value) for name, value in FIGURE.findall(result.stdout)}


def main():
    build = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    step = [build + "/tests/bench/gpt_step", STEPS]
    programs = {
        "rrfp, 1 stage, batch 8": [*step, "1", "1", "8"],
        "PyTorch, batch 8": [*TORCH, STEPS],
        "rrfp, 1 stage, batch 32 in 16": [*step, "1", "16", "32"],
        "rrfp, 2 stages, batch 32 in 16": [*step, "2", "16", "32"],
    }
    figures = {name: [] for name in programs}
    for _ in range(rounds):
        for name, command in programs.items():
            found = run(command)
            if found:
                figures[name].append(found)

    def median(name, figure):
        return statistics.median(f[figure] for f in figures[name])

    for name, found in figures.items():
        if not found:
            print(f"{name:32} cannot run here: {' '.join(programs[name])}")
            continue
        print(f"{name:32} {median(name, 'ms_per_step'):8.1f} ms/step "
              f"{median(name, 'tokens_per_s'):8.0f} tokens/s {median(name, 'peak_mib'):6.0f} MiB")
    one, torch, single, double = programs
    if figures[torch]:
        ratio = median(one, "tokens_per_s") / median(torch, "tokens_per_s")
        memory = median(one, "peak_mib") / median(torch, "peak_mib")
        print(f"rrfp over PyTorch, one thread: {ratio:.2f}x the tokens/s, {memory:.2f}x the memory")
    print(f"2 stages over 1: {median(double, 'tokens_per_s') / median(single, 'tokens_per_s'):.2f}x")


if __name__ == "__main__":
    main()
