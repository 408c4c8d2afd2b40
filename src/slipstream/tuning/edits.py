"""What a treatment changes in source code, said in a way that ``patching`` can carry out."""

from typing import Literal

import msgspec


class Keyword(msgspec.Struct, frozen=True, kw_only=True):
    """Keywords that are added to calls."""

    calls: tuple[str, ...]
    """Last parts of the names that are called: ``AdamW`` for ``torch.optim.AdamW``."""
    package: str = "torch"
    """Where the names come from."""
    keywords: dict[str, str]
    """Name and code of each."""
    unless: tuple[str, ...] = ()
    """Keywords, besides those themselves, that mean the author has chosen already."""
    where: dict[str, str] = {}
    """Keywords that a call has to have, with the code that their value must not be: ``{"num_workers": "0"}``."""


class NoKeyword(msgspec.Struct, frozen=True, kw_only=True):
    """A keyword that is taken away from calls of a method."""

    method: str
    keyword: str


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """Statements that are added."""

    code: str
    """``{model}`` stands for what the optimizer gets its parameters from."""
    place: Literal["after_imports", "before_optimizer"]
    modules: tuple[str, ...] = ()
    """What the code needs to be imported."""


Edit = Keyword | NoKeyword | Lines
