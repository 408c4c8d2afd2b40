"""Every treatment: where it applies, what it does, and what proves it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipstream.capture.job import Choice
from slipstream.model import BadInput
from slipstream.rules.registry import all_rules
from slipstream.tuning import Environment, all_treatments, treatment_of
from slipstream.tuning.treatments.length_bucketing import Pools, lengths_of
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
        ("pinned_memory", CPU, "another memory"),
        ("pinned_memory", H100, None),
        ("expandable_segments", CPU, "no such setting"),
        ("expandable_segments", H100, None),
        ("expandable_segments", msgspec.structs.replace(H100, variables={"PYTORCH_ALLOC_CONF": "x"}), "already"),
        ("openmp_wait", H100, "CPU's threads"),
        ("openmp_wait", msgspec.structs.replace(CPU, variables={"OMP_WAIT_POLICY": "active"}), "already"),
        ("compile_layers", msgspec.structs.replace(CPU, compiler=False), "C++ compiler"),
        ("ddp_static_graph", CPU, "one rank"),
        ("ddp_accumulate_locally", msgspec.structs.replace(CPU, variables={"WORLD_SIZE": "2"}), None),
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


def test_pools_hold_every_sequence_once_and_are_alike() -> None:
    lengths = [index % 17 for index in range(103)]
    pools = Pools(lengths, size=8, pool=50, drop_last=False)
    batches = [*pools]
    assert len(batches) == len(pools) == 13
    assert sorted(index for batch in batches for index in batch) == [*range(103)]
    spread = [max(lengths[index] for index in batch) - min(lengths[index] for index in batch) for batch in batches]
    assert max(spread) <= 3
    dropping = Pools(lengths, size=8, pool=50, drop_last=True)
    assert len([*dropping]) == len(dropping) == 12


def test_lengths_are_those_of_real_positions() -> None:
    assert lengths_of([{"attention_mask": [1, 1, 0]}, {"attention_mask": torch.tensor([1, 0, 0])}]) == [2, 1]
    assert lengths_of([{"input_ids": [5, 6, 7]}]) == [3]
    assert lengths_of([{"pixels": [1]}]) is None
    assert lengths_of([torch.ones(3)]) is None
    assert lengths_of(iter([])) is None


SCRIPT = """
import torch
from slipstream.capture.job import Choice
from slipstream.tuning import treatment_of
treatment = treatment_of(Choice(name={name!r}, options={options!r}))
treatment.install()
from torch.utils.data import DataLoader
from torch.utils.checkpoint import checkpoint
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
    def forward(self, x):
        return checkpoint(torch.relu, self.linear(x), use_reentrant=False)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 2))
optimizer = torch.optim.AdamW(model.parameters())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
    def forward(self, x):
        x = self.inner(x)
        for block in self.blocks:
            x = block(x)
        return x
net = Net()
rows = 0
for _ in range(2):
    for x in DataLoader(torch.randn(8, 3, 8, 8), batch_size=2, num_workers={workers}):
        rows += len(x)
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
assert rows == 16, rows
assert all(p.dtype == torch.float32 for p in model.parameters())
print(treatment.proof())
"""


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("fused_optimizer", "1 of 1 param groups of AdamW have fused=True"),
        ("channels_last", "weights of 1 convolutions and 7 inputs have their channels last"),
        ("compile_model", "of Net were compiled"),
        ("compile_layers", "3 of Block compiled into 1 graphs"),
        ("keep_activations", "24 checkpointed calls kept"),
        ("gradients_to_none", "8 calls of zero_grad(set_to_none=False)"),
        ("larger_batch", "2 data loaders make batches of 4 instead of 2"),
        ("persistent_workers", "2 data loaders with workers keep them"),
        ("autocast", "7 forward passes ran under autocast with bfloat16"),
        ("garbage_collection", "gc.get_threshold() is (100000, 50, 100)"),
        ("loader_workers", "2 data loaders were given 2 workers"),
        ("cudnn_benchmark", "torch.backends.cudnn.benchmark is True"),
        ("matmul_precision", 'torch.get_float32_matmul_precision() is "high"'),
    ],
)
def test_it_takes_effect_and_proves_it(name: str, evidence: str) -> None:
    said = output_of(SCRIPT.format(name=name, options={}, workers=int(name == "persistent_workers")))
    assert "applied=True" in said
    assert evidence in said


BERT = """
import torch
from slipstream.capture.job import Choice
from slipstream.tuning import treatment_of
treatment = treatment_of(Choice(name={name!r}))
treatment.install()
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification._from_config(config, attn_implementation={attention!r})
rows = [
    {{"input_ids": torch.arange(16) + 1, "attention_mask": (torch.arange(16) < 2 + n % 7).long(), "labels": n % 2}}
    for n in range(24)
]
optimizer = torch.optim.AdamW(model.parameters())
seen = 0
for batch in DataLoader(rows, batch_size=4, shuffle=True):
    seen += len(batch["labels"])
    model(**batch).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
assert seen == 24
print(treatment.proof())
"""


@pytest.mark.parametrize(
    ("name", "attention", "applied", "evidence"),
    [
        ("sdpa_attention", "eager", True, "scaled_dot_product_attention was called 12 times"),
        ("sdpa_attention", "sdpa", False, "uses sdpa already"),
        ("length_bucketing", "sdpa", True, "1 data loaders take pools; 50 % of the columns"),
        ("trim_padding", "sdpa", True, "of the columns of 6 batches"),
    ],
)
def test_it_takes_effect_on_a_transformer(name: str, attention: str, applied: bool, evidence: str) -> None:
    pytest.importorskip("transformers")
    said = output_of(BERT.format(name=name, attention=attention))
    assert f"applied={applied}" in said
    assert evidence in said


RANKS = """
import os, sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def train(rank, file, name, micro, results):
    from slipstream.capture.job import Choice
    from slipstream.tuning import treatment_of
    treatment = treatment_of(Choice(name=name)) if name else None
    if treatment:
        treatment.install()
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(6):
        for _ in range(micro[step]):
            (model(torch.randn(8, 4)).square().mean() / micro[step]).backward()
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        weights = sum(parameter.double().sum().item() for parameter in model.parameters())
        print(f"weights {weights:.6f}", treatment.proof() if treatment else "", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1], sys.argv[2], eval(sys.argv[3]), None), nprocs=2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="gloo over a file")
@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("ddp_gradient_views", "Linear was wrapped with gradient_as_bucket_view=True"),
        ("ddp_bucket_size", "Linear was wrapped with bucket_cap_mb=100"),
        ("ddp_local_buffers", "Linear was wrapped with broadcast_buffers=False"),
        ("ddp_accumulate_locally", "8 micro-steps did not exchange gradients"),
    ],
)
def test_two_ranks_learn_the_same(name: str, evidence: str, tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    plain, treated = (
        output_of(str(script), str(tmp_path / f"file{number}"), one, "[3] * 6") for number, one in enumerate(("", name))
    )
    assert plain.split()[1] == treated.split()[1]
    assert "applied=True" in treated
    assert evidence in treated


def test_a_cycle_that_is_shorter_ends_the_job(tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    command = [sys.executable, str(script), str(tmp_path / "file"), "ddp_accumulate_locally", "[3, 3, 3, 2, 3, 3]"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode != 0
    assert "a cycle of 2 micro-steps where there were 3" in run.stderr


def output_of(script: str, *arguments: str) -> str:
    command = [sys.executable, *(("-c", script) if "\n" in script else (script, *arguments))]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout
