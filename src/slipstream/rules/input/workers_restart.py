"""INP002: worker processes of the loader are started anew in every epoch."""

from typing import ClassVar, cast

import polars as pl

from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.rules.places import PLACE, PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, percent
from slipstream.store import Tables

RESTART_SHARE = 0.5
"""A first wait of at least this part of that in the first epoch includes starting the workers."""
SNIPPET = """\
loader = DataLoader(dataset, ..., num_workers=4, persistent_workers=True)"""


class WorkersRestartEveryEpoch(Rule):
    """Workers restart every epoch.

    What it detects
    The first wait of each epoch after the first, in loaders with worker processes, where it is at least half as long
    as that of the first epoch; what it takes beyond the usual wait of that loader counts. The cost is this excess as a
    share of the job's time so far, laid on the recorded window, which rarely holds the beginning of an epoch itself.

    Why it costs time
    Without `persistent_workers=True` the workers end with their epoch. The next one starts new processes, which
    import everything again, get a copy of the dataset and fill the queue from nothing: 1 to 20 s during which
    nothing trains. Short epochs (small datasets, fine-tuning) suffer most.

    Fix
    `persistent_workers=True`. Workers then live on, and begin with the next epoch's batches at once.

    When not to
    Workers keep what they hold: memory, open files, caches. A dataset that is changed between epochs in the training
    process (`dataset.set_epoch`) is not changed in workers that live on.

    Source
    PyTorch documentation of `torch.utils.data.DataLoader`, `persistent_workers`.
    """

    code = "INP002"
    name = "workers restart every epoch"
    needs: ClassVar = {"window": (), "loader_waits": (), "job_steps": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Compare first waits of epochs with the others."""
        scope = scope_of(tables)
        waits = tables["loader_waits"].filter(pl.col("workers") > 0).sort("start_ns")
        if not waits.height:
            return []
        first = waits.filter("first").with_columns(epoch=pl.int_range(pl.len()).over(PLACE[:3]))
        later = first.filter(pl.col("epoch") > 0)
        if not later.height:
            raise NotEnoughData("the job was stopped within its first epoch, so the start of another was not seen")
        # Workers that live on have a batch ready far sooner than in the epoch that started them.
        began = first.filter(pl.col("epoch") == 0).select(*PLACE[:3], began_ns="dur_ns")
        later = later.join(began, on=PLACE[:3], how="left", nulls_equal=True)
        later = later.filter(pl.col("dur_ns") >= RESTART_SHARE * pl.col("began_ns"))
        if not later.height:
            return [self.dismissal("later epochs begin far sooner than the first: the workers live on")]
        usual = waits.filter(~pl.col("first")).group_by(PLACE[:3]).agg(usual_ns=pl.col("dur_ns").median())
        later = later.join(usual, on=PLACE[:3], how="left", nulls_equal=True).with_columns(
            excess_ns=(pl.col("dur_ns") - pl.col("usual_ns").fill_null(0)).clip(lower_bound=0)
        )
        share = float(later["excess_ns"].sum()) / _job_ns(tables)
        each = duration(round(float(str(later["dur_ns"].mean()))))
        epochs = "1 later epoch" if later.height == 1 else f"{later.height:,} later epochs"
        told = f"{epochs} began with a wait of {each} for new workers"
        rows = later.with_columns(
            cost_ns=(pl.col("excess_ns") / _job_ns(tables) * scope.length_ns).round().cast(pl.Int64),
            precision=pl.when(pl.col("line").is_not_null()).then(pl.lit("statement")),
        )
        if not int(rows["cost_ns"].sum()):
            return [self.dismissal(f"{told}: {percent(share)} of the job's time")]
        return [self._finding(place, scope, told) for place in by_place(rows, "cost_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Persistent workers."""
        return Fix(
            summary="Pass persistent_workers=True to the loader. Workers then keep their memory between epochs, and do "
            "not see changes that the training process makes to the dataset.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope, told: str) -> Finding:
        return self.finding(
            title=f"{told}: {percent(scope.share(place.cost_ns))} of the job's time{place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event="first batch of an epoch",
                    ts_ns=cast(int, row["start_ns"]),
                    dur_ns=cast(int, row["dur_ns"]),
                    note=f"{row['workers']} workers; other waits take {duration(round(row['usual_ns'] or 0))}",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )


def _job_ns(tables: Tables) -> int:
    """Length of the job from its first step to the end of its last.

    Raises:
        NotEnoughData: no step was measured.
    """
    steps = tables["job_steps"]
    if not steps.height:
        raise NotEnoughData("no step of this job was measured")
    first, last = steps.select(pl.col("start_ns").min().alias("a"), (pl.col("start_ns") + pl.col("dur_ns")).max()).row(
        0
    )
    return max(1, int(last) - int(first))
