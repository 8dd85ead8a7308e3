"""An environment in which processes may stay warm, and none is left when a test ends."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.students.warm.asking import stop


@pytest.fixture
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder for sockets, by a name that is short enough for them."""
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.delenv("GRADER_WARM")
        monkeypatch.delenv("CI", raising=False)
        yield Path(folder)
        stop()
