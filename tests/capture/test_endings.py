"""However a job ends: its end is repeated, and what was recorded until then stays."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.jobs import MODEL, Record

LOOP = (
    MODEL
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def steps(count):
    for step in range(count):
        model(batch()).mean().backward()
        optimizer.step()
"""
)


def test_exit_status(record: Record) -> None:
    run = record(LOOP + "steps(14)\nprint('end')\nsys.exit(3)")
    assert run.outcome.returncode == run.outcome.info.exit_status == 3
    assert run.stdout == "end\n"
    assert run.outcome.info.outcome_code == "complete"
    assert run.table("job_steps").height == 14


def test_exception_keeps_its_own_traceback(
    record: Record, bare: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    run = record(
        LOOP
        + """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 3
    def __getitem__(self, index):
        raise ValueError("broken sample")
steps(7)
for item in torch.utils.data.DataLoader(Data()):
    pass
"""
    )
    plain = bare(run.script)
    assert run.outcome.returncode == plain.returncode == 1
    assert "broken sample" in run.stderr
    assert run.stderr == plain.stderr
    assert run.outcome.info.outcome_code == "cut_short"
    # The step that was under way is no step: only complete ones are marked.
    assert run.marks() == [f"ProfilerStep#{number}" for number in range(int(run.marks()[0].split("#")[1]), 7)]


def test_exit_without_clean_up_keeps_the_window(record: Record) -> None:
    run = record(LOOP + "steps(14)\nos._exit(4)", warmup=3)
    assert run.outcome.returncode == 4
    assert run.outcome.info.outcome_code == "complete"
    assert len(run.marks()) == 6
    assert run.table("job_steps").height == 9  # until the window closed


def test_exit_without_clean_up_inside_the_window(record: Record) -> None:
    run = record(LOOP + "steps(6)\nos._exit(4)", warmup=3)
    assert run.outcome.info.outcome_code == "cut_short"
    assert not (run.rank / "trace.json.gz").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_deadly_signals_are_died_of_after_writing(record: Record, number: signal.Signals) -> None:
    # Whoever runs the tests under nohup has SIGHUP ignored, and every child inherits that.
    default = f"import signal\nsignal.signal({int(number)}, signal.SIG_DFL)\n"
    run = record(default + LOOP + f"steps(7)\nos.kill(os.getpid(), {int(number)})\nsteps(100)", warmup=3)
    assert run.outcome.returncode == -number
    assert run.outcome.info.outcome_code == "cut_short"
    assert number.name in str(run.outcome.info.outcome)
    assert len(run.marks()) == 4
    assert run.table("job_steps").height == 7


def test_kill_keeps_what_was_written(record: Record) -> None:
    run = record(LOOP + "steps(14)\nos.kill(os.getpid(), 9)", warmup=3)
    assert run.outcome.returncode == -signal.SIGKILL
    assert run.outcome.info.outcome_code == "complete"
    assert len(run.marks()) == 6


def test_interrupt_from_the_keyboard(record: Record) -> None:
    run = record(
        LOOP
        + """
import signal
try:
    steps(8)
    os.kill(os.getpid(), signal.SIGINT)
    steps(100)
except KeyboardInterrupt:
    print("interrupted")
    raise
""",
        warmup=3,
    )
    assert run.outcome.returncode == -signal.SIGINT
    assert run.stdout == "interrupted\n"
    assert run.outcome.info.outcome_code == "cut_short"
    assert len(run.marks()) == 5


def test_own_handlers_stay(record: Record) -> None:
    run = record(
        LOOP
        + """
import signal
signal.signal(signal.SIGTERM, lambda number, frame: print("saved") or sys.exit(0))
steps(14)
os.kill(os.getpid(), signal.SIGTERM)
steps(100)
"""
    )
    assert (run.outcome.returncode, run.stdout) == (0, "saved\n")


def test_too_few_steps(record: Record) -> None:
    run = record(LOOP + "steps(3)")
    assert run.outcome.info.outcome_code == "too_few_steps"
    assert "3 steps" in str(run.outcome.info.outcome)
    assert run.table("job_steps").height == 3
    assert not (run.rank / "trace.json.gz").exists()


def test_twelve_steps_are_enough(record: Record) -> None:
    # Step times that never get steady: each step is 1.3 times as long as the one before.
    run = record(LOOP + "import time\nfor n in range(12):\n    time.sleep(0.004 * 1.3**n)\n    steps(1)")
    assert run.outcome.info.outcome_code == "complete"
    assert len(run.marks()) == 6
    assert (run.rank / "lines.parquet").exists()


def test_no_step(record: Record) -> None:
    run = record(MODEL + "print(model(batch()).shape)")
    assert run.outcome.info.outcome_code == "no_steps"
    assert run.outcome.folder.ranks() == []
    assert run.outcome.info.torch_version


def test_no_torch(record: Record) -> None:
    run = record("import sys\nprint('torch' in sys.modules, 'slipstream' in sys.modules)\nsys.exit(5)")
    assert run.outcome.returncode == 5
    assert run.stdout == "False False\n"
    assert run.outcome.info.outcome_code == "no_torch"
    assert run.outcome.info.torch_version is None


DRIVER = """
import sys
from pathlib import Path
from slipstream.capture import JobSpec, end_like, launch
end_like(launch(JobSpec(target=sys.argv[1], output=Path(sys.argv[2]))).returncode)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_signals_to_the_launcher_reach_the_job_once(tmp_path: Path, number: signal.Signals) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "import os, signal, sys, time\n"
        "seen = []\n"
        f"signal.signal({int(number)}, lambda number, frame: seen.append(number))\n"
        "open('ready', 'w').close()\n"
        "while not seen: time.sleep(0.01)\n"
        "time.sleep(0.2)\n"
        "print(len(seen), flush=True)\n"
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"
        f"os.kill(os.getpid(), {int(number)})\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(job), str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    launcher.send_signal(number)
    stdout, _ = launcher.communicate(timeout=60)
    assert stdout == "1\n"
    assert launcher.returncode == -number


def test_signals_are_passed_on_where_they_cannot_be_waited_for(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "import signal, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))\n"
        "print('ready', flush=True)\n"
        "while not seen: time.sleep(0.01)\n"
        "raise SystemExit(7)\n"
    )
    driver = "import signal\ndel signal.sigtimedwait\n" + DRIVER
    command = [sys.executable, "-c", driver, str(job), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "ready\n"
        launcher.send_signal(signal.SIGUSR1)
        assert launcher.wait(timeout=30) == 7


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_the_job_does_not_outlive_a_killed_launcher(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-c", DRIVER, str(job), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())
        launcher.kill()
        # The pipe closes once nobody holds its other end: neither the launcher nor the job.
        assert launcher.stdout.read() == ""
    # At most a dead process that nobody has waited for is left, and that has no command line.
    proc = Path(f"/proc/{pid}/cmdline")
    assert not proc.exists() or not proc.read_bytes()
