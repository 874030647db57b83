# SPDX-License-Identifier: Apache-2.0
"""Models with branches and several losses, and the vision-language model with its samples."""

import json
import os
import struct
import tempfile
import unittest
import zlib

import numpy as np

import rrfp

COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "grey": (128, 128, 128)}
SAMPLES = [("<image> red", ["red"]), ("no picture", []), ("green <image>", ["green"]),
           ("<image><image> blue, grey", ["blue", "grey"]), ("text", []),
           ("<image> grey", ["grey"]),
           ("a <image> in between", ["red"]), ("only words, some more of them", []),
           ("<image> blue", ["blue"]), ("<image> green", ["green"])]
LANGUAGE = dict(vocabulary=rrfp.SAMPLES_VOCABULARY, context=40, layers=2, dim=16, heads=2)
VISION = dict(image_size=8, patch=4, layers=2, dim=8, heads=2)
SGD = dict(optimizer="sgd", lr=0.1, weight_decay=0, reduction="sum")


def png(color, width=5, height=4):
    """The bytes of a picture of one color."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I",
                                                                        zlib.crc32(name + data))
    rows = (b"\0" + bytes(color) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


class Files:
    """A folder with a manifest and its pictures."""

    def __init__(self, test, samples=SAMPLES):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, color in COLORS.items():
            with open(self.path(name + ".png"), "wb") as file:
                file.write(png(color))
        self.write(json.dumps({"text": text, "images": [name + ".png" for name in names]})
                   for text, names in samples)

    def path(self, name="samples.jsonl"):
        return os.path.join(self.folder, name)

    def write(self, lines):
        with open(self.path(), "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def open(self, **options):
        return rrfp.Samples(self.path(), image_size=8, image_tokens=4, context=40, **options)


def branches(frozen=False):
    """w_l (w_e images + text), the losses: an encoder, a text branch and what reads both."""
    model = rrfp.Model()
    images, text = model.input("images", (-1, 1)), model.input("text", (-1, 1))
    model.begin_block("encoder")
    encoded = model.linear(images, model.parameter("w_e", (1, 1), value=2, frozen=frozen))
    model.begin_block("text")
    passed = model.reshape(text, (-1, 1))
    model.begin_block("language")
    both = model.concat((encoded, passed), axis=0)
    model.set_loss(model.linear(both, model.parameter("w_l", (1, 1), value=3)))
    return model


def column(*numbers):
    return np.array(numbers, dtype="f4").reshape(-1, 1)


BRANCHED = [(column(1), column(1)), (column(), column(2)), (column(2), column(3)),
            (column(), column(4))]


class Branches(unittest.TestCase):
    def test_text_passes_the_encoder_by(self):
        for stages in 1, 2, 3:
            for hint in "1f1b", "zb-h1":
                with rrfp.Trainer(branches(), stages=stages, hint=hint, **SGD) as trainer:
                    report = trainer.step(BRANCHED, keep_gradients=True)
                    self.assertEqual(report.loss, 48)
                    self.assertEqual(trainer.read("w_l", "gradient"), 16)
                    self.assertEqual(trainer.read("w_e", "gradient"), 9)
                    self.assertEqual(trainer.losses(), [48])

    def test_stages_tell_what_they_did(self):
        with rrfp.Trainer(branches(), stages=3, **SGD) as trainer:
            trainer.step(BRANCHED)
            reports = trainer.stage_reports()
            self.assertEqual([r.microbatches for r in reports], [2, 4, 4])
            self.assertEqual([r.branch for r in reports], [0, 1, 2])
            self.assertEqual([(r.rank, r.first_block, r.last_block) for r in reports],
                             [(s, s, s) for s in range(3)])
            self.assertGreater(reports[2].busy_ns, 0)
            with self.assertRaises(rrfp.OutOfRange):
                trainer.stage_report(3)

    def test_nothing_at_all_for_a_branch(self):
        with rrfp.Trainer(branches(), stages=3, **SGD) as trainer:
            report = trainer.step([(column(), column(1)), (column(), column(2, 3))],
                                  keep_gradients=True)
            self.assertEqual(report.loss, 18)
            self.assertEqual(trainer.read("w_e", "gradient"), 0)
            self.assertEqual(trainer.evaluate([(column(1, 2), column()),
                                               ([[3]], np.zeros((0, 1), "f4"))]).loss, 36)
            self.assertEqual(trainer.stage_report(1).microbatches, 0)

    def test_a_frozen_encoder(self):
        with rrfp.Trainer(branches(frozen=True), stages=3, **SGD) as trainer:
            self.assertEqual(trainer.step(BRANCHED).loss, 48)
            self.assertEqual(trainer.rank_report(0).tasks, 2)

    def test_placing(self):
        model = branches()
        first_blocks, stage_ranks = model.place(3, 2, [5, 1, 4])
        self.assertEqual(first_blocks, [0, 1, 2])
        self.assertEqual(set(stage_ranks), {0, 1})
        self.assertNotEqual(stage_ranks[0], stage_ranks[2])
        self.assertEqual(model.place(3, 1), ([0, 1, 2], [0, 0, 0]))
        with rrfp.Trainer(model, stages=3, ranks=2, first_blocks=first_blocks,
                          stage_ranks=stage_ranks, **SGD) as trainer:
            self.assertEqual(trainer.step(BRANCHED).loss, 48)
            self.assertEqual([r.rank for r in trainer.stage_reports()], stage_ranks)
        for stages, ranks in (2, 1), (4, 1), (3, 4), (3, 0), (0, 1):
            with self.assertRaises(rrfp.OutOfRange):
                model.place(stages, ranks)
        with self.assertRaisesRegex(ValueError, "3 blocks"):
            model.place(3, 2, [1, 1])
        with self.assertRaisesRegex(ValueError, "stage_ranks has 2 entries; 3 are expected"):
            rrfp.Trainer(model, stages=3, stage_ranks=[0, 1])
        with self.assertRaises(rrfp.ArgumentError):
            rrfp.Trainer(model, stages=3, ranks=2, stage_ranks=[0, 1, 0], placement="loop")
        with self.assertRaises(rrfp.Error):
            rrfp.Trainer(model, stages=3, ranks=2, stage_ranks=[0, 1, 7])

    def test_several_losses(self):
        model = rrfp.Model()
        x, y = model.input("x", (-1, 1)), model.input("y", (-1, 1))
        model.begin_block("first")
        w = model.parameter("w", (1, 1), value=2)
        model.set_loss(model.linear(x, w))
        second = model.linear(y, w)
        with self.assertRaisesRegex(rrfp.ArgumentError, "nan"):
            model.add_loss(second, float("nan"))
        model.add_loss(second, 0.5)
        self.assertEqual(model.info.losses, 2)
        with rrfp.Trainer(model, **dict(SGD, reduction="mean")) as trainer:
            with self.assertRaises(rrfp.StateError):
                trainer.losses()
            report = trainer.step([(column(1, 3), column(5))], keep_gradients=True)
            self.assertEqual(trainer.losses(), [4, 10])
            self.assertEqual(report.loss, 9)
            self.assertEqual((report.loss_sum, report.loss_weight), (8, 2))
            self.assertEqual(trainer.read("w", "gradient"), 2 + 0.5 * 5)
            trainer.evaluate([(column(1), column())])
            self.assertEqual(trainer.losses()[0], 2)
            self.assertTrue(np.isnan(trainer.losses()[1]))


class Operations(unittest.TestCase):
    def test_patches(self):
        pictures = np.random.default_rng(2).normal(size=(2, 5, 5, 3)).astype("f4")
        weights = np.random.default_rng(3).normal(size=(2, 3, 3, 27)).astype("f4")
        padded = np.pad(pictures, ((0, 0), (1, 1), (1, 1), (0, 0)))
        expected = sum((padded[:, 2 * i:2 * i + 3, 2 * j:2 * j + 3].reshape(2, 27)
                        * weights[:, i, j]).sum() for i in range(3) for j in range(3))
        model = rrfp.Model()
        x, w = model.input("x", (-1, 5, 5, 3)), model.input("w", (-1, 3, 3, 27))
        model.begin_block()
        cut = model.patches(x, kernel=3, stride=2, padding=1)
        self.assertEqual(model.value_shape(cut), (-1, 3, 3, 27))
        model.set_loss(model.mul(cut, w))
        with rrfp.Trainer(model, **SGD) as trainer:
            self.assertAlmostEqual(trainer.evaluate([(pictures, weights)]).loss, float(expected),
                                   places=3)

    def test_merge_rows(self):
        model = rrfp.Model()
        x, rows = model.input("x", (-1, 2)), model.input("rows", (-1, 2))
        sources, factors = model.input("sources", (-1,), "int32"), model.input("f", (-1, 2))
        model.begin_block()
        model.set_loss(model.mul(model.merge_rows(x, rows, sources), factors))
        with rrfp.Trainer(model, **SGD) as trainer:
            x, rows = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([[10, 20], [30, 40]])
            batch = [(x, rows, [-1, 1, 0], np.float32([[1, 0], [0, 1], [1, 0]]))]
            self.assertEqual(trainer.evaluate(batch).loss, 1 + 40 + 10)
            with self.assertRaises(rrfp.OutOfRange):
                trainer.evaluate([(x, rows, [-1, 2, 0], x)])
            empty = np.zeros((0, 2), "f4")
            self.assertEqual(trainer.evaluate([(x, empty, [-1, -1, -1], x)]).loss,
                             (x * x).sum())

    def test_segments_and_positions_keep_samples_apart(self):
        rng = np.random.default_rng(4)
        qkv, factors = (rng.normal(size=(1, 5, n)).astype("f4") for n in (12, 4))
        segments, positions = np.int32([[3, 3, 3, 7, 7]]), np.int32([[0, 1, 2, 0, 1]])

        def loss(which):
            model = rrfp.Model()
            x, s = model.input("qkv", (1, -1, 12)), model.input("s", (1, -1), "int32")
            p, f = model.input("p", (1, -1), "int32"), model.input("f", (1, -1, 4))
            model.begin_block()
            turned = model.rotary(x, p, heads=2, head_dim=4)
            attended = model.attention(turned, heads=1, causal=True, segments=s)
            model.set_loss(model.mul(attended, f))
            with rrfp.Trainer(model, **SGD) as trainer:
                return trainer.evaluate([(qkv[:, which], segments[:, which], positions[:, which],
                                          factors[:, which])]).loss

        self.assertAlmostEqual(loss(slice(0, 5)), loss(slice(0, 3)) + loss(slice(3, 5)), places=5)


class Reading(unittest.TestCase):
    def test_a_batch(self):
        files = Files(self)
        with files.open() as samples:
            self.assertEqual(samples.info.train_samples, 9)
            self.assertEqual(samples.info.validation_samples, 1)
            self.assertEqual((samples.info.images, samples.info.images_max), (8, 2))
            batch = samples.read(0, 9, 3)
            self.assertEqual(len(batch), 3)
            for part in batch:
                length = part.tokens.shape[1]
                for array in part[:5]:
                    self.assertEqual((array.shape, array.dtype), ((1, length), np.int32))
                self.assertEqual((part.images.shape[1:], part.images.dtype),
                                 ((8, 8, 3), np.float32))
                here = part.tokens == rrfp.TOKEN_IMAGE
                self.assertEqual(here.sum(), 4 * len(part.images))
                np.testing.assert_array_equal(part.sources[here], np.arange(here.sum()))
                self.assertTrue((part.sources[~here] == -1).all())
                self.assertEqual((part.tokens == rrfp.TOKEN_END).sum(),
                                 len(np.unique(part.segments)))
            self.assertEqual(sum(len(part.images) for part in batch), 8 - self.held_out(samples))

    def held_out(self, samples):
        return len(samples.read(0, 1, 1, "validation")[0].images)

    def test_positions_name_samples(self):
        files = Files(self)
        with files.open(seed=5) as samples, files.open(seed=5) as others:
            first = samples.read(3, 4, 2)
            again = others.read_at([3, 4, 5, 6], 2)
            kept = [array.copy() for part in first for array in part]
            samples.read(0, 9, 1)  # what was read before stays
            for part, other in zip(first, again):
                for a, b in zip(part, other):
                    np.testing.assert_array_equal(a, b)
            for a, b in zip(kept, (array for part in first for array in part)):
                np.testing.assert_array_equal(a, b)
            other_seed = files.open(seed=6).read(0, 9, 1)
            self.assertFalse(np.array_equal(other_seed[0].tokens, samples.read(0, 9, 1)[0].tokens))

    def test_without_pictures(self):
        files = Files(self, [("some words", []), ("others", []), ("more", [])])
        with files.open(validation_share=0) as samples:
            batch = samples.read(0, 3, 2)
            self.assertEqual([part.images.shape for part in batch], [(0, 8, 8, 3)] * 2)
            with rrfp.Trainer(rrfp.Model.vision_language(language=LANGUAGE, vision=VISION),
                              stages=3) as trainer:
                self.assertGreater(trainer.step(batch).loss, 0)

    def test_pictures(self):
        files = Files(self)
        pixels = rrfp.read_picture(files.path("red.png"), 8)
        self.assertEqual((pixels.shape, pixels.dtype), ((8, 8, 3), np.float32))
        np.testing.assert_array_equal(pixels, np.broadcast_to(np.float32([1, -1, -1]), (8, 8, 3)))
        with self.assertRaises(rrfp.DataError):
            rrfp.read_picture(files.path("red.png"), 8, pixels_max=19)
        with self.assertRaises(rrfp.DataError):
            rrfp.read_picture(files.path(), 8)
        with self.assertRaisesRegex(rrfp.FileError, "no-such"):
            rrfp.read_picture(files.path("no-such.png"), 8)
        for size in 0, -3:
            with self.assertRaises(rrfp.ArgumentError):
                rrfp.read_picture(files.path("red.png"), size)

    def test_misuse(self):
        files = Files(self)
        for options in dict(grouping="no such"), dict(no_such=1):
            with self.assertRaises((ValueError, TypeError)):
                files.open(**options)
        samples = files.open()
        for call in (lambda: samples.read(0, 0, 1), lambda: samples.read(0, 2, 3),
                     lambda: samples.read(0, 2, 0), lambda: samples.read_at([], 1)):
            self.assertRaises(rrfp.ArgumentError, call)
        self.assertRaises(OverflowError, samples.read, -1, 1, 1)
        self.assertRaises(OverflowError, samples.read_at, [-1], 1)
        self.assertRaises(TypeError, samples.read_at, [0.5], 1)
        self.assertRaises(ValueError, samples.read_at, [[1]], 1)
        self.assertRaises(ValueError, samples.read, 0, 1, 1, "no such")
        samples.close()
        self.assertTrue(samples.closed)
        with self.assertRaisesRegex(rrfp.Closed, "samples"):
            samples.read(0, 1, 1)
        for line, text in (("{", "line 2"), ('{"text": ""}', "line 2"),
                           ('{"text": "a <image>"}', "line 2"),
                           ('{"text": "a <image>", "images": ["none.png"]}', "none.png")):
            files.write(['{"text": "fine"}', line])
            with self.assertRaisesRegex((rrfp.DataError, rrfp.FileError), text):
                files.open()
        with self.assertRaisesRegex(rrfp.FileError, "no-such"):
            rrfp.Samples("no-such.jsonl", image_size=8, image_tokens=4, context=40)


class VisionLanguage(unittest.TestCase):
    def setUp(self):
        self.files = Files(self)
        self.model = rrfp.Model.vision_language(language=dict(LANGUAGE, dropout=0.1),
                                                vision=VISION)

    def train(self, **options):
        with self.files.open(grouping="cost") as samples, \
                rrfp.Trainer(self.model, seed=3, lr=3e-3, **options) as trainer:
            losses = [trainer.step(samples.read(4 * step, 4, 3)).loss for step in range(4)]
            validation = trainer.evaluate(samples.read(0, 1, 1, "validation")).loss
            return losses, validation, trainer.weights_sha256()

    def test_the_stages_do_not_matter(self):
        result = self.train()
        self.assertLess(result[0][-1], result[0][0])
        for stages, ranks in (3, 2), (4, 3), (6, 2):
            first_blocks, stage_ranks = self.model.place(stages, ranks)
            self.assertEqual(result, self.train(stages=stages, ranks=ranks, hint="1f1b",
                                                first_blocks=first_blocks,
                                                stage_ranks=stage_ranks, delay_us_max=200))

    def test_frozen_encoders_and_convolutions(self):
        model = rrfp.Model.vision_language(language=LANGUAGE,
                                           vision=dict(VISION, frozen=True, conv_stem=True))
        self.assertLess(model.info.trainable_elements, model.info.parameter_elements)
        with self.files.open() as samples, rrfp.Trainer(model) as trainer:
            names = [n for n in trainer.parameter_names() if n.startswith("vision.")]
            before = [trainer.read(name) for name in names]
            trainer.step(samples.read(0, 4, 2))
            for name, array in zip(names, before):
                np.testing.assert_array_equal(trainer.read(name), array)
        with self.assertRaises(TypeError):
            rrfp.Model.vision_language(language=LANGUAGE, vision=dict(VISION, no_such=1))
        with self.assertRaises(rrfp.ArgumentError):
            rrfp.Model.vision_language(language=LANGUAGE, vision=dict(VISION, patch=3))

    def test_fit_and_checkpoints(self):
        folder = os.path.join(self.files.folder, "checkpoints")
        with self.files.open() as samples, rrfp.Trainer(self.model, stages=3) as trainer:
            reports = trainer.fit(samples, 3, batch=4, microbatches=2, progress=False)
            self.assertEqual([r.step for r in reports], [1, 2, 3])
            trainer.save(folder, position=12)
            model = rrfp.Model.from_checkpoint(folder)
            self.assertEqual(rrfp.describe_checkpoint(folder)["model"]["vision"]["patch"], 4)
            with rrfp.Trainer(model) as other:
                self.assertEqual(other.load(folder), 12)
                batch = samples.read(12, 4, 2)
                lists = [[array.tolist() for array in part] for part in batch if len(part.images)]
                kept = [part for part in batch if len(part.images)]
                self.assertEqual(other.evaluate(lists).loss, trainer.evaluate(kept).loss)

    def test_captions(self):
        with self.files.open() as samples, rrfp.Trainer(self.model) as trainer:
            trainer.fit(samples, 5, batch=8, microbatches=4, progress=False)
            prompt = samples.read_at([0], 1, "validation")[0]
            length = prompt.tokens.shape[1]
            with trainer.generator(40) as generator:
                generator.start_inputs(prompt)
                logits = generator.logits(rrfp.SAMPLES_VOCABULARY)
                tokens = list(generator.generate(40 - length, temperature=0))
                self.assertEqual(tokens[0], logits.argmax())
                with self.assertRaises(rrfp.StateError):
                    for _ in range(2):
                        generator.next()
                no_targets = prompt._replace(targets=np.zeros((1, 0), np.int32))
                generator.start_inputs(no_targets)
                self.assertEqual(list(generator.generate(3, temperature=0)), tokens[:3])
                with self.assertRaisesRegex(ValueError, "5 inputs"):
                    generator.start_inputs(prompt[:5])
                with self.assertRaises(rrfp.Error):
                    generator.start_inputs(prompt._replace(sources=prompt.sources + 1000))
                generator.start(b"text alone")
                self.assertEqual(len(list(generator.generate(2))), 2)


if __name__ == "__main__":
    unittest.main()
