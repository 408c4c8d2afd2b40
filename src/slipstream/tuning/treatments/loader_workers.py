"""Batches are made in processes of their own."""

from collections.abc import Mapping
from typing import Any, ClassVar

from slipstream.tuning.constructors import with_arguments
from slipstream.tuning.edits import Keyword
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class LoaderWorkers(Treatment):
    """Gives data loaders worker processes where the job leaves their number at 0.

    The setting ``count`` is their number. They stay from epoch to epoch. Pays where the training waits for batches
    and cores are free. Random numbers that a dataset draws fall differently.
    """

    title = "loader workers"
    fix_class = "exact"
    changes_random_stream = True
    defaults: ClassVar = {"count": 2}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._seen = 0

    def applies_to(self, environment: Environment) -> str | None:
        """Where there are cores for them."""
        if environment.cores_allowed < 2:
            return "there is one core only: a worker would take turns with the training"
        return None

    def install(self) -> None:
        """Have constructors ask for workers where the job leaves the choice to torch."""
        from torch.utils.data import DataLoader

        with_arguments(DataLoader, self._wanted)

    def _wanted(self, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if given.get("num_workers", 0) or given.get("prefetch_factor") is not None:
            return None
        self._seen += 1
        return {"num_workers": int(self.settings["count"]), "persistent_workers": True}

    def proof(self) -> Proof:
        """How many loaders have workers now."""
        return Proof(
            applied=self._seen > 0,
            evidence=f"{self._seen} data loaders were given {self.settings['count']} workers",
        )

    def permanent(self) -> Permanent:
        """Two keywords."""
        return Permanent(
            summary="give the data loader workers",
            snippet=f"DataLoader(..., num_workers={self.settings['count']}, persistent_workers=True)",
            edit=Keyword(
                calls=("DataLoader",),
                keywords={"num_workers": str(self.settings["count"]), "persistent_workers": "True"},
            ),
        )
