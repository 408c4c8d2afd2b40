"""Every metric on every real recording: parts add up, shares are shares, and figures known by hand come out."""

import functools
import os
from pathlib import Path

import polars as pl
import pytest

import slipstream
from slipstream.analysis import tables_of
from slipstream.store import METRICS, Tables, Trace

CORPUS = os.environ.get("SLIPSTREAM_CORPUS")
FILES = sorted(Path(CORPUS).rglob("*.json.gz")) if CORPUS else []
if not FILES:
    pytest.skip("real recordings are found through SLIPSTREAM_CORPUS", allow_module_level=True)


@functools.cache
def tables(path: Path) -> Tables:
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    return tables_of(trace)


def named(name: str) -> Tables:
    found = [path for path in FILES if path.name == f"{name}.json.gz"]
    if not found:
        pytest.skip(f"{name} is not among the recordings")
    return tables(found[0])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_parts_add_up_and_shares_are_shares(path: Path) -> None:
    found = tables(path)
    answered = {metric.name for metric in METRICS if found.has(metric.name)}
    assert "op_groups" in answered
    window = found.row("window")
    length = int(str(window["end_ns"])) - int(str(window["start_ns"]))
    if "overlap" in answered:
        whole = found["overlap"].filter(pl.col("step").is_null())
        assert whole.group_by("device").agg(pl.col("ns").sum())["ns"].to_list() == [length] * whole["device"].n_unique()
        idle = found["stream_idle"].filter(pl.col("scope").cast(pl.String) == "device")
        parts = whole.filter(pl.col("overlap").cast(pl.String) == "idle").sort("device")
        assert idle.filter(pl.col("idle_ns") > 0)["idle_ns"].to_list() == parts["ns"].to_list()
    if "mfu" in answered:
        utilisation = found["mfu"]
        assert utilisation["mfu"].fill_null(0).is_between(0, 1).all()
        assert (utilisation["flops"] > 0).all()
        assert (utilisation["mfu"].is_null() == utilisation["reason"].is_not_null()).all()
    if "roofline" in answered:
        rows = found["roofline"]
        assert rows["flops_share"].fill_null(0).is_between(0, 1.05).all()
        # Caches serve what was just written; far above the memory's peak would be bytes that are not moved.
        assert rows["bw_share"].fill_null(0).is_between(0, 1.5).all()
    if "queue_depths" in answered:
        assert (found["queue_depths"]["depth"] >= 0).all()
    if "occupancy" in answered:
        shares = found["occupancy"].select("occupancy_share", "resident_share", "sm_share", "tail_share")
        assert all(shares[name].fill_null(0).is_between(0, 1).all() for name in shares.columns)
    if "memory_peak" in answered:
        sums = (
            found["memory_peak"]
            .group_by("device_type", "device")
            .agg(pl.col("live_bytes").sum(), pl.col("peak_bytes").first())
        )
        assert (sums["live_bytes"] == sums["peak_bytes"]).all()
        assert (found["memory_peak"]["live_bytes"] >= 0).all()


def test_operations_of_a_resnet50_step() -> None:
    # 4.089 x 10^9 multiplications per image of 224 x 224, three times that per training step; the first convolution
    # needs no gradient of its input.
    step = 32 * 2 * (3 * 4_089_184_256 - 64 * 3 * 49 * 112 * 112)
    for name in ("v100_resnet50_workers0", "v100_resnet50_workers4"):
        assert named(name)["mfu"]["flops_per_step"].to_list() == [pytest.approx(step, rel=1e-4)] * 2


def test_resident_warps_agree_with_the_profilers_own_estimate() -> None:
    # The profiler counts the empty slots of small launches as well, so its estimate is the resident share or less;
    # the two are the same, rounded, where every launch of a kernel fills the device.
    for name in ("v100_many_allreduce_rank1of2", "h100_owlv2"):
        rows = named(name)["occupancy"].filter(pl.col("occupancy_share") > 0)
        assert rows.height > 20
        assert (rows["resident_share"] - rows["occupancy_share"] > -0.01).all()
    # (Kernels of many shapes have small launches among them.)
    filling = named("h100_owlv2")["occupancy"].filter((pl.col("waves") > 4) & (pl.col("tail_share") < 0.1))
    difference = (filling["resident_share"] - filling["occupancy_share"]).abs()
    assert (difference < 0.01).sum() > 4
    assert difference.max() < 0.1


def test_the_tree_of_modules_holds_the_device_work_of_the_window() -> None:
    found = named("h100_owlv2")
    start, end = (int(str(found.row("window")[name])) for name in ("start_ns", "end_ns"))
    work = found["device_work"].filter(pl.col("ts_ns").is_between(start, end, closed="left"))["dur_ns"].sum()
    modules = found["module_stats"]
    assert modules["device_self_ns"].sum() + modules["backward_device_self_ns"].sum() == work
    assert "Owlv2ForObjectDetection_0/Owlv2Model_0" in modules["module"].cast(pl.String)
