# SPDX-License-Identifier: Apache-2.0
"""Models, trainers, data, checkpoints and generators."""

import glob
import os
import tempfile
import threading
import unittest

import numpy as np

import rrfp

TEXT = os.path.join(os.path.dirname(__file__), "..", "scenarios", "text.txt")
GPT = dict(vocabulary=256, context=16, layers=2, dim=32, heads=4)


def affine():
    """y = x w^T + b, squared error, in one block."""
    model = rrfp.Model()
    x, y = model.input("x", (-1, 3)), model.input("y", (-1, 2))
    w = model.parameter("w", (2, 3), init="normal", scale=0.5)
    b = model.parameter("b", (2,), decay=False)
    model.begin_block("only")
    out = model.linear(x, w, b)
    model.set_output(out)
    model.set_loss(model.squared_error(out, y))
    return model


class Models(unittest.TestCase):
    def test_gradients_are_those_of_numpy(self):
        rng = np.random.default_rng(1)
        x = rng.normal(size=(6, 3)).astype("f4")
        y = rng.normal(size=(6, 2)).astype("f4")
        with rrfp.Trainer(affine(), optimizer="sgd", lr=0.1, weight_decay=0) as trainer:
            w, b = trainer.read("w"), trainer.read("b")
            batch = [(x[:4], y[:4]), (x[4:], y[4:])]
            report = trainer.step(batch, keep_gradients=True)
            error = x @ w.T + b - y
            self.assertAlmostEqual(report.loss, float((error ** 2).mean()), places=5)
            np.testing.assert_allclose(trainer.read("w", "gradient"), 2 * error.T @ x / 12,
                                       atol=1e-5)
            np.testing.assert_allclose(trainer.read("b", "gradient"), 2 * error.sum(0) / 12,
                                       atol=1e-5)
            np.testing.assert_array_equal(trainer.read("w"), w)
            trainer.step(batch)
            np.testing.assert_allclose(trainer.read("b"), b - 0.1 * 2 * error.sum(0) / 12,
                                       atol=1e-5)
            losses = [trainer.step(batch).loss for _ in range(50)]
            self.assertLess(losses[-1], losses[0])

    def test_every_operation(self):
        model = rrfp.Model()
        ids = model.input("ids", (-1, 4), "int32")
        target = model.input("target", (-1, 4), "int32")
        names = iter(range(100))

        def parameter(*shape, **options):
            return model.parameter(f"p{next(names)}", shape, init="uniform", scale=0.3, **options)

        gamma = model.parameter("gamma", (8,), value=1.0)
        model.begin_block("first", recompute=True)
        x = model.embedding(ids, parameter(10, 8))
        x = model.positions(x, parameter(4, 8))
        x = model.layer_norm(x, gamma, parameter(8))
        model.begin_block("second")
        q, k, v = (model.linear(x, parameter(8, 8)) for _ in range(3))
        q = model.rotary(q, heads=2, head_dim=4)
        x = model.add(x, model.attention(q, k, v, heads=2, causal=True))
        x = model.add(x, model.attention(model.linear(x, parameter(24, 8)), heads=2))
        model.begin_block("third")
        x = model.rms_norm(x, gamma)
        x = model.concat([model.gelu(x), model.silu(x)], axis=-1)
        x = model.swiglu(x, model.mul(x, x))
        x = model.dropout(model.reshape(x, (0, 0, 2, 8)), 0.1)
        self.assertEqual(model.value_shape(x), (-1, 4, 2, 8))
        x = model.mean(x, axis=2)
        model.begin_block("head")
        logits = model.linear(x, parameter(10, 8, frozen=True))
        model.set_output(logits)
        model.set_loss(model.cross_entropy(logits, target, ignore_index=9))
        info = model.info
        self.assertEqual((info.blocks, info.inputs), (4, 2))
        self.assertEqual(info.parameter_elements - info.trainable_elements, 80)
        self.assertEqual([b["name"] for b in model.describe()["blocks"]],
                         ["first", "second", "third", "head"])
        ids = np.arange(8, dtype=np.int32).reshape(2, 4)
        self.assertEqual(len(model.measure([ids, ids])), 4)
        self.assertEqual(model.partition(2, [1, 1, 1, 9]), [0, 3])
        hashes = set()
        for stages in (1, 2, 4):
            with rrfp.Trainer(model, stages=stages, lr=0.01, seed=3) as trainer:
                losses = [trainer.step([(ids, ids), (ids + 1, ids)]).loss for _ in range(5)]
                self.assertLess(losses[-1], losses[0])
                hashes.add(trainer.weights_sha256())
        self.assertEqual(len(hashes), 1)

    def test_mistakes(self):
        model = affine()
        for call, kind in ((lambda: model.parameter("w", (1,)), rrfp.Error),
                           (lambda: model.add(0, 99), rrfp.Error),
                           (lambda: model.input("z", (2,), "float64"), rrfp.Error),
                           (lambda: model.linear(1, 0), rrfp.Error),
                           (lambda: model.partition(3), rrfp.OutOfRange),
                           (lambda: model.partition(1, [1, 2]), ValueError),
                           (lambda: model.measure([]), ValueError),
                           (lambda: model.parameter("n", (1,), init="odd"), ValueError),
                           (lambda: rrfp.Model.gpt(**{**GPT, "heads": 5}), rrfp.Error)):
            with self.assertRaises(kind):
                call()


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = rrfp.Data(TEXT, context=16)
        cls.model = rrfp.Model.gpt(**GPT)

    def trainer(self, **options):
        trainer = rrfp.Trainer(self.model, **{"stages": 2, "lr": 3e-3, "seed": 7, **options})
        self.addCleanup(trainer.close)
        return trainer

    def test_data(self):
        info = self.data.info
        with open(TEXT, "rb") as file:
            content = file.read()
        self.assertEqual((info.vocabulary, info.tokens), (256, len(content)))
        tokens, targets = self.data.read(5, 3, "validation")
        self.assertEqual((tokens.shape, tokens.dtype), ((3, 16), np.int32))
        np.testing.assert_array_equal(tokens[:, 1:], targets[:, :-1])
        self.assertIn(tokens[0].astype(np.uint8).tobytes(), content)
        with self.assertRaises(rrfp.FileError):
            rrfp.Data("/nonexistent/file", context=8)
        with self.assertRaises(OSError):
            rrfp.Data([TEXT, "/nonexistent/file"], context=8)
        with self.assertRaises(ValueError):
            self.data.batch(0, 8, 3)
        with self.assertRaises(rrfp.Error):
            self.data.read(0, -1)
        with self.assertRaises(AttributeError):
            self.data.context = 1
        with self.assertRaises(TypeError):
            self.model.partition(2, [0.25] * self.model.info.blocks)

    def test_the_pipeline_does_not_matter(self):
        hashes = set()
        for options in (dict(stages=1), dict(stages=2), dict(stages=4, hint="1f1b"),
                        dict(stages=4, placement="v", hint="zb-v"), dict(stages=2, hint="auto"),
                        dict(stages=2, order="strict"), dict(recompute=True),
                        dict(first_blocks=[0, 1])):
            with self.subTest(options=options):
                trainer = self.trainer(**options)
                for step in range(3):
                    trainer.step(self.data.batch(step * 8, 8, 4))
                hashes.add(trainer.weights_sha256())
        self.assertEqual(len(hashes), 1)

    def test_fit_reports_and_pictures(self):
        trainer = self.trainer(trace_steps=2, clip_norm=1, decay="cosine", decay_steps=20,
                               warmup_steps=2)
        seen = []
        reports = trainer.fit(self.data, 12, batch=8, microbatches=4, progress=False,
                              on_step=seen.append)
        self.assertEqual(seen, reports)
        self.assertEqual([report.step for report in reports], list(range(1, 13)))
        self.assertLess(reports[-1].loss, reports[0].loss)
        self.assertAlmostEqual(reports[0].lr, 1.5e-3)
        self.assertEqual(reports[0].loss_weight, 8 * 16)
        self.assertFalse(reports[0].skipped)
        self.assertTrue(0 <= reports[0].idle_share <= 1)
        self.assertIn("<svg", reports[0]._repr_svg_())
        self.assertIn("<svg", trainer.trace()._repr_svg_())
        self.assertEqual(trainer.rank_report(1).rank, 1)
        self.assertEqual(trainer.first_blocks()[0], 0)
        self.assertIn("zb-h1", trainer.describe_hint())
        info = trainer.info
        self.assertEqual((info.stages, info.ranks, info.steps, info.updates, info.seed),
                         (2, 2, 12, 12, 7))

    def test_a_run_goes_on_from_a_checkpoint(self):
        whole = self.trainer()
        whole.fit(self.data, 6, batch=8, microbatches=4, progress=False)
        with tempfile.TemporaryDirectory() as folder:
            first = self.trainer()
            first.fit(self.data, 3, batch=8, microbatches=4, progress=False)
            first.save(folder, position=24, user={"name": "é"})
            described = rrfp.describe_checkpoint(folder)
            self.assertEqual((described["step"], described["position"], described["user"]),
                             (3, 24, {"name": "é"}))
            self.assertEqual(rrfp.Model.from_checkpoint(folder).info, self.model.info)
            second = self.trainer(stages=1)
            self.assertEqual(second.load(folder), 24)
            second.fit(self.data, 3, batch=8, microbatches=4, progress=False)
            third = self.trainer()
            third.load(folder, weights_only=True)
            self.assertEqual(third.info.steps, 0)
            self.assertEqual(third.weights_sha256(), first.weights_sha256())
            for path in glob.glob(os.path.join(folder, "step-*", "model.safetensors")):
                os.truncate(path, 100)
            with self.assertRaises(rrfp.DataError):
                third.load(folder)
        with self.assertRaises(rrfp.FileError):
            third.load("/nonexistent")
        self.assertEqual(second.weights_sha256(), whole.weights_sha256())

    def test_slots(self):
        trainer = self.trainer()
        name = trainer.parameter_names()[0]
        self.assertEqual(name, self.model.parameter_names()[0])
        weight = trainer.read(name)
        self.assertEqual(weight.shape, self.model.parameter_shape(0))
        trainer.write(name, weight * 2)
        np.testing.assert_array_equal(trainer.read(0), weight * 2)
        trainer.write(0, weight, "moment1")
        np.testing.assert_array_equal(trainer.read(0, rrfp.Slot.MOMENT1), weight)
        for call, kind in ((lambda: trainer.read("nobody"), KeyError),
                           (lambda: trainer.read(1000), rrfp.OutOfRange),
                           (lambda: trainer.read(-1), rrfp.OutOfRange),
                           (lambda: trainer.write(0, weight[:1]), ValueError),
                           (lambda: trainer.read(0, "color"), ValueError)):
            with self.assertRaises(kind):
                call()

    def test_bad_batches_change_nothing(self):
        trainer = self.trainer()
        before = trainer.weights_sha256()
        tokens, targets = self.data.read(0, 2)
        bad = tokens.copy()
        bad[1, 3] = 256
        for batch, kind in (([(tokens.astype("i8"), targets)], rrfp.TensorMismatch),
                            ([(tokens, targets[:, :3])], rrfp.TensorMismatch),
                            ([(tokens[0], targets[0])], rrfp.TensorMismatch),
                            ([(bad, targets)], rrfp.OutOfRange),
                            ([(tokens,)], ValueError), ([tokens], ValueError),
                            ([], rrfp.Error), ([("a", "b")], Exception)):
            with self.assertRaises(kind):
                trainer.step(batch)
        with self.assertRaises(ValueError):
            trainer.step([(tokens, targets)], loss_factors=[1, 2])
        with self.assertRaises(rrfp.ArgumentError):
            trainer.step([(tokens, targets)], loss_factors=[float("inf")])
        self.assertEqual(trainer.weights_sha256(), before)
        self.assertEqual(trainer.step([(tokens, targets)]).step, 1)

    def test_kinds_of_arrays(self):
        tokens, targets = self.data.read(0, 4)
        wide = np.zeros((4, 32), np.int32)
        wide[:, ::2] = tokens
        sums = set()
        for batch in ([(tokens, targets)], [(tokens.tolist(), targets.tolist())],
                      [(np.asfortranarray(tokens), targets)], [(wide[:, ::2], targets)],
                      [(memoryview(tokens), targets)]):
            sums.add(self.trainer().step(batch).loss)
        try:
            import torch
            sums.add(self.trainer().step([(torch.from_numpy(tokens),
                                           torch.from_numpy(targets))]).loss)
        except ImportError:
            pass
        self.assertEqual(len(sums), 1)

    def test_cancel_from_another_thread(self):
        trainer = self.trainer(delay_us_max=100000)
        batch = self.data.batch(0, 32, 32)
        raised = []

        def step():
            try:
                trainer.step(batch)
            except rrfp.Error as error:
                raised.append(error)

        thread = threading.Thread(target=step)
        thread.start()
        while thread.is_alive() and not raised:
            trainer.cancel()
            thread.join(0.01)
        self.assertIsInstance(raised[0], rrfp.Cancelled)

    def test_two_threads_on_one_trainer(self):
        trainer = self.trainer(delay_us_max=20000)
        batch = self.data.batch(0, 16, 16)
        busy = []
        thread = threading.Thread(target=lambda: trainer.step(batch))
        thread.start()
        while thread.is_alive():
            try:
                trainer.read(0)
            except rrfp.Busy as error:
                busy.append(error)
        thread.join()
        self.assertTrue(busy)

    def test_generator(self):
        trainer = self.trainer()
        trainer.fit(self.data, 5, batch=8, microbatches=4, progress=False)
        generator = trainer.generator(16)
        generator.start(b"the ")
        first = bytes(generator.generate(20, temperature=0.8, top_k=20, top_p=0.9, seed=3))
        generator.start([116, 104, 101, 32])
        self.assertEqual(first, bytes(generator.next(temperature=0.8, top_k=20, top_p=0.9, seed=3)
                                      for _ in range(20)))
        logits = generator.logits(256)
        self.assertEqual(generator.next(temperature=0), int(logits.argmax()))
        with self.assertRaises(rrfp.Error):
            generator.logits(255)
        with self.assertRaises(rrfp.Error):
            generator.start([])
        trainer.close()  # it lives until its generator is closed
        generator.next()
        generator.close()
        for call in (generator.next, lambda: trainer.info, lambda: trainer.generator(4),
                     lambda: trainer.step([])):
            with self.assertRaises(rrfp.Closed):
                call()

    def test_numbers_that_are_not_finite(self):
        batch = self.data.batch(0, 2, 1)
        for policy in ("stop", "skip"):
            logged = []
            trainer = self.trainer(non_finite=policy,
                                   log=lambda level, text: logged.append((level, text)))
            trainer.write("head.weight", np.full((256, 32), np.inf))
            before = trainer.weights_sha256()
            if policy == "stop":
                with self.assertRaises(rrfp.NonFinite):
                    trainer.step(batch)
            else:
                report = trainer.step(batch)
                self.assertTrue(report.skipped)
            self.assertEqual(trainer.weights_sha256(), before)
            self.assertTrue(all(isinstance(text, str) for _, text in logged))


if __name__ == "__main__":
    unittest.main()
