"""The folder that one recorded run leaves behind. Self-contained: it can be moved and analysed elsewhere.

::

    <folder>/run.json                     RunInfo
    <folder>/rank<r>/trace.json.gz        the recorded window (Kineto)
    <folder>/rank<r>/<table>.parquet      measured tables; positions are absolute, in epoch ns
    <folder>/rank<r>/places.json.gz       one more step, recorded while lines were traced
    <folder>/rank<r>/lines.parquet        the lines of that step (see LINES)
    <folder>/rank<r>/tables/*.parquet     cache of what was read from the trace
    <folder>/findings.json                the diagnosis
    <folder>/job.json, torch.json, rank<r>/capture.json    what launcher and job told each other
"""

from pathlib import Path

import msgspec
import polars as pl

from slipstream.model import FORMAT_VERSION
from slipstream.store.column import Table, column
from slipstream.store.recorded import TEXT

LINES = Table(
    name="lines",
    kind="measured",
    meaning="Raw line events of the step that was traced line by line; kept in the run folder only.",
    columns=(
        column("ts_ns", pl.Int64, "when the line began, absolute epoch ns", "ns"),
        column("thread_id", pl.Int64, "native id of the thread"),
        column("file", TEXT, "file as Python rows of the trace write it"),
        column("function", TEXT, "function"),
        column("def_line", pl.Int32, "line of the def"),
        column("line", pl.Int32, "line; -1: the function returned"),
    ),
)


class RunInfo(msgspec.Struct, kw_only=True):
    """What ``run.json`` holds."""

    format_version: int = FORMAT_VERSION
    command: list[str]
    """The job as it was started: script or -m module, and its arguments."""
    working_directory: str
    started_utc: str
    """ISO 8601."""
    slipstream_version: str
    python_version: str
    torch_version: str | None = None
    device: str | None = None
    device_kind: str = "unknown"
    host: dict[str, str | int | float | None] = {}
    """Facts of the machine: cpu, cores allowed, memory_bytes, platform."""
    options: dict[str, str | int | float | bool | None] = {}
    world_size: int | None = None
    packages: list[str] = []
    """Top-level import names of all installed distributions: code outside them and outside the standard
    library is the user's."""
    exit_status: int | None = None
    """Exit status of the job, negative for a signal; null while it runs or when the launcher was killed."""
    outcome: str | None = None
    """What became of the recording, in one sentence: window complete, cut short and why, or never opened."""
    outcome_code: str | None = None
    """complete, cut_short, too_few_steps, no_steps, no_torch, own_profiler or failed."""


class RunFolder:
    """Paths inside a run folder, and its ``run.json``.

    Args:
        root: the folder; it need not exist yet.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def info_path(self) -> Path:
        """``run.json``."""
        return self.root / "run.json"

    @property
    def findings_path(self) -> Path:
        """``findings.json``."""
        return self.root / "findings.json"

    @property
    def report_path(self) -> Path:
        """The same as a page for the browser."""
        return self.root / "report.html"

    def rank(self, rank: int) -> Path:
        """Folder of one rank."""
        return self.root / f"rank{rank}"

    def ranks(self) -> list[int]:
        """Ranks that have a folder, in order."""
        found = (path.name.removeprefix("rank") for path in self.root.glob("rank*") if path.is_dir())
        return sorted(int(name) for name in found if name.isdigit())

    def read_info(self) -> RunInfo:
        """Read ``run.json``.

        Raises:
            OSError: it cannot be read.
            msgspec.ValidationError: it is not what slipstream writes.
        """
        return msgspec.json.decode(self.info_path.read_bytes(), type=RunInfo)

    def write_info(self, info: RunInfo) -> None:
        """Write ``run.json`` in one go, so that a killed job never leaves half of it."""
        self.root.mkdir(parents=True, exist_ok=True)
        part = self.info_path.with_suffix(".json.part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(info), indent=2))
        part.replace(self.info_path)
