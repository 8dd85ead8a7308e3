"""Without root the same layers hold: these tests run again as an ordinary user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
UID = 54321
# what differs without root: namespaces, identity, the bound on memory, the end of a host
AGAIN = (
    "test_sandbox_bubblewrap.py",
    "test_sandbox_given_files.py",
    "test_sandbox_layers.py",
    "test_sandbox_attestation.py",
    "test_sandbox_limits.py",
    "test_sandbox_lifecycle.py::test_nothing_is_left_behind",
    "test_sandbox_lifecycle.py::test_a_host_dies_with_its_starter",
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user")
def test_everything_holds_for_an_ordinary_user(tmp_path):
    as_user = [sys.executable, str(HERE / "ordinary_user.py"), str(UID), sys.executable]
    probe = "from grader.sandbox import survey; print(survey().verdict)"
    tried = subprocess.run([*as_user, "-c", probe], cwd="/", capture_output=True, text=True, check=False)
    if tried.stdout.strip() not in ("strict", "standard"):
        pytest.skip(f"an ordinary user gets no isolation here: {tried.stdout}{tried.stderr[-300:]}")
    again = subprocess.run(
        [*as_user, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *(str(HERE / name) for name in AGAIN)],
        cwd=HERE.parents[1],
        env={**os.environ, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stdout[-3000:] + again.stderr[-1000:]
    assert "isolation" not in again.stdout
