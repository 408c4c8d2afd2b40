"""Hugging Face: a callback for ``transformers.Trainer``."""

from typing import Any

from transformers import TrainerCallback

from slipstream.integrations.recording import RecordsTraining


class SlipstreamCallback(RecordsTraining, TrainerCallback):
    """Records a few steps of a ``Trainer`` and tells what holds them back when training ends.

    ::

        trainer = Trainer(..., callbacks=[SlipstreamCallback()])
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to listen."""
        self.begin()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write, and tell."""
        self.end(state.is_world_process_zero)
