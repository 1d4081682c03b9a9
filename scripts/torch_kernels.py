#!/usr/bin/env python3
"""Times PyTorch's kernels, and what its host takes to ask for them, on this machine's first GPU.

    scripts/torch_kernels.py FOLDER --datasheet scenarios/datasheets/h100-sxm5.json [--parts host,kernels]

writes into FOLDER, each as soon as something of it is known:
  host.json     the host's time for operators, layers and steps
  attention.json, kernels.json, products.json  kernels, as `stratagem calibrate fit` reads them:
                fused attention, those that move memory, products
  clocks.json   the rate of large products over seconds, with the GPU's clock and power

Times of kernels are the GPU's: it sleeps until the host has asked for all launches of a sample. But
those that compute get the clock that the GPU's power allows in training: a product that takes 45 us
or more is timed anew while the GPU does nothing else for 0.3 s, and attention between products that
take eight times as long as it does, but at most 20 ms.
Operands are dealt out of more than twice the L2 cache. Times of the host are those of tensors so
small that the GPU never holds it up.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
CLOCK = 1.7e9  # cycles a second that a GPU at most sleeps by; only has to be about right
SAMPLES = 7


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


# ---- times of the GPU


def gpu_time(launch, budget):
    """Seconds of one launch on the GPU: the median of some samples, of launches in a row."""
    launch()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    launch()
    asked = time.perf_counter() - begin
    torch.cuda.synchronize()
    whole = time.perf_counter() - begin
    times = int(max(1, min(50, budget / SAMPLES / whole)))
    samples = []
    for _ in range(SAMPLES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(int(CLOCK * (asked * times * 1.5 + 50e-6)))
        start.record()
        for _ in range(times):
            launch()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / 1e3 / times)
    return median(samples)


class Pool:
    """Operands of a type, dealt out in turn."""

    def __init__(self, kind, elements):
        self.data = torch.empty(elements, dtype=TYPES[kind], device="cuda").normal_()
        self.at = 0

    def deal(self, *shape):
        size = 1
        for length in shape:
            size *= length
        if self.at + size > self.data.numel():
            self.at = 0
        found = self.data[self.at : self.at + size].view(*shape)
        self.at += (size + 127) // 128 * 128
        return found


class Tables:
    """Rows by table, and the file that holds them."""

    def __init__(self, file, header):
        self.file, self.header, self.tables, self.left_out = file, header, {}, []

    def add(self, kind, operation, type_, columns, row):
        key = (kind, operation, type_)
        table = {"kind": kind, "operation": operation, "type": type_, "timing": "kernel"}
        table.update(columns=columns, rows=[])
        if not operation:
            del table["operation"]
        self.tables.setdefault(key, table)["rows"].append(row)

    def tried(self, name, what):
        """Does `what`; if that fails, says so in the file and goes on."""
        try:
            what()
        except Exception as error:  # whatever PyTorch refuses is left out, by name
            self.left_out.append(f"{name}: {str(error).splitlines()[0][:160]}")

    def tell_left_out(self):
        for left in self.left_out:
            print("left out:", left)

    def write(self):
        content = dict(self.header, tables=list(self.tables.values()))
        if self.left_out:
            content["note"] += " Left out: " + "; ".join(self.left_out)
        with open(self.file, "w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=1)


def products():
    """(m, n, k) and how the operands lie: a layer's products forward, for inputs and weights."""
    for h in (1024, 2048, 3072, 4096, 5120, 8192):
        for tokens in (2048, 4096, 8192):
            for out in (h, 3 * h, 4 * h):
                yield tokens, out, h, "NT"
                yield tokens, h, out, "NN"
                yield out, h, tokens, "TN"
    # Vocabularies as they are and as padded, and widths that are no multiple of 8.
    for n in (50257, 50304):
        yield 4096, n, 2048, "NT"
        yield 4096, 2048, n, "NN"
        yield n, 2048, 4096, "TN"


def heads():
    """(batch, m, n, k) of scores and of what they weigh, heads of odd sizes too."""
    for size in (64, 96, 108, 112, 128, 150, 152, 224, 225):
        for tokens in (1024, 2048):
            yield 64, tokens, tokens, size, "NT"
            yield 64, tokens, size, tokens, "NN"
            yield 64, tokens, size, tokens, "TN"


def operands(pool, batch, m, n, k, lies):
    a = pool.deal(batch, k, m).transpose(1, 2) if lies[0] == "T" else pool.deal(batch, m, k)
    b = pool.deal(batch, n, k).transpose(1, 2) if lies[1] == "T" else pool.deal(batch, k, n)
    return a, b


def product_time(launch, budget):
    """Seconds of one launch on a GPU that has been busy with it for a while, if the host can keep it
    busy."""
    each = gpu_time(launch, budget)
    if each < 45e-6:
        return each
    times = int(max(1, 0.15 / each))
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(times):
        launch()
    start.record()
    for _ in range(times):
        launch()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / times


def measure_products(tables, type_, budget, every):
    pool = Pool(type_, 3 << 28)
    out = torch.empty(1 << 29, dtype=TYPES[type_], device="cuda")
    columns = ["m", "n", "k", "batch", "transposes", "bytes", "time us"]
    todo = [(1, *p) for p in products()][::every] + list(heads())[::every]
    for batch, m, n, k, lies in todo:

        def launch():
            a, b = operands(pool, batch, m, n, k, lies)
            into = out[: batch * m * n].view(batch, m, n)
            if batch == 1:
                torch.mm(a[0], b[0], out=into[0])
            else:
                torch.bmm(a, b, out=into)

        moved = batch * (m * k + k * n + m * n) * out.element_size()
        name = f"gemm {type_} {batch} x {m} x {n} x {k} {lies}"
        rows = (m if lies[0] == "T" else k, k if lies[1] == "T" else n, n)
        aligned = all(row * out.element_size() % 16 == 0 for row in rows)
        operation = "" if aligned or type_ == "fp32" else "unaligned"
        tables.tried(name, lambda: tables.add("gemm", operation, type_, columns,
                     [m, n, k, batch, lies, moved, product_time(launch, budget) * 1e6]))


class Load:
    """Keeps a GPU as busy as training does: products between the launches that are timed, several
    times as long as they. Then the clock is what the GPU's power allows."""

    WARM, TIMED = 0.15, 0.1  # seconds
    SHARE, MOST = 8, 0.02  # products take SHARE times as long as the launch, at most MOST seconds

    def __init__(self):
        self.a, self.b = (torch.randn(4096, 4096, dtype=torch.bfloat16, device="cuda")
                          for _ in range(2))
        self.c = torch.empty_like(self.a)
        self.product = gpu_time(self.multiply, 0.05)
        for _ in range(int(0.5 / self.product)):
            self.multiply()

    def multiply(self):
        torch.mm(self.a, self.b, out=self.c)

    def time(self, launch):
        """Seconds of a launch: the median of several after WARM seconds of load."""
        alone = gpu_time(launch, 0.02)
        products = max(1, round(min(self.SHARE * alone, self.MOST) / self.product))
        turn = alone + products * self.product
        for _ in range(max(1, int(self.WARM / turn))):
            self.turn(launch, products)
        events = [self.turn(launch, products) for _ in range(max(5, int(self.TIMED / turn)))]
        torch.cuda.synchronize()
        return median([begin.elapsed_time(end) / 1e3 for begin, end in events])

    def turn(self, launch, products):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(products):
            self.multiply()
        begin.record()
        launch()
        end.record()
        return begin, end


BACKENDS = {
    "FlashAttention-2": SDPBackend.FLASH_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def attention_shapes():
    for size in (64, 128):
        for tokens in (512, 1024, 2048, 4096, 8192, 16384):
            for causal in (False, True):
                yield 16384 // tokens, 2048 // size, tokens, size, causal


def measure_attention(tables, load):
    columns = ["batch", "heads", "queries", "keys", "size", "causal", "bytes", "time us"]
    for name, backend in BACKENDS.items():
        for batch, heads_, tokens, size, causal in attention_shapes():
            # As layers have it: tokens outside, heads inside.
            q, k, v = (
                torch.randn(batch, tokens, heads_, size, dtype=torch.bfloat16, device="cuda")
                .transpose(1, 2).requires_grad_() for _ in range(3)
            )
            shape = [batch, heads_, tokens, tokens, size, 2 if causal else 1]
            moved = q.numel() * 2

            def both():
                with sdpa_kernel(backend):
                    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                    grown = torch.randn_like(out)

                    def forward():
                        with torch.no_grad():
                            F.scaled_dot_product_attention(q, k, v, is_causal=causal)

                    def backward():
                        torch.autograd.grad(out, (q, k, v), grown, retain_graph=True)

                    for kind, passes, launch in (("attention", 4, forward),
                                                 ("attention_backward", 8, backward)):
                        tables.add(kind, name, "bf16", columns,
                                   shape + [passes * moved, load.time(launch) * 1e6])

            tables.tried(f"{name} {shape}", both)


def streams(pool, masks):
    """Kind, operation, operands of an element in the type, further bytes of it, and the launch."""

    def gradient(function):
        """A launch of the gradient of function(x) for dy of y's shape."""
        kept = {}

        def launch(rows, columns):
            if (rows, columns) not in kept:
                x = pool.deal(rows, columns).detach().requires_grad_()
                kept[rows, columns] = x, function(x)
            x, y = kept[rows, columns]
            torch.autograd.grad(y, x, pool.deal(*y.shape), retain_graph=True)

        return launch

    weight = {c: torch.ones(c, dtype=pool.data.dtype, device="cuda") for c in (1000, 1024, 4096)}

    def layer_norm(x):
        return F.layer_norm(x, x.shape[-1:], weight[x.shape[-1]], weight[x.shape[-1]])

    def rms_norm(x):
        return F.rms_norm(x, x.shape[-1:], weight[x.shape[-1]])

    def gelu(x):
        return F.gelu(x, approximate="tanh")

    def softmax(x):
        return torch.softmax(x, -1)

    def of_x(function):
        def launch(rows, columns):
            with torch.no_grad():
                function(pool.deal(rows, columns))

        return launch

    return [
        ("elementwise", "add", 3, 0, lambda r, c: pool.deal(r, c) + pool.deal(r, c)),
        ("elementwise", "mul by a number", 2, 0, lambda r, c: pool.deal(r, c) * 0.5),
        ("elementwise", "cast to fp32", 1, 4, lambda r, c: pool.deal(r, c).to(torch.float64)
         if pool.data.dtype == torch.float32 else pool.deal(r, c).float()),
        ("elementwise", "transposed copy", 2, 0,
         lambda r, c: pool.deal(8, r // 8, c).transpose(0, 1).contiguous()),
        ("activation_function", "gelu", 2, 0, of_x(gelu)),
        ("activation_function", "gelu gradient", 3, 0, gradient(gelu)),
        ("activation_function", "silu", 2, 0, of_x(F.silu)),
        ("activation_function", "silu gradient", 3, 0, gradient(F.silu)),
        ("softmax", "softmax", 2, 0, of_x(softmax)),
        ("softmax", "softmax gradient", 3, 0, gradient(softmax)),
        ("norm", "layer norm", 2, 0, of_x(layer_norm)),
        ("norm", "layer norm gradient", 3, 0, gradient(layer_norm)),
        ("rms_norm", "RMS norm", 2, 0, of_x(rms_norm)),
        ("rms_norm", "RMS norm gradient", 3, 0, gradient(rms_norm)),
        ("dropout", "dropout", 2, 1,
         lambda r, c: torch.native_dropout(pool.deal(r, c), 0.1, True)),
        ("dropout", "dropout gradient", 2, 1,
         lambda r, c: torch.ops.aten.native_dropout_backward(
             pool.deal(r, c), masks[: r * c].view(r, c), 1.1)),
        ("reduction", "column sums", 1, 0, lambda r, c: pool.deal(r, c).sum(0)),
        ("reduction", "norm", 1, 0, lambda r, c: torch.linalg.vector_norm(pool.deal(r, c))),
    ]


def measure_streams(tables, type_, budget):
    pool = Pool(type_, 1 << 28)
    masks = torch.rand(1 << 26, device="cuda") > 0.1
    columns = ["rows", "columns", "bytes", "time us"]
    width = pool.data.element_size()
    for kind, operation, count, more, launch in streams(pool, masks):
        for rows, wide in ((64, 1024), (512, 1024), (1000, 1000), (4096, 1024), (4096, 4096),
                           (16384, 4096)):
            moved = int((count * width + more) * rows * wide)
            tables.tried(f"{type_} {operation} {rows} x {wide}", lambda: tables.add(
                kind, operation, type_, columns,
                [rows, wide, moved, gpu_time(lambda: launch(rows, wide), budget) * 1e6]))


def measure_losses(tables, type_, budget):
    """Rows of a vocabulary, as PyTorch computes them: a logarithm of a softmax, and a pick."""
    columns = ["rows", "columns", "bytes", "time us"]
    width = 4 if type_ == "fp32" else 2
    for rows, words in ((1024, 32000), (2048, 50304), (4096, 50304)):
        x = torch.randn(rows, words, dtype=TYPES[type_], device="cuda", requires_grad=True)
        labels = torch.randint(words, (rows,), device="cuda")
        loss = F.cross_entropy(x, labels)

        def forward():
            with torch.no_grad():
                F.cross_entropy(x, labels)

        def backward():
            torch.autograd.grad(loss, x, retain_graph=True)

        for operation, count, launch in (("cross-entropy", 2, forward), ("gradient", 2, backward)):
            tables.tried(operation, lambda: tables.add(
                "cross_entropy", operation, type_, columns,
                [rows, words, count * width * rows * words, gpu_time(launch, budget) * 1e6]))


def measure_tables(tables, type_, budget):
    """Embeddings, and steps of the fused Adam."""
    columns = ["rows", "columns", "bytes", "time us"]
    width = 4 if type_ == "fp32" else 2
    for rows, wide in ((1024, 1024), (4096, 2048), (16384, 4096)):
        table = torch.randn(50304, wide, dtype=TYPES[type_], device="cuda", requires_grad=True)
        tokens = torch.randint(50304, (rows,), device="cuda")
        tables.tried("embedding", lambda: tables.add(
            "embedding", "embedding", type_, columns, [rows, wide, 2 * width * rows * wide,
             gpu_time(lambda: F.embedding(tokens, table.detach()), budget) * 1e6]))
    if type_ != "fp32":
        return
    for rows, wide in ((1024, 1024), (4096, 4096), (16384, 4096)):
        weight = torch.nn.Parameter(torch.randn(rows, wide, device="cuda"))
        weight.grad = torch.randn_like(weight)
        adam = torch.optim.AdamW([weight], fused=True)
        tables.tried("Adam", lambda: tables.add(
            "optimizer", "fused AdamW", type_, columns,
            [rows, wide, 28 * rows * wide, gpu_time(adam.step, budget) * 1e6]))


# ---- times of the host


def host_time(call, times=40, rounds=15):
    """Seconds that a call takes the host, with room in the GPU's queue."""
    for _ in range(3):
        call()
    samples = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(times):
            call()
        samples.append((time.perf_counter() - begin) / times)
    torch.cuda.synchronize()
    return median(samples)


class MegatronLinear(torch.autograd.Function):
    """A linear layer as frameworks of tensor parallelism write it: a function of Python whose
    backward pass sums its input's gradient over ranks beside the weight's product."""

    @staticmethod
    def forward(context, x, weight, bias):
        context.save_for_backward(x, weight)
        context.with_bias = bias is not None
        y = torch.matmul(x, weight.t())
        return y if bias is None else y + bias

    @staticmethod
    def backward(context, dy):
        x, weight = context.saved_tensors
        dx = dy.matmul(weight)
        handle = torch.distributed.all_reduce(dx, async_op=True)
        rows = dy.reshape(-1, dy.shape[-1])
        dw = rows.t().matmul(x.reshape(-1, x.shape[-1]))
        db = rows.sum(0) if context.with_bias else None
        handle.wait()
        return dx, dw, db


class Reduced(torch.autograd.Function):
    """The sum over ranks behind a row-parallel layer."""

    @staticmethod
    def forward(context, x):
        torch.distributed.all_reduce(x)
        context.mark_dirty(x)
        return x

    @staticmethod
    def backward(context, dy):
        return dy


def gpt_layer(h, tokens, heads_, linear, reduced):
    """One layer of a GPT, forward: (batch, tokens, h) -> the same. And its parameters."""
    def parameter(*shape):
        return torch.nn.Parameter(0.02 * torch.randn(*shape, dtype=torch.bfloat16, device="cuda"))

    norms = [torch.nn.LayerNorm(h).to("cuda", torch.bfloat16) for _ in range(2)]
    weights = [parameter(3 * h, h), parameter(h, h), parameter(4 * h, h), parameter(h, 4 * h)]
    biases = [parameter(w.shape[0]) for w in weights]
    later = torch.ones(tokens, tokens, dtype=torch.bool, device="cuda").triu(1)
    size = h // heads_

    def forward(x):
        batch = x.shape[0]
        rows = linear(norms[0](x), weights[0], biases[0])
        rows = rows.view(batch, tokens, heads_, 3 * size).transpose(1, 2)
        q, k, v = rows.split(size, -1)
        scores = (torch.matmul(q, k.transpose(-2, -1)) * size**-0.5).masked_fill(later, -1e4)
        shares = F.dropout(torch.softmax(scores, -1), 0.1)
        mixed = torch.matmul(shares, v).transpose(1, 2).reshape(batch, tokens, h)
        x = x + F.dropout(reduced(linear(mixed, weights[1], biases[1])), 0.1)
        wide = F.gelu(linear(norms[1](x), weights[2], biases[2]), approximate="tanh")
        return x + F.dropout(reduced(linear(wide, weights[3], biases[3])), 0.1)

    parameters = weights + biases + [p for norm in norms for p in norm.parameters()]
    return forward, parameters


class HostTimes:
    def __init__(self, file, header):
        self.file, self.content = file, dict(header, times=[])

    def add(self, name, seconds, **more):
        self.content["times"].append(dict(name=name, us=round(seconds * 1e6, 3), **more))

    def tried(self, name, what):
        try:
            what()
        except Exception as error:
            self.content["times"].append({"name": name, "error": str(error)[:200]})

    def write(self):
        with open(self.file, "w", encoding="utf-8") as stream:
            json.dump(self.content, stream, indent=1)

    def both_passes(self, name, function, inputs, chain):
        """A chain of calls, forward alone and with its backward pass: a call of each takes ..."""
        def forward():
            y = inputs[0]
            for _ in range(chain):
                y = function(y, *inputs[1:])
            return y

        def whole():
            y = forward()
            y.backward(grown)

        grown = torch.randn_like(forward())
        alone = host_time(forward, times=4) / chain
        both = waiting_time(whole) / chain
        self.add(name, alone, part="forward")
        self.add(name, both - alone, part="backward")


def waiting_time(call, rounds=15):
    """Seconds of a call and of all that it had the GPU do: a backward pass returns only then."""
    samples = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        samples.append(time.perf_counter() - begin)
    return median(samples)


def measure_operators(times):
    def tensor(*shape):
        return torch.randn(*shape, dtype=torch.bfloat16, device="cuda", requires_grad=True)

    h, rows = 64, 32
    x, weight, bias = tensor(1, rows, h), tensor(h, h), tensor(h)
    batch = tensor(4, rows, rows)
    norm = torch.nn.LayerNorm(h).to("cuda", torch.bfloat16)
    module = torch.nn.Linear(h, h).to("cuda", torch.bfloat16)
    q = tensor(1, 4, rows, 64)

    def attention(y, k, v):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(y, k, v, is_causal=True)

    for name, function, inputs in [
        ("add", lambda y, other: y + other, [x, x]),
        ("multiply by a number", lambda y: y * 0.5, [x]),
        ("linear, a module", module, [x]),
        ("linear", F.linear, [x, weight, bias]),
        ("linear, a function of Python with its sum over ranks", MegatronLinear.apply,
         [x, weight, bias]),
        ("add a number, and a sum over ranks, a function of Python",
         lambda y: Reduced.apply(y + 1), [x]),
        ("batch of products", torch.matmul, [batch, batch]),
        ("layer norm, a module", norm, [x]),
        ("RMS norm", lambda y: F.rms_norm(y, (h,)), [x]),
        ("gelu", lambda y: F.gelu(y, approximate="tanh"), [x]),
        ("dropout", lambda y: F.dropout(y, 0.1), [x]),
        ("softmax", lambda y: torch.softmax(y, -1), [x]),
        ("transpose and copy", lambda y: y.transpose(1, 2).contiguous(), [batch]),
        ("attention, FlashAttention-2", attention, [q, q, q]),
    ]:
        times.tried(name, lambda: times.both_passes(name, function, inputs, 20))
    tiny = torch.zeros(1, device="cuda")
    times.add("all-reduce of one rank", host_time(lambda: torch.distributed.all_reduce(tiny)))
    times.add("all-reduce of one rank, asked for and waited for", host_time(
        lambda: torch.distributed.all_reduce(tiny, async_op=True).wait()))
    times.add("read one number", host_time(tiny.item))
    times.add("record an event", host_time(torch.cuda.Event().record))
    times.add("empty tensor", host_time(lambda: torch.empty(16, device="cuda")))


def measure_layers(times):
    tokens, heads_ = 64, 4
    for name, linear, reduced in (
        ("GPT layer, PyTorch's linear layers", F.linear, lambda y: y),
        ("GPT layer, functions of Python with sums over ranks", MegatronLinear.apply,
         Reduced.apply),
    ):
        forward, parameters = gpt_layer(256, tokens, heads_, linear, reduced)
        x = torch.randn(1, tokens, 256, dtype=torch.bfloat16, device="cuda", requires_grad=True)
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        times.both_passes(name, forward, [x], 8)


def measure_steps(times):
    count = 192
    for name, options in (("one tensor after the other", {"foreach": False}),
                          ("multi-tensor", {"foreach": True}), ("fused", {"fused": True})):
        weights = [torch.nn.Parameter(torch.randn(64, 64, device="cuda")) for _ in range(count)]
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        adam = torch.optim.AdamW(weights, **options)
        times.add(f"AdamW step, {name}, a tensor", waiting_time(adam.step) / count)
    times.add("clip_grad_norm_, a tensor", waiting_time(
        lambda: torch.nn.utils.clip_grad_norm_(weights, 1.0)) / count)
    halves = [torch.empty(64, 64, dtype=torch.bfloat16, device="cuda") for _ in range(count)]

    def copied():
        with torch.no_grad():
            for half, weight in zip(halves, weights):
                half.copy_(weight)

    times.add("copy of masters, a tensor", waiting_time(copied) / count)


# ---- clocks under load


def measure_clocks(seconds):
    """TFLOP/s of one product, time after time, with clock and power as the driver says."""
    found = []
    for n in (8192, 4096, 2048):
        a, b = (torch.randn(n, n, dtype=torch.bfloat16, device="cuda") for _ in range(2))
        c = torch.empty_like(a)
        begin, times = time.perf_counter(), max(1, int(0.1 * 6e14 / (2 * n**3)))
        while time.perf_counter() - begin < seconds:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(times):
                torch.mm(a, b, out=c)
            end.record()
            said = nvidia_smi("clocks.sm,power.draw,temperature.gpu")
            torch.cuda.synchronize()
            rate = 2e-12 * n**3 * times / (start.elapsed_time(end) / 1e3)
            found.append({"n": n, "type": "bf16", "at_s": round(time.perf_counter() - begin, 2),
                          "tflops": round(rate, 1), "clock, power, temperature": said})
    return found


def nvidia_smi(what):
    ran = subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader", "--id=0"],
                         check=False, capture_output=True, text=True)
    return ran.stdout.strip()


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        names = [line.split(":")[1].strip() for line in stream if line.startswith("model name")]
    return f"{names[0] if names else 'unknown processor'}, {len(names)} cores"


def header_of(datasheet):
    with open(datasheet, encoding="utf-8") as stream:
        sheet = json.load(stream)
    device = {"gpu": torch.cuda.get_device_name(0), "architecture": sheet["architecture"],
              "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
              "peak": {t: sheet["peak"][t]["value"] for t in TYPES if t in sheet["peak"]},
              "memory_bandwidth": sheet["memory_bandwidth"]["value"]}
    software = f"driver {nvidia_smi('driver_version')}, PyTorch {torch.__version__}, CUDA "
    software += f"{torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    return {"schema": 1, "device": device, "host": f"{processor()}, {software}",
            "date": datetime.date.today().isoformat(), "source": "scripts/torch_kernels.py",
            "status": "measured",
            "note": "Medians. bytes: every operand counted once, as a file of "
                    "`calibrate measure` has them."}


class Parts:
    """What is measured, and the files of it."""

    def __init__(self, folder, header, budget, every):
        self.folder, self.header, self.budget, self.every = folder, header, budget, every
        self.begin = time.perf_counter()

    def file(self, name):
        return os.path.join(self.folder, name)

    def told(self, what):
        print(f"{time.perf_counter() - self.begin:6.1f} s  {what}", flush=True)

    def host(self):
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29511")
        torch.distributed.init_process_group("nccl", rank=0, world_size=1)
        times = HostTimes(self.file("host.json"), self.header)
        for what in (measure_operators, measure_layers, measure_steps):
            times.tried(what.__name__, lambda: what(times))
            times.write()
            self.told(what.__name__)
        torch.distributed.destroy_process_group()
        for one in times.content["times"]:
            print(one)

    def attention(self):
        tables = Tables(self.file("attention.json"), self.header)
        measure_attention(tables, Load())
        tables.write()
        self.told("attention")
        tables.tell_left_out()

    def kernels(self):
        tables = Tables(self.file("kernels.json"), self.header)
        for type_ in ("bf16", "fp32"):
            for what in (measure_streams, measure_losses, measure_tables):
                tables.tried(what.__name__, lambda: what(tables, type_, self.budget))
                tables.write()
            self.told(f"kernels that move memory, {type_}")
        tables.tell_left_out()

    def products(self):
        tables = Tables(self.file("products.json"), self.header)
        for type_, every in (("bf16", self.every), ("fp32", 7 * self.every)):
            measure_products(tables, type_, self.budget, every)
            tables.write()
            self.told(f"products, {type_}")
        tables.tell_left_out()

    def clocks(self):
        with open(self.file("clocks.json"), "w", encoding="utf-8") as stream:
            json.dump(dict(self.header, rates=measure_clocks(2.0)), stream, indent=1)
        self.told("clocks")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--datasheet", required=True)
    parser.add_argument("--parts", default="host,attention,kernels,products,clocks")
    parser.add_argument("--budget", type=float, default=0.05, help="seconds of a kernel's samples")
    parser.add_argument("--every", type=int, default=1, help="of products every so manieth")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    torch.manual_seed(1)
    parts = Parts(options.folder, header_of(options.datasheet), options.budget, options.every)
    for part in options.parts.split(","):
        getattr(parts, part)()


if __name__ == "__main__":
    sys.exit(main())
