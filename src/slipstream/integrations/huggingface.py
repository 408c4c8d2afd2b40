"""Hugging Face: a callback for ``transformers.Trainer``."""

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from slipstream.api import Profile, profile


class SlipstreamCallback(TrainerCallback):
    """Records a few steps of a ``Trainer`` and tells what holds them back when training ends.

    ::

        trainer = Trainer(..., callbacks=[SlipstreamCallback()])

    Args:
        folder: see ``slipstream.profile``.
        steps: see there.
        quiet: tell nothing; ``recorded.report`` holds the diagnosis.
    """

    def __init__(self, folder: str | Path | None = None, steps: int = 6, quiet: bool = False) -> None:
        self.recorded: Profile | None = None
        self._folder = folder
        self._steps = steps
        self._quiet = quiet

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to listen."""
        self.recorded = profile(self._folder, steps=self._steps)
        self.recorded.__enter__()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write, and tell."""
        if self.recorded is not None:
            self.recorded.__exit__(None, None, None)
            if not self._quiet and state.is_world_process_zero:
                _tell(self.recorded)


def _tell(recorded: Profile) -> None:
    from slipstream.model import BadInput
    from slipstream.reports import render

    try:
        print(render(recorded.report, "text"))
    except BadInput as reason:
        print(f"slipstream: {reason}")
