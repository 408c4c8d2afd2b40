"""MEM002: the device's memory is nearly full."""

from typing import ClassVar

from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.memory.room import room_of
from slipstream.rules.rule import Rule
from slipstream.rules.scope import device_scope
from slipstream.rules.wording import percent, size
from slipstream.store import Tables

FULL_SHARE = 0.90
"""Part of the memory in use from which on one longer batch may end the job."""
SNIPPET = """\
optimizer.zero_grad(set_to_none=True)          # gradients live only from backward to step
del outputs, loss                              # nothing of one step survives into the next
# less for activations: torch.utils.checkpoint.checkpoint(block, x), or 16-bit types under autocast"""


class CloseToTheLimit(Rule):
    """Close to the limit.

    What it detects
    More than 90 % of the device's memory reserved by PyTorch's allocator at the peak of the recording. It costs no
    time by itself, so it is never a finding; it is told as a risk among what was looked at.

    Why it costs time
    Near the limit the allocator gives cached blocks back to the driver and asks for others, which stops the device
    (see MEM001). And one longer sequence, or an evaluation beside training, ends the job with an out-of-memory
    error.

    Fix
    Keep less: gradients dropped after the step, no outputs held from step to step, 16-bit activations,
    checkpointing of the largest blocks, a smaller batch with accumulation.

    When not to
    Reserved memory includes what the allocator caches; where every step has the same shapes and the job has run for
    long, nothing more will come.

    Source
    PyTorch documentation, "Understanding CUDA Memory Usage".
    """

    code = "MEM002"
    name = "close to the limit"
    needs: ClassVar = {"window": (), "memory": ()}
    fix_class = "exact"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Compare the peak with the capacity."""
        room = room_of(tables, device_scope(tables))
        if room.share <= FULL_SHARE:
            return []
        return [
            self.dismissal(
                f"a risk, no cost of time: {size(room.peak_bytes)} of {size(room.capacity_bytes)} "
                f"({percent(room.share)}) of the memory of {room.where} were reserved at the peak"
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Keep less."""
        return Fix(
            summary="Keep less in memory: drop gradients after the step, hold no outputs from step to step, use 16-bit "
            "activations, checkpoint the largest blocks. Where every step has the same shapes nothing more will come.",
            snippet=SNIPPET,
        )
