"""HST005: Python code between the ops sets the pace."""

from typing import ClassVar

import numpy as np
import polars as pl

from slipstream.analysis.nesting import nesting_of
from slipstream.analysis.painting import Painted, inside, layer, merge, nothing, outside, paint
from slipstream.analysis.places import Places
from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.launches.loops import loop_spans
from slipstream.rules.places import PLACE, WORTH_SHARE, PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import marks
from slipstream.rules.wording import duration, percent
from slipstream.store import Tables

OWN_SHARE = 0.10
"""Share of the window in the user's own Python from which on it is told."""
FRAMEWORK_SHARE = 0.30
"""Share of the window in the framework's Python from which on it is told: some of it comes with every eager step."""
FRAMEWORK = r"^(torch|torchvision|functorch)/|/(torch|functorch)/|^nn\.Module: "
"""Python rows that belong to calling ops and modules."""
COLLECT = "<built-in function collect>"
SNIPPET = """\
model = torch.compile(model)        # framework overhead: one call instead of one per module and op

# the user's own Python: find the lines, then vectorise, cache, or do it every n-th step
with cProfile.Profile() as profile:
    train_step(batch)
pstats.Stats(profile).sort_stats("tottime").print_stats(20)"""


class PythonOverheadDominates(Rule):
    """Python overhead dominates.

    What it detects
    Idle time of the device, or time of the main thread between ops, whose cause is the host and during which Python
    rows show what ran: at least 10 % of the window in the user's own code and what it calls outside PyTorch, or at
    least 30 % in PyTorch's own Python. What other rules explain (the loader, the optimizer's calls, loops over
    entries or samples, the garbage collector, compiling, waiting for other processes) is left out, and short gaps
    between launches are LCH001's.

    Why it costs time
    Python runs one bytecode at a time, 10 to 100 ns each, while the device or the other cores wait. Building lists,
    formatting strings and walking dictionaries in every step adds up to milliseconds; calling a small module costs
    20 to 100 us in frames and hooks alone.

    Fix
    The user's own code: vectorise it, do it once instead of in every step, or every n-th step, or on another thread
    if it releases the interpreter's lock. The framework's: `torch.compile`, fewer and larger modules, no hooks that
    are not needed.

    When not to
    Recording Python rows slows Python itself down, by a factor of 2 and more for code that calls many functions: the
    true share is smaller. Look at the step without the recorder before rewriting code.

    Source
    PyTorch documentation, "torch.profiler" (overhead of with_stack) and "torch.compile".
    """

    code = "HST005"
    name = "python overhead dominates"
    needs: ClassVar = {"window": (), "idle_spans": ()}
    fix_class = "rounding"
    changes_random_stream = True
    treatment = "compile_model"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Attribute the host's idle time to Python functions."""
        scope = scope_of(tables)
        idle = _unclaimed(tables, scope)
        if scope.share(idle.total_ns) < OWN_SHARE:
            return []
        if not tables["python"].height:
            raise NotEnoughData(
                f"what the host did during {percent(scope.share(idle.total_ns))} of the time is not recorded: record "
                "with with_stack=True"
            )
        rows = _functions(tables, scope, idle)
        own, theirs = rows.filter(pl.col("whose") == "own"), rows.filter(pl.col("whose") == "framework")
        found: list[Finding | Dismissal] = []
        if scope.share(int(own["cost_ns"].sum())) >= OWN_SHARE:
            places = by_place(own, "cost_ns", scope.length_ns)
            found += [self._own(place, scope) for place in places if scope.share(place.cost_ns) >= WORTH_SHARE]
        cost = int(theirs["cost_ns"].sum())
        if scope.share(cost) >= FRAMEWORK_SHARE:
            found.append(
                self.finding(
                    title=f"PyTorch's own Python takes {percent(scope.share(cost))} of the time between ops "
                    f"({duration(cost)}): modules and ops are small for what calling them costs",
                    cost_ns=cost,
                    steps=scope.steps,
                    evidence=_evidence(theirs),
                )
            )
        return found or [
            self.dismissal(
                f"Python between ops takes {percent(scope.share(idle.total_ns))} of the time, "
                f"{percent(scope.share(int(own['cost_ns'].sum())))} in code outside PyTorch"
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Less Python per step."""
        return Fix(
            summary="Own code: vectorise it, do it once or every n-th step instead of in every step. Framework: "
            "torch.compile, fewer and larger modules. Recording slows Python down, so check the step without the "
            "recorder first; compiled dropout draws other random numbers.",
            snippet=SNIPPET,
        )

    def _own(self, place: PlaceCost, scope: Scope) -> Finding:
        return self.finding(
            title=f"Python code outside PyTorch runs for {percent(scope.share(place.cost_ns))} of the time while the "
            f"{scope.worker} has no ops to do ({duration(place.cost_ns)}){place.suffix}"
            if scope.on_device
            else f"Python code outside PyTorch takes {percent(scope.share(place.cost_ns))} of the main thread's time "
            f"({duration(place.cost_ns)}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=_evidence(place.rows),
        )


def _unclaimed(tables: Tables, scope: Scope) -> Painted:
    """Idle time whose cause is the host, without what other rules explain; ``label`` is the thread."""
    idle = tables["idle_spans"].filter((pl.col("cause") == "host") & pl.col("thread").is_not_null()).sort("start_ns")
    begin = idle["start_ns"].to_numpy()
    spans = paint(begin, begin + idle["dur_ns"].to_numpy(), idle["thread"].cast(pl.Int64).to_numpy())
    claimed = [loop_spans(tables, scope), marks(tables, r"^Optimizer\.(step|zero_grad)#")]
    return outside(spans, layer(claimed))


def _functions(tables: Tables, scope: Scope, idle: Painted) -> pl.DataFrame:
    """Pieces of idle time with the Python row that ran (``name``), ``whose`` it is, and the user's place around it.

    A built-in function is its caller's. One that calls ops is PyTorch's compiled code, which is not Python's time, and
    a collection called by hand is HST001's: both are nobody's.
    """
    nesting = nesting_of(tables.trace, "python")
    rows = tables["python"]
    parts: list[Painted] = []
    threads: list[np.ndarray] = []
    for thread in np.unique(idle.label):
        mine = idle.take(idle.label == thread)
        where = np.flatnonzero(rows["thread"].to_numpy() == thread)
        borders = np.unique(np.concatenate([nesting.start[where], nesting.end[where]]))
        if len(borders) < 2:
            continue
        running = nesting.innermost(np.full(len(borders) - 1, thread), borders[:-1])
        pieces, _ = inside(Painted(start=borders[:-1], end=borders[1:], label=running, event=running), mine)
        pieces = pieces.take(pieces.label >= 0)
        parts.append(pieces)
        threads.append(np.full(len(pieces), thread))
    pieces = merge(parts) if parts else nothing()
    thread_of = np.concatenate(threads) if threads else np.empty(0, np.int64)
    order = np.argsort(np.concatenate([part.start for part in parts]), kind="stable") if parts else thread_of
    found = pl.DataFrame(
        {
            "row": pieces.label,
            "thread": thread_of[order],
            "ts_ns": pieces.start,
            "cost_ns": pieces.end - pieces.start,
        },
        schema={"row": pl.Int64, "thread": pl.Int64, "ts_ns": pl.Int64, "cost_ns": pl.Int64},
    )
    places = Places(tables).around(found["thread"].to_numpy(), found["ts_ns"].to_numpy()).select(PLACE)
    names = rows["name"].cast(pl.String)
    callers = names.gather(pl.Series(nesting.parent).replace(-1, None).gather(found["row"]))
    found = found.with_columns(names.gather(found["row"]).alias("name"), callers.alias("caller"))
    owner = pl.when(pl.col("name").str.starts_with("<built-in")).then("caller").otherwise("name").fill_null("")
    built_in = pl.col("name").str.starts_with("<built-in")
    compiled = pl.Series(_calls_ops(tables, found)) | owner.str.contains(FRAMEWORK)
    whose = (
        pl.when((built_in & compiled) | (pl.col("name") == COLLECT))
        .then(pl.lit("nobody"))
        .when(owner.str.contains(FRAMEWORK))
        .then(pl.lit("framework"))
        .otherwise(pl.lit("own"))
    )
    return found.with_columns(whose.alias("whose")).with_columns(places)


def _calls_ops(tables: Tables, found: pl.DataFrame) -> np.ndarray:
    """Whether the Python row of each piece has ops inside."""
    python = tables["python"]
    rows = python.select("ts_ns", end=pl.col("ts_ns") + pl.col("dur_ns"))[found["row"].to_list()]
    inside = np.zeros(found.height, bool)
    for thread in found["thread"].unique():
        mine = (found["thread"] == thread).to_numpy()
        begun = tables["ops"].filter(pl.col("thread") == thread)["ts_ns"].sort().to_numpy()
        first = np.searchsorted(begun, rows["ts_ns"].to_numpy()[mine])
        inside[mine] = np.searchsorted(begun, rows["end"].to_numpy()[mine]) > first
    return inside


def _evidence(rows: pl.DataFrame) -> list[Evidence]:
    """The functions that most of the time was spent in."""
    sums = rows.group_by("name").agg(
        pl.col("cost_ns").sum(), pl.col("ts_ns").min(), pl.len().alias("count"), longest=pl.col("cost_ns").max()
    )
    return [
        Evidence(
            event=row["name"],
            ts_ns=row["ts_ns"],
            dur_ns=row["longest"],
            note=f"{duration(row['cost_ns'])} in {row['count']:,} pieces, itself or what is not recorded below it",
        )
        for row in sums.sort("cost_ns", "name", descending=[True, False]).head(3).iter_rows(named=True)
    ]
