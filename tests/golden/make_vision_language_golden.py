#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PyTorch computes for small vision-language models, and for the operations in them.

    make_vision_language_golden.py MODELS.txt OPERATIONS.txt

As make_gpt_golden.py, which see for the rules and the format. New here are the inputs, microbatch by
microbatch, which follow the line "model" as "input f32|i32 EXTENTS" and a line of numbers each. Models
without inputs have those of the first model. Numbers behind the name of a model are

    models      language flags, vision flags, key and value heads
    operations  none

Samples are computed one by one here, not packed, and convolutions are those of PyTorch.
"""
import math
import sys

import torch
from torch.nn import functional

from make_gpt_golden import (BETA1, BETA2, CLIP, EPSILON, IGNORE, LR, RMS_NORM, ROTARY, SWIGLU, TIED,
                             WEIGHT_DECAY, mix, numbers, weight_values)

VOCABULARY, CONTEXT, LAYERS, DIM, HEADS = 12, 16, 2, 8, 2
IMAGE, PATCH, VISION_LAYERS, VISION_DIM, VISION_HEADS = 8, 4, 2, 6, 3
ROWS = (IMAGE // PATCH) ** 2
FROZEN, CONV_STEM = 1, 2
MODELS = [("plain", 0, 0, 0), ("conv_stem", 0, CONV_STEM, 0),
          ("modern", TIED | ROTARY | RMS_NORM | SWIGLU, 0, 1), ("frozen", TIED, FROZEN, 0),
          ("frozen_conv_stem", ROTARY, FROZEN | CONV_STEM, 0)]
# Microbatches of sequences of samples: a letter is a token of text, a digit a picture of the
# microbatch. Sequences of a microbatch are equally long.
BATCH = [["0ttt|tttt"],             # text behind the picture, and a sample without one
         ["t1tt0tt|0t|tt", ],       # two pictures in a sample, and one of them again
         ["0|1"],                   # nothing but pictures
         ["ttttt", "tt|ttt"]]       # no picture at all


def pictures_of(microbatch):
    return len({c for c in "".join(microbatch) if c.isdigit()})


class Numbers:
    """A stream of numbers that the seed names."""

    def __init__(self, seed):
        self.at = seed * 1000003

    def below(self, limit):
        self.at += 1
        return mix(self.at) % limit

    def tensor(self, *shape):
        values = [self.below(256) / 128 - 1 for _ in range(math.prod(shape))]
        return torch.tensor(values, dtype=torch.float64).reshape(shape)


class Sample:
    def __init__(self, text, stream):
        self.tokens, self.sources = [], []
        for c in text:
            count = ROWS if c.isdigit() else 1
            self.tokens += [VOCABULARY - 1 if c.isdigit() else stream.below(VOCABULARY - 1)
                            for _ in range(count)]
            self.sources += [int(c) * ROWS + p if c.isdigit() else -1 for p in range(count)]
        # What follows is predicted, unless that is a picture; and behind the sample a token that
        # is not in it.
        follows = list(zip(self.tokens[1:], self.sources[1:])) + [(stream.below(VOCABULARY), -1)]
        self.targets = [token if source < 0 else IGNORE for token, source in follows]
        self.positions = list(range(len(self.tokens)))


class Module:
    """Weights by name, in the order of making."""

    def __init__(self):
        self.weights = {}
        self.decayed = set()
        self.frozen = set()

    def make(self, name, *shape, center=0.0, frozen=False):
        values = weight_values(len(self.weights), math.prod(shape), center, 0.5)
        tensor = torch.tensor(values, dtype=torch.float64).reshape(shape)
        self.weights[name] = tensor.requires_grad_(not frozen)
        if len(shape) > 1:
            self.decayed.add(name)

    def make_linear(self, name, rows, cols, frozen=False):
        self.make(f"{name}.weight", rows, cols, frozen=frozen)
        self.make(f"{name}.bias", rows, frozen=frozen)

    def linear(self, x, name):
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def convolution(self, x, name, kernel, stride, padding):
        """x is [pictures, height, width, channels]; a row of the weight is the square row by row."""
        weight = self.weights[f"{name}.weight"]
        weight = weight.reshape(weight.shape[0], kernel, kernel, -1).permute(0, 3, 1, 2)
        y = functional.conv2d(x.permute(0, 3, 1, 2), weight, self.weights[f"{name}.bias"], stride,
                              padding)
        return y.permute(0, 2, 3, 1)

    def trained(self):
        return {n: w for n, w in self.weights.items() if w.requires_grad}


def rotate(x, positions):
    """x is [heads, length, head_dim]; pairs are (j, j + head_dim / 2)."""
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.tensor(positions, dtype=torch.float64)[:, None] * rates
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def attend(qkv, heads, kv_heads, causal, positions=None):
    """qkv is [length, width] of one sample."""
    length = qkv.shape[0]
    head_dim = qkv.shape[1] // (heads + 2 * kv_heads)
    parts = qkv.view(length, -1, head_dim).transpose(0, 1)
    q, k, v = parts.split([heads, kv_heads, kv_heads])
    if positions is not None:
        q, k = rotate(q, positions), rotate(k, positions)
    k, v = (x.repeat_interleave(heads // kv_heads, 0) for x in (k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(head_dim)
    if causal:
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(0, 1).reshape(length, heads * head_dim)


class Model(Module):
    def __init__(self, flags, vision_flags, kv_heads):
        super().__init__()
        self.flags, self.vision_flags = flags, vision_flags
        self.kv_heads = kv_heads or HEADS
        frozen = bool(vision_flags & FROZEN)
        name = "vision.embedding"
        if vision_flags & CONV_STEM:
            half = VISION_DIM // 2
            self.make_linear(f"{name}.convolutions.0", half, 9 * 3, frozen)
            self.make_linear(f"{name}.convolutions.1", VISION_DIM, 9 * half, frozen)
            self.make_linear(f"{name}.out", VISION_DIM, VISION_DIM, frozen)
        else:
            self.make_linear(f"{name}.patches", VISION_DIM, PATCH * PATCH * 3, frozen)
        self.make(f"{name}.positions.weight", ROWS, VISION_DIM, frozen=frozen)
        for layer in range(VISION_LAYERS):
            self.make_layer(f"vision.layers.{layer}", VISION_DIM, VISION_HEADS, VISION_HEADS, 0,
                            frozen)
        self.make_norm("projector.norm", VISION_DIM, 0, False)
        self.make_linear("projector.up", DIM, VISION_DIM)
        self.make_linear("projector.out", DIM, DIM)
        self.make("embedding.weight", VOCABULARY, DIM)
        if not flags & ROTARY:
            self.make("positions.weight", CONTEXT, DIM)
        for layer in range(LAYERS):
            self.make_layer(f"layers.{layer}", DIM, HEADS, self.kv_heads, flags, False)
        self.make_norm("norm", DIM, flags, False)
        if not flags & TIED:
            self.make("head.weight", VOCABULARY, DIM)

    def make_norm(self, name, dim, flags, frozen):
        self.make(f"{name}.weight", dim, center=1.0, frozen=frozen)
        if not flags & RMS_NORM:
            self.make(f"{name}.bias", dim, frozen=frozen)

    def make_layer(self, name, dim, heads, kv_heads, flags, frozen):
        self.make_norm(f"{name}.attention_norm", dim, flags, frozen)
        self.make_linear(f"{name}.attention.qkv", (heads + 2 * kv_heads) * dim // heads, dim, frozen)
        self.make_linear(f"{name}.attention.out", dim, dim, frozen)
        self.make_norm(f"{name}.ffn_norm", dim, flags, frozen)
        hidden = (8 * dim // 3 + 7) // 8 * 8 if flags & SWIGLU else 4 * dim
        for part in ["gate", "up"] if flags & SWIGLU else ["up"]:
            self.make_linear(f"{name}.ffn.{part}", hidden, dim, frozen)
        self.make_linear(f"{name}.ffn.down", dim, hidden, frozen)

    def norm(self, x, name, flags):
        weight = self.weights[f"{name}.weight"]
        if flags & RMS_NORM:
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight
        return functional.layer_norm(x, x.shape[-1:], weight, self.weights[f"{name}.bias"], 1e-5)

    def layer(self, x, name, heads, kv_heads, flags, causal, positions=None):
        y = self.linear(self.norm(x, f"{name}.attention_norm", flags), f"{name}.attention.qkv")
        y = attend(y, heads, kv_heads, causal, positions)
        x = x + self.linear(y, f"{name}.attention.out")
        y = self.norm(x, f"{name}.ffn_norm", flags)
        if flags & SWIGLU:
            y = functional.silu(self.linear(y, f"{name}.ffn.gate")) * self.linear(y, f"{name}.ffn.up")
        else:
            y = functional.gelu(self.linear(y, f"{name}.ffn.up"), approximate="tanh")
        return x + self.linear(y, f"{name}.ffn.down")

    def encode(self, picture):
        """A picture as rows of the language model's width."""
        x, name = picture[None], "vision.embedding"
        if self.vision_flags & CONV_STEM:
            for k in range(2):
                x = self.convolution(x, f"{name}.convolutions.{k}", 3, 2, 1)
                x = functional.gelu(x, approximate="tanh")
            x = self.linear(x, f"{name}.out")
        else:
            x = self.convolution(x, f"{name}.patches", PATCH, PATCH, 0)
        x = x.reshape(ROWS, VISION_DIM) + self.weights[f"{name}.positions.weight"]
        for layer in range(VISION_LAYERS):
            x = self.layer(x, f"vision.layers.{layer}", VISION_HEADS, VISION_HEADS, 0, False)
        x = self.linear(self.norm(x, "projector.norm", 0), "projector.up")
        return self.linear(functional.gelu(x, approximate="tanh"), "projector.out")

    def logits(self, sample, rows):
        x = torch.stack([self.weights["embedding.weight"][token] if source < 0 else rows[source]
                         for token, source in zip(sample.tokens, sample.sources)])
        if not self.flags & ROTARY:
            x = x + self.weights["positions.weight"][:len(sample.tokens)]
        positions = sample.positions if self.flags & ROTARY else None
        for layer in range(LAYERS):
            x = self.layer(x, f"layers.{layer}", HEADS, self.kv_heads, self.flags, True, positions)
        head = self.weights["embedding.weight" if self.flags & TIED else "head.weight"]
        return self.norm(x, "norm", self.flags) @ head.T

    def loss(self, batch):
        logits, targets = [], []
        for sequences, pictures in batch:
            rows = [row for picture in pictures for row in self.encode(picture)]
            for sample in (s for sequence in sequences for s in sequence):
                logits.append(self.logits(sample, rows))
                targets += sample.targets
        return functional.cross_entropy(torch.cat(logits), torch.tensor(targets),
                                        ignore_index=IGNORE)


def write_input(out, kind, values):
    values = torch.as_tensor(values)
    print(f"input {kind} {' '.join(map(str, values.shape))}\n{numbers(values)}", file=out)


def make_batch(out):
    """Microbatches of samples and pictures, as they are; their inputs, packed, go to the file."""
    stream = Numbers(7)
    batch = []
    for microbatch in BATCH:
        sequences = [[Sample(text, stream) for text in sequence.split("|")]
                     for sequence in microbatch]
        pictures = stream.tensor(pictures_of(microbatch), IMAGE, IMAGE, 3)
        batch.append((sequences, pictures))

        def pack(numbers_of, sequences=sequences):
            return [[x for k, s in enumerate(sequence) for x in numbers_of(k, s)]
                    for sequence in sequences]
        write_input(out, "i32", pack(lambda k, s: s.tokens))
        write_input(out, "i32", pack(lambda k, s: s.targets))
        write_input(out, "i32", pack(lambda k, s: [5 - k] * len(s.tokens)))
        write_input(out, "i32", pack(lambda k, s: s.positions))
        write_input(out, "i32", pack(lambda k, s: s.sources))
        write_input(out, "f32", pictures)
    return batch


def write_models(out):
    batch = None
    for name, flags, vision_flags, kv_heads in MODELS:
        print(f"model {name} {flags} {vision_flags} {kv_heads}", file=out)
        batch = batch or make_batch(out)
        model = Model(flags, vision_flags, kv_heads)
        loss = model.loss(batch)
        loss.backward()
        print(f"loss {loss.item():.15g}", file=out)
        trained = model.trained()
        gradients = {n: w.grad.clone() for n, w in trained.items()}
        norm = torch.nn.utils.clip_grad_norm_(list(trained.values()), CLIP)
        print(f"norm {norm.item():.15g}", file=out)
        groups = [{"params": [w for n, w in trained.items() if n in model.decayed]},
                  {"params": [w for n, w in trained.items() if n not in model.decayed],
                   "weight_decay": 0.0}]
        torch.optim.AdamW(groups, lr=LR, betas=(BETA1, BETA2), eps=EPSILON,
                          weight_decay=WEIGHT_DECAY).step()
        for n, w in trained.items():
            print(f"grad {n}\n{numbers(gradients[n])}\nnew {n}\n{numbers(w)}", file=out)
        print("end", file=out)


def write_operation(out, name, module, inputs, y, goal):
    """The loss is the mean of the squared distance to the goal, which is the last input."""
    print(f"model {name}", file=out)
    for kind, values in inputs + [("f32", goal)]:
        write_input(out, kind, values)
    loss = ((y - goal) ** 2).mean()
    loss.backward()
    norm = math.sqrt(sum((w.grad ** 2).sum().item() for w in module.weights.values()))
    print(f"loss {loss.item():.15g}\nnorm {norm:.15g}", file=out)
    for n, w in module.weights.items():
        print(f"grad {n}\n{numbers(w.grad)}", file=out)
    print("end", file=out)


def write_convolutions(out):
    # The linear layer in front makes that pictures want a gradient.
    for name, kernel, stride, padding in [("convolution", 3, 2, 1), ("patches", 2, 2, 0),
                                          ("wide_convolution", 3, 1, 2), ("sparse", 2, 3, 0)]:
        stream = Numbers(kernel * 100 + stride)
        module = Module()
        module.make_linear("before", 2, 3)
        module.make_linear("square", 4, kernel * kernel * 2)
        x = stream.tensor(2, 5, 6, 3)
        y = module.convolution(module.linear(x, "before"), "square", kernel, stride, padding)
        write_operation(out, name, module, [("f32", x)], y, stream.tensor(*y.shape))


def write_packed(out):
    """Two sequences of several samples; attention inside of them, with positions of their own."""
    lengths = [[3, 1, 5], [2, 7]]
    segments = [[k + 4 for k, n in enumerate(ns) for _ in range(n)] for ns in lengths]
    positions = [[p for n in ns for p in range(n)] for ns in lengths]
    for name, causal, rotary in [("packed", True, False), ("packed_full", False, False),
                                 ("packed_rotary", True, True)]:
        stream = Numbers(50)
        module = Module()
        module.make_linear("qkv", 4 * 4, 6)  # 2 heads, 1 for keys and values
        x = stream.tensor(2, 9, 6)
        qkv = module.linear(x, "qkv")
        y = torch.stack([
            torch.cat([attend(part, 2, 1, causal, range(len(part)) if rotary else None)
                       for part in sequence.split(ns)])
            for sequence, ns in zip(qkv, lengths)])
        inputs = [("f32", x), ("i32", segments), ("i32", positions)]
        write_operation(out, name, module, inputs, y, stream.tensor(*y.shape))


def write_merge(out):
    stream = Numbers(60)
    module = Module()
    module.make_linear("x", 4, 3)
    module.make_linear("rows", 4, 5)
    x, rows = stream.tensor(2, 5, 3), stream.tensor(2, 3, 5)
    sources = [[-1, 4, -1, 0, 0], [5, -1, -1, 4, 2]]
    of_x = module.linear(x, "x")
    of_rows = module.linear(rows, "rows").reshape(6, 4)
    y = torch.stack([torch.stack([of_rows[s] if s >= 0 else of_x[b, t] for t, s in enumerate(row)])
                     for b, row in enumerate(sources)])
    inputs = [("f32", x), ("f32", rows), ("i32", sources)]
    write_operation(out, "merge", module, inputs, y, stream.tensor(*y.shape))


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        write_models(out)
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        write_convolutions(out)
        write_packed(out)
        write_merge(out)


if __name__ == "__main__":
    main()
