#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PyTorch computes for small language models: losses, gradients, weights after a step.

    make_gpt_golden.py OUT.txt

The models are written out in plain PyTorch, in f64, after the papers that rrfp's operations name; they
share no code with it. Weights and tokens come from a formula that the test computes too, so only
results are stored. Needs Debian's python3-torch (1.13); run it with /usr/bin/python3.

The file has one block per model: "model NAME FLAGS KV_HEADS", "loss X", "norm X", then for each
parameter "grad NAME", "new NAME" and a line of numbers each, "end".
"""
import math
import sys

import torch
from torch.nn import functional

VOCABULARY, CONTEXT, LAYERS, DIM, HEADS = 12, 8, 2, 8, 2
BATCH, LENGTH = 2, 7
IGNORE = -100
TIED, ROTARY, RMS_NORM, SWIGLU = 1, 2, 4, 8
MODELS = [("plain", 0, 0), ("tied_rotary", TIED | ROTARY, 1), ("rms_swiglu", RMS_NORM | SWIGLU, 0),
          ("modern", TIED | ROTARY | RMS_NORM | SWIGLU, 1)]
# AdamW divides small gradients by their own size; a large epsilon keeps the rounding errors of
# gradients that are really zero (those of key biases) from growing to that of the others.
LR, BETA1, BETA2, EPSILON, WEIGHT_DECAY, CLIP = 1e-2, 0.9, 0.95, 1e-2, 0.1, 0.5


def mix(x):
    """splitmix64: the x-th of a stream of 64-bit numbers."""
    z = (x + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return z ^ z >> 31


def weight_values(index, count, center, scale):
    """Multiples of 2^-10 or so, hence exact in f32."""
    return [center + scale * ((mix(index * 1000003 + i) >> 52) / 2048 - 1) for i in range(count)]


class Model:
    def __init__(self, flags, kv_heads):
        self.flags = flags
        self.kv_heads = kv_heads or HEADS
        self.weights = {}
        self.decayed = set()
        self.make("embedding.weight", VOCABULARY, DIM)
        if not flags & ROTARY:
            self.make("positions.weight", CONTEXT, DIM)
        head_dim = DIM // HEADS
        for layer in range(LAYERS):
            name = f"layers.{layer}"
            self.make_norm(f"{name}.attention_norm")
            self.make_linear(f"{name}.attention.qkv", (HEADS + 2 * self.kv_heads) * head_dim, DIM)
            self.make_linear(f"{name}.attention.out", DIM, DIM)
            self.make_norm(f"{name}.ffn_norm")
            if flags & SWIGLU:
                hidden = (8 * DIM // 3 + 7) // 8 * 8
                self.make_linear(f"{name}.ffn.gate", hidden, DIM)
                self.make_linear(f"{name}.ffn.up", hidden, DIM)
                self.make_linear(f"{name}.ffn.down", DIM, hidden)
            else:
                self.make_linear(f"{name}.ffn.up", 4 * DIM, DIM)
                self.make_linear(f"{name}.ffn.down", DIM, 4 * DIM)
        self.make_norm("norm")
        if not flags & TIED:
            self.make("head.weight", VOCABULARY, DIM)

    def make(self, name, *shape, center=0.0):
        values = weight_values(len(self.weights), math.prod(shape), center, 0.5)
        tensor = torch.tensor(values, dtype=torch.float64).reshape(shape)
        self.weights[name] = tensor.requires_grad_()
        if len(shape) > 1:
            self.decayed.add(name)

    def make_linear(self, name, rows, cols):
        self.make(f"{name}.weight", rows, cols)
        self.make(f"{name}.bias", rows)

    def make_norm(self, name):
        self.make(f"{name}.weight", DIM, center=1.0)
        if not self.flags & RMS_NORM:
            self.make(f"{name}.bias", DIM)

    def norm(self, x, name):
        weight = self.weights[f"{name}.weight"]
        if self.flags & RMS_NORM:
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight
        return functional.layer_norm(x, (DIM,), weight, self.weights[f"{name}.bias"], 1e-5)

    def linear(self, x, name):
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def rotate(self, x):
        """x is [batch, heads, length, head_dim]; pairs are (j, j + head_dim / 2)."""
        if not self.flags & ROTARY:
            return x
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * rates
        cos, sin = angles.cos(), angles.sin()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def attention(self, x, name):
        batch, length, _ = x.shape
        head_dim = DIM // HEADS
        heads = self.linear(x, f"{name}.qkv").view(batch, length, -1, head_dim).transpose(1, 2)
        q, k, v = heads.split([HEADS, self.kv_heads, self.kv_heads], 1)
        q, k = self.rotate(q), self.rotate(k)
        k = k.repeat_interleave(HEADS // self.kv_heads, 1)
        v = v.repeat_interleave(HEADS // self.kv_heads, 1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(head_dim)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        y = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return self.linear(y.transpose(1, 2).reshape(batch, length, DIM), f"{name}.out")

    def feed_forward(self, x, name):
        if self.flags & SWIGLU:
            y = functional.silu(self.linear(x, f"{name}.gate")) * self.linear(x, f"{name}.up")
        else:
            y = functional.gelu(self.linear(x, f"{name}.up"), approximate="tanh")
        return self.linear(y, f"{name}.down")

    def loss(self, tokens, targets):
        x = self.weights["embedding.weight"][tokens]
        if not self.flags & ROTARY:
            x = x + self.weights["positions.weight"][:tokens.shape[1]]
        for layer in range(LAYERS):
            name = f"layers.{layer}"
            x = x + self.attention(self.norm(x, f"{name}.attention_norm"), f"{name}.attention")
            x = x + self.feed_forward(self.norm(x, f"{name}.ffn_norm"), f"{name}.ffn")
        head = self.weights["embedding.weight" if self.flags & TIED else "head.weight"]
        logits = self.norm(x, "norm") @ head.T
        return functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1),
                                        ignore_index=IGNORE)


def numbers(tensor):
    return " ".join(f"{x:.8g}" for x in tensor.detach().reshape(-1).tolist())


def main():
    ids = [mix(777000 + i) % VOCABULARY for i in range(2 * BATCH * LENGTH)]
    tokens = torch.tensor(ids[:BATCH * LENGTH]).reshape(BATCH, LENGTH)
    targets = torch.tensor(ids[BATCH * LENGTH:]).reshape(BATCH, LENGTH)
    targets[0, 3] = IGNORE
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for name, flags, kv_heads in MODELS:
            model = Model(flags, kv_heads)
            loss = model.loss(tokens, targets)
            loss.backward()
            print(f"model {name} {flags} {kv_heads}\nloss {loss.item():.15g}", file=out)
            gradients = {n: w.grad.clone() for n, w in model.weights.items()}
            norm = torch.nn.utils.clip_grad_norm_(list(model.weights.values()), CLIP)
            print(f"norm {norm.item():.15g}", file=out)
            groups = [{"params": [w for n, w in model.weights.items() if n in model.decayed]},
                      {"params": [w for n, w in model.weights.items() if n not in model.decayed],
                       "weight_decay": 0.0}]
            torch.optim.AdamW(groups, lr=LR, betas=(BETA1, BETA2), eps=EPSILON,
                              weight_decay=WEIGHT_DECAY).step()
            for n, w in model.weights.items():
                print(f"grad {n}\n{numbers(gradients[n])}\nnew {n}\n{numbers(w)}", file=out)
            print("end", file=out)


if __name__ == "__main__":
    main()
