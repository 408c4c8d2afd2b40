"""What a treatment is. One change to a job is one file with one subclass of ``Treatment``; discovery finds it.

A treatment acts from outside: by environment variables that the launcher sets, or by ``install``, which the start-up
hook calls in the job's process right after ``import torch``. The job's code is not changed.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from slipstream.model import BadInput, FixClass
from slipstream.tuning.edits import Edit
from slipstream.tuning.environment import Environment

Setting = str | int | float | bool


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a treatment has taken effect in a job, and what shows it."""

    applied: bool
    evidence: str
    """What was seen: "1 of 1 param groups of AdamW has fused=True"."""


class Permanent(msgspec.Struct, frozen=True, kw_only=True):
    """How to have a treatment's effect without slipstream."""

    summary: str
    snippet: str | None = None
    """Code, ready to copy; None: nothing in the code changes."""
    variables: dict[str, str] = {}
    """Environment variables to set."""
    edit: Edit | None = None
    """How ``slipstream tune --patch`` writes it into the source; None: by hand."""


class Treatment(ABC):
    """Base of all treatments. Importing a treatment's module must not import torch; its methods may.

    Args:
        settings: what differs from ``defaults``.
    Raises:
        BadInput: a setting that the treatment does not have, or of another type.
    """

    title: ClassVar[str]
    """What it does, in a few words: ``fused optimizer``."""
    fix_class: ClassVar[FixClass]
    """``exact``, ``rounding`` or ``semantic``: what the mathematics says, not what a measurement saw."""
    changes_random_stream: ClassVar[bool] = False
    """Whether random numbers fall differently where the job draws any (dropout)."""
    defaults: ClassVar[Mapping[str, Setting]] = {}
    """Settings by name, with what they are unless told otherwise."""

    def __init__(self, settings: Mapping[str, Setting] | None = None) -> None:
        given = dict(settings or {})
        for name, value in given.items():
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise BadInput(f"treatment {self.name} has no setting {name} (it has {known})")
            if type(value) is not type(self.defaults[name]):
                kind = type(self.defaults[name]).__name__
                raise BadInput(f"treatment {self.name}: {name} is to be {kind}, not {value!r}")
        self.settings: dict[str, Setting] = {**self.defaults, **given}

    @property
    def name(self) -> str:
        """What command lines, rules and ``tuned.toml`` call it: the name of its module."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def help(self) -> str:
        """What it does and when it pays: the docstring of the class."""
        return inspect.getdoc(type(self)) or ""

    @abstractmethod
    def applies_to(self, environment: Environment) -> str | None:
        """Why it makes no sense on this machine, in one sentence; None: it may be tried."""

    def variables(self, environment: Environment) -> dict[str, str]:
        """Environment variables that the launcher sets for the job."""
        return {}

    def install(self) -> None:  # noqa: B027 - many treatments are environment variables alone
        """Take effect in this process, the job's; torch has been imported and nothing of the job has run since."""

    @abstractmethod
    def proof(self) -> Proof:
        """What shows, in the job's process, that it has taken effect. Asked after the warm-up and at the end."""

    @abstractmethod
    def permanent(self) -> Permanent:
        """How to have its effect without slipstream."""
