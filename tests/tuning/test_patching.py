"""Treatments written into source code: what changes, and that nothing else does."""

import subprocess
from pathlib import Path

import pytest

from slipstream.capture.job import Choice, JobSpec
from slipstream.cli.patching import write_patch
from slipstream.model import BadInput
from slipstream.tuning.edits import Edit
from slipstream.tuning.patching import patched
from slipstream.tuning.registry import choices_of, treatment_of

SOURCE = '''"""Train."""
from __future__ import annotations

import torch  # the library
from torch.utils.data import DataLoader as Loader
from elsewhere import AdamW


def main():
    net = Net()
    # the loader
    loader = Loader(
        data,
        batch_size=8,   # small
    )
    fast = Loader(data, num_workers=4)
    own = Loader(data, **options)
    # the optimizer
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    other = AdamW(net.parameters())
    chosen = torch.optim.Adam(net.parameters(), foreach=True)
    for batch in loader:
        optimizer.zero_grad(set_to_none=False)
        net.zero_grad( set_to_none = False )
'''


def edit_of(name: str) -> Edit:
    (choice,) = choices_of(name)
    edit = treatment_of(choice).permanent().edit
    assert edit is not None
    return edit


def changes(name: str, source: str = SOURCE) -> tuple[list[str], list[str], int]:
    """Lines that go and lines that come."""
    found = patched(source, [edit_of(name)])
    compile(found.source, "patched", "exec")
    before, after = source.splitlines(), found.source.splitlines()
    return [one for one in before if one not in after], [one for one in after if one not in before], found.made[0]


def test_a_keyword_is_added_where_the_author_has_not_chosen() -> None:
    assert changes("fused_optimizer") == (
        ["    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)"],
        ["    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)"],
        1,
    )
    assert changes("fused_optimizer(form=foreach)")[1] == [
        "    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=True)"
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "Loader(\n    data,\n    batch_size=8,   # small\n)",
            "Loader(\n    data,\n    batch_size=8,   # small\n    num_workers=2,\n    persistent_workers=True,\n)",
        ),
        (
            "Loader(\n    data,\n    batch_size=8  # small\n)",
            "Loader(\n    data,\n    batch_size=8,  # small\n    num_workers=2,\n    persistent_workers=True\n)",
        ),
        ("Loader( data )", "Loader( data, num_workers=2, persistent_workers=True )"),
        ("Loader(data,)", "Loader(data, num_workers=2, persistent_workers=True,)"),
        (
            "Loader(data,\n       batch_size=8)",
            "Loader(data,\n       batch_size=8,\n       num_workers=2,\n       persistent_workers=True)",
        ),
        ("Loader()", "Loader(num_workers=2, persistent_workers=True)"),
    ],
)
def test_layout_and_comments_stay(before: str, after: str) -> None:
    head = "from torch.utils.data import DataLoader as Loader\n"
    assert patched(f"{head}x = {before}\n", [edit_of("loader_workers")]).source == f"{head}x = {after}\n"


def test_a_condition_on_another_keyword() -> None:
    assert changes("persistent_workers") == (
        ["    fast = Loader(data, num_workers=4)"],
        ["    fast = Loader(data, num_workers=4, persistent_workers=True, prefetch_factor=4)"],
        1,
    )


def test_a_keyword_is_taken_away() -> None:
    _, come, made = changes("gradients_to_none")
    assert (come, made) == (["        optimizer.zero_grad()", "        net.zero_grad( )"], 2)


def test_lines_stand_after_the_imports_or_before_the_optimizer() -> None:
    text = patched(SOURCE, [edit_of("garbage_collection"), edit_of("compile_model")]).source
    assert "from elsewhere import AdamW\nimport gc\n\ngc.freeze()\ngc.set_threshold(100000, 50, 100)\n" in text
    assert "    net.compile()\n    # the optimizer\n    optimizer = torch.optim.AdamW(" in text
    assert text.count("net.compile()") == 1


def test_without_a_place_nothing_changes() -> None:
    found = patched("print('nothing here')\n", [edit_of("fused_optimizer"), edit_of("compile_model")])
    assert (found.source, found.made) == ("print('nothing here')\n", (0, 0))


def test_what_is_no_python_is_told() -> None:
    with pytest.raises(BadInput, match="cannot be parsed"):
        patched("def f(:\n", [edit_of("fused_optimizer")])


@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_patch_applies(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "jobs" / "train.py"
    script.parent.mkdir()
    script.write_text(SOURCE.rstrip("\n") + ending)
    choices = choices_of("fused_optimizer,garbage_collection,memory_allocator,cudnn_benchmark,ddp_static_graph")
    told = write_patch(JobSpec(target=str(script)), choices, Path("tuned.patch"))
    assert told[0].startswith("wrote tuned.patch")
    assert told[1:] == [
        "by hand: preload tcmalloc: export LD_PRELOAD=libtcmalloc_minimal.so",
        "by hand (no place for it in train.py): static graph: DistributedDataParallel(model, ..., static_graph=True)",
    ]
    subprocess.run(["git", "apply", "tuned.patch"], check=True, cwd=tmp_path)
    text = script.read_text()
    assert "lr=1e-3, fused=True)" in text
    assert "torch.backends.cudnn.benchmark = True\n" in text
    assert "import torch  # the library\n" in text


def test_only_takes_settings() -> None:
    assert choices_of("trim-padding(multiple=16), fused_optimizer(form=foreach)") == (
        Choice(name="trim_padding", options={"multiple": 16}),
        Choice(name="fused_optimizer", options={"form": "foreach"}),
    )
    for text, why in (("trim_padding(multiple=x)", "to be int"), ("magic", "no treatment magic"), (",", "named")):
        with pytest.raises(BadInput, match=why):
            choices_of(text)
