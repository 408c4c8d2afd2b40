"""LCH005 and LCH006: loops over the entries of a tensor, over the samples of a batch."""

import json

import pytest

from slipstream.model import Dismissal, NotEnoughData
from support.tables import make_tables, span, step

US = 1_000
MAIN = span("train.py(3): main", 0, 2_000 * US)


def entries(count, *, between=1, index=True, start=0):
    """Entries fetched every 20 us, each followed by some ops of 4 us."""
    rows = []
    for place in range(count):
        begin = (start + place * 20) * US
        rows.append(
            span("aten::select", begin, 4 * US, concrete_inputs=json.dumps(["", "0", str(place if index else 0)]))
        )
        rows += [span("aten::sum", begin + (5 + nth) * US, US // 2) for nth in range(between)]
    return rows


def on_cpu(ops, **tables):
    return make_tables(steps=[step(0, 0, 2_000 * US)], ops=ops, python=[MAIN], **tables)


@pytest.mark.parametrize(("count", "fires"), [(10, True), (9, False)])
def test_ten_entries_in_a_row_are_a_loop(check, count, fires):
    found = check("LCH005", on_cpu(entries(count)))
    assert bool(found) is fires
    if fires:
        assert found[0].cost_ns == 200 * US * 9 // 10  # one pass of 20 us remains
        assert found[0].location.function == "main"


@pytest.mark.parametrize(("between", "fires"), [(7, True), (8, False)])
def test_a_long_body_does_more_than_fetch_entries(check, between, fires):
    assert bool(check("LCH005", on_cpu(entries(20, between=between)))) is fires


def test_the_same_entry_again_and_again_is_no_loop_over_entries(check):
    assert check("LCH005", on_cpu(entries(20, index=False))) == []


def test_a_body_that_fetches_from_two_tensors_in_two_statements_is_one_loop(check):
    shapes = json.dumps([[20, 8]]), json.dumps([[20]])
    ops = []
    for place in range(20):
        begin, entry = place * 20 * US, json.dumps(["", "0", str(place)])
        frames = ("train.py(5): row", 0), ("train.py(9): target", 5 * US)
        for (_, offset), dims in zip(frames, shapes, strict=True):
            ops.append(span("aten::select", begin + offset, 4 * US, concrete_inputs=entry, input_dims=dims))
    calls = [
        span(name, place * 20 * US + offset, 5 * US)
        for place in range(20)
        for name, offset in (("train.py(5): row", 0), ("train.py(9): target", 5 * US))
    ]
    tables = make_tables(steps=[step(0, 0, 2_000 * US)], ops=ops, python=[MAIN, *calls])
    (finding,) = check("LCH005", tables)
    assert finding.location.function == "row"
    assert finding.cost_ns == 400 * US * 19 // 20


def test_two_fetches_a_pass_may_want_the_same_index(check):
    ops = []
    for place in range(20):
        entry = json.dumps(["", "0", str(place)])
        for nth, dims in enumerate(("[[20, 8]]", "[[20]]")):
            begin = (place * 20 + 5 * nth) * US
            ops.append(span("aten::select", begin, 4 * US, concrete_inputs=entry, input_dims=dims))
        ops += [span("aten::add", (place * 20 + 10 + nth) * US, US // 2) for nth in range(7)]
    (finding,) = check("LCH005", on_cpu(ops))
    assert finding.cost_ns == 400 * US * 19 // 20


def test_the_backward_of_entries_counts_and_that_of_other_ops_by_its_fixed_cost(check):
    node = "autograd::engine::evaluate_function: "
    ops = [{**op, "sequence": number} for number, op in enumerate(entries(10))]
    nodes = []
    for place in range(10):
        begin = (500 + 60 * place) * US
        nodes.append(span(f"{node}SumBackward1", begin, 20 * US, sequence=2 * place + 1, fwd_thread=1))
        nodes.append(span(f"{node}SelectBackward0", begin + 30 * US, 20 * US, sequence=2 * place, fwd_thread=1))
    nodes.append(span(f"{node}MmBackward0", 1_500 * US, 90 * US, sequence=99, fwd_thread=1))  # none of the loop's
    (finding,) = check("LCH005", on_cpu([*ops, *nodes]))
    assert finding.cost_ns == (200 + 10 * (5 + 20)) * US * 9 // 10


def test_work_within_the_loop_is_not_overhead(check):
    ops = [*entries(10, between=0), *(span("aten::mm", (5 + 20 * place) * US, 15 * US) for place in range(10))]
    (finding,) = check("LCH005", on_cpu(ops))
    assert finding.cost_ns == 100 * US * 9 // 10  # 10 us of each product are work


def test_samples_made_by_the_loader_are_the_loaders(check):
    marks = [span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 400 * US)]
    assert check("LCH005", on_cpu(entries(20), annotations=marks)) == []


def test_on_a_device_with_work_in_its_queue_a_loop_costs_nothing(check):
    tables = make_tables(
        steps=[step(0, 0, 500 * US)],
        ops=[span("aten::mm", 0, 5 * US), *entries(10, start=20)],
        runtime=[span("cudaLaunchKernel", 0, US, correlation=1)],
        kernels=[span("k", US, 499 * US, correlation=1)],
    )
    (verdict,) = check("LCH005", tables)
    assert isinstance(verdict, Dismissal)


def calls(count, batch=1, *, sequence=7, every=100):
    """A model called every 100 us: 60 us of Python and an op of 40 us."""
    modules = [span("nn.Module: Net_0", place * every * US, 100 * US) for place in range(count)]
    dims = json.dumps([[batch, 8], [8, 8], [8]])
    ops = [
        span("aten::linear", (place * every + 60) * US, 40 * US, input_dims=dims, sequence=sequence)
        for place in range(count)
    ]
    return modules, ops


def model(modules, ops, *, steps=None):
    return make_tables(steps=steps or [step(0, 0, 2_000 * US)], ops=ops, python=[MAIN, *modules])


@pytest.mark.parametrize(("count", "fires"), [(4, True), (3, False)])
def test_four_calls_with_one_sample_in_a_step(check, count, fires):
    found = check("LCH006", model(*calls(count)))
    assert bool(found) is fires
    if fires:
        assert found[0].cost_ns == 4 * 65 * US * 3 // 4  # Python and the fixed cost of an op; one call remains
        assert found[0].location.function == "main"
        assert "Net_0" in found[0].title


def test_a_batch_per_call_or_one_call_per_step_is_right(check):
    assert check("LCH006", model(*calls(8, batch=2))) == []
    assert check("LCH006", model(*calls(4), steps=[step(n, n * 100 * US, 100 * US) for n in range(4)])) == []


def test_without_autograd_it_may_be_generation(check):
    assert check("LCH006", model(*calls(8, sequence=None))) == []


def test_products_count_beyond_the_best_rate_of_the_recording(check):
    modules, ops = calls(4)
    one, many = json.dumps([[1, 10], [10, 10]]), json.dumps([[40, 10], [10, 10]])
    slow = [span("aten::mm", (place * 100 + 62) * US, 30 * US, input_dims=one) for place in range(4)]
    fast = [span("aten::mm", (1_000 + 50 * place) * US, 40 * US, input_dims=many) for place in range(40)]
    (finding,) = check("LCH006", model(modules, [*ops, *slow, *fast]))
    # 4 products of 30 us become one of no less than 30 us, though the best rate would allow 4 us.
    assert finding.cost_ns == 4 * 65 * US * 3 // 4 + 90 * US


def test_without_python_rows_or_shapes_it_cannot_tell(check):
    modules, ops = calls(4)
    with pytest.raises(NotEnoughData, match="with_stack"):
        check("LCH006", make_tables(steps=[step(0, 0, 2_000 * US)], ops=ops))
    with pytest.raises(NotEnoughData, match="shapes"):
        check("LCH006", model(modules, [{**op, "input_dims": None} for op in ops]))
