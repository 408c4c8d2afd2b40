"""The model is compiled."""

from typing import Any, ClassVar

from slipstream.tuning.edits import Lines
from slipstream.tuning.environment import Environment
from slipstream.tuning.first_model import at_first_model
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class CompileModel(Treatment):
    """Compiles the first model that is trained with ``torch.compile``.

    The setting ``mode`` is torch's own: ``default``, ``reduce-overhead`` or ``max-autotune``. Pays where many small
    ops follow each other; costs seconds to minutes at the start, and again for every new shape. With dropout other
    units are dropped.
    """

    title = "compiled model"
    fix_class = "rounding"
    changes_random_stream = True
    defaults: ClassVar = {"mode": "default"}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._model = ""
        self._why = "no model was called for training"

    def applies_to(self, environment: Environment) -> str | None:
        """Where there is a compiler."""
        if environment.device_kind == "cpu" and not environment.compiler:
            return "compiling for the CPU needs a C++ compiler, and none is found"
        if environment.device_kind == "mps":
            return "compiling for Apple's GPUs is a prototype of PyTorch"
        if environment.compute_capability is not None and environment.compute_capability < (7, 0):
            major, minor = environment.compute_capability
            return f"compiling needs compute capability 7.0, and the device has {major}.{minor}"
        return None

    def install(self) -> None:
        """Compile the first model that is trained; its first call still runs as it is."""
        at_first_model(self._compile)

    def _compile(self, model: Any) -> None:
        if model._compiled_call_impl is not None:
            self._why = f"the job compiles {type(model).__name__} itself"
            return
        model.compile(mode=str(self.settings["mode"]))
        self._model = type(model).__name__

    def proof(self) -> Proof:
        """How many graphs were compiled."""
        if not self._model:
            return Proof(applied=False, evidence=self._why)
        from torch._dynamo.utils import counters

        graphs = counters["stats"].get("unique_graphs", 0)
        breaks = sum(counters["graph_break"].values())
        return Proof(
            applied=graphs > 0,
            evidence=f"{graphs} graphs of {self._model} were compiled, with {breaks} graph breaks",
        )

    def permanent(self) -> Permanent:
        """One line."""
        mode = str(self.settings["mode"])
        said = "" if mode == "default" else f'mode="{mode}"'
        return Permanent(
            summary="compile the model",
            snippet=f"model.compile({said})",
            edit=Lines(code=f"{{model}}.compile({said})\n", place="before_optimizer"),
        )
