"""What is watched of a job's arithmetic, and what the process that is watched is told."""

from typing import Any

import msgspec

FILE = "observe.json"
OBSERVED = "observed.json"
UPDATES = 3
"""First optimizer steps whose updates are kept."""


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """What the process reads at its start (``observe.json`` in its folder)."""

    seed: int
    """Added to seeds that the job sets itself."""
    steps: int
    """Steps of optimizers after which it ends."""
    perturbation: float = 0.0
    """Relative size of a random change of all weights before the first forward pass."""
    perturbation_seed: int = 0
    dropout: bool = True
    """False: nothing is dropped, so that random numbers play no part."""


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """How one optimizer step changed one parameter."""

    norm: float
    sample: tuple[float, ...]
    """Changes of elements that lie evenly apart."""


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What one process computed."""

    losses: tuple[float, ...]
    """Sum of the tensors that each outermost backward pass began at, where they are scalars."""
    gradient_norms: tuple[float, ...]
    """Norm of all gradients after each backward pass, before any clipping."""
    updates: tuple[tuple[Update, ...], ...]
    """Of the first ``UPDATES`` optimizer steps, parameter by parameter."""
    learning_rates: tuple[tuple[float, ...], ...]
    """Of the groups, at each optimizer step."""
    optimizers: tuple[dict[str, Any], ...]
    """Class, groups and their settings, without those that choose an implementation."""
    calls: dict[str, int]
    """How often gradients were clipped and set to zero, optimizers stepped, and clipping had an effect."""
    samples: int | None
    """Rows of all batches; None: they do not tell."""
