#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training on pictures and text with real computation, 2 ranks: readiness beside strict order.

    multimodal_compare.py --build BUILD [--rounds 7] [--steps 20] [--timelines FOLDER]

BUILD is a release build (-Dbuildtype=release). The same samples, model and placement for all, and blocks
measured when a run begins; what differs is whether the hint ranks what is ready or is obeyed, with as much
room for activations as the strict order of that hint needs. `auto` has the room of ZB-H1, and is compared
with the faster strict order. The ways take turns, so that what else the machine does meets all of them;
prints medians over the rounds, and of the gains also the least. Results are the same to the bit, which is
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
PIPELINE = ["--stages", "8", "--ranks", "2", "--placement", "balanced"]
# The caps are the least with which these can be obeyed.
F1B, ZB = ["--hint", "1f1b", "--cap", "17"], ["--hint", "zb-h1", "--cap", "24"]
STRICT, READY = ["--order", "strict"], ["--order", "ready"]
WAYS = {
    "1f1b, strict": F1B + STRICT,
    "1f1b, ready": F1B + READY,
    "zb-h1, strict": ZB + STRICT,
    "zb-h1, ready": ZB + READY,
    "auto": ["--hint", "auto", "--cap", "24"],
}


def train(rrfp, manifest, way, steps, trace=None):
    """The summary of a run."""
    command = [rrfp, "train", "--data", manifest, *MODEL, *DATA, *PIPELINE, *WAYS[way], "--steps",
               str(steps), "--json", "--quiet"]
    if trace:
        command += ["--trace", trace]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def draw(rrfp, trace, folder, way):
    name = way.replace(", ", "-")
    for option, ending in (("--svg", "svg"), ("--html", "html")):
        subprocess.run([rrfp, "trace", trace, option, folder / f"{name}.{ending}"], check=True,
                       stdout=subprocess.DEVNULL)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
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
        runs = {way: [] for way in WAYS}
        for _ in range(options.rounds):
            for way, found in runs.items():
                found.append(train(rrfp, manifest, way, options.steps))
        if options.timelines:
            options.timelines.mkdir(parents=True, exist_ok=True)
            for way in WAYS:
                trace = folder / "trace.json"
                train(rrfp, manifest, way, options.steps, trace)
                draw(rrfp, trace, options.timelines, way)
    results = {run["weights_sha256"] for found in runs.values() for run in found}
    if len(results) != 1:
        sys.exit(f"multimodal_compare.py: the ways gave {len(results)} different results")
    speeds = {way: [run["tokens_per_s"] for run in found] for way, found in runs.items()}
    for way, found in runs.items():
        strict = speeds.get(way.replace("ready", "strict")) if "," in way else [
            max(each) for each in zip(speeds["1f1b, strict"], speeds["zb-h1, strict"])]
        gains = [mine / other for mine, other in zip(speeds[way], strict)]
        idle = statistics.median(run["idle_share"] for run in found)
        peak = statistics.median(run["peak_bytes"] for run in found) / 2 ** 20
        print(f"{way:14} {statistics.median(speeds[way]):8.0f} tokens/s  idle {100 * idle:4.1f} %  "
              f"{peak:5.1f} MiB  {statistics.median(gains):.3f}x, at least {min(gains):.3f}x")


if __name__ == "__main__":
    main()
