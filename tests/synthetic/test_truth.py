"""Truth counted from executions, by hand."""

from synthetic.machine import Machine, execute
from synthetic.program import Program
from synthetic.truth import Totals, Truth, difference, union

BARE = Machine(op_ns=0, op_end_ns=0, call_ns=5, event_ns=2, latency_ns=8, between_ns=0, sync_ns=3)


def test_union_and_difference() -> None:
    assert union([(5, 9), (0, 3), (2, 4), (9, 10)]) == [(0, 4), (5, 10)]
    assert difference([(0, 10), (5, 20)], [(3, 4), (18, 30)]) == [(0, 3), (4, 18)]
    assert difference([], [(0, 1)]) == []


def test_the_window_ends_with_the_last_work_launched_inside() -> None:
    program = Program()
    main = program.thread("main")
    main.kernel("warm-up", 10)
    with main.step(1):
        main.kernel("k", 100)
    main.kernel("outside", 100)
    truth = Truth(execute(program, BARE))
    assert truth.steps == [(1, 5, 10)]
    assert (truth.start_ns, truth.end_ns) == (5, 118)
    # warm-up runs from 8 to 18, k until 118: idle only before the warm-up.
    assert (truth.busy_ns, truth.idle_ns) == (110, 3)


def test_totals_of_everything() -> None:
    program = Program()
    main = program.thread("main")
    with main.step(0):
        main.kernel("k", 100)  # 8 - 108
        main.all_reduce(50, stream=40)  # 13 - 63, hidden
        main.all_reduce(100, stream=40)  # 63 - 163, 55 of it exposed
        main.upload(200, stream=20)  # 23 - 223, 60 of it exposed
        main.memset(10, stream=7)  # 108 - 118
    truth = Truth(execute(program, BARE))
    assert truth.totals() == Totals(
        gpu_events=5,
        kernels=3,
        gpu_sum_ns=460,
        gpu_busy_ns=215,
        kernel_sum_ns=250,
        comm_ns=150,
        exposed_comm_ns=55,
        memcpy_ns=200,
        exposed_memcpy_ns=60,
    )
    assert truth.parts() == {"compute": 110, "exposed_communication": 45, "exposed_copies": 60}


def test_idle_time_is_what_the_launching_thread_did_until_the_launch() -> None:
    program = Program()
    main, autograd = program.thread("main"), program.thread("autograd")
    with main.step(0):
        main.kernel("k", 10)  # call 0 - 5, runs 8 - 18
        main.loader(45)  # 5 - 50
        main.signal("go")
        main.wait_for("done")
    autograd.wait_for("go")
    autograd.work(30)  # 50 - 80
    autograd.kernel("back", 10)  # call 80 - 85, runs 88 - 98
    autograd.signal("done")
    truth = Truth(execute(program, BARE))
    assert [(one.start_ns, one.end_ns, one.cause) for one in truth.idle()] == [
        (0, 8, "launch"),
        (18, 50, "loader"),
        (50, 80, "host"),
        (80, 88, "launch"),
    ]
    assert sum(truth.idle_by_cause().values()) == truth.idle_ns


def test_a_gap_behind_a_wait_runs_from_the_last_work_to_the_next_launched() -> None:
    program = Program()
    main = program.thread("main")
    with main.step(0):
        main.kernel("k", 100)  # runs 8 - 108
        main.item(2)  # copy 108 - 110, wait 110 - 113
        main.work(20)
        main.kernel("next", 10)  # call 133, runs 141 - 151
        main.kernel("filler", 500)
        main.item(2)
        main.synchronize()  # nothing to wait for
    truth = Truth(execute(program, BARE))
    gaps = [(call.name, ns) for call, ns in truth.gaps_behind_waits()]
    # The copy call returns at 110; the next wait begins there. The wait itself: 113 - 110, then until 141.
    assert gaps[:2] == [("cudaMemcpyAsync", 0), ("cudaStreamSynchronize", 31)]
    assert sum(ns for _, ns in truth.gaps_behind_waits()[:2]) == 31


def test_the_cost_of_waits_is_what_the_program_gains_without_them() -> None:
    program = Program()
    main = program.thread("main")
    for number in range(3):
        with main.step(number):
            main.kernel("k", 1000)
            main.item(2)
            main.work(200)
    with_waits = Truth(execute(program, BARE))
    without = Truth(execute(program.without_waits(), BARE))
    # Per step: the wait's return (3), the work (200) and the launch (8) go; only the first launch is left.
    assert with_waits.idle_ns == 8 + 2 * (3 + 200 + 8) + 203
    assert without.idle_ns == 8
