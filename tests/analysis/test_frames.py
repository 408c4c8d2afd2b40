"""Names of Python rows taken apart, and whose code they are."""

from typing import Any

import polars as pl
import pytest

from slipstream.analysis.frames import classify, is_users
from support.tables import make_tables, span


@pytest.mark.parametrize(
    ("name", "file", "line", "function"),
    [
        ("train.py(12): main", "train.py", 12, "main"),
        ("src/models/net.py(3): <lambda>", "src/models/net.py", 3, "<lambda>"),
        ("train.py(1): <module>", "train.py", 1, "<module>"),
        (r"C:\Users\me\my project\train.py(7): step", r"C:\Users\me\my project\train.py", 7, "step"),
        ("runs (1)/train.py(7): f", "runs (1)/train.py", 7, "f"),
        ("a.py(7): call(x): y", "a.py", 7, "call(x): y"),
        ("<string>(1): __init__", "<string>", 1, "__init__"),
        ("<frozen importlib._bootstrap>(1024): _find", "<frozen importlib._bootstrap>", 1024, "_find"),
        ("  resnet.py(54): <module> ", "resnet.py", 54, "<module>"),
    ],
)
def test_parts(name: str, file: str, line: int, function: str) -> None:
    frame = classify(name)
    assert (frame.file, frame.line, frame.function) == (file, line, function)


@pytest.mark.parametrize(
    ("name", "kind", "function"),
    [
        ("<built-in method run_backward of type object at 0x7f>", "builtin", None),
        ("<built-in function len>", "builtin", None),
        ("nn.Module: Linear_12", "module", "Linear_12"),
        ("something unheard of", "builtin", None),
    ],
)
def test_rows_without_a_file(name: str, kind: str, function: str | None) -> None:
    frame = classify(name)
    assert (frame.kind, frame.file, frame.line, frame.function) == (kind, None, None, function or name)


@pytest.mark.parametrize(
    "file",
    [
        "train.py",
        "./train.py",
        "../experiments/train.py",
        "/home/user/project/train.py",
        r"D:\work\project\train.py",
        "src/models/x.py",
        "code/train.py",
        "models/resnet.py",
        "datasets/coco.py",
        "datasets/utils.py",
        "utils/logging.py",
        "data/json/read.py",
        "composer.py",
        "logging.py",
        "my_torch/x.py",
        "/home/user/lib/helpers.py",
        r"C:\me\lib\helpers.py",
        "/tmp/ipykernel_123/45.py",
        "<ipython-input-3-abc>",
        "slipstream/demo/train_bert.py",
    ],
)
def test_the_users_own(file: str) -> None:
    assert is_users(file)


@pytest.mark.parametrize(
    "file",
    [
        "torch/nn/modules/module.py",
        r"torch\cuda\__init__.py",
        "transformers/models/bert/modeling_bert.py",
        "megatron/core/transformer.py",
        "vllm/worker/model_runner.py",
        "numpy/core/fromnumeric.py",
        "PIL/Image.py",
        "datasets/arrow_dataset.py",
        "datasets/formatting/formatting.py",
        "threading.py",
        "contextlib.py",
        "asyncio/base_events.py",
        "multiprocessing/queues.py",
        "typing_extensions.py",
        "<string>",
        "<frozen runpy>",
        "<eval_with_key>.3",
        "/tmp/torchinductor_user/ab/cabc.py",
        "/home/user/.triton/cache/x/y.py",
        "/opt/conda/lib/python3.10/threading.py",
        "/usr/lib/python3/dist-packages/yaml/nodes.py",
        "/home/user/project/.venv/lib/python3.12/site-packages/mine/x.py",
        r"C:\Users\me\venv\Lib\site-packages\mine\x.py",
        r"C:\Python311\lib\threading.py",
        r"C:\Users\me\anaconda3\lib\asyncio\events.py",
        "slipstream/capture/hooks.py",
    ],
)
def test_somebody_elses(file: str) -> None:
    assert not is_users(file)


def test_a_live_capture_knows_what_was_installed() -> None:
    packages = frozenset({"torch", "obscure", "single"})
    assert not is_users("obscure/core.py", packages)
    assert not is_users("single.py", packages)
    assert is_users("obscure/core.py")
    # A directory of the user's own, although a package of that name exists elsewhere.
    assert is_users("megatron/model.py", packages)
    assert not is_users("json/decoder.py", packages)
    assert not is_users("slipstream/x.py", packages)


def test_table_has_every_distinct_name_once() -> None:
    tables = make_tables(
        python=[
            span("train.py(3): main", 0, 9),
            span("train.py(3): main", 20, 9),
            span("torch/x.py(5): f", 1, 2),
            span("mine/x.py(5): f", 1, 2),
        ],
        packages={"mine"},
    )
    rows = tables["frames"].select("name", "file", "line", "function", "kind").rows()
    assert rows == [
        ("mine/x.py(5): f", "mine/x.py", 5, "f", "library"),
        ("torch/x.py(5): f", "torch/x.py", 5, "f", "library"),
        ("train.py(3): main", "train.py", 3, "main", "user"),
    ]


def lines(python: list[dict[str, Any]], **tables: list[dict[str, Any]]) -> dict[str, int | None]:
    rows = make_tables(python=python, **tables)["frames"].select(pl.col("name").cast(pl.String), "line")
    return dict(rows.iter_rows())


RUNNING = [
    span("train.py(50): <module>", 0, 1_000),
    span("train.py(40): main", 1, 990),
    span("train.py(26): step", 2, 98),
    span("train.py(22): step", 200, 100),
    span("train.py(3): step", 400, 50),
    span("train.py(30): step", 500, 50),
]


def test_a_call_that_ran_already_has_the_def_that_other_calls_tell() -> None:
    found = lines(RUNNING)
    assert found["train.py(26): step"] == 22
    assert found["train.py(30): step"] == 30
    assert found["train.py(40): main"] == 40
    assert found["train.py(50): <module>"] == 50


def test_or_the_one_that_the_captures_lines_tell() -> None:
    def seen(function: str, def_line: int) -> dict[str, Any]:
        return {"op": "x", "nth": 0, "file": "train.py", "function": function, "def_line": def_line, "line": 41}

    found = lines(RUNNING, statements=[seen("main", 36), seen("main", 45), seen("<module>", 1), seen("step", 24)])
    assert found["train.py(40): main"] == 36
    assert found["train.py(50): <module>"] == 1
    assert found["train.py(26): step"] == 24


def test_every_thread_has_a_first_stack_and_a_name_called_again_is_a_def() -> None:
    worker = [span("train.py(60): work", 5, 100, thread=2), span("train.py(55): work", 300, 100, thread=2)]
    assert lines([*RUNNING, *worker])["train.py(60): work"] == 55
    again = span("train.py(60): work", 500, 100, thread=2)
    assert lines([*RUNNING, *worker, again])["train.py(60): work"] == 60
