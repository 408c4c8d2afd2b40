"""What the rules say about real recordings; found through SLIPSTREAM_CORPUS, skipped without it."""

import functools
import os
from pathlib import Path

import pytest

from slipstream.api import load
from slipstream.model import CAUSES, Diagnosis
from slipstream.rules.diagnosis import diagnose

CORPUS = os.environ.get("SLIPSTREAM_CORPUS")
pytestmark = pytest.mark.skipif(CORPUS is None, reason="real recordings are found through SLIPSTREAM_CORPUS")
NAMES = sorted(path.name for path in Path(CORPUS or ".").glob("*.json.gz")) if CORPUS else []


@functools.cache
def diagnosis(name: str) -> Diagnosis:
    trace = load(Path(str(CORPUS)) / name)
    assert not isinstance(trace, list)
    return diagnose(trace).diagnosis


def codes(name: str) -> list[str]:
    return [finding.code for finding in diagnosis(name).findings]


def share(name: str, code: str) -> float:
    found = diagnosis(name)
    cost = sum(finding.cost_ns for finding in found.findings if finding.code == code)
    return cost / (found.window.end_ns - found.window.start_ns)


def reason(name: str, code: str) -> str:
    (dismissal,) = (dismissal for dismissal in diagnosis(name).dismissed if dismissal.code == code)
    return dismissal.reason


def test_owlv2_loses_half_of_its_step_to_the_loader_at_the_users_function():
    first = diagnosis("h100_owlv2.json.gz").findings[0]
    assert first.code == "INP001"
    assert share("h100_owlv2.json.gz", "INP001") == pytest.approx(0.51, abs=0.02)
    assert first.location is not None
    assert first.location.function == "run_on_input"
    assert "transformers" not in first.location.file
    assert codes("h100_owlv2.json.gz")[1] == "CMP001"
    assert "PRC002" not in codes("h100_owlv2.json.gz")


def test_owlv2s_uploads_hold_the_host_but_hardly_the_device():
    text = reason("h100_owlv2.json.gz", "INP003")
    assert "held the host for 3" in text
    assert "run_on_input" in text


def test_resnet_waits_for_its_loader_until_workers_make_the_batches():
    assert codes("v100_resnet50_workers0.json.gz")[0] == "INP001"
    assert share("v100_resnet50_workers0.json.gz", "INP001") > 0.3
    assert "INP001" not in codes("v100_resnet50_workers4.json.gz")


def test_synchronisation_comes_first_where_it_dominates():
    assert codes("a100_sync_bound_rank0of16.json.gz")[0] == "SYN001"
    assert share("a100_sync_bound_rank0of16.json.gz", "SYN001") > 0.3


def test_small_models_are_launch_bound():
    # Transformers inspects signatures in every forward of BERT: Python in pieces longer than a launch.
    expected = {
        "h100_bert_small.json.gz": ["LCH001", "HST005"],
        "mi300_bert_small.json.gz": ["LCH001", "HST005"],
        "h100_vit_nsfw.json.gz": ["LCH001"],
    }
    assert {name: codes(name) for name in expected} == expected
    (python,) = (finding for finding in diagnosis("h100_bert_small.json.gz").findings if finding.code == "HST005")
    assert any("inspect.py" in evidence.event for evidence in python.evidence)


def test_resnet_zeroes_its_gradients_at_the_users_function():
    # torch 1.x cleared gradients with zeros unless told otherwise: a fill per parameter.
    for name in ("v100_resnet50_workers0.json.gz", "v100_resnet50_workers4.json.gz"):
        (finding,) = (finding for finding in diagnosis(name).findings if finding.code == "LCH003")
        assert finding.location is not None
        assert "161 fills a step" in finding.title


def test_owlv2_multiplies_tables_of_an_odd_number_of_positions():
    # 5,185 patches: kernels named align1 at 50 to 66 TFLOP/s beside 500 and more for aligned products.
    assert share("h100_owlv2.json.gz", "PRC003") == pytest.approx(0.12, abs=0.02)


def test_miopen_transposes_around_its_convolutions():
    assert codes("mi210_gpu_only.json.gz")[0] == "CMP002"


def test_small_all_reduces_could_be_merged_but_not_those_between_layers():
    assert "COM002" in codes("v100_many_allreduce_rank1of2.json.gz")
    assert "COM002" not in codes("b200_eager_no_steps.json.gz")


def test_many_all_reduces_are_exposed_and_launched_one_by_one():
    assert {"LCH001", "COM001", "LCH002"} <= set(codes("v100_many_allreduce_rank1of2.json.gz"))


def test_a_busy_compiled_model_is_left_alone():
    assert codes("mi300_torch_compile_triton.json.gz") == []


@pytest.mark.parametrize("name", NAMES)
def test_no_finding_costs_more_than_there_is(name):
    found = diagnosis(name)
    length = found.window.end_ns - found.window.start_ns
    idle = {cause: sum(idle.ns for idle in found.window.idle_causes if idle.cause == cause) for cause in CAUSES}
    for finding in found.findings:
        assert 0 < finding.cost_ns <= length
        assert len(finding.evidence) <= 3
        assert "\n" not in finding.title
    if found.window.idle_ns is not None:
        for code, cause in {"INP001": "loader", "LCH001": "launch", "SYN001": "sync", "SYN002": "sync"}.items():
            assert sum(f.cost_ns for f in found.findings if f.code == code) <= max(idle[cause], 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_speaks_or_says_why_it_could_not(name):
    found = diagnosis(name)
    assert len({dismissal.code for dismissal in found.not_checked}) == len(found.not_checked)
    assert not {dismissal.code for dismissal in found.not_checked} & {finding.code for finding in found.findings}
