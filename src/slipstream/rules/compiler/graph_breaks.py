"""CPL002: a compiled function runs in pieces, with ordinary Python in between."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.painting import covered
from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.places import PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import PACE, pace_idle, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

REGION = r"^Torch-Compiled Region: (\d+)/"
"""Ops around each compiled piece, with the number of its frame."""
LOOKUP = "^TorchDynamo Cache Lookup"
GRAPH = "Call CompiledFxGraph"
"""Mark around each call of a graph that Inductor compiled."""
SNIPPET = """\
model = torch.compile(model, fullgraph=True)      # an error that names the first break, instead of a slow run
# TORCH_LOGS=graph_breaks python train.py         # tells all of them, with reasons

if torch.compiler.is_compiling(): ...             # leave print, logging and .item() out of compiled code
loss_value = loss.detach()                        # not: loss.item()"""


class GraphBreaks(Rule):
    """Graph breaks.

    What it detects
    Compiled regions inside a region of another frame: the rest of a function that was broken off, which the compiler
    calls from within the piece before it. The cost is the time between one piece and the next: on a device its idle
    time because of the host's pace, without a device all of it.

    Why it costs time
    At a break the compiler ends one graph and begins another. Python runs in between, guards are checked again,
    nothing is fused across, and with CUDA graphs each piece is replayed on its own.

    Fix
    Take out of compiled functions what cannot be traced: `print` and logging, `.item()` and `.tolist()`, branches on
    values of tensors, calls into libraries that work on NumPy arrays. `fullgraph=True` or `TORCH_LOGS=graph_breaks`
    tell where breaks are; the recording does not.

    When not to
    A break between large parts of a model costs next to nothing. A compiled module that calls another one which was
    compiled on its own looks the same.

    Source
    PyTorch documentation, "torch.compile: working with graph breaks".
    """

    code = "CPL002"
    name = "graph breaks"
    needs: ClassVar = {"window": (), "ops": (), "idle_spans": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up the gaps between pieces of one compiled function."""
        scope = scope_of(tables)
        gaps = _gaps(tables, scope)
        if not gaps.height:
            return []
        cost = int(gaps["cost_ns"].sum())
        if not cost:
            return [
                self.dismissal(
                    f"{per_step(gaps.height, scope.steps, 'graph break')}, while the {scope.worker} had other work"
                )
            ]
        return [self._finding(place, scope) for place in by_place(gaps, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """One graph."""
        return Fix(
            summary="Find the breaks with fullgraph=True or TORCH_LOGS=graph_breaks, and take out what cannot be "
            "traced: print, logging, .item(), branches on values. A break between large parts costs next to nothing.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        return self.finding(
            title=f"Compiled code runs in pieces: {percent(scope.share(place.cost_ns))} of the time "
            f"({duration(place.cost_ns)}) passes between them, in "
            f"{per_step(place.rows.height, scope.steps, 'graph break')}{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"{duration(row['cost_ns'])} between the piece before it and its own",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _gaps(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Regions that continue a broken function, with ``cost_ns`` of the time between the pieces around each.

    What follows a break is called from within the piece before it, so its region lies inside the region of that.
    """
    ops = window_ops(tables, scope)
    regions = ops.filter(pl.col("name").str.contains(REGION)).with_columns(
        frame=pl.col("name").str.extract(REGION, 1).cast(pl.Int64)
    )
    around = regions.select(pl.col("event").alias("root"), outer="frame", outer_end_ns="end_ns")
    inner = regions.filter(pl.col("event") != pl.col("root")).join(around, on="root")
    inner = inner.filter(pl.col("frame") != pl.col("outer"))
    if not inner.height:
        return inner
    pieces = _pieces(tables, ops)
    before = pieces.select("thread", piece_end_ns="end_ns").sort("piece_end_ns")
    after = pieces.select("thread", piece_ts_ns="ts_ns").sort("piece_ts_ns")
    gaps = inner.sort("ts_ns").join_asof(
        before, left_on="ts_ns", right_on="piece_end_ns", by="thread", check_sortedness=False
    )
    gaps = gaps.join_asof(
        after, left_on="ts_ns", right_on="piece_ts_ns", by="thread", strategy="forward", check_sortedness=False
    )
    # Only time between two pieces of one call; what lies before its first one would be there without breaks.
    root_ts = regions.select(pl.col("event").alias("root"), root_ts_ns="ts_ns")
    gaps = gaps.join(root_ts, on="root").filter(
        (pl.col("piece_end_ns") > pl.col("root_ts_ns")) & (pl.col("piece_ts_ns") < pl.col("outer_end_ns"))
    )
    gaps = gaps.unique(["thread", "piece_end_ns"], keep="first", maintain_order=True)
    parts = []
    for (thread,), part in gaps.group_by("thread", maintain_order=True):
        start, end = part["piece_end_ns"].to_numpy(), part["piece_ts_ns"].to_numpy()
        lost = covered(pace_idle(tables, thread, PACE), start, end) if scope.on_device else end - start
        parts.append(part.with_columns(cost_ns=pl.Series(lost, dtype=pl.Int64)))
    return pl.concat(parts) if parts else gaps.with_columns(cost_ns=pl.lit(0, pl.Int64))


def _pieces(tables: Tables, ops: pl.DataFrame) -> pl.DataFrame:
    """Work that regions call: compiled graphs, and ops between them; thread, ts_ns, end_ns."""
    regions = ops.filter(pl.col("name").str.contains(REGION))["event"]
    called = ops.filter(pl.col("parent").is_in(regions.implode()) & ~pl.col("name").str.contains(f"{REGION}|{LOOKUP}"))
    graphs = tables["annotations"].filter(
        ~pl.col("on_device") & pl.col("name").cast(pl.String).str.contains(GRAPH, literal=True)
    )
    return pl.concat(
        [
            called.select("thread", "ts_ns", "end_ns"),
            graphs.select("thread", "ts_ns", end_ns=pl.col("ts_ns") + pl.col("dur_ns")),
        ]
    )
