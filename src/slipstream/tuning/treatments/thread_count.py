"""Ops on the CPU use another number of threads."""

from typing import ClassVar

from slipstream.tuning.environment import Environment, cores_allowed
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class ThreadCount(Treatment):
    """Sets how many threads an op may use on the CPU.

    The setting ``count`` is their number, 0 for one per core that the job may run on. Pays where a launcher left it
    at 1, or where more threads than free cores wait for each other. A job that sets the number itself keeps its own.
    """

    title = "number of threads"
    fix_class = "rounding"
    defaults: ClassVar = {"count": 0}

    def applies_to(self, environment: Environment) -> str | None:
        """Where there are as many cores."""
        if self._count(environment.cores_allowed) > environment.cores_allowed:
            return f"{self.settings['count']} threads on {environment.cores_allowed} allowed cores would wait in turn"
        if environment.variables.get("OMP_NUM_THREADS") == str(self._count(environment.cores_allowed)):
            return f"OMP_NUM_THREADS is {self._count(environment.cores_allowed)} already"
        return None

    def variables(self, environment: Environment) -> dict[str, str]:
        """OpenMP's and MKL's own."""
        count = str(self._count(environment.cores_allowed))
        return {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count}

    def proof(self) -> Proof:
        """What torch says it uses."""
        import torch

        wanted = self._count(cores_allowed())
        return Proof(
            applied=torch.get_num_threads() == wanted,
            evidence=f"torch uses {torch.get_num_threads()} threads, {wanted} were asked for",
        )

    def permanent(self) -> Permanent:
        """Variables."""
        count = str(self.settings["count"] or "<cores>")
        return Permanent(summary=f"set OMP_NUM_THREADS={count}", variables={"OMP_NUM_THREADS": count})

    def _count(self, cores: int) -> int:
        return int(self.settings["count"]) or cores
