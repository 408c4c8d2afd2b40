"""CPL001 and CPL002."""

import pytest

from slipstream.model import Dismissal
from support.tables import make_tables, span, step

US = 1_000
STEPS = [step(0, 0, 1_000 * US), step(1, 1_000 * US, 1_000 * US)]
MAIN = span("train.py(9): main", 0, 2_000 * US)


def compiling(*starts_us, ids=(), **more):
    ops = [span("aten::mm", 0, 10 * US)]
    for start in starts_us:
        ops.append(span("entire_frame_compile", start * US, 100 * US))
        ops.append(span("_compile.compile_inner (dynamo_timed)", start * US + 5, 90 * US))
    marks = [
        span(f"dynamo_data: compile_id={number}", starts_us[place] * US, 100 * US) for place, number in enumerate(ids)
    ]
    return make_tables(steps=STEPS, ops=ops, annotations=marks, python=[MAIN], **more)


def test_compiling_a_frame_again_is_lost_time(check):
    (finding,) = check("CPL001", compiling(100, 1_100, ids=("0/0", "0/1")))
    assert finding.cost_ns == 200 * US
    assert finding.location.function == "main"
    assert "10 %" in finding.title


@pytest.mark.parametrize(("ids", "again"), [(("3/1",), True), (("3/0",), False)])
def test_the_first_compilation_of_a_frame_is_warm_up(check, ids, again):
    (verdict,) = check("CPL001", compiling(1_100, ids=ids))
    assert isinstance(verdict, Dismissal) is not again


@pytest.mark.parametrize(("start_us", "again"), [(1_100, True), (100, False)])
def test_without_ids_all_but_the_first_recorded_step_counts(check, start_us, again):
    (verdict,) = check("CPL001", compiling(start_us))
    assert isinstance(verdict, Dismissal) is not again


def test_on_a_device_only_idle_time_is_lost(check):
    tables = compiling(
        1_100,
        ids=("0/1",),
        runtime=[
            span("cudaLaunchKernel", 2 * US, US, correlation=1),
            span("cudaLaunchKernel", 1_300 * US, US, correlation=2),
        ],
        kernels=[
            span("k", 3 * US, 1_137 * US, correlation=1),
            span("k", 1_301 * US, 699 * US, correlation=2),
        ],
    )
    (finding,) = check("CPL001", tables)
    assert finding.cost_ns == 60 * US
    assert check("INP005", tables) == []  # compiling is no preparation of data


def test_no_compiler_no_word(check):
    assert check("CPL001", make_tables(steps=STEPS, ops=[span("aten::mm", 0, US)])) == []


def pieces(frames, *, gap_us=50):
    """Compiled pieces of 20 us, each called from within the one before."""
    ops = []
    end = len(frames) * (20 + gap_us)
    for place, frame in enumerate(frames):
        begin = place * (20 + gap_us)
        ops.append(span(f"Torch-Compiled Region: {frame}/0", max(0, begin - 5) * US, (end - begin + 50 - place) * US))
        ops.append(span("CompiledFunction", begin * US + place, 20 * US))
    return make_tables(steps=STEPS, ops=ops)


def test_time_between_pieces_of_a_broken_function(check):
    (finding,) = check("CPL002", pieces([0, 1, 2]))
    assert finding.cost_ns == pytest.approx(2 * 50 * US, abs=10)
    assert "2 graph breaks in 2 steps" in finding.title or "1 graph break a step" in finding.title


def test_one_piece_and_the_same_frame_inside_are_no_breaks(check):
    assert check("CPL002", pieces([0])) == []
    assert check("CPL002", pieces([0, 0])) == []


def test_functions_compiled_on_their_own_follow_each_other(check):
    ops = []
    for frame in (0, 1):
        ops.append(span(f"Torch-Compiled Region: {frame}/0", frame * 100 * US, 30 * US))
        ops.append(span("CompiledFunction", frame * 100 * US + 5, 20 * US))
    assert check("CPL002", make_tables(steps=STEPS, ops=ops)) == []
