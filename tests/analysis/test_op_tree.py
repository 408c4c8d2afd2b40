"""Own time, device time and surroundings of ops."""

import polars as pl

from support.tables import make_tables, span, step


def test_own_time_and_device_time_go_to_the_innermost_op_and_add_up() -> None:
    tables = make_tables(
        steps=[step(7, 0, 1_000)],
        ops=[
            span("linear", 100, 100),
            span("t", 110, 20),
            span("addmm", 140, 50),
            span("other", 300, 10, thread=4),
            span("late", 2_000, 5),
        ],
        python=[span("train.py(3): main", 0, 900), span("torch/nn/f.py(9): linear", 105, 90)],
        runtime=[
            span("cudaLaunchKernel", 150, 2, correlation=1),
            span("cudaLaunchKernel", 160, 2, correlation=2),
            span("cudaMemsetAsync", 195, 2, correlation=3),
            span("cudaLaunchKernel", 400, 2, correlation=4),
        ],
        kernels=[span("k1", 500, 30, correlation=1), span("k2", 510, 40, correlation=2), span("k4", 600, 9)],
        sets=[span("s", 700, 5, correlation=3)],
    )
    names = dict(tables["ops"].select("event", pl.col("name").cast(pl.String)).iter_rows())
    calls = dict(tables["python"].select("event", pl.col("name").cast(pl.String)).iter_rows())
    tree = {names[row["event"]]: row for row in tables["op_tree"].iter_rows(named=True)}
    assert {name: row["self_ns"] for name, row in tree.items()} == {
        "linear": 30,
        "t": 20,
        "addmm": 50,
        "other": 10,
        "late": 5,
    }
    assert [tree[name]["device_self_ns"] for name in ("linear", "t", "addmm", "other")] == [5, 0, 70, 0]
    assert [tree[name]["device_total_ns"] for name in ("linear", "t", "addmm", "other")] == [75, 0, 70, 0]
    assert [tree[name]["depth"] for name in ("linear", "t", "addmm", "other")] == [0, 1, 1, 0]
    assert [names.get(tree[name]["parent"]) for name in ("linear", "t", "addmm")] == [None, "linear", "linear"]
    assert {names[tree[name]["root"]] for name in ("linear", "t", "addmm")} == {"linear"}
    assert [calls.get(tree[name]["python_event"]) for name in ("linear", "t", "other", "late")] == [
        "train.py(3): main",
        "torch/nn/f.py(9): linear",
        None,
        None,
    ]
    assert [tree[name]["step"] for name in ("linear", "late")] == [7, None]


def test_no_ops_no_rows() -> None:
    assert make_tables(kernels=[span("k", 0, 5)])["op_tree"].height == 0
