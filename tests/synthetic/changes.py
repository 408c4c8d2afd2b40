"""Random training jobs with many things to mend at once, and what mending each does to the program.

Every job has steps with a loader, uploads, kernels on several streams joined by events, read-backs, allocator calls,
work of the host's own, an exchange with a peer, an optimizer and fills, in random numbers and sizes. A change is a
function from program to program: executed before and after, it tells the true gain.
"""

import random
from collections.abc import Callable

import msgspec

from synthetic.machine import Machine
from synthetic.program import (
    COMMUNICATION_STREAM,
    COPY_STREAM,
    Begin,
    End,
    Instruction,
    Program,
    StreamWait,
    Submit,
    Synchronize,
    Thread,
    Work,
    us,
)

STEPS = 6
SIDE_STREAM = 9
Change = Callable[[Program], Program]


def random_machine(dice: random.Random) -> Machine:
    """A machine with costs of its own."""
    return Machine(
        op_ns=us(dice.uniform(2, 10)),
        op_end_ns=us(dice.uniform(0.5, 2)),
        call_ns=us(dice.uniform(3, 9)),
        event_ns=us(dice.uniform(1, 3)),
        latency_ns=us(dice.uniform(4, 12)),
        between_ns=us(dice.uniform(0.5, 2)),
        sync_ns=us(dice.uniform(2, 8)),
    )


def random_job(dice: random.Random) -> Program:
    """A job whose steps are alike up to 20 % in every duration."""
    program = Program()
    main = program.thread("main")
    layers = dice.randint(6, 24)
    kernel_us = dice.choice([5, 20, 60, 200])
    sizes = [dice.uniform(0.3, 2) * kernel_us for _ in range(layers)]
    loader_us = dice.choice([0, 200, 1000, 3000]) * dice.uniform(0.5, 1.5)
    host_us = dice.choice([0, 100, 800]) * dice.uniform(0.5, 1.5)
    exchange_us = dice.choice([100, 500, 1500])
    items, allocations, fills = dice.randint(0, 3), dice.randint(0, 3), dice.randint(0, 10)
    pageable, explicit, side = (dice.random() < 0.5 for _ in range(3))
    parameters = dice.randint(4, 20)
    with main.python("train.py(5): main"):
        for number in range(STEPS):
            with main.step(number):
                _step(main, number, dice, sizes, loader_us, host_us, exchange_us, side)
                for _ in range(allocations):
                    with main.op("aten::empty"):
                        main.allocate(us(150 * dice.uniform(0.9, 1.1)))
                    main.compute("aten::mm", us(kernel_us))
                for _ in range(fills):
                    main.compute("aten::zero_", us(4 * dice.uniform(0.9, 1.1)))
                for _ in range(parameters):
                    main.compute("aten::addcdiv_", us(5 * dice.uniform(0.9, 1.1)))
                for _ in range(items):
                    main.item()
                    main.compute("aten::mm", us(kernel_us))
                if explicit:
                    main.synchronize()
                if pageable:
                    main.pageable_upload(us(300 * dice.uniform(0.9, 1.1)))
                    main.compute("aten::mm", us(kernel_us))
        main.synchronize()
    return program


def _step(
    main: Thread,
    number: int,
    dice: random.Random,
    sizes: list[float],
    loader_us: float,
    host_us: float,
    exchange_us: float,
    side: bool,
) -> None:
    def near(value: float) -> int:
        return us(value * dice.uniform(0.9, 1.1))

    if loader_us:
        main.loader(near(loader_us))
    main.upload(near(60), stream=COPY_STREAM)
    main.record(f"batch {number}", stream=COPY_STREAM)
    main.stream_wait(f"batch {number}", stream=7)
    for place, size in enumerate(sizes):
        main.compute("aten::mm", near(size))
        main.compute("aten::gelu", near(4))
        if side and place == len(sizes) // 2:
            main.record(f"half {number}")
            main.stream_wait(f"half {number}", stream=SIDE_STREAM)
            main.compute("aten::norm", near(3 * size), stream=SIDE_STREAM)
            main.record(f"side {number}", stream=SIDE_STREAM)
    if side:
        main.stream_wait(f"side {number}", stream=7)
    if host_us:
        with main.python("train.py(30): log"):
            main.work(near(host_us))
    main.record(f"gradients {number}")
    main.stream_wait(f"gradients {number}", stream=COMMUNICATION_STREAM)
    main.all_reduce(near(exchange_us))
    main.record(f"exchanged {number}", stream=COMMUNICATION_STREAM)
    main.stream_wait(f"exchanged {number}", stream=7)


def _without_ops(program: Program, name: str) -> Program:
    """All ops of a name gone, with what is inside."""
    changed = Program()
    for thread in program.threads:
        copy, depth = changed.thread(thread.name, thread.recorded), 0
        for one in thread.instructions:
            if isinstance(one, Begin):
                depth += depth > 0 or (one.kind == "op" and one.name == name)
            if not depth:
                copy.add(one)
            if isinstance(one, End) and depth:
                depth -= 1
    return changed


def _work(cause: str, factor: float) -> Change:
    def change(one: Instruction) -> Instruction:
        if isinstance(one, Work) and one.cause == cause:
            return msgspec.structs.replace(one, ns=round(one.ns * factor))
        return one

    return lambda program: program.edited(change)


def _device(match: Callable[[Submit], bool], factor: float) -> Change:
    def change(one: Instruction) -> Instruction:
        if isinstance(one, Submit) and match(one):
            return msgspec.structs.replace(one, tasks=tuple((name, round(ns * factor)) for name, ns in one.tasks))
        return one

    return lambda program: program.edited(change)


def _no_explicit(program: Program) -> Program:
    """Calls for the whole device are the user's own."""
    return program.edited(
        lambda one: None if isinstance(one, Synchronize) and one.stream is None and one.event is None else one
    )


def _asynchronous(way: str) -> Change:
    def change(one: Instruction) -> Instruction:
        if isinstance(one, Submit) and one.blocks and way in one.tasks[0][0]:
            return msgspec.structs.replace(one, blocks=False)
        return one

    def without_waits(program: Program) -> Program:
        program = program.edited(change)
        changed = Program()
        for thread in program.threads:
            copy, last = changed.thread(thread.name, thread.recorded), None
            for one in thread.instructions:
                mine = isinstance(last, Submit) and last.kind == "copy" and way in last.tasks[0][0]
                if not (isinstance(one, Synchronize) and one.stream is not None and mine):
                    copy.add(one)
                last = one
        return changed

    return without_waits


def _overlapped(program: Program) -> Program:
    """The compute stream no longer waits for the exchange."""
    return program.edited(
        lambda one: None if isinstance(one, StreamWait) and one.event.startswith("exchanged") else one
    )


CHANGES: dict[str, Change] = {
    "loader hidden": _work("loader", 0),
    "loader twice as fast": _work("loader", 0.5),
    "host work removed": _work("host", 0),
    "allocator calls removed": _work("allocator", 0),
    "read-backs made asynchronous": _asynchronous("DtoH"),
    "pageable uploads made asynchronous": _asynchronous("Pageable -> Device"),
    "synchronize removed": _no_explicit,
    "fills removed": lambda program: _without_ops(program, "aten::zero_"),
    "elementwise ops fused away": lambda program: _without_ops(program, "aten::gelu"),
    "optimizer in one launch": lambda program: _without_ops(program, "aten::addcdiv_"),
    "precision halved": _device(lambda one: one.tasks[0][0] == "mm_kernel", 0.5),
    "side stream twice as fast": _device(lambda one: one.stream == SIDE_STREAM, 0.5),
    "exchange twice as fast": _device(lambda one: one.kind == "collective", 0.5),
    "exchange overlapped": _overlapped,
    "copies half as long": _device(lambda one: one.kind == "copy", 0.5),
}
"""By name; a change that finds nothing in a job leaves it as it is."""
