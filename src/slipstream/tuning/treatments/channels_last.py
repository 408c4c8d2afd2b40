"""Images keep their channels together in memory."""

from typing import Any

from slipstream.tuning.edits import Lines
from slipstream.tuning.environment import Environment
from slipstream.tuning.first_model import at_first_model
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class ChannelsLast(Treatment):
    """Stores images and the weights of convolutions with the channels innermost.

    Pays for two-dimensional convolutions, most with 16-bit types on tensor cores. With dropout other units are
    dropped, since random numbers are drawn in the order of memory.
    """

    title = "channels last"
    fix_class = "rounding"
    changes_random_stream = True

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._weights = self._inputs = 0
        self._why = "no model was called for training"

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Convert the first model that is trained, and what it is given."""
        at_first_model(self._convert)

    def _convert(self, model: Any) -> None:
        import torch

        convolutions = [module for module in model.modules() if isinstance(module, torch.nn.Conv2d)]
        if not convolutions:
            self._why = f"{type(model).__name__} has no two-dimensional convolution"
            return
        model.to(memory_format=torch.channels_last)
        self._weights = len(convolutions)
        model.register_forward_pre_hook(self._given, with_kwargs=True)

    def _given(
        self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(map(self._image, args)), {name: self._image(value) for name, value in kwargs.items()}

    def _image(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor) and value.ndim == 4 and value.is_floating_point():
            self._inputs += 1
            return value.contiguous(memory_format=torch.channels_last)
        return value

    def proof(self) -> Proof:
        """What was converted."""
        if not self._weights:
            return Proof(applied=False, evidence=self._why)
        return Proof(
            applied=self._inputs > 0,
            evidence=f"weights of {self._weights} convolutions and {self._inputs} inputs have their channels last",
        )

    def permanent(self) -> Permanent:
        """Two lines."""
        return Permanent(
            summary="convert model and images to channels_last",
            snippet=(
                "model = model.to(memory_format=torch.channels_last)\n"
                "images = images.to(memory_format=torch.channels_last)"
            ),
            edit=Lines(
                code="{model}.to(memory_format=torch.channels_last)\n", place="before_optimizer", modules=("torch",)
            ),
        )
