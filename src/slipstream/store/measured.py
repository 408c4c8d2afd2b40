"""The tables that slipstream's own capture measures. Times are those of the trace's clock where one was
recorded (positions from its earliest event; negative before it), so they can be laid over the other tables.
"""

import polars as pl

from slipstream.store.column import Column, Table, column
from slipstream.store.recorded import TEXT


def _place() -> tuple[Column, Column, Column]:
    return (
        column("file", TEXT, "file of the innermost frame in the user's code", missing="none on the stack"),
        column("line", pl.Int32, "line of the statement", missing="none on the stack"),
        column("function", TEXT, "function of that frame", missing="none on the stack"),
    )


JOB_STEPS = Table(
    name="job_steps",
    kind="measured",
    meaning="Every training step of the job, recorded or not.",
    columns=(
        column("number", pl.Int64, "count of steps from 0"),
        column("start_ns", pl.Int64, "end of the step before (the first: the first sign of training)", "ns"),
        column("dur_ns", pl.Int64, "wall time", "ns"),
        column("loader_ns", pl.Int64, "main thread waiting for the data loader", "ns"),
        column("optimizer_ns", pl.Int64, "inside optimizer steps", "ns"),
        column("backward_ns", pl.Int64, "inside backward calls", "ns", "not observed"),
        column("backward_calls", pl.Int32, "backward calls (accumulation when above 1)", missing="not observed"),
        column("optimizer_steps", pl.Int32, "optimizer steps of all optimizers"),
        column("skipped", pl.Boolean, "whether GradScaler skipped the update", missing="only the device knows"),
        column("rss_bytes", pl.Int64, "resident memory at the end", "bytes", "not measured this step"),
        column("device_allocated_bytes", pl.Int64, "device memory allocated at the end", "bytes", "no device"),
        column("phase", TEXT, "warmup, recorded, places (line tracing on: no durations from it) or plain"),
        *_place(),
    ),
)

LOADER_WAITS = Table(
    name="loader_waits",
    kind="measured",
    meaning="Every wait for a batch of a torch DataLoader in the training process.",
    columns=(
        column("step", pl.Int64, "number of the job step it belongs to"),
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "how long the training thread waited", "ns"),
        column("workers", pl.Int32, "worker processes of the loader"),
        column("first", pl.Boolean, "whether it was the first batch of an epoch"),
        column("pin_memory", pl.Boolean, "whether batches go to pinned memory"),
        column("batch_size", pl.Int64, "samples in the batch", missing="not found in it"),
        column(
            "tokens", pl.Int64, "positions in the batch (elements of its mask or ids)", missing="no mask or ids in it"
        ),
        column("padding_tokens", pl.Int64, "positions that are padding", missing="no mask or ids in it"),
        column(
            "trimmable_tokens",
            pl.Int64,
            "positions beyond the longest sequence of the batch",
            missing="no mask or ids in it",
        ),
        *_place(),
    ),
)

PHASES = Table(
    name="phases",
    kind="measured",
    meaning="Spans of a step that the capture saw: backward and optimizer.",
    columns=(
        column("step", pl.Int64, "number of the job step"),
        column("phase", TEXT, "backward or optimizer"),
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        *_place(),
    ),
)

GC_PAUSES = Table(
    name="gc_pauses",
    kind="measured",
    meaning="Pauses of Python's garbage collector on any thread.",
    columns=(
        column("step", pl.Int64, "number of the job step"),
        column("start_ns", pl.Int64, "start", "ns"),
        column("dur_ns", pl.Int64, "duration", "ns"),
        column("generation", pl.Int32, "generation collected"),
    ),
)

SWITCHES = Table(
    name="switches",
    kind="measured",
    meaning="State of the process that changes speed, read when the window opened.",
    columns=(
        column(
            "name",
            pl.String,
            "what: torch_threads, interop_threads, allowed_cores, anomaly_mode, matmul_precision, cpu_16bit_units "
            "(amx_bf16, avx512_bf16, ..., separated by blanks; empty: the CPU has none), ...",
        ),
        column("value", pl.String, "its value as text", missing="could not be read"),
    ),
)

STATEMENTS = Table(
    name="statements",
    kind="measured",
    meaning="Which statement of the user's code each op came from, from one step traced line by line.",
    columns=(
        column("op", TEXT, "name of the op"),
        column("nth", pl.Int64, "how many ops of that name came before it under that function in the step"),
        column("file", TEXT, "file as the recording's Python rows write it"),
        column("function", TEXT, "function"),
        column("def_line", pl.Int32, "line of the function's def"),
        column("line", pl.Int32, "line of the statement"),
    ),
)

MEASURED = (JOB_STEPS, LOADER_WAITS, PHASES, GC_PAUSES, SWITCHES, STATEMENTS)
