"""Batches travel to the device without the host waiting for them."""

import functools
from collections.abc import Mapping
from typing import Any, cast

from slipstream.tuning.constructors import with_arguments
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class PinnedMemory(Treatment):
    """Has data loaders pin their batches, and copies from pinned memory to a device not wait.

    The device copies while the host goes on. Pays where copies of batches block the host.
    """

    title = "pinned batches, copied without waiting"
    fix_class = "exact"

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._loaders = self._copies = 0

    def applies_to(self, environment: Environment) -> str | None:
        """On GPUs."""
        if environment.device_kind not in ("cuda", "rocm", "xpu"):
            return f"batches are not copied to another memory on {environment.device_kind}"
        return None

    def install(self) -> None:
        """Have loaders pin, and ``Tensor.to`` and ``Tensor.cuda`` copy what is pinned without waiting."""
        import torch
        from torch.utils.data import DataLoader

        with_arguments(DataLoader, self._wanted)
        for name in ("to", "cuda"):
            setattr(torch.Tensor, name, self._unblocked(getattr(torch.Tensor, name)))

    def _wanted(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        self._loaders += 1
        return {"pin_memory": True}

    def _unblocked(self, original: Any) -> Any:
        @functools.wraps(original)
        def copied(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("non_blocking") is None and tensor.device.type == "cpu" and tensor.is_pinned():
                try:
                    found = original(tensor, *args, **{**kwargs, "non_blocking": True})
                except TypeError:  # the job gave it by position
                    return original(tensor, *args, **kwargs)
                self._copies += found.device.type != "cpu"
                return found
            return original(tensor, *args, **kwargs)

        return cast(Any, copied)

    def proof(self) -> Proof:
        """How many copies did not wait."""
        return Proof(
            applied=self._copies > 0,
            evidence=f"{self._copies} copies from pinned memory did not wait, {self._loaders} data loaders pin",
        )

    def permanent(self) -> Permanent:
        """Two keywords."""
        return Permanent(
            summary="pin batches and copy them without waiting",
            snippet="DataLoader(..., pin_memory=True)\nbatch = batch.to(device, non_blocking=True)",
        )
