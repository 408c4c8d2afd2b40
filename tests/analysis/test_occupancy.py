"""How well kernels fill the device."""

from typing import Any

import pytest

from slipstream.model import NotEnoughData
from slipstream.model.device_limits import limits_of
from slipstream.model.peaks import peaks_of
from support.tables import make_tables, span

A100 = "NVIDIA A100-SXM4-80GB"


def kernel(blocks: int, threads: int, registers: int = 32, shared: int = 0, **columns: Any) -> dict[str, Any]:
    shape = {"grid": f"[{blocks}, 1, 1]", "block": f"[{threads}, 1, 1]", "registers": registers, "shared_bytes": shared}
    return span("k", columns.pop("ts_ns", 0), columns.pop("dur_ns", 10), **shape, **columns)


def row(*kernels: dict[str, Any], device: str | None = A100) -> dict[str, Any]:
    return make_tables(kernels=kernels, device=device)["occupancy"].row(0, named=True)


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "resident", "limit"),
    [
        (32, 256, 0, 1.0, "threads"),  # 8 blocks of 8 warps = 64 warps
        (255, 256, 0, 0.125, "registers"),  # 65,536 / 8,192 per warp = 8 warps
        (128, 128, 0, 0.25, "registers"),  # 16 warps
        (32, 32, 0, 0.5, "blocks"),  # 32 blocks of one warp
        (32, 128, 80 * 1024, 0.125, "shared_memory"),  # 2 blocks of 4 warps
    ],
)
def test_what_limits_the_resident_warps(registers: int, threads: int, shared: int, resident: float, limit: str) -> None:
    found = row(kernel(10_000, threads, registers, shared))
    assert (found["resident_share"], found["limit"]) == (resident, limit)


def test_too_few_blocks_leave_multiprocessors_empty_and_the_last_wave_a_tail() -> None:
    few = row(kernel(27, 256))
    assert (few["multiprocessors"], few["sm_share"]) == (108, 0.25)
    # 8 blocks on each of 108: 864 at once.
    tail = row(kernel(864 + 216, 256))
    assert (tail["sm_share"], tail["waves"], tail["tail_share"]) == (1.0, 1.25, pytest.approx(1 - 1.25 / 2))
    assert row(kernel(1_728, 256))["tail_share"] == 0


def test_figures_are_weighted_by_time() -> None:
    found = row(
        kernel(27, 256, occupancy_share=0.2, dur_ns=30), kernel(108, 256, occupancy_share=0.6, dur_ns=10, ts_ns=100)
    )
    assert found["sm_share"] == pytest.approx((0.25 * 30 + 1.0 * 10) / 40)
    assert found["occupancy_share"] == pytest.approx((0.2 * 30 + 0.6 * 10) / 40)


def test_of_an_unknown_device_only_what_the_recording_tells() -> None:
    found = row(kernel(216, 256, blocks_per_sm=2.25, occupancy_share=0.5), device="Some GPU")
    assert (found["multiprocessors"], found["sm_share"], found["occupancy_share"]) == (96, 1.0, 0.5)
    assert (found["resident_share"], found["limit"], found["waves"]) == (None, None, None)
    nothing = row(kernel(216, 256), device=None)
    assert (nothing["multiprocessors"], nothing["sm_share"]) == (None, None)


def test_arguments_that_are_not_recorded() -> None:
    with pytest.raises(NotEnoughData, match="launch arguments"):
        make_tables(kernels=[span("k", 0, 10)])["occupancy"]
    found = row(
        kernel(304, 256, registers=32) | {"registers": None, "shared_bytes": None}, device="AMD Instinct MI300X"
    )
    assert (found["multiprocessors"], found["sm_share"], found["resident_share"]) == (304, 1.0, None)


def test_limits_are_looked_up_as_peaks_are() -> None:
    limits = limits_of("nvidia a100 sxm4 80gb")
    assert limits is not None
    assert (limits.multiprocessors, limits.threads) == (108, 2_048)
    assert limits_of("NVIDIA A100-SXM4-80GB MIG 1g.10gb") is None
    assert limits_of(None) is None
    assert peaks_of(limits.device) is not None
