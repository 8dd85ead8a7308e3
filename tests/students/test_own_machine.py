"""A student's file and the files beside it, as editors and notebooks leave them."""

import os
from dataclasses import replace
from errno import EACCES
from pathlib import Path

import pytest

from grader.domain.errors import SubmissionError, UsageError
from grader.domain.submission import Role
from grader.students.own_machine import own_files, own_program
from grader.students.packing import package

WRITTEN = "def f():\n    return 1\n"


def test_a_link_to_nothing_is_no_file(tmp_path, assignment):
    """Emacs locks a file that is not saved by such a link beside it."""
    (tmp_path / ".#homework.py").symlink_to("somebody@elsewhere.123:456")
    (tmp_path / "homework.py").write_text(WRITTEN)
    assert own_files(tmp_path, assignment) == {}


@pytest.mark.parametrize(
    ("name", "limit", "told"),
    [
        ("homework.py", {"source_kb": 1}, r"homework\.py: is 1\.2 kB in size, but at most 1 kB are accepted"),
        ("homework.ipynb", {"notebook_mb": 1}, r"homework\.ipynb: is 1\.2 MB .* Clear the outputs"),
    ],
)
def test_a_file_that_would_not_be_accepted_is_told(tmp_path, assignment, name, limit, told):
    path = tmp_path / name
    path.write_bytes(b"#" * (1_200 if name == "homework.py" else 1_200_000))
    with pytest.raises(SubmissionError, match=told):
        own_program(path, replace(assignment, limits=replace(assignment.limits, **limit)))


@pytest.fixture
def locked(monkeypatch):
    """Forbid to read files of some names, which the system does not do for every user."""
    names: set[str] = set()
    read_bytes = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name in names:
            raise PermissionError(EACCES, os.strerror(EACCES), str(path))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    return names


def test_a_module_that_cannot_be_read_is_named(tmp_path, assignment, locked):
    (tmp_path / "homework.py").write_text(f"import helpers\n{WRITTEN}")
    (tmp_path / "helpers.py").write_text("")
    locked.add("helpers.py")
    with pytest.raises(UsageError, match=r"helpers\.py, beside homework\.py, cannot be read \(Permission"):
        own_program(tmp_path / "homework.py", assignment)


def test_code_that_cannot_be_packed_is_named(tmp_path, assignment, locked):
    (tmp_path / "homework.py").write_text(WRITTEN)
    (tmp_path / "handin").mkdir()
    target = tmp_path / "handin" / "400101204_Lab8_Homework.py"
    target.write_text(WRITTEN)
    locked.add(target.name)
    (code,) = (file for file in package(tmp_path, assignment, "400101204").files if file.role == Role.CODE)
    assert code.problem.startswith(f"{target} cannot be written (Permission denied)")
    locked.add("homework.py")
    (tmp_path / "homework.ipynb").write_text("{}")
    with pytest.raises(UsageError, match=r"homework\.py cannot be read \(Permission denied\)"):
        package(tmp_path, assignment, "400101204")
