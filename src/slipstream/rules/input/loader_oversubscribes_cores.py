"""INP007: worker processes of the loader and the threads of training want more cores than there are."""

from typing import ClassVar

from slipstream.model import Dismissal, Finding, Fix, NotEnoughData
from slipstream.rules.host.cpu_threads_misconfigured import cores_of, number_of
from slipstream.rules.memory.room import switches_of
from slipstream.rules.rule import Rule
from slipstream.rules.scope import scope_of
from slipstream.rules.wording import plural
from slipstream.store import Tables

SNIPPET = """\
cores = len(os.sched_getaffinity(0))
torch.set_num_threads(max(1, cores - workers))           # training on the CPU
loader = DataLoader(dataset, ..., num_workers=workers)   # training on a device: cores - 1 at most"""


class LoaderOversubscribesTheCores(Rule):
    """Loader oversubscribes the cores.

    What it detects
    More loader workers, together with the training thread (on the CPU: with all threads for ops), than cores that
    the process may use. What it costs only a run with fewer shows, so it is told among what was looked at, never as
    a finding.

    Why it costs time
    Processes that outnumber the cores take turns: the training thread is interrupted while it launches, and every
    op on the CPU waits for the slowest of its threads.

    Fix
    Fewer workers, or fewer threads for ops (`torch.set_num_threads`, OMP_NUM_THREADS), so that the sum fits.

    When not to
    Workers that wait for a disk or the network use no core: then more of them than cores are right. Measure it.

    Source
    PyTorch documentation of `torch.utils.data.DataLoader` (its own warning about too many workers).
    """

    code = "INP007"
    name = "loader oversubscribes the cores"
    needs: ClassVar = {"window": (), "loader_waits": (), "switches": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Count workers, threads and cores."""
        scope = scope_of(tables)
        workers = int(str(tables["loader_waits"]["workers"].max() or 0))
        switches = switches_of(tables)
        cores, threads = cores_of(switches), number_of(switches.get("torch_threads"))
        if cores is None or threads is None:
            raise NotEnoughData("the number of threads or of cores could not be read when this was recorded")
        busy = 1 if scope.on_device else threads
        if not workers or workers + busy <= cores:
            return []
        return [
            self.dismissal(
                f"{plural(workers, 'loader worker')} and {plural(busy, 'training thread')} share "
                f"{plural(cores, 'core')}; what that costs only a run with fewer shows"
            )
        ]

    def fix(self, finding: Finding) -> Fix:
        """Fewer of either."""
        return Fix(
            summary="Fewer workers or fewer threads for ops, so that together they fit the cores. Not where workers "
            "only wait for a disk or the network.",
            snippet=SNIPPET,
        )
