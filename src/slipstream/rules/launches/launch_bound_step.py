"""LCH001: the device waits for the host, which cannot launch kernels as fast as the device finishes them."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.graph import graph_of
from slipstream.forecast import Edit, removing
from slipstream.model import Dismissal, Evidence, Finding, Fix, Location
from slipstream.rules.places import PLACE, dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

BUSY_SHARE = 0.95
"""From here on launching faster cannot help: the rest is the device's own scheduling between kernels."""
SNIPPET = """\
model = torch.compile(model, mode="reduce-overhead")   # fuses, and replays launches as one CUDA graph

# by hand, for a part with fixed shapes and no read-back:
graphed = torch.cuda.make_graphed_callables(block, (sample_input,))"""


LEFT = (0.7, 0.25, 0.05)
"""What stays of the host's time for launching: compiled with breaks, compiled, replayed from a graph."""


class LaunchBoundStep(Rule):
    """Launch-bound step.

    What it detects
    Idle time of the device that ends with a kernel which had not been launched yet, while the host was busy
    dispatching ops. What a loader, a synchronisation, an allocator or the garbage collector explains is not
    counted, nor is a single host call that takes far longer than a launch does (start-up, first use of a kernel). A
    device that is busy for 95 % of the time is not launch-bound.

    Why it costs time
    Each op costs the host 5 to 50 us (Python, dispatch, autograd, launch) whatever its size. Kernels that are
    shorter than that finish before the next one arrives. The figure is a ceiling: the time that faster launching
    could at most win.

    Fix
    Fewer, larger launches: `torch.compile` with `mode="reduce-overhead"` fuses chains of ops and replays the rest as
    one graph; CUDA graphs by hand do the same for parts with fixed shapes; foreach or fused optimizers launch once
    for many parameters.

    When not to
    Graphs need fixed shapes and addresses, no read-back inside, and hold on to their memory. Compiling takes
    minutes, repeats for new shapes, and pays off only over many steps. Compiled dropout draws other random numbers,
    so single runs will not repeat number by number.

    Source
    PyTorch blog, "Accelerating PyTorch with CUDA Graphs"; documentation of torch.compile.
    """

    code = "LCH001"
    name = "launch-bound step"
    needs: ClassVar = {"window": (), "idle_spans": (), "device_work": ()}
    fix_class = "rounding"
    treatment = "compile_model"
    needs_device = True
    changes_random_stream = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up the idle time whose root cause is launching."""
        scope = device_scope(tables)
        work = tables["device_work"].filter(pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left"))
        waits = tables["idle_spans"].filter(pl.col("cause") == "launch")
        lost = int(waits["dur_ns"].sum())
        if not work.height or not lost:
            return []
        busy = scope.share(scope.busy_ns or 0)
        if busy >= BUSY_SHARE:
            return [self.dismissal(f"the {scope.worker} is busy for {percent(busy)} of the time: launching keeps up")]
        kernel = duration(round(float(str(work["dur_ns"].median()))))
        return [
            self.finding(
                title=f"The {scope.worker} waits {percent(scope.share(lost))} of the time for launches "
                f"({duration(lost)}): {per_step(work.height, scope.steps, 'launch')}, half of them below {kernel}",
                cost_ns=lost,
                steps=scope.steps,
                location=_location(tables, waits),
                evidence=_evidence(tables, waits, scope),
            ),
        ]

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """Ops and calls take a fraction of their time wherever the device waits for them."""
        waits = tables["idle_spans"].filter(pl.col("cause") == "launch")
        begin = waits["start_ns"].to_numpy()
        share = f"{LEFT[2] * 100:.0f} to {LEFT[0] * 100:.0f} %"
        assumption = f"launching takes {share} of the time that it takes now where the device waits for it"
        return (removing(graph_of(tables), None, begin, begin + waits["dur_ns"].to_numpy(), LEFT, assumption),)

    def fix(self, finding: Finding) -> Fix:
        """Compile, or record graphs."""
        return Fix(
            summary="Launch less often: torch.compile(mode='reduce-overhead'), or CUDA graphs for parts with fixed "
            "shapes. Not for shapes that change all the time, nor for runs too short to pay for compiling; with "
            "dropout the random stream changes.",
            snippet=SNIPPET,
        )


def _location(tables: Tables, waits: pl.DataFrame) -> Location | None:
    """The user's code that more than half of the waiting comes from; mostly it is spread, then None."""
    known = waits.filter(pl.col("event").is_not_null())
    if not tables.has("op_places") or not known.height:
        return None
    launched = tables["device_work"].filter(pl.col("launch_event").is_not_null()).unique("launch_event", keep="first")
    ops = pl.concat(
        [
            launched.select(pl.col("launch_event").alias("event"), "op_event"),
            tables["ops"].select("event", pl.col("event").alias("op_event")),
        ]
    )
    places = tables["op_places"].select(pl.col("event").alias("op_event"), *PLACE)
    rows = known.join(ops, on="event", how="left").join(places, on="op_event", how="left")
    return dominant_place(rows, "dur_ns")


def _named(tables: Tables, idle: pl.DataFrame) -> pl.DataFrame:
    """Idle spans with the ``name`` of the event that shows their cause."""
    names = tables["events"].select("event", pl.col("name").cast(pl.String))
    return idle.join(names, on="event", how="left", maintain_order="left")


def _evidence(tables: Tables, waits: pl.DataFrame, scope: Scope) -> list[Evidence]:
    rows = _named(tables, waits.sort("dur_ns", descending=True).head(3))
    return [
        Evidence(
            event=f"idle {scope.worker}",
            ts_ns=row["start_ns"],
            dur_ns=row["dur_ns"],
            note=f"meanwhile the host was at {row['name']}" if row["name"] is not None else "",
        )
        for row in rows.iter_rows(named=True)
    ]
