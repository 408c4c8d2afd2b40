"""Workers of data loaders outlive the epoch."""

from collections.abc import Mapping
from typing import Any, ClassVar

from slipstream.tuning.constructors import with_arguments
from slipstream.tuning.edits import Keyword
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class PersistentWorkers(Treatment):
    """Keeps the workers that a job asks for from epoch to epoch, with more batches made ahead.

    The setting ``prefetch_factor`` is torch's: batches that every worker makes ahead. Pays for short epochs, and
    where some batches take much longer than others. Costs the memory of these batches.
    """

    title = "workers that stay, with batches made ahead"
    fix_class = "exact"
    changes_random_stream = True
    defaults: ClassVar = {"prefetch_factor": 4}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._seen = 0

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Have constructors ask for it where there are workers."""
        from torch.utils.data import DataLoader

        with_arguments(DataLoader, self._wanted)

    def _wanted(self, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not given.get("num_workers", 0) or given.get("persistent_workers"):
            return None
        self._seen += 1
        ahead = given.get("prefetch_factor") or int(self.settings["prefetch_factor"])
        return {"persistent_workers": True, "prefetch_factor": ahead}

    def proof(self) -> Proof:
        """How many loaders keep theirs."""
        return Proof(
            applied=self._seen > 0,
            evidence=f"{self._seen} data loaders with workers keep them from epoch to epoch",
        )

    def permanent(self) -> Permanent:
        """Two keywords."""
        return Permanent(
            summary="keep the workers of the data loader",
            snippet=f"DataLoader(..., persistent_workers=True, prefetch_factor={self.settings['prefetch_factor']})",
            edit=Keyword(
                calls=("DataLoader",),
                keywords={"persistent_workers": "True", "prefetch_factor": str(self.settings["prefetch_factor"])},
                where={"num_workers": "0"},
            ),
        )
