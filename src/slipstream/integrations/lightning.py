"""Lightning: a callback for its ``Trainer``."""

from pathlib import Path
from typing import Any

from lightning.pytorch.callbacks import Callback

from slipstream.api import Profile, profile


class SlipstreamCallback(Callback):
    """Records a few steps of a Lightning ``Trainer`` and tells what holds them back when training ends.

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

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to listen."""
        self.recorded = profile(self._folder, steps=self._steps)
        self.recorded.__enter__()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write, and tell."""
        self._end(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """What was recorded until then is kept."""
        self._end(trainer)

    def _end(self, trainer: Any) -> None:
        from slipstream.model import BadInput
        from slipstream.reports import render

        recorded = self.recorded
        if recorded is None:
            return
        recorded.__exit__(None, None, None)
        if self._quiet or not trainer.is_global_zero:
            return
        try:
            print(render(recorded.report, "text"))
        except BadInput as reason:
            print(f"slipstream: {reason}")
