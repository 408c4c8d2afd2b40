"""Tables for other libraries: the same rows, with nothing turned into something else."""

import sys

import pandas
import pyarrow
import pytest

from slipstream.model import MissingDependency, NotEnoughData
from slipstream.store import DECLARED, Table
from support.tables import make_tables, make_trace, span

BIG = 2**63 - 1


def small():
    return make_tables(
        ops=[span("aten::mm", 10, 20)],
        runtime=[span("cudaLaunchKernel", 15, 3, correlation=BIG)],
        kernels=[span("gemm", 40, 30, correlation=BIG), span("gemm", 80, 5), span("other", 90, 5, stream=None)],
    )


def test_a_missing_integer_stays_missing_and_a_large_one_exact():
    frame = small().trace.to_pandas("kernels")
    assert frame["correlation"].dtype == "Int64"
    assert frame["correlation"].tolist() == [BIG, pandas.NA, pandas.NA]
    assert frame["stream"].tolist() == [7, 7, pandas.NA]
    assert frame["name"].tolist() == ["gemm", "gemm", "other"]
    assert frame.groupby("name", observed=False)["dur_ns"].sum().to_dict() == {"gemm": 35, "other": 5}
    assert frame["grid"].isna().all()


def test_arrow_has_the_same_rows():
    table = small().trace.to_arrow("kernels")
    assert isinstance(table, pyarrow.Table)
    assert table.column_names == list(DECLARED["kernels"].schema)
    assert table["correlation"].to_pylist() == [BIG, None, None]
    assert table["name"].to_pylist() == ["gemm", "gemm", "other"]
    assert table.to_pandas()["name"].tolist() == ["gemm", "gemm", "other"]  # a reader's own way to pandas


def test_derived_tables_too():
    tables = small()
    assert tables.to_arrow("device_work")["launch_ts_ns"].to_pylist() == [15, None, None]
    assert tables.to_pandas("device_work")["launch_ts_ns"].tolist() == [15, pandas.NA, pandas.NA]
    assert tables.to_pandas("kernels").equals(tables.trace.to_pandas("kernels"))


@pytest.mark.parametrize("table", DECLARED.values(), ids=lambda table: table.name)
def test_every_declared_table_has_a_form_that_keeps_gaps(table: Table):
    from slipstream.store.exchange import to_arrow, to_pandas

    gaps = table.frame({table.columns[0].name: [None, None]})
    assert to_arrow(gaps).num_rows == 2
    assert to_pandas(gaps).isna().all(axis=None)
    assert to_pandas(table.empty()).dtypes.equals(to_pandas(gaps).dtypes), "types must not depend on the rows"


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_without_the_package_the_line_to_install_it_is_told(monkeypatch, package):
    trace = make_trace(ops=[span("aten::mm", 10, 20)])
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"need {package}: pip install 'slipstream\[arrow\]'"):
        trace.to_pandas("ops")


def test_tables_that_are_not_there():
    trace = make_trace(ops=[span("aten::mm", 10, 20)])
    with pytest.raises(NotEnoughData, match="not measured"):
        trace.to_arrow("loader_waits")
    with pytest.raises(KeyError):
        trace.to_pandas("nothing")
