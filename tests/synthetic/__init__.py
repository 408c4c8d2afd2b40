"""Device timelines whose truth is known: small programs are executed under a simple machine model.

    program.py   what the host threads do, instruction by instruction; the builder and edits
    machine.py   executes a program: host clocks, in-order streams, a launch queue, waits
    truth.py     busy, idle by cause, exposed time, step times: counted from the execution
    writer.py    the execution as the profiler of PyTorch would have written it
    jobs.py      small training jobs with one planted cause each

Nothing here uses slipstream, so that agreement means something. To know what a fix would gain, execute the program
and the edited program.
"""
