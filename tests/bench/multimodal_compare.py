#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training on pictures and text with real computation, 2 ranks: readiness beside strict order.

    multimodal_compare.py --build BUILD [--rounds 5] [--steps 30] [--timelines FOLDER]

BUILD is a release build (-Dbuildtype=release). The same samples, model, layout and room for activations;
what differs is whether the hint ranks what is ready or is obeyed, or `auto` chooses. Three amounts of room:
the least in which 1F1B can be obeyed, twice as much, and enough for ZB-H1. The ways take turns, so that
what else the machine does meets all of them; prints medians over the rounds, and how much faster each is
than the fastest strict order in the same room: median and least. Results are the same to the bit, which is
checked. Needs the icons of tango-icon-theme. --timelines also writes a timeline of each way, as a picture
and a page.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
THEME = pathlib.Path("/usr/share/icons/Tango")
MODEL = ["--vision", "--image-size", "16", "--patch", "4", "--vision-layers", "4", "--vision-dim",
         "96", "--vision-heads", "4", "--layers", "4", "--dim", "96", "--heads", "4", "--context",
         "512", "--rotary"]
DATA = ["--batch", "32", "--microbatches", "12", "--validation", "0", "--eval-samples", "0"]
PIPELINE = ["--stages", "8", "--ranks", "2", "--placement", "balanced", "--partition", "estimated"]
ROOMS = (6, 12, 24)  # activations on a rank
STRICT = ("1f1b, strict", "zb-h1, strict")
WAYS = {
    "1f1b, strict": ["--hint", "1f1b", "--order", "strict"],
    "zb-h1, strict": ["--hint", "zb-h1", "--order", "strict"],
    "1f1b, ready": ["--hint", "1f1b", "--order", "ready"],
    "zb-h1, ready": ["--hint", "zb-h1", "--order", "ready"],
    "auto": ["--hint", "auto"],
}
RUNS = [(room, way) for room in ROOMS for way in WAYS if room == 24 or way != "zb-h1, strict"]


def train(rrfp, manifest, run, steps, trace=None):
    """The summary of a run."""
    room, way = run
    command = [rrfp, "train", "--data", manifest, *MODEL, *DATA, *PIPELINE, *WAYS[way], "--cap",
               room, "--steps", steps, "--json", "--quiet"]
    if trace:
        command += ["--trace", trace]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def draw(rrfp, trace, folder, run):
    name = f"{run[1].replace(', ', '-')}-{run[0]}"
    for option, ending in (("--svg", "svg"), ("--html", "html")):
        subprocess.run([rrfp, "trace", trace, option, folder / f"{name}.{ending}"], check=True,
                       stdout=subprocess.DEVNULL)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--timelines", type=pathlib.Path)
    options = parser.parse_args()
    if not THEME.is_dir():
        sys.exit(f"multimodal_compare.py: there is no {THEME}; install tango-icon-theme")
    rrfp = options.build.resolve() / "capi/cli/rrfp"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        manifest = folder / "icons.jsonl"
        subprocess.run([sys.executable, ROOT / "examples/icon_manifest.py", THEME, manifest],
                       check=True, stdout=subprocess.DEVNULL)
        runs = {run: [] for run in RUNS}
        for _ in range(options.rounds):
            for run, found in runs.items():
                found.append(train(rrfp, manifest, run, options.steps))
        if options.timelines:
            options.timelines.mkdir(parents=True, exist_ok=True)
            for run in RUNS:
                trace = folder / "trace.json"
                train(rrfp, manifest, run, options.steps, trace)
                draw(rrfp, trace, options.timelines, run)
    results = {summary["weights_sha256"] for found in runs.values() for summary in found}
    if len(results) != 1:
        sys.exit(f"multimodal_compare.py: the ways gave {len(results)} different results")
    speeds = {run: [summary["tokens_per_s"] for summary in found] for run, found in runs.items()}
    for (room, way), found in runs.items():
        strict = [max(each) for each in zip(*(speeds[room, other] for other in STRICT
                                              if (room, other) in speeds))]
        gains = [mine / other for mine, other in zip(speeds[room, way], strict)]
        idle = statistics.median(summary["idle_share"] for summary in found)
        peak = statistics.median(summary["peak_bytes"] for summary in found) / 2 ** 20
        print(f"{room:2} {way:14} {statistics.median(speeds[room, way]):8.0f} tokens/s  "
              f"idle {100 * idle:4.1f} %  {peak:5.1f} MiB  "
              f"{statistics.median(gains):.2f}x, at least {min(gains):.2f}x")


if __name__ == "__main__":
    main()
