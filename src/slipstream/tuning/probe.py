"""Run as a script in a process of its own: prints what PyTorch can use here, as JSON."""

import json
import re
from typing import Any


def facts() -> dict[str, Any]:
    """Version, kind and name of the first device, and its compute capability where it has one."""
    import torch

    found: dict[str, Any] = {
        "torch_version": [int(number) for number in re.findall(r"\d+", torch.__version__)[:2]],
        "device_kind": "cpu",
        "device": None,
        "compute_capability": None,
    }
    if torch.cuda.is_available():
        found["device_kind"] = "cuda" if torch.version.hip is None else "rocm"
        found["device"] = torch.cuda.get_device_name()
        found["compute_capability"] = list(torch.cuda.get_device_capability())
    elif torch.xpu.is_available():
        found["device_kind"] = "xpu"
        found["device"] = torch.xpu.get_device_name()
    elif torch.backends.mps.is_available():
        found["device_kind"] = "mps"
    return found


if __name__ == "__main__":
    print(json.dumps(facts()))
