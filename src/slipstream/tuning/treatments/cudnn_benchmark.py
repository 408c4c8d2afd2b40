"""cuDNN tries which convolution is fastest."""

from slipstream.tuning.edits import Lines
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class CudnnBenchmark(Treatment):
    """Has cuDNN time its algorithms for every new shape and keep the fastest.

    Pays for convolutions whose shapes stay the same; costs time wherever shapes change.
    """

    title = "cuDNN benchmark"
    fix_class = "rounding"

    def applies_to(self, environment: Environment) -> str | None:
        """On GPUs."""
        if environment.device_kind not in ("cuda", "rocm"):
            return f"there is no cuDNN or MIOpen for {environment.device_kind}"
        return None

    def install(self) -> None:
        """Set it."""
        import torch

        torch.backends.cudnn.benchmark = True

    def proof(self) -> Proof:
        """What torch says."""
        import torch

        found = torch.backends.cudnn.benchmark
        return Proof(applied=found, evidence=f"torch.backends.cudnn.benchmark is {found}")

    def permanent(self) -> Permanent:
        """One line."""
        line = "torch.backends.cudnn.benchmark = True"
        edit = Lines(code=f"{line}\n", place="after_imports", modules=("torch",))
        return Permanent(summary="let cuDNN choose", snippet=line, edit=edit)
