"""What ran at the same time."""

import polars as pl
import pytest

from slipstream.model import NotEnoughData
from slipstream.store import Tables
from support.tables import make_tables, span, step


def times(tables: Tables, number: int | None = None, device: int = 0) -> dict[str, int]:
    rows = tables["overlap"].filter(pl.col("step").eq_missing(pl.lit(number)), pl.col("device") == device)
    return {str(row["overlap"]): int(row["ns"]) for row in rows.iter_rows(named=True)}


def test_every_moment_has_one_class_and_time_before_the_first_kernel_counts() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        kernels=[
            span("gemm", 10, 30),  # 10..40
            span("ncclKernel_AllReduce", 30, 30, collective=True, stream=20),  # 30..60
        ],
        copies=[span("Memcpy HtoD", 35, 35, stream=9)],  # 35..70
        sets=[span("Memset", 80, 5)],  # compute
    )
    assert times(tables) == {
        "idle": 10 + 10 + 15,
        "compute": 20 + 5,
        "compute+communication": 5,
        "compute+communication+copy": 5,
        "communication+copy": 20,
        "copy": 10,
    }
    assert times(tables, 1) == times(tables)
    assert tables["overlap"].filter(pl.col("step").is_null())["share"].sum() == pytest.approx(1.0)


def test_the_last_step_is_kept_and_its_late_work_counts_where_it_ran() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100), step(2, 100, 100)],
        runtime=[span("cudaLaunchKernel", 90, 5, correlation=1), span("cudaLaunchKernel", 190, 5, correlation=2)],
        kernels=[span("k", 95, 20, correlation=1), span("k", 195, 25, correlation=2)],
    )
    assert times(tables, 1) == {"idle": 95, "compute": 5}
    assert times(tables, 2) == {"idle": 100 - 15 - 5, "compute": 20}
    # The window reaches to the end of the work that the last step launched.
    assert times(tables) == {"idle": 220 - 45, "compute": 45}


def test_devices_are_told_apart_and_one_that_is_not_told_is_one() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        kernels=[span("k", 0, 60), span("k", 50, 50, device=1), span("k", 0, 10, device=None)],
    )
    assert times(tables) == {"compute": 60, "idle": 40}
    assert times(tables, device=1) == {"compute": 50, "idle": 50}
    unknown = tables["overlap"].filter(pl.col("device").is_null(), pl.col("step").is_null())
    assert sorted(unknown["ns"]) == [10, 90]


def test_kernels_that_are_missing_make_no_idle_time() -> None:
    tables = make_tables(
        steps=[step(1, 0, 100)],
        runtime=[span("cudaLaunchKernel", 10, 5, correlation=1)],
        copies=[span("Memcpy HtoD", 20, 5)],
    )
    with pytest.raises(NotEnoughData, match="not in this recording"):
        tables["overlap"]
    with pytest.raises(NotEnoughData, match="no device work"):
        make_tables(ops=[span("aten::mm", 0, 10)])["overlap"]
