"""What the job's process tells the launcher: small files, each replaced in one go."""

from pathlib import Path
from typing import Literal

import msgspec

State = Literal["warming_up", "recording", "tracing_lines", "over"]
OutcomeCode = Literal["complete", "cut_short", "too_few_steps", "no_steps", "no_torch", "own_profiler", "failed"]


class Status(msgspec.Struct, kw_only=True):
    """State of the recording of one rank (``rank<r>/capture.json``)."""

    state: State = "warming_up"
    outcome_code: OutcomeCode | None = None
    """Null until the window has closed or cannot open any more."""
    outcome: str | None = None
    """The same in one sentence."""
    notes: list[str] = []
    """What was left out, and why."""
    torch_version: str | None = None
    device: str | None = None
    device_kind: str = "unknown"
    world_size: int | None = None
    user_package: str | None = None
    """Installed package whose module was started with -m: its code is the user's all the same."""
    steps: int = 0
    """Steps of the job when this was written."""
    first_recorded: int | None = None
    recorded: int = 0
    overhead_ns: int = 0
    """Time that opening, closing and writing took, all of it between steps."""
    rows_every: dict[str, int] = {}
    """Tables that were thinned: one of so many rows was kept (of the rows outside the window)."""


class Seen(msgspec.Struct, kw_only=True):
    """That some process of the job imported torch (``torch.json``)."""

    torch_version: str
    failure: str | None = None
    """Why the capture's parts could not be installed, or null."""


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Replace a small JSON file in one go."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(msgspec.json.encode(record))
    part.replace(path)
