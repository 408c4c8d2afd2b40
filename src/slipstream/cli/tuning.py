"""A tuning from the command line: record, forecast, search, write down what is kept."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from slipstream.capture import JobSpec, check_target, launch, new_folder
from slipstream.cli.running import recorded, say
from slipstream.model import BadInput, Gain, SlipstreamError, Tuning
from slipstream.tuning import look_around
from slipstream.tuning.leaving import PART as LEAVING
from slipstream.tuning.search import Effort, Wishes, tune
from slipstream.tuning.tuned import write_tuned

FOLDERS = "slipstream-tuning"
RESULT = "tuning.json"
_TELL_EVERY_S = 10.0


def tune_job(
    job: JobSpec,
    wishes: Wishes,
    effort: Effort,
    folder: Path | None,
    tuned: Path,
    record: bool = True,
    patch: bool = False,
) -> Tuning:
    """Tune a job, telling on standard error what goes on.

    Args:
        job: to be tuned.
        wishes: what may be tried.
        effort: how much is measured.
        folder: for what is measured; None: a new one in ``slipstream-tuning``.
        tuned: file for what is kept; written only where something is.
        record: whether a recording is made first, for forecasts.
        patch: whether what is kept is also written as a patch of the source, beside ``tuned``.
    Raises:
        BadInput: a treatment that does not exist.
        CannotStart: the job cannot be started.
    """
    check_target(job)
    place = folder or new_folder(FOLDERS, job.target if job.is_module else Path(job.target).stem)
    place.mkdir(parents=True, exist_ok=True)
    teller = _Teller()
    environment = look_around()
    gains = _forecasts(job, place, teller) if record else None
    result, choices = tune(job, place, environment, wishes, effort, gains, teller)
    teller.end()
    (place / RESULT).write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2))
    if choices:
        words = ["written by slipstream tune; apply with: slipstream run --with " + str(tuned)]
        write_tuned(tuned, choices, words)
        teller.say(f"wrote {tuned}: slipstream run --with {tuned} {' '.join(result.command)}")
        if patch:
            from slipstream.cli.patching import write_patch

            for line in write_patch(job, choices, tuned.with_suffix(".patch")):
                teller.say(line)
    elif patch:
        teller.say("no patch: nothing is kept")
    teller.say(f"everything that was measured: {place}")
    return result


def seconds(text: str | None) -> float | None:
    """A time like ``90s``, ``10m``, ``1.5h`` or ``600`` in seconds.

    Raises:
        BadInput: it is none.
    """
    if text is None:
        return None
    units = {"s": 1, "m": 60, "h": 3600}
    unit = text[-1:]
    number = text[:-1] if unit in units else text
    try:
        value = float(number) * units.get(unit, 1)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise BadInput(f"--time {text} is no time: 90s, 10m or 1.5h")
    return value


def _forecasts(job: JobSpec, place: Path, teller: "_Teller") -> Mapping[str, Gain] | None:
    """What a recording of the job forecasts, by treatment; None where there is none."""
    from slipstream.cli.diagnosing import diagnoses

    root = place / "recording"
    if not recorded(root):
        teller("recording the job as it is")
        spec = msgspec.structs.replace(job, output=root, parts=(*job.parts, LEAVING))
        with _Silent(place / "recording.log"):
            launch(spec)
    if not recorded(root):
        teller.say("the recording is not complete: nothing is forecast")
        return None
    try:
        reports = diagnoses(str(root))
    except SlipstreamError as error:
        teller.say(f"the recording cannot be analysed, nothing is forecast: {error}")
        return None
    gains: dict[str, Gain] = {}
    for finding in reports[0].diagnosis.findings:
        if finding.fix is not None and finding.fix.treatment and finding.gain is not None:
            gains.setdefault(finding.fix.treatment, finding.gain)
    return gains


class _Silent:
    """Standard output and error of this process and its children go to a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._kept = [(number, os.dup(number)) for number in (1, 2)]
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number, _ in self._kept:
            os.dup2(descriptor, number)
        os.close(descriptor)

    def __exit__(self, *error: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in self._kept:
            os.dup2(copy, number)
            os.close(copy)


class _Teller:
    """Tells on standard error what goes on: in place on a terminal, else a line from time to time."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._told = float("-inf")
        self._last = ""

    def __call__(self, now: str) -> None:
        """Say what is being done."""
        minutes, rest = divmod(int(time.monotonic() - self._began), 60)
        if self._terminal:
            print(f"\r\x1b[2K{minutes}:{rest:02d} {now}"[:120], end="", file=sys.stderr, flush=True)
            return
        head = now.rpartition(":")[0] or now
        if head != self._last and time.monotonic() - self._told >= _TELL_EVERY_S:
            self._told, self._last = time.monotonic(), head
            say(f"{minutes}:{rest:02d} {now}")

    def say(self, line: str) -> None:
        """Say something that stays."""
        self.end()
        say(line)

    def end(self) -> None:
        """Take the line in place away."""
        if self._terminal:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
