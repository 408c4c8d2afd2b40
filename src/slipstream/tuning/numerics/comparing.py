"""Whether two runs of a job compute the same, within what runs of this very job differ by."""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from slipstream.model import Sameness
from slipstream.tuning.numerics.observation import Observed, Update

MARGIN = 10.0
"""Times the envelope that a run may differ by: other roundings are more than one change of the weights."""
LEAST = {"losses": 1e-6, "gradient norms": 1e-5, "updates": 1e-4}
"""Relative differences that float32 leaves open whatever the job: sums of thousands of terms in another order."""
BLIND = 5e-3
"""Where more than this is allowed, a wrong learning rate or loss could hide: such steps do not count as checked."""
LEAST_STEPS = 5


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """What the comparison of a run with the base says."""

    sameness: Sameness
    reasons: tuple[str, ...] = ()
    """What differs, or why it cannot be told."""
    notes: tuple[str, ...] = ()
    """What the check did not cover."""
    steps: int
    """Backward passes that were compared closely."""
    largest: dict[str, float] = {}
    """Largest relative difference of losses, gradient norms and updates."""
    allowed: dict[str, float] = {}
    """What was allowed where that was."""


def compare_runs(base: Observed, run: Observed, others: Sequence[Observed]) -> Compared:
    """Hold a run against the base.

    Args:
        base: the job as it is.
        run: with treatments; same seed and data.
        others: the base again: unchanged, and with its weights changed in the last digit. Their differences are the
            envelope.
    """
    reasons = _fingerprint(base, run)
    if len(base.losses) != len(run.losses):
        reasons.append(f"{len(run.losses)} backward passes where there were {len(base.losses)}")
    largest: dict[str, float] = {}
    allowed: dict[str, float] = {}
    steps = 0
    for name in ("losses", "gradient norms"):
        wanted, found = _series(base, name), _series(run, name)
        limit = _limit([_relative(wanted, _series(other, name)) for other in others], len(wanted), LEAST[name])
        off = _relative(wanted, found)
        count = min(len(off), len(limit))
        off, limit = off[:count], limit[:count]
        seen = int(np.count_nonzero(limit <= BLIND))
        steps = seen if name == "losses" else min(steps, seen)
        _note(name, off, limit, largest, allowed, reasons)
    off, limit = _updates_off(base, run, others)
    _note("updates", off, limit, largest, allowed, reasons)
    sameness: Sameness = "differs" if reasons else "same"
    if not reasons and steps < LEAST_STEPS:
        sameness = "cannot_tell"
        reasons.append(
            f"this job drifts apart after {steps} steps whatever is done: a change of its weights in the last digit "
            f"alters its losses by more than {BLIND * 100 / MARGIN:.2g} %"
        )
    return Compared(
        sameness=sameness,
        reasons=tuple(reasons),
        notes=tuple(_not_covered(base)),
        steps=steps,
        largest=largest,
        allowed=allowed,
    )


def _fingerprint(base: Observed, run: Observed) -> list[str]:
    """What is set or called otherwise."""
    reasons = []
    if len(base.optimizers) != len(run.optimizers):
        reasons.append(f"{len(run.optimizers)} optimizers where there were {len(base.optimizers)}")
    for one, other in zip(base.optimizers, run.optimizers, strict=False):
        if one["class"] != other["class"]:
            reasons.append(f"the optimizer is {other['class']}, not {one['class']}")
        for mine, theirs in zip(one["groups"], other["groups"], strict=False):
            reasons += [
                "the optimizer has other parameters"
                if name == "parameters"
                else f"{name} of the optimizer is {theirs.get(name)}, not {mine.get(name)}"
                for name in sorted(mine.keys() | theirs.keys())
                if mine.get(name) != theirs.get(name)
            ]
        if len(one["groups"]) != len(other["groups"]):
            reasons.append(f"{len(other['groups'])} param groups where there were {len(one['groups'])}")
    for name in ("step", "zero_grad", "clip_grad_norm_", "clip_grad_value_"):
        mine, theirs = base.calls.get(name, 0), run.calls.get(name, 0)
        if mine != theirs:
            reasons.append(f"{name} was called {theirs} times, not {mine} times")
    if base.samples != run.samples:
        reasons.append(f"{run.samples} samples were fetched, not {base.samples}")
    count = min(len(base.learning_rates), len(run.learning_rates))
    if any(
        not np.allclose(one, other, rtol=1e-9, atol=0) if len(one) == len(other) else True
        for one, other in zip(base.learning_rates[:count], run.learning_rates[:count], strict=True)
    ):
        reasons.append("the learning rate takes another course")
    return reasons


def _series(observed: Observed, name: str) -> npt.NDArray[np.float64]:
    return np.array(observed.losses if name == "losses" else observed.gradient_norms, np.float64)


def _relative(base: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Relative difference, step by step; what is not finite in one of them only is infinitely far."""
    count = min(len(base), len(other))
    mine, theirs = base[:count], other[:count]
    scale = np.maximum(np.abs(mine), 1e-30)
    with np.errstate(invalid="ignore"):
        off = np.abs(theirs - mine) / scale
    return np.where(np.isfinite(off), off, np.where(np.isfinite(mine) == np.isfinite(theirs), 0.0, np.inf))


def _limit(differences: Sequence[npt.NDArray[np.float64]], count: int, least: float) -> npt.NDArray[np.float64]:
    """What is allowed at each step: runs that have drifted apart do not come together again."""
    return MARGIN * np.maximum.accumulate(_widest(differences, count)) + least


def _widest(differences: Sequence[npt.NDArray[np.float64]], count: int) -> npt.NDArray[np.float64]:
    """The largest of several differences, place by place."""
    widest = np.zeros(count)
    for one in differences:
        within = min(len(one), count)
        widest[:within] = np.maximum(widest[:within], one[:within])
    return widest


def _updates_off(
    base: Observed, run: Observed, others: Sequence[Observed]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Relative differences of the updates, parameter by parameter and step by step, and what is allowed."""
    off = _flat(base, run)
    widest = _widest([_flat(base, other) for other in others], len(off))
    return off, MARGIN * widest + LEAST["updates"]


def _flat(base: Observed, run: Observed) -> npt.NDArray[np.float64]:
    return np.array(
        [
            _update_off(one, other)
            for mine, theirs in zip(base.updates, run.updates, strict=False)
            for one, other in zip(mine, theirs, strict=False)
        ]
    )


def _update_off(base: Update, run: Update) -> float:
    mine, theirs = np.array(base.sample), np.array(run.sample)
    if len(mine) != len(theirs):
        return float("inf")
    scale = float(np.linalg.norm(mine))
    off = float(np.linalg.norm(theirs - mine))
    by_norm = abs(run.norm - base.norm) / base.norm if base.norm else float(run.norm > 0)
    return max(off / scale if scale else float(off > 0), by_norm)


def _note(
    name: str,
    off: npt.NDArray[np.float64],
    limit: npt.NDArray[np.float64],
    largest: dict[str, float],
    allowed: dict[str, float],
    reasons: list[str],
) -> None:
    if not len(off):
        return
    worst = int(np.argmax(off / limit))
    largest[name], allowed[name] = float(off[worst]), float(limit[worst])
    if off[worst] > limit[worst]:
        first = int(np.flatnonzero(off > limit)[0])
        place = f", first in backward pass {first + 1}" if name != "updates" else " of a parameter in the first steps"
        reasons.append(
            f"{name} differ by {off[worst]:.1e} where {limit[worst]:.1e} is what this job's own runs allow{place}"
        )


def _not_covered(base: Observed) -> list[str]:
    """What did not happen in the steps that were watched."""
    notes = []
    clips = base.calls.get("clip_grad_norm_", 0)
    if clips and not base.calls.get("clipped", 0):
        notes.append(f"gradients were never long enough to be clipped in {clips} calls")
    if len(set(base.learning_rates)) == 1 and len(base.learning_rates) > 1:
        notes.append("the learning rate stayed the same throughout")
    return notes
