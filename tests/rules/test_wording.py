import pytest

from slipstream.rules.wording import duration, per_step, percent, plural, size


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (999_600, "1.00 ms"),
        (176_400_000, "176 ms"),
        (61_000_000_000, "61.0 s"),
    ],
)
def test_three_digits_and_a_unit(ns, text):
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0.0 %"), (0.0004, "< 0.1 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (0.51, "51 %")]
)
def test_per_cent(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("count", "steps", "text"), [(8, 4, "2 launches a step"), (1, 4, "1 launch in 4 steps"), (3, None, "3 launches")]
)
def test_how_often(count, steps, text):
    assert per_step(count, steps, "launch") == text


def test_plural():
    assert (plural(1, "gap"), plural(1200, "gap"), plural(2, "softmax")) == ("1 gap", "1,200 gaps", "2 softmaxes")


@pytest.mark.parametrize(("count", "text"), [(8, "8 bytes"), (999_600, "1.00 MB"), (38_535_168, "38.5 MB")])
def test_bytes(count, text):
    assert size(count) == text
