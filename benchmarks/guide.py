"""The claims of the guide "PyTorch 2.9 performance tuning with the built-in profiler", measured on a CPU.

    python benchmarks/guide.py                  # 10 minutes
    python benchmarks/guide.py fusion --processes 4

Each example runs in fresh processes; in each its variants take turns, block by block, in an order drawn anew. A process
gives one ratio of medians; the table gives the mean of their logarithms with the 95 % interval of Student's t.
Prints the tables of docs/guide.md. The claim about BERT is benchmarks/bert.py's.
"""

import argparse
import functools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from slipstream.stats import t_interval

BLOCKS = 30
Variant = Callable[[], object]


def profiler() -> tuple[dict[str, Variant], int, dict[str, str]]:
    """A training step of a small network, bare and under the profiler."""
    from torch.profiler import ProfilerActivity, profile

    model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = torch.randn(128, 784), torch.randint(10, (128,))
    inner = 20

    def train() -> None:
        for _ in range(inner):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    class Profiled:
        """Started before and stopped after its block: starting and reading out are not what a step costs."""

        def __init__(self, **options: bool) -> None:
            self._options = options

        def __call__(self) -> None:
            train()

        def __enter__(self) -> None:
            self._profile = profile(activities=[ProfilerActivity.CPU], **self._options)
            self._profile.__enter__()

        def __exit__(self, *error: object) -> None:
            self._profile.__exit__(None, None, None)

    variants: dict[str, Variant] = {
        "bare": train,
        "under the profiler": Profiled(),
        "with shapes and memory": Profiled(record_shapes=True, profile_memory=True),
        "with shapes, memory and stacks": Profiled(record_shapes=True, profile_memory=True, with_stack=True),
    }
    return variants, inner, {}


def fusion() -> tuple[dict[str, Variant], int, dict[str, str]]:
    """A hundred times add and multiply; the guide's rewrite; the loop, compiled."""
    from torch.profiler import ProfilerActivity, profile

    start = torch.randn(256, 1024)
    bias, scale = torch.tensor(1.0), torch.tensor(2.0)

    def loop(x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            x = x + 1
            x = x * 2
        return x

    def rewritten(x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            x = x.add(bias).mul(scale)
        return x

    compiled = torch.compile(loop)
    functions = {"x + 1, x * 2": loop, "add(bias).mul(scale)": rewritten, "the loop, compiled": compiled}
    told = {}
    for name, function in functions.items():
        function(start)
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            function(start)
        names = [event.name for event in seen.events()]
        kernels = sum(name.startswith(("aten::add", "aten::mul")) for name in names)
        told[name] = f"{kernels} ops of ATen"

    return {name: functools.partial(function, start) for name, function in functions.items()}, 1, told


def batching() -> tuple[dict[str, Variant], int, dict[str, str]]:
    """64 samples: one by one, and as one batch."""
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    inputs = torch.randn(64, 512)

    def one_by_one() -> None:
        for row in inputs:
            model(row.unsqueeze(0)).sum().backward()

    def one_batch() -> None:
        model(inputs).sum().backward()

    return {"one by one": one_by_one, "one batch of 64": one_batch}, 64, {}


def accumulation() -> tuple[dict[str, Variant], int, dict[str, str]]:
    """64 samples to an optimizer step: at once, and accumulated over 4 and 16 micro-batches."""
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(64, 512)

    def step(micro: int) -> None:
        for part in inputs.chunk(micro):
            (model(part).square().mean() / micro).backward()
        optimizer.step()
        optimizer.zero_grad()

    return (
        {
            "64 at once": lambda: step(1),
            "4 micro-batches of 16": lambda: step(4),
            "16 micro-batches of 4": lambda: step(16),
        },
        64,
        {},
    )


EXAMPLES = {"profiler": profiler, "fusion": fusion, "batching": batching, "accumulation": accumulation}


def child(example: str) -> None:
    """Measure one example in this process; JSON on standard output."""
    torch.manual_seed(0)
    variants, inner, told = EXAMPLES[example]()
    for variant in variants.values():
        for _ in range(3):
            variant()
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(BLOCKS):
        order = [*variants]
        random.shuffle(order)
        for name in order:
            variant = variants[name]
            if hasattr(variant, "__enter__"):
                with variant:
                    times[name].append(timed(variant))
            else:
                times[name].append(timed(variant))
    medians = {name: statistics.median(values) / inner for name, values in times.items()}
    print(json.dumps({"medians": medians, "told": told}))


def timed(variant: Variant) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    variant()
    return time.perf_counter() - began


def measured(example: str, processes: int) -> None:
    """Print the table of one example."""
    runs = []
    for number in range(processes):
        print(f"\r\x1b[2K{example}: process {number + 1} of {processes}", end="", file=sys.stderr)
        command = [sys.executable, __file__, "--child", example]
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        runs.append(json.loads(run.stdout.splitlines()[-1]))
    print("\r\x1b[2K", end="", file=sys.stderr)
    base, *others = runs[0]["medians"]
    told = runs[0]["told"]
    said = f" ({told[base]})" if base in told else ""
    print(f"\n| {example}: {base}{said} = 1 | time | 95 % interval |\n|---|---|---|")
    for name in others:
        logs = np.array([math.log(run["medians"][name] / run["medians"][base]) for run in runs])
        low, high = t_interval(logs, 0.05)
        said = f" ({told[name]})" if name in told else ""
        print(
            f"| {name}{said} | {math.exp(logs.mean()):.3f} | {math.exp(low):.3f} to {math.exp(high):.3f} |", flush=True
        )


def main() -> None:
    """Measure all examples, or those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="(default: all)")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--child", choices=[*EXAMPLES], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child)
        return
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {Path(sys.executable).name} {sys.version.split()[0]}")
    for example in asked.examples or EXAMPLES:
        measured(example, asked.processes)


if __name__ == "__main__":
    main()
