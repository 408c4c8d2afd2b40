"""What is measured between two optimizer steps, and how segments add up to a training step."""

from collections.abc import Sequence

from slipstream.capture.user_code import Place


class Segment:
    """Sums since the optimizer step before; times in ns of the monotonic clock."""

    __slots__ = (
        "backward_calls",
        "backward_ns",
        "end_ns",
        "loader_ns",
        "optimizer_ns",
        "optimizer_steps",
        "place",
        "skipped",
        "start_ns",
    )

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.end_ns = start_ns
        self.loader_ns = 0
        self.optimizer_ns = 0
        self.optimizer_steps = 0
        self.backward_ns = 0
        self.backward_calls = 0
        self.skipped: bool | None = False
        """Whether GradScaler left the update out; None: only the device knows."""
        self.place: Place | None = None
        """The statement that stepped the optimizer."""


def joined(segments: Sequence[Segment]) -> Segment:
    """One segment that spans all and holds their sums."""
    if len(segments) == 1:
        return segments[0]
    whole = Segment(segments[0].start_ns)
    whole.end_ns = segments[-1].end_ns
    whole.place = segments[-1].place
    for segment in segments:
        whole.loader_ns += segment.loader_ns
        whole.optimizer_ns += segment.optimizer_ns
        whole.optimizer_steps += segment.optimizer_steps
        whole.backward_ns += segment.backward_ns
        whole.backward_calls += segment.backward_calls
    flags = {segment.skipped for segment in segments if segment.optimizer_steps or segment.skipped}
    whole.skipped = None if None in flags else True in flags
    return whole
