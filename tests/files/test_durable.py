"""What was written is on the disk before anybody is told: the tests around it do not wait for a disk."""

import importlib.util
import os
import stat
from pathlib import Path

import pytest

from grader.files import atomic


@pytest.mark.skipif(os.name != "posix", reason="only POSIX systems open folders")
def test_a_file_is_on_the_disk_before_it_has_its_name_and_so_is_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(b"old")
    seen: list[tuple[bool, bytes]] = []

    def fsync(descriptor: int) -> None:
        seen.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), path.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    atomic.write(path, b"new")
    assert seen == [(False, b"old"), (True, b"new")]


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    """As a module that no fixture has changed."""
    spec = importlib.util.find_spec("grader.gradebook.database")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    full = 2
    database = module.Database(tmp_path, "")
    try:
        with database.writing() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == full
    finally:
        database.close()
