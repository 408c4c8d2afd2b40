import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000


def training(busy_us, *python, ops=(), **tables):
    """One step of 1 ms: an op, then nothing but Python."""
    rows = [span("train.py(3): main", 0, 1_000 * US), *python]
    for number, row in enumerate(rows):
        row["python_id"] = number
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        ops=[span("aten::mm", 0, busy_us * US), *ops],
        python=rows if python or tables.pop("own", True) else [],
        **tables,
    )


@pytest.mark.parametrize(("busy_us", "fires"), [(899, True), (901, False)])
def test_ten_per_cent_in_the_users_own_python(check, busy_us, fires):
    found = check("HST005", training(busy_us))
    assert bool(found) is fires
    if fires:
        assert found[0].cost_ns == (1_000 - busy_us) * US
        assert found[0].location.function == "main"


@pytest.mark.parametrize(("busy_us", "fires"), [(699, True), (701, False)])
def test_thirty_per_cent_in_that_of_the_framework(check, busy_us, fires):
    (verdict,) = check("HST005", training(busy_us, span("torch/nn/modules/linear.py(130): forward", 0, 1_000 * US)))
    assert isinstance(verdict, Dismissal) is not fires
    if fires:
        assert verdict.cost_ns == 301 * US


def test_a_built_in_function_is_its_callers(check):
    (finding,) = check("HST005", training(600, span("<built-in function sleep>", 600 * US, 400 * US)))
    assert finding.cost_ns == 400 * US
    assert finding.evidence[0].event == "<built-in function sleep>"


def test_compiled_code_that_calls_ops_and_collections_are_not_pythons_time(check):
    for row, ops in (
        (span("<built-in function linear>", 600 * US, 400 * US), [span("aten::linear", 650 * US, 10 * US)]),
        (span("<built-in function collect>", 600 * US, 400 * US), []),
    ):
        (verdict,) = check("HST005", training(600, row, ops=ops))
        assert isinstance(verdict, Dismissal)


def test_the_optimizers_calls_and_loops_are_explained_already(check):
    marks = [span("Optimizer.step#SGD.step", 600 * US, 400 * US)]
    assert check("HST005", training(600, annotations=marks)) == []


def test_without_python_rows_it_cannot_tell_what_the_host_did(check):
    with pytest.raises(NotEnoughData, match="with_stack"):
        check("HST005", training(600, own=False))
    assert check("HST005", training(901, own=False)) == []
