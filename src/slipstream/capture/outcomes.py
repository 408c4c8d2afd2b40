"""What became of a recording, told from what the job's processes left in the run folder."""

import signal

import msgspec

from slipstream.capture.status import OutcomeCode, Seen, Status
from slipstream.store import RunFolder, RunInfo


def status_of(folder: RunFolder) -> Status | None:
    """What the lowest rank that has a folder said last; None: no process has trained."""
    for rank in folder.ranks():
        try:
            return msgspec.json.decode((folder.rank(rank) / "capture.json").read_bytes(), type=Status)
        except OSError:
            continue
    return None


def completed(info: RunInfo, folder: RunFolder, returncode: int) -> RunInfo:
    """The record of a run once its job has ended.

    Args:
        info: as it was written at the start.
        folder: what the job's processes wrote.
        returncode: how the job ended.
    """
    status = status_of(folder)
    seen = _seen(folder)
    info = msgspec.structs.replace(info, exit_status=returncode)
    info.torch_version = seen.torch_version if seen is not None else None
    if status is None:
        info.outcome_code, info.outcome = _without_training(seen, returncode)
        return info
    info.torch_version = status.torch_version
    info.device, info.device_kind = status.device, status.device_kind
    info.world_size = status.world_size
    info.outcome_code, info.outcome = _of_training(status, returncode)
    info.outcome = "; ".join([info.outcome, *status.notes])
    info.options = info.options | {
        "job_steps": status.steps,
        "first_recorded": status.first_recorded,
        "recorded": status.recorded,
        "overhead_ns": status.overhead_ns,
        "user_package": status.user_package,
        **{f"{name}_every": every for name, every in status.rows_every.items()},
    }
    return info


def _seen(folder: RunFolder) -> Seen | None:
    try:
        return msgspec.json.decode((folder.root / "torch.json").read_bytes(), type=Seen)
    except OSError:
        return None


def _without_training(seen: Seen | None, returncode: int) -> tuple[OutcomeCode, str]:
    if seen is None:
        return "no_torch", f"the job never imported torch{_ending(returncode)}: there was nothing to record"
    if seen.failure is not None:
        return "failed", seen.failure
    return "no_steps", f"no optimizer took a step{_ending(returncode)}: there was nothing to record"


def _of_training(status: Status, returncode: int) -> tuple[OutcomeCode, str]:
    if status.outcome_code is not None:
        return status.outcome_code, status.outcome or ""
    if status.state == "recording":
        return "cut_short", f"the job ended{_ending(returncode)} while its steps were being recorded: they are lost"
    return (
        "too_few_steps",
        f"the job ended{_ending(returncode)} after {status.steps} steps or a few more, before the window opened",
    )


def _ending(returncode: int) -> str:
    if returncode < 0:
        try:
            return f" (it died of {signal.Signals(-returncode).name})"
        except ValueError:
            return f" (it died of signal {-returncode})"
    return f" (exit status {returncode})" if returncode else ""
