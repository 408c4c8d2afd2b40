"""Products of matrices use TensorFloat-32."""

from typing import ClassVar

from slipstream.tuning.edits import Lines
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class MatmulPrecision(Treatment):
    """Lets 32-bit products of matrices and convolutions round their inputs to TensorFloat-32.

    The setting ``precision`` is that of ``torch.set_float32_matmul_precision``. Pays on NVIDIA GPUs from Ampere on
    where the training runs in float32. Rounds to 10 bits of mantissa.
    """

    title = "TensorFloat-32"
    fix_class = "semantic"
    defaults: ClassVar = {"precision": "high"}

    def applies_to(self, environment: Environment) -> str | None:
        """On devices that have the type."""
        if environment.device_kind != "cuda":
            return f"TensorFloat-32 is a type of NVIDIA GPUs, and the device is {environment.device_kind}"
        if environment.compute_capability is not None and environment.compute_capability < (8, 0):
            major, minor = environment.compute_capability
            return f"TensorFloat-32 needs compute capability 8.0, and the device has {major}.{minor}"
        return None

    def install(self) -> None:
        """Set it."""
        import torch

        torch.set_float32_matmul_precision(str(self.settings["precision"]))
        torch.backends.cudnn.allow_tf32 = True

    def proof(self) -> Proof:
        """What torch says."""
        import torch

        found = torch.get_float32_matmul_precision()
        return Proof(
            applied=found == self.settings["precision"],
            evidence=f'torch.get_float32_matmul_precision() is "{found}"',
        )

    def permanent(self) -> Permanent:
        """One line."""
        line = f'torch.set_float32_matmul_precision("{self.settings["precision"]}")'
        edit = Lines(code=f"{line}\n", place="after_imports", modules=("torch",))
        return Permanent(summary="allow TensorFloat-32", snippet=line, edit=edit)
