"""Threads of OpenMP keep awake between two ops."""

import os
from typing import Any, ClassVar

from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class OpenmpWait(Treatment):
    """Sets what the threads of OpenMP do between two parallel regions.

    The setting ``policy`` is that of ``OMP_WAIT_POLICY``: ``active`` threads spin and are there at once, ``passive``
    ones leave the core to others. Active pays for many small ops on the CPU, passive where loader workers need the
    cores.
    """

    title = "OpenMP threads kept awake"
    fix_class = "exact"
    defaults: ClassVar = {"policy": "active"}

    def applies_to(self, environment: Environment) -> str | None:
        """For work on the CPU with more than one core, where the job has not chosen itself."""
        if environment.device_kind != "cpu":
            return "the training does not run on the CPU's threads"
        if environment.cores_allowed < 2:
            return "there is one core only"
        if "OMP_WAIT_POLICY" in environment.variables:
            return f"OMP_WAIT_POLICY is {environment.variables['OMP_WAIT_POLICY']} already"
        return None

    def variables(self, environment: Environment) -> dict[str, str]:
        """OpenMP's own."""
        return {"OMP_WAIT_POLICY": str(self.settings["policy"])}

    def proof(self) -> Proof:
        """The variable, as OpenMP found it at the start of the process, and who reads it."""
        import torch

        openmp: Any = torch.backends.openmp
        policy = str(self.settings["policy"])
        found = os.environ.get("OMP_WAIT_POLICY")
        threads = torch.get_num_threads()
        return Proof(
            applied=found == policy and openmp.is_available() and threads > 1,
            evidence=f"OMP_WAIT_POLICY was {found} when OpenMP started, with {threads} threads",
        )

    def permanent(self) -> Permanent:
        """A variable."""
        return Permanent(
            summary="tell OpenMP's threads how to wait", variables={"OMP_WAIT_POLICY": str(self.settings["policy"])}
        )
