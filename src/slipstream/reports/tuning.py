"""What ``slipstream tune`` found, as a table and sentences for people."""

from slipstream.model import Measured, Seeds, Tried, Tuning
from slipstream.reports.documents import Rows
from slipstream.reports.units import percent
from slipstream.reports.wording import expected

COLUMNS = ("treatment", "forecast", "measured", "numerics", "verdict")
_WORDS = {
    "faster": "faster",
    "slower": "slower",
    "no_difference_shown": "no difference shown",
    "cannot_tell": "cannot tell",
}
_STAGES = {
    "not_applicable": "not applicable",
    "needs_consent": "needs consent",
    "screened_out": "screened out",
    "other_results": "rejected",
    "confirmed": "not measured",
}


FEW = 3
"""Treatments that do not apply and have lines of their own; more of them share one sentence."""


def tuning_rows(tuning: Tuning) -> Rows:
    """The table of a tuning, with its conclusion below."""
    unfit = _unfit(tuning)
    return Rows(
        kind="tuning",
        columns=COLUMNS,
        rows=[
            {
                "treatment": one.name,
                "forecast": None if one.forecast is None else expected(one.forecast),
                "measured": _measured(one.measured),
                "numerics": _numerics(one),
                "verdict": _verdict(one, tuning.kept),
            }
            for one in tuning.tried
            if one not in unfit
        ],
        note=" ".join(sentences(tuning)),
    )


def sentences(tuning: Tuning) -> list[str]:
    """The conclusion, and how it was reached."""
    kept = next((one for one in tuning.tried if one.name == tuning.kept), None)
    if kept is None or kept.measured is None:
        found = ["Nothing is kept: no treatment is proven faster and computes the same."]
    else:
        found = [f"Kept: {', '.join(kept.treatments)}: a {kept.measured.unit} takes {_measured(kept.measured)} less."]
        if kept.measured.payback_steps:
            found.append(f"Its longer start pays after {kept.measured.payback_steps:,.0f} steps.")
        if kept.numerics is not None and not kept.numerics.dropout:
            found.append("It was found to compute the same with nothing dropped; with dropout other units are dropped.")
            found += map(_seeds, kept.numerics.seeds)
        found += [f"Not covered: {note}." for note in (kept.numerics.notes if kept.numerics else ())]
    if tuning.noise is not None:
        copies = _measured(tuning.noise)
        twins = f"; two identical copies differ by {copies}" if copies else ""
        found.append(f"Measured in {tuning.protocol}{twins}.")
    unfit = _unfit(tuning)
    if unfit:
        names = ", ".join(one.name for one in unfit)
        found.append(f"Not applicable here: {names} (slipstream tune --list says why).")
    if tuning.disturbed_rounds:
        share = percent(tuning.disturbed_rounds / max(tuning.rounds, 1))
        found.append(f"{share} of the turns were disturbed by other programs and do not count.")
    return found


def _unfit(tuning: Tuning) -> list[Tried]:
    """Treatments that do not apply, where they are too many for the table."""
    found = [one for one in tuning.tried if one.stage == "not_applicable"]
    return found if len(found) > FEW else []


def _measured(measured: Measured | None) -> str | None:
    if measured is None or measured.gain is None:
        return None
    return f"{percent(measured.gain)} ({_interval(measured)})"


def _interval(measured: Measured) -> str:
    if measured.low_95 is None or measured.high_95 is None:
        return f"{measured.pairs} pairs only"
    return f"{percent(measured.low_95)} to {percent(measured.high_95)}"


def _numerics(one: Tried) -> str | None:
    if one.numerics is None:
        return None
    words = {"same": "same", "differs": "differs", "cannot_tell": "cannot tell"}[one.numerics.sameness]
    return words if one.numerics.dropout or one.numerics.sameness != "same" else f"{words} without dropout"


def _seeds(seeds: Seeds) -> str:
    if seeds.difference is None or seeds.low_95 is None or seeds.high_95 is None:
        return f"Whether its mean {seeds.of} is the same with dropout cannot be told: {seeds.reason}."
    low, high = (f"{value * 100:+.2f}" for value in (seeds.low_95, seeds.high_95))
    return (
        f"Over {seeds.seeds} seeds with dropout its mean {seeds.of} is {seeds.difference * 100:+.2f} % off "
        f"(95 %: {low} to {high} %)."
    )


def _verdict(one: Tried, kept: str | None) -> str:
    if one.measured is None:
        return f"{_STAGES[one.stage]}: {one.reason}" if one.reason else _STAGES[one.stage]
    words = _WORDS[one.measured.verdict]
    if one.measured.reason:
        return f"{words}: {one.measured.reason}"
    if one.measured.verdict == "no_difference_shown" and one.measured.smallest_detectable is not None:
        return f"{words}; {percent(one.measured.smallest_detectable)} would have been seen"
    return f"{words}, kept" if one.name == kept else words
