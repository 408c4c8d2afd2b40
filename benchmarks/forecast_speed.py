"""How long the dependency graph and its replay take on a large recording, and twenty what-ifs on one of its steps.

    python benchmarks/forecast_speed.py            # a recording of a million events is made
    python benchmarks/forecast_speed.py --events 200000

Each in a fresh process, three times; memory is what the process held at most, less what it held once the recording had
been read. Absolute times of this machine: for orders of magnitude.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from page import made

import slipstream
from slipstream.analysis import tables_of
from slipstream.analysis.graph import graph_of
from slipstream.forecast import gain_of, replay_of, scaled
from slipstream.store import Trace

WHAT_IFS = 20


def child(path: str) -> None:
    """Measure in this process; JSON on standard output."""
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    tables = tables_of(trace)
    for name in ("window", "device_work", "op_tree", "idle_spans"):
        tables.row("window") if name == "window" else tables[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    graph = graph_of(tables)
    graph_s = time.perf_counter() - began
    began = time.perf_counter()
    replay = replay_of(tables)
    replay_s = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: dict[str, Any] = {
        "events": trace.element_count,
        "tasks": len(graph.nodes),
        "graph_s": graph_s,
        "replay_s": replay_s,
        "more_mb": (peak - before) / 1024,
        "peak_mb": peak / 1024,
        "error": replay.error,
    }
    if len(sys.argv) > 2 and sys.argv[-1] == "--what-ifs":
        began = time.perf_counter()
        for number in range(WHAT_IFS):
            tasks = np.arange(number, len(graph.nodes), WHAT_IFS, dtype=np.int64)
            gain_of(replay, [scaled(tasks, (0.9, 0.5, 0.1), "as asked")])
        found["what_ifs_s"] = time.perf_counter() - began
    print(json.dumps(found))


def main() -> None:
    """Print the figures."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large, step = Path(folder, "large.json"), Path(folder, "step.json")
        made(large, asked.events)
        made(step, asked.events // 20, steps=1)
        for name, path, more in (("window of five steps", large, []), ("one step", step, ["--what-ifs"])):
            runs = []
            for _ in range(3):
                command = [sys.executable, __file__, "--child", str(path), *more]
                run = subprocess.run(command, capture_output=True, text=True, check=True)
                runs.append(json.loads(run.stdout))
            first = runs[0]
            print(f"{name}: {first['events']:,} events, {first['tasks']:,} tasks, replay error {first['error']:.2%}")
            for key, word in (("graph_s", "graph"), ("replay_s", "replay"), ("what_ifs_s", f"{WHAT_IFS} what-ifs")):
                if key in first:
                    print(f"  {word}: {', '.join(f'{run[key]:.2f}' for run in runs)} s")
            more, peak = (max(run[key] for run in runs) for key in ("more_mb", "peak_mb"))
            print(f"  memory: {more:.0f} MB more, {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
