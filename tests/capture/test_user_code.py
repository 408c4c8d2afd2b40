"""Whose code a file is, and where a statement begins."""

import sys
import sysconfig
from pathlib import Path

from slipstream.capture.statement_lines import StatementLines
from slipstream.capture.user_code import UserCode

SITE = sysconfig.get_path("purelib")
STDLIB = sysconfig.get_path("stdlib")


def test_libraries_are_not_the_users() -> None:
    code = UserCode("/home/someone/project/train.py", None)
    assert code.owns("/home/someone/project/train.py")
    assert code.owns("/home/someone/project/models/net.py")
    assert code.owns("relative.py")
    for path in (f"{SITE}/torch/nn/modules/module.py", f"{STDLIB}/threading.py", "<string>", "<frozen runpy>"):
        assert not code.owns(path)


def test_a_script_among_the_libraries_is_the_users_with_what_lies_beside_it() -> None:
    code = UserCode(f"{SITE}/tool/examples/train.py", None)
    assert code.owns(f"{SITE}/tool/examples/train.py")
    assert code.owns(f"{SITE}/tool/examples/data.py")
    assert not code.owns(f"{SITE}/tool/other.py")


def test_an_installed_module_makes_its_package_the_users() -> None:
    code = UserCode(f"{SITE}/mine/jobs/train.py", "mine.jobs.train")
    assert code.package == "mine"
    assert code.owns(f"{SITE}/mine/model.py")
    assert not code.owns(f"{SITE}/torch/__init__.py")
    single = UserCode(f"{SITE}/script.py", "script")
    assert single.owns(f"{SITE}/script.py")
    assert not single.owns(f"{SITE}/other.py")


def test_a_launcher_is_not_the_users() -> None:
    code = UserCode(f"{SITE}/torch/distributed/run.py", "torch.distributed.run")
    assert code.package is None
    assert not code.owns(f"{SITE}/torch/distributed/run.py")


def test_own_code_is_never_the_users() -> None:
    import slipstream.capture.job

    assert not UserCode(None, None).owns(slipstream.capture.job.__file__)


def test_the_innermost_frame_of_the_user() -> None:
    place = UserCode(None, None).innermost(sys._getframe())
    assert place is not None
    code, line = place
    assert code.co_name == "test_the_innermost_frame_of_the_user"
    assert Path(__file__).read_text().splitlines()[line - 1].strip().startswith("place =")


def test_lines_inside_a_statement_lead_to_its_first(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "def f(\n"  # 1
        "    a,\n"  # 2
        "):\n"  # 3
        "    x = g(\n"  # 4
        "        a,\n"  # 5
        "    )\n"  # 6
        "    for y in h(\n"  # 7
        "        x\n"  # 8
        "    ):\n"  # 9
        "        k(y)\n"  # 10
        "    else:\n"  # 11
        "        m()\n"  # 12
        "    return x\n"  # 13
    )
    lines = StatementLines()
    first = [lines.first(str(source), line) for line in range(1, 14)]
    assert first == [1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 11, 12, 13]
    assert lines.first(str(tmp_path / "missing.py"), 5) == 5
