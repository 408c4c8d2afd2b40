"""A child that ends after its parent - by rounding, by microseconds, or because its end was never seen - loses what
lies beyond, and nothing inside it is lost: from the text of a trace to the tree of ops.
"""

from pathlib import Path

import polars as pl
import pytest

from slipstream.analysis import tables_of
from slipstream.ingest import read
from slipstream.store import Tables

TEXT = """{
  "schemaVersion": 1,
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "rounded", "pid": 7, "tid": 7, "ts": 100.000, "dur": 10.000},
  {"ph": "X", "cat": "cpu_op", "name": "rounded child", "pid": 7, "tid": 7, "ts": 105.000, "dur": 5.001},

  {"ph": "X", "cat": "cpu_op", "name": "late", "pid": 7, "tid": 7, "ts": 200.000, "dur": 100.000},
  {"ph": "X", "cat": "cpu_op", "name": "late child", "pid": 7, "tid": 7, "ts": 210.000, "dur": 93.000},
  {"ph": "X", "cat": "cpu_op", "name": "late grandchild", "pid": 7, "tid": 7, "ts": 250.000, "dur": 51.500},

  {"ph": "X", "cat": "cpu_op", "name": "endless", "pid": 7, "tid": 7, "ts": 400.000, "dur": 100.000},
  {"ph": "X", "cat": "cpu_op", "name": "endless child", "pid": 7, "tid": 7, "ts": 410.000, "dur": 590.000},
  {"ph": "X", "cat": "cpu_op", "name": "inside", "pid": 7, "tid": 7, "ts": 420.000, "dur": 10.000},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 422.000, "dur": 2.000,
   "args": {"correlation": 1}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 440.000, "dur": 30.000,
   "args": {"device": 0, "stream": 7, "correlation": 1}},
  {"ph": "X", "cat": "cpu_op", "name": "after", "pid": 7, "tid": 7, "ts": 600.000, "dur": 10.000},

  {"ph": "X", "cat": "python_function", "name": "train.py(3): main", "pid": 7, "tid": 7, "ts": 190.000, "dur": 810.000,
   "args": {"Python id": 1, "Python parent id": null}},
  {"ph": "X", "cat": "python_function", "name": "train.py(9): f", "pid": 7, "tid": 7, "ts": 405.000, "dur": 100.000,
   "args": {"Python id": 2, "Python parent id": 1}},
  {"ph": "X", "cat": "python_function", "name": "train.py(20): raises", "pid": 7, "tid": 7, "ts": 415.000,
   "dur": 585.000, "args": {"Python id": 3, "Python parent id": 2}}
  ],
  "traceName": "t.json"
}"""


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    (tmp_path / "trace.json").write_text(TEXT)
    return tables_of(read(tmp_path / "trace.json"))


def test_nothing_is_dropped_or_repaired(tables: Tables) -> None:
    assert tables["ops"].height == tables["op_tree"].height == 9
    assert tables["python"].height == 3
    assert tables.integrity.issues == ()
    assert tables.integrity.grade == "A"
    lengths = dict(tables["ops"].select(pl.col("name").cast(pl.String), "dur_ns").iter_rows())
    assert (lengths["rounded child"], lengths["endless child"]) == (5_001, 590_000), "as the file has them"


def test_the_tree(tables: Tables) -> None:
    names = dict(tables["ops"].select("event", pl.col("name").cast(pl.String)).iter_rows())
    rows = tables["op_tree"].select("event", "depth", "parent", "root", "self_ns", "device_total_ns").iter_rows()
    tree = {names[event]: (depth, names.get(up), names[top], *ns) for event, depth, up, top, *ns in rows}
    assert tree == {
        "rounded": (0, None, "rounded", 5_000, 0),
        "rounded child": (1, "rounded", "rounded", 5_000, 0),
        "late": (0, None, "late", 10_000, 0),
        "late child": (1, "late", "late", 40_000, 0),
        "late grandchild": (2, "late child", "late", 50_000, 0),
        "endless": (0, None, "endless", 10_000, 30_000),
        "endless child": (1, "endless", "endless", 80_000, 30_000),
        "inside": (2, "endless child", "endless", 10_000, 30_000),
        "after": (0, None, "after", 10_000, 0),
    }
    assert sum(row[3] for row in tree.values()) == 220_000, "own time adds up to the outermost ops"


def test_the_python_call_around_each_op(tables: Tables) -> None:
    calls = dict(tables["python"].select("event", pl.col("name").cast(pl.String)).iter_rows())
    names = dict(tables["ops"].select("event", pl.col("name").cast(pl.String)).iter_rows())
    around = {names[op]: calls.get(call) for op, call in tables["op_tree"].select("event", "python_event").iter_rows()}
    assert around["rounded"] is None
    assert around["late grandchild"] == "train.py(3): main"
    assert around["endless child"] == "train.py(9): f"
    assert around["inside"] == "train.py(20): raises"
    assert around["after"] == "train.py(3): main", "a call that never returned ends with the one around it"
