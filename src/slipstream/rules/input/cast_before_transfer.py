"""INP004: batches are converted to a wider type on the host before they are sent to the device."""

from typing import ClassVar

import msgspec
import numpy as np
import polars as pl

from slipstream.analysis.painting import covered, outside, paint
from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.places import PLACE, PlaceCost, by_place
from slipstream.rules.products import ELEMENT_BYTES, shapes
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import pace_idle, window_ops
from slipstream.rules.wording import duration, per_step, percent, size
from slipstream.store import Tables

CAUSES = ("launch", "host", "preprocessing")
"""Causes of idle time under which a conversion on the host appears."""
SNIPPET = """\
images = images.to(device, non_blocking=True)          # bytes travel as bytes
images = images.float().div_(255)                      # and become 32-bit numbers on the device
# not: images = (images.float() / 255).to(device)"""


class CastBeforeTransfer(Rule):
    """Cast before transfer.

    What it detects
    A conversion on the host (`copy_` between types) to a type of at least twice the size, followed on the same thread
    by an upload of exactly that many bytes. The cost is the time of the upload beside which no kernel runs, times
    the part that the narrow type would save, and the idle time during the conversion itself.

    Why it costs time
    Images are bytes; as 32-bit numbers they are four times as large, and it is these that cross the bus. The
    conversion itself is quick on a device and slow on a single thread of the host.

    Fix
    Send the data as they are stored, and convert and normalise on the device.

    When not to
    Where the loader's workers convert and the upload is hidden behind the computation, nothing is gained. Rounding
    may differ in the last digit where the normalisation itself moves to the device.

    Source
    PyTorch Performance Tuning Guide, "Data loading and augmentation"; NVIDIA CUDA C++ Best Practices Guide, "Data
    Transfer Between Host and Device".
    """

    code = "INP004"
    name = "cast before transfer"
    needs: ClassVar = {"window": (), "ops": (), "copies": (), "device_work": (), "idle_spans": ()}
    fix_class = "rounding"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Match widening conversions with the uploads after them."""
        scope = device_scope(tables)
        uploads = tables["copies"].filter(
            (pl.col("kind") == "HtoD") & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns)
        )
        if not uploads.height:
            return []
        ops = window_ops(tables, scope)
        if not ops.height or ops["input_types"].null_count() == ops.height:
            raise NotEnoughData("types of inputs were not recorded: record with record_shapes=True")
        rows = _matched(tables, uploads, _widening(ops))
        if not rows.height:
            return []
        rows = _with_costs(tables, rows)
        if not int(rows["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{per_step(rows.height, scope.steps, 'batch')} widened before the upload, which is hidden"
                )
            ]
        return [self._finding(place, scope) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Send narrow, widen there."""
        return Fix(
            summary="Send the data in the type they are stored in, and convert and normalise them on the device. "
            "Nothing to gain where workers convert and the upload is hidden.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        wide, narrow = place.rows.row(0, named=True)["size_bytes"], place.rows.row(0, named=True)["narrow_bytes"]
        return self.finding(
            title=f"Data are widened from {size(narrow)} to {size(wide)} before they are sent: "
            f"{percent(scope.share(place.cost_ns))} of the time ({duration(place.cost_ns)} in "
            f"{per_step(place.rows.height, scope.steps, 'upload')}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"{row['types']} on the host, then an upload of {size(row['size_bytes'])}",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _widening(ops: pl.DataFrame) -> pl.DataFrame:
    """Conversions on the host to a type of at least twice the size, with ``size_bytes`` and ``narrow_bytes``."""
    casts = ops.filter(
        (pl.col("name") == "aten::copy_")
        & (pl.col("device_self_ns").fill_null(0) == 0)
        & pl.col("input_types").is_not_null()
    )
    sizes = [_sizes(types, dims) for types, dims in casts.select("input_types", "input_dims").iter_rows()]
    return casts.with_columns(
        pl.Series("size_bytes", [wide for wide, _, _ in sizes], dtype=pl.Int64),
        pl.Series("narrow_bytes", [narrow for _, narrow, _ in sizes], dtype=pl.Int64),
        pl.Series("types", [told for _, _, told in sizes], dtype=pl.String),
    ).filter(pl.col("size_bytes") >= 2 * pl.col("narrow_bytes"))


def _sizes(types: str, dims: str | None) -> tuple[int, int, str]:
    """Bytes written and read by one ``copy_``, and its types in words; zeros where they are not known."""
    named = msgspec.json.decode(types)
    known = shapes(dims)
    if len(named) < 2 or not known or named[0] not in ELEMENT_BYTES or named[1] not in ELEMENT_BYTES:
        return 0, 1, ""
    elements = int(np.prod(known[0], dtype=np.int64))
    return elements * ELEMENT_BYTES[named[0]], elements * ELEMENT_BYTES[named[1]], f"{named[1]} to {named[0]}"


def _matched(tables: Tables, uploads: pl.DataFrame, casts: pl.DataFrame) -> pl.DataFrame:
    """Each conversion with the first upload of its size launched after it on its thread."""
    launched = tables["device_work"].select("event", thread="launch_thread", launched_ns="launch_ts_ns")
    sent = uploads.select("event", "size_bytes", copy_ts_ns="ts_ns", copy_ns="dur_ns").join(launched, on="event")
    sent = sent.drop_nulls(["launched_ns", "thread"]).rename({"event": "copy_event"}).sort("launched_ns")
    found = casts.sort("ts_ns").join_asof(
        sent,
        left_on="ts_ns",
        right_on="launched_ns",
        by=["thread", "size_bytes"],
        strategy="forward",
        check_sortedness=False,
    )
    return found.drop_nulls("copy_event").unique("copy_event", keep="last", maintain_order=True)


def _with_costs(tables: Tables, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with ``cost_ns``: the part of the bare upload that is saved, and idle time during the conversion."""
    work = tables["device_work"].filter(pl.col("kind") != "copy").sort("ts_ns")
    begin = work["ts_ns"].to_numpy()
    start = rows["copy_ts_ns"].to_numpy()
    copies = paint(start, start + rows["copy_ns"].to_numpy(), 0)
    bare = outside(copies, paint(begin, begin + work["dur_ns"].to_numpy(), 0))
    exposed = covered(bare, start, start + rows["copy_ns"].to_numpy())
    idle = np.zeros(rows.height, np.int64)
    for thread in rows["thread"].unique():
        mine = (rows["thread"] == thread).to_numpy()
        cast = rows["ts_ns"].to_numpy()[mine]
        idle[mine] = covered(pace_idle(tables, thread, CAUSES), cast, rows["end_ns"].to_numpy()[mine])
    saved = pl.Series(exposed) * (1 - rows["narrow_bytes"] / rows["size_bytes"])
    return rows.with_columns(cost_ns=saved.round().cast(pl.Int64) + pl.Series(idle)).with_columns(pl.col(PLACE))
