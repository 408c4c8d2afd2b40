"""INP005: data are prepared on the training thread while the device waits."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.places import Places
from slipstream.model import Dismissal, Evidence, Finding, Fix
from slipstream.rules.places import PLACE, PlaceCost, by_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, percent
from slipstream.store import Tables

SNIPPET = """\
class Prepared(Dataset):
    def __getitem__(self, index):
        return transform(self.samples[index])   # in a worker process

loader = DataLoader(Prepared(), ..., num_workers=4, persistent_workers=True)
# or on the device, for the whole batch at once: images.float().div_(255)"""


class PreprocessingOnTheMainThread(Rule):
    """Preprocessing on the main thread.

    What it detects
    Idle time of the device while the training thread computes on the host outside the loader: long ops that lead to
    no device work, or Python of libraries that prepare data (NumPy, Pillow, OpenCV, tokenizers, torchvision
    transforms, ...). Without a device: time of the main thread in such libraries, outside ops.

    Why it costs time
    The training thread launches the device's work. As long as it decodes, resizes or tokenizes, nothing is launched.

    Fix
    Move the preparation into the dataset or the collate function, where worker processes do it ahead; do it once
    before training and store the result; or do it on the device for the whole batch.

    When not to
    Work that depends on the step before (the model's own outputs, rewards) cannot be done ahead. Without free cores
    workers do not help. Augmentation in workers draws from other random streams.

    Source
    PyTorch documentation of torch.utils.data, "Multi-process data loading".
    """

    code = "INP005"
    name = "preprocessing on the main thread"
    needs: ClassVar = {"window": (), "idle_spans": ()}
    fix_class = "exact"
    changes_random_stream = True
    treatment = "loader_workers"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Add up idle time whose cause is preprocessing, by the place that does it."""
        scope = scope_of(tables)
        idle = tables["idle_spans"].filter((pl.col("cause") == "preprocessing") & pl.col("thread").is_not_null())
        if not idle.height:
            return []
        named = tables["events"].select("event", pl.col("name").cast(pl.String))
        rows = idle.drop(*(name for name in PLACE if name in idle.columns)).join(
            named, on="event", how="left", maintain_order="left"
        )
        if scope.steps is None:
            cost = duration(int(rows["dur_ns"].sum()))
            return [self.dismissal(f"{cost} of computing on the host; without step marks it may be the job's set-up")]
        places = Places(tables).around(rows["thread"].to_numpy(), rows["start_ns"].to_numpy())
        rows = rows.with_columns(places.select(PLACE))
        return [self._finding(place, scope) for place in by_place(rows, "dur_ns", scope.length_ns)]

    def fix(self, finding: Finding) -> Fix:
        """Workers, or the device."""
        return Fix(
            summary="Prepare data in the dataset or collate function, so that worker processes do it ahead, or on the "
            "device for the whole batch. Not where it depends on the step before, or where no cores are free.",
            snippet=SNIPPET,
        )

    def _finding(self, place: PlaceCost, scope: Scope) -> Finding:
        sums = place.rows.drop_nulls("name").group_by("name").agg(pl.col("dur_ns").sum())
        names = sums.sort("dur_ns", "name", descending=[True, False])["name"]
        what = f", most in {names[0]}" if len(names) else ""
        who = f"The {scope.worker} waits" if scope.on_device else "The main thread is kept from training"
        return self.finding(
            title=f"{who} {percent(scope.share(place.cost_ns))} of the time for data that the training thread prepares "
            f"itself ({duration(place.cost_ns)}{what}){place.suffix}",
            cost_ns=place.cost_ns,
            steps=scope.steps,
            location=place.location,
            evidence=(
                Evidence(
                    event=row["name"] or "preparation on the host",
                    ts_ns=row["start_ns"],
                    dur_ns=row["dur_ns"],
                    note="on the training thread",
                )
                for row in place.rows.head(3).iter_rows(named=True)
            ),
        )
