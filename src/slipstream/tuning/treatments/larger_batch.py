"""Every step learns from more samples."""

from collections.abc import Mapping
from typing import Any, ClassVar

from slipstream.tuning.constructors import with_arguments
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class LargerBatch(Treatment):
    """Makes the batches of data loaders larger by the setting ``factor``.

    Pays where a step costs much whatever the batch: kernels launched one by one, small matrices, exchanged
    gradients. Time is compared per sample. There are fewer steps to an epoch, and learning rate and schedule may have
    to follow: what is learnt is not the same. Where memory does not suffice, the trial fails and says so.
    """

    title = "larger batches"
    fix_class = "semantic"
    changes_random_stream = True
    defaults: ClassVar = {"factor": 2}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._sizes: list[tuple[int, int]] = []

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Have constructors ask for more."""
        from torch.utils.data import DataLoader

        with_arguments(DataLoader, self._wanted)

    def _wanted(self, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        size = given.get("batch_size", 1)
        if not size or given.get("batch_sampler") is not None:
            return None
        larger = size * int(self.settings["factor"])
        self._sizes.append((size, larger))
        return {"batch_size": larger}

    def proof(self) -> Proof:
        """Sizes before and after."""
        if not self._sizes:
            return Proof(applied=False, evidence="no data loader makes batches of a fixed size")
        before, after = self._sizes[0]
        return Proof(
            applied=True, evidence=f"{len(self._sizes)} data loaders make batches of {after} instead of {before}"
        )

    def permanent(self) -> Permanent:
        """A number."""
        return Permanent(
            summary="make batches larger, and tune the learning rate anew",
            snippet=f"DataLoader(..., batch_size={self.settings['factor']} * batch_size)",
        )
