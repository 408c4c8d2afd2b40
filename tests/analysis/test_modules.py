"""The module of each op, and the tree of modules."""

from typing import Any

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from slipstream.store import Tables
from support.tables import make_tables, span, step


def modules_of(tables: Tables) -> list[tuple[Any, ...]]:
    rows = tables["op_modules"].with_columns(pl.col(pl.Categorical).cast(pl.String))
    return rows.select("module", "backward").rows()


def stats(tables: Tables) -> dict[str | None, dict[str, Any]]:
    rows = tables["module_stats"].with_columns(pl.col(pl.Categorical).cast(pl.String))
    return {row["module"]: row for row in rows.iter_rows(named=True)}


def training() -> Tables:
    """Net(Linear, Linear), forward on thread 0, backward on thread 5, one kernel that no op launched."""
    return make_tables(
        steps=[step(1, 0, 1_000)],
        python=[
            span("train.py(1): main", 0, 1_000),
            span("nn.Module: Net_0", 100, 200),
            span("nn.Module: Linear_0", 110, 50),
            span("torch/nn/modules/linear.py(1): forward", 112, 40),
            span("nn.Module: Linear_1", 200, 50),
        ],
        ops=[
            span("aten::linear", 120, 20, sequence=1, fwd_thread=0),
            span("aten::addmm", 122, 10),
            span("aten::relu", 270, 10, sequence=2, fwd_thread=0),
            span("autograd::engine::evaluate_function: AddmmBackward0", 400, 50, thread=5, sequence=1, fwd_thread=1),
            span("AddmmBackward0", 402, 40, thread=5, sequence=1, fwd_thread=1),
            span("aten::mm", 405, 10, thread=5),
            span("aten::mul_", 600, 10),
        ],
        runtime=[
            span("cudaLaunchKernel", 125, 2, correlation=1),
            span("cudaLaunchKernel", 220, 2, correlation=2),
            span("cudaLaunchKernel", 272, 2, correlation=3),
            span("cudaLaunchKernel", 407, 2, correlation=4, thread=5),
            span("cudaLaunchKernel", 602, 2, correlation=5),
        ],
        kernels=[span("k", 300 + 100 * number, 10 * number, correlation=number) for number in range(1, 6)],
    )


def test_backward_ops_belong_to_the_module_of_their_forward_op() -> None:
    assert modules_of(training()) == [
        ("Net_0/Linear_0", False),
        ("Net_0/Linear_0", False),
        ("Net_0", False),
        ("Net_0/Linear_0", True),
        ("Net_0/Linear_0", True),
        ("Net_0/Linear_0", True),
        (None, False),
    ]


def test_the_tree_adds_up_and_what_belongs_to_no_module_is_told() -> None:
    found = stats(training())
    net, first, second, none = (found[path] for path in ("Net_0", "Net_0/Linear_0", "Net_0/Linear_1", None))
    assert (net["calls"], net["host_total_ns"], net["host_self_ns"], net["depth"]) == (1, 200, 100, 0)
    assert (first["parent"], first["name"], first["depth"]) == ("Net_0", "Linear_0", 1)
    assert (first["device_self_ns"], first["backward_device_self_ns"]) == (10, 40)
    # Compiled code launches without an op: the call around the launch tells.
    assert second["device_self_ns"] == 20
    assert (net["device_self_ns"], net["device_total_ns"], net["backward_device_total_ns"]) == (30, 60, 40)
    assert (none["device_self_ns"], none["host_total_ns"], none["calls"]) == (50, None, None)
    whole = sum(row["device_self_ns"] + row["backward_device_self_ns"] for row in found.values())
    assert whole == 10 + 20 + 30 + 40 + 50
    for row in found.values():
        assert row["device_self_ns"] <= row["device_total_ns"]
        assert row["backward_device_self_ns"] <= row["backward_device_total_ns"]


def test_a_forward_that_is_computed_again_is_a_call_of_its_own() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        python=[span("nn.Module: Linear_0", 10, 50), span("nn.Module: Linear_0", 210, 30, thread=5)],
        ops=[
            span("aten::linear", 20, 10, sequence=1, fwd_thread=0),
            span("CheckpointFunctionBackward", 200, 90, thread=5, sequence=1, fwd_thread=1),
            span("aten::linear", 220, 10, thread=5, sequence=7, fwd_thread=0),
        ],
    )
    assert modules_of(tables) == [("Linear_0", False), ("Linear_0", True), ("Linear_0", False)]
    assert stats(tables)["Linear_0"]["calls"] == 2
    assert stats(tables)["Linear_0"]["device_total_ns"] is None


def test_from_stacks_where_there_are_no_rows() -> None:
    tables = make_tables(
        ops=[
            span(
                "aten::conv2d",
                0,
                20,
                call_stack="torch/nn/modules/conv.py(446): forward;module.py(9): call;/a/net.py(7): forward;x.py(1): f",
            ),
            span("aten::convolution", 5, 10),
            span("aten::relu", 30, 8, call_stack="/a/net.py(7): forward;x.py(1): f"),
        ]
    )
    assert modules_of(tables) == [("net.py(7)/conv.py(446)", False)] * 2 + [("net.py(7)", False)]
    found = stats(tables)
    assert (found["net.py(7)"]["host_total_ns"], found["net.py(7)"]["host_self_ns"]) == (28, 8)
    assert found["net.py(7)"]["calls"] is None


def test_no_modules_are_no_empty_table() -> None:
    tables = make_tables(ops=[span("aten::mm", 0, 10)])
    for name in ("op_modules", "module_stats"):
        with pytest.raises(NotEnoughData, match="with_stack"):
            tables[name]
