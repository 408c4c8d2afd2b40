"""PRC001: matrix products run in plain 32 bits on a device that has TF32."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.kernel_types import is_matmul, precision_of_kernel
from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.model.peaks import peaks_of
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.wording import duration, percent, three_digits
from slipstream.store import Tables

PLAIN_SHARE = 0.10
"""Share of the window in plain 32-bit products below which the whole question is not worth a change of numbers."""
SNIPPET = """\
torch.set_float32_matmul_precision("high")     # matrix products; convolutions use TF32 unless told otherwise
torch.backends.cudnn.allow_tf32 = True"""


class Fp32WithoutTf32(Rule):
    """FP32 matmul without TF32.

    What it detects
    Matrix products and convolutions in kernels for plain 32-bit arithmetic (`sgemm` and the like) that take at
    least 10 % of the window, on an NVIDIA device whose TF32 peak is known. The cost follows from the ratio of the
    peaks, and is no more than the host waits for the device.

    Why it costs time
    Since Ampere, matrix units take 32-bit numbers when they may round them to 10 bits of mantissa on the way in
    (TF32); sums stay in 32 bits. That is four to eight times the rate of plain 32-bit arithmetic. PyTorch leaves it
    off for matrix products.

    Fix
    `torch.set_float32_matmul_precision("high")`.

    When not to
    It changes what is computed: products have about three significant digits. Training rarely notices; solvers,
    physics and very deep sums may. Compare a validation metric. With 16-bit autocast (PRC002) little is left for it.

    Source
    PyTorch documentation, "TensorFloat-32 (TF32) on Ampere (and later) devices"; peaks as in slipstream's hardware
    table.
    """

    code = "PRC001"
    name = "fp32 matmul without tf32"
    needs: ClassVar = {"window": (), "device_work": ()}
    fix_class = "semantic"
    treatment = "matmul_precision"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find products in plain 32 bits."""
        scope = device_scope(tables)
        rows = _plain(tables, scope)
        plain = int(rows["dur_ns"].sum())
        if tables.source.device_kind != "cuda" or not plain:
            return []
        if scope.share(plain) < PLAIN_SHARE:
            return [self.dismissal(f"plain 32-bit products take only {percent(scope.share(plain))} of the time")]
        peaks = peaks_of(tables.source.device)
        if peaks is None or peaks.fp32_tflops is None:
            raise NotEnoughData(f"the peaks of {tables.source.device or 'this device'} are not in the hardware table")
        if peaks.tf32_tflops is None:
            return [self.dismissal(f"a {peaks.device} has no TF32")]
        ratio = peaks.tf32_tflops / peaks.fp32_tflops
        saved = round(plain * max(0.0, 1 - 1 / ratio))
        waits = host_waits_ns(tables, scope)
        cost = saved if waits is None else min(saved, waits)
        if not cost:
            return [
                self.dismissal(
                    f"plain 32-bit products take {percent(scope.share(plain))} of the time, but the host does not wait "
                    f"for the {scope.worker}"
                )
            ]
        return [
            self.finding(
                title=f"Matrix products in plain 32 bits take {percent(scope.share(plain))} of the time, which a "
                f"{peaks.device} does {three_digits(ratio)} times as fast in TF32: up to {duration(cost)}",
                cost_ns=cost,
                steps=scope.steps,
                evidence=_evidence(rows),
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Allow TF32."""
        return Fix(
            summary='Call torch.set_float32_matmul_precision("high") before training. Products then keep about three '
            "significant digits: compare a validation metric. Where 16-bit autocast is possible, it gains more.",
            snippet=SNIPPET,
            needs_consent=True,
        )


def _plain(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Kernels of the window that multiply matrices in plain 32 bits, by their names."""
    work = tables["device_work"].filter(
        (pl.col("kind") == "kernel") & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
    )
    work = work.with_columns(pl.col("name").cast(pl.String))
    names = work["name"].unique()
    plain = [name for name in names if is_matmul(name) and precision_of_kernel(name) == "fp32"]
    return work.filter(pl.col("name").is_in(plain))


def _evidence(rows: pl.DataFrame) -> list[Evidence]:
    sums = rows.group_by("name").agg(
        pl.col("ts_ns").min(), pl.col("dur_ns").max(), pl.len().alias("count"), total=pl.col("dur_ns").sum()
    )
    return [
        Evidence(
            event=row["name"],
            ts_ns=row["ts_ns"],
            dur_ns=row["dur_ns"],
            note=f"{duration(row['total'])} in {row['count']:,} such kernels",
        )
        for row in sums.sort("total", "name", descending=[True, False]).head(3).iter_rows(named=True)
    ]
