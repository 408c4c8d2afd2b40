"""A plain loop over a DataLoader: what is recorded, where it lies, and that the job does not notice."""

import importlib.resources
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from support.jobs import MODEL, Record, Run

SCRIPT = (
    MODEL
    + """
from torch.utils.data import DataLoader, TensorDataset

def train(loader, optimizer):
    for x, y in loader:
        output = model(x)
        loss = nn.functional.mse_loss(
            output,
            y,
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.17g}")

data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = DataLoader(data, batch_size=4, shuffle=True)
train(loader, torch.optim.AdamW(model.parameters(), lr=0.01))
print(sys.argv, __name__, sys.path[0] == os.path.dirname(os.path.abspath(__file__)), os.getcwd())
print(sum(parameter.double().sum() for parameter in model.parameters()).item())
"""
)


@pytest.fixture(scope="module")
def run(record: Record) -> Run:
    return record(SCRIPT, "--lr", "1")


def test_the_job_prints_the_same_with_and_without(
    run: Run, bare: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    plain = bare(run.script, "--lr", "1")
    assert plain.returncode == run.outcome.returncode == 0
    assert run.stdout == plain.stdout
    assert run.stderr == plain.stderr


def test_every_step_is_counted(run: Run) -> None:
    steps = run.table("job_steps")
    assert steps["number"].to_list() == list(range(16))
    assert steps["backward_calls"].to_list() == [1] * 16
    assert steps["optimizer_steps"].to_list() == [1] * 16
    assert not steps["skipped"].any()
    inside = steps["loader_ns"] + steps["optimizer_ns"] + steps["backward_ns"]
    assert (inside <= steps["dur_ns"]).all()
    assert (inside > 0).all()


def test_the_window_holds_the_steps_it_was_asked_for(run: Run) -> None:
    info = run.outcome.info
    assert (info.outcome_code, info.exit_status) == ("complete", 0)
    recorded = run.table("job_steps").filter(pl.col("phase") == "recorded")["number"].to_list()
    assert len(recorded) == 6
    assert recorded[0] >= 3
    assert run.marks() == [f"ProfilerStep#{number}" for number in recorded]
    (places,) = run.table("job_steps").filter(pl.col("phase") == "places")["number"]
    assert places == recorded[-1] + 1


def test_measured_times_lie_on_the_clock_of_the_trace(run: Run) -> None:
    trace = run.trace()
    base = trace["baseTimeNanoseconds"]
    waits = run.table("loader_waits")
    recorded = run.table("job_steps").filter(pl.col("phase") == "recorded")["number"].to_list()
    ours = waits.filter(pl.col("step").is_in(recorded)).select("start_ns", "dur_ns").rows()
    theirs = sorted(
        (base + round(event["ts"] * 1000), round(event["dur"] * 1000))
        for event in trace["traceEvents"]
        if event["name"].startswith("enumerate(DataLoader)")
    )
    assert len(ours) == len(theirs) == 6
    for (start, duration), (other_start, other_duration) in zip(ours, theirs, strict=True):
        # The wait encloses the range that torch opens inside it, with a few microseconds around it.
        assert -2_000 < other_start - start < 2_000_000
        assert -2_000 < start + duration - other_start - other_duration < 2_000_000
    closest = min(other_start - start for (start, _), (other_start, _) in zip(ours, theirs, strict=True))
    assert closest < 200_000


def test_places_are_statements(run: Run) -> None:
    step = run.line_of("optimizer.step()")
    assert run.table("job_steps").select("file", "line", "function").unique().rows() == [("job.py", step, "train")]
    fetch = run.line_of("for x, y in loader")
    assert run.table("loader_waits").select("file", "line", "function").unique().rows() == [("job.py", fetch, "train")]
    spans = run.table("phases").select("phase", "line").unique().sort("phase").rows()
    assert spans == [("backward", run.line_of("loss.backward()")), ("optimizer", step)]


def test_lines_of_one_step_are_traced(run: Run) -> None:
    lines = run.table("lines")
    assert lines["file"].unique().to_list() == ["job.py"]
    assert lines["ts_ns"].is_sorted()
    assert lines["thread_id"].n_unique() == 1
    in_train = lines.filter(pl.col("function") == "train")
    assert in_train["def_line"].unique().to_list() == [run.line_of("def train")]
    distinct = in_train["line"].unique(maintain_order=True).to_list()
    statements = ("optimizer.step()", "print(f", "for x, y", "output = model", "loss = nn", "zero_grad", "backward()")
    assert distinct == [run.line_of(text) for text in statements]
    # What already ran when the step began comes first, outermost first.
    assert lines["function"].head(2).to_list() == ["<module>", "train"]


def test_lines_and_ops_of_that_step_share_thread_and_clock(run: Run) -> None:
    trace = run.trace("places.json.gz")
    base = trace["baseTimeNanoseconds"]
    lines = run.table("lines")
    ops = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]
    assert {event["tid"] for event in ops} == set(lines["thread_id"])

    def line_at(event: dict[str, float]) -> int:
        before = lines.filter(pl.col("ts_ns") <= base + round(event["ts"] * 1000))
        return int(before["line"][-1])

    (loss,) = (event for event in ops if event["name"] == "aten::mse_loss")
    assert line_at(loss) == run.line_of("loss = nn")
    assert {line_at(event) for event in ops if event["name"] == "aten::linear"} == {run.line_of("output = model")}
    assert line_at(next(event for event in ops if event["name"] == "aten::item")) in {
        run.line_of("optimizer.step()"),
        run.line_of("print(f"),
    }


def test_running_functions_have_the_line_of_their_def_in_the_trace(run: Run) -> None:
    names = {event["name"] for event in run.trace()["traceEvents"] if event.get("cat") == "python_function"}
    assert f"job.py({run.line_of('def train')}): train" in names
    assert not any(
        name.startswith("job.py(") and name.endswith(": train")
        for name in names - {f"job.py({run.line_of('def train')}): train"}
    )


def test_the_folder_describes_the_run(run: Run) -> None:
    info = run.outcome.folder.read_info()
    assert info == run.outcome.info
    assert info.command == [str(run.script), "--lr", "1"]
    assert info.device_kind in {"cpu", "cuda"}
    assert info.torch_version
    assert {"torch", "polars", "slipstream"} <= set(info.packages)
    assert info.host["cores"]
    switches = dict(run.table("switches").rows())
    assert switches["torch_threads"] == switches["OMP_NUM_THREADS"] == "1"
    assert switches["anomaly_mode"] == "off"
    assert switches["autocast"] == "off"
    leftovers = [
        path for path in Path(run.outcome.folder.root).rglob("*") if ".part" in path.name or ".raw" in path.name
    ]
    assert leftovers == []


@pytest.mark.slow
def test_the_bundled_job_prints_the_same_with_and_without(
    record: Record, bare: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    pytest.importorskip("transformers", reason="the bundled job trains a transformers model")
    script = Path(str(importlib.resources.files("slipstream.demo"))) / "train_bert.py"
    small = ("--steps", "14", "--batch-size", "8", "--layers", "1", "--hidden-size", "64", "--log-every", "1")
    run = record(script.read_text(), *small)
    plain = bare(run.script, *small)
    assert run.outcome.returncode == plain.returncode == 0, run.stderr
    assert run.outcome.info.outcome_code == "complete"
    assert run.stdout == plain.stdout
    waits = run.table("loader_waits")
    assert (waits["tokens"] == 8 * 128).all()
    assert waits["trimmable_tokens"].sum() > 0.2 * waits["tokens"].sum()
