"""What fails is told before a run ends, also by the processes of a run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """\
import pytest
def test_right(): pass
def test_wrong(): assert 1 == 2, "one is not two"
@pytest.fixture
def broken(): raise OSError("no disk")
def test_not_made(broken): pass
def test_stopped(): import os; os.kill(os.getppid() if {processes} else os.getpid(), 9)
"""


@pytest.mark.parametrize("processes", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_failures_of_a_run_that_is_killed_have_names(tmp_path: Path, processes: int) -> None:
    """The last test kills the process that prints the summary."""
    (tmp_path / "test_some.py").write_text(TESTS.replace("{processes}", str(processes)), encoding="utf-8")
    pytest_run = [sys.executable, "-m", "pytest", "-p", "tests.told_at_once", "-p", "no:grader", "-q"]
    done = subprocess.run(
        [*pytest_run, "-c", "/dev/null", "--rootdir", str(tmp_path), "-n", str(processes), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -9, done.stdout + done.stderr
    assert "test_some.py::test_wrong failed (call): AssertionError: one is not two" in done.stdout
    assert "test_some.py::test_not_made failed (setup): OSError: no disk" in done.stdout
    assert "test_right" not in done.stdout and "short test summary" not in done.stdout
