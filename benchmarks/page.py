"""How large the page of a large recording is, and how long a browser takes to load it.

    python benchmarks/page.py                     # a recording of 200,000 events is made
    python benchmarks/page.py trace.json.gz

Loading ends when the last chart of the page has been drawn with all of the page scrolled through; seven loads in a new
browser each, minimum, median and maximum. Needs Chromium and playwright.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import slipstream
from slipstream.reports import render
from slipstream.store import Trace

EVENTS = 200_000
LOADS = 7


def made(path: Path, count: int = EVENTS, steps: int = 5) -> None:
    """Training steps of ops with launches and kernels, nested in Python calls.

    Args:
        path: of the recording.
        count: events in it, about.
        steps: training steps.
    """
    events: list[dict[str, Any]] = []
    each = count // steps // 4
    step_us = 40 * each
    for step in range(steps):
        start = step * step_us
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{step}",
                "pid": 1,
                "tid": 1,
                "ts": start,
                "dur": step_us - 10,
            }
        )
        for number in range(each):
            at, name = start + number * 38, number % 60
            events += [
                {"ph": "X", "cat": "python_function", "name": f"model.py({name}): layer{name}", "pid": 1, "tid": 1,
                 "ts": at, "dur": 34, "args": {"Python id": len(events), "Python parent id": None}},
                {"ph": "X", "cat": "cpu_op", "name": f"aten::op{name}", "pid": 1, "tid": 1, "ts": at + 2, "dur": 28,
                 "args": {"External id": len(events)}},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 6,
                 "dur": 5, "args": {"correlation": len(events)}},
                {"ph": "X", "cat": "kernel", "name": f"kernel{name}", "pid": 0, "tid": 7, "ts": at + 14, "dur": 22,
                 "args": {"correlation": len(events), "stream": 7, "device": 0}},
            ]  # fmt: skip
    device = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": device, "traceEvents": events}))


def loaded(page: Path) -> float:
    """Seconds from asking for the page until all of its charts are drawn."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": 1400, "height": 900})
        began = time.perf_counter()
        tab.goto(page.as_uri())
        for chart in tab.locator(".chart").all():
            chart.scroll_into_view_if_needed()
            chart.locator(".plot-container").first.wait_for()
        took = time.perf_counter() - began
        browser.close()
    return took


def main() -> None:
    """Print size and times."""
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            path = Path(sys.argv[1])
        else:
            path = Path(folder, "trace.json")
            made(path)
        trace = slipstream.load(path)
        assert isinstance(trace, Trace)
        text = render(slipstream.diagnose(trace), "html")
        page = Path(folder, "report.html")
        page.write_text(text, encoding="utf-8")
        times = [loaded(page) for _ in range(LOADS)]
        print(f"{trace.element_count:,} events, page of {len(text.encode()) / 1e6:.1f} MB")
        print(f"drawn after {min(times):.2f} s ({statistics.median(times):.2f}, at most {max(times):.2f})")


if __name__ == "__main__":
    main()
