import pytest

from slipstream.model import Dismissal, NotEnoughData

MS = 1_000_000


def batch(tokens: int | None, trimmable: int | None, padding: int | None = None, start: int = 10) -> dict[str, object]:
    return {
        "step": 0,
        "start_ns": start * MS,
        "dur_ns": MS,
        "tokens": tokens,
        "trimmable_tokens": trimmable,
        "padding_tokens": trimmable if padding is None else padding,
        "file": "train.py",
        "line": 31,
        "function": "main",
    }


def op(name: str, self_ms: int) -> dict[str, object]:
    return {"name": name, "count": 1, "self_ns": self_ms * MS}


STATS = [op("aten::addmm", 50), op("aten::_scaled_dot_product_flash_attention", 10), op("aten::gelu", 20)]


def test_matrix_and_attention_time_is_charged_with_the_share(recording, check):
    tables = recording(kind="cpu", loader_waits=[batch(1000, 600), batch(1000, 400)], op_stats=STATS)
    (finding,) = check("INP006", tables)
    assert finding.cost_ns == 30 * MS
    assert finding.location.line == 31
    assert finding.location.precision == "statement"
    assert "50 %" in finding.title
    assert finding.evidence[0].note.startswith("600 of 1,000")


@pytest.mark.parametrize(("trimmable", "fires"), [(101, True), (99, False)])
def test_ten_per_cent_decide(recording, check, trimmable, fires):
    (verdict,) = check("INP006", recording(kind="cpu", loader_waits=[batch(1000, trimmable)], op_stats=STATS))
    assert isinstance(verdict, Dismissal) is not fires


def test_padding_inside_the_longest_sequence_is_told_but_not_charged(recording, check):
    (verdict,) = check("INP006", recording(kind="cpu", loader_waits=[batch(1000, 20, padding=400)], op_stats=STATS))
    assert "2.0 %" in verdict.reason
    assert "40 %" in verdict.reason


def test_faster_kernels_save_no_more_than_the_host_waits(recording, check):
    runtime = [{"event": 1, "name": "cudaLaunchKernel", "thread": 0, "ts_ns": 50 * MS, "dur_ns": 10_000}]
    steps = [{"number": 0, "start_ns": 0, "dur_ns": 96 * MS, "inferred": False}]
    tables = recording(loader_waits=[batch(1000, 500)], op_stats=STATS, runtime=runtime, steps=steps)
    (finding,) = check("INP006", tables)
    assert finding.cost_ns == 4 * MS


def test_it_cannot_tell_without_mask_or_ids(recording, check):
    with pytest.raises(NotEnoughData, match="attention_mask"):
        check("INP006", recording(loader_waits=[batch(None, None)], op_stats=STATS))


def test_it_cannot_tell_from_a_foreign_trace(recording, check):
    with pytest.raises(NotEnoughData, match="slipstream run"):
        check("INP006", recording(op_stats=STATS))
