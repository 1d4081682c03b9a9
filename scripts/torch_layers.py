#!/usr/bin/env python3
"""Times the kernels of whole layers that run one after another, on this machine's first GPU.

    scripts/torch_layers.py FOLDER --datasheet scenarios/datasheets/h100-sxm5.json [--seconds 1.5]

writes FOLDER/layers.json, a file of measurements, and prints clock and power. A GPU that trains has
the clock that its power allows; kernels that are timed alone have a higher one. So layers of Llama's
form run forward and backward for some seconds, on the shapes of one tensor rank and without
collectives. Then events before and behind each operator time it. An event takes the GPU about 1 us.
"""

import argparse
import json
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel

from torch_kernels import BACKENDS, Tables, header_of, median, nvidia_smi

# Name, hidden size, feed-forward width, query heads and key heads (all of one tensor rank), samples
# of a micro-batch, tokens of a sample.
LAYERS = [
    ("2k", 2048, 8192, 32, 8, 2, 4096),
    ("4k", 4096, 14336, 32, 8, 1, 8192),
    ("4k, four samples", 4096, 14336, 32, 8, 4, 2048),
    ("8k, 4 ranks", 8192, 7168, 16, 2, 1, 8192),
    ("12k, 8 ranks", 12288, 6144, 12, 12, 4, 2048),
    ("16k, 8 ranks", 16384, 6656, 16, 1, 1, 8192),
]
SIZE = 128
ROUNDS = 9
RUNS = 4  # of a layer before the host waits: only the last is timed


def bf16(*shape):
    return 0.05 * torch.randn(*shape, dtype=torch.bfloat16, device="cuda")


class Layer:
    """One layer, whose operators are called and timed one by one."""

    def __init__(self, shape, backend):
        self.hidden, self.wide, self.heads, self.keys, self.samples, self.tokens = shape
        self.backend = backend
        self.rows = self.samples * self.tokens
        queried, kept = self.heads * SIZE, self.keys * SIZE
        self.weights = {
            "qkv": bf16(queried + 2 * kept, self.hidden), "out": bf16(self.hidden, queried),
            "up": bf16(2 * self.wide, self.hidden), "down": bf16(self.hidden, self.wide)}
        self.scale = torch.ones(self.hidden, dtype=torch.bfloat16, device="cuda")
        self.x = bf16(self.rows, self.hidden)
        self.calls = []

    def product(self, name, a, b, lies):
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        row = ("gemm", "", ["m", "n", "k", "batch", "transposes", "bytes"],
               [m, n, k, 1, lies, 2 * (m * k + k * n + m * n)])
        return self.call(name, row, lambda: torch.mm(a, b))

    def stream(self, kind, operation, passes, over, what):
        rows, columns = over.shape
        row = (kind, operation, ["rows", "columns", "bytes"],
               [rows, columns, int(2 * passes * rows * columns)])
        return self.call(operation, row, what)

    def call(self, name, row, what):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        result = what()
        end.record()
        self.calls.append((name, row, begin, end))
        return result

    def attention(self, rows):
        """Forward and the gradient of queries, keys and values, all of as many heads."""
        def heads(columns):
            part = rows[:, columns].reshape(self.samples, self.tokens, -1, SIZE).transpose(1, 2)
            return part.repeat_interleave(self.heads // part.shape[1], 1).requires_grad_()

        queried, kept = self.heads * SIZE, self.keys * SIZE
        q, k, v = (heads(slice(0, queried)), heads(slice(queried, queried + kept)),
                   heads(slice(queried + kept, queried + 2 * kept)))
        shape = [self.samples, self.heads, self.tokens, self.tokens, SIZE, 2]
        columns = ["batch", "heads", "queries", "keys", "size", "causal", "bytes"]
        moved = 2 * q.numel()

        def forward():
            with sdpa_kernel(BACKENDS[self.backend]):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        with torch.enable_grad():
            out = self.call("attention", ("attention", self.backend, columns, shape + [4 * moved]),
                            forward)
        grown = torch.empty_like(out).copy_(out.detach())
        self.call("attention_backward",
                  ("attention_backward", self.backend, columns, shape + [8 * moved]),
                  lambda: torch.autograd.grad(out, (q, k, v), grown))
        return out.detach().transpose(1, 2).reshape(self.rows, queried)

    def run(self):
        """Forward and backward pass. Gradients have the right shapes, and any values."""
        self.calls = []
        x, w, wide = self.x, self.weights, self.wide
        normed = self.stream("rms_norm", "RMS norm", 2, x,
                             lambda: F.rms_norm(x, (self.hidden,), self.scale))
        rows = self.product("qkv", normed, w["qkv"].t(), "NT")
        mixed = self.attention(rows)
        y = self.product("out", mixed, w["out"].t(), "NT")
        y = self.stream("elementwise", "add", 3, x, lambda: x + y)
        pair = self.product("up", y, w["up"].t(), "NT")
        gate, factor = pair[:, :wide].contiguous(), pair[:, wide:].contiguous()
        gate = self.stream("activation_function", "silu", 2, gate, lambda: F.silu(gate))
        gate = self.stream("elementwise", "multiply", 3, gate, lambda: gate * factor)
        down = self.product("down", gate, w["down"].t(), "NT")
        # Backward, in PyTorch's order: the gradient of the input, then that of the weight.
        for name, dy, kept in (("down", down, gate), ("up", pair, y), ("out", y, mixed),
                               ("qkv", rows, normed)):
            self.product(name + " input gradient", dy, w[name], "NN")
            self.product(name + " weight gradient", dy.t(), kept, "TN")


def measured(layer, seconds):
    """By call: its name, its row and the median of its seconds, when the GPU has been busy."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(RUNS):
            layer.run()
        torch.cuda.synchronize()
    samples = []
    for _ in range(ROUNDS):
        for _ in range(RUNS):
            layer.run()
        torch.cuda.synchronize()
        samples.append([begin.elapsed_time(end) / 1e3 for _, _, begin, end in layer.calls])
    return [(name, row, median([sample[i] for sample in samples]))
            for i, (name, row, _, _) in enumerate(layer.calls)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--datasheet", required=True)
    parser.add_argument("--seconds", type=float, default=1.5,
                        help="for which a layer runs before it is timed")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    header = header_of(options.datasheet)
    header["source"] = "scripts/torch_layers.py"
    header["note"] = (f"Medians of {ROUNDS} samples, of a GPU that has run such layers for "
                      f"{options.seconds} s. bytes: every operand counted once.")
    tables = Tables(os.path.join(options.folder, "layers.json"), header)
    for backend in ("cuDNN", "FlashAttention-2"):
        for name, *shape in LAYERS:
            with torch.no_grad():
                calls = measured(Layer(shape, backend), options.seconds)
            said = nvidia_smi("clocks.sm,power.draw,temperature.gpu")
            whole = sum(seconds for _, _, seconds in calls)
            print(f"{backend:17} {name:17} {1e3 * whole:8.3f} ms  {said}", flush=True)
            for _, (kind, operation, columns, row), seconds in calls:
                tables.add(kind, operation, "bf16", columns + ["time us"],
                           row + [round(seconds * 1e6, 3)])
            tables.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
