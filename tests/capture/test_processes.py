"""Which processes record: those that train, however they were started; and what the job's environment looks like."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slipstream.capture import JobSpec, launch
from slipstream.model import CannotStart
from support.jobs import MODEL, Record

LOOP = (
    MODEL
    + """
def steps(count):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(count):
        model(batch()).mean().backward()
        optimizer.step()
"""
)


def test_loader_workers_do_not_record(record: Record) -> None:
    run = record(
        MODEL
        + """
from torch.utils.data import DataLoader, Dataset, get_worker_info
class Data(Dataset):
    def __len__(self):
        return 60
    def __getitem__(self, index):
        return torch.full((8,), float(index)), os.getpid()
if __name__ == "__main__":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for start in ("fork", "spawn"):
        pids = set()
        for x, pid in DataLoader(Data(), batch_size=4, num_workers=1, multiprocessing_context=start):
            model(x).mean().backward()
            optimizer.step()
            pids.update(pid.tolist())
        print(len(pids), os.getpid() in pids)
"""
    )
    assert run.stdout == "1 False\n" * 2
    assert run.stderr == ""
    assert run.outcome.folder.ranks() == [0]
    waits = run.table("loader_waits")
    assert waits["workers"].to_list() == [1] * 30
    assert waits["first"].to_list() == ([True] + [False] * 14) * 2
    assert waits["batch_size"].to_list() == [4] * 30
    assert run.outcome.info.outcome_code == "complete"


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_child_that_trains_records(record: Record, start: str) -> None:
    run = record(
        LOOP
        + f"""
if __name__ == "__main__":
    import multiprocessing
    child = multiprocessing.get_context("{start}").Process(target=steps, args=(16,))
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
    )
    assert run.outcome.returncode == 0, run.stderr
    assert run.outcome.info.outcome_code == "complete"
    assert len(run.marks()) == 6
    assert run.table("job_steps").height == 16  # written at the end of a process that atexit does not reach


def test_of_two_trainers_the_first_records(record: Record) -> None:
    run = record(
        LOOP
        + """
steps(14)
if os.fork() == 0:
    steps(30)
    os._exit(0)
os.wait()
"""
    )
    assert run.table("job_steps").height == 14
    assert run.outcome.folder.ranks() == [0]


def test_ranks_have_folders_of_their_own(record: Record) -> None:
    run = record(
        MODEL
        + """
import torch.distributed as dist
def steps(rank):
    dist.init_process_group("gloo", init_method=f"file://{os.path.abspath('meet')}", rank=rank, world_size=2)
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(14):
        parallel(batch()).mean().backward()
        optimizer.step()
    dist.destroy_process_group()
if __name__ == "__main__":
    torch.multiprocessing.spawn(steps, nprocs=2)
"""
    )
    assert run.outcome.returncode == 0, run.stderr
    folder = run.outcome.folder
    assert folder.ranks() == [0, 1]
    assert all((folder.rank(rank) / "trace.json.gz").exists() for rank in folder.ranks())
    assert run.outcome.info.world_size == 2
    assert run.trace()["distributedInfo"]["rank"] == 0


def test_torch_may_be_imported_late_and_inside_a_function(record: Record) -> None:
    run = record(
        """
        def main():
            from torch import nn, optim, randn
            import torch.optim as same
            assert same is optim
            model = nn.Linear(8, 1)
            optimizer = optim.SGD(model.parameters(), lr=0.01)
            for step in range(14):
                model(randn(4, 8)).mean().backward()
                optimizer.step()
        main()
        """
    )
    assert run.outcome.info.outcome_code == "complete"
    assert run.table("job_steps").height == 14


def test_modules_are_run_like_python_does(record: Record) -> None:
    run = record(
        LOOP + "steps(14)\nprint(__name__, __spec__.name, sys.argv[1:], sys.path[0] == os.getcwd())",
        "--lr",
        "-m",
        name="package/training.py",
        target="package.training",
        is_module=True,
    )
    assert run.stdout == "__main__ package.training ['--lr', '-m'] True\n"
    assert run.outcome.info.command == ["-m", "package.training", "--lr", "-m"]
    assert run.outcome.info.outcome_code == "complete"
    assert set(run.table("job_steps")["file"]) == {"package/training.py"}


def test_the_environment_is_the_users_own(
    record: Record,
    bare: Callable[..., "subprocess.CompletedProcess[str]"],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.users_own = __file__")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    text = """
        import sys
        print(sys.users_own, [entry for entry in sys.path], sys.modules["sitecustomize"].__file__)
        import torch
        print(torch.__spec__.loader.get_source("torch")[:20], [type(finder) for finder in sys.meta_path])
    """
    run = record(text)
    plain = bare(run.script)
    assert plain.returncode == 0
    assert run.stdout == plain.stdout
    assert run.stderr == plain.stderr


def test_an_existing_tracer_is_left_alone(record: Record) -> None:
    run = record(
        LOOP
        + """
def tracer(frame, event, argument):
    return None
sys.settrace(tracer)
steps(14)
print(sys.gettrace() is tracer)
"""
    )
    assert run.stdout == "True\n"
    assert run.outcome.info.outcome_code == "complete"
    assert "lines were not traced" in str(run.outcome.info.outcome)
    assert not (run.rank / "lines.parquet").exists()


def test_tracing_ends_with_its_step(record: Record) -> None:
    run = record(LOOP + "steps(14)\nprint(sys.gettrace(), sys.getprofile(), sys._getframe().f_trace)")
    assert run.stdout == "None None None\n"


def test_a_failure_of_the_recording_is_told_and_leaves_the_job_alone(record: Record) -> None:
    run = record(
        LOOP + "steps(5)\nimport shutil\nshutil.rmtree('run/rank0')\nsteps(10)\nprint('end')",
        warmup=4,
        steps=8,
    )
    assert (run.outcome.returncode, run.stdout, run.stderr) == (0, "end\n", "")
    assert run.outcome.info.outcome_code == "failed"
    assert "rank0" in str(run.outcome.info.outcome)


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"target": "missing.py"}, "no script missing.py"),
        ({"target": "missing_module.train", "is_module": True}, "no module named missing_module"),
    ],
)
def test_what_is_not_there_cannot_be_started(tmp_path: Path, wishes: dict[str, object], said: str) -> None:
    with pytest.raises(CannotStart, match=said):
        launch(JobSpec(output=tmp_path / "run", **wishes))  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_without_torch_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "job.py"
    script.touch()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(CannotStart, match="pip install torch"):
        launch(JobSpec(target=str(script), output=tmp_path / "run"))


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "job.py").touch()
    with pytest.raises(CannotStart, match="not empty"):
        launch(JobSpec(target=str(tmp_path / "job.py"), output=tmp_path))
