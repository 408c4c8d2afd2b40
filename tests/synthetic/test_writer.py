"""The file: what a reader finds in it."""

import pytest

from synthetic.machine import Machine, execute
from synthetic.program import Program, us
from synthetic.writer import Style, document


def one_step() -> Program:
    program = Program()
    main = program.thread("main")
    with main.python("train.py(3): main"), main.step(2):
        with main.python("nn.Module: Linear_0"), main.op("aten::linear", sequence=7):
            main.kernel("gemm", 1234)
        main.record("done")
        main.stream_wait("done", stream=20)
        main.upload(us(10), stream=20)
        with main.op("LinearBackward", sequence=7, forward=main):
            main.all_reduce(us(3))
        main.synchronize()
    return program


def rows(found: dict, **wanted: object) -> list[dict]:
    return [event for event in found["traceEvents"] if all(event.get(key) == value for key, value in wanted.items())]


def test_newer_schema() -> None:
    found = document(execute(one_step()), Style(offset_ns=5_000, rank=3, world_size=8))
    (kernel,) = rows(found, cat="kernel", name="gemm")
    (launch,) = rows(found, name="cudaLaunchKernel")
    assert kernel["dur"] == 1.234
    assert launch["ts"] == 5 + 4  # the op's dispatch comes first
    assert kernel["args"]["correlation"] == launch["args"]["correlation"]
    (op,) = rows(found, name="aten::linear")
    assert launch["args"]["External id"] == op["args"]["External id"]
    number = kernel["args"]["correlation"]
    assert {event["ph"] for event in rows(found, cat="ac2g", id=number)} == {"s", "f"}
    outer, inner = rows(found, cat="python_function")
    assert inner["args"]["Python parent id"] == outer["args"]["Python id"]
    assert [event["ph"] for event in rows(found, cat="fwdbwd")] == ["s", "f"]
    assert len(rows(found, cat="user_annotation")) == len(rows(found, cat="gpu_user_annotation")) == 1
    assert {event["name"] for event in rows(found, cat="cuda_sync")} == {"Stream Wait Event", "Context Sync"}
    (wait,) = rows(found, name="Stream Wait Event")
    (record,) = rows(found, name="cudaEventRecord")
    assert wait["args"]["wait_on_cuda_event_record_corr_id"] == record["args"]["correlation"]
    assert (found["distributedInfo"]["rank"], found["distributedInfo"]["world_size"]) == (3, 8)


def test_older_schema_has_whole_microseconds_and_other_words() -> None:
    program = Program()
    main = program.thread("main")
    with main.step(2):
        main.compute("aten::mm", us(10))
    found = document(execute(program), Style(older=True))
    assert {event["cat"] for event in found["traceEvents"] if event["ph"] == "X"} == {
        "Operator",
        "Runtime",
        "Kernel",
        "Trace",
    }
    (kernel,) = rows(found, cat="Kernel")
    assert isinstance(kernel["ts"], int)
    assert kernel["ts"] > 1_600_000_000_000_000
    assert kernel["tid"] == "stream 7"
    with pytest.raises(ValueError, match="whole microseconds"):
        document(execute(program, Machine(latency_ns=6001)), Style(older=True))


def test_threads_that_are_not_recorded_leave_no_rows() -> None:
    program = Program()
    main, worker = program.thread("main"), program.thread("worker", recorded=False)
    with worker.op("decode"):
        worker.work(us(50))
    worker.signal("batch")
    with main.step(0):
        main.loader_wait("batch")
        main.compute("aten::mm", us(10))
    found = document(execute(program))
    assert rows(found, name="decode") == []
    (wait,) = rows(found, name="enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    assert wait["dur"] == 55.0  # decoding and the ends of the op
