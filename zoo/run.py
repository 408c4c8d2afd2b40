"""Runs the zoo: training scripts with one planted bottleneck each, their twins without it, and healthy ones.

    python zoo/run.py                          # all, one after the other, each in a process of its own
    python zoo/run.py slow_getitem -o out.json # one, with the figures as JSON

The scripts know nothing of slipstream. A comment on the statement that should be named says what is planted, and is
read here as text:

    for batch in loader:       # expect: INP001
    history.append(loss)       # expect-told: MEM005 keeps growing

``expect-told`` is for what costs no time by itself, or none that one recording can show: it must be told among what
was looked at, in these words. A comment on a line of its own, outside any statement, names no statement: the cause is
in none. Exit code 1: an aim is missed.
"""

import argparse
import ast
import datetime
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import tokenize
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

HERE = Path(__file__).parent
MARKER = re.compile(r"#\s*expect(?P<told>-told)?:\s*(?P<code>[A-Z]{3}\d{3})(?:\s+(?P<words>.+))?")
AIM = 0.9
"""Share of the planted bottlenecks that must be ranked first, and share whose statement must be named."""
TIMEOUT_S = 300
FEWEST_STEPS = 5
"""Undisturbed steps below which nothing is said about how long a step takes."""
CHOSEN_BY_THE_SCRIPT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR")


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What is planted, and the statement that should be named."""

    code: str
    lines: frozenset[int]
    """All lines of the marked statements, of which any is right; empty: none is to be named."""
    told: str | None
    """Words by which it must be told where it is no finding; None: it must be a finding."""


@dataclass(kw_only=True)
class Recorded:
    """What slipstream said about one run."""

    findings: list[dict[str, Any]]
    dismissed: list[dict[str, Any]]
    window_ns: int | None
    step_ns: float | None
    """Mean of the undisturbed steps."""
    seconds: float
    error: str | None = None


@dataclass(kw_only=True)
class Result:
    """One script judged."""

    case: str
    code: str | None
    """None: healthy."""
    told: bool = False
    ranked_first: str | None = None
    right_code: bool | None = None
    named: str | None = None
    right_statement: bool | None = None
    """None: no statement is to be named."""
    cost_share: float | None = None
    measured_share: float | None = None
    """By how much the step of the twin is shorter."""
    gone: bool | None = None
    """Whether the twin is free of it; None: no twin was run."""
    others: list[str] = field(default_factory=list)
    others_in_twin: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str | None = None


def expectation_of(source: str) -> Expectation | None:
    """The marker of a script, or None for a healthy one.

    Raises:
        ValueError: markers that differ, a told one without words, or something that resembles a marker.
    """
    found: set[tuple[str, str | None]] = set()
    lines: set[int] = set()
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or "expect" not in token.string:
            continue
        marker = MARKER.fullmatch(token.string.strip())
        if marker is None or bool(marker["told"]) != bool(marker["words"]):
            raise ValueError(f"line {token.start[0]}: not a marker: {token.string}")
        found.add((marker["code"], marker["words"]))
        if token.line[: token.start[1]].strip():
            lines |= _statement_at(statements, token.start[0])
    if len(found) > 1:
        raise ValueError(f"{len(found)} kinds of markers; a script has one planted bottleneck")
    return Expectation(code=min(found)[0], lines=frozenset(lines), told=min(found)[1]) if found else None


def _statement_at(statements: list[ast.stmt], line: int) -> set[int]:
    """Lines of the innermost statement at a line; of a loop or branch only its head."""
    spans = []
    for node in statements:
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        spans.append(range(node.lineno, max(node.lineno, last) + 1))
    return set(min((span for span in spans if line in span), key=lambda span: len(span)))


def record(script: Path, arguments: list[str]) -> Recorded:
    """Run one script under slipstream in a fresh process."""
    environment = {name: value for name, value in os.environ.items() if name not in CHOSEN_BY_THE_SCRIPT}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        # Compiled code of an earlier run would hide what compiling costs.
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(Path(temporary) / "compiled")
        command = [sys.executable, "-m", "slipstream", "run", "--quiet", "-o", str(folder), str(script), *arguments]
        began = datetime.datetime.now()
        done = subprocess.run(
            command, env=environment, cwd=temporary, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        seconds = (datetime.datetime.now() - began).total_seconds()
        nothing = Recorded(findings=[], dismissed=[], window_ns=None, step_ns=None, seconds=seconds)
        if done.returncode or not (folder / "findings.json").exists():
            nothing.error = f"exit code {done.returncode}: {done.stderr.strip()[-400:]}"
            return nothing
        told = json.loads((folder / "findings.json").read_text())
        return Recorded(
            findings=told["findings"],
            dismissed=told["dismissed"],
            window_ns=told["window"]["end_ns"] - told["window"]["start_ns"],
            step_ns=_usual_step_ns(folder / "rank0" / "job_steps.parquet"),
            seconds=seconds,
        )


def _usual_step_ns(path: Path) -> float | None:
    """The mean, since a stall every tenth step counts as well; of steps that nothing was recorded in."""
    steps = pl.read_parquet(path).filter(pl.col("phase").cast(pl.String) == "plain")["dur_ns"]
    mean = steps.mean()
    return float(mean) if len(steps) >= FEWEST_STEPS and isinstance(mean, float) else None


def judge(script: Path, expected: Expectation | None, faulty: Recorded, twin: Recorded | None) -> Result:
    """Compare what was said with what is planted."""
    result = Result(case=script.stem, code=expected.code if expected else None)
    result.seconds = faulty.seconds + (twin.seconds if twin else 0.0)
    result.error = faulty.error or (twin.error if twin else None)
    result.ranked_first = faulty.findings[0]["code"] if faulty.findings else None
    result.others = [_brief(one, faulty) for one in faulty.findings if not expected or one["code"] != expected.code]
    if expected is None:
        return result
    result.told = expected.told is not None
    mine = [one for one in faulty.findings if one["code"] == expected.code]
    if expected.told is not None:
        result.right_code = _tells(faulty, expected)
    else:
        result.right_code = result.ranked_first == expected.code
        if mine:
            result.cost_share = mine[0]["cost_ns"] / faulty.window_ns if faulty.window_ns else None
            place = mine[0]["location"]
            result.named = f"{place['file']}:{place['line']}" if place else None
        if expected.lines:
            result.right_statement = bool(mine) and _is_at(mine[0]["location"], script, expected)
    if twin:
        result.others_in_twin = [_brief(one, twin) for one in twin.findings]
        still = any(one["code"] == expected.code for one in twin.findings)
        result.gone = not (_tells(twin, expected) if expected.told is not None else still)
        if faulty.step_ns and twin.step_ns:
            result.measured_share = 1 - twin.step_ns / faulty.step_ns
    return result


def _brief(finding: dict[str, Any], of: Recorded) -> str:
    return f"{finding['code']} {finding['cost_ns'] / of.window_ns:.0%}" if of.window_ns else finding["code"]


def _tells(said: Recorded, expected: Expectation) -> bool:
    return any(one["code"] == expected.code and str(expected.told) in one["reason"] for one in said.dismissed)


def _is_at(place: dict[str, Any] | None, script: Path, expected: Expectation) -> bool:
    if place is None or place["precision"] != "statement":
        return False
    return Path(place["file"]).name == script.name and place["line"] in expected.lines


@dataclass(frozen=True, kw_only=True)
class Score:
    """How many of how many."""

    name: str
    hits: int
    of: int
    aim: float

    @property
    def reached(self) -> bool:
        """Whether the aim is met; nothing to judge is no miss."""
        return self.hits >= self.aim * self.of


def scores(results: list[Result]) -> list[Score]:
    """The aims."""
    planted = [one for one in results if one.code]
    placed = [one for one in planted if one.right_statement is not None]
    healthy = [one for one in results if not one.code]
    twins = [one for one in planted if one.gone is not None]
    return [
        Score(name="right code first", hits=sum(bool(one.right_code) for one in planted), of=len(planted), aim=AIM),
        Score(name="right statement", hits=sum(bool(one.right_statement) for one in placed), of=len(placed), aim=AIM),
        Score(name="gone in the fixed twin", hits=sum(bool(one.gone) for one in twins), of=len(twins), aim=AIM),
        Score(
            name="healthy without a finding",
            hits=sum(not one.others and not one.error for one in healthy),
            of=len(healthy),
            aim=1.0,
        ),
    ]


def table(results: list[Result]) -> str:
    """The results as a Markdown table."""
    first_heads = ("script", "planted", "first", "code", "statement", "says", "twin shorter by", "gone")
    heads = (*first_heads, "others raised", "others in the twin")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for one in results:
        sign = {True: "yes", False: "**no**", None: "–"}
        first = "told" if one.told and one.right_code else one.ranked_first
        cells = (
            one.case,
            one.code or "healthy",
            first or "–",
            sign[one.right_code],
            sign[one.right_statement],
            _percent(one.cost_share),
            _percent(one.measured_share),
            sign[one.gone],
            ", ".join(one.others) or "–",
            ", ".join(one.others_in_twin) or "–",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def environment() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = re.search(r"model name\s*:\s*(.+)", info.read_text())
        cpu = model[1] if model else cpu
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "torch": version("torch"),
        "slipstream": version("slipstream"),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen scripts and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", help="names of scripts without .py; none: all")
    parser.add_argument("-o", "--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--no-twins", action="store_true", help="leave out the fixed twins")
    parser.add_argument("--list", action="store_true", help="names and what is planted, nothing is run")
    chosen = parser.parse_args(arguments)
    scripts = {path.stem: path for kind in ("planted", "healthy") for path in sorted((HERE / kind).glob("*.py"))}
    unknown = [name for name in chosen.cases if name not in scripts]
    if unknown:
        parser.error(f"no such script: {', '.join(unknown)}")
    results = []
    for name in chosen.cases or scripts:
        expected = expectation_of(scripts[name].read_text())
        if chosen.list:
            print(f"{name}: {expected.code if expected else 'healthy'}")
            continue
        faulty = record(scripts[name], [])
        twin = record(scripts[name], ["--fixed"]) if expected and not chosen.no_twins else None
        result = judge(scripts[name], expected, faulty, twin)
        results.append(result)
        print(f"{name}: {result.error or result.ranked_first} ({result.seconds:.0f} s)", file=sys.stderr, flush=True)
        for finding in faulty.findings:
            place = finding["location"]
            at = f" at {place['file']}:{place['line']}" if place else ""
            print(f"  {finding['code']}{at}: {finding['title']}", file=sys.stderr, flush=True)
    if chosen.list:
        return 0
    print(table(results), end="\n\n")
    judged = scores(results)
    for score in judged:
        print(f"{score.name}: {score.hits} of {score.of}" + ("" if score.reached else " - below the aim"))
    if chosen.output:
        document = {"environment": environment(), "results": [asdict(one) for one in results]}
        chosen.output.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if all(score.reached for score in judged) and not any(one.error for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
