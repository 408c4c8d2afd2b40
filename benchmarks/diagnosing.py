"""How fast, and in how much memory, recordings are read and diagnosed.

    python benchmarks/diagnosing.py                   # made-up recordings of several sizes
    python benchmarks/diagnosing.py trace.json.gz ... # your own

Each figure is from processes of its own, the recordings taken in turn; the median, least and most are printed, since
one process tells little.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROUNDS = 5
SIZES = (10_000, 100_000, 500_000)


def main(arguments: list[str]) -> int:
    """Measure, and print a table."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(_measure(arguments[1])))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(name) for name in arguments] or [_made_up(size, Path(folder)) for size in SIZES]
        rounds: dict[Path, list[dict[str, float]]] = {path: [] for path in paths}
        for _ in range(ROUNDS):
            for path in paths:
                rounds[path].append(_in_a_process(path))
    print(f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, ", end="")
    print(f"Python {platform.python_version()}, {ROUNDS} rounds; median (least to most)")
    for path, found in rounds.items():
        print(f"{path.name}: {found[0]['events']:,.0f} events")
        for name, unit in (("read_s", "s"), ("diagnose_s", "s"), ("peak_mb", "MB")):
            values = [one[name] for one in found]
            middle, least, most = statistics.median(values), min(values), max(values)
            print(f"  {name.partition('_')[0]:10}{middle:9.2f} {unit}  ({least:.2f} to {most:.2f})")
    return 0


def _measure(path: str) -> dict[str, float]:
    import slipstream

    start = time.perf_counter()
    loaded = slipstream.load(path)
    traces = loaded if isinstance(loaded, list) else [loaded]
    read = time.perf_counter()
    for trace in traces:
        slipstream.diagnose(trace)
    done = time.perf_counter()
    return {
        "events": sum(trace.element_count for trace in traces),
        "read_s": read - start,
        "diagnose_s": done - read,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _in_a_process(path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", str(path)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def _made_up(size: int, folder: Path) -> Path:
    """A recording of a launch-bound job with about that many events."""
    sys.path.insert(0, str(ROOT / "tests"))
    from synthetic.jobs import launch_bound
    from synthetic.machine import execute
    from synthetic.writer import write

    events_per_kernel = 5  # op, call, kernel and both ends of the arrow
    return write(execute(launch_bound(10, size // 10 // events_per_kernel)), folder / f"{size}.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
