#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The work of tests/bench/gpt_step in PyTorch, for comparison: the same model, batch and optimizer.

    torch_gpt.py [STEPS]      default 10; prints milliseconds per step and peak memory

One thread, f32: also in OpenBLAS, whose threads torch.set_num_threads does not know. Attention is written out, since Debian's PyTorch 1.13 has no fused one for training.
Needs Debian's python3-torch; run it with /usr/bin/python3.
"""
import os
import resource
import statistics
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # is read when the library is loaded

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

VOCABULARY, CONTEXT, LAYERS, DIM, HEADS, BATCH = 256, 128, 4, 256, 4, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.ffn_norm = nn.LayerNorm(DIM)
        self.up = nn.Linear(DIM, 4 * DIM)
        self.down = nn.Linear(4 * DIM, DIM)
        self.register_buffer("mask", torch.tril(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool)))

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.qkv(self.attention_norm(x)).view(batch, length, 3, HEADS, DIM // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (DIM // HEADS) ** -0.5
        scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, DIM)
        x = x + self.out(y)
        return x + self.down(functional.gelu(self.up(self.ffn_norm(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, DIM)
        self.positions = nn.Parameter(torch.randn(CONTEXT, DIM) * 0.02)
        self.layers = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens) + self.positions[:tokens.shape[1]]
        logits = self.head(self.norm(self.layers(x)))
        return functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95),
                                  weight_decay=0.1)
    times = []
    for step in range(steps + 2):
        tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT))
        targets = torch.randint(VOCABULARY, (BATCH, CONTEXT))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        model(tokens, targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step >= 2:
            times.append(time.perf_counter() - start)
    median = statistics.median(times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"torch {torch.__version__} ms_per_step {median * 1e3:.2f} "
          f"tokens_per_s {BATCH * CONTEXT / median:.0f} peak_mib {peak / 1024:.0f}")


if __name__ == "__main__":
    main()
