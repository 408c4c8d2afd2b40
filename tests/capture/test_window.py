"""When the window opens and closes; no torch, a clock that the test sets."""

from collections.abc import Iterable

from slipstream.capture.window import SETTLED_STEPS, Action, Window

MS = 1_000_000


class Job:
    """Steps of given lengths, on a clock that stands still between them."""

    def __init__(self, **wishes: object) -> None:
        self.now = 0
        options: dict[str, object] = {"steps": 3, "warmup": None, "places": True} | wishes
        self.window = Window(clock=lambda: self.now, **options)  # type: ignore[arg-type]
        self.durations: list[int] = []

    def run(self, lengths_ms: Iterable[float]) -> list[Action]:
        actions = []
        for length in lengths_ms:
            self.now += round(length * MS)
            self.durations.append(round(length * MS))
            actions.append(self.window.boundary(len(self.durations), self.durations[-8:]))
        return actions


def test_steady_steps_open_it_after_three() -> None:
    job = Job()
    assert job.run([500, 10, 10]) == ["none", "none", "none"]  # the first is still among the last three
    assert job.run([10]) == ["prepare"]
    assert job.run([10] * 5) == ["open", "mark", "mark", "close_for_places", "end_places"]
    assert job.run([10] * 3) == ["none"] * 3


def test_three_steady_steps_are_enough() -> None:
    assert Job().run([10, 10, 10]) == ["none", "none", "prepare"]


def test_the_limit_of_steady_is_tight() -> None:
    assert Job().run([100, 100, 114.9]) == ["none", "none", "prepare"]
    assert Job().run([100, 100, 115.1]) == ["none", "none", "none"]


def test_unsteady_steps_do_not_delay_it_beyond_a_short_job() -> None:
    actions = Job(steps=6).run(1.5**n for n in range(12))
    assert actions.index("open") == 4
    assert actions[-2:] == ["close_for_places", "end_places"]


def test_a_given_warm_up_is_kept_whatever_the_steps_do() -> None:
    actions = Job(warmup=7, places=False).run([10] * 12)
    assert actions.index("open") == 6  # the boundary after the seventh step
    assert actions[6:] == ["open", "mark", "mark", "close", "none", "none"]


def test_a_warm_up_of_none_waits_until_a_step_is_known() -> None:
    assert Job(warmup=0).run([10] * 3) == ["prepare", "open", "mark"]


def test_a_window_that_was_opened_too_early_opens_again() -> None:
    job = Job()
    job.run([100] * 8)
    later = job.run([10] * (SETTLED_STEPS + 8))
    assert later.count("prepare") == 1
    assert later[later.index("prepare") :][:6] == ["prepare", "open", "mark", "mark", "close_for_places", "end_places"]
    assert "prepare" not in job.run([1] * 60)


def test_a_window_in_its_right_place_stays_the_only_one() -> None:
    job = Job()
    job.run([100] * 8)
    assert set(job.run([80] * 60)) == {"none"}  # 1.25 times faster is no reason yet


def test_a_very_long_window_closes_with_the_fewest_steps() -> None:
    job = Job(steps=6, warmup=2, places=False)
    assert job.run([10, 10, 100_000, 10_000]) == ["prepare", "open", "mark", "mark"]
    assert job.run([10_001]) == ["close"]


def test_an_interruption_keeps_two_steps_and_discards_one() -> None:
    job = Job(warmup=2)
    job.run([10, 10, 10])
    assert job.window.interrupt(3) == "discard"
    assert job.run([10]) == ["prepare"]
    job.run([10, 10, 10])
    assert job.window.recorded == 2
    assert job.window.interrupt(7) == "keep"
    assert job.run([10, 10, 10]) == ["begin_places", "end_places", "none"]


def test_interruptions_without_end_give_it_up() -> None:
    job = Job(warmup=2)
    for _ in range(3):
        while job.run([10]) != ["open"]:
            pass
        job.window.interrupt(len(job.durations))
    assert set(job.run([10] * 20)) == {"none"}


def test_a_changed_step_starts_the_warm_up_anew() -> None:
    job = Job()
    job.run([10] * 5)
    assert job.window.phase == "recording"
    job.window.restart(5)
    assert job.run([10] * 4) == ["none", "none", "prepare", "open"]
