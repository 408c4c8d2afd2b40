"""One rank's part of the run folder, owned by the process that trains as that rank."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from slipstream.capture.measurements import Measurements
from slipstream.capture.status import OutcomeCode, Seen, State, Status, write_record

if TYPE_CHECKING:
    from slipstream.capture.line_tracing import LineTracer
    from slipstream.capture.writing import Writer

_RANK_NAMES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


class RankFolder:
    """Where a training process writes; nothing is there before ``claim``.

    Args:
        root: the run folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._writer: Writer | None = None
        self.path = root
        self.status = Status(torch_version=str(torch.__version__))

    def claim(self) -> bool:
        """Become the process that writes for its rank; False: another one already does."""
        rank, self.status.world_size = rank_of_this_process()
        self.path = self._root / f"rank{rank}"
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            return False
        # Loaded now, between two steps of the warm-up, rather than when the interpreter shuts down.
        from slipstream.capture.writing import Writer

        self._writer = Writer(self.path)
        return True

    def tell(
        self, state: State | None = None, outcome_code: OutcomeCode | None = None, outcome: str | None = None
    ) -> None:
        """Write the status, with whatever of it changes."""
        if state is not None:
            self.status.state = state
        if outcome_code is not None:
            self.status.outcome_code = outcome_code
            self.status.outcome = outcome
        if self._writer is not None:
            write_record(self.path / "capture.json", self.status)

    def tell_failure(self, outcome: str) -> None:
        """Say that the recording failed, wherever that can still be written."""
        try:
            self.tell("over", "failed", outcome)
        except OSError:
            # The folder is gone or the disk is full; the job must not suffer from that.
            with contextlib.suppress(OSError):
                write_record(self._root / "torch.json", Seen(torch_version=str(torch.__version__), failure=outcome))

    def note(self, text: str) -> None:
        """Remember something that was left out."""
        if text not in self.status.notes:
            self.status.notes.append(text)

    def write(self, measured: Measurements, switches: Mapping[str, str | None], epoch_offset_ns: int) -> None:
        """Write the measured tables."""
        if self._writer is not None:
            self.status.rows_every = measured.thinned
            self._writer.write(measured.rows, measured.places, switches, epoch_offset_ns, self.status.first_recorded)

    def write_lines(self, tracer: "LineTracer") -> None:
        """Write the line events."""
        if self._writer is not None:
            self._writer.write_lines(tracer)


def rank_of_this_process() -> tuple[int, int | None]:
    """Rank and number of ranks (None: not told), by the process group, else by the launcher's environment."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    rank = next((os.environ[name] for name in _RANK_NAMES if os.environ.get(name, "").isdigit()), "0")
    size = os.environ.get("WORLD_SIZE", "")
    return int(rank), int(size) if size.isdigit() else None
