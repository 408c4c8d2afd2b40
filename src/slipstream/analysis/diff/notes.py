"""What limits a comparison, in sentences."""

from slipstream.analysis.diff.matching import Levels
from slipstream.analysis.diff.step_work import Steps
from slipstream.store import Tables

_TAIL = 0.01
"""Share of a lone step that device work behind its mark may take before it is worth a word."""


def notes(
    tables: tuple[Tables, Tables], steps: tuple[Steps, Steps], levels: Levels | None, refusals: list[str]
) -> tuple[str, ...]:
    """The sentences.

    Args:
        tables: A and B.
        steps: their steps.
        levels: ways in which ops were matched; None: they were not.
        refusals: why it is not known what time went to.
    """
    found = [f"only the steps are compared. {refusal}" for refusal in refusals]
    found += _devices(*tables)
    for name, mine, own in zip("AB", tables, steps, strict=True):
        found += _steps(name, mine, own)
        if mine.integrity.grade not in "AB":
            found.append(f"{name} has data grade {mine.integrity.grade}: its figures are not sound throughout")
    if levels is not None:
        found += _matching(tables, levels)
    return tuple(found)


def _devices(a: Tables, b: Tables) -> list[str]:
    kinds = [bool(one.row("window")["on_device"]) for one in (a, b)]
    if kinds[0] != kinds[1]:
        device, host = ("A", "B") if kinds[0] else ("B", "A")
        return [f"parts of {device} are the device's time, those of {host} the main thread's: only the steps compare"]
    names = [one.source.device for one in (a, b)]
    if None not in names and names[0] != names[1]:
        return [f"A ran on {names[0]}, B on {names[1]}"]
    return []


def _steps(name: str, tables: Tables, steps: Steps) -> list[str]:
    if steps.basis == "recording":
        return [f"{name} marks no steps: the whole recording counts as one"]
    if steps.basis == "inferred":
        return [f"{name} marks no steps: they were inferred from repetition"]
    window = tables.row("window")
    tail = int(str(window["end_ns"])) - int(steps.start_ns[-1] + steps.dur_ns[-1])
    if len(steps) == 1 and tail > _TAIL * int(steps.dur_ns[0]):
        return [f"in {name} the device worked {tail / 1e6:,.3g} ms beyond the only step's mark: that is in no step"]
    return []


def _matching(tables: tuple[Tables, Tables], levels: Levels) -> list[str]:
    found = []
    shapes = [bool(one["ops"]["input_dims"].count()) for one in tables]
    if not levels.shapes:
        who = "neither recording has" if not any(shapes) else f"{'B' if shapes[0] else 'A'} has no"
        found.append(f"{who} shapes (record_shapes=True): ops are matched by name alone")
    if not levels.modules:
        told = [one.has("op_modules") for one in tables]
        who = "neither recording tells" if not any(told) else f"{'B' if told[0] else 'A'} does not tell"
        found.append(f"{who} modules (with_stack=True, with_modules=True): ops are matched without them")
    return found
