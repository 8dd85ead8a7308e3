"""A process's folder goes with it, and that of a killed one when the next process begins."""

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from grader.cluster.own_folders import NODE, own_folder

HOLD = """
import sys
from grader.cluster.own_folders import NODE, own_folder
with own_folder(NODE) as folder:
    (folder / "of a run").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_it_is_private_and_goes_at_the_end(temporary: Path) -> None:
    with own_folder(NODE) as folder:
        assert folder.parent == temporary and stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "of a run").write_text("secret", encoding="utf-8")
    assert not folder.exists()


def test_that_of_a_killed_process_goes_when_the_next_begins_and_that_of_a_living_one_stays() -> None:
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holding.stdout is not None
        left = Path(holding.stdout.readline().strip())
        with own_folder(NODE):
            assert (left / "of a run").is_dir()
    finally:
        holding.kill()
        holding.communicate()
    assert left.is_dir()
    with own_folder(NODE):
        assert not left.exists()


def test_what_only_looks_like_one_stays(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir()
    (temporary / "elsewhere" / "lock").touch()
    (temporary / f"{NODE}link").symlink_to(temporary / "elsewhere")
    (temporary / f"{NODE}unlocked").mkdir()
    with own_folder(NODE):
        pass
    assert sorted(path.name for path in temporary.iterdir()) == [
        "elsewhere",
        f"{NODE}link",
        f"{NODE}unlocked",
    ]
    assert (temporary / "elsewhere" / "lock").exists()
