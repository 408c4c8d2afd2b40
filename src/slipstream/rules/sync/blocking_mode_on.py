"""SYN003: every launch waits until its kernel is done."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.memory.room import switches_of
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import PACE
from slipstream.rules.wording import duration, percent, plural
from slipstream.store import Tables

BLOCKED_SHARE = 0.9
"""Share of launches that outlast their kernel from which on it is a mode and not a coincidence."""
LAUNCHES = 20
"""Launches from which on that share tells something."""
VARIABLES = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")
SNIPPET = """\
# in the job's environment, and in what starts it:
#   unset CUDA_LAUNCH_BLOCKING HIP_LAUNCH_BLOCKING AMD_SERIALIZE_KERNEL
assert os.environ.get("CUDA_LAUNCH_BLOCKING", "0") == "0\""""


class BlockingModeOn(Rule):
    """Blocking mode on.

    What it detects
    At least nine of ten launches, twenty or more, that come back only after their kernel has ended. The cost is the
    idle time of the device because of the host's pace, no more than the time that launches spent waiting: without
    blocking, the host would have used it to launch ahead.

    Why it costs time
    Normally the host launches the next kernels while the device works. With `CUDA_LAUNCH_BLOCKING=1` it waits for
    each of them, so host and device take turns, and the step takes the sum of both instead of the longer one.

    Fix
    Unset the variable, in the job's environment and in whatever starts the job.

    When not to
    While an illegal memory access is being hunted: it makes the error appear at the call that caused it.

    Source
    CUDA C++ Programming Guide, "Asynchronous concurrent execution"; PyTorch documentation, "CUDA environment
    variables".
    """

    code = "SYN003"
    name = "blocking mode on"
    needs: ClassVar = {"window": (), "device_work": (), "idle_spans": ()}
    fix_class = "exact"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Compare the ends of launches with those of their kernels."""
        scope = device_scope(tables)
        end = pl.col("ts_ns") + pl.col("dur_ns")
        # A graph has one launch for many kernels, which may well be that of the last alone.
        work = tables["device_work"].filter(
            (pl.col("kind") == "kernel")
            & pl.col("launch_ts_ns").is_not_null()
            & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
        )
        single = work.filter(pl.len().over("launch_event") == 1)
        if single.height < LAUNCHES:
            return []
        blocked = single.filter(pl.col("launch_ts_ns") + pl.col("launch_dur_ns") >= end)
        if blocked.height < BLOCKED_SHARE * single.height:
            return []
        back = pl.col("launch_ts_ns") + pl.col("launch_dur_ns")
        waited = int(blocked.select((back - pl.max_horizontal("launch_ts_ns", "ts_ns")).sum()).item())
        idle = int(tables["idle_spans"].filter(pl.col("cause").is_in(PACE))["dur_ns"].sum())
        cost = min(waited, idle)
        switches = switches_of(tables)
        why = next((f" ({name}={switches[name]})" for name in VARIABLES if switches.get(name) not in (None, "0")), "")
        return [self._verdict(scope, blocked, cost, why)]

    def fix(self, finding: Finding) -> Fix:
        """Unset it."""
        return Fix(
            summary="Unset CUDA_LAUNCH_BLOCKING (HIP_LAUNCH_BLOCKING, AMD_SERIALIZE_KERNEL), also where the job is "
            "started from. Set it only while an error on the device is being hunted.",
            snippet=SNIPPET,
        )

    def _verdict(self, scope: Scope, blocked: pl.DataFrame, cost: int, why: str) -> Finding | Dismissal:
        told = f"{plural(blocked.height, 'launch')} waited for their kernels{why}"
        if not cost:
            return self.dismissal(f"{told}, but the {scope.worker} was not idle because of it")
        return self.finding(
            title=f"Every launch waits for its kernel{why}: the {scope.worker} is idle for "
            f"{percent(scope.share(cost))} of the time ({duration(cost)}) that the host could have launched ahead",
            cost_ns=cost,
            steps=scope.steps,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"its launch held the host for {duration(row['launch_dur_ns'])}",
                )
                for row in blocked.with_columns(pl.col("name").cast(pl.String))
                .sort("launch_dur_ns", "ts_ns", descending=[True, False])
                .head(3)
                .iter_rows(named=True)
            ),
        )
