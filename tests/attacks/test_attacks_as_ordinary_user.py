"""Without root the same attacks come to nothing: those whose layers differ run again as an ordinary user.

Forgeries and hostile files are left out: what stops them is the judge, which is the same.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
UID = 54322
# of every layer that is another one without root: identity, namespaces, the bound on memory, signals
CHOSEN = (1, 2, 7, 8, 9, 11, 12, 13, 30, 32, 36, 37, 41, 42, 44, 46, 48, 49, 50, 52, 55, 57, 94, 97, 98)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user")
def test_attacks_of_an_ordinary_users_class_come_to_nothing():
    helper = HERE.parent / "sandbox" / "ordinary_user.py"
    as_user = [sys.executable, str(helper), str(UID), sys.executable]
    probe = "from grader.sandbox import survey; print(survey().verdict)"
    tried = subprocess.run([*as_user, "-c", probe], cwd="/", capture_output=True, text=True, check=False)
    if tried.stdout.strip() not in ("strict", "standard"):
        pytest.skip(f"an ordinary user gets no isolation here: {tried.stdout}{tried.stderr[-300:]}")
    files = [str(HERE / name) for name in ("test_attacks.py", "test_slow_attacks.py")]
    chosen = " or ".join(f"[{number}-" for number in CHOSEN)
    with tempfile.TemporaryDirectory(prefix="grader-user-") as folder:
        os.chown(folder, UID, UID)
        again = subprocess.run(
            [*as_user, "-m", "pytest", "-p", "no:cacheprovider", "-rs", "-m", "", *files, "-k", chosen],
            cwd=HERE.parents[1],
            env={**os.environ, "HOME": "/nonexistent", "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert again.returncode == 0, again.stdout[-3000:] + again.stderr[-1000:]
    assert "isolation" not in again.stdout
    assert f"{len(CHOSEN)} passed" in again.stdout
