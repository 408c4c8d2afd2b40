"""How long the whole analysis of a recording takes beside reading it, and how that grows with the recording.

    python benchmarks/analysis.py trace.json.gz                     # at 1, 4 and 16 times its length
    python benchmarks/analysis.py trace.json.gz --folds 1 --rounds 9

A recording is repeated in time: every copy begins after the one before, with ids and step numbers of its own. Each
figure is from processes of its own, the lengths taken in turn; medians are printed, with the least and the most.

- read: file -> tables, nothing cached;
- diagnose: all that `slipstream analyze` does with them, the report as text and as JSON included;
- graph: the dependency graph and the critical path;
- others: every other declared table that the diagnosis did not need.

Processor time is printed as well: on a machine that is busy with other things it is what can be compared.
"""

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

IDS = ("correlation", "External id", "external id", "Ev Idx", "Python id", "Python parent id", "Sequence number")
"""Arguments that number things; the copies must not share them."""
STEP_MARK = "ProfilerStep#"
PARTS = ("read", "diagnose", "graph", "others")


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--folds", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_measure(arguments.trace)))
        return 0
    found: dict[int, list[dict[str, float]]] = {fold: [] for fold in arguments.folds}
    with tempfile.TemporaryDirectory() as folder:
        paths = {fold: _repeated(arguments.trace, fold, Path(folder)) for fold in arguments.folds}
        # What is installed is compiled once; a first process does that here, and is not counted.
        compiled = Path(folder) / "compiled"
        _in_a_process(paths[arguments.folds[0]], compiled)
        for _ in range(arguments.rounds):
            for fold, path in paths.items():
                found[fold].append(_in_a_process(path, compiled))
    cores = len(os.sched_getaffinity(0))
    print(f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, ", end="")
    print(f"{arguments.rounds} rounds; median (least to most) in s, processor time in brackets")
    for fold, rounds in found.items():
        print(f"{fold} x: {rounds[0]['events']:,.0f} events, {rounds[0]['peak_mb']:,.0f} MB at most")
        for part in PARTS:
            print(f"  {part:10}{_summary([one[part] for one in rounds])}  [{_middle(rounds, f'{part}_cpu'):.2f}]")
        for what, parts in (("report", PARTS[:2]), ("report and graph", PARTS[:3]), ("everything", PARTS)):
            ratios = [sum(one[part] for part in parts) / one["read"] for one in rounds]
            busy = [sum(one[f"{part}_cpu"] for part in parts) / one["read_cpu"] for one in rounds]
            print(f"  read to {what}: {_summary(ratios)} x the read  [{statistics.median(busy):.2f}]")
    return 0


def _summary(values: list[float]) -> str:
    return f"{statistics.median(values):7.2f} ({min(values):.2f} to {max(values):.2f})"


def _middle(rounds: list[dict[str, float]], name: str) -> float:
    return statistics.median(one[name] for one in rounds)


def _measure(path: Path) -> dict[str, float]:
    """Times of one recording, in a process that does nothing else."""
    import slipstream
    from slipstream.model import NotEnoughData
    from slipstream.reports import render
    from slipstream.store import DERIVED, Report, Trace

    found: dict[str, float] = {}

    def timed(part: str, work: Callable[[], Any]) -> Any:
        wall, busy = time.perf_counter(), time.process_time()
        result = work()
        found[part], found[f"{part}_cpu"] = time.perf_counter() - wall, time.process_time() - busy
        return result

    def report_on(trace: Trace) -> Report:
        report = slipstream.diagnose(trace)
        for format in ("text", "json"):
            render(report, format)
        return report

    trace = timed("read", lambda: slipstream.load(path))
    report = timed("diagnose", lambda: report_on(trace))

    def ask(*names: str) -> None:
        for name in names:
            try:
                report.tables[name]
            except NotEnoughData:
                continue

    timed("graph", lambda: ask("graph_edges", "critical_path"))
    timed("others", lambda: ask(*(table.name for table in DERIVED)))
    found["events"] = trace.element_count
    found["peak_mb"] = _peak_kb() / 1024
    return found


def _peak_kb() -> int:
    """Most memory this process has held; what its parent held before it started one is not counted."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def _in_a_process(path: Path, compiled: Path) -> dict[str, float]:
    command = [sys.executable, __file__, str(path), "--one"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(compiled)}
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    result: dict[str, float] = json.loads(run.stdout)
    return result


def _repeated(trace: Path, fold: int, folder: Path) -> Path:
    """Write a recording several times in a row, as one."""
    data = trace.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    events = document["traceEvents"]
    timed = [event for event in events if event.get("ph") in ("X", "s", "f", "t", "i", "C") and "ts" in event]
    first = min(event["ts"] for event in timed)
    length = max(event["ts"] + event.get("dur", 0) for event in timed) - first + 1_000
    ids = 1 + max((int(value) for event in timed for value in _ids(event)), default=0)
    steps = sum(str(event.get("name", "")).startswith(STEP_MARK) for event in timed)
    for copy in range(1, fold):
        events += [_moved(event, copy * length, copy * ids, copy * steps) for event in timed]
    path = folder / f"{fold}x.json.gz"
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        json.dump(document, file)
    return path


def _ids(event: dict[str, Any]) -> list[int]:
    found = [value for name, value in event.get("args", {}).items() if name in IDS and isinstance(value, int)]
    return [*found, event["id"]] if isinstance(event.get("id"), int) else found


def _moved(event: dict[str, Any], later: float, ids: int, steps: int) -> dict[str, Any]:
    moved = {**event, "ts": event["ts"] + later}
    if isinstance(event.get("id"), int):
        moved["id"] = event["id"] + ids
    if "args" in event:
        moved["args"] = {
            name: value + ids if name in IDS and isinstance(value, int) else value
            for name, value in event["args"].items()
        }
    name = str(event.get("name", ""))
    if name.startswith(STEP_MARK):
        moved["name"] = f"{STEP_MARK}{int(name.removeprefix(STEP_MARK)) + steps}"
    return moved


if __name__ == "__main__":
    sys.exit(main())
