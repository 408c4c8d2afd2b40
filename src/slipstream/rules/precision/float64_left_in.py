"""PRC004: 64-bit floating point where the rest of deep learning computes in 32 bits or less."""

from typing import ClassVar

import msgspec
import polars as pl

from slipstream.model import Dismissal, Finding, Fix, NotEnoughData
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.places import PLACE, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import FIXED_NS, costliest, window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

SAVED = 0.5
"""The least that 32 bits save of it: half the bytes, twice the numbers per vector register. Most GPUs save far more."""
DOUBLE_KERNEL = r"<double\b|dgemm|f64f64|^Cijk_[^_]+_[^_]+_D"
"""Kernels of which the type of a template or the name of the product is double; argument lists name it too often."""
MATRIX_UNIT = r"d884|d16816|dmma"
"""Kernels of 64-bit matrix units, which on the devices that have them are as fast as plain 32-bit arithmetic."""
SNIPPET = """\
array = array.astype(np.float32)                  # NumPy makes 64-bit numbers unless told otherwise
inputs = torch.as_tensor(array, dtype=torch.float32)
model = model.float()                             # not: model.double()
# look for torch.set_default_dtype(torch.float64) as well"""


class Float64LeftIn(Rule):
    """Float64 left in.

    What it detects
    On a device: kernels whose names say that they compute in 64 bits. Without a device: ops of the main thread with
    inputs in 64-bit floating point, beyond the fixed cost of calling them. The cost is half of their time, the
    least that 32 bits save; on a device no more than the host waits for it.

    Why it costs time
    Twice the bytes to move, and half the numbers per instruction on a CPU. GPUs for gaming and for inference compute
    in 64 bits at 1/32 to 1/64 of their 32-bit rate. It often comes in unasked: NumPy's default type is float64, and
    one 64-bit tensor makes the result of an operation 64-bit.

    Fix
    Convert inputs where they enter (`astype(np.float32)`, `dtype=torch.float32`), make the model 32-bit, and look
    for a default type that somebody set.

    When not to
    Where 64 bits are meant: gradient checks, some scientific models, sums over very many values. Single reductions
    in 64 bits cost nothing to speak of. It changes what is computed, so compare a validation metric.

    Source
    NVIDIA CUDA C++ Programming Guide, "Arithmetic Instructions" (throughput by type and compute capability).
    """

    code = "PRC004"
    name = "float64 left in"
    needs: ClassVar = {"window": (), "ops": ()}
    fix_class = "semantic"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find 64-bit work."""
        scope = scope_of(tables)
        rows = _on_device(tables, scope) if scope.on_device else _on_host(tables, scope)
        rows = rows.with_columns(cost_ns=(pl.col("wide_ns") * SAVED).round().cast(pl.Int64)).filter(
            pl.col("cost_ns") > 0
        )
        if not rows.height:
            return []
        wide, cost = int(rows["wide_ns"].sum()), int(rows["cost_ns"].sum())
        if scope.on_device:
            waits = host_waits_ns(tables, scope)
            if waits is not None and waits < cost:
                rows = rows.with_columns(cost_ns=(pl.col("cost_ns") * (waits / cost)).round().cast(pl.Int64))
        if not int(rows["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{duration(wide)} of work in 64 bits, but the host does not wait for the {scope.worker}"
                )
            ]
        what = "kernel" if scope.on_device else "op"
        return [
            self.finding(
                title=f"Arithmetic in 64 bits takes {duration(int(place.rows['wide_ns'].sum()))} "
                f"({per_step(place.rows.height, scope.steps, what)}); in 32 bits at least "
                f"{percent(scope.share(place.cost_ns))} of the time would be saved{place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows, "wide_ns", "{} of it in 64 bits"),
            )
            for place in by_place(rows, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """Convert where it enters."""
        return Fix(
            summary="Convert to 32 bits where the numbers enter: NumPy arrays with astype(np.float32), the model with "
            ".float(), no 64-bit default type. Keep 64 bits where they are meant, and compare a validation metric.",
            snippet=SNIPPET,
            needs_consent=True,
        )


def _on_device(tables: Tables, scope: Scope) -> pl.DataFrame:
    work = tables["device_work"].filter(
        (pl.col("kind") == "kernel") & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
    )
    name = pl.col("name").cast(pl.String)
    rows = work.with_columns(name).filter(name.str.contains(DOUBLE_KERNEL) & ~name.str.contains(MATRIX_UNIT))
    places = window_ops(tables, scope).select(pl.col("event").alias("op_event"), *PLACE)
    return rows.join(places, on="op_event", how="left").with_columns(wide_ns=pl.col("dur_ns"))


def _on_host(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Ops of the main thread with 64-bit inputs.

    Raises:
        NotEnoughData: types were not recorded.
    """
    ops = window_ops(tables, scope)
    if ops.height and ops["input_types"].null_count() == ops.height:
        raise NotEnoughData("types of inputs were not recorded: record with record_shapes=True")
    wide = (pl.col("self_ns").fill_null(0) - FIXED_NS).clip(lower_bound=0)
    rows = ops.filter(pl.col("input_types").str.contains('"double"', literal=True)).with_columns(wide_ns=wide)
    kinds = rows.select("input_types", "input_dims").unique(maintain_order=True)
    real = [_has_wide_tensor(types, dims) for types, dims in kinds.iter_rows()]
    kinds = kinds.filter(pl.Series(real, dtype=pl.Boolean))
    return rows.join(kinds, on=["input_types", "input_dims"], how="semi", nulls_equal=True)


def _has_wide_tensor(types: str, dims: str | None) -> bool:
    """Whether a 64-bit input has a shape: Python's numbers appear as 64-bit tensors without one."""
    if dims is None:
        return True
    named, known = msgspec.json.decode(types), msgspec.json.decode(dims)
    return any(name == "double" and shape for name, shape in zip(named, known, strict=False))
