"""Rules whose fix makes ops cheaper: what the replay says of it, on the host alone and on a device."""

from typing import Any

import pytest

from slipstream.forecast import gain_of, replay_of
from slipstream.model import Finding
from slipstream.rules.registry import all_rules
from slipstream.store import Tables
from support.tables import make_tables, span, step

US = 1_000


def gained(code: str, tables: Tables) -> Any:
    rule = all_rules()[code]
    (finding,) = (one for one in rule.check(tables) if isinstance(one, Finding))
    edits = rule.edits(tables, finding)
    assert edits
    return gain_of(replay_of(tables), edits)


def on_host() -> Tables:
    """A step of 1 ms: a product, and 100 µs of fills in zero_grad."""
    return make_tables(
        steps=[step(0, 0, 1_000 * US)],
        annotations=[span("Optimizer.zero_grad#SGD.zero_grad", 100 * US, 120 * US)],
        ops=[
            span("aten::mm", 0, 90 * US),
            span("aten::zero_", 110 * US, 100 * US),
            span("aten::mm", 300 * US, 700 * US),
        ],
    )


def test_on_the_host_the_cost_is_gone() -> None:
    gain = gained("LCH003", on_host())
    assert gain.basis == "replay"
    assert gain.expected == pytest.approx(0.1, abs=0.002)
    assert gain.low == pytest.approx(0.09, abs=0.002)
    assert gain.low <= gain.expected <= gain.high


def test_on_a_device_the_kernels_are_gone_as_well() -> None:
    """The device is what the step waits for: without the fill's kernel it is done 200 µs earlier."""
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        annotations=[span("Optimizer.zero_grad#SGD.zero_grad", 100 * US, 100 * US)],
        ops=[
            span("aten::mm", 0, 20 * US),
            span("aten::zero_", 110 * US, 20 * US),
            span("aten::item", 300 * US, 700 * US),
        ],
        runtime=[
            span("cudaLaunchKernel", 1 * US, 2 * US, correlation=2),
            span("cudaLaunchKernel", 111 * US, 2 * US, correlation=1),
            span("cudaStreamSynchronize", 305 * US, 690 * US),
        ],
        kernels=[span("gemm", 5 * US, 780 * US, correlation=2), span("fill", 785 * US, 200 * US, correlation=1)],
        syncs=[span("Stream Synchronize", 306 * US, 688 * US, stream=7)],
    )
    gain = gained("LCH003", tables)
    assert gain.expected == pytest.approx(0.2, abs=0.02)


def test_the_optimizer_loses_a_part_of_its_calls() -> None:
    ops = [
        span(f"aten::op{kind}_", (110 + 10 * number + kind) * US, US // 2) for number in range(40) for kind in range(10)
    ]
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        annotations=[span("Optimizer.step#SGD.step", 100 * US, 420 * US)],
        ops=[span("aten::mm", 0, 90 * US), *ops, span("aten::mm", 600 * US, 400 * US)],
    )
    rule = all_rules()["LCH002"]
    (finding,) = (one for one in rule.check(tables) if isinstance(one, Finding))
    gain = gained("LCH002", tables)
    share = finding.cost_ns / (1_000 * US)
    assert gain.low < gain.expected < gain.high <= share + 1e-6
    assert gain.expected == pytest.approx(0.7 * share, rel=0.05)


def test_collections_of_the_window_are_replayed() -> None:
    tables = make_tables(
        steps=[step(0, 0, 1_000 * US)],
        python=[span("<built-in function collect>", 200 * US, 300 * US)],
        ops=[span("aten::mm", 0, 200 * US), span("aten::mm", 500 * US, 500 * US)],
    )
    gain = gained("HST001", tables)
    assert gain.expected == pytest.approx(0.27, abs=0.01)
    assert gain.high == pytest.approx(0.3, abs=0.01)
