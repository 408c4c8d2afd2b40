"""Lightning: a callback for its ``Trainer``."""

from typing import Any

from lightning.pytorch.callbacks import Callback

from slipstream.integrations.recording import RecordsTraining


class SlipstreamCallback(RecordsTraining, Callback):
    """Records a few steps of a Lightning ``Trainer`` and tells what holds them back when training ends.

    ::

        trainer = Trainer(..., callbacks=[SlipstreamCallback()])
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to listen."""
        self.begin()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write, and tell."""
        self.end(trainer.is_global_zero)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """What was recorded until then is kept."""
        self.end(trainer.is_global_zero)
