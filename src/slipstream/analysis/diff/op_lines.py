"""Records of ops and of the lines that each consists of."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from slipstream.analysis.diff.typical import Longs
from slipstream.model import Effect, LineDifference, OpDifference
from slipstream.stats import CONFIDENCE, compare

IDLE = "idle_"
"""How parts begin that are no work and have no ops."""
_Row = Mapping[str, object]
_Times = tuple[int, int, Effect]
T = TypeVar("T", LineDifference, OpDifference)


def effect_of(a: Longs, b: Longs, difference_ns: int) -> Effect:
    """A difference with its interval.

    Args:
        a: ns, the time in every step of A.
        b: the same of B.
        difference_ns: what is told as the difference.
    """
    result = compare(a, b, CONFIDENCE, float(difference_ns))
    return Effect(
        difference_ns=difference_ns,
        low_ns=_whole(result.low),
        high_ns=_whole(result.high),
        confidence=CONFIDENCE,
        verdict=result.verdict,
        reason=None if result.reason is None else result.reason.replace("value", "step"),
        smallest_detectable_ns=_whole(result.smallest_detectable),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def ops_of_lines(
    lines: Sequence[_Row], line_times: Sequence[_Times], ops: Sequence[_Row], op_times: Sequence[_Times]
) -> tuple[OpDifference, ...]:
    """Ops with their lines, the greatest difference first; idle time has none.

    Args:
        lines: what each line is, with the number of its op as ``group``.
        line_times: its times.
        ops: what each op is, in order of their numbers.
        op_times: its times.
    """
    below: dict[object, list[LineDifference]] = {}
    for row, times in zip(lines, line_times, strict=True):
        names = {name: row[name] for name in ("shapes", "module", "matched_by")}
        below.setdefault(row["group"], []).append(msgspec.convert({**names, **_facts(row, times)}, LineDifference))
    found = [
        msgspec.convert(
            {"part": row["part"], "op": row["op"], **_facts(row, times), "lines": _by_difference(below[row["group"]])},
            OpDifference,
        )
        for row, times in zip(ops, op_times, strict=True)
        if not str(row["part"]).startswith(IDLE)
    ]
    return tuple(_by_difference(found))


def _by_difference(rows: list[T]) -> list[T]:
    # Rows of one difference keep an order that does not depend on that of the file.
    return sorted(rows, key=lambda row: (-abs(row.effect.difference_ns), -max(row.a_ns, row.b_ns), repr(row)))


def _facts(row: _Row, times: _Times) -> dict[str, object]:
    a_ns, b_ns, effect = times
    a_count, b_count = row["count"], row["count_b"]
    return {
        "only_in": "b" if a_count is None else "a" if b_count is None else None,
        "a_ns": a_ns,
        "b_ns": b_ns,
        "a_count": a_count or 0.0,
        "b_count": b_count or 0.0,
        "a_kernel": row["kernel_of"],
        "b_kernel": row["kernel_of_b"],
        "effect": effect,
    }
