#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training on pictures and text: the same to the bit for every pipeline and after resuming,
captions, and what is refused."""
import collections
import json

import pictures
import support

# Four blocks in the encoder's branch and three in the language model's, beside the embedding.
MODEL = ["--vision", "--image-size", "8", "--patch", "4", "--vision-layers", "2", "--vision-dim",
         "8", "--vision-heads", "2", "--layers", "2", "--dim", "16", "--heads", "2", "--context",
         "128"]
TRAINING = ["--batch", "8", "--microbatches", "4", "--eval-samples", "4"]
STEPS = ["--steps", "3"]
# The losses of 5 steps and of the validation after them, for this seed. Their last digits depend on
# the processor.
CURVE = [5.54284, 5.43305, 5.17116, 5.01544, 4.79385]
VALIDATION_LOSS = 4.56948
TOLERANCE = 2e-3


def most_frequent(texts):
    """Of equally frequent ones the first by the alphabet."""
    counts = collections.Counter(texts)
    return min(counts, key=lambda text: (-counts[text], text))


class VisionTest(support.CliTest):
    def setUp(self):
        super().setUp()
        self.manifest = pictures.write_manifest(self.dir)

    def train(self, *arguments, data=None, **options):
        result = self.ok("train", "--json", "--data", data or self.manifest, *MODEL, *TRAINING,
                         *arguments, **options)
        return self.lines(result.stdout)


class ResultTest(VisionTest):
    def test_curve(self):
        lines, summary = self.train("--steps", 5, "--lr", "1e-2", *support.STEADY)
        for found, expected in zip(support.losses(lines) + [summary["val_loss"]],
                                   CURVE + [VALIDATION_LOSS], strict=True):
            self.assertAlmostEqual(found, expected, delta=TOLERANCE)

    def test_same_on_every_pipeline(self):
        expected = None
        for arguments in ([], ["--stages", 2], ["--stages", 4],
                          ["--stages", 4, "--placement", "balanced", "--delay-us", 300],
                          ["--stages", 6, "--ranks", 4, "--partition", "measured"],
                          ["--stages", 5, "--ranks", 2, "--placement", "balanced", "--hint", "bfw"],
                          ["--stages", 4, "--placement", "linear", "--recompute"],
                          ["--stages", 4, "--placement", "v"]):
            with self.subTest(arguments):
                lines, summary = self.train(*STEPS, *arguments)
                found = (support.losses(lines), summary["val_loss"], summary["weights_sha256"])
                expected = expected or found
                self.assertEqual(found, expected)

    def test_costs_are_measured_where_there_are_pictures(self):
        manifest = self.dir / "rare.jsonl"
        (self.dir / "one.png").write_bytes(pictures.drawing("red", "square", 1))
        rare = [{"text": "<image> a", "images": ["one.png"]}]
        pictures.write_lines(manifest, 39 * [{"text": "no picture"}] + 4 * rare)
        trace = self.dir / "trace.json"
        # Nearly all of the work is that of the encoder, if there is a picture.
        self.ok("train", "--vision", "--image-size", 32, "--patch", 2, "--vision-layers", 6,
                "--vision-dim", 32, "--vision-heads", 2, "--layers", 2, "--dim", 16, "--heads", 2,
                "--context", 512, "--stages", 6, "--ranks", 2, "--batch", 1, "--microbatches", 1,
                "--steps", 1, "--data", manifest, "--trace", trace)
        stages = json.loads(trace.read_text())["otherData"]["stages"]
        self.assertEqual([branch for _, branch in stages],
                         4 * ["vision.embedding"] + ["embedding", "layers.0"])

    def test_options_that_change_the_result_do(self):
        _, summary = self.train(*STEPS)
        for arguments in (["--conv-stem"], ["--freeze-vision"], ["--grouping", "cost"],
                          ["--vision-hidden", 24], ["--seed", 2]):
            with self.subTest(arguments):
                _, other = self.train(*STEPS, *arguments)
                self.assertNotEqual(other["weights_sha256"], summary["weights_sha256"])

    def test_grouping_on_every_pipeline(self):
        _, one = self.train(*STEPS, "--grouping", "cost")
        _, four = self.train(*STEPS, "--grouping", "cost", "--stages", 4)
        self.assertEqual(one["weights_sha256"], four["weights_sha256"])

    def test_resume(self):
        save = self.dir / "save"
        options = ["--grouping", "cost", "--conv-stem", "--dropout", "0.1", *support.STEADY]
        lines, whole = self.train("--steps", 6, "--save", save, "--save-every", 3, "--keep", 0,
                                  *options)
        third = next(save.glob("step-*3"))
        again, summary = self.resume(third, "--save", self.dir / "again", "--stages", 5,
                                     "--ranks", 3)
        self.assertEqual(support.losses(again), support.losses(lines)[3:])
        self.assertEqual(summary["weights_sha256"], whole["weights_sha256"])
        self.assertEqual(summary["val_loss"], whole["val_loss"])
        for arguments, names in ((["--patch", 8], ["--patch", "8", "4"]),
                                 (["--vision-hidden", 8], ["--vision-hidden", "8", "32"]),
                                 (["--freeze-vision"], ["--freeze-vision"])):
            self.refused("train", "--resume", save, "--steps", 8, *arguments, names=names)
        self.ok("train", "--resume", save, "--steps", 7, "--vision", "--vision-hidden", 32)

    def test_reports(self):
        trace = self.dir / "trace.json"
        lines, summary = self.train(*STEPS, "--stages", 4, "--eval-every", 1, "--trace", trace)
        self.assertIn("val_loss", lines[0])
        self.assertTrue(all(line["images_per_s"] > 0 for line in lines))
        self.assertGreater(summary["images_per_s"], 0)
        self.assertEqual(set(summary["branch_shares"]), {"vision", "text", "language"})
        self.assertAlmostEqual(sum(summary["branch_shares"].values()), 1, places=6)
        self.assertTrue(trace.exists())
        text = self.ok("train", "--data", self.manifest, *MODEL, *TRAINING, *STEPS, "--stages",
                       2).stdout.decode()
        for pattern in (r"data: 36 samples for training, 4 for validation; \d+ pictures, at most 5",
                        r"^step 3/3 .* images/s", r"^images per second +\d",
                        r"^computing for +vision"):
            self.assertRegex(text, f"(?m){pattern}")
        self.assertNotIn("unigram", text)


class UseTest(VisionTest):
    def setUp(self):
        super().setUp()
        self.save = self.dir / "save"
        _, self.summary = self.train("--steps", 60, "--lr", "1e-2", "--save", self.save)
        self.picture = self.dir / "picture.png"
        self.picture.write_bytes(pictures.drawing("red", "square", 1))

    def test_eval(self):
        for options in ([], ["--stages", 4], ["--data", self.manifest]):
            result = json.loads(self.ok("eval", "--json", "--checkpoint", self.save, "--samples", 4,
                                        *options).stdout)
            self.assertEqual(result["loss"], self.summary["val_loss"])
            self.assertIsNone(result["unigram_entropy"])
        self.assertIn(b"images/s", self.ok("eval", "--checkpoint", self.save).stdout)

    def test_captions(self):
        arguments = ["eval", "--checkpoint", self.save, "--captions", 4]
        found = json.loads(self.ok(*arguments, "--json").stdout)["captions"]
        self.assertTrue(1 <= found["count"] <= 4)
        self.assertEqual(len(found["list"]), found["count"])
        for each in found["list"]:
            self.assertIn(each["true"].split()[0], pictures.COLOURS)

        def shares(written):
            """Of whole captions and of words, each at its place."""
            pairs = [(each["true"].split(), written(each).split()) for each in found["list"]]
            words = sum(len(true) for true, _ in pairs)
            right = sum(a == b for true, other in pairs for a, b in zip(true, other))
            return sum(true == other for true, other in pairs) / len(pairs), right / words
        self.assertEqual((found["exact"], found["words"]), shares(lambda each: each["written"]))
        guess = found["guess"]
        self.assertEqual(guess["exact"], shares(lambda _: guess["caption"])[0])
        self.assertEqual(guess["words"], shares(lambda _: guess["word_caption"])[1])
        # The most frequent one, and at each place the most frequent word, of what was trained on.
        texts = self.training_captions()
        self.assertEqual(guess["caption"], most_frequent(texts))
        words = [text.split() for text in texts]
        self.assertEqual(guess["word_caption"].split(),
                         [most_frequent(text[k] for text in words if len(text) > k)
                          for k in range(max(map(len, words)))])
        unseen = [each for each in found["list"] if each["true"] not in texts]
        self.assertEqual(found["unseen"]["count"], len(unseen))
        text = self.ok(*arguments).stdout.decode()
        self.assertRegex(text, r"(?m)^right words +[\d.]+ %, a guess without the picture [\d.]+ %$")

    def training_captions(self):
        """The text behind each picture, of the samples but every tenth one."""
        samples = [json.loads(line) for line in self.manifest.read_text().splitlines()]
        return [part.strip() for number, sample in enumerate(samples, 1) if number % 10 != 0
                for part in sample["text"].split("<image>")[1:]]

    def test_no_captions(self):
        result = self.ok("eval", "--checkpoint", self.save, "--captions", 4, "--split", "train",
                         "--validation", 0)
        self.assertIn(b"none: no validation sample", result.stdout)

    def test_generate(self):
        def generate(*options):
            return self.ok("generate", "--checkpoint", self.save, "--temperature", 0, "--tokens",
                           30, *options).stdout
        one = generate("--image", self.picture)
        self.assertEqual(generate("--image", self.picture, "--prompt", "<image>"), one)
        self.assertLess(len(one), 30)  # the model ends it
        result = json.loads(generate("--json", "--image", self.picture, self.picture, "--prompt",
                                     "<image>red square\n<image>"))
        self.assertEqual(result["prompt_tokens"],
                         4 * [256] + list(b"red square\n") + 4 * [256])
        self.assertTrue(all(token < 256 for token in result["tokens"]))
        self.assertEqual(generate("--prompt", "red"), generate("--prompt-tokens", "114,101,100"))
        self.assertTrue(result["complete"])
        # Of a long text the end counts.
        self.assertEqual(generate("--prompt", 200 * "x" + "red"),
                         generate("--prompt", 125 * "x" + "red"))

    def test_a_full_context(self):
        # No picture is forgotten for a text that does not end.
        full = self.ok("generate", "--checkpoint", self.save, "--temperature", 0, "--json",
                       "--image", self.picture, "--context", 8)
        self.assertIn(b"context of 8 tokens is full", full.stderr)
        result = json.loads(full.stdout)
        self.assertEqual(len(result["tokens"]), 4)
        self.assertFalse(result["complete"])

    def test_refused(self):
        def refused(*options, names):
            self.refused("generate", "--checkpoint", self.save, *options, names=names)
        refused("--image", self.dir / "absent.png", names=["absent.png"])
        refused("--image", self.manifest, names=["manifest.jsonl"])
        refused("--image", self.picture, "--prompt", "a", names=["--prompt", "0 <image>", "1 file"])
        refused("--prompt", "<image>", names=["--image", "1 <image>", "0 file"])
        refused("--image", self.picture, "--prompt-tokens", "1", names=["--prompt-tokens"])
        refused("--image", self.picture, "--prompt", "<image>" + 124 * "x", names=["128"])
        refused("--image", self.picture, "--context", 3, names=["4 tokens", "of 3"])
        self.refused("eval", "--checkpoint", self.save, "--format", "u16", names=["--format"])
        broken = self.dir / "broken"
        broken.mkdir()
        self.refused("eval", "--checkpoint", self.save, "--data", broken, names=["broken"])


class RefusalTest(VisionTest):
    def refused_data(self, samples, *names, options=()):
        manifest = self.dir / "bad.jsonl"
        if isinstance(samples, str):
            manifest.write_text(samples)
        else:
            pictures.write_lines(manifest, samples)
        self.refused("train", "--data", manifest, *MODEL, *TRAINING, *STEPS, "--save",
                     self.dir / "save", *options, names=names)
        self.assertFalse((self.dir / "save").exists())

    def test_manifests(self):
        good = {"text": "some text"}
        self.refused_data('{"text": "a"}\nno object\n', 'bad.jsonl", line 2', "JSON")
        self.refused_data('["a"]\n', 'bad.jsonl", line 1', "object")
        self.refused_data([good, {"text": ""}], 'bad.jsonl", line 2', "empty")
        self.refused_data([good, {"texts": "a"}], 'bad.jsonl", line 2', '"text"')
        self.refused_data([good, {"text": "<image> a"}], 'bad.jsonl", line 2', "1", "0")
        self.refused_data([good, {"text": "a", "images": ["pictures/1-0.png"]}],
                          'bad.jsonl", line 2', "0", "1")
        self.refused_data([good, {"text": "x" * 200}], 'bad.jsonl", line 2', "200", "128")
        self.refused_data("", "bad.jsonl")
        self.refused("train", "--data", self.dir / "absent", *MODEL, names=["absent"])
        self.refused("train", "--data", self.dir, *MODEL, names=[str(self.dir)])

    def test_pictures(self):
        def sample(content=None):
            if content is not None:
                (self.dir / "bad.png").write_bytes(content)
            return [{"text": "a"}, {"text": "<image> a", "images": ["bad.png"]}]
        self.refused_data(sample(), 'bad.jsonl", line 2', "bad.png", "No such file")
        self.refused_data(sample(b"no picture"), 'bad.jsonl", line 2', "bad.png", "not a PNG")
        self.refused_data(sample(pictures.png(20, 10, lambda x, y: (0, 0, 0))),
                          'bad.jsonl", line 2', "bad.png", "20 x 10", "150",
                          options=["--pixels-max", 150])
        good = pictures.drawing("red", "bar", 0)
        # Found when it is decoded.
        for bad in (good[:len(good) // 2], good[:50] + bytes(4) + good[54:]):
            (self.dir / "bad.png").write_bytes(bad)
            manifest = self.dir / "bad.jsonl"
            pictures.write_lines(manifest, 20 * [{"text": "<image> a", "images": ["bad.png"]}])
            self.refused("train", "--data", manifest, *MODEL, *TRAINING, *STEPS,
                         names=['bad.jsonl", line ', "bad.png", "damaged"])

    def test_options(self):
        for arguments, names in (
                (["--patch", 3], ["--image-size 8", "--patch 3"]),
                (["--vision-heads", 3], ["--vision-dim 8", "--vision-heads 3"]),
                (["--patch", 2, "--conv-stem"], ["--patch 2", "--conv-stem"]),
                (["--format", "u16"], ["--format", "--vision"]),
                (["--vocabulary", 300], ["--vocabulary", "--vision"]),
                (["--grouping", "size"], ["--grouping", "size", "cost"]),
                (["--stages", 2, "--placement", "balanced"], ["--placement balanced", "2"]),
                (["--stages", 4, "--ranks", 5, "--placement", "balanced"], ["5"]),
                (["--stages", 40], ["40"])):
            with self.subTest(arguments):
                given = [a for a in arguments if isinstance(a, str)]
                kept = []
                for k, word in enumerate(MODEL):
                    if word in given or (k > 0 and MODEL[k - 1] in given and word != "--vision"):
                        continue
                    kept.append(word)
                self.refused("train", "--data", self.manifest, *kept, *TRAINING, *STEPS, *arguments,
                             names=names)
        self.refused("train", "--data", self.manifest, self.manifest, *MODEL, names=["--data", "2"])
        for option in (["--patch", 4], ["--conv-stem"], ["--grouping", "cost"],
                       ["--pixels-max", 100]):
            self.refused("train", "--data", self.text, *support.TINY, *option,
                         names=[option[0], "--vision"])

    def test_text_models(self):
        save = self.dir / "text"
        _, one = super(VisionTest, self).train(*STEPS, "--save", save)
        _, balanced = super(VisionTest, self).train(*STEPS, "--stages", 3, "--ranks", 2,
                                                    "--placement", "balanced")
        self.assertEqual(balanced["weights_sha256"], one["weights_sha256"])
        self.assertNotIn("images_per_s", one)
        self.refused("train", "--resume", save, "--steps", 4, "--vision", names=["--vision"])
        self.refused("eval", "--checkpoint", save, "--captions", 3, names=["--captions"])
        self.refused("generate", "--checkpoint", save, "--image", self.manifest, names=["--image"])


if __name__ == "__main__":
    support.main()
