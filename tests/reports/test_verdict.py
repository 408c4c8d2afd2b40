import msgspec
import pytest

from slipstream.model import BreakdownPart, DeviceKind, Location, Step
from slipstream.reports import wording
from slipstream.reports.wording import verdict
from slipstream.store import Report

MS = 1_000_000


def with_parts(report: Report, **shares: float) -> Report:
    parts = tuple(BreakdownPart(part=p, ns_per_step=round(s * 200 * MS), share=s) for p, s in shares.items())
    return msgspec.structs.replace(report, diagnosis=msgspec.structs.replace(report.diagnosis, breakdown=parts))


def test_names_what_the_gpu_waits_for_and_where(training: Report) -> None:
    assert verdict(training) == (
        "The GPU is idle 51 % of a 200 ms step; mostly it waits for the data loader (train.py:42)."
    )


def test_two_causes_where_none_explains_half(training: Report) -> None:
    mixed = with_parts(training, compute=0.5, idle_launch=0.2, idle_sync=0.18, idle_host=0.12)
    assert verdict(mixed) == (
        "The GPU is idle 50 % of a 200 ms step; it waits for the host to launch the next kernel (20 %) or runs dry "
        "where the host waits for it (18 %)."
    )


def test_a_place_known_by_function_is_told_as_one(training: Report) -> None:
    sync = with_parts(training, compute=0.5, idle_sync=0.5)
    assert verdict(sync).endswith("runs dry where the host waits for it (log, train.py:30).")


def test_communication_that_outweighs_idleness(training: Report) -> None:
    exposed = with_parts(training, compute=0.55, exposed_communication=0.4, idle_launch=0.05)
    assert verdict(exposed) == "The GPU spends 40 % of a 200 ms step in communication that no computation hides."


@pytest.mark.parametrize(("exposed", "told"), [(0.099, False), (0.101, True)])
def test_communication_beside_idleness_is_told_where_it_counts(training: Report, exposed: float, told: bool) -> None:
    mixed = with_parts(training, compute=0.5 - exposed, exposed_communication=exposed, idle_loader=0.5)
    assert verdict(mixed).endswith(" Another 10 % is communication that no computation hides.") is told


def test_copies_that_outweigh_idleness(training: Report) -> None:
    exposed = with_parts(training, compute=0.55, exposed_copies=0.4, idle_launch=0.05)
    assert verdict(exposed).startswith("The GPU spends 40 % of a 200 ms step copying memory while nothing computes")


def test_a_busy_device_is_sent_to_its_kernels(training: Report) -> None:
    busy = with_parts(training, compute=0.97, idle_launch=0.03)
    assert verdict(busy) == (
        "The GPU computes for 97 % of a 200 ms step: what is left to win lies in the kernels themselves, first INP001 "
        "(38 % of it) and SYN001 (7.5 % of it)."
    )


@pytest.mark.parametrize(("cost", "named"), [(0.051, True), (0.049, False)])
def test_only_large_findings_are_named_where_the_device_is_busy(training: Report, cost: float, named: bool) -> None:
    busy = with_parts(training, compute=0.97, idle_launch=0.03)
    window = busy.diagnosis.window
    finding = msgspec.structs.replace(
        busy.diagnosis.findings[0], cost_ns=round(cost * (window.end_ns - window.start_ns))
    )
    diagnosis = msgspec.structs.replace(busy.diagnosis, findings=(finding,))
    told = verdict(msgspec.structs.replace(busy, diagnosis=diagnosis))
    assert ("first INP001" in told) is named
    assert ("the costliest takes 5.4 % of their time" in told) is not named


@pytest.mark.parametrize(("rest", "busy"), [(0.099, True), (0.101, False)])
def test_border_between_busy_and_idle(training: Report, rest: float, busy: bool) -> None:
    assert ("computes for" in verdict(with_parts(training, compute=1 - rest, idle_launch=rest))) is busy


def test_one_step_is_told_as_one_and_the_thread_counts_on_a_cpu(cpu_training: Report) -> None:
    assert verdict(cpu_training) == (
        "The main thread is inside ops for 60 % of the only recorded step (85.0 ms); otherwise it mostly prepares the "
        "batch."
    )


def test_missing_device_work_is_unknown_and_never_idle(no_device_work: Report) -> None:
    assert verdict(no_device_work) == (
        "How busy the GPU was in the recorded 2.40 s cannot be told: its work was not recorded."
    )


def test_an_empty_window_is_told_as_one(no_device_work: Report) -> None:
    document = no_device_work.diagnosis
    window = msgspec.structs.replace(document.window, end_ns=document.window.start_ns)
    empty = msgspec.structs.replace(no_device_work, diagnosis=msgspec.structs.replace(document, window=window))
    assert verdict(empty) == "Nothing was recorded that could be diagnosed."


def test_without_steps_the_recording_is_what_shares_are_of(training: Report) -> None:
    stepless = msgspec.structs.replace(training, diagnosis=msgspec.structs.replace(training.diagnosis, steps=()))
    assert "idle 51 % of the recorded 800 ms;" in verdict(stepless)


def test_steps_line_tells_inferred_steps_and_their_spread(training: Report) -> None:
    steps = tuple(Step(number=n, start_ns=n, dur_ns=d * MS, inferred=True) for n, d in enumerate((10, 30, 20)))
    inferred = msgspec.structs.replace(training, diagnosis=msgspec.structs.replace(training.diagnosis, steps=steps))
    assert wording.steps_line(inferred) == "3 steps, median 20.0 ms (10.0 ms to 30.0 ms), inferred from repetition"


@pytest.mark.parametrize("kind", msgspec.inspect.type_info(DeviceKind).values)
def test_every_device_kind_has_a_word(kind: str) -> None:
    assert wording.DEVICE[kind]


def test_every_cause_has_words_for_both_views() -> None:
    from slipstream.model import CAUSES

    for cause in CAUSES:
        assert wording.label(f"idle_{cause}", host=True) != cause
        assert wording._WAITS[cause]
        assert wording._HOST_DOES[cause]


def test_a_long_path_is_cut_in_a_narrow_column_only() -> None:
    far = Location(file="library/models/hub/adapters/model.py", line=40, function="run", precision="statement")
    assert wording.place(far) == "library/models/hub/adapters/model.py:40 in run"
    assert wording.place(far, brief=True) == "…/model.py:40"


def test_a_statement_of_the_script_itself_has_no_function() -> None:
    top = Location(file="train.py", line=4, function="<module>", precision="statement")
    assert wording.place(top) == "train.py:4"


def test_ops_are_listed_by_the_time_that_counts(training: Report, cpu_training: Report) -> None:
    assert (wording.times_of(training), wording.times_of(cpu_training)) == ("GPU time", "own time on the CPU")
