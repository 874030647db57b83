# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario file (tests/bindings/scenarios/README.md) with the Python package.

    scenario.py FILE
"""

import os
import struct
import sys
import threading

from toy_chain import ToyChain

import rrfp

CHAIN_KEYS = {"weights", "inputs", "hint", "hint_file", "order", "fail"}
GPT_KEYS = {"data", "context", "layers", "dim", "heads", "dropout", "stages", "hint", "batch",
            "microbatches", "steps", "lr", "seed", "load", "save"}
VISION_KEYS = GPT_KEYS - {"load", "save"} | {
    "picture", "image_size", "patch", "vision_layers", "vision_dim", "vision_heads", "ranks",
    "grouping", "caption"}


class ScenarioError(Exception):
    pass


def read(path):
    """(kind, {key: text}); relative paths in it are made absolute."""
    kind, keys = None, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.strip().split(None, 1)
            if not words or words[0].startswith("#"):
                continue
            key, value = words[0], words[1].strip() if len(words) > 1 else ""
            if key == "scenario":
                kind = value
            else:
                keys[key] = value
    allowed = {"chain": CHAIN_KEYS, "gpt": GPT_KEYS, "vision": VISION_KEYS}.get(kind)
    if allowed is None:
        raise ScenarioError(f"{path}: scenario {kind!r} is not known")
    if unknown := set(keys) - allowed:
        raise ScenarioError(f"{path}: keys are not known: {', '.join(sorted(unknown))}")
    for key in ("hint_file", "data", "picture", "load", "save"):
        if key in keys:
            keys[key] = os.path.join(os.path.dirname(os.path.abspath(path)), keys[key])
    return kind, keys


def numbers(values):
    return " ".join("%g" % value for value in values)


# ---- The chain ----------------------------------------------------------------------------------


def run_step(ranks, chain, hint, order):
    """A step on a thread for each rank; what was raised on each."""
    errors = [None] * len(ranks)

    def run(rank):
        try:
            with rank.step(len(chain.inputs), hint, order=order) as step:
                for task in step:
                    with task:
                        chain(task)
        except rrfp.Error as error:
            errors[rank.number] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def run_chain(keys):
    weights, inputs = (list(map(float, keys[key].split())) for key in ("weights", "inputs"))
    hint = rrfp.Hint.read(keys["hint_file"]) if "hint_file" in keys else rrfp.Hint(keys["hint"])
    order = keys.get("order", "ready")
    text = None
    if "fail" in keys:
        stage, microbatch, text = keys["fail"].split(None, 2)
        failing = ToyChain(weights, inputs, (int(stage), int(microbatch), ValueError(text)))
    chain = ToyChain(weights, inputs)
    with rrfp.Pipeline(rrfp.Graph.chain(len(weights))) as pipeline:
        ranks = [pipeline.rank(number) for number in range(pipeline.ranks)]
        if text is not None:
            for rank, error in enumerate(run_step(ranks, failing, hint, order)):
                if error is None:
                    raise ScenarioError(f"rank {rank} did not fail")
                shown = text if text in error.text else error.text
                print(f"failed {rank} {error.status_name} {error.stage} {error.microbatch} {shown}")
            pipeline.reset()
        for error in run_step(ranks, chain, hint, order):
            if error is not None:
                raise error
    if order == "strict":
        for rank, tasks in enumerate(chain.order):
            print("order", rank, *tasks)
    print("loss %g" % chain.loss)
    print("dw", numbers(chain.dw))
    print("dx", numbers(chain.dx))


# ---- The language model -------------------------------------------------------------------------


def bits(number):
    return struct.pack(">d", number).hex()


def run_gpt(keys):
    number = {key: int(keys[key]) for key in ("context", "layers", "dim", "heads", "stages",
    "batch",
                                              "microbatches", "steps", "seed") if key in keys}
    batch, microbatches = number["batch"], number["microbatches"]
    data = rrfp.Data(keys["data"], context=number["context"])
    model = rrfp.Model.gpt(vocabulary=256, context=number["context"], layers=number["layers"],
                           dim=number["dim"], heads=number["heads"],
                           dropout=float(keys.get("dropout", 0)))
    with rrfp.Trainer(model, stages=number.get("stages", 1), hint=keys.get("hint"),
                      lr=float(keys["lr"]), seed=number.get("seed", 0)) as trainer:
        if "load" in keys:
            trainer.load(keys["load"])
        for step in range(trainer.info.steps, number["steps"]):
            report = trainer.step(data.batch(step * batch, batch, microbatches))
            print("loss", step + 1, bits(report.loss))
        report = trainer.evaluate(data.batch(0, batch, microbatches, "validation"))
        print("validation", bits(report.loss))
        print("weights", trainer.weights_sha256())
        if "save" in keys:
            trainer.save(keys["save"], position=number["steps"] * batch)


# ---- The vision-language model ------------------------------------------------------------------


def run_vision(keys):
    number = {key: int(text) for key, text in keys.items() if text.isdigit()}
    batch, microbatches = number["batch"], number["microbatches"]
    stages, ranks = number["stages"], number["ranks"]
    image_size, patch = number["image_size"], number["patch"]
    with rrfp.Samples(keys["data"], image_size=image_size, context=number["context"],
                      image_tokens=(image_size // patch) ** 2,
                      grouping=keys.get("grouping", "count")) as samples:
        info = samples.info
        print("samples", info.train_samples, info.validation_samples, info.images,
              info.images_max, info.tokens)
        pixels = rrfp.read_picture(keys["picture"], image_size).ravel()
        print("picture", *(struct.pack(">f", pixels[i]).hex() for i in (0, -1)))
        model = rrfp.Model.vision_language(
            language=dict(vocabulary=rrfp.SAMPLES_VOCABULARY, context=number["context"],
                          layers=number["layers"], dim=number["dim"], heads=number["heads"],
                          dropout=float(keys.get("dropout", 0))),
            vision=dict(image_size=image_size, patch=patch, layers=number["vision_layers"],
                        dim=number["vision_dim"], heads=number["vision_heads"]))
        first_blocks, stage_ranks = model.place(stages, ranks)
        print("blocks", *first_blocks)
        print("ranks", *stage_ranks)
        with rrfp.Trainer(model, stages=stages, ranks=ranks, first_blocks=first_blocks,
                          stage_ranks=stage_ranks, hint=keys.get("hint"), lr=float(keys["lr"]),
                          seed=number.get("seed", 0)) as trainer:
            for step in range(number["steps"]):
                report = trainer.step(samples.read(step * batch, batch, microbatches))
                print("loss", report.step, bits(report.loss))
            for stage, report in enumerate(trainer.stage_reports()):
                print("stage", stage, report.rank, report.first_block, report.last_block,
                      report.branch, report.microbatches)
            report = trainer.evaluate(samples.read(0, batch, microbatches, "validation"))
            print("validation", bits(report.loss))
            print("losses", *map(bits, trainer.losses()))
            print("weights", trainer.weights_sha256())
            with trainer.generator(number["context"]) as generator:
                generator.start_inputs(samples.read_at([0], 1, "validation")[0])
                print("caption", *generator.generate(number["caption"], temperature=0))


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 1
    try:
        kind, keys = read(arguments[0])
        {"chain": run_chain, "gpt": run_gpt, "vision": run_vision}[kind](keys)
    except (ScenarioError, rrfp.Error, OSError, ValueError, KeyError) as error:
        print(f"scenario.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
