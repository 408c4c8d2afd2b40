"""The allocator of the GPU's memory grows its segments."""

from typing import Any

from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment

VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


class ExpandableSegments(Treatment):
    """Has PyTorch's allocator extend its segments instead of asking for new ones.

    Pays where sizes change from step to step: less memory is lost between blocks, and the allocator need not give
    segments back and wait for the device.
    """

    title = "expandable memory segments"
    fix_class = "exact"

    def applies_to(self, environment: Environment) -> str | None:
        """On GPUs of NVIDIA and AMD on Linux, where the job has not set the allocator itself."""
        if environment.device_kind not in ("cuda", "rocm"):
            return f"the allocator of {environment.device_kind} has no such setting"
        if environment.platform != "linux":
            return f"segments can be extended on Linux only, and this is {environment.platform}"
        for name in VARIABLES:
            if name in environment.variables:
                return f"{name} is set already"
        return None

    def variables(self, environment: Environment) -> dict[str, str]:
        """The allocator's own."""
        return {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}

    def proof(self) -> Proof:
        """What the allocator says, and whether it has such segments."""
        import torch

        if not torch.cuda.is_available():
            return Proof(applied=False, evidence="there is no GPU")
        found: Any = torch.cuda.memory._snapshot()
        segments = found.get("segments", [])
        extended = sum(bool(segment.get("is_expandable")) for segment in segments)
        return Proof(
            applied=extended > 0, evidence=f"{extended} of {len(segments)} segments of the allocator are expandable"
        )

    def permanent(self) -> Permanent:
        """A variable."""
        return Permanent(
            summary="let the allocator extend its segments",
            variables={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        )
