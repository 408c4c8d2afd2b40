"""Run as a script in a process of its own: prints what PyTorch says of itself, as JSON.

A broken PyTorch may end the process or never return; `slipstream doctor` survives both.
"""

import json
import tempfile
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """Versions, devices, threads, and whether a device's kernels can be recorded (null without a device)."""
    import torch

    found: dict[str, Any] = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "threads": torch.get_num_threads(),
        "devices": [],
        "kernels_recorded": None,
    }
    if torch.cuda.is_available():
        found["devices"] = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
        found["kernels_recorded"] = _kernels_recorded(torch)
    return found


def _kernels_recorded(torch: Any) -> bool:
    """Whether the profiler sees a kernel that certainly ran."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    numbers = torch.ones(1024, device="cuda")
    with torch.profiler.profile(activities=activities) as profiler:
        numbers.mul_(2)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    return any(event.get("cat") == "kernel" for event in events)


if __name__ == "__main__":
    print(json.dumps(facts()))
