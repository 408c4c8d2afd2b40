"""Reports built by hand, for the tests of what they look like."""

import polars as pl
import pytest

from slipstream.model import (
    BreakdownPart,
    Diagnosis,
    Dismissal,
    Evidence,
    Finding,
    Fix,
    Gain,
    Hot,
    IdleCause,
    Integrity,
    IntegrityIssue,
    Location,
    Source,
    Step,
    Totals,
    Window,
)
from slipstream.store import Builder, Report, Tables, Trace

MS = 1_000_000
NO_TOTALS = {
    "gpu_sum_ns": None,
    "gpu_busy_ns": None,
    "kernel_sum_ns": None,
    "comm_ns": None,
    "exposed_comm_ns": None,
    "memcpy_ns": None,
    "exposed_memcpy_ns": None,
}


def report_of(document: Diagnosis, *, on_device: bool) -> Report:
    """A report whose tables hold the window alone."""

    def window(tables: Tables) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "start_ns": [document.window.start_ns],
                "end_ns": [document.window.end_ns],
                "basis": ["marks" if document.steps else "recording"],
                "steps": [len(document.steps) or None],
                "on_device": [on_device],
            }
        )

    builders: dict[str, Builder] = {"window": window}
    return Report(diagnosis=document, tables=Tables(Trace(document.source, document.integrity, {}), builders))


def gpu_training(rank: int | None = None, world_size: int | None = None) -> Report:
    """Four steps of 200 ms on a GPU that waits for its loader."""
    steps = tuple(Step(number=n, start_ns=n * 200 * MS, dur_ns=dur * MS) for n, dur in enumerate((201, 200, 196, 203)))
    loader = Location(file="train.py", line=42, function="main", precision="statement")
    document = Diagnosis(
        source=Source(
            path="/home/ada/runs/trace.json.gz",
            format="kineto",
            origin_ns="1700000000000000000",
            torch_version="2.13.0",
            device="NVIDIA Imaginary 100",
            device_kind="cuda",
            rank=rank,
            world_size=world_size,
        ),
        integrity=Integrity(
            grade="C",
            issues=(
                IntegrityIssue(code="impossible_duration", count=7, text="durations past the next event: clipped"),
            ),
            linked_kernel_share=1.0,
        ),
        steps=steps,
        totals=Totals(
            events=120_000,
            gpu_events=5_000,
            kernels=4_900,
            gpu_sum_ns=410 * MS,
            gpu_busy_ns=400 * MS,
            kernel_sum_ns=390 * MS,
            comm_ns=0,
            exposed_comm_ns=0,
            memcpy_ns=12 * MS,
            exposed_memcpy_ns=8 * MS,
        ),
        window=Window(
            start_ns=0,
            end_ns=800 * MS,
            busy_ns=392 * MS,
            idle_ns=408 * MS,
            idle_causes=(
                IdleCause(cause="loader", ns=300 * MS, inferred=False),
                IdleCause(cause="sync", ns=60 * MS, inferred=False),
                IdleCause(cause="launch", ns=40 * MS, inferred=True),
                IdleCause(cause="unattributed", ns=8 * MS, inferred=True),
            ),
        ),
        breakdown=(
            BreakdownPart(part="compute", ns_per_step=96 * MS, share=0.48),
            BreakdownPart(part="exposed_copies", ns_per_step=2 * MS, share=0.01),
            BreakdownPart(part="idle_loader", ns_per_step=75 * MS, share=0.375),
            BreakdownPart(part="idle_sync", ns_per_step=15 * MS, share=0.075),
            BreakdownPart(part="idle_launch", ns_per_step=10 * MS, share=0.05),
            BreakdownPart(part="idle_unattributed", ns_per_step=2 * MS, share=0.01),
        ),
        top_ops=(
            Hot(name="aten::cudnn_convolution", count=212, self_ns=180 * MS, share=0.45, location=loader),
            Hot(name="aten::addmm", count=4, self_ns=4 * MS, share=0.01, location=None),
        ),
        top_kernels=(
            Hot(
                name=(
                    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, "
                    "at::detail::Array<char*, 3>)"
                ),
                count=64,
                self_ns=21_400_000,
                share=0.054,
                location=None,
            ),
        ),
        findings=(
            Finding(
                id="INP001-1",
                code="INP001",
                title="the GPU waits 75 ms per step for the data loader",
                fix_class="exact",
                cost_ns=300 * MS,
                cost_ns_per_step=75 * MS,
                gain_reason="no forecast",
                location=loader,
                evidence=(
                    Evidence(
                        event="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                        ts_ns=401 * MS,
                        dur_ns=76 * MS,
                        note="the GPU idle for 74 ms of it",
                    ),
                    Evidence(event="enumerate(DataLoader)#...", ts_ns=601 * MS, dur_ns=75 * MS),
                ),
                fix=Fix(summary="load batches in worker processes", snippet="DataLoader(..., num_workers=4)"),
            ),
            Finding(
                id="SYN001-1",
                code="SYN001",
                title="a read-back stops the host",
                fix_class="semantic",
                cost_ns=60 * MS,
                cost_ns_per_step=15 * MS,
                gain=Gain(low=0.03, expected=0.06, high=0.07, unit="step_time", basis="replay", ceiling=True),
                location=Location(file="train.py", line=30, function="log", precision="function"),
                fix=Fix(summary="log every 50th step", needs_consent=True),
            ),
        ),
        dismissed=(Dismissal(code="MEM006", reason="copies take 0.3 % of the time"),),
        not_checked=(
            Dismissal(code="INP006", reason="table loader_waits was not measured: record with `slipstream run`"),
            Dismissal(code="HST001", reason="table loader_waits was not measured: record with `slipstream run`"),
        ),
    )
    return report_of(document, on_device=True)


def training_on_cpu() -> Report:
    """One step on the CPU."""
    document = Diagnosis(
        source=Source(path="cpu.json", format="kineto", origin_ns=None, device_kind="cpu"),
        integrity=Integrity(grade="A"),
        steps=(Step(number=3, start_ns=0, dur_ns=85 * MS),),
        totals=Totals(events=900, gpu_events=0, kernels=0, **NO_TOTALS),
        window=Window(
            start_ns=0,
            end_ns=85 * MS,
            busy_ns=51 * MS,
            idle_ns=34 * MS,
            idle_causes=(IdleCause(cause="preprocessing", ns=34 * MS, inferred=False),),
        ),
        breakdown=(
            BreakdownPart(part="compute", ns_per_step=51 * MS, share=0.6),
            BreakdownPart(part="idle_preprocessing", ns_per_step=34 * MS, share=0.4),
        ),
        top_ops=(Hot(name="aten::mm", count=12, self_ns=40 * MS, share=0.8, location=None),),
        top_kernels=(),
        findings=(),
        dismissed=(),
        not_checked=(),
    )
    return report_of(document, on_device=False)


def without_device_work() -> Report:
    """A recording without steps whose device rows are missing."""
    document = Diagnosis(
        source=Source(path="lost.json", format="kineto", origin_ns=None, device_kind="rocm"),
        integrity=Integrity(grade="E"),
        steps=(),
        totals=Totals(events=900, gpu_events=0, kernels=0, **NO_TOTALS),
        window=Window(start_ns=0, end_ns=2_400 * MS, busy_ns=None, idle_ns=None, idle_causes=()),
        breakdown=(),
        top_ops=(),
        top_kernels=(),
        findings=(),
        dismissed=(),
        not_checked=(),
    )
    return report_of(document, on_device=True)


@pytest.fixture
def training() -> Report:
    return gpu_training()


@pytest.fixture
def ranks() -> list[Report]:
    return [gpu_training(rank, 3) for rank in range(3)]


@pytest.fixture
def cpu_training() -> Report:
    return training_on_cpu()


@pytest.fixture
def no_device_work() -> Report:
    return without_device_work()
