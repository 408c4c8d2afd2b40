"""What is measured while the job runs, held in memory until it is written."""

from slipstream.capture.rows import Rows
from slipstream.capture.segments import Segment
from slipstream.capture.user_code import Place

STEP_COLUMNS = (
    "number",
    "start_ns",
    "dur_ns",
    "loader_ns",
    "optimizer_ns",
    "backward_ns",
    "backward_calls",
    "optimizer_steps",
    "skipped",
    "rss_bytes",
    "device_allocated_bytes",
    "phase",
    "place",
)
WAIT_COLUMNS = (
    "step",
    "start_ns",
    "dur_ns",
    "workers",
    "first",
    "pin_memory",
    "batch_size",
    "tokens",
    "padding_tokens",
    "trimmable_tokens",
    "place",
)
SPAN_COLUMNS = ("step", "phase", "start_ns", "dur_ns", "place")
PAUSE_COLUMNS = ("step", "start_ns", "dur_ns", "generation")

WARMUP, RECORDED, PLACES, PLAIN = range(4)
BACKWARD, OPTIMIZER = range(2)


class Measurements:
    """The measured tables, as rows of numbers; places are indices into ``places``."""

    def __init__(self) -> None:
        self.rows = {
            "job_steps": Rows(STEP_COLUMNS),
            "loader_waits": Rows(WAIT_COLUMNS),
            "phases": Rows(SPAN_COLUMNS),
            "gc_pauses": Rows(PAUSE_COLUMNS),
        }
        self.places: list[Place] = []
        self._index: dict[tuple[int, int], int] = {}

    def place(self, place: Place | None) -> int | None:
        """Index of a place."""
        if place is None:
            return None
        key = id(place[0]), place[1]  # code objects hash all of their instructions; those in the list stay alive
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.places)
            self.places.append(place)
        return index

    def step(self, number: int, whole: Segment, phase: int, rss_bytes: int | None, device_bytes: int | None) -> None:
        """Add a training step."""
        self.rows["job_steps"].append(
            (
                number,
                whole.start_ns,
                whole.end_ns - whole.start_ns,
                whole.loader_ns,
                whole.optimizer_ns,
                whole.backward_ns if whole.backward_calls else None,
                whole.backward_calls or None,
                whole.optimizer_steps,
                whole.skipped,
                rss_bytes,
                device_bytes,
                phase,
                self.place(whole.place),
            ),
            keep=phase != PLAIN,
        )

    def undo_step(self) -> None:
        """Take the last step back."""
        self.rows["job_steps"].pop()

    def span(self, step: int, phase: int, start_ns: int, end_ns: int, place: Place | None, keep: bool) -> None:
        """Add a backward or optimizer span."""
        self.rows["phases"].append((step, phase, start_ns, end_ns - start_ns, self.place(place)), keep)

    @property
    def thinned(self) -> dict[str, int]:
        """Tables that hold only one of so many rows."""
        return {name: rows.every for name, rows in self.rows.items() if rows.every > 1}
