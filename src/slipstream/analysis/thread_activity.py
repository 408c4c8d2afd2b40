"""What a thread was doing at any moment, as far as its rows tell: one label per moment, most telling first."""

import functools
import re
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl

from slipstream.analysis.painting import Painted, layer, nothing, outside, paint
from slipstream.model import CAUSES, Cause
from slipstream.store import Tables

LABEL = {cause: place for place, cause in enumerate(CAUSES)}
"""Number of each cause in ``Painted.label``."""
WAITING = 100
"""Label of a host call that waits for the device; it becomes ``sync`` where it made the device idle."""
DISPATCH = 101
"""Label of an op or runtime call that is none of the others: the host prepares or launches device work."""
PYTHON = 102
"""Label of a Python call that is none of the others."""

ALLOCATOR = re.compile(
    r"^(cuda|hip|cu)(Malloc|Free|HostAlloc|HostRegister|MemAlloc|MemFree|MemCreate|MemMap|MemUnmap)", re.I
)
CAPTURE = re.compile(
    r"^(cuda|hip|cu)(StreamBeginCapture|StreamEndCapture|GraphInstantiate|GraphCreate|GraphExec.*Update)", re.I
)
COMPILE_FILE = re.compile(
    r"(^|/)torch/(_dynamo/(convert_frame|output_graph|symbolic_convert)|_inductor/compile_fx|_inductor/graph)\.py$"
)
COMPILE_MARK = re.compile(
    r"^(_compile\.compile_inner|compile_fx|OutputGraph\.call_user_compiler|entire_(frame|backward)_compile|.*\(dynamo_timed\))"
)
"""Marks of torch.compile at work; older versions draw them as annotations, newer ones as ops."""
PREPROCESSING_FILE = re.compile(
    r"(^|/)(numpy|scipy|PIL|cv2|pandas|skimage|albumentations|torchvision/(transforms|io|datasets)|torchaudio|librosa|soundfile"
    r"|av|decord|tokenizers|datasets|sklearn|nltk|spacy|imageio|kornia|webdataset|pyarrow)/"
    r"|(^|/)transformers/(image_processing|image_transforms|image_utils|feature_extraction|tokenization|video_processing|audio_utils"
    r"|models/[^/]+/(image_processing|feature_extraction|tokenization|video_processing))"
)
BACKWARD_CALL = re.compile(r"^<built-in method run_backward of ")
COMM_WAIT = re.compile(r"^(gloo:|mpi:|ucc:)|^(c10d::(barrier|monitored_barrier))")
BOOKKEEPING_OP = re.compile(
    r"^aten::(empty|new_empty|as_strided|view|_unsafe_view|reshape|_reshape|slice|narrow|select|split|chunk|unbind|t$|transpose"
    r"|permute|expand|squeeze|unsqueeze|flatten|unflatten|detach|alias|lift|set_|resize_|is_|_local_scalar|item|result_type)"
)
"""Ops that make or reshape handles of tensors: however slow, they compute nothing."""
PREPROCESSING_OP_NS = 50_000
"""An op with this much own time that leads to no device work computes on the host."""


class ThreadActivity:
    """Labels for the threads of one recording, computed once per thread.

    Args:
        tables: the recording; reads ops, runtime, python, annotations, loader_spans, blocking_calls, op_tree.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.on_thread = functools.cache(self._on_thread)

    def _on_thread(self, thread: int) -> Painted:
        """Everything known about one thread, most telling label first."""
        return layer(
            [
                self._collector(thread),
                self._loader(thread),
                self._compile(thread),
                self._runtime(thread, CAPTURE, LABEL["graph_capture"]),
                self._runtime(thread, ALLOCATOR, LABEL["allocator"]),
                self._waits(thread),
                self._communication(thread),
                self._preprocessing_ops(thread),
                self._dispatch(thread),
                self._python(thread),
            ]
        )

    def _rows(self, table: str, thread: int, keep: pl.Expr | None = None) -> pl.DataFrame:
        rows = self._tables[table].filter(pl.col("thread") == thread)
        return rows if keep is None else rows.filter(keep)

    def _collector(self, thread: int) -> Painted:
        trace = self._tables.trace
        if not trace.has("gc_pauses") or thread != self._tables.row("window")["main_thread"]:
            return nothing()
        rows = trace.table("gc_pauses")
        begin = rows["start_ns"].to_numpy()
        return paint(begin, begin + rows["dur_ns"].to_numpy(), LABEL["gc"])

    def _loader(self, thread: int) -> Painted:
        if not self._tables.has("loader_spans"):
            return nothing()
        rows = self._rows("loader_spans", thread)
        begin = rows["start_ns"].to_numpy()
        return paint(begin, begin + rows["dur_ns"].to_numpy(), LABEL["loader"])

    def _compile(self, thread: int) -> Painted:
        marks = self._rows("annotations", thread, ~pl.col("on_device") & _matches("name", COMPILE_MARK))
        ops = self._rows("ops", thread, _matches("name", COMPILE_MARK))
        found = [_spans(rows, LABEL["compile"]) for rows in (marks, ops)]
        return layer([*found, self._python_in(thread, COMPILE_FILE, LABEL["compile"])])

    def _runtime(self, thread: int, pattern: re.Pattern[str], label: int) -> Painted:
        return _spans(self._rows("runtime", thread, _matches("name", pattern)), label)

    def _waits(self, thread: int) -> Painted:
        return (
            _spans(self._rows("blocking_calls", thread), WAITING) if self._tables.has("blocking_calls") else nothing()
        )

    def _communication(self, thread: int) -> Painted:
        return _spans(
            self._rows("annotations", thread, ~pl.col("on_device") & _matches("name", COMM_WAIT)), LABEL["comm_wait"]
        )

    def _preprocessing_ops(self, thread: int) -> Painted:
        tree = self._rows("op_tree", thread)
        idle_roots = tree.filter(pl.col("parent").is_null() & (pl.col("device_total_ns") == 0))["event"]
        computing = tree.filter(pl.col("root").is_in(idle_roots.implode()) & (pl.col("self_ns") >= PREPROCESSING_OP_NS))
        long = self._rows("ops", thread, ~_matches("name", BOOKKEEPING_OP)).join(computing.select("event"), on="event")
        launching = self._rows("runtime", thread)["ts_ns"].sort().to_numpy()
        begin = long["ts_ns"].to_numpy()
        # An op that called the runtime was working for the device even if its kernel is missing from the file.
        calls = np.searchsorted(launching, begin + long["dur_ns"].to_numpy()) - np.searchsorted(launching, begin)
        libraries = self._python_in(thread, PREPROCESSING_FILE, LABEL["preprocessing"])
        return layer([_spans(long.filter(pl.Series(calls == 0)), LABEL["preprocessing"]), libraries])

    def _dispatch(self, thread: int) -> Painted:
        return layer([_spans(self._rows("runtime", thread), DISPATCH), _spans(self._rows("ops", thread), DISPATCH)])

    def _python(self, thread: int) -> Painted:
        """Python calls, but for those that only wait until the backward threads are done."""
        waiting = self._rows("python", thread, _matches("name", BACKWARD_CALL))
        return outside(_spans(self._rows("python", thread), PYTHON), _spans(waiting, PYTHON))

    def _python_in(self, thread: int, pattern: re.Pattern[str], label: int) -> Painted:
        names = self._python_names(pattern)
        return (
            _spans(self._rows("python", thread, pl.col("name").is_in(names.implode())), label)
            if len(names)
            else nothing()
        )

    def _python_names(self, pattern: re.Pattern[str]) -> pl.Series:
        frames = self._tables["frames"]
        return frames.filter(pl.col("file").str.replace_all("\\", "/", literal=True).str.contains(pattern.pattern))[
            "name"
        ]


def _matches(column: str, pattern: re.Pattern[str]) -> pl.Expr:
    flags = "(?i)" if pattern.flags & re.IGNORECASE else ""
    return pl.col(column).cast(pl.String).str.contains(flags + pattern.pattern)


def _spans(rows: pl.DataFrame, label: int) -> Painted:
    begin = cast("npt.NDArray[np.int64]", rows["ts_ns"].to_numpy())
    return paint(begin, begin + rows["dur_ns"].to_numpy(), label, rows["event"].cast(pl.Int64).to_numpy())


def cause_of(label: int) -> Cause:
    """The cause that a label stands for when nothing more is known."""
    return CAUSES[label]
