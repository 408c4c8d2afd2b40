"""How fast and how large: from a trace file to complete tables, against plain JSON and another reader.

Every measurement is a fresh process; the arms are interleaved, so that a busy machine hits all alike. Printed is
one table: wall time and growth of the peak memory over what the imports take, and how many times faster than
``gzip`` + ``json.loads`` slipstream is, with an interval over the repeats.

    python benchmarks/reading.py trace.json.gz ... [--synthetic-mb 1000] [--hta-python /path/to/python] [--repeats 5]
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MEASURE = """
import resource, sys, time
{imports}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
path = sys.argv[1]
before = peak()
begin = time.perf_counter()
{statement}
print(time.perf_counter() - begin, peak() - before)
"""
ARMS = {
    "gzip + json.loads": ("import gzip, json", "kept = json.loads(gzip.open(path).read())"),
    "slipstream": ("from slipstream.ingest import read", "kept = read(path)"),
    "slipstream, cached": ("from slipstream.ingest import read", "kept = read(path)"),
    "slipstream, cached, every table": (
        "from slipstream.ingest import read",
        "opened = read(path); kept = [opened.table(name) for name in opened]",
    ),
}
HTA = (
    "import os, logging\nlogging.disable(logging.CRITICAL)\nfrom hta.common.trace_parser import parse_trace_dataframe"
    "\nfrom hta.configs.parser_config import ParserConfig",
    "kept = parse_trace_dataframe(path, ParserConfig.get_default_cfg())",
)
BASE, FASTER = "gzip + json.loads", "slipstream"


def synthetic(path: Path, size: int) -> Path:
    """Write a trace of about ``size`` bytes that looks like training with shapes and stacks.

    Args:
        path: where to.
        size: bytes before compression.
    """
    written = number = 0
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{\n  "schemaVersion": 1,\n  "baseTimeNanoseconds": 1719853884000000000,\n  "traceEvents": [\n  ')
        while written < size:
            text = ",\n  ".join(_step_part(number))
            if written:
                file.write(",\n  ")
            written += file.write(text)
            number += 1
        file.write('\n  ],\n  "traceName": "synthetic.json"\n}\n')
    return path


def _step_part(number: int) -> list[str]:
    """An op, two Python calls, its launch, the flow and the kernel, as Kineto prints them."""
    ts = 4458676416431.397 + 25.3 * number
    shapes = [[64, 128 + number % 7, 768], [768, 768], []]
    events = [
        {"ph": "X", "cat": "python_function", "name": f"train.py({number % 40}): step", "pid": 7, "tid": 7, "ts": ts,
         "dur": 20.1, "args": {"Python parent id": number, "Python id": number + 1, "Ev Idx": number}},
        {"ph": "X", "cat": "python_function", "name": f"<built-in method linear of Tensor at {hex(number)}>", "pid": 7,
         "tid": 7, "ts": ts + 0.5, "dur": 19.1, "args": {"Python parent id": number, "Python id": number + 2}},
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op{number % 97}", "pid": 7, "tid": 7, "ts": ts + 1, "dur": 18.001,
         "args": {"External id": number, "Record function id": 0, "Sequence number": number, "Fwd thread id": 0,
                  "Concrete Inputs": ["", "", "1"], "Input type": ["float", "float", "Scalar"],
                  "Input Strides": [[98304, 768, 1], [768, 1], []], "Input Dims": shapes, "Ev Idx": number}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": ts + 3, "dur": 5.25,
         "args": {"External id": number, "cbid": 211, "correlation": number + 1}},
        {"ph": "s", "id": number + 1, "pid": 7, "tid": 7, "ts": ts + 3, "cat": "ac2g", "name": "ac2g"},
        {"ph": "X", "cat": "kernel", "name": f"void at::native::elementwise_kernel<{number % 300}, float>(int)",
         "pid": 0, "tid": 7, "ts": ts + 9, "dur": 6.4, "args": {
            "External id": number, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": number + 1,
            "registers per thread": 32, "shared memory": 0, "blocks per SM": 7.3, "warps per SM": 29.1,
            "grid": [5185, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 45}},
        {"ph": "f", "id": number + 1, "pid": 0, "tid": 7, "ts": ts + 9, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    ]  # fmt: skip
    for event in events:
        event["ts"] = round(float(str(event["ts"])), 3)
    return [json.dumps(event, indent=2).replace("\n", "\n  ") for event in events]


def measured(python: str, arm: tuple[str, str], path: Path) -> tuple[float, float] | str:
    """Seconds and bytes of one fresh process, or why it failed."""
    code = MEASURE.format(imports=arm[0], statement=arm[1])
    done = subprocess.run([python, "-c", code, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        return "failed: " + (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:70]
    seconds, grown = done.stdout.split()[-2:]
    return float(seconds), float(grown)


def cached_copy(path: Path, folder: Path) -> Path:
    """A run folder around the file, read once."""
    place = folder / f"{path.name}-run" / "rank0"
    place.mkdir(parents=True)
    (place.parent / "run.json").write_text("{}")
    (place / "trace.json.gz").write_bytes(path.read_bytes())
    measured(sys.executable, ARMS[FASTER], place.parent)
    return place.parent


def size_of(path: Path) -> int:
    """Bytes before compression."""
    total = 0
    with gzip.open(path) as file:
        while piece := file.read(1 << 24):
            total += len(piece)
    return total


def compared(path: Path, folder: Path, hta: str | None, repeats: int) -> list[str]:
    """Rows of the table for one file."""
    size = size_of(path)
    run = cached_copy(path, folder)
    arms = {name: (sys.executable, arm, run if "cached" in name else path) for name, arm in ARMS.items()}
    if hta:
        arms["HolisticTraceAnalysis"] = (hta, HTA, path)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
    failures: dict[str, str] = {}
    for _ in range(repeats):
        for name, (python, arm, target) in arms.items():
            result = measured(python, arm, target)
            if isinstance(result, str):
                failures[name] = result
            else:
                results[name].append(result)
    rows = []
    for name, runs in results.items():
        if not runs:
            rows.append(f"| {path.name} | {name} | {failures[name]} | | |")
            continue
        seconds = statistics.median(run[0] for run in runs)
        grown = statistics.median(run[1] for run in runs)
        ratios = sorted(base[0] / mine[0] for base, mine in zip(results[BASE], runs, strict=False))
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})" if name != BASE else "1"
        rows.append(
            f"| {path.name} ({size / 1e6:.0f} MB) | {name} | {seconds:.3f} s | {grown / size:.2f} x | {spread} |"
        )
    return rows


def two_at_once(files: list[Path], folder: Path, repeats: int) -> str:
    """How much reading two files in two processes gains over one after the other, as ``slipstream.load`` does it."""
    place = folder / "two"
    place.mkdir()
    for rank, file in enumerate(files):
        (place / f"rank{rank}-{file.name}").symlink_to(file.resolve())
    imports = "from slipstream.ingest import locate, read, read_all"
    arms = [
        (imports, "kept = [read(found) for found in locate(path)]"),
        (imports, "kept = read_all(locate(path), large_bytes=0)"),
    ]
    seconds: list[list[float]] = [[], []]
    for _ in range(repeats):
        for taken, arm in zip(seconds, arms, strict=True):
            result = measured(sys.executable, arm, place)
            if isinstance(result, str):
                return result
            taken.append(result[0])
    ratios = sorted(one / two for one, two in zip(*seconds, strict=True))
    one, two = (statistics.median(taken) for taken in seconds)
    return (
        f"{files[0].name} and {files[1].name}: one process {one:.2f} s, two {two:.2f} s, "
        f"{statistics.median(ratios):.2f} times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--synthetic-mb", type=int, default=0, help="also a generated file of that many MB")
    parser.add_argument("--hta-python", help="an interpreter that has HolisticTraceAnalysis (traceinsight)")
    parser.add_argument("--only-two", action="store_true", help="only the first and the last file at the same time")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slipstream-bench-") as name:
        folder = Path(name)
        files = list(options.files)
        if options.synthetic_mb:
            files.append(synthetic(folder / "synthetic.json.gz", options.synthetic_mb * 1_000_000))
        if not options.only_two:
            print("| file | reader | wall time | peak memory / size | times faster than json |\n|---|---|---|---|---|")
        for file in files if not options.only_two else ():
            print("\n".join(compared(file, folder, options.hta_python, options.repeats)), flush=True)
        if files:
            load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
            print(f"load {load}; {two_at_once([files[0], files[-1]], folder, options.repeats)}")


if __name__ == "__main__":
    main()
