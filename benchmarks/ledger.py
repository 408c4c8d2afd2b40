"""The ledger: forecasts of gains against gains that were measured.

    python benchmarks/ledger.py                        # every planted bottleneck of the zoo, 40 minutes on two cores
    python benchmarks/ledger.py slow_getitem           # one
    python benchmarks/ledger.py --tuning slipstream-tuning/20261207T113255Z-train_bert

A script of the zoo is recorded as it is, and its finding's forecast noted. Then the script and its twin without the
bottleneck run side by side in eight pairs of fresh processes that take turns step by step; the gain is one minus the
ratio of their mean steps (means, since a stall every tenth step counts), with Student's t over the logarithms. From a
tuning, every treatment with a forecast and a measurement is taken over.

A forecast by replay hits where its interval and the measured one overlap. A ceiling ("at most") holds where the
measured interval begins below it. Entries are kept in docs/ledger.json, one per case, and docs/ledger.md is written
from it.
"""

import argparse
import json
import math
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "zoo"))

from run import environment as machine
from run import expectation_of, record

from slipstream.capture.job import JobSpec
from slipstream.stats import t_interval
from slipstream.tuning import Arm, Measurement, Plan, Protocol, look_around, measure
from slipstream.tuning.trials.plan import BASE, TWIN

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "docs" / "ledger.json"
PAGE = ROOT / "docs" / "ledger.md"
FIXED = "fixed"
PROTOCOL = Protocol(repetitions=8, warmup_steps=4, rounds=12, steps_per_turn=1, most_foreign_load=0.25)


def measured_gain(measurement: Measurement, arm: str) -> dict[str, Any] | None:
    """Time that an arm saves, from the mean steps of pairs of processes; None: fewer than two pairs."""
    logs = []
    for repetition in measurement.repetitions:
        base, other = repetition.of(BASE), repetition.of(arm)
        if base is None or other is None or not base.turns or not other.turns:
            continue
        turns = min(len(base.turns), len(other.turns))
        mine, theirs = (
            sum(turn.wall_ns for turn in one.turns[:turns]) / sum(turn.steps for turn in one.turns[:turns])
            for one in (other, base)
        )
        logs.append(math.log(mine / theirs))
    if len(logs) < 2:
        return None
    values = np.array(logs)
    low, high = t_interval(values, 0.05)
    return {
        "gain": 1 - math.exp(values.mean()),
        "low": 1 - math.exp(high),
        "high": 1 - math.exp(low),
        "pairs": len(logs),
    }


def of_script(script: Path) -> dict[str, Any] | None:
    """The entry of a planted bottleneck; None: nothing is forecast for it."""
    expected = expectation_of(script.read_text())
    if expected is None or expected.told is not None:
        return None
    said = record(script, [])
    finding = next((one for one in said.findings if one["code"] == expected.code), None)
    entry: dict[str, Any] = {
        "case": f"zoo: {script.stem}",
        "code": expected.code,
        "forecast": None,
        "reason": said.error,
    }
    if finding is not None:
        entry["forecast"], entry["reason"] = finding["gain"], finding["gain_reason"]
    else:
        entry["reason"] = entry["reason"] or "no finding"
    job = JobSpec(target=str(script))
    plan = Plan(
        job=job,
        arms=(Arm(name=FIXED, job=JobSpec(target=str(script), argv=("--fixed",))),),
        protocol=PROTOCOL,
    )

    def tell(now: str) -> None:
        print(f"\r\x1b[2K{script.stem}: {now}"[:100], end="", file=sys.stderr)

    with tempfile.TemporaryDirectory() as folder:
        measurement = measure(plan, Path(folder), look_around(), tell)
    print("\r\x1b[2K", end="", file=sys.stderr)
    entry["measured"] = measured_gain(measurement, FIXED)
    entry["noise"] = measured_gain(measurement, TWIN)
    if entry["measured"] is None:
        entry["reason"] = "; ".join(measurement.left_out.values()) or "too few pairs"
    return entry


def of_tuning(folder: Path) -> list[dict[str, Any]]:
    """The entries of a tuning: what was forecast and measured."""
    tuning = json.loads((folder / "tuning.json").read_text())
    job = Path(tuning["command"][0]).stem
    found = []
    for one in tuning["tried"]:
        measured = one["measured"]
        if one["forecast"] is None or measured is None or measured["low_95"] is None:
            continue
        found.append(
            {
                "case": f"tuning: {job}, {one['name']}",
                "code": one["name"],
                "forecast": one["forecast"],
                "reason": None,
                "measured": {
                    "gain": measured["gain"],
                    "low": measured["low_95"],
                    "high": measured["high_95"],
                    "pairs": measured["pairs"],
                },
                "noise": None,
            }
        )
    return found


def answer(entry: dict[str, Any]) -> str:
    """Whether the forecast was right."""
    forecast, measured = entry["forecast"], entry["measured"]
    if measured is None:
        return f"not measured: {entry['reason']}"
    if forecast is None:
        return f"no forecast: {entry['reason']}"
    if forecast["ceiling"]:
        return "holds" if measured["low"] <= forecast["high"] else "**exceeded**"
    overlap = forecast["low"] <= measured["high"] and measured["low"] <= forecast["high"]
    return "hit" if overlap else "**miss**"


def interval(one: dict[str, Any] | None, middle: str) -> str:
    """A gain for the table, in percent."""
    if one is None:
        return "–"
    low, value, high = (100 * one[name] for name in ("low", middle, "high"))
    return f"at most {high:.0f}" if one.get("ceiling") else f"{value:.0f} ({low:.0f} to {high:.0f})"


def page(ledger: dict[str, Any]) -> str:
    """The ledger as a page."""
    answers = [answer(entry) for entry in ledger["entries"]]
    replayed = [one for one in answers if one in ("hit", "**miss**")]
    ceilings = [one for one in answers if one in ("holds", "**exceeded**")]
    lines = [
        "# The ledger: forecast against measured",
        "",
        "Written by `make ledger` (benchmarks/ledger.py, which says how it is measured). Gains are shares of a step's",
        "time in percent: forecast from one recording of the faulty job, measured in pairs of fresh processes.",
        "",
        f"Replayed forecasts: {replayed.count('hit')} of {len(replayed)} intervals overlap with the measured one. "
        f"Ceilings: {ceilings.count('holds')} of {len(ceilings)} hold.",
        "",
        "| case | finding | forecast, % | measured, % (95 %) | two identical copies, % | |",
        "|---|---|---|---|---|---|",
    ]
    for entry, said in zip(ledger["entries"], answers, strict=True):
        cells = (
            entry["case"],
            entry["code"],
            interval(entry["forecast"], "expected"),
            interval(entry["measured"], "gain"),
            interval(entry["noise"], "gain"),
            said,
        )
        lines.append("| " + " | ".join(cells) + " |")
    where = ledger["machine"]
    lines += ["", f"Measured on {where['cpu']}, {where['cores']} cores, torch {where['torch']}, {where['date']}.", ""]
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the ledger."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="scripts of the zoo; none: all planted ones")
    parser.add_argument("--tuning", type=Path, action="append", default=[], help="folder of a tuning to take over")
    asked = parser.parse_args()
    ledger: dict[str, Any] = json.loads(LEDGER.read_text()) if LEDGER.exists() else {"entries": []}
    ledger["machine"] = machine() | {"date": date.today().isoformat()}
    scripts = {path.stem: path for path in sorted((ROOT / "zoo" / "planted").glob("*.py"))}
    chosen = asked.cases or ([] if asked.tuning else [*scripts])
    batches = [lambda name=name: [of_script(scripts[name])] for name in chosen]
    batches += [lambda folder=folder: of_tuning(folder) for folder in asked.tuning]
    for batch in batches:
        for entry in filter(None, batch()):
            print(
                f"{entry['case']}: {interval(entry['forecast'], 'expected')} forecast, "
                f"{interval(entry['measured'], 'gain')} measured: {answer(entry)}",
                flush=True,
            )
            kept = [one for one in ledger["entries"] if one["case"] != entry["case"]]
            ledger["entries"] = sorted([*kept, entry], key=lambda one: str(one["case"]))
        LEDGER.write_text(json.dumps(ledger, indent=1) + "\n")
        PAGE.write_text(page(ledger))


if __name__ == "__main__":
    main()
