"""The layers that repeat are compiled, each on its own."""

from typing import Any, ClassVar

from slipstream.tuning.environment import Environment
from slipstream.tuning.first_model import at_first_model
from slipstream.tuning.treatment import Permanent, Proof, Treatment
from slipstream.tuning.treatments.compile_model import CompileModel


class CompileLayers(Treatment):
    """Compiles the layers of a model that repeat, and leaves what lies around them as it is.

    The setting ``layer`` is the name of their class (``BertLayer``); empty: the members of the longest list of
    modules of one class. Starts faster than a whole compiled model, since all layers share one compilation, and
    does not mind Python between them. With dropout other units are dropped.
    """

    title = "compiled layers"
    fix_class = "rounding"
    changes_random_stream = True
    defaults: ClassVar = {"layer": "", "mode": "default"}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._layers: list[str] = []
        self._why = "no model was called for training"

    def applies_to(self, environment: Environment) -> str | None:
        """Where there is a compiler."""
        return CompileModel().applies_to(environment)

    def install(self) -> None:
        """Compile the layers of the first model that is trained."""
        at_first_model(self._compile)

    def _compile(self, model: Any) -> None:
        layers = self._found(model)
        if not layers:
            self._why = f"{type(model).__name__} has no layers that repeat"
            return
        for layer in layers:
            if layer._compiled_call_impl is None:
                layer.compile(mode=str(self.settings["mode"]))
                self._layers.append(type(layer).__name__)
        if not self._layers:
            self._why = "the job compiles its layers itself"

    def _found(self, model: Any) -> list[Any]:
        import torch

        wanted = str(self.settings["layer"])
        if wanted:
            return [module for module in model.modules() if type(module).__name__ == wanted]
        lists = [
            [*module] for module in model.modules() if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential))
        ]
        alike = [
            one for one in lists if len(one) > 1 and len({type(layer) for layer in one}) == 1 and [*one[0].children()]
        ]
        return max(alike, key=len, default=[])

    def proof(self) -> Proof:
        """How many were compiled, into how many graphs."""
        if not self._layers:
            return Proof(applied=False, evidence=self._why)
        from torch._dynamo.utils import counters

        graphs = counters["stats"].get("unique_graphs", 0)
        breaks = sum(counters["graph_break"].values())
        return Proof(
            applied=graphs > 0,
            evidence=f"{len(self._layers)} of {self._layers[0]} compiled into {graphs} graphs, {breaks} graph breaks",
        )

    def permanent(self) -> Permanent:
        """Two lines."""
        return Permanent(
            summary="compile each of the layers that repeat",
            snippet="for layer in model.layers:\n    layer.compile()",
        )
