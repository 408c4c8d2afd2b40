"""Every treatment: where it applies, what it does, and what proves it."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from slipstream.capture.job import Choice
from slipstream.model import BadInput
from slipstream.rules.registry import all_rules
from slipstream.tuning import Environment, all_treatments, treatment_of
from slipstream.tuning.treatments.trim_padding import TrimPadding

torch = pytest.importorskip("torch")

CPU = Environment(torch_version=(2, 13), device_kind="cpu", cores_allowed=4, compiler=True)
H100 = Environment(torch_version=(2, 13), device_kind="cuda", compute_capability=(9, 0), cores_allowed=16)
V100 = msgspec.structs.replace(H100, compute_capability=(7, 0))


def test_rules_name_treatments_that_exist_and_share_their_class() -> None:
    for code, rule in all_rules().items():
        if rule.treatment is not None:
            assert rule.treatment in all_treatments(), code


@pytest.mark.parametrize("name", all_treatments())
def test_every_treatment_explains_itself(name: str) -> None:
    treatment = treatment_of(Choice(name=name))
    assert treatment.help
    assert treatment.permanent().summary
    if name != "thread_count":  # its proof is what torch uses, which may be right by itself
        assert not treatment.proof().applied, "nothing was installed"


@pytest.mark.parametrize(
    ("name", "environment", "word"),
    [
        ("matmul_precision", CPU, "NVIDIA"),
        ("matmul_precision", V100, "8.0"),
        ("matmul_precision", H100, None),
        ("cudnn_benchmark", CPU, "cuDNN"),
        ("cudnn_benchmark", H100, None),
        ("autocast", CPU, "emulated"),
        ("autocast", msgspec.structs.replace(CPU, cpu_flags=frozenset({"amx_bf16"})), None),
        ("autocast", V100, "8.0"),
        ("compile_model", msgspec.structs.replace(CPU, compiler=False), "C++ compiler"),
        ("compile_model", msgspec.structs.replace(V100, compute_capability=(6, 1)), "7.0"),
        ("memory_allocator", CPU, "not installed"),
        ("memory_allocator", msgspec.structs.replace(CPU, platform="darwin"), "Linux"),
        ("memory_allocator", msgspec.structs.replace(CPU, libraries={"tcmalloc": "libtcmalloc.so"}), None),
        ("loader_workers", msgspec.structs.replace(CPU, cores_allowed=1), "one core"),
        ("thread_count", msgspec.structs.replace(CPU, variables={"OMP_NUM_THREADS": "4"}), "already"),
    ],
)
def test_where_it_applies(name: str, environment: Environment, word: str | None) -> None:
    reason = treatment_of(Choice(name=name)).applies_to(environment)
    assert (reason is None) == (word is None)
    assert word is None or word in str(reason)


def test_settings_are_checked() -> None:
    with pytest.raises(BadInput, match="there is no treatment magic"):
        treatment_of(Choice(name="magic"))
    with pytest.raises(BadInput, match="has no setting speed"):
        treatment_of(Choice(name="trim_padding", options={"speed": 1}))
    with pytest.raises(BadInput, match="is to be int"):
        treatment_of(Choice(name="trim_padding", options={"multiple": "8"}))


def padded(*lengths: int, width: int = 16, label: int = -100) -> dict[str, Any]:
    mask = torch.tensor([[int(place < length) for place in range(width)] for length in lengths])
    return {
        "input_ids": mask * 7,
        "attention_mask": mask,
        "labels": torch.where(mask > 0, 7, label),
        "pairs": torch.ones(len(lengths), width, width),
        "class": torch.zeros(len(lengths)),
    }


def test_padding_is_cut_to_the_longest_rounded_up() -> None:
    treatment = TrimPadding({"multiple": 4})
    found = treatment.trimmed(padded(3, 5))
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        "input_ids": (2, 8),
        "attention_mask": (2, 8),
        "labels": (2, 8),
        "pairs": (2, 8, 8),
        "class": (2,),
    }
    assert all(value.is_contiguous() for value in found.values())
    assert treatment.proof().applied
    assert treatment.proof().evidence == "50 % of the columns of 1 batches with a mask were cut"


def test_what_counts_is_not_cut() -> None:
    treatment = TrimPadding()
    for batch in (
        padded(3, 5, label=0),  # labels that a loss does not leave out
        padded(16, 2),
        {"input_ids": torch.ones(2, 16)},
        (torch.ones(2, 16),),
        padded(3, 5) | {"attention_mask": torch.tensor([[0, 1] * 8, [1, 1] * 8])},
    ):
        assert treatment.trimmed(batch) is batch
    assert not treatment.proof().applied
    assert "1 were left alone" in treatment.proof().evidence


SCRIPT = """
import torch
from slipstream.capture.job import Choice
from slipstream.tuning import treatment_of
treatment = treatment_of(Choice(name={name!r}, options={options!r}))
treatment.install()
from torch.utils.data import DataLoader
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 2))
optimizer = torch.optim.AdamW(model.parameters())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model
    def forward(self, x):
        return self.inner(x)
net = Net()
for x in DataLoader(torch.randn(8, 3, 8, 8), batch_size=2):
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
assert all(p.dtype == torch.float32 for p in model.parameters())
print(treatment.proof())
"""


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("fused_optimizer", "1 of 1 param groups of AdamW have fused=True"),
        ("channels_last", "weights of 1 convolutions and 3 inputs have their channels last"),
        ("compile_model", "1 graphs of Net were compiled"),
        ("autocast", "3 forward passes ran under autocast with bfloat16"),
        ("garbage_collection", "gc.get_threshold() is (100000, 50, 100)"),
        ("loader_workers", "1 data loaders were given 2 workers"),
        ("cudnn_benchmark", "torch.backends.cudnn.benchmark is True"),
        ("matmul_precision", 'torch.get_float32_matmul_precision() is "high"'),
    ],
)
def test_it_takes_effect_and_proves_it(name: str, evidence: str) -> None:
    code = SCRIPT.format(name=name, options={})
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "applied=True" in run.stdout
    assert evidence in run.stdout
