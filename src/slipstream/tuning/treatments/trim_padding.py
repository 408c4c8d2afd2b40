"""Batches lose the columns that are padding in every row."""

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment

MASKS = ("attention_mask", "input_mask", "encoder_attention_mask")
"""Keys of masks whose ones are real positions."""
IGNORED = -100
"""Label that torch's losses leave out."""


class TrimPadding(Treatment):
    """Cuts every batch down to its longest sequence before the model sees it.

    Works on batches that are dictionaries with a mask of ones followed by zeros, as tokenizers make them; all tensors
    with a second dimension of the same length are cut. A batch whose labels count in the columns to be cut is left
    alone. The setting ``multiple`` rounds lengths up, since hardware likes multiples of eight. Pays where all samples
    are padded to one fixed length. With dropout other units are dropped, because random numbers are drawn for fewer
    positions.
    """

    title = "padding trimmed to the longest sequence of the batch"
    fix_class = "rounding"
    changes_random_stream = True
    defaults: ClassVar = {"multiple": 8}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._before = self._after = self._batches = self._left_alone = 0

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Trim what data loaders hand over."""
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        original = _BaseDataLoaderIter.__next__

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:  # noqa: N807 - it takes the place of the method of that name
            return self.trimmed(original(iterator))

        cast(Any, _BaseDataLoaderIter).__next__ = __next__

    def trimmed(self, batch: Any) -> Any:
        """A batch without the columns that are padding in every row.

        Args:
            batch: whatever a data loader yields; of another kind than this treatment knows it is returned as it is.
        """
        data = batch if isinstance(batch, Mapping) else getattr(batch, "data", None)
        if not isinstance(data, Mapping):
            return batch
        mask: Any = next((data[name] for name in MASKS if name in data), None)
        if not _is_mask(mask):
            return batch
        self._batches += 1
        width = int(mask.shape[1])
        multiple = max(int(self.settings["multiple"]), 1)
        used: Any = mask != 0
        longest = int(used.sum(1).max())
        keep = min(-(-max(longest, 1) // multiple) * multiple, width)
        wide = [name for name, value in data.items() if getattr(value, "ndim", 0) >= 2 and value.shape[1] == width]
        if keep < width and any(_counts(name, data[name][:, keep:]) for name in wide):
            self._left_alone += 1
            keep = width
        self._before += width
        self._after += keep
        if keep == width:
            return batch
        cut = {name: _cut(value, width, keep) if name in wide else value for name, value in data.items()}
        if data is batch:
            return cut if type(batch) is dict else cast(Any, type(batch))(cut)
        batch.data = cut
        return batch

    def proof(self) -> Proof:
        """How many columns were cut."""
        share = 1 - self._after / self._before if self._before else 0.0
        alone = f"; {self._left_alone} were left alone, their labels count in the padding" if self._left_alone else ""
        return Proof(
            applied=self._after < self._before,
            evidence=f"{share * 100:.0f} % of the columns of {self._batches} batches with a mask were cut{alone}",
        )

    def permanent(self) -> Permanent:
        """Another padding."""
        return Permanent(
            summary="pad each batch to its longest sequence, not all of them to one length",
            snippet="collate_fn = DataCollatorWithPadding(tokenizer, padding='longest', pad_to_multiple_of=8)",
        )


def _is_mask(mask: Any) -> bool:
    """Whether it is a matrix on the host whose rows are ones followed by zeros."""
    if mask is None or getattr(mask, "ndim", 0) != 2 or not mask.numel() or mask.device.type != "cpu":
        return False
    used = mask != 0
    return bool(used[:, 0].any()) and not bool((used[:, 1:] & ~used[:, :-1]).any())


def _counts(name: str, columns: Any) -> bool:
    return "label" in name and bool((columns != IGNORED).any())


def _cut(value: Any, width: int, keep: int) -> Any:
    value = value[:, :keep]
    value = value[:, :, :keep] if value.ndim >= 3 and value.shape[2] == width else value
    return value.contiguous()  # what a loader hands over can be viewed in another shape
