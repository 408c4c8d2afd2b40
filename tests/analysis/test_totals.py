"""Totals of the whole file."""

from support.tables import make_tables, span, step


def test_sums_and_unions() -> None:
    tables = make_tables(
        steps=[step(1, 1_000, 10)],
        element_count=99,
        kernels=[
            span("gemm", 0, 100),
            span("gemm", 50, 100, stream=8),
            span("ncclAllReduce", 140, 60, stream=9, collective=True),
            span("inside", 20, 0),
        ],
        copies=[span("copy", 190, 30), span("copy", 300, 10, device=1)],
        sets=[span("set", 305, 10)],
    )
    assert tables.row("totals") == {
        "events": 99,
        "gpu_events": 7,
        "kernels": 4,
        "gpu_sum_ns": 310,
        "gpu_busy_ns": 220 + 15,
        "kernel_sum_ns": 260,
        "comm_ns": 60,
        "exposed_comm_ns": 50,
        "memcpy_ns": 40,
        "exposed_memcpy_ns": 20 + 10,
    }


def test_no_device_has_no_device_times() -> None:
    row = make_tables(ops=[span("aten::mm", 0, 10)]).row("totals")
    assert (row["events"], row["gpu_events"], row["kernels"]) == (1, 0, 0)
    assert all(value is None for name, value in row.items() if name.endswith("_ns"))


def test_sub_microsecond_kernels_add_up_exactly() -> None:
    row = make_tables(kernels=[span("k", 700 + 1_000 * i, 200) for i in range(1_000)]).row("totals")
    assert row["gpu_sum_ns"] == row["gpu_busy_ns"] == 200_000


def test_positions_of_epoch_size_stay_exact() -> None:
    row = make_tables(kernels=[span("k", 1_695_835_542_515_301_001 + 2 * i, 1) for i in range(10)]).row("totals")
    assert row["gpu_busy_ns"] == 10
