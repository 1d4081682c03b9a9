#!/usr/bin/env python3
"""Trains the GPTs of a scenario with PyTorch on this machine's first GPU, and writes what that took.

    scripts/torch_reference.py SCENARIO [--plan] [--program build/release/stratagem] [-o FILE]

Every run of one GPU is trained in a process of its own: so many iterations to warm up, then so many
that are timed between CUDA events, one at each border. The file written is the scenario with
`measured` in each run, as `stratagem validate` reads it. `--plan` trains nothing and needs no
PyTorch: it prints what would be trained, or why a run would not.

The model is that of model/zoo/gpt.hpp. Weights, activations and gradients are in the scenario's
precision, the optimizer steps copies in fp32 (not autocast, which holds what stands between layers
in fp32); in fp16 the loss is scaled. Its number of parameters is compared with the program's, if
that is given, and with the model that was built.
"""

import argparse
import copy
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile

LEARNING_RATE = 1e-4
DROPOUT = 0.1
BYTES_OF_WEIGHT = {"fp16": 2, "bf16": 2, "fp32": 4, "tf32": 4}


class Refused(Exception):
    """Why a run cannot be trained here."""


# ---- what a scenario says


def layered(own, defaults):
    """An object with whatever it lacks taken from defaults, key by key."""
    if not (isinstance(own, dict) and isinstance(defaults, dict)):
        return own
    merged = {key: copy.deepcopy(value) for key, value in defaults.items() if key not in own}
    merged.update({key: layered(value, defaults.get(key)) for key, value in own.items()})
    return merged


def only(settings, known, where):
    """Refuses keys that would change what is trained."""
    for key in settings:
        if key not in known:
            raise Refused(f'{where} "{key}"')


def one(settings, keys, where):
    for key in keys:
        if settings.get(key, 1) != 1:
            raise Refused(f"{where} {key} {settings[key]}: one GPU alone")


def recompute_of(strategy):
    value = strategy.get("recompute", "none")
    if value not in ("none", "full"):
        raise Refused(f"recompute {json.dumps(value)}: none or full")
    return value


def config_of(run):
    """What is trained for a run, with all settings. Throws Refused."""
    if "plan" in run:
        raise Refused("a plan file")
    cluster, strategy = run.get("cluster", {}), run.get("strategy", {})
    if cluster.get("gpus") != 1:
        raise Refused("more than one GPU, or processors")
    degrees = ("tensor", "context", "dap", "pipeline", "data")
    one(strategy, degrees, "strategy")
    only(strategy, degrees + ("recompute",), "strategy")
    model, training = run["model"], run["training"]
    if model.get("family") != "gpt":
        raise Refused(f'family {model.get("family")}: gpt alone')
    only(
        model,
        ("family", "layers", "hidden", "heads", "sequence", "vocabulary", "intermediate")
        + ("activation", "dropout", "attention", "tied"),
        "model",
    )
    config = {
        "layers": model["layers"],
        "hidden": model["hidden"],
        "heads": model["heads"],
        "sequence": model["sequence"],
        "vocabulary": model["vocabulary"],
        "intermediate": model.get("intermediate", 4 * model["hidden"]),
        "activation": model.get("activation", "gelu"),
        "dropout": DROPOUT if model.get("dropout", True) else 0.0,
        "attention": model.get("attention", "unfused"),
        "tied": model.get("tied", True),
        "micro_batch": training["micro_batch"],
        "micro_batches": training["global_batch"] // training["micro_batch"],
        "precision": training["precision"],
        "optimizer": training["optimizer"],
        "recompute": recompute_of(strategy),
    }
    check(config, training)
    return config


def check(config, training):
    if training["global_batch"] % training["micro_batch"] != 0:
        raise Refused("a global batch that micro-batches do not divide")
    if config["hidden"] % config["heads"] != 0:
        raise Refused("heads that do not divide the hidden size")
    if config["precision"] not in BYTES_OF_WEIGHT:
        raise Refused(f'precision {config["precision"]}: {", ".join(BYTES_OF_WEIGHT)}')
    if config["optimizer"] not in ("adam", "adamw"):
        raise Refused(f'optimizer {config["optimizer"]}: adam or adamw')
    if config["attention"] == "fused" and BYTES_OF_WEIGHT[config["precision"]] != 2:
        raise Refused("fused attention in fp32")


def parameters_of(config):
    """Of the model as it is described, layer by layer."""
    hidden, width = config["hidden"], config["intermediate"]
    norm = 2 * hidden
    attention = (hidden * 3 * hidden + 3 * hidden) + (hidden * hidden + hidden)
    mlp = (hidden * width + width) + (width * hidden + hidden)
    embeddings = (config["vocabulary"] + config["sequence"]) * hidden
    head = norm + (0 if config["tied"] else config["vocabulary"] * hidden)
    return embeddings + config["layers"] * (2 * norm + attention + mlp) + head


def read_scenario(file):
    try:
        with open(file, encoding="utf-8") as stream:
            scenario = json.load(stream)
    except (OSError, ValueError) as error:
        sys.exit(f"{file}: {error}")
    if not isinstance(scenario, dict) or not isinstance(scenario.get("runs"), list):
        sys.exit(f'{file}: expected an object with "runs"')
    runs = [layered(run, scenario.get("defaults", {})) for run in scenario["runs"]]
    return scenario, runs


def parameters_by_program(program, file):
    """What the program counts on the device, by run: bytes of parameters over those of one."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        subprocess.run(
            [program, "simulate", file, "--no-remedies", "--json", report],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(report, encoding="utf-8") as stream:
            runs = json.load(stream)["runs"]
    found = {}
    for run in runs:
        size = BYTES_OF_WEIGHT.get(run["resolved"]["training"]["precision"])
        if size and run["gpus"] == 1 and "memory_breakdown_bytes" in run:
            found[run["name"]] = run["memory_breakdown_bytes"]["parameters"] / size
    return found


# ---- training; what follows is only called where there is PyTorch


def build(torch, config):
    """The model of model/zoo/gpt.hpp, in fp32 on the GPU."""
    nn, functional = torch.nn, torch.nn.functional
    from torch.utils.checkpoint import checkpoint

    if config["attention"] == "fused":
        from torch.nn.attention import SDPBackend, sdpa_kernel
    heads, rate = config["heads"], config["dropout"]
    head = config["hidden"] // heads

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            hidden, width = config["hidden"], config["intermediate"]
            self.input_norm = nn.LayerNorm(hidden)
            self.qkv = nn.Linear(hidden, 3 * hidden)
            self.projection = nn.Linear(hidden, hidden)
            self.mlp_norm = nn.LayerNorm(hidden)
            self.fc1 = nn.Linear(hidden, width)
            self.fc2 = nn.Linear(width, hidden)
            if config["attention"] != "fused":
                tokens = config["sequence"]
                later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
                self.register_buffer("later", later, persistent=False)

        def core(self, q, k, v):
            """(batch, heads, tokens, head) each."""
            if config["attention"] == "fused":
                with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                    return functional.scaled_dot_product_attention(
                        q, k, v, dropout_p=rate, is_causal=True
                    )
            scores = torch.matmul(q, k.transpose(-2, -1)) * head**-0.5
            scores = scores.masked_fill(self.later, float("-inf"))
            shares = functional.dropout(torch.softmax(scores, -1), rate)
            return torch.matmul(shares, v)

        def attention(self, x):
            batch, tokens, hidden = x.shape
            # A head's query, key and value lie side by side, as model/zoo/gpt.cpp has them.
            rows = self.qkv(x).view(batch, tokens, heads, 3 * head).transpose(1, 2)
            mixed = self.core(*rows.split(head, -1))
            return self.projection(mixed.transpose(1, 2).reshape(batch, tokens, hidden))

        def mlp(self, x):
            wide = self.fc1(x)
            if config["activation"] == "gelu":
                return self.fc2(functional.gelu(wide, approximate="tanh"))
            return self.fc2(functional.relu(wide))

        def forward(self, x):
            x = x + functional.dropout(self.attention(self.input_norm(x)), rate)
            return x + functional.dropout(self.mlp(self.mlp_norm(x)), rate)

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            hidden = config["hidden"]
            self.words = nn.Embedding(config["vocabulary"], hidden)
            self.positions = nn.Parameter(torch.empty(config["sequence"], hidden))
            self.layers = nn.ModuleList(Layer() for _ in range(config["layers"]))
            self.final_norm = nn.LayerNorm(hidden)
            if not config["tied"]:
                self.logits = nn.Linear(hidden, config["vocabulary"], bias=False)

        def forward(self, tokens, labels):
            x = functional.dropout(self.words(tokens) + self.positions, rate)
            for layer in self.layers:
                if config["recompute"] == "full":
                    x = checkpoint(layer, x, use_reentrant=False)
                else:
                    x = layer(x)
            table = self.words.weight if config["tied"] else self.logits.weight
            logits = functional.linear(self.final_norm(x), table)
            return functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())

    model = Gpt().cuda()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    return model


class Trainer:
    """A model, its optimizer, and one iteration of them after the other."""

    def __init__(self, torch, config):
        self.torch, self.config = torch, config
        types = {"fp16": torch.float16, "bf16": torch.bfloat16}
        self.model = build(torch, config)
        counted = sum(parameter.numel() for parameter in self.model.parameters())
        if counted != parameters_of(config):
            raise RuntimeError(f"built {counted} parameters, not {parameters_of(config)}")
        self.masters = None
        stepped = list(self.model.parameters())
        if config["precision"] in types:
            stepped = [torch.nn.Parameter(weight.detach().clone()) for weight in stepped]
            self.masters = stepped
            self.model.to(types[config["precision"]])
        torch.backends.cuda.matmul.allow_tf32 = config["precision"] == "tf32"
        made = torch.optim.AdamW if config["optimizer"] == "adamw" else torch.optim.Adam
        self.optimizer = made(stepped, lr=LEARNING_RATE, fused=True)
        # A scale that gradients of a fresh model bear: no timed step is to be skipped.
        self.scaler = torch.amp.GradScaler(
            "cuda", init_scale=1024.0, enabled=config["precision"] == "fp16"
        )
        shape = (config["micro_batches"], config["micro_batch"], config["sequence"] + 1)
        text = torch.randint(config["vocabulary"], shape, device="cuda")
        self.tokens, self.labels = text[..., :-1].contiguous(), text[..., 1:].contiguous()
        self.loss = None

    def iterate(self):
        for tokens, labels in zip(self.tokens, self.labels):
            loss = self.model(tokens, labels)
            self.scaler.scale(loss / self.config["micro_batches"]).backward()
            self.loss = loss.detach()
        self.step()

    def step(self):
        """Without waiting for the GPU. Gradients are freed: the next backward pass makes its own."""
        weights = list(self.model.parameters())
        if self.masters is not None:
            for weight, master in zip(weights, self.masters):
                master.grad = weight.grad.float()
                weight.grad = None
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if self.masters is not None:
            with self.torch.no_grad():
                for weight, master in zip(weights, self.masters):
                    weight.copy_(master)


def train(config, warm_up, steps):
    """Times in seconds and peaks in bytes. Where it does not fit, only that."""
    import torch

    torch.manual_seed(1)
    try:
        trainer = Trainer(torch, config)
        for _ in range(warm_up):
            trainer.iterate()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        scale = trainer.scaler.get_scale()
        borders = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        borders[0].record()
        for border in borders[1:]:
            trainer.iterate()
            border.record()
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError as error:
        return {"fits": False, "error": str(error).splitlines()[0]}
    loss = float(trainer.loss)
    if loss != loss or abs(loss) == float("inf"):
        raise RuntimeError(f"the loss is {loss}")
    if trainer.scaler.get_scale() < scale:
        raise RuntimeError("a timed step was skipped, since the scaled loss was too large")
    return {
        "fits": True,
        "times": [a.elapsed_time(b) / 1e3 for a, b in zip(borders, borders[1:])],
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "loss": loss,
    }


def described():
    """The GPU, and with driver and versions what `source` says of it."""
    import torch

    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    gpu = torch.cuda.get_device_name(0)
    versions = f"driver {driver}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}"
    return {"gpu": gpu, "text": f"{gpu}, {versions}"}


def in_child(config, arguments):
    """What a process of its own says of a config, or with none of the GPU: nothing of one run is left
    in the GPU's memory when the next one begins."""
    words = [sys.executable, os.path.abspath(__file__), "--child", json.dumps(config)]
    words += ["--warm-up", str(arguments.warm_up), "--steps", str(arguments.steps)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError((ran.stderr.strip().splitlines() or ["no word"])[-1])
    return json.loads(ran.stdout.strip().splitlines()[-1])


# ---- what is written


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def measured_of(result, source):
    """The object `measured` of a run."""
    def figure(value):
        return {"value": value, "provenance": "measured", "source": source}

    if not result["fits"]:
        return {"fits": figure(False)}
    return {
        "iteration_time": figure(f'{median(result["times"]) * 1e3:.4f} ms'),
        "peak_allocated": figure(f'{result["allocated"]} B'),
        "peak_reserved": figure(f'{result["reserved"]} B'),
        "fits": figure(True),
    }


def moved(scenario, file, output):
    """The scenario with its files named as seen from another folder."""
    scenario = copy.deepcopy(scenario)
    scenario.pop("$schema", None)  # for editors, and seen from elsewhere too
    source, target = os.path.dirname(os.path.abspath(file)), os.path.dirname(os.path.abspath(output))

    def path(name, folder):
        if not name.endswith(".json"):
            name = os.path.join(folder, name + ".json")
        return os.path.relpath(os.path.join(source, name), target)

    for settings in [scenario.get("defaults", {})] + scenario["runs"]:
        for key, folder in (("profile", "profiles"), ("stack", "stacks"), ("plan", "plans")):
            if key in settings:
                settings[key] = path(settings[key], folder)
        if "node" in settings.get("cluster", {}):
            settings["cluster"]["node"] = path(settings["cluster"]["node"], "nodes")
    return scenario


def chip_of(name):
    """"H200" of "NVIDIA H200 SXM5 141 GB"."""
    found = re.search(r"\b(?:GH|GB|[A-Z])\d{2,3}\b", name)
    return found.group(0) if found else name


def check_gpu(found, runs, file):
    """Refuses to write what one GPU took beside the prediction for another."""
    for run in runs:
        name = run["profile"]
        name = name if name.endswith(".json") else os.path.join("profiles", name + ".json")
        with open(os.path.join(os.path.dirname(file), name), encoding="utf-8") as stream:
            profile = json.load(stream)["gpu"]
        if chip_of(profile) != chip_of(found):
            sys.exit(f'torch_reference: run "{run["name"]}" is of {profile}, this is {found}')


def plan(runs, counted):
    """Prints what would be trained; False where the program counts other parameters."""
    agree = True
    for run in runs:
        try:
            config = config_of(run)
        except KeyError as missing:
            sys.exit(f'{run.get("name", "a run")}: expected the key {missing}')
        except Refused as why:
            print(f'{run["name"]}: not trained: {why}')
            continue
        parameters = parameters_of(config)
        shape = f'{config["micro_batches"]} x {config["micro_batch"]} x {config["sequence"]} tokens'
        print(
            f'{run["name"]}: {parameters} parameters, {shape}, {config["precision"]}, '
            f'{config["attention"]} attention, recompute {config["recompute"]}'
        )
        if counted is not None and counted.get(run["name"]) != parameters:
            agree = False
            print(f'{run["name"]}: the program counts {counted.get(run["name"])} parameters')
    return agree


def measure(arguments, scenario, runs):
    try:
        device = in_child(None, arguments)
    except RuntimeError as error:
        sys.exit(f"torch_reference: no GPU with PyTorch: {error}")
    configs = {}
    for run in runs:
        try:
            configs[run["name"]] = config_of(run)
        except Refused:
            pass
    check_gpu(device["gpu"], [run for run in runs if run["name"] in configs], arguments.scenario)
    today = datetime.date.today().isoformat()
    source = (
        f"scripts/torch_reference.py, {today}: {device['text']}; median of "
        f"{arguments.steps} iterations after {arguments.warm_up}"
    )
    written = moved(scenario, arguments.scenario, arguments.output)
    failed = []
    for run in written["runs"]:
        name = run["name"]
        if name not in configs:
            continue
        try:
            result = in_child(configs[name], arguments)
        except RuntimeError as error:
            failed.append(name)
            print(f"{name}: FAILED: {error}", flush=True)
            continue
        run["measured"] = measured_of(result, source)
        shown = {key: value["value"] for key, value in run["measured"].items()}
        print(f"{name}: {json.dumps(shown)}", flush=True)
        write(written, arguments.output)  # what was measured stays, whatever follows
    return not failed


def write(scenario, file):
    with open(file + ".part", "w", encoding="utf-8") as stream:
        json.dump(scenario, stream, indent=2)
        stream.write("\n")
    os.replace(file + ".part", file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario", nargs="?", help="scenario file of Stratagem")
    parser.add_argument("--plan", action="store_true", help="print what would be trained")
    parser.add_argument("--program", help="stratagem, whose numbers of parameters are compared")
    parser.add_argument("--warm-up", type=int, default=10, help="iterations before those timed")
    parser.add_argument("--steps", type=int, default=20, help="iterations that are timed")
    parser.add_argument("-o", "--output", help="the scenario to write, with what was measured")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        config = json.loads(arguments.child)
        result = train(config, arguments.warm_up, arguments.steps) if config else described()
        print(json.dumps(result))
        return 0
    if not arguments.scenario:
        parser.error("which scenario?")
    scenario, runs = read_scenario(arguments.scenario)
    counted = None
    if arguments.program:
        counted = parameters_by_program(arguments.program, arguments.scenario)
    if not plan(runs, counted):
        return 1
    if arguments.plan:
        return 0
    if not arguments.output or os.path.abspath(arguments.output) == os.path.abspath(
        arguments.scenario
    ):
        parser.error("-o names a file other than the scenario")
    return 0 if measure(arguments, scenario, runs) else 1


if __name__ == "__main__":
    sys.exit(main())
