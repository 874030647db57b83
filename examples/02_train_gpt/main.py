# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model on the bytes of a file or folder, over a pipeline of two stages,
and lets it write 200 characters.

    main.py PATH [STEPS]
"""

import sys

import rrfp

CONTEXT, BATCH, MICROBATCHES = 64, 16, 8


def main(path, steps):
    data = rrfp.Data(path, context=CONTEXT)
    model = rrfp.Model.gpt(vocabulary=256, context=CONTEXT, layers=2, dim=64, heads=4)
    with rrfp.Trainer(model, stages=2, lr=3e-3, clip_norm=1) as trainer:

        def show(report):
            if report.step % 10 == 1 or report.step == steps:
                print(f"step {report.step}: loss {report.loss:.4f}")

        trainer.fit(data, steps, batch=BATCH, microbatches=MICROBATCHES, on_step=show,
                    progress=sys.stderr.isatty())
        report = trainer.evaluate(data.batch(0, BATCH, MICROBATCHES, "validation"))
        print(f"validation loss {report.loss:.4f}")
        with trainer.generator(CONTEXT) as generator:
            generator.start(b"\n")
            text = bytes(generator.generate(200, temperature=0.8, seed=1))
        print(text.decode("ascii", "replace"))


if __name__ == "__main__":
    steps = sys.argv[2] if len(sys.argv) > 2 else "50"
    if not 2 <= len(sys.argv) <= 3 or not steps.isdecimal() or int(steps) < 1:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], int(steps))
    except rrfp.Error as error:
        sys.exit(f"train_gpt: {error.status_name}: {error}")
