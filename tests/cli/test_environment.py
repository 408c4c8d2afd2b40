import sys
from pathlib import Path

import pytest

from slipstream.cli import environment
from slipstream.cli.environment import Check, ask_torch, checks

GPU = {
    "torch": "2.13.0",
    "cuda": "13.0",
    "hip": None,
    "threads": 8,
    "devices": ["NVIDIA Imaginary 100"],
    "kernels_recorded": True,
}


def found(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, object], cores: float = 8, **environ: str
) -> dict[str, Check]:
    trouble = "" if facts else "ModuleNotFoundError: No module named 'torch'"
    monkeypatch.setattr(environment, "ask_torch", lambda environ: (facts, trouble))
    monkeypatch.setattr(environment, "allowed_cores", lambda: cores)
    return {check.name: check for check in checks(environ)}


def test_a_fit_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    all_checks = found(monkeypatch, GPU)
    states = {all_checks[name].state for name in ("python", "torch", "device", "kernel tracing", "threads")}
    assert states == {"ok"}
    assert all_checks["debug switches"].state == "ok"
    assert all_checks["anomaly mode"].state == "cannot tell"


def test_kernels_that_cannot_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    check = found(monkeypatch, GPU | {"kernels_recorded": False})["kernel tracing"]
    assert check.state == "look"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in check.why


def test_a_gpu_build_that_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    all_checks = found(monkeypatch, GPU | {"devices": [], "kernels_recorded": None})
    assert all_checks["device"].state == "look"
    assert "kernel tracing" not in all_checks


@pytest.mark.parametrize(("threads", "cores", "state"), [(8, 8, "ok"), (9, 8, "look"), (1, 2, "look"), (1, 1.5, "ok")])
def test_threads_against_cores(monkeypatch: pytest.MonkeyPatch, threads: int, cores: float, state: str) -> None:
    assert found(monkeypatch, GPU | {"threads": threads}, cores)["threads"].state == state


def test_switches_left_on_are_named_with_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    all_checks = found(monkeypatch, GPU, CUDA_LAUNCH_BLOCKING="1", TORCH_DISTRIBUTED_DEBUG="detail", PYTHONDEVMODE="0")
    assert all_checks["CUDA_LAUNCH_BLOCKING"].state == "look"
    assert all_checks["TORCH_DISTRIBUTED_DEBUG"].state == "look"
    assert not {"PYTHONDEVMODE", "debug switches"} & set(all_checks)


def test_thread_settings_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    all_checks = found(monkeypatch, GPU, OMP_NUM_THREADS="4", MKL_NUM_THREADS="2")
    assert all_checks["thread settings"].why == "OMP_NUM_THREADS=4 MKL_NUM_THREADS=2"


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert found(monkeypatch, GPU, PATH=str(tmp_path))["compiler"].state == "look"


@pytest.mark.parametrize(
    ("version", "state", "told"),
    [
        ("2.8.1+cu126", "look", "needs 2.9"),
        ("2.9.0", "ok", "built for CUDA 13.0"),
        ("2.13.0+cpu", "ok", "built for CUDA 13.0"),
        ("2.14.0", "ok", "newer than 2.13"),
        ("unknown", "cannot tell", "unknown"),
    ],
)
def test_versions_of_torch(monkeypatch: pytest.MonkeyPatch, version: str, state: str, told: str) -> None:
    check = found(monkeypatch, GPU | {"torch": version})["torch"]
    assert check.state == state
    assert told in check.why


def test_without_torch_the_rest_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    all_checks = found(monkeypatch, {})
    assert "pip install torch" in all_checks["torch"].why
    assert {all_checks["device"].state, all_checks["threads"].state} == {"cannot tell"}


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        ("raise OSError('libcudart.so.13: not found')", "OSError: libcudart.so.13: not found"),
        ("import os; os._exit(7)", "importing torch ended the process with status 7"),
        ("import os; os.abort()", "importing torch ended the process with status -6"),
    ],
)
def test_a_broken_torch_ends_only_the_child(tmp_path: Path, body: str, trouble: str) -> None:
    (tmp_path / "torch.py").write_text(body)
    facts, told = ask_torch({"PYTHONPATH": str(tmp_path)})
    assert (facts, told) == ({}, trouble)


def test_a_torch_that_never_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(environment, "PROBE_SECONDS", 0.3)
    assert ask_torch({"PYTHONPATH": str(tmp_path)}) == ({}, "importing torch did not end within 0.3 s")


def test_cores_follow_the_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("affinity is read on Linux only")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    assert environment.allowed_cores() <= 1
