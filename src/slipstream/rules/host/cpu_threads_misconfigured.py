"""HST004: training on the CPU uses fewer threads than there are cores, or more."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.kernel_types import MATMUL_OP
from slipstream.model import Dismissal, Finding, Fix, NotEnoughData
from slipstream.rules.memory.room import switches_of
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import costliest, window_ops
from slipstream.rules.wording import duration, percent, plural
from slipstream.store import Tables

PARALLEL_NS = 200_000
"""Matrix work shorter than this does not pay for more threads."""
SET_BY_HAND = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
SNIPPET = """\
# before Python starts; torchrun sets 1 unless it is given
#   OMP_NUM_THREADS=8 torchrun --nproc-per-node=4 train.py
torch.set_num_threads(len(os.sched_getaffinity(0)) // processes_on_this_machine)"""


class CpuThreadsMisconfigured(Rule):
    """CPU threads misconfigured.

    What it detects
    On CPU training: fewer threads for ops than half of the cores that this process may use (than all of them, where
    OMP_NUM_THREADS or MKL_NUM_THREADS says so), divided among the processes of the job. The cost is the time of
    matrix work of 0.2 ms and more per call that the missing threads would take over at best. More threads than cores
    are told without a cost, which only a run with fewer shows.

    Why it costs time
    Matrix products and convolutions divide well among cores; with one thread the others idle. `torchrun` sets
    OMP_NUM_THREADS=1 for every process unless it is set before, and containers inherit what their image was built
    with. The other way round, more threads than cores take turns, and every op waits for the slowest of them.

    Fix
    As many threads as physical cores, divided by the number of training processes on the machine, less the cores
    that loader workers keep busy.

    When not to
    Where other processes use the cores; with small tensors, where threads cost more than they bring; logical cores
    of one physical core share its arithmetic units. The figure is a bound, not a promise: memory bandwidth may be
    used up by fewer threads. Measure it. Sums are added up in another order, so results differ in the last digits.

    Source
    PyTorch Performance Tuning Guide, "CPU specific optimizations"; documentation of torchrun.
    """

    code = "HST004"
    name = "cpu threads misconfigured"
    needs: ClassVar = {"window": (), "ops": (), "switches": ()}
    fix_class = "rounding"
    treatment = "thread_count"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Compare threads with cores."""
        scope = scope_of(tables)
        switches = switches_of(tables)
        threads, cores = number_of(switches.get("torch_threads")), cores_of(switches)
        if threads is None or cores is None:
            raise NotEnoughData("the number of threads or of cores could not be read when this was recorded")
        processes = tables.source.world_size or 1
        if threads > cores:
            return [
                self.dismissal(
                    f"{plural(threads, 'thread')} for ops share {plural(cores, 'core')}; what that costs only a run "
                    "with fewer shows"
                )
            ]
        by_hand = next((name for name in SET_BY_HAND if number_of(switches.get(name)) == threads), None)
        usable = max(1, (cores if by_hand else cores // 2) // processes)
        if scope.on_device or threads >= usable:
            return []
        return [self._verdict(tables, scope, threads, usable, f" ({by_hand}={threads})" if by_hand else "")]

    def fix(self, finding: Finding) -> Fix:
        """As many threads as cores."""
        return Fix(
            summary="Set OMP_NUM_THREADS (before Python starts) or torch.set_num_threads to the physical cores divided "
            "by the training processes on the machine. Measure it: memory bandwidth may be used up by fewer threads, "
            "and other processes may need the cores.",
            snippet=SNIPPET,
        )

    def _verdict(self, tables: Tables, scope: Scope, threads: int, usable: int, why: str) -> Finding | Dismissal:
        ops = window_ops(tables, scope)
        rows = ops.filter(pl.col("name").str.contains(MATMUL_OP.pattern) & (pl.col("work_ns") >= PARALLEL_NS))
        saved = (pl.col("work_ns") * (1 - threads / usable)).round().cast(pl.Int64)
        rows = rows.with_columns(cost_ns=saved)
        cost = int(rows["cost_ns"].sum())
        told = f"{plural(threads, 'thread')} of {usable} usable cores{why}"
        if not cost:
            return self.dismissal(f"ops use {told}, but no matrix work is long enough to divide")
        return self.finding(
            title=f"Ops use {told}: up to {percent(scope.share(cost))} of the time ({duration(cost)}) would be saved "
            "in matrix work that divides among cores",
            cost_ns=cost,
            steps=scope.steps,
            evidence=costliest(rows, "work_ns", "{} on too few threads"),
        )


def number_of(text: str | None) -> int | None:
    """A switch that holds a count, or None."""
    return int(text) if text is not None and text.strip().isdigit() else None


def cores_of(switches: dict[str, str | None]) -> int | None:
    """Cores that the process may use: by affinity, or fewer by a quota on CPU time."""
    allowed = number_of(switches.get("allowed_cores"))
    try:
        quota = float(switches.get("cpu_quota_cores") or "nan")
    except ValueError:
        return allowed
    return allowed if allowed is None or not quota < allowed else max(1, int(quota))
