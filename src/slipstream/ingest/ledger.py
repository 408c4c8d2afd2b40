"""Counts what was repaired, dropped or doubted while reading, and grades the whole."""

from collections.abc import Callable
from typing import Literal

import msgspec

from slipstream.model import Grade, Integrity, IntegrityIssue

Effect = Literal["none", "repair", "device_time", "cut", "lower_bound"]
"""What an issue does to the figures: nothing (a remark), a repair that leaves totals as they are, device time
was changed or is doubtful, the file is cut, or totals are lower bounds."""

Wording = str | Callable[[int], str]
"""A sentence, or what makes one of a count."""
SMALL_SHARE = 0.01
LARGE_SHARE = 0.10


class _Entry(msgspec.Struct):
    wording: Wording
    effect: Effect
    count: int = 0
    share: float = 0.0


class Ledger:
    """Everything that was not as it should be in one file."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def note(self, code: str, count: int, wording: Wording, effect: Effect = "repair", share: float = 0.0) -> None:
        """Count something.

        Args:
            code: stable name of the kind of issue.
            count: how often it occurred this time; 0 is ignored.
            wording: the sentence, or what makes it of the final count.
            effect: what it does to the figures.
            share: device time affected, 0..1 (only for the effect ``device_time``).
        """
        if count:
            entry = self._entries.setdefault(code, _Entry(wording, effect))
            entry.count += count
            entry.share += share

    def count(self, code: str) -> int:
        """How often an issue was counted so far."""
        return self._entries[code].count if code in self._entries else 0

    def integrity(self, linked_kernel_share: float | None) -> Integrity:
        """Issues and grade."""
        issues = tuple(
            IntegrityIssue(code=code, count=entry.count, text=_worded(entry)) for code, entry in self._entries.items()
        )
        return Integrity(grade=self.grade(), issues=issues, linked_kernel_share=linked_kernel_share)

    def grade(self) -> Grade:
        """Grade by the rules of the JSON contract."""
        effects = {entry.effect for entry in self._entries.values()}
        share = sum(entry.share for entry in self._entries.values())
        if "lower_bound" in effects or share >= LARGE_SHARE:
            return "E"
        if "cut" in effects or share >= SMALL_SHARE:
            return "D"
        if "device_time" in effects:
            return "C"
        return "B" if "repair" in effects else "A"


def _worded(entry: _Entry) -> str:
    return entry.wording if isinstance(entry.wording, str) else entry.wording(entry.count)


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 event``, ``2 events``, ``3,000 events``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
