"""Communication that no compute hides."""

from support.tables import make_tables, span, step


def test_by_operation_and_recognised_by_name_alone() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        kernels=[
            span("gemm", 100, 100),
            span("ncclKernel_AllReduce", 150, 100, collective=True, stream=20, event=70),
            span("rcclGeneric", 400, 50, collective=True, stream=20, event=71),
        ],
        collectives=[
            {"event": 70, "operation": "all_reduce", "dtype": "Float", "in_elements": 8, "group_size": 2},
            {"event": 71, "operation": None},
        ],
    )
    found = tables["exposed_collectives"].rows(named=True)
    assert [(row["operation"], row["count"], row["comm_ns"], row["exposed_ns"]) for row in found] == [
        ("all_reduce", 1, 100, 50),
        (None, 1, 50, 50),
    ]
    assert (found[0]["in_elements"], found[0]["out_elements"], found[0]["exposed_share"]) == (8, None, 0.5)
    assert sum(row["exposed_ns"] for row in found) == tables.row("totals")["exposed_comm_ns"]


def test_compute_of_another_device_hides_nothing() -> None:
    tables = make_tables(
        steps=[step(1, 0, 1_000)],
        kernels=[span("gemm", 100, 100, device=1), span("nccl", 100, 100, collective=True)],
    )
    assert tables["exposed_collectives"]["exposed_ns"].to_list() == [100]


def test_nothing_communicated_is_an_answer() -> None:
    assert make_tables(kernels=[span("gemm", 0, 10)])["exposed_collectives"].height == 0
