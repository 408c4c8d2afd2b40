"""Comparisons of programs before and after a change, whose effect is known, and of real pairs."""

import os
from pathlib import Path

import numpy as np
import pytest

import slipstream
from end_to_end.conftest import Bench
from slipstream.model import Difference
from slipstream.reports import render
from slipstream.store import Trace
from synthetic import jobs
from synthetic.machine import Machine, execute
from synthetic.program import Program, us
from synthetic.truth import Truth
from synthetic.writer import document

CORPUS = Path(os.environ.get("SLIPSTREAM_CORPUS") or "nowhere")
real = pytest.mark.skipif(not CORPUS.is_dir(), reason="real recordings are found through SLIPSTREAM_CORPUS")


def compared(bench: Bench, before: Program, after: Program) -> tuple[Difference, float, float]:
    """The comparison, and the true medians."""
    executions = execute(before), execute(after)
    a, b = (bench.read(document(execution)) for execution in executions)
    medians = [float(np.median([end - start for _, start, end in Truth(one).steps])) for one in executions]
    return slipstream.diff(a, b), medians[0], medians[1]


def assert_adds_up(found: Difference) -> None:
    assert sum(part.effect.difference_ns for part in found.parts) == found.step.difference_ns
    for part in found.parts:
        ops = [op for op in found.ops if op.part == part.part]
        assert not ops or sum(op.effect.difference_ns for op in ops) == part.effect.difference_ns
    for op in found.ops:
        assert sum(line.effect.difference_ns for line in op.lines) == op.effect.difference_ns


def parts(found: Difference) -> dict[str, int]:
    return {part.part: part.effect.difference_ns for part in found.parts}


def test_a_faster_loader_shows_in_the_loader(bench: Bench) -> None:
    found, before, after = compared(bench, jobs.loader_bound(8), jobs.loader_bound(8, loader_ns=us(7000)))
    assert_adds_up(found)
    assert found.step.difference_ns == pytest.approx(after - before, abs=1)
    assert found.step.verdict == "faster"
    assert parts(found)["idle_loader"] == pytest.approx(-us(2000), rel=0.02)
    assert sum(abs(ns) for part, ns in parts(found).items() if part != "idle_loader") < us(50)


def test_faster_kernels_show_in_their_op(bench: Bench) -> None:
    """A job that its device holds back: the first step, whose queue fills, is not like the others."""

    def quicker(one: object) -> object:
        from msgspec.structs import replace

        from synthetic.program import Submit

        if isinstance(one, Submit) and one.kind == "kernel":
            return replace(one, tasks=tuple((name + "_v2", ns // 2) for name, ns in one.tasks))
        return one

    before = jobs.explicit_sync_bound(8)
    found, _, _ = compared(bench, before, before.edited(quicker))  # type: ignore[arg-type]
    assert_adds_up(found)
    saved = -jobs.LAYERS * jobs.KERNEL_NS // 2
    assert parts(found)["compute"] == pytest.approx(saved, rel=0.02)
    op = found.ops[0]
    assert (op.op, op.only_in, op.effect.verdict) == ("aten::mm", None, "faster")
    assert (op.a_kernel, op.b_kernel) == ("mm_kernel", "mm_kernel_v2")


def test_the_same_program_on_the_same_machine_differs_in_nothing(bench: Bench) -> None:
    found, _, _ = compared(bench, jobs.sync_bound(8), jobs.sync_bound(8))
    assert set(parts(found).values()) == {0}
    assert found.step.verdict == "no_difference_shown"


def test_a_slower_host_shows_in_launching(bench: Bench) -> None:
    execution = [execute(jobs.launch_bound(8), machine) for machine in (Machine(), Machine(call_ns=us(10)))]
    found = slipstream.diff(*(bench.read(document(one)) for one in execution))
    assert_adds_up(found)
    assert found.step.verdict == "slower"
    largest = max(parts(found).items(), key=lambda part: part[1])
    assert largest[0] == "idle_launch"


def of_corpus(a: str, b: str) -> Difference:
    traces = [slipstream.load(CORPUS / name) for name in (a, b)]
    assert all(isinstance(trace, Trace) for trace in traces)
    found = slipstream.diff(*traces)  # type: ignore[arg-type]
    if found.parts:
        assert_adds_up(found)
    assert max(map(len, render(found).splitlines()[7:])) <= 100
    return found


@real
def test_the_loader_is_what_four_workers_take_away() -> None:
    found = of_corpus("v100_resnet50_workers0.json.gz", "v100_resnet50_workers4.json.gz")
    assert (found.a.median_ns, found.b.median_ns) == (176_273_000, 126_548_000)
    assert found.b.mean_ns - found.b.median_ns > 10_000_000, "two of its steps stall"
    loader = next(part for part in found.parts if part.part == "idle_loader")
    assert loader.effect.verdict == "faster"
    assert loader.effect.difference_ns < -50_000_000
    assert not [op for op in found.ops if op.only_in], "the model is the same"


@real
def test_devices_of_two_vendors_match_by_op() -> None:
    found = of_corpus("h100_bert_small.json.gz", "mi300_bert_small.json.gz")
    assert found.step.verdict == "cannot_tell"
    assert not [op.op for op in found.ops if op.only_in]
    attention = found.ops[0]
    assert attention.op == "aten::_flash_attention_forward"
    assert attention.a_kernel != attention.b_kernel
    assert {line.matched_by for op in found.ops for line in op.lines} == {"module_op_shape"}


@real
def test_ops_that_were_added_are_told() -> None:
    found = of_corpus("diff/base.json.gz", "diff/test.json.gz")
    assert {op.name for op in found.only_in_b} == {"All2All_Pooled_Req", "AddmmBackward0", "CatBackward0"}
    assert found.only_in_a == ()
    assert found.step.verdict == "cannot_tell"


@real
@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(CORPUS.rglob("*.json.gz")), ids=lambda path: path.name)
def test_any_recording_compares_with_itself_and_with_another(path: Path) -> None:
    name = str(path.relative_to(CORPUS))
    same = of_corpus(name, name)
    assert same.step.difference_ns == 0
    assert same.step.verdict in ("no_difference_shown", "cannot_tell")
    assert not same.only_in_a
    assert {op.effect.difference_ns for op in same.ops} <= {0}
    of_corpus(name, "h100_owlv2.json.gz")
