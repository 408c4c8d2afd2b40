"""The replay on real recordings: how far it misses each, within its own step and across steps.

    python benchmarks/forecast_traces.py FOLDER_OR_TRACE...

*Own*: a window replayed with its own durations, against its recorded length. *Across*: the graph of each step with the
durations of another one (tasks paired by thread or stream, kind, name and how often that came before), against the
length of the other; beside it what a forecast of "as long as this step" would miss, which replaying has to beat.
*Paired*: share of the time whose tasks found a partner. Prints the table of docs/forecast.md.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import slipstream
from slipstream.analysis import tables_of
from slipstream.forecast import WORST_REPLAY_ERROR, Replay, replay_of
from slipstream.forecast.replay import _lengths, run
from slipstream.model import NotEnoughData, SlipstreamError
from slipstream.store import Tables, Trace

MOST_PAIRS = 30
ALIKE = 0.95
"""Share of tasks of both steps that must pair; other steps do other work."""


def recordings(paths: list[str]) -> Iterator[Path]:
    """Trace files below some paths."""
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.json*")) if path.is_dir() else [path]


def keys(replay: Replay, tables: Tables) -> list[tuple[int, int, int, str, int]]:
    """Of every task what it is paired by: step, thread or stream, kind, name, and its count of these."""
    names = dict(tables["events"].select("event", "name").iter_rows())
    nodes = replay.graph.nodes
    seen: Counter[tuple[int, int, int, str]] = Counter()
    found = [(0, 0, 0, "", 0)] * len(replay.node)
    for task in np.argsort(nodes.start_ns[replay.node], kind="stable").tolist():
        node = replay.node[task]
        name = str(names.get(int(nodes.event[node]), ""))
        if name.startswith("ProfilerStep#"):
            name = "ProfilerStep#"
        key = (int(replay.step[task]), int(nodes.resource[node]), int(nodes.kind[node]), name)
        found[task] = (*key, seen[key])
        seen[key] += 1
    return found


def across(replay: Replay, tables: Tables) -> list[tuple[float, float, float]]:
    """Of pairs of steps: error of the replay, error of taking the step as it is, and the share that was paired."""
    known = keys(replay, tables)
    place = {key: task for task, key in enumerate(known)}
    steps = [step for step in range(len(replay.recorded_ns)) if replay.recorded_ns[step] > 0]
    pairs = [(one, other) for one in steps for other in steps if one != other]
    chosen = [pairs[index] for index in np.linspace(0, len(pairs) - 1, min(MOST_PAIRS, len(pairs))).astype(int)]
    found = []
    for one, other in chosen:
        mine = np.flatnonzero(replay.step == one)
        partner = np.array([place.get((other, *known[task][1:]), -1) for task in mine])
        has = partner >= 0
        count = int(np.count_nonzero(replay.step == other))
        if has.sum() < ALIKE * max(len(mine), count):
            continue
        dur, delay = replay.dur_ns.copy(), replay.delay_ns.copy()
        dur[mine[has]] = replay.dur_ns[partner[has]]
        delay[mine[has]] = replay.delay_ns[partner[has]]
        ends = run(replay, dur, delay, replay.lag_ns)
        predicted = _lengths(ends, replay.step, replay.start_ns, len(replay.recorded_ns))[one]
        truth = replay.recorded_ns[other]
        total = replay.dur_ns[mine].sum()
        found.append(
            (
                abs(predicted - truth) / truth,
                abs(replay.recorded_ns[one] - truth) / truth,
                float(replay.dur_ns[mine[has]].sum() / total) if total else 0.0,
            )
        )
    return found


def row(name: str, trace: Trace) -> str:
    """A line of the table."""
    tables = tables_of(trace)
    try:
        replay = replay_of(tables)
    except NotEnoughData as reason:
        return f"| {name} | – | – | – | – | {reason} |"
    steps = len(replay.recorded_ns)
    refused = f"refused: above {WORST_REPLAY_ERROR * 100:.0f} %" if replay.error > WORST_REPLAY_ERROR else ""
    cells = [name, str(steps), f"{replay.error * 100:.2f} %"]
    if steps < 2 or refused:
        return "| " + " | ".join([*cells, "–", "–", refused or "one step"]) + " |"
    compared = across(replay, tables)
    if not compared:
        return "| " + " | ".join([*cells, "–", "–", "no two steps are alike"]) + " |"
    errors, plain, paired = map(np.array, zip(*compared, strict=True))
    cells += [
        f"{np.median(errors) * 100:.1f} % ({np.quantile(errors, 0.9) * 100:.1f} %)",
        f"{np.median(plain) * 100:.1f} % ({np.quantile(plain, 0.9) * 100:.1f} %)",
        f"{np.median(paired) * 100:.0f} % paired",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    print("| recording | steps | own | across steps, median (90 %) | taken as it is | |\n|---|---|---|---|---|---|")
    for path in recordings(sys.argv[1:]):
        try:
            loaded = slipstream.load(path)
        except SlipstreamError as reason:
            print(f"| {path.name} | – | – | – | – | {reason} |")
            continue
        for trace in [loaded] if isinstance(loaded, Trace) else loaded:
            print(row(path.name.removesuffix(".gz").removesuffix(".json"), trace), flush=True)


if __name__ == "__main__":
    main()
