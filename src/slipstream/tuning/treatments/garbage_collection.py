"""Python's garbage collector runs more rarely."""

import gc
from typing import ClassVar

from slipstream.tuning.edits import Lines
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class GarbageCollection(Treatment):
    """Raises the number of new objects after which Python's garbage collector runs.

    The setting ``threshold`` is that of ``gc.set_threshold``. Pays where collections pause the training, which also
    keeps the ranks of a distributed job waiting for each other. Objects in cycles live longer.
    """

    title = "rare garbage collections"
    fix_class = "exact"
    defaults: ClassVar = {"threshold": 100_000}

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """What has been imported is not looked through again."""
        gc.freeze()
        gc.set_threshold(int(self.settings["threshold"]), 50, 100)

    def proof(self) -> Proof:
        """What Python says."""
        return Proof(
            applied=gc.get_threshold()[0] == self.settings["threshold"],
            evidence=f"gc.get_threshold() is {gc.get_threshold()}, with {gc.get_freeze_count():,} objects frozen",
        )

    def permanent(self) -> Permanent:
        """Two lines."""
        return Permanent(
            summary="collect garbage more rarely",
            snippet=f"gc.freeze()\ngc.set_threshold({self.settings['threshold']}, 50, 100)",
            edit=Lines(
                code=f"gc.freeze()\ngc.set_threshold({self.settings['threshold']}, 50, 100)\n",
                place="after_imports",
                modules=("gc",),
            ),
        )
