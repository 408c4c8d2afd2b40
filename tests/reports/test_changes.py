"""What a comparison looks like."""

import json
import os
from pathlib import Path

import jsonschema
import msgspec
import pytest

from slipstream.model import (
    BadInput,
    Compared,
    Difference,
    Effect,
    Integrity,
    LineDifference,
    OpAlone,
    OpDifference,
    PartDifference,
    Source,
    Verdict,
    json_schema,
)
from slipstream.reports import Style, changes, render

GOLDEN = Path(__file__).parent / "golden"
MS = 1_000_000


def effect(ns: int, noise: int, verdict: Verdict) -> Effect:
    if verdict == "cannot_tell":
        return Effect(
            difference_ns=ns,
            low_ns=None,
            high_ns=None,
            confidence=0.95,
            verdict=verdict,
            reason="B holds a single step, which does not tell how much steps vary",
            smallest_detectable_ns=None,
        )
    return Effect(
        difference_ns=ns,
        low_ns=ns - noise,
        high_ns=ns + noise,
        confidence=0.95,
        verdict=verdict,
        smallest_detectable_ns=noise,
    )


def compared(path: str, median: int, device: str) -> Compared:
    return Compared(
        source=Source(
            path=path, format="kineto", origin_ns=None, torch_version="2.9.0", device=device, device_kind="cuda"
        ),
        integrity=Integrity(grade="A"),
        basis="marks",
        steps=8,
        median_ns=median,
        low_ns=median - 2 * MS,
        high_ns=median + 3 * MS,
        mean_ns=median + MS,
        least_ns=median - 4 * MS,
        most_ns=median + 9 * MS,
        work_of="device",
    )


def line(module: str | None, shapes: str | None, a: int, b: int, verdict: Verdict) -> LineDifference:
    return LineDifference(
        shapes=shapes,
        module=module,
        matched_by="module_op_shape",
        only_in=None,
        a_ns=a,
        b_ns=b,
        a_count=1,
        b_count=1,
        a_kernel="volta_sgemm_128x64_tn",
        b_kernel="Cijk_Ailk_Bljk_SB",
        effect=effect(b - a, MS, verdict),
    )


def document(verdict: Verdict = "faster") -> Difference:
    shapes = "[[1024],[32,128,1024],[1024,1024]]"
    lines = (
        line("Bert_0/Encoder_0/Linear_4", shapes, 30 * MS, 22 * MS, verdict),
        line("Bert_0/Encoder_0/Linear_5", shapes, 30 * MS, 29 * MS, "no_difference_shown"),
    )
    addmm = OpDifference(
        part="compute",
        op="aten::addmm",
        only_in=None,
        a_ns=60 * MS,
        b_ns=51 * MS,
        a_count=2,
        b_count=2,
        a_kernel="volta_sgemm_128x64_tn",
        b_kernel="Cijk_Ailk_Bljk_SB",
        effect=effect(-9 * MS, MS, verdict),
        lines=lines,
    )
    fused = msgspec.structs.replace(
        addmm, op="aten::gelu", only_in="b", a_ns=0, b_ns=MS, a_count=0, a_kernel=None, lines=lines[:1],
        effect=effect(MS, MS // 2, "slower" if verdict == "faster" else verdict),
    )  # fmt: skip
    return Difference(
        a=compared("runs/monday.json.gz", 100 * MS, "NVIDIA Imaginary 100"),
        b=compared("runs/tuesday.json.gz", 72 * MS, "Other Imaginary 200"),
        step=effect(-28 * MS, 4 * MS if verdict == "faster" else 40 * MS, verdict),
        parts=(
            PartDifference(part="compute", a_ns=60 * MS, b_ns=52 * MS, effect=effect(-8 * MS, MS, verdict)),
            PartDifference(part="idle_loader", a_ns=40 * MS, b_ns=20 * MS, effect=effect(-20 * MS, MS, verdict)),
        ),
        ops=(addmm, fused),
        only_in_a=(),
        only_in_b=(OpAlone(name="aten::gelu", count=8, host_self_ns=3 * MS),),
        notes=("A ran on NVIDIA Imaginary 100, B on Other Imaginary 200",),
    )


@pytest.mark.parametrize(("format", "suffix"), [("text", "txt"), ("json", "json"), ("markdown", "md")])
def test_golden(format: str, suffix: str) -> None:
    """Update with SLIPSTREAM_UPDATE_GOLDEN=1 pytest tests/reports, then read the difference."""
    shown = render(document(), format)
    golden = GOLDEN / f"difference.{suffix}"
    if os.environ.get("SLIPSTREAM_UPDATE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_json_follows_the_published_schema_and_reads_back() -> None:
    text = render(document(), "json")
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(text))
    assert msgspec.json.decode(text, type=Difference) == document()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_text_fits_the_terminal(width: int) -> None:
    lines = render(document(), "text", Style(width=width)).splitlines()
    assert max(map(len, lines)) <= width


def test_each_verdict_says_what_it_rests_on() -> None:
    assert changes.headline(document("faster")).startswith(
        "Faster: B's median step of 72.0 ms is 28.0 ms (28 %) shorter"
    )
    within = changes.headline(document("no_difference_shown"))
    assert within.startswith("No difference shown:")
    assert "40.0 ms would have shown" in within
    assert "-68.0 ms to +12.0 ms" in within
    cannot = changes.headline(document("cannot_tell"))
    assert cannot.startswith("Cannot tell:")
    assert "B holds a single step" in cannot
    assert "interval" not in cannot


def test_the_largest_part_is_named_with_its_own_verdict() -> None:
    assert (
        changes.largest(document())
        == "The largest change is in idle: data loader: -20.0 ms per step, beyond the noise."
    )
    assert changes.largest(document("no_difference_shown")).endswith("per step, within the noise.")
    nothing = msgspec.structs.replace(document(), parts=())
    assert changes.largest(nothing) == ""


def test_without_parts_the_reason_is_told_and_no_empty_table() -> None:
    bare = msgspec.structs.replace(document(), parts=(), ops=(), notes=("only the steps are compared. A: no work",))
    text = render(bare)
    assert "only the steps are compared" in text
    assert "Where the difference comes from" not in text
    assert "Where the difference" not in render(bare, "markdown")


def test_a_comparison_is_no_single_table() -> None:
    with pytest.raises(BadInput, match="csv"):
        render(document(), "csv")
