"""LCH006: a model is called with one sample at a time."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.places import Places
from slipstream.model import Dismissal, Finding, Fix, NotEnoughData
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.launches.loops import sample_loops, with_fixed_cost
from slipstream.rules.places import PLACE, by_place
from slipstream.rules.products import with_flops
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import FIXED_NS, costliest, spans_of, window_ops, within
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

BEST = 0.95
"""Quantile of rates of products that counts as the best: a single one may be mismeasured."""
SNIPPET = """\
outputs = model(torch.stack(samples))          # not: [model(sample[None]) for sample in samples]
loss = criterion(outputs, torch.stack(targets))

# samples of different lengths: pad them to the longest and mask the padding
batch = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)"""


class SamplesOneByOne(Rule):
    """Samples one by one.

    What it detects
    An outermost module that one training step calls four times and more, with a first dimension of one (or none for
    the batch) each time, while autograd records. The cost has two parts. Fixed cost of the forward calls: without a
    device Python and the calling of ops, on a device the idle time that the host's pace is the cause of (part of
    what LCH001 counts). And matrix products, forward and backward, beyond what they would take at the best rate that
    this recording shows; on a device no more than the host waits.

    Why it costs time
    Every op costs the same 1 to 50 us for one sample as for sixty-four, and the weights are read from memory once
    for every call. Matrix units work at a few per cent of their rate on a single row.

    Fix
    Stack samples to a batch and call the model once; pad and mask where lengths differ.

    When not to
    Where memory holds one sample only (then this is gradient accumulation, and right), where a call depends on the
    result of the one before (generation, reinforcement learning in a loop), and with batch normalisation, whose
    statistics depend on what is in a batch.

    Source
    PyTorch documentation of `torch.stack`, `torch.nn.utils.rnn.pad_sequence` and `torch.vmap`.
    """

    code = "LCH006"
    name = "samples one by one"
    needs: ClassVar = {"window": (), "ops": ("input_dims",), "python": (), "idle_spans": ()}
    fix_class = "rounding"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find modules that are called again and again with one sample."""
        scope = scope_of(tables)
        if not tables["python"].height:
            raise NotEnoughData("no Python rows, so calls of modules are not known: record with with_stack=True")
        loops = with_fixed_cost(tables, scope, sample_loops(tables, scope))
        if not loops.height:
            return []
        loops = _shared_out(loops, _slow_products_ns(tables, scope, loops))
        if not int(loops["cost_ns"].sum()):
            return [
                self.dismissal(
                    f"{loops['name'][0]} is called with one sample {per_step(loops.height, scope.steps, 'time')}, "
                    f"while the {scope.worker} had other work"
                )
            ]
        places = Places(tables).around(loops["thread"].to_numpy(), loops["ts_ns"].to_numpy())
        loops = loops.with_columns(places.select(PLACE))
        return [
            self.finding(
                title=f"{place.rows['name'][0].removeprefix('nn.Module: ')} is called with one sample "
                f"{per_step(place.rows.height, scope.steps, 'time')}: {percent(scope.share(place.cost_ns))} "
                f"of the time ({duration(place.cost_ns)}) would be saved by a batch{place.suffix}",
                cost_ns=place.cost_ns,
                steps=scope.steps,
                location=place.location,
                evidence=costliest(place.rows, note="a batch would save {} of it and its backward"),
            )
            for place in by_place(loops, "cost_ns", scope.length_ns)
        ]

    def fix(self, finding: Finding) -> Fix:
        """A batch."""
        return Fix(
            summary="Stack the samples and call the model once per step; pad and mask where lengths differ. Not where "
            "memory holds one sample only, where one call needs the result of another, or with batch normalisation.",
            snippet=SNIPPET,
        )


def _shared_out(loops: pl.DataFrame, more_ns: int) -> pl.DataFrame:
    """Add a time to the cost of all calls, evenly."""
    until = (pl.int_range(1, pl.len() + 1) * more_ns) // pl.len()
    return loops.with_columns(cost_ns=pl.col("cost_ns") + until - until.shift(1, fill_value=0))


def _slow_products_ns(tables: Tables, scope: Scope, loops: pl.DataFrame) -> int:
    """Time of the calls' matrix products, their backward included, beyond that at the best rate of this recording."""
    ops = window_ops(tables, scope)
    times = "device_total_ns" if scope.on_device else "self_ns"
    products = with_flops(ops).with_columns(ns=pl.col(times).fill_null(0)).filter(pl.col("ns") > 0)
    best = products.filter(pl.col("ns") >= FIXED_NS).select((pl.col("flops") / pl.col("ns")).quantile(BEST)).item()
    if best is None:
        return 0
    inside = ops.filter(within(ops, spans_of(loops.sort("ts_ns"))))
    forward = pl.col("event").is_in(inside["event"].implode())
    nodes = ops.filter(
        (pl.col("fwd_thread").fill_null(0) != 0) & pl.col("sequence").is_in(inside["sequence"].drop_nulls().implode())
    )
    mine = products.filter(forward | pl.col("parent").is_in(nodes["event"].implode()))
    # Products of one kind become one: no faster than a single one of them, nor than the best rate allows.
    kinds = mine.group_by("name", "b", "m", "k", "n", maintain_order=True).agg(
        pl.col("ns").sum(), pl.col("flops").sum(), one=pl.col("ns").mean()
    )
    saved = float(kinds.select((pl.col("ns") - pl.max_horizontal("one", pl.col("flops") / best)).sum()).item())
    if scope.on_device:
        waits = host_waits_ns(tables, scope)
        saved = saved if waits is None else min(saved, waits)
    return max(0, round(saved))
