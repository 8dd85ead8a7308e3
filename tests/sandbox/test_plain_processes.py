"""Plain processes for a student's own machine, and that the package imports where there is no Linux."""

import subprocess
import sys
from pathlib import Path

import pytest

from grader.sandbox import Exit, LocalProcesses, ProcessLimits

HERE = Path(__file__).parent
LIMITS = ProcessLimits(output_kb=10)


@pytest.fixture
def local():
    return LocalProcesses("sandbox_child", env={"PYTHONPATH": str(HERE)})


def test_it_answers_and_says_that_it_is_local(local, answer):
    with local.spawn(LIMITS) as running:
        assert running.attestation.level == "local"
        assert answer(running, "value = 6 * 7")["value"] == 42
        running.writer.close()
        assert running.wait(10) == Exit(0)


def test_printing_does_not_disturb_the_replies(local, answer):
    with local.spawn(LIMITS) as running:
        assert answer(running, "print('to the student'); value = 1")["value"] == 1
        assert answer(running, "import sys; value = sys.stdin.read()")["value"] == ""
        running.writer.close()
        running.wait(10)
        assert "to the student" in running.stderr_tail()


def test_kill(local, answer):
    with local.spawn(LIMITS) as running:
        assert answer(running, "value = 1")["value"] == 1
        assert running.wait(0.05) is None
        running.kill()
        assert running.wait(10) == Exit(None, 9)


def test_exit_code(local, answer):
    with local.spawn(LIMITS) as running:
        assert answer(running, "raise SystemExit(4)") is None
        assert running.wait(10) == Exit(4)


WITHOUT_LINUX = """
import os, sys
import selectors, shutil, site, socket, subprocess, sysconfig, tempfile
for name in ("fcntl", "resource", "pwd", "grp", "pyseccomp", "termios"):
    sys.modules[name] = None
sys.platform = "win32"
for name in ("fork", "setresuid", "pidfd_open", "wait4", "memfd_create", "setgroups", "geteuid", "getuid"):
    if hasattr(os, name):
        delattr(os, name)
del socket.AF_UNIX
import grader.sandbox
from grader.sandbox import forkserver
from grader.domain.errors import UsageError
assert grader.sandbox.survey().verdict == "refused"
try:
    grader.sandbox.Host.start("anything")
except UsageError as error:
    assert "Linux" in str(error)
else:
    raise AssertionError
print("imported")
"""


def test_it_imports_where_linux_is_missing():
    done = subprocess.run([sys.executable, "-c", WITHOUT_LINUX], capture_output=True, text=True, check=False)
    assert done.stdout == "imported\n", done.stderr


def test_it_imports_neither_torch_nor_numpy():
    code = "import sys, grader.sandbox; print([name for name in ('torch', 'numpy') if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
