"""COM006: one process drives several GPUs with DataParallel, or GPUs exchange through the host."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.painting import covered
from slipstream.analysis.places import Places
from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.places import PLACE, dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, device_scope
from slipstream.rules.window_ops import PACE, calls_of, pace_idle
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

FILES = r"torch/nn/parallel/(replicate|scatter_gather|data_parallel)\.py$"
FUNCTIONS = r"replicate|scatter|scatter_kwargs|gather"
OPS = ("Broadcast", "Scatter", "Gather")
"""Autograd functions of DataParallel, where Python was not recorded."""
HOST_BACKEND = r"^(gloo|mpi):"
SNIPPET = """\
# one process per GPU: torchrun --nproc-per-node=4 train.py
torch.distributed.init_process_group("nccl")
torch.cuda.set_device(local_rank)
model = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[local_rank])"""


class DataParallelInOneProcess(Rule):
    """DataParallel in one process.

    What it detects
    `torch.nn.DataParallel` at work (replicate, scatter, gather): idle time of the busiest device while the host does
    them. And processes with GPUs that exchange through gloo or MPI instead of NCCL: idle time while they wait for it.

    Why it costs time
    In every step DataParallel copies the whole model to each GPU, cuts the batch, collects outputs on the first one,
    and runs everything in threads of one Python process that share its lock. Gloo takes tensors of the GPU through
    the host's memory.

    Fix
    DistributedDataParallel with one process per GPU and the backend "nccl".

    When not to
    In a notebook for a quick look. Batch normalisation sees each GPU's part of the batch in both cases; a batch size
    given to a loader is per process under DistributedDataParallel.

    Source
    PyTorch documentation, "Comparison between DataParallel and DistributedDataParallel"; torch.distributed,
    "Which backend to use?".
    """

    code = "COM006"
    name = "dataparallel in one process"
    needs: ClassVar = {"window": (), "idle_spans": ()}
    fix_class = "rounding"
    needs_device = True

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Look for DataParallel's steps, and for collectives through the host."""
        scope = device_scope(tables)
        found = [self._replicas(tables, scope), self._through_host(tables, scope)]
        return [verdict for verdict in found if verdict is not None]

    def fix(self, finding: Finding) -> Fix:
        """One process per GPU."""
        return Fix(
            summary="Start one process per GPU with torchrun and use DistributedDataParallel with the backend nccl. "
            "The batch size given to a loader is then per process.",
            snippet=SNIPPET,
        )

    def _replicas(self, tables: Tables, scope: Scope) -> Finding | Dismissal | None:
        rows = _steps(tables, scope)
        if not rows.height:
            return None
        idle = pl.Series(
            covered(
                pace_idle(tables, scope.main_thread, PACE),
                rows["ts_ns"].to_numpy(),
                (rows["ts_ns"] + rows["dur_ns"]).to_numpy(),
            ),
            dtype=pl.Int64,
        )
        rows = rows.with_columns(cost_ns=idle)
        cost = int(rows["cost_ns"].sum())
        told = f"DataParallel copies the model and cuts batches in {per_step(rows.height, scope.steps, 'call')}"
        if not cost:
            return self.dismissal(f"{told}, while the {scope.worker} had other work")
        places = Places(tables).around(rows["thread"].to_numpy(), rows["ts_ns"].to_numpy()).select(PLACE)
        return self.finding(
            title=f"{told}: the {scope.worker} is idle for {percent(scope.share(cost))} of the time meanwhile "
            f"({duration(cost)})",
            cost_ns=cost,
            steps=scope.steps,
            location=dominant_place(rows.with_columns(places), "cost_ns"),
            evidence=_evidence(rows),
        )

    def _through_host(self, tables: Tables, scope: Scope) -> Finding | None:
        marks = tables["annotations"].filter(
            ~pl.col("on_device")
            & pl.col("name").cast(pl.String).str.contains(HOST_BACKEND)
            & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
        )
        cost = int(tables["idle_spans"].filter(pl.col("cause") == "comm_wait")["dur_ns"].sum())
        if not marks.height or not cost:
            return None
        return self.finding(
            title=f"GPUs exchange through the host ({marks['name'].cast(pl.String)[0].partition(':')[0]} instead of "
            f"nccl): {percent(scope.share(cost))} of the time ({duration(cost)})",
            cost_ns=cost,
            steps=scope.steps,
            evidence=_evidence(
                marks.select(pl.col("name").cast(pl.String), "ts_ns", "dur_ns", cost_ns=pl.col("dur_ns"))
            ),
        )


def _steps(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Outermost calls of replicate, scatter and gather on the main thread."""
    within = pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left") & pl.col("thread").eq_missing(
        pl.lit(scope.main_thread)
    )
    columns = (pl.col("name").cast(pl.String), "thread", "ts_ns", "dur_ns")
    rows = calls_of(tables, FILES, FUNCTIONS).filter(within).select(columns)
    if not rows.height:
        ops = tables["ops"].filter(within & pl.col("name").cast(pl.String).is_in(OPS))
        if ops["name"].n_unique() < 2:  # one of these names alone may be anybody's function
            return ops.select(columns).clear()
        rows = ops.select(columns)
    reached = (pl.col("ts_ns") + pl.col("dur_ns")).cum_max().shift(1)
    rows = rows.sort("ts_ns", "dur_ns", descending=[False, True])
    return rows.filter((pl.col("ts_ns") >= reached).fill_null(True))


def _evidence(rows: pl.DataFrame) -> list[Evidence]:
    return [
        Evidence(event=row["name"], ts_ns=row["ts_ns"], dur_ns=row["dur_ns"], note=f"{duration(row['cost_ns'])} lost")
        for row in rows.sort("cost_ns", "ts_ns", descending=[True, False]).head(3).iter_rows(named=True)
    ]
