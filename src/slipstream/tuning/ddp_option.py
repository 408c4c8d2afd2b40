"""What treatments of ``DistributedDataParallel`` share: arguments that it is constructed with."""

from collections.abc import Mapping
from typing import Any

from slipstream.tuning.constructors import with_arguments
from slipstream.tuning.edits import Keyword
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Setting, Treatment


class DdpOption(Treatment):
    """Gives ``DistributedDataParallel`` arguments that the job leaves to torch."""

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._given: list[str] = []
        self._why = "no model was wrapped in DistributedDataParallel"

    def arguments(self) -> dict[str, Setting]:
        """Arguments of the constructor, by name."""
        return dict(self.settings)

    def applies_to(self, environment: Environment) -> str | None:
        """In jobs of several ranks."""
        if int(environment.variables.get("WORLD_SIZE", "1") or 1) < 2:
            return "the job has one rank (WORLD_SIZE is not set): apply it to each rank with slipstream run --with"
        return None

    def install(self) -> None:
        """Have the constructor take them."""
        from torch.nn.parallel import DistributedDataParallel

        with_arguments(DistributedDataParallel, self._wanted)

    def _wanted(self, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        own = [name for name in self.arguments() if name in given]
        if own:
            self._why = f"the job sets {', '.join(own)} itself"
            return None
        self._given.append(type(given["module"]).__name__)
        return self.arguments()

    def proof(self) -> Proof:
        """Which models were wrapped so."""
        if not self._given:
            return Proof(applied=False, evidence=self._why)
        return Proof(applied=True, evidence=f"{', '.join(self._given)} was wrapped with {self._said()}")

    def permanent(self) -> Permanent:
        """Keywords."""
        return Permanent(
            summary=self.title,
            snippet=f"DistributedDataParallel(model, ..., {self._said()})",
            edit=Keyword(
                calls=("DistributedDataParallel",),
                keywords={name: repr(value) for name, value in self.arguments().items()},
            ),
        )

    def _said(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
