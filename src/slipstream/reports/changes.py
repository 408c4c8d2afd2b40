"""The words and lines of a comparison that every format for people shows."""

import re
from collections.abc import Sequence

from slipstream.model import Compared, Difference, Effect, LineDifference, OpAlone, OpDifference, Verdict
from slipstream.reports.documents import Rows
from slipstream.reports.names import short_name
from slipstream.reports.units import duration, percent, plural
from slipstream.reports.wording import DEVICE, label

OPS = 10
"""Ops that are listed."""
LINES = 6
"""Single changes that are listed."""
ALONE = 6
"""Ops of one recording alone that are named."""
_NAME, _SHAPES, _MODULE, _KERNEL = 36, 34, 26, 30

_SHOWN: dict[Verdict, str] = {
    "faster": "faster",
    "slower": "slower",
    "no_difference_shown": "within noise",
    "cannot_tell": "cannot tell",
}
_BASIS = {"marks": "", "inferred": ", inferred from repetition", "recording": ", the whole recording"}


def signed(ns: int) -> str:
    """A difference of times with its sign: ``+1.2 ms``, ``-58.7 ms``, ``0 ns``."""
    return f"+{duration(ns)}" if ns > 0 else duration(ns)


def side(name: str, compared: Compared) -> list[str]:
    """What is known of one recording: facts in order."""
    source = compared.source
    facts = [f"{name}: {source.path}", source.device or DEVICE[source.device_kind]]
    if source.torch_version:
        facts.append(f"torch {source.torch_version}")
    steps = f"{plural(compared.steps, 'step')}{_BASIS[compared.basis]}, "
    if compared.low_ns is None or compared.high_ns is None:
        steps += duration(compared.median_ns)
    else:
        between = f"{duration(compared.low_ns)} to {duration(compared.high_ns)}"
        steps += f"median {duration(compared.median_ns)} ({between}), all {_range(compared)}"
    return [*facts, steps, f"data grade {compared.integrity.grade}"]


def _range(compared: Compared) -> str:
    return f"{duration(compared.least_ns)} to {duration(compared.most_ns)}"


def headline(document: Difference) -> str:
    """What became of the step, in one sentence or two."""
    step, before, after = document.step, document.a.median_ns, document.b.median_ns
    change = abs(step.difference_ns)
    how = "longer" if step.difference_ns > 0 else "shorter"
    by = f"{duration(change)} ({percent(change / before)}) {how} than" if change else "as long as"
    interval = "" if step.low_ns is None else f"{percent(step.confidence)} interval {_interval(step)}"
    if step.verdict == "cannot_tell":
        return f"Cannot tell: B's step of {duration(after)} is {by} A's of {duration(before)}, but {step.reason}."
    if not change:
        would = (
            "" if step.smallest_detectable_ns is None else f"; {duration(step.smallest_detectable_ns)} would have shown"
        )
        return f"No difference shown: B's median step of {duration(after)} is {by} A's ({interval}{would})."
    if step.verdict == "no_difference_shown":
        would = (
            "" if step.smallest_detectable_ns is None else f"; {duration(step.smallest_detectable_ns)} would have shown"
        )
        return (
            f"No difference shown: B's median step of {duration(after)} is {by} A's of {duration(before)}, which is "
            f"within the noise of {document.a.steps} against {plural(document.b.steps, 'step')} ({interval}{would})."
        )
    verdict = step.verdict.capitalize()
    return f"{verdict}: B's median step of {duration(after)} is {by} A's of {duration(before)} ({interval})."


def _interval(effect: Effect) -> str:
    return f"{signed(effect.low_ns or 0)} to {signed(effect.high_ns or 0)}"


def largest(document: Difference) -> str:
    """The part that changed most; empty where parts are not known or none changed."""
    changed = [part for part in document.parts if part.effect.difference_ns]
    if not changed:
        return ""
    part = max(changed, key=lambda one: abs(one.effect.difference_ns))
    what = label(part.part, document.b.work_of == "main_thread")
    verdict = part.effect.verdict
    shown = {"no_difference_shown": ", within the noise", "cannot_tell": ""}.get(verdict, ", beyond the noise")
    return f"The largest change is in {what}: {signed(part.effect.difference_ns)} per step{shown}."


def parts(document: Difference) -> Rows:
    """Parts of the step, the greatest change first, and their sum."""
    host = document.b.work_of == "main_thread"
    rows = [
        _row(label(part.part, host), part.a_ns, part.b_ns, part.effect)
        for part in sorted(document.parts, key=lambda part: -abs(part.effect.difference_ns))
        if part.a_ns or part.b_ns
    ]
    rows.append(_row("the step", document.a.median_ns, document.b.median_ns, document.step))
    return Rows(kind="diff_parts", columns=("part", "A", "B", "difference", "95 % interval", "verdict"), rows=rows)


def _row(name: str, a_ns: int, b_ns: int, effect: Effect) -> dict[str, object]:
    return {
        "part": name,
        "A": duration(a_ns),
        "B": duration(b_ns),
        "difference": signed(effect.difference_ns),
        "95 % interval": "–" if effect.low_ns is None else _interval(effect),
        "verdict": _SHOWN[effect.verdict],
    }


def ops(document: Difference) -> Rows:
    """Ops that changed most, each with its kernels where they differ."""
    changed = [op for op in document.ops if op.effect.difference_ns or op.only_in]
    rows = [
        {
            "op": short_name(op.op or op.a_kernel or op.b_kernel or "no op known", _NAME),
            "per step": _counts(op),
            "A": duration(op.a_ns) if op.only_in != "b" else "–",
            "B": duration(op.b_ns) if op.only_in != "a" else "–",
            "difference": signed(op.effect.difference_ns),
            "verdict": _SHOWN[op.effect.verdict],
        }
        for op in changed[:OPS]
    ]
    note = (
        f"{plural(len(changed) - OPS, 'further op')} changed as well: the JSON holds all" if len(changed) > OPS else ""
    )
    return Rows(kind="diff_ops", columns=("op", "per step", "A", "B", "difference", "verdict"), rows=rows, note=note)


def _counts(op: OpDifference) -> str:
    if op.only_in is not None:
        return f"only in {op.only_in.upper()}"
    before, after = f"{op.a_count:,.4g}", f"{op.b_count:,.4g}"
    return f"{before} ×" if before == after else f"{before} → {after} ×"


def kernels(document: Difference) -> list[str]:
    """Ops that changed most and run other kernels in B than in A."""
    found = []
    for op in document.ops[:OPS]:
        before, after = (short_name(name or "", _KERNEL) for name in (op.a_kernel, op.b_kernel))
        if op.op and before and after and before != after:
            found.append(f"{short_name(op.op, _NAME)}: {before} → {after}")
    return found


def lines(document: Difference) -> Rows:
    """The greatest single changes: one op with one set of shapes, in one module."""
    found = [
        (op, line)
        for op in document.ops
        if len(op.lines) > 1
        for line in op.lines
        if line.effect.difference_ns and (line.shapes or line.module)
    ]
    found.sort(key=lambda pair: -abs(pair[1].effect.difference_ns))
    modules = any(line.module for _, line in found[:LINES])
    columns = ("op", *(("module",) if modules else ()), "shapes", "difference", "verdict")
    return Rows(kind="diff_lines", columns=columns, rows=[_line(*pair, modules) for pair in found[:LINES]])


def _line(op: OpDifference, line: LineDifference, modules: bool) -> dict[str, object]:
    width = _NAME - 12 if modules else _NAME
    return {
        "op": short_name(op.op or "no op known", width),
        "module": _module(line.module),
        "shapes": _shapes(line.shapes, _SHAPES - 14 if modules else _SHAPES),
        "difference": signed(line.effect.difference_ns),
        "verdict": _SHOWN[line.effect.verdict] if line.only_in is None else f"only in {line.only_in.upper()}",
    }


def _module(path: str | None) -> str:
    """The last module of a path, which alone is the number of its kind; the JSON holds the whole path."""
    return "" if path is None else short_name(path.rsplit("/", 1)[-1], _MODULE)


def _shapes(shapes: str | None, width: int) -> str:
    """Shapes of inputs that are tensors, as far as they fit: ``32×3×224×224, 64×3×7×7``."""
    if not shapes:
        return "shapes differ" if shapes is None else ""
    found = [match.replace(",", "×") for match in re.findall(r"\[([\d,]+)\]", shapes)]
    text = ", ".join(found)
    return text if len(text) <= width else text[: width - 1] + "…"


def alone(document: Difference) -> list[str]:
    """Ops that one recording alone has."""
    both = (("A", document.only_in_a), ("B", document.only_in_b))
    return [f"only in {name}: {_named(found)}" for name, found in both if found]


def _named(found: Sequence[OpAlone]) -> str:
    named = [f"{short_name(op.name, _NAME)} ({op.count:,} ×, {duration(op.host_self_ns)})" for op in found[:ALONE]]
    more = len(found) - ALONE
    return ", ".join(named) + (f" and {plural(more, 'more op')}" if more > 0 else "")
