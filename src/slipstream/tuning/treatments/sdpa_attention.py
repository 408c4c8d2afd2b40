"""Attention is one op."""

from typing import Any

from slipstream.tuning.environment import Environment
from slipstream.tuning.first_model import at_first_model
from slipstream.tuning.treatment import Permanent, Proof, Treatment


class SdpaAttention(Treatment):
    """Has a model of Hugging Face's transformers use ``torch.nn.functional.scaled_dot_product_attention``.

    Pays where a model was made with ``attn_implementation="eager"``: the matrix of scores is not written to memory.
    With dropout other units are dropped. A model that then cannot return its attention weights says so itself.
    """

    title = "attention as one op"
    fix_class = "rounding"
    changes_random_stream = True

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._why = "no model was called for training"
        self._calls = 0
        self._switched = False

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Switch the first model that is trained, and count."""
        at_first_model(self._switch)

    def _switch(self, model: Any) -> None:
        import torch

        inner = next((one for one in model.modules() if hasattr(one, "set_attn_implementation")), None)
        if inner is None:
            self._why = f"{type(model).__name__} is no model of transformers whose attention can be chosen"
            return
        now = inner.config._attn_implementation
        if now != "eager":
            self._why = f"{type(inner).__name__} uses {now} already"
            return
        inner.set_attn_implementation("sdpa")
        self._switched = inner.config._attn_implementation == "sdpa"
        original = torch.nn.functional.scaled_dot_product_attention

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            return original(*args, **kwargs)

        torch.nn.functional.scaled_dot_product_attention = counted

    def proof(self) -> Proof:
        """How often it ran."""
        if not self._switched:
            return Proof(applied=False, evidence=self._why)
        return Proof(applied=self._calls > 0, evidence=f"scaled_dot_product_attention was called {self._calls} times")

    def permanent(self) -> Permanent:
        """A keyword."""
        return Permanent(
            summary="load the model with SDPA attention",
            snippet='model = AutoModel.from_pretrained(..., attn_implementation="sdpa")',
        )
