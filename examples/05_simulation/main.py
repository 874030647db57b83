# SPDX-License-Identifier: Apache-2.0
"""Compares schedules in virtual time, without hardware: the same steps of a workload under several
hints, obeyed and as rankings of what is ready.

    main.py [PRESET]     uniform, language (default), multimodal, straggler, ...
"""

import statistics
import sys

import rrfp

SEEDS = range(5)
WAYS = (
    ("1f1b", "paired", "1F1B, obeyed, blocking sends"),
    ("1f1b", "strict", "1F1B, obeyed"),
    ("1f1b", "ready", "1F1B, as a ranking"),
    ("zb-h1", "strict", "ZB-H1, obeyed"),
    ("zb-v", "strict", "ZB-V, obeyed"),
    ("zb-v", "ready", "ZB-V, as a ranking"),
    ("auto", "default", "chosen by simulation"),
)


def main(preset):
    print(f"{preset}, 8 ranks, 32 microbatches, the memory of 1F1B, medians of {len(SEEDS)} steps")
    print(f"{'':30} {'ms':>9} {'over the bound':>14}")
    for hint, order, text in WAYS:
        with rrfp.Simulation(preset, hint=hint, order=order, stages=8,
                             microbatches=32) as simulation:
            steps = [simulation.run(seed) for seed in SEEDS]
        ms = statistics.median(step.makespan_ns / 1e6 for step in steps)
        ratio = statistics.median(step.makespan_ns / step.bound_ns for step in steps)
        print(f"{text:30} {ms:9.1f} {ratio:13.3f}x")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    name = sys.argv[1] if len(sys.argv) > 1 else "language"
    if name not in rrfp.presets():
        sys.exit(f"simulation: there is no preset {name}; there are: {', '.join(rrfp.presets())}")
    try:
        main(name)
    except rrfp.Error as error:
        sys.exit(f"simulation: {error.status_name}: {error}")
