"""Inside of a container without namespaces the attacks of a package's students come to nothing, too.

What the level `container` does not promise is left out: that other processes and folders are out of sight,
and a bound on the disk. So are forgeries and hostile files: the judge, which stops them, is
the same.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHOSEN = (1, 2, 3, 7, 8, 11, 12, 19, 30, 32, 33, 34, 35, 36, 37, 41, 42, 44, 46, 47, 48, 55, 57, 94, 97)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can imitate a container")
def test_attacks_on_a_package_come_to_nothing():
    helper = HERE.parent / "packages" / "in_container.py"
    chosen = " or ".join(f"[{number}-" for number in CHOSEN)
    files = [str(HERE / name) for name in ("test_attacks.py", "test_slow_attacks.py")]
    command = [sys.executable, str(helper), "--without", "nothing", sys.executable, "-m", "pytest"]
    again = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-rs", "-m", "", *files, "-k", chosen],
        cwd=HERE.parents[1],
        env={**os.environ, "ATTACKED_IN_PACKAGE": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stdout[-3000:] + again.stderr[-1000:]
    assert "isolation" not in again.stdout
    assert f"{len(CHOSEN)} passed" in again.stdout
