"""Several fixes at once: what they would gain together, and what each adds to the others."""

from collections.abc import Sequence

import msgspec

from slipstream.forecast import Edit, gain_of, replay_of
from slipstream.model import BadInput, Gain, NotEnoughData
from slipstream.rules.registry import all_rules
from slipstream.store import Report


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One fix among several."""

    code: str
    alone: Gain | None
    """Of this fix alone."""
    added: float | None
    """Share of the step as it is now that it saves once all the others are made; less than alone where fixes save
    the same time, more where one makes another possible."""
    reason: str | None = None
    """Why it cannot be replayed."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What several fixes would gain."""

    fixes: tuple[Share, ...]
    together: Gain | None
    """Of all that can be replayed; None: none can."""


def what_if(report: Report, codes: Sequence[str]) -> WhatIf:
    """Replay a recording with the fixes of several findings, alone and together.

    Args:
        report: with its tables.
        codes: of rules; all findings of each are fixed.
    Raises:
        BadInput: one of them is no rule, or found nothing here.
        NotEnoughData: the recording cannot be replayed.
    """
    tables = report.tables
    edits: dict[str, tuple[Edit, ...]] = {}
    refused: dict[str, str] = {}
    for code in dict.fromkeys(codes):
        if code not in all_rules():
            raise BadInput(f"--what-if names {code}, which is no rule: `slipstream rules` lists all")
        findings = [finding for finding in report.diagnosis.findings if finding.code == code]
        if not findings:
            found = ", ".join(dict.fromkeys(finding.code for finding in report.diagnosis.findings)) or "nothing"
            raise BadInput(f"{code} found nothing in this recording; found was {found}")
        try:
            edits[code] = tuple(edit for finding in findings for edit in all_rules()[code].edits(tables, finding))
        except NotEnoughData as reason:
            edits[code], refused[code] = (), str(reason)
    replay = replay_of(tables)
    able = {code: mine for code, mine in edits.items() if mine}
    together = gain_of(replay, [edit for mine in able.values() for edit in mine]) if able else None
    shares = []
    for code in edits:
        if code not in able:
            shares.append(
                Share(
                    code=code, alone=None, added=None, reason=refused.get(code, f"no replay of {code}'s fix is known")
                )
            )
            continue
        others = [edit for other, mine in able.items() if other != code for edit in mine]
        without = gain_of(replay, others).expected if others else 0.0
        assert together is not None
        shares.append(Share(code=code, alone=gain_of(replay, able[code]), added=together.expected - without))
    return WhatIf(fixes=tuple(shares), together=together)
