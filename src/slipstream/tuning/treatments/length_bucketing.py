"""Batches are made of sequences of about the same length."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from slipstream.tuning.constructors import with_arguments
from slipstream.tuning.environment import Environment
from slipstream.tuning.treatment import Permanent, Proof, Treatment
from slipstream.tuning.treatments.trim_padding import MASKS, TrimPadding


class LengthBucketing(Treatment):
    """Fills each batch with sequences of about the same length, and cuts it down to its longest.

    Works on data loaders that shuffle a dataset of dictionaries with a mask or with ``input_ids``. Indices are
    shuffled, sorted by length within pools of ``pool`` batches, and the batches shuffled again. Samples come in
    another order and other company: what is learnt is not the same.
    """

    title = "batches of sequences of about the same length"
    fix_class = "semantic"
    changes_random_stream = True
    defaults: ClassVar = {"pool": 50, "multiple": 8}

    def __init__(self, settings: Any = None) -> None:
        super().__init__(settings)
        self._trimming = TrimPadding({"multiple": self.settings["multiple"]})
        self._why = "no data loader shuffles a dataset of sequences"
        self._loaders = 0

    def applies_to(self, environment: Environment) -> str | None:
        """Everywhere."""
        return None

    def install(self) -> None:
        """Have loaders take their batches from pools, and trim what they hand over."""
        from torch.utils.data import DataLoader

        with_arguments(DataLoader, self._wanted)
        self._trimming.install()

    def _wanted(self, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        size = given.get("batch_size", 1)
        if not given.get("shuffle") or not size or given.get("batch_sampler") is not None:
            return None
        lengths = lengths_of(given["dataset"])
        if lengths is None:
            self._why = f"{type(given['dataset']).__name__} does not tell how long its sequences are"
            return None
        self._loaders += 1
        pools = Pools(lengths, size, int(self.settings["pool"]), bool(given.get("drop_last", False)))
        return {"batch_sampler": pools, "batch_size": 1, "shuffle": None, "drop_last": False}

    def proof(self) -> Proof:
        """Loaders that do so, and what was cut."""
        trimmed = self._trimming.proof()
        if not self._loaders:
            return Proof(applied=False, evidence=self._why)
        return Proof(applied=trimmed.applied, evidence=f"{self._loaders} data loaders take pools; {trimmed.evidence}")

    def permanent(self) -> Permanent:
        """A sampler."""
        return Permanent(
            summary="group sequences of about the same length into batches",
            snippet="TrainingArguments(..., group_by_length=True)",
        )


class Pools:
    """Batches of indices: shuffled, alike in length within a batch.

    Args:
        lengths: of the sequences.
        size: of a batch.
        pool: batches among which sequences are sorted.
        drop_last: whether a smaller last batch is left out.
    """

    def __init__(self, lengths: list[int], size: int, pool: int, drop_last: bool) -> None:
        self._lengths = lengths
        self._size = size
        self._pool = max(pool, 1) * size
        self._drop_last = drop_last

    def __len__(self) -> int:
        whole, rest = divmod(len(self._lengths), self._size)
        return whole + bool(rest and not self._drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        indices = [*range(len(self._lengths))]
        random.shuffle(indices)
        batches = []
        for start in range(0, len(indices), self._pool):
            pool = sorted(indices[start : start + self._pool], key=self._lengths.__getitem__)
            batches += [pool[place : place + self._size] for place in range(0, len(pool), self._size)]
        if self._drop_last:
            batches = [batch for batch in batches if len(batch) == self._size]
        random.shuffle(batches)
        return iter(batches)


def lengths_of(dataset: Any) -> list[int] | None:
    """Real positions of every sequence of a dataset; None: it does not tell, or has no length.

    Args:
        dataset: whose items are dictionaries.
    """
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        return None
    found = []
    for index in range(len(dataset)):
        item = dataset[index]
        if not isinstance(item, Mapping):
            return None
        mask = next((item[name] for name in MASKS if name in item), None)
        if mask is not None:
            found.append(int(sum(mask)))
        elif "input_ids" in item:
            found.append(len(item["input_ids"]))
        else:
            return None
    return found
