# SPDX-License-Identifier: Apache-2.0
"""Trains a small vision-language model to name the bright quarter of random pictures, over a
pipeline of four stages on two ranks. Stages follow the branches of the model, so that the encoder
has nothing to do for a microbatch without pictures.

    main.py [STEPS]
"""

import sys

import numpy as np

import rrfp

SIDE, PATCH, ROWS = 8, 4, 4
MICROBATCHES, STAGES, RANKS = 4, 4, 2
# A sample is the rows of a picture, or some times a letter, and then the letter and the end.
SAMPLES, LENGTH = 4, ROWS + 2
LETTERS, PICTURE, END, VOCABULARY = 4, 4, 5, 6


def random_numbers():
    """The same numbers in every language."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        yield state >> 33


numbers = random_numbers()


def make_picture(letter):
    noise = [next(numbers) % 100 for _ in range(SIDE * SIDE * 3)]
    picture = np.array(noise).reshape(SIDE, SIDE, 3) - 100
    y, x = (PATCH * part for part in divmod(letter, 2))
    picture[y:y + PATCH, x:x + PATCH] += 100
    return picture.astype("f4") / np.float32(100)


def make_microbatch(pictures):
    rows, images = [], []
    for sample in range(SAMPLES):
        letter = next(numbers) % LETTERS
        if pictures:
            images.append(make_picture(letter))
        for p in range(LENGTH):
            row = pictures and p < ROWS
            token = PICTURE if row else letter if p < LENGTH - 1 else END
            target = (-100 if p == LENGTH - 1 or (row and p < ROWS - 1)
                      else END if p == LENGTH - 2 else letter)
            rows.append((token, target, sample, p, sample * ROWS + p if row else -1))
    lists = np.array(rows, dtype=np.int32).T.reshape(5, 1, -1)
    return (*lists, np.array(images, dtype="f4").reshape(-1, SIDE, SIDE, 3))


def name_pictures(trainer):
    """What the model says of new pictures."""
    *lists, images = make_microbatch(True)
    with trainer.generator(LENGTH) as generator:
        for k in range(SAMPLES):
            # All samples begin alike: the rows of picture 0.
            generator.start_inputs([array[:, :ROWS] for array in lists] + [images[k:k + 1]])
            letter, token = lists[0][0, k * LENGTH + ROWS], generator.next(temperature=0)
            print(f"picture of {chr(ord('a') + letter)}: {chr(ord('a') + token)}")


def main(steps):
    model = rrfp.Model.vision_language(
        language=dict(vocabulary=VOCABULARY, context=LENGTH, layers=2, dim=16, heads=2),
        vision=dict(image_size=SIDE, patch=PATCH, layers=1, dim=16, heads=2))
    first_blocks, stage_ranks = model.place(STAGES, RANKS)
    with rrfp.Trainer(model, stages=STAGES, ranks=RANKS, first_blocks=first_blocks,
                      stage_ranks=stage_ranks, lr=1e-2) as trainer:
        for step in range(1, steps + 1):
            # The last microbatch is text.
            report = trainer.step([make_microbatch(m < MICROBATCHES - 1)
                                   for m in range(MICROBATCHES)])
            if step % 20 == 1 or step == steps:
                print(f"step {step}: loss {report.loss:.4f}")
        for s, stage in enumerate(trainer.stage_reports()):
            print(f"stage {s} on rank {stage.rank}: blocks {stage.first_block} to "
                  f"{stage.last_block} of branch {stage.branch}, {stage.microbatches} microbatches")
        name_pictures(trainer)


if __name__ == "__main__":
    steps = sys.argv[1] if len(sys.argv) > 1 else "100"
    if len(sys.argv) > 2 or not steps.isdecimal() or int(steps) < 1:
        sys.exit(__doc__)
    try:
        main(int(steps))
    except rrfp.Error as error:
        sys.exit(f"vision_language: {error.status_name}: {error}")
