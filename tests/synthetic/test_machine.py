"""The machine model, by hand."""

import pytest
from msgspec.structs import replace

from synthetic.machine import Deadlock, Execution, Machine, execute
from synthetic.program import Program, Record, Synchronize

BARE = Machine(op_ns=0, op_end_ns=0, call_ns=5, event_ns=2, latency_ns=8, between_ns=0, sync_ns=3)
"""Small figures: a launch call takes 5, its work can start 8 after it began, a wait returns 3 late."""


def times(execution: Execution) -> list[tuple[int, int]]:
    return [(task.start_ns, task.end_ns) for task in execution.tasks]


def calls(execution: Execution) -> list[tuple[str, int, int]]:
    return [(call.name, call.start_ns, call.end_ns) for call in execution.calls]


def test_a_stream_works_in_order_while_the_host_goes_on() -> None:
    program = Program()
    main = program.thread("main")
    main.kernel("first", 100)
    main.kernel("second", 20)
    execution = execute(program, BARE)
    assert calls(execution) == [("cudaLaunchKernel", 0, 5), ("cudaLaunchKernel", 5, 10)]
    assert times(execution) == [(8, 108), (108, 128)]


def test_a_device_that_ran_dry_waits_for_the_launch_and_its_latency() -> None:
    program = Program()
    main = program.thread("main")
    main.kernel("first", 10)
    main.work(95)
    main.kernel("late", 10)
    assert times(execute(program, BARE)) == [(8, 18), (108, 118)]


def test_the_device_pauses_between_tasks_but_not_inside_a_graph() -> None:
    program = Program()
    main = program.thread("main")
    main.graph([("a", 10), ("b", 20)])
    main.kernel("c", 5)
    execution = execute(program, replace(BARE, between_ns=4))
    assert times(execution) == [(8, 18), (18, 38), (42, 47)]
    assert [task.call for task in execution.tasks] == [0, 0, 1]


def test_a_full_queue_holds_the_host_up() -> None:
    program = Program()
    main = program.thread("main")
    for _ in range(3):
        main.kernel("k", 100)
    execution = execute(program, replace(BARE, queue_depth=2))
    # The first starts at 8, so at 10 there is room again.
    assert calls(execution) == [("cudaLaunchKernel", 0, 5), ("cudaLaunchKernel", 5, 10), ("cudaLaunchKernel", 10, 15)]
    execution = execute(program, replace(BARE, queue_depth=1))
    # One waits on the stream: the second is taken when the first starts (8), the third when the second does (108).
    assert calls(execution) == [("cudaLaunchKernel", 0, 5), ("cudaLaunchKernel", 5, 13), ("cudaLaunchKernel", 13, 113)]
    assert times(execution) == [(8, 108), (108, 208), (208, 308)]


def test_waits_last_until_what_was_submitted_is_done() -> None:
    program = Program()
    main = program.thread("main")
    main.kernel("k", 100, stream=7)
    main.kernel("other", 300, stream=9)
    main.synchronize(7)
    main.synchronize()
    main.synchronize()
    execution = execute(program, BARE)
    assert times(execution) == [(8, 108), (13, 313)]
    assert calls(execution)[2:] == [
        ("cudaStreamSynchronize", 10, 111),
        ("cudaDeviceSynchronize", 111, 316),
        ("cudaDeviceSynchronize", 316, 319),
    ]


def test_reading_a_value_waits_for_all_work_before_it() -> None:
    program = Program()
    main = program.thread("main")
    main.kernel("k", 100)
    main.item(2)
    execution = execute(program, BARE)
    assert times(execution) == [(8, 108), (108, 110)]
    assert calls(execution)[1:] == [("cudaMemcpyAsync", 5, 110), ("cudaStreamSynchronize", 110, 113)]
    assert [call.waits for call in execution.calls] == [False, True, True]


def test_a_pinned_upload_does_not_wait_and_a_pageable_one_does() -> None:
    pinned, pageable = Program(), Program()
    for program in (pinned, pageable):
        main = program.thread("main")
        main.upload(50) if program is pinned else main.pageable_upload(50)
        main.kernel("k", 10)
    assert calls(execute(pinned, BARE)) == [("cudaMemcpyAsync", 0, 5), ("cudaLaunchKernel", 5, 10)]
    assert calls(execute(pageable, BARE)) == [
        ("cudaMemcpyAsync", 0, 58),
        ("cudaStreamSynchronize", 58, 61),
        ("cudaLaunchKernel", 61, 66),
    ]


def test_a_stream_waits_for_an_event_of_another() -> None:
    program = Program()
    main = program.thread("main")
    main.kernel("copy", 100, stream=20)
    main.record("copied", stream=20)
    main.kernel("after the record", 500, stream=20)
    main.stream_wait("copied", stream=7)
    main.kernel("use", 10, stream=7)
    main.synchronize(event="copied")
    execution = execute(program, BARE)
    assert times(execution) == [(8, 108), (108, 608), (108, 118)]
    assert calls(execution)[-1] == ("cudaEventSynchronize", 19, 111)
    assert execution.calls[-1].recorded_by == execution.calls[1].correlation


def test_a_collective_ends_when_the_last_peer_has_arrived_and_the_transfer_is_done() -> None:
    program = Program()
    main = program.thread("main")
    main.all_reduce(40, peer_ns=100)
    main.all_reduce(40, peer_ns=10)
    assert times(execute(program, BARE)) == [(8, 140), (140, 180)]


def test_threads_have_clocks_of_their_own_and_wait_for_signals() -> None:
    program = Program()
    main, autograd = program.thread("main"), program.thread("autograd")
    main.kernel("forward", 10)
    main.signal("backward")
    main.wait_for("done")
    main.kernel("update", 10)
    autograd.wait_for("backward")
    autograd.work(20)
    autograd.kernel("backward", 10)
    autograd.signal("done")
    execution = execute(program, BARE)
    assert [(call.thread, call.start_ns) for call in execution.calls] == [(1, 0), (2, 25), (1, 30)]


def test_ops_add_their_dispatch_and_nest() -> None:
    program = Program()
    main = program.thread("main")
    with main.step(4), main.op("aten::linear"), main.op("aten::addmm"):
        main.kernel("gemm", 10)
    execution = execute(program, Machine(op_ns=4, op_end_ns=1, call_ns=5))
    assert [(span.name, span.start_ns, span.end_ns, span.depth) for span in execution.spans] == [
        ("ProfilerStep#4", 0, 15, 0),
        ("aten::linear", 0, 15, 1),
        ("aten::addmm", 4, 14, 2),
    ]
    assert execution.calls[0].op == 2


def test_what_can_never_go_on_is_an_error() -> None:
    program = Program()
    program.thread("main").wait_for("nothing")
    with pytest.raises(Deadlock, match="main"):
        execute(program, BARE)
    program = Program()
    program.thread("main").add(Synchronize(event="never recorded"))
    with pytest.raises(KeyError):
        execute(program, BARE)


def test_an_edited_program_leaves_the_original_alone() -> None:
    program = Program()
    main = program.thread("main")
    main.loader(100)
    main.kernel("k", 10)
    main.record("e")
    faster = program.without_cause("loader")
    assert execute(program, BARE).tasks[0].start_ns == 108
    assert execute(faster, BARE).tasks[0].start_ns == 8
    no_record = program.edited(lambda one: None if isinstance(one, Record) else one)
    assert len(execute(no_record, BARE).calls) == 1
    assert execute(program.scaled(3), BARE.scaled(3)).tasks[0].start_ns == 324
