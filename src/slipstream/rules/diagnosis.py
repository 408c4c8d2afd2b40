"""The one path from tables to findings: analysis, rules, gating, ranking.

Every command, report and integration calls ``diagnose``.
"""

import msgspec
import polars as pl

from slipstream.analysis import tables_of
from slipstream.forecast import ceiling_of, gain_of, replay_of
from slipstream.model import (
    CAUSES,
    BreakdownPart,
    Diagnosis,
    Dismissal,
    Finding,
    Fix,
    Hot,
    IdleCause,
    NotEnoughData,
    Step,
    Totals,
    Window,
)
from slipstream.rules.registry import all_rules
from slipstream.rules.rule import Rule, location_of, require
from slipstream.store import Report, Tables, Trace

MINIMUM_SHARE = 0.01
"""Findings that cost less of the window than this are told as not worth changing."""
DOUBTFUL_SHARE = 0.05
"""A replay that sees no gain in a problem that costs this share and more is not believed: it is told, not acted on."""
TOP = 20


def diagnose(trace: Trace) -> Report:
    """Say what holds a recorded job back.

    Args:
        trace: one rank's recording.
    Returns:
        The contract's document with the tables it was drawn from.
    """
    tables = tables_of(trace)
    findings, dismissed, not_checked = _apply_rules(tables)
    diagnosis = Diagnosis(
        source=trace.source,
        integrity=trace.integrity,
        steps=tuple(
            Step(number=row["number"], start_ns=row["start_ns"], dur_ns=row["dur_ns"], inferred=row["inferred"])
            for row in trace.table("steps").iter_rows(named=True)
        ),
        totals=msgspec.convert(tables.row("totals"), Totals),
        window=_window(tables),
        breakdown=_breakdown(tables),
        top_ops=_hot(tables, "op_stats"),
        top_kernels=_hot(tables, "kernel_stats"),
        findings=findings,
        dismissed=dismissed,
        not_checked=not_checked,
    )
    return Report(diagnosis=diagnosis, tables=tables)


def _apply_rules(tables: Tables) -> tuple[tuple[Finding, ...], tuple[Dismissal, ...], tuple[Dismissal, ...]]:
    found: list[Finding] = []
    dismissed: list[Dismissal] = []
    not_checked: list[Dismissal] = []
    for code, rule in all_rules().items():
        try:
            require(type(rule), tables)
            verdicts = rule.check(tables)
        except NotEnoughData as reason:
            not_checked.append(Dismissal(code=code, reason=str(reason)))
            continue
        window = tables.row("window")
        length = int(str(window["end_ns"])) - int(str(window["start_ns"]))
        for verdict in verdicts:
            if isinstance(verdict, Dismissal):
                dismissed.append(verdict)
            elif verdict.cost_ns < MINIMUM_SHARE * length:
                dismissed.append(Dismissal(code=code, reason=f"{verdict.title}: not worth changing"))
            else:
                forecast = _with_gain(rule, verdict, tables, length)
                if _gains_nothing(forecast, length):
                    quiet = f"{verdict.title}: replayed without it, the recording takes as long"
                    dismissed.append(Dismissal(code=code, reason=quiet))
                else:
                    found.append(msgspec.structs.replace(forecast, fix=_fix(rule, verdict)))
    found.sort(key=lambda finding: (-_worth(finding, length), -finding.cost_ns, finding.code))
    numbered: list[Finding] = []
    seen: dict[str, int] = {}
    for finding in found:
        seen[finding.code] = seen.get(finding.code, 0) + 1
        numbered.append(msgspec.structs.replace(finding, id=f"{finding.code}-{seen[finding.code]}"))
    return tuple(numbered), tuple(dismissed), tuple(not_checked)


def _fix(rule: Rule, finding: Finding) -> Fix | None:
    """The rule's fix, with the treatment that makes it."""
    fix = rule.fix(finding)
    return fix if fix is None else msgspec.structs.replace(fix, treatment=rule.treatment)


def _with_gain(rule: Rule, finding: Finding, tables: Tables, length_ns: int) -> Finding:
    """The finding with what its fix would gain, or why that cannot be told."""
    try:
        edits = rule.edits(tables, finding)
        gain = gain_of(replay_of(tables), edits) if edits else ceiling_of(finding.cost_ns, length_ns)
    except NotEnoughData as reason:
        return msgspec.structs.replace(finding, gain_reason=str(reason))
    return msgspec.structs.replace(finding, gain=gain)


def _gains_nothing(finding: Finding, length_ns: int) -> bool:
    """Whether a small problem is not worth a change. A large one stays in the list: where its cost and the replay
    disagree, the recording may lack what the work waited for."""
    if finding.gain is None or finding.cost_ns >= DOUBTFUL_SHARE * length_ns:
        return False
    return finding.gain.high < MINIMUM_SHARE


def _worth(finding: Finding, length_ns: int) -> float:
    """Share of time to rank by: the expected gain, else the cost."""
    return finding.cost_ns / max(length_ns, 1) if finding.gain is None else finding.gain.expected


def _window(tables: Tables) -> Window:
    row = tables.row("window")
    causes: tuple[IdleCause, ...] = ()
    if tables.has("idle_spans"):
        sums = tables["idle_spans"].group_by("cause", "inferred").agg(pl.col("dur_ns").sum())
        order = {cause: place for place, cause in enumerate(CAUSES)}
        causes = tuple(
            sorted(
                (
                    msgspec.convert({"cause": cause, "ns": ns, "inferred": inferred}, IdleCause)
                    for cause, inferred, ns in sums.iter_rows()
                ),
                key=lambda idle: (-idle.ns, order[idle.cause], idle.inferred),
            )
        )
    fields = {name: row[name] for name in ("start_ns", "end_ns", "busy_ns", "idle_ns")}
    return msgspec.convert({**fields, "idle_causes": causes}, Window)


def _breakdown(tables: Tables) -> tuple[BreakdownPart, ...]:
    try:
        frame = tables["breakdown"]
    except NotEnoughData:
        return ()
    return tuple(
        BreakdownPart(part=row["part"], ns_per_step=row["ns_per_step"], share=row["share"])
        for row in frame.iter_rows(named=True)
    )


def _hot(tables: Tables, name: str) -> tuple[Hot, ...]:
    try:
        frame = tables[name]
    except NotEnoughData:
        return ()
    return tuple(
        Hot(
            name=row["name"],
            count=row["count"],
            self_ns=row["self_ns"],
            share=row["share"],
            location=location_of(row),
        )
        for row in frame.head(TOP).iter_rows(named=True)
    )
