"""Puts the comparison of two recordings together."""

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.diff import matching
from slipstream.analysis.diff.identity import Ops, ops_of
from slipstream.analysis.diff.notes import notes
from slipstream.analysis.diff.op_lines import IDLE, effect_of, ops_of_lines
from slipstream.analysis.diff.step_work import PIECES, Steps, pieces_of, steps_of
from slipstream.analysis.diff.typical import Longs, adding_up, median_ns
from slipstream.model import Compared, Difference, Effect, NotEnoughData, OpAlone, OpDifference, PartDifference
from slipstream.stats import median_spread
from slipstream.store import Tables

_LINE = ["part", *matching.KEY]
_OP = ["part", "op", "kernel"]


class _Side(msgspec.Struct, frozen=True):
    """One recording with its steps and what their time went to."""

    tables: Tables
    steps: Steps
    pieces: pl.DataFrame
    """columns of ``step_work.PIECES``; no rows where it is not known"""
    refusal: str | None
    """why it is not known"""


def difference(a: Tables, b: Tables) -> Difference:
    """Say what changed from one recording to another.

    Steps are compared over all that were recorded. What the median step of each consists of is compared part by part
    and, within the parts that are work, op by op: by path of modules, name and shapes, whatever the kernels are called.
    Idle time is compared by cause. Parts add up to the medians, lines to their part, and so do the differences.

    Args:
        a: one rank's recording: what was.
        b: the other one: what is.
    Raises:
        NotEnoughData: nothing in one of them takes time.
    """
    sides = _side(a), _side(b)
    refusals = [f"{name}: {side.refusal}" for name, side in zip("AB", sides, strict=True) if side.refusal is not None]
    parts: tuple[PartDifference, ...] = ()
    ops: tuple[OpDifference, ...] = ()
    levels = None
    if not refusals and _comparable(a, b):
        mine, theirs = ops_of(a), ops_of(b)
        levels = matching.levels_of(mine, theirs)
        works = [
            _with_keys(side, ops, other, levels)
            for side, ops, other in ((sides[0], mine, theirs), (sides[1], theirs, mine))
        ]
        parts, ops = _compared_work(sides, *matching.merged_by_op(*works))
    step = effect_of(sides[0].steps.dur_ns, sides[1].steps.dur_ns, _median_difference(sides))
    return Difference(
        a=_summary(sides[0]),
        b=_summary(sides[1]),
        step=step,
        parts=parts,
        ops=ops,
        only_in_a=_alone(a, b),
        only_in_b=_alone(b, a),
        notes=notes((a, b), (sides[0].steps, sides[1].steps), levels, refusals),
    )


def _comparable(a: Tables, b: Tables) -> bool:
    """Whether parts of both are times of the same thing: the device's, or the main thread's."""
    return bool(a.row("window")["on_device"]) == bool(b.row("window")["on_device"])


def _side(tables: Tables) -> _Side:
    steps = steps_of(tables)
    try:
        return _Side(tables, steps, pieces_of(tables, steps), None)
    except NotEnoughData as reason:
        return _Side(tables, steps, pl.DataFrame(schema=PIECES), str(reason))


def _median_difference(sides: tuple[_Side, _Side]) -> int:
    return median_ns(sides[1].steps.dur_ns) - median_ns(sides[0].steps.dur_ns)


def _summary(side: _Side) -> Compared:
    durations = side.steps.dur_ns
    spread = median_spread(durations)
    return Compared(
        source=side.tables.source,
        integrity=side.tables.integrity,
        basis=side.steps.basis,
        steps=len(durations),
        median_ns=median_ns(durations),
        low_ns=None if spread.low is None else round(spread.low),
        high_ns=None if spread.high is None else round(spread.high),
        mean_ns=round(float(np.mean(durations))),
        least_ns=int(durations.min()),
        most_ns=int(durations.max()),
        work_of="device" if side.tables.row("window")["on_device"] else "main_thread",
    )


def _alone(mine: Tables, other: Tables) -> tuple[OpAlone, ...]:
    """Ops whose names the other recording does not hold."""
    names = other["ops"]["name"].cast(pl.String).unique()
    ops = mine["ops"].select("event", name=pl.col("name").cast(pl.String))
    tree = mine["op_tree"].select("event", "self_ns")
    rows = ops.filter(~pl.col("name").is_in(names.implode())).join(tree, on="event")
    sums = rows.group_by("name").agg(pl.len().alias("count"), pl.col("self_ns").sum().alias("host_self_ns"))
    sums = sums.sort("host_self_ns", "name", descending=[True, False])
    return tuple(msgspec.convert(sums.to_dicts(), list[OpAlone]))


def _with_keys(side: _Side, ops: Ops, other: Ops, levels: matching.Levels) -> pl.DataFrame:
    """Pieces of a recording with what they are compared under, and the kernel that has each."""
    on_device = bool(side.tables.row("window")["on_device"])
    events = side.tables["ops"]["event"]
    if on_device:
        work = side.tables["device_work"].select(
            pl.col("event").cast(pl.Int64), "op_event", running=pl.col("name").cast(pl.String)
        )
        pieces = side.pieces.join(work, on="event", how="left", maintain_order="left")
    else:
        pieces = side.pieces.with_columns(
            op_event=pl.when(pl.col("event") >= 0).then("event"), running=pl.lit(None, pl.String)
        )
    keys = matching.keys(ops, other, ops.index_of(events, pieces["op_event"]), levels)
    kernel = pl.when(keys["op"].is_null()).then(pieces["running"])
    return pieces.drop("op_event").hstack(keys).with_columns(kernel=kernel)


def _compared_work(
    sides: tuple[_Side, _Side], a: pl.DataFrame, b: pl.DataFrame
) -> tuple[tuple[PartDifference, ...], tuple[OpDifference, ...]]:
    """Lines, summed up to ops and to parts."""
    lines = pl.concat([a.select(_LINE), b.select(_LINE)]).unique(maintain_order=True).with_row_index("line")
    ops = lines.select(_OP).unique(maintain_order=True).with_row_index("group")
    lines = lines.join(ops, on=_OP, nulls_equal=True, maintain_order="left")
    numbered = [rows.join(lines, on=_LINE, nulls_equal=True, maintain_order="left") for rows in (a, b)]
    times = [_times(rows, lines.height, len(side.steps)) for rows, side in zip(numbered, sides, strict=True)]
    part_of = lines["part"].to_numpy()
    names = list(dict.fromkeys(part_of.tolist()))
    typical = [_typical(values, part_of, names, side.steps) for values, side in zip(times, sides, strict=True)]
    each = _Measured(times[0], times[1], typical[0], typical[1])
    number = {part: place for place, part in enumerate(names)}
    of_parts = each.summed(np.array([number[part] for part in part_of.tolist()], np.int64))
    parts = [
        PartDifference(part=part, a_ns=a_ns, b_ns=b_ns, effect=effect)
        for part, (a_ns, b_ns, effect) in zip(names, of_parts.rows(), strict=True)
    ]
    of_ops = each.summed(lines["group"].to_numpy().astype(np.int64))
    parts.sort(key=lambda part: (part.part.startswith(IDLE), -max(part.a_ns, part.b_ns)))
    return tuple(parts), ops_of_lines(
        _described(sides, lines, "line", numbered),
        each.rows(),
        _described(sides, ops, "group", numbered),
        of_ops.rows(),
    )


class _Measured(msgspec.Struct, frozen=True):
    """Times of lines (or ops, or parts), one row each and one column per step, and what each takes typically."""

    a: Longs
    b: Longs
    typical_a: Longs
    typical_b: Longs

    def summed(self, group: Longs) -> "_Measured":
        """The same of groups of them."""
        count = int(group.max()) + 1 if len(group) else 0
        sums = []
        for values in msgspec.structs.astuple(self):
            added = np.zeros((count, *values.shape[1:]), np.int64)
            np.add.at(added, group, values)
            sums.append(added)
        return _Measured(*sums)

    def rows(self) -> list[tuple[int, int, Effect]]:
        """Typical times and the effect of each."""
        typical = zip(self.typical_a.tolist(), self.typical_b.tolist(), strict=True)
        return [(a, b, effect_of(self.a[n], self.b[n], b - a)) for n, (a, b) in enumerate(typical)]


def _described(
    sides: tuple[_Side, _Side], keys: pl.DataFrame, by: str, numbered: list[pl.DataFrame]
) -> list[dict[str, object]]:
    """Each line (or op) with how often it runs per step, and the kernel that takes most of it, in A and in B."""
    for suffix, rows, side in zip(("", "_b"), numbered, sides, strict=True):
        count = pl.struct("step", "event").n_unique() / len(side.steps)
        counted = rows.filter(pl.col("event") >= 0).group_by(by).agg(count.alias(f"count{suffix}"))
        kernels = rows.drop_nulls("running").group_by(by, "running").agg(pl.col("ns").sum())
        kernels = kernels.sort("ns", "running", descending=[True, False]).unique(by, keep="first", maintain_order=True)
        kernels = kernels.select(by, pl.col("running").alias(f"kernel_of{suffix}"))
        for facts in (counted, kernels):
            keys = keys.join(facts, on=by, how="left", maintain_order="left")
    return keys.to_dicts()


def _typical(times: Longs, part_of: npt.NDArray[np.object_], names: list[str], steps: Steps) -> Longs:
    """What each line takes in the typical step: lines add up to their part, parts to the median step."""
    sums = np.array([times[part_of == part].sum(axis=0) for part in names])
    found = np.zeros(len(times), np.int64)
    for part, whole in zip(names, adding_up(sums, median_ns(steps.dur_ns)).tolist(), strict=True):
        found[part_of == part] = adding_up(times[part_of == part], whole)
    return found


def _times(rows: pl.DataFrame, lines: int, steps: int) -> Longs:
    """Time of every line in every step, ns."""
    values = np.zeros((lines, steps), np.int64)
    np.add.at(values, (rows["line"].to_numpy(), rows["step"].to_numpy()), rows["ns"].to_numpy())
    return values
