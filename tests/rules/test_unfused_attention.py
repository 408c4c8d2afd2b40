import json

import pytest

from slipstream.model import Dismissal, NotEnoughData

MS = 1_000_000
US = 1_000


def op(event: int, name: str, start: int, dur: int = 1, dims: object = None, **more: object) -> dict[str, object]:
    return {
        "event": event,
        "name": name,
        "thread": 0,
        "ts_ns": start * MS,
        "dur_ns": dur * MS,
        "input_dims": None if dims is None else json.dumps(dims),
        **more,
    }


def tree(ops: list[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {
            "event": row["event"],
            "thread": row["thread"],
            "depth": 0,
            "root": row["event"],
            "self_ns": row["dur_ns"],
            "device_self_ns": row["dur_ns"],
            "device_total_ns": row["dur_ns"],
        }
        for row in ops
    ]


def attention(scores: object = (8, 128, 128), softmax: str = "aten::_softmax") -> list[dict[str, object]]:
    b, s, t = scores
    return [
        op(1, "aten::bmm", 10, 2, [[b, s, 64], [b, 64, t]]),
        op(2, "aten::mul", 12, 3, [[b, s, t], []]),
        op(3, softmax, 15, 5, [[b, s, t], [], []]),
        op(4, "aten::copy_", 20, 1, [[b, s, t], [b, s, t], []]),
        op(5, "aten::bmm", 21, 2, [[b, s, t], [b, t, 64]]),
    ]


def on_cpu(recording, ops, **more):
    return recording(kind="cpu", ops=ops, op_tree=tree(ops), **more)


def test_what_runs_between_the_products_is_the_cost(recording, check):
    places = [{"event": 3, "file": "model.py", "line": 88, "function": "attend", "precision": "statement"}]
    (finding,) = check("CMP001", on_cpu(recording, attention(), op_places=places))
    assert finding.cost_ns == 9 * MS
    assert finding.location.line == 88
    assert "8 x 128 x 128" in finding.title
    assert "9.0 %" in finding.title


def test_without_shapes_the_sequence_alone_tells(recording, check):
    ops = [{**row, "input_dims": None} for row in attention()]
    (finding,) = check("CMP001", on_cpu(recording, ops))
    assert finding.cost_ns == 9 * MS


def test_shapes_that_do_not_fit_are_not_attention(recording, check):
    ops = attention()
    ops[2] = op(3, "aten::_softmax", 15, 5, [[8, 128, 10], [], []])
    assert check("CMP001", on_cpu(recording, ops)) == []


def test_a_softmax_without_a_product_on_both_sides_is_not_attention(recording, check):
    assert check("CMP001", on_cpu(recording, attention()[1:])) == []
    assert check("CMP001", on_cpu(recording, attention()[:-1])) == []


def test_products_on_another_thread_do_not_count(recording, check):
    ops = attention()
    ops[4]["thread"] = 1
    assert check("CMP001", on_cpu(recording, ops)) == []


@pytest.mark.parametrize(("between", "fires"), [(39, True), (40, False)])
def test_forty_ops_apart_they_do_not_belong_together(recording, check, between, fires):
    fill = [{**op(100 + place, "aten::view", 15, 0), "ts_ns": 15 * MS + place, "dur_ns": 0} for place in range(between)]
    ops = [row for row in attention() if row["event"] != 2] + fill
    ops[1]["ts_ns"] = 15 * MS + 100
    assert bool(check("CMP001", on_cpu(recording, ops))) is fires


def test_the_backward_pass_counts_as_well(recording, check):
    back = attention(softmax="aten::_softmax_backward_data")
    back = [{**row, "event": row["event"] + 50, "ts_ns": row["ts_ns"] + 40 * MS} for row in back]
    (finding,) = check("CMP001", on_cpu(recording, attention() + back))
    assert finding.cost_ns == 18 * MS


def test_fused_attention_that_fell_back_is_told_apart(recording, check):
    outer = op(99, "aten::scaled_dot_product_attention", 9, 15)
    back = attention(softmax="aten::_softmax_backward_data")
    back = [{**row, "event": row["event"] + 50, "ts_ns": row["ts_ns"] + 40 * MS} for row in back]
    (verdict,) = check("CMP001", on_cpu(recording, [outer, *attention(), *back]))
    assert isinstance(verdict, Dismissal)
    assert "one call already" in verdict.reason


def test_flash_attention_is_left_alone(recording, check):
    ops = [op(1, "aten::_scaled_dot_product_flash_attention", 10, 5), op(2, "aten::addmm", 20, 5)]
    assert check("CMP001", on_cpu(recording, ops)) == []


def test_on_a_known_device_the_products_count_beyond_a_fused_pass(recording, check):
    ops = attention()
    for row in ops:
        row["input_types"] = '["c10::BFloat16","c10::BFloat16"]'
    (finding,) = check("CMP001", recording(ops=ops, op_tree=tree(ops)))
    fused_ns = 2 * (2 * 8 * 128 * 128 * 64) / (312e12 * 0.35) * 1e9
    assert finding.cost_ns == pytest.approx(9 * MS + 4 * MS - fused_ns, abs=2)


def test_on_an_unknown_device_only_what_is_between_counts(recording, check):
    ops = attention()
    (finding,) = check("CMP001", recording(device="Some GPU", ops=ops, op_tree=tree(ops)))
    assert finding.cost_ns == 9 * MS


def test_it_saves_no_more_than_the_host_waits(recording, check):
    ops = attention()
    runtime = [{"event": 7, "name": "cudaLaunchKernel", "thread": 0, "ts_ns": 0, "dur_ns": 10 * US}]
    steps = [{"number": 0, "start_ns": 0, "dur_ns": 98 * MS, "inferred": False}]
    (finding,) = check("CMP001", recording(ops=ops, op_tree=tree(ops), runtime=runtime, steps=steps))
    assert finding.cost_ns == 2 * MS
    steps[0]["dur_ns"] = 100 * MS
    (verdict,) = check("CMP001", recording(ops=ops, op_tree=tree(ops), runtime=runtime, steps=steps))
    assert isinstance(verdict, Dismissal)


def test_it_cannot_tell_without_ops(recording, check):
    with pytest.raises(NotEnoughData, match="no host ops"):
        check("CMP001", recording())


@pytest.mark.parametrize("op_name", ["aten::dropout", "aten::bernoulli_"])
def test_on_a_cpu_dropout_rules_the_fused_kernel_out(recording, check, op_name):
    ops = [*attention(), op(9, op_name, 20)]
    (verdict,) = check("CMP001", on_cpu(recording, ops))
    assert isinstance(verdict, Dismissal)
    assert "no dropout" in verdict.reason
    (finding,) = check("CMP001", recording(device="Some GPU", ops=ops, op_tree=tree(ops)))
    assert finding.cost_ns == 10 * MS


def test_dropout_elsewhere_does_not_matter(recording, check):
    assert not isinstance(check("CMP001", on_cpu(recording, [*attention(), op(9, "aten::dropout", 30)]))[0], Dismissal)
