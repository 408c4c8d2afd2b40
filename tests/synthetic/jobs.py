"""Small training jobs, each with one thing planted that holds it back (or nothing).

A step of the healthy job: a pinned upload, ``LAYERS`` ops of 200 us each, far longer than their launch. The host is
done with a step long before the device.
"""

from synthetic.program import COMMUNICATION_STREAM, COPY_STREAM, DEFAULT_STREAM, Program, Thread, us

STEPS = 6
LAYERS = 20
KERNEL_NS = us(200)
FILE = "train.py"


def _layers(main: Thread, ns: int = KERNEL_NS, count: int = LAYERS) -> None:
    with main.python("model.py(20): forward"):
        for _ in range(count):
            main.compute("aten::mm", ns)


def _job() -> tuple[Program, Thread]:
    program = Program()
    return program, program.thread("main")


def _ends_with_a_wait(main: Thread) -> None:
    """Training scripts read their last result, outside of the steps that are looked at."""
    main.synchronize()


def healthy(steps: int = STEPS) -> Program:
    """The device has work queued all the time; nothing to find."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                main.upload(us(20), stream=COPY_STREAM)
                _layers(main)
        _ends_with_a_wait(main)
    return program


def loader_bound(steps: int = STEPS, loader_ns: int = us(9000)) -> Program:
    """Batches are made on the training thread, and take longer than the device has work for."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                main.loader(loader_ns)
                main.upload(us(20))
                _layers(main)
    return program


def hidden_loader(steps: int = STEPS) -> Program:
    """The loader is slow, but not as slow as the device; the first step's work covers the second batch."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        _layers(main)
        for number in range(steps):
            with main.step(number):
                main.loader(us(2500))
                main.upload(us(20), stream=COPY_STREAM)
                _layers(main)
        _ends_with_a_wait(main)
    return program


def workers(count: int, decode_ns: int, steps: int = STEPS) -> Program:
    """Worker processes make the batches in turn; the training thread waits for its next one."""
    program, main = _job()
    for worker in range(count):
        thread = program.thread(f"worker {worker}", recorded=False)
        for number in range(worker, steps, count):
            thread.work(decode_ns, "loader")
            thread.signal(f"batch {number}")
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                main.loader_wait(f"batch {number}")
                main.upload(us(20))
                _layers(main)
    return program


def sync_bound(steps: int = STEPS, behind_ns: int = us(1500)) -> Program:
    """Each step reads its loss and then spends some time in Python before the next launch."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                _layers(main)
                with main.python(f"{FILE}(30): log"):
                    main.item()
                    main.work(behind_ns)
    return program


def explicit_sync_bound(steps: int = STEPS, behind_ns: int = us(1500)) -> Program:
    """The same with a synchronize of the user's own."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                _layers(main)
                with main.python(f"{FILE}(30): measure"):
                    main.synchronize()
                    main.work(behind_ns)
    return program


def harmless_item(steps: int = STEPS) -> Program:
    """Each step reads a value that was ready long ago: a second stream has work all the time."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                main.kernel("small", us(50), stream=9)
                _layers(main)
                main.item(stream=9)
        _ends_with_a_wait(main)
    return program


def launch_bound(steps: int = STEPS, kernels: int = 200) -> Program:
    """Kernels are shorter than the time the host takes to launch the next one."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                _layers(main, us(3), kernels)
    return program


def graph_replay(steps: int = STEPS, kernels: int = 200) -> Program:
    """The launch-bound job with each step's kernels replayed as one graph."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                main.graph([("mm_kernel", us(3))] * kernels)
    return program


def allocator_bound(steps: int = STEPS, calls: int = 6) -> Program:
    """The allocator goes to the driver again and again while the device has nothing queued."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                for _ in range(calls):
                    with main.op("aten::empty"):
                        main.allocate(us(900))
                    main.compute("aten::mm", us(300))
    return program


def pageable(steps: int = STEPS, copy_ns: int = us(1200)) -> Program:
    """Batches are sent from pageable memory: the host waits, the device has nothing else to do."""
    program, main = _job()
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                with main.python(f"{FILE}(12): to_device"):
                    main.pageable_upload(copy_ns, size_bytes=12 << 20)
                _layers(main)
    return program


def exposed_collective(steps: int = STEPS, transfer_ns: int = us(2000), peer_late_ns: int = 0) -> Program:
    """Gradients are exchanged at the end of the step, when nothing is left to compute.

    The update waits for the exchange on the device; with ``peer_late_ns`` another rank arrives late by that much.
    """
    program, main = _job()
    expected_ns = 0
    with main.python(f"{FILE}(5): main"):
        for number in range(steps):
            with main.step(number):
                _layers(main)
                main.record(f"gradients {number}", stream=DEFAULT_STREAM)
                main.stream_wait(f"gradients {number}", stream=COMMUNICATION_STREAM)
                expected_ns += LAYERS * KERNEL_NS + transfer_ns + peer_late_ns
                main.all_reduce(transfer_ns, peer_ns=expected_ns - transfer_ns if peer_late_ns else None)
                main.record(f"exchanged {number}", stream=COMMUNICATION_STREAM)
                main.stream_wait(f"exchanged {number}", stream=DEFAULT_STREAM)
                main.compute("aten::_foreach_add_", us(100))
        _ends_with_a_wait(main)
    return program


def backward_thread(steps: int = STEPS) -> Program:
    """Forward on the main thread, backward on a thread of autograd's own, both of short kernels."""
    program, main = _job()
    autograd = program.thread("autograd")
    for number in range(steps):
        with main.step(number):
            for layer in range(10):
                with main.op("aten::mm", sequence=100 * number + layer):
                    main.kernel("mm_kernel", us(4))
            main.signal(f"backward {number}")
            main.wait_for(f"done {number}")
            main.compute("aten::_foreach_add_", us(20))
        autograd.wait_for(f"backward {number}")
        for layer in reversed(range(10)):
            with autograd.op("MmBackward0", sequence=100 * number + layer, forward=main):
                autograd.kernel("mm_backward_kernel", us(8))
        autograd.signal(f"done {number}")
    return program
