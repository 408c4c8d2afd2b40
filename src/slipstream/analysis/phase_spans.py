"""Phases of training on the host: data, forward, backward, zero_grad, optimizer."""

import re

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.forward_ops import is_backward
from slipstream.analysis.nesting import Longs, nest, nesting_of
from slipstream.analysis.painting import Painted, layer, nothing, paint
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
    """The outermost modules that ran on the main thread."""
    rows = _python_rows(tables, r"^nn\.Module: ").filter(_on_main(tables))
    start = rows["ts_ns"].to_numpy()
    depth = nest(rows["thread"].to_numpy(), start, start + rows["dur_ns"].to_numpy()).depth
    return _spans(rows.filter(pl.Series(depth == 0)), "forward", "module")


def _on_main(tables: Tables) -> pl.Expr:
    return pl.col("thread").eq_missing(pl.lit(tables.row("window")["main_thread"], pl.Int32))


def _python_rows(tables: Tables, pattern: str) -> pl.DataFrame:
    rows = tables["python"]
    names = rows["name"].unique().cast(pl.String)
    return rows.filter(pl.col("name").cast(pl.String).is_in(names.filter(names.str.contains(pattern)).implode()))


def _by_ops(tables: Tables, known: Painted) -> list[Painted]:
    """Runs of backward ops, and of ops that took part in autograd on the main thread, between known phases."""
    ops = tables["ops"]
    nesting = nesting_of(tables.trace, "ops")
    backward = is_backward(ops)
    inside = _inside(backward, nesting.parent, nesting.depth)
    on_main = ops.select(_on_main(tables)).to_series().to_numpy()
    forward = ops["sequence"].is_not_null().to_numpy() & on_main & ~inside
    start = ops["ts_ns"].to_numpy()
    place = np.flatnonzero(backward | forward)
    place = place[np.argsort(start[place], kind="stable")]
    if not len(place):
        return [nothing()]
    borders = np.unique(np.concatenate([known.start, known.end, tables["steps"]["start_ns"].to_numpy()]))
    segment = np.searchsorted(borders, start[place], side="right")
    begins = np.flatnonzero(np.append(True, (np.diff(segment) != 0) | (np.diff(backward[place].astype(int)) != 0)))
    end = np.maximum.reduceat((start + ops["dur_ns"].to_numpy())[place], begins)
    is_back = backward[place[begins]]
    labels = np.where(is_back, _label("backward", "ops"), _label("forward", "ops"))
    runs = start[place[begins]]
    return [paint(runs[is_back], end[is_back], labels[is_back]), paint(runs[~is_back], end[~is_back], labels[~is_back])]


def _inside(marked: npt.NDArray[np.bool_], parent: Longs, depth: Longs) -> npt.NDArray[np.bool_]:
    """Whether each span or one around it is marked."""
    found = marked.copy()
    for level in range(1, int(depth.max(initial=0)) + 1):
        here = np.flatnonzero(depth == level)
        found[here] |= found[parent[here]]
    return found
