"""Differences whose truth is written down in a few rows, in ns."""

import json
from typing import Any

import msgspec
import pytest

from slipstream.analysis.diff import difference
from slipstream.model import Difference, NotEnoughData, OpDifference
from support.tables import make_tables, span, step

LENGTH = 10_000
STEPS = 6


def run(
    kernel_ns: int = 1_000,
    *,
    steps: int = STEPS,
    op: str = "aten::mm",
    around: str | None = None,
    kernel: str = "gemm",
    shapes: str | None = "[[2, 3]]",
    module: str | None = None,
    jitter: int = 10,
    **more: Any,
) -> dict[str, Any]:
    """Steps of one op with one kernel; what the kernel takes longer, the step does."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("steps", "ops", "runtime", "kernels", "python")}
    begin = 0
    for number in range(steps):
        extra = (number * 7 % 5) * jitter
        length = LENGTH + kernel_ns + extra
        rows["steps"].append(step(number, begin, length))
        if around:
            rows["ops"].append(span(around, begin + 90, 500, input_dims=shapes))
        rows["ops"].append(span(op, begin + 100, 400, input_dims=shapes))
        rows["runtime"].append(span("cudaLaunchKernel", begin + 200, 100, correlation=number + 1))
        rows["kernels"].append(span(kernel, begin + 400, kernel_ns, correlation=number + 1))
        if module:
            rows["python"].append(span(f"nn.Module: {module}", begin + 50, 1_000))
        begin += length
    return {**rows, **more}


def diff(a: dict[str, Any], b: dict[str, Any]) -> Difference:
    document = difference(make_tables(**a), make_tables(**b))
    assert_adds_up(document)
    return document


def assert_adds_up(document: Difference) -> None:
    for side, median in (("a_ns", document.a.median_ns), ("b_ns", document.b.median_ns)):
        assert sum(getattr(part, side) for part in document.parts) == median
        for part in document.parts:
            if not part.part.startswith("idle_"):
                ops = [op for op in document.ops if op.part == part.part]
                assert sum(getattr(op, side) for op in ops) == getattr(part, side)
        for op in document.ops:
            assert sum(getattr(line, side) for line in op.lines) == getattr(op, side)
    assert sum(part.effect.difference_ns for part in document.parts) == document.step.difference_ns
    assert document.step.difference_ns == document.b.median_ns - document.a.median_ns


def only_op(document: Difference) -> OpDifference:
    assert len(document.ops) == 1
    return document.ops[0]


def test_a_slower_kernel_is_the_whole_difference_and_is_slower() -> None:
    document = diff(run(1_000), run(1_500))
    assert (document.step.difference_ns, document.step.verdict) == (500, "slower")
    parts = {part.part: part for part in document.parts}
    assert (parts["compute"].effect.difference_ns, parts["compute"].effect.verdict) == (500, "slower")
    assert {part.effect.difference_ns for name, part in parts.items() if name != "compute"} == {0}
    op = only_op(document)
    assert (op.op, op.a_ns, op.b_ns, op.a_count, op.b_count) == ("aten::mm", 1_000, 1_500, 1, 1)
    assert op.lines[0].matched_by == "op_shape"


def test_the_other_way_round_is_the_same_with_the_sign_changed() -> None:
    forth, back = diff(run(1_000), run(1_500)), diff(run(1_500), run(1_000))
    assert back.step.difference_ns == -forth.step.difference_ns
    assert (back.step.low_ns, back.step.high_ns) == (-(forth.step.high_ns or 0), -(forth.step.low_ns or 0))
    assert back.step.verdict == "faster"


def test_a_recording_against_itself_shows_nothing() -> None:
    document = diff(run(), run())
    effects = [document.step, *(p.effect for p in document.parts), *(o.effect for o in document.ops)]
    assert {(effect.difference_ns, effect.verdict) for effect in effects} == {(0, "no_difference_shown")}
    assert document.step.smallest_detectable_ns is not None
    assert document.only_in_a == document.only_in_b == ()


def test_a_difference_inside_the_noise_is_said_to_be_so() -> None:
    document = diff(run(1_000, jitter=400), run(1_100, jitter=400))
    assert document.step.difference_ns == 100
    assert document.step.verdict == "no_difference_shown"
    assert document.step.smallest_detectable_ns is not None
    assert document.step.smallest_detectable_ns > 100


def test_single_steps_cannot_tell_but_still_add_up() -> None:
    document = diff(run(1_000, steps=1), run(1_500, steps=1))
    assert document.step.verdict == "cannot_tell"
    assert "single step" in (document.step.reason or "")
    assert {part.effect.verdict for part in document.parts} == {"cannot_tell"}
    assert document.step.difference_ns == 500


def test_ops_match_though_kernels_are_named_otherwise() -> None:
    op = only_op(diff(run(kernel="volta_sgemm"), run(kernel="Cijk_Ailk")))
    assert (op.op, op.only_in, op.a_kernel, op.b_kernel) == ("aten::mm", None, "volta_sgemm", "Cijk_Ailk")


def test_ops_of_other_vendors_match_by_the_op_around_them() -> None:
    a = run(op="aten::cudnn_convolution", around="aten::convolution")
    b = run(op="aten::miopen_convolution", around="aten::convolution")
    document = diff(a, b)
    op = only_op(document)
    assert (op.op, op.only_in) == ("aten::convolution", None)
    assert [one.name for one in document.only_in_b] == ["aten::miopen_convolution"]


def test_position_does_not_match_shapes_do() -> None:
    a, b = run(shapes="[[2, 3]]"), run(shapes="[[2,\n 3]]")
    assert only_op(diff(a, b)).lines[0].shapes == "[[2,3]]"
    other = only_op(diff(a, run(shapes="[[9, 9]]")))
    assert (other.lines[0].shapes, other.lines[0].matched_by, other.only_in) == (None, "op", None)


def test_without_shapes_in_one_names_match_and_that_is_told() -> None:
    document = diff(run(), run(shapes=None))
    assert only_op(document).lines[0].matched_by == "op"
    assert any("B has no shapes" in note for note in document.notes)


def test_modules_tell_calls_of_one_op_apart() -> None:
    document = diff(run(module="Net_0/"), run(module="Net_0/"))
    assert only_op(document).lines[0].matched_by == "module_op_shape"
    assert not any("modules" in note for note in document.notes)
    one_sided = diff(run(module="Net_0"), run())
    assert only_op(one_sided).lines[0].module is None
    assert any("B does not tell modules" in note for note in one_sided.notes)


def test_what_one_recording_alone_has_is_told() -> None:
    document = diff(run(op="aten::mm"), run(op="aten::bmm"))
    assert {(op.op, op.only_in) for op in document.ops} == {("aten::mm", "a"), ("aten::bmm", "b")}
    assert [one.name for one in document.only_in_a] == ["aten::mm"]
    assert document.only_in_b[0].count == STEPS


def test_kernels_without_an_op_match_by_name() -> None:
    a, b = run(), run()
    for rows in (a, b):
        rows["ops"], rows["runtime"] = [], []
    op = only_op(diff(a, b))
    assert (op.op, op.a_kernel, op.lines[0].matched_by) == (None, "gemm", "kernel")


def test_overlapping_work_is_counted_once() -> None:
    a = run()
    second = [{**row, "stream": 8, "name": "beside"} for row in a["kernels"]]
    document = diff(a, run(kernels=[*run()["kernels"], *second]))
    assert document.step.difference_ns == 0
    compute = next(part for part in document.parts if part.part == "compute")
    assert compute.a_ns == compute.b_ns == 1_000


def test_on_the_cpu_the_main_threads_ops_are_compared_by_their_own_time() -> None:
    def host(inner: int) -> dict[str, Any]:
        ops = [
            op
            for n in range(STEPS)
            for op in (span("aten::linear", n * 1_000, 500), span("aten::addmm", n * 1_000 + 100, inner))
        ]
        return {"steps": [step(n, n * 1_000, 1_000) for n in range(STEPS)], "ops": ops}

    document = diff(host(200), host(300))
    assert document.a.work_of == "main_thread"
    assert {op.op: op.effect.difference_ns for op in document.ops} == {"aten::addmm": 100, "aten::linear": -100}


def test_a_device_and_a_cpu_compare_by_their_steps_alone() -> None:
    host = {"steps": [step(n, n * 1_000, 1_000) for n in range(STEPS)], "ops": [span("aten::mm", 10, 20)]}
    document = difference(make_tables(**run()), make_tables(**host))
    assert (document.parts, document.ops) == ((), ())
    assert document.step.verdict == "faster"
    assert any("only the steps compare" in note for note in document.notes)


def test_without_marks_the_whole_recording_is_one_step() -> None:
    a = run() | {"steps": []}
    document = difference(make_tables(**a), make_tables(**run()))
    assert (document.a.steps, document.a.basis) == (1, "recording")
    assert document.step.verdict == "cannot_tell"
    assert any("A marks no steps" in note for note in document.notes)


def test_nothing_that_takes_time_cannot_be_compared() -> None:
    with pytest.raises(NotEnoughData, match="nothing to compare"):
        difference(make_tables(ops=[]), make_tables(**run()))


def test_the_order_of_rows_does_not_matter() -> None:
    b = run(1_500, around="aten::linear")
    turned = {name: list(reversed(rows)) for name, rows in b.items()}
    assert diff(run(), b) == diff(run(), turned)


def test_the_document_is_one_of_the_contract() -> None:
    document = json.loads(msgspec.json.encode(diff(run(), run(1_500))))
    assert (document["kind"], document["format_version"]) == ("diff", 1)
