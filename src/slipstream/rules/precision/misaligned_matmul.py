"""PRC003: sizes of 16-bit matrix products do not fit the matrix units."""

from typing import ClassVar

import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.model.peaks import peaks_of
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.places import PlaceCost, by_place
from slipstream.rules.products import ELEMENT_BYTES, with_flops
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import window_ops
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

MULTIPLE = 8
"""Numbers of 16 bits that matrix units load at once: sizes should be multiples of it."""
ALIKE = 16
"""Products that differ by no more than this factor in their operations reach similar rates."""
MEMORY_SHARE = 0.8
"""Share of the memory's peak that a good kernel reaches."""
WIDE = ("c10::Half", "c10::BFloat16")
SNIPPET = """\
tokenizer.pad(batch, padding=True, pad_to_multiple_of=8)       # positions
model.resize_token_embeddings(len(tokenizer), pad_to_multiple_of=64)   # vocabulary
head = torch.nn.Linear(width, math.ceil(classes / 8) * 8)      # and ignore the rest of the outputs"""


class MisalignedMatmul(Rule):
    """Misaligned 16-bit matmul.

    What it detects
    Products of 16-bit matrices of which a size is no multiple of 8 (vocabulary, classes, positions, head size), and
    how much longer they take than they would at the rate of aligned products of similar size in the same recording,
    or at 80 % of the memory's peak where that is the slower bound. No more counts than the host waits for the device.

    Why it costs time
    Matrix units load 16 bytes at a time. Where rows do not begin at multiples of that, kernels load number by number
    (`align1`, `align2` in their names) and reach a fraction of the rate.

    Fix
    Round sizes up: pad positions and vocabulary to multiples of 8 (64 is better still for large ones), choose head
    sizes and widths that are multiples of 64.

    When not to
    Padding adds work: where a size is only slightly above a multiple the gain is large, where products are tiny there
    is none. Padded positions and classes must be masked. A changed vocabulary changes checkpoints.

    Source
    NVIDIA Deep Learning Performance Guide, "Matrix Multiplication Background", "Tensor Core requirements".
    """

    code = "PRC003"
    name = "misaligned 16-bit matmul"
    needs: ClassVar = {"window": (), "ops": ("input_dims", "input_types"), "op_tree": ()}
    fix_class = "rounding"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Compare misaligned products with aligned ones."""
        scope = device_scope(tables)
        rows = _products(tables, scope)
        odd = rows.filter("odd")
        if not odd.height:
            return []
        spent = int(odd["ns"].sum())
        told = f"misaligned 16-bit products take {percent(scope.share(spent))} of the time"
        odd = _with_floor(tables, odd, rows.filter(~pl.col("odd")))
        compared = odd.drop_nulls("floor_ns")
        if not compared.height:
            return [self.dismissal(f"{told}; no aligned ones of similar size are here to compare them with")]
        compared = compared.with_columns(cost_ns=(pl.col("ns") - pl.col("floor_ns")).clip(lower_bound=0))
        cost, waits = int(compared["cost_ns"].sum()), host_waits_ns(tables, scope)
        if waits is not None and waits < cost:
            compared = compared.with_columns(cost_ns=(pl.col("cost_ns") * (waits / cost)).round().cast(pl.Int64))
        if not int(compared["cost_ns"].sum()):
            return [self.dismissal(f"{told}, as fast as aligned ones would be, or faster than the host launches")]
        return [self._finding(place, scope) for place in by_place(compared, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Multiples of eight."""
        return Fix(
            summary="Round sizes up to multiples of 8, better 64: pad positions and vocabulary, choose widths and head "
            "sizes accordingly, and mask what was added. Nothing to gain where products are tiny.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        first = place.rows.row(0, named=True)
        return self.finding(
            title=f"16-bit products of sizes that are no multiple of {MULTIPLE} (such as {_spoken(first)}) take "
            f"{percent(scope.share(place.cost_ns))} of the time longer than aligned ones would "
            f"({duration(place.cost_ns)} in {per_step(place.rows.height, scope.steps, 'product')}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"],
                    ts_ns=row["ts_ns"],
                    dur_ns=row["dur_ns"],
                    note=f"{_spoken(row)}: {duration(row['ns'])} on the {scope.worker}, "
                    f"aligned {duration(row['floor_ns'])}",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _spoken(row: dict[str, int]) -> str:
    batch = f"{row['b']} of " if row["b"] > 1 else ""
    return f"{batch}{row['m']} x {row['k']} x {row['n']}"


def _products(tables: Tables, scope: Scope) -> pl.DataFrame:
    """16-bit products of the window with sizes, ``flops``, ``ns`` on the device, and whether they are ``odd``."""
    ops = window_ops(tables, scope)
    types = pl.col("input_types").str.json_path_match("$[0]").is_in(WIDE)
    rows = (
        with_flops(ops.filter(types)).with_columns(ns=pl.col("device_total_ns").fill_null(0)).filter(pl.col("ns") > 0)
    )
    return rows.with_columns(odd=pl.any_horizontal(pl.col(size) % MULTIPLE != 0 for size in "mkn"))


def _with_floor(tables: Tables, odd: pl.DataFrame, aligned: pl.DataFrame) -> pl.DataFrame:
    """Misaligned products with ``floor_ns``; null where no aligned one of similar size is there."""
    peaks = peaks_of(tables.source.device)
    bw = peaks.hbm_gbps * MEMORY_SHARE if peaks is not None and peaks.hbm_gbps else None
    moved = (pl.col("m") * pl.col("k") + pl.col("k") * pl.col("n") + pl.col("m") * pl.col("n")) * pl.col("b")
    bytes_ = moved * ELEMENT_BYTES["c10::BFloat16"]
    sizes = odd["flops"].unique()
    rates = {}
    for flops in sizes:
        alike = aligned.filter(pl.col("flops").is_between(flops / ALIKE, flops * ALIKE))
        spent = int(alike["ns"].sum())
        rates[flops] = int(alike["flops"].sum()) / spent if spent else None
    rate = pl.DataFrame(
        {"flops": list(rates), "rate": list(rates.values())}, schema={"flops": pl.Int64, "rate": pl.Float64}
    )
    by_memory = bytes_ / bw if bw else pl.lit(0.0)
    joined = odd.join(rate, on="flops", how="left", maintain_order="left")
    floor = pl.max_horizontal(pl.col("flops") / pl.col("rate"), by_memory)
    return joined.with_columns(floor_ns=pl.when(pl.col("rate").is_not_null()).then(floor.round().cast(pl.Int64)))
