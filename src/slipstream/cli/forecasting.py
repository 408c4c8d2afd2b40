"""Forecasts of several fixes at once, as a table."""

from slipstream.cli.diagnosing import diagnoses
from slipstream.model import BadInput, Gain, NotEnoughData
from slipstream.reports import Rows
from slipstream.reports.units import percent
from slipstream.reports.wording import expected
from slipstream.rules.what_if import what_if


def forecast(path: str, codes: str) -> Rows:
    """What the fixes of some findings would gain, alone and together.

    Args:
        path: of one recording.
        codes: of rules, separated by commas.
    Raises:
        BadInput: several recordings, no such finding, or a recording that cannot be replayed.
    """
    reports = diagnoses(path)
    if len(reports) > 1:
        raise BadInput(f"{path} holds {len(reports)} recordings: name one of their files for --what-if")
    try:
        answer = what_if(reports[0], [code.strip().upper() for code in codes.split(",") if code.strip()])
    except NotEnoughData as reason:
        raise BadInput(f"nothing can be forecast: {reason}") from reason
    rows: list[dict[str, object]] = [
        {
            "fix": share.code,
            "alone": share.reason if share.alone is None else _words(share.alone),
            "on top of the others": None if share.added is None else percent(max(share.added, 0.0)),
        }
        for share in answer.fixes
    ]
    note = ""
    if answer.together is not None:
        rows.append({"fix": "together", "alone": _words(answer.together), "on top of the others": None})
        alone = sum(share.alone.expected for share in answer.fixes if share.alone is not None)
        note = f"Shares of the step as it is. Added up the fixes alone would be {percent(min(alone, 1.0))}."
        if answer.together.replay_error is not None:
            note += f" Replayed without any change the recording is missed by {percent(answer.together.replay_error)}."
    return Rows(kind="what_if", columns=("fix", "alone", "on top of the others"), rows=rows, note=note)


def _words(gain: Gain) -> str:
    return f"{expected(gain)} ({percent(max(gain.low, 0.0))} to {percent(gain.high)})"
