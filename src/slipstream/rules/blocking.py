"""Host calls that wait for the device, with the idle time that each is the root cause of."""

import polars as pl

from slipstream.model import Evidence
from slipstream.rules.places import WORTH_SHARE, dominant_place, spoken
from slipstream.rules.scope import Scope
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables


def blocking_costs(tables: Tables, scope: Scope) -> pl.DataFrame:
    """The blocking calls of the window with two more columns.

    Only idle time whose one root cause is the call counts: where the host came late because of the loader or the
    like, the call before it cost nothing. Calls that no launch follows are left out: they delay nothing, and the
    last of them is mostly the profiler's own.

    Returns:
        ``blocking_calls`` with ``cost_ns`` (idle time of the window caused by the call), ``inferred_ns`` (the part of
        it during which nothing recorded tells what the device waited for), ``after_ns`` (the part of it after the
        call came back) and ``op`` (name of the innermost op around it, null where there is none).
    """
    calls = tables["blocking_calls"].filter(
        (pl.col("ts_ns") < scope.end_ns) & (pl.col("ts_ns") + pl.col("dur_ns") > scope.start_ns)
    )
    last_launch = tables["device_work"]["launch_ts_ns"].max()
    if last_launch is not None:
        calls = calls.filter(pl.col("ts_ns") < last_launch)
    back = calls.select("event", back_ns=pl.col("ts_ns") + pl.col("dur_ns"))
    idle = (
        tables["idle_spans"]
        .filter((pl.col("cause") == "sync") & pl.col("event").is_not_null())
        .join(back, on="event")
        .group_by("event")
        .agg(
            pl.col("dur_ns").sum().alias("cost_ns"),
            pl.col("dur_ns").filter(pl.col("inferred")).sum().alias("inferred_ns"),
            pl.col("dur_ns").filter(pl.col("start_ns") >= pl.col("back_ns")).sum().alias("after_ns"),
        )
    )
    ops = tables["ops"].select(pl.col("event").alias("op_event"), pl.col("name").cast(pl.String).alias("op"))
    return (
        calls.join(idle, on="event", how="left")
        .join(ops, on="op_event", how="left")
        .with_columns(
            pl.col("cost_ns", "inferred_ns", "after_ns").fill_null(0),
            pl.col("kind").cast(pl.String),
            pl.col("name").cast(pl.String),
        )
        .sort("ts_ns")
    )


def doubt(rows: pl.DataFrame) -> str:
    """What a title adds where most of the cost is inferred: the device stood idle with work in its queue.

    Args:
        rows: rows of ``blocking_costs``.
    """
    if 2 * int(rows["inferred_ns"].sum()) <= int(rows["cost_ns"].sum()):
        return ""
    return "; inferred: work was queued, and what held it up is not in the recording"


def harmless(calls: pl.DataFrame, cost_ns: int, noun: str, scope: Scope) -> str | None:
    """Why calls that wait are not worth changing; None when they are.

    Args:
        calls: rows of ``blocking_costs``, one at least; ``call`` is the runtime call where ``name`` is another thing.
        cost_ns: what they cost.
        noun: what they are called.
    """
    if scope.share(cost_ns) >= WORTH_SHARE:
        return None
    place = dominant_place(calls, "dur_ns")
    by_call = calls.group_by(pl.col("call" if "call" in calls.columns else "name").alias("call")).agg(
        pl.col("dur_ns").sum()
    )
    call = by_call.drop_nulls().sort("dur_ns", "call", descending=[True, False])["call"].head(1).to_list()
    held = (
        f"{per_step(calls.height, scope.steps, noun)} held the host for {duration(int(calls['dur_ns'].sum()))} in all"
        f"{f', mostly in {call[0]}' if call else ''}"
        f"{f', at {spoken(place)}' if place else ''}"
    )
    if not cost_ns:
        return f"{held}; none of them with a gap behind it: the {scope.worker} had work, or waited for something else"
    return f"{held}, and cost the {scope.worker} {duration(cost_ns)} ({percent(scope.share(cost_ns))} of the time)"


def evidence_of_calls(rows: pl.DataFrame, worker: str, count: int = 3) -> list[Evidence]:
    """The costliest of some blocking calls.

    Args:
        rows: rows of ``blocking_costs``.
        worker: what was idle, for the note.
        count: how many at most.
    """
    return [
        Evidence(
            event=row["name"] if row["op"] is None else f"{row['op']} -> {row['name']}",
            ts_ns=row["ts_ns"],
            dur_ns=row["dur_ns"],
            note=f"{worker} idle for {duration(row['cost_ns'])} because of it",
        )
        for row in rows.sort("cost_ns", descending=True).head(count).iter_rows(named=True)
    ]
