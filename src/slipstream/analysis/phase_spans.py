"""Phases of training on the host: data, forward, backward, zero_grad, optimizer."""

import re

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.forward_ops import is_backward
from slipstream.analysis.nesting import Longs, nest, nesting_of
from slipstream.analysis.painting import Painted, layer, paint
from slipstream.analysis.step_marks import step_at
from slipstream.model import NotEnoughData
from slipstream.store import Tables

PHASES = ("optimizer", "zero_grad", "backward", "data", "forward")
"""Of one source the earlier one wins where two overlap."""
BASES = ("measured", "annotation", "call", "module", "ops")
"""What shows a phase, the better first."""
RANGES = {
    "optimizer": re.compile(r"Optimizer\.step#|(##)?\W*optimi[sz]er([_ .]?step)?\W*$", re.I),
    "zero_grad": re.compile(r"Optimizer\.zero_grad#|\W*zero_?grad\W*$", re.I),
    "backward": re.compile(r"\W*(backward|bwd)([_ ]pass)?\W*$", re.I),
    "data": re.compile(r"\W*(data|data_?load(er|ing)|get_?batch)\W*$", re.I),
    "forward": re.compile(r"\W*(forward|fwd)([_ ]pass)?\W*$|DistributedDataParallel\.forward$", re.I),
}
"""Names of ranges, by phase: those of torch's own hooks, and what people commonly write."""
RUN_BACKWARD = r"^<built-in method run_backward of "
_LOADER_BASES = {"measured": "measured", "annotation": "annotation", "python": "call"}


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``phase_spans``, in order of time.

    Raises:
        NotEnoughData: nothing in the recording tells one phase from another.
    """
    parts = [*_measured(tables), *_loader(tables), *_annotated(tables), _called(tables), _modules(tables)]
    # Of all parts the better source first, then the order of the phases: that is the order of the labels.
    found = layer(sorted((part for part in parts if len(part)), key=lambda part: int(part.label[0])))
    found = layer([found, *_by_ops(tables, found)])
    if not len(found):
        raise NotEnoughData(
            "nothing in this recording tells its phases: record with `slipstream run`, or with with_stack=True and "
            "record_shapes=True, or mark them with record_function"
        )
    basis, phase = np.divmod(found.label, len(PHASES))
    return pl.DataFrame(
        {
            "phase": [PHASES[code] for code in phase],
            "step": step_at(tables, found.start),
            "start_ns": found.start,
            "dur_ns": found.end - found.start,
            "basis": [BASES[code] for code in basis],
        }
    )


def phase_at(tables: Tables, position: Longs) -> pl.Series:
    """The phase at each position, null in none of them or where phases are not known."""
    if not tables.has("phase_spans"):
        return pl.Series(values=[None] * len(position), dtype=pl.String)
    spans = tables["phase_spans"]
    start = spans["start_ns"].to_numpy()
    index = np.searchsorted(start, position, side="right") - 1
    end = np.append(start + spans["dur_ns"].to_numpy(), 0)
    index = np.where((index >= 0) & (position < end[index]), index, -1)
    return spans["phase"].cast(pl.String).gather(pl.Series(index).replace(-1, None))


def _spans(rows: pl.DataFrame, phase: str, basis: str, start: str = "ts_ns") -> Painted:
    begin = rows[start].to_numpy()
    return paint(begin, begin + rows["dur_ns"].to_numpy(), _label(phase, basis))


def _label(phase: str, basis: str) -> int:
    return BASES.index(basis) * len(PHASES) + PHASES.index(phase)


def _measured(tables: Tables) -> list[Painted]:
    if not tables.has("phases"):
        return []
    rows = tables["phases"].with_columns(pl.col("phase").cast(pl.String))
    return [
        _spans(rows.filter(pl.col("phase") == phase), phase, "measured", "start_ns")
        for phase in ("optimizer", "backward")
    ]


def _loader(tables: Tables) -> list[Painted]:
    if not tables.has("loader_spans"):
        return []
    rows = tables["loader_spans"].with_columns(pl.col("source").cast(pl.String))
    return [
        _spans(rows.filter(pl.col("source") == source), "data", basis, "start_ns")
        for source, basis in _LOADER_BASES.items()
    ]


def _annotated(tables: Tables) -> list[Painted]:
    rows = tables["annotations"].filter(~pl.col("on_device")).with_columns(pl.col("name").cast(pl.String))
    names = rows["name"].unique()
    return [
        _spans(rows.filter(pl.col("name").is_in([name for name in names if words.match(name)])), phase, "annotation")
        for phase, words in RANGES.items()
    ]


def _called(tables: Tables) -> Painted:
    return _spans(_python_rows(tables, RUN_BACKWARD), "backward", "call")


def _modules(tables: Tables) -> Painted:
    """The outermost modules, on whichever thread; what runs inside a backward is hidden by it."""
    rows = _python_rows(tables, r"^nn\.Module: ").drop_nulls("thread")
    start = rows["ts_ns"].to_numpy()
    depth = nest(rows["thread"].to_numpy(), start, start + rows["dur_ns"].to_numpy()).depth
    return _spans(rows.filter(pl.Series(depth == 0)), "forward", "module")


def _python_rows(tables: Tables, pattern: str) -> pl.DataFrame:
    rows = tables["python"]
    names = rows["name"].unique().cast(pl.String)
    return rows.filter(pl.col("name").cast(pl.String).is_in(names.filter(names.str.contains(pattern)).implode()))


def _by_ops(tables: Tables, known: Painted) -> list[Painted]:
    """Phases that nothing better shows: runs of backward ops, and the runs of ops with a graph that come before one.

    A run ends where a known phase or a step begins, or the other kind of op.
    """
    ops = tables["ops"]
    backward = is_backward(ops)
    forward = _with_graph(tables, backward)
    start = ops["ts_ns"].to_numpy()
    place = np.flatnonzero(backward | forward)
    place = place[np.argsort(start[place], kind="stable")]
    if not len(place):
        return []
    borders = np.unique(np.concatenate([known.start, known.end, tables["steps"]["start_ns"].to_numpy()]))
    segment = np.searchsorted(borders, start[place], side="right")
    changes = (np.diff(segment) != 0) | (np.diff(backward[place].astype(int)) != 0)
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    end = np.maximum.reduceat((start + ops["dur_ns"].to_numpy())[place], begins)
    begin, is_back = start[place[begins]], backward[place[begins]]
    parts = []
    if not _shown(known, "backward", "call"):
        parts.append(paint(begin[is_back], end[is_back], _label("backward", "ops")))
    if not _shown(known, "forward", "annotation"):
        # Ops with a graph whose backward never comes are no training: evaluation, metrics, inference.
        ahead = ~is_back & _backward_is_next(layer([known, *parts]), begin)
        parts.append(paint(begin[ahead], end[ahead], _label("forward", "ops")))
    return parts


def _with_graph(tables: Tables, backward: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Ops that autograd numbered, outside of backward nodes, on the thread that has most of them."""
    ops = tables["ops"]
    nesting = nesting_of(tables.trace, "ops")
    numbered = ops["sequence"].is_not_null().to_numpy() & ~_inside(backward, nesting.parent, nesting.depth)
    threads = ops.filter(pl.Series(numbered)).drop_nulls("thread").group_by("thread").len()
    if not threads.height:
        return numbered
    best = threads.sort("len", "thread", descending=[True, False])["thread"][0]
    on_best: npt.NDArray[np.bool_] = (ops["thread"] == best).fill_null(False).to_numpy()
    return numbered & on_best


def _shown(known: Painted, phase: str, basis: str) -> bool:
    """Whether a source at least that good shows a phase anywhere."""
    order, phases = np.divmod(known.label, len(PHASES))
    return bool(((phases == PHASES.index(phase)) & (order <= BASES.index(basis))).any())


def _backward_is_next(known: Painted, position: Longs) -> npt.NDArray[np.bool_]:
    """Whether the first phase that begins after each position is a backward; forward goes on across zero_grad."""
    phases = known.label % len(PHASES)
    others = ~np.isin(phases, [PHASES.index("forward"), PHASES.index("zero_grad")])
    after = np.searchsorted(known.start[others], position, side="right")
    is_back = np.append(phases[others] == PHASES.index("backward"), False)
    return np.asarray(is_back[after], bool)


def _inside(marked: npt.NDArray[np.bool_], parent: Longs, depth: Longs) -> npt.NDArray[np.bool_]:
    """Whether each span or one around it is marked."""
    found = marked.copy()
    for level in range(1, int(depth.max(initial=0)) + 1):
        here = np.flatnonzero(depth == level)
        found[here] |= found[parent[here]]
    return found
