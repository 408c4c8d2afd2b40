"""Capture, forecast and tuning on a real GPU, in less than five minutes, as one table.

    python benchmarks/gpu_check.py

Without a GPU it says so and ends with 0. Figures that are kept go to docs/gpu-results.md with hardware and versions.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

JOB = Path(__file__).parents[1] / "src" / "slipstream" / "demo" / "train_bert.py"
ARGUMENTS = ("--batch-size", "64", "--layers", "6", "--hidden-size", "512", "--heads", "8", "--vocab-size", "4096")
TREATMENTS = "trim_padding,fused_optimizer,matmul_precision"
TUNING_SECONDS = "150s"


def slipstream(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, with what it printed."""
    command = [sys.executable, "-m", "slipstream", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})


def captured(folder: Path) -> list[tuple[str, str]]:
    """What a recording of the job says of itself and of the job."""
    began = time.monotonic()
    run = slipstream("run", "-o", str(folder), str(JOB), "--steps", "60", *ARGUMENTS)
    rows = [("capture: exit status", str(run.returncode)), ("capture: whole job", f"{time.monotonic() - began:.0f} s")]
    findings = folder / "findings.json"
    if not findings.exists():
        return [*rows, ("capture: diagnosis", "none: " + run.stderr.strip()[-300:])]
    document = json.loads(findings.read_text())
    window = document["window"]
    steps = sorted(step["dur_ns"] for step in document["steps"])
    rows += [
        ("capture: grade", document["integrity"]["grade"]),
        ("capture: kernels", f"{document['totals']['kernels']:,}"),
        ("capture: kernels linked to a launch", f"{(document['integrity']['linked_kernel_share'] or 0) * 100:.1f} %"),
        ("capture: median step", f"{steps[len(steps) // 2] / 1e6:.2f} ms" if steps else "no steps"),
    ]
    if window["busy_ns"] is not None:
        rows.append(("capture: GPU busy", f"{window['busy_ns'] / (window['end_ns'] - window['start_ns']) * 100:.1f} %"))
    for finding in document["findings"][:5]:
        gain = finding["gain"]
        share = (
            "cannot tell" if gain is None else f"{gain['expected'] * 100:.1f} %{' at most' if gain['ceiling'] else ''}"
        )
        error = gain and gain["replay_error"]
        told = "" if error is None else f", replay error {error * 100:.2f} %"
        rows.append((f"forecast: {finding['code']}", share + told))
    return rows


def tuned(folder: Path) -> list[tuple[str, str]]:
    """What a short tuning measured."""
    run = slipstream(
        "tune", "--short", "--only", TREATMENTS, "--allow-semantic", "--time", TUNING_SECONDS, "--no-recording",
        "--folder", str(folder), "--tuned", str(folder / "tuned.toml"), "--format", "json",
        str(JOB), "--steps", "200", *ARGUMENTS,
    )  # fmt: skip
    if run.returncode:
        return [("tuning", "failed: " + run.stderr.strip()[-300:])]
    rows = []
    for one in json.loads(run.stdout)["tried"]:
        measured, numerics = one["measured"], one["numerics"]
        if measured is None or measured["gain"] is None:
            rows.append((f"tuning: {one['name']}", one["reason"] or (measured or {}).get("reason") or one["stage"]))
            continue
        gain = f"{measured['gain'] * 100:.1f} % less, {measured['pairs']} pairs, {measured['verdict']}"
        rows.append(
            (f"tuning: {one['name']}", f"{gain}; numerics {numerics['sameness'] if numerics else 'not checked'}")
        )
    return rows


def main() -> None:
    """Print the table."""
    import torch

    if not torch.cuda.is_available():
        print("no GPU here: nothing to check")
        return
    rows = [
        ("device", torch.cuda.get_device_name()),
        ("torch", f"{torch.__version__}, CUDA {torch.version.cuda}"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows += captured(Path(folder, "run"))
        rows += tuned(Path(folder, "tuning"))
    print("| what | figure |\n|---|---|")
    for name, figure in rows:
        print(f"| {name} | {' '.join(figure.split())} |")


if __name__ == "__main__":
    main()
