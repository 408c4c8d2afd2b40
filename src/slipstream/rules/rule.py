"""What a rule is. One bottleneck is one file with one subclass of ``Rule``; discovery finds it by itself."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from slipstream.forecast import Edit
from slipstream.model import Dismissal, Evidence, Finding, Fix, FixClass, Location, NotEnoughData
from slipstream.rules.scope import device_scope
from slipstream.store import DECLARED, Tables

HEADINGS = ("What it detects", "Why it costs time", "Fix", "When not to", "Source")


class Rule(ABC):
    """Base of all rules; a subclass' docstring has the headings above and becomes its page."""

    code: ClassVar[str]
    """Family and number, such as ``INP001``; stable for ever."""
    name: ClassVar[str]
    """The problem in a few words, never the cure: ``gpu waits for loader``."""
    needs: ClassVar[Mapping[str, Sequence[str]]]
    """Tables and the columns of them that the rule reads."""
    fix_class: ClassVar[FixClass]
    changes_random_stream: ClassVar[bool] = False
    treatment: ClassVar[str | None] = None
    """Name of the tuning treatment that makes the fix from outside."""
    status: ClassVar[Literal["preview", "stable"]] = "preview"
    needs_device: ClassVar[bool] = False
    """Whether it only makes sense where a device did the work."""

    @abstractmethod
    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Look for the bottleneck.

        Returns:
            Findings; dismissals where it is worth telling why something does not matter; an empty list when
            it looked and found nothing.
        Raises:
            NotEnoughData: it could not look; the message says what is missing and how to record it.
        """

    def fix(self, finding: Finding) -> Fix | None:
        """What to do about a finding of this rule, or None."""
        return None

    def edits(self, tables: Tables, finding: Finding) -> tuple[Edit, ...]:
        """What the fix of a finding of this rule changes in the dependency graph.

        Returns:
            Nothing: no edit is known, and what the finding costs is the ceiling of its gain.
        Raises:
            NotEnoughData: the recording does not tell what the fix would change.
        """
        return ()

    def finding(
        self,
        *,
        title: str,
        cost_ns: int,
        steps: int | None,
        location: Location | None = None,
        evidence: Iterable[Evidence] = (),
    ) -> Finding:
        """A finding of this rule.

        Args:
            title: one line: the problem as it is here, with its figure.
            cost_ns: time it costs in the window, in ns.
            steps: steps in the window; None or 0: the cost per step is unknown.
            location: the user's code that causes it.
            evidence: a few events that show it, the clearest first.
        """
        return Finding(
            code=self.code,
            title=title,
            fix_class=self.fix_class,
            changes_random_stream=self.changes_random_stream,
            cost_ns=cost_ns,
            cost_ns_per_step=round(cost_ns / steps) if steps else None,
            location=location,
            evidence=tuple(evidence),
        )

    def dismissal(self, reason: str) -> Dismissal:
        """A note that this was looked at and is not worth changing, with the reason."""
        return Dismissal(code=self.code, reason=reason)

    @classmethod
    def sections(cls) -> dict[str, str]:
        """The text under each of the five headings of the class docstring."""
        found: dict[str, list[str]] = {}
        current: list[str] | None = None
        for line in (inspect.getdoc(cls) or "").splitlines():
            if line.strip().rstrip(":") in HEADINGS and not line.startswith(" "):
                current = found.setdefault(line.strip().rstrip(":"), [])
            elif current is not None:
                current.append(line)
        return {heading: inspect.cleandoc("\n".join(lines)) for heading, lines in found.items()}


def require(rule: type[Rule], tables: Tables) -> None:
    """Make sure that every table and column a rule needs is there and holds something.

    Raises:
        NotEnoughData: a table cannot be had, or a needed column is null throughout a table that has rows; or it
            needs a device and there is none.
    """
    if rule.needs_device:
        device_scope(tables)
    for name, columns in rule.needs.items():
        frame = tables[name]
        for column in columns:
            if frame.height and frame[column].null_count() == frame.height:
                missing = next(c.missing for c in DECLARED[name].columns if c.name == column)
                raise NotEnoughData(f"{name}.{column} is missing throughout: {missing or 'not in this recording'}")


def location_of(row: dict[str, object]) -> Location | None:
    """The location in the columns file, line, function and precision of a row, or None."""
    if row["file"] is None or row["line"] is None:
        return None
    return msgspec.convert({key: row[key] for key in ("file", "line", "function", "precision")}, Location)
