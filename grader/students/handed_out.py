"""The folder that a course handed out, and the homework in it, recognized by file names alone."""

from collections.abc import Sequence
from pathlib import Path

ASSIGNMENT_FILE, PUBLIC_CHECKS = "assignment.toml", "test_public.py"
HOMEWORK = ("homework.py", "homework.ipynb")


def files_present(folder: Path) -> int:
    """How many of the two files that mark a folder as handed out by a course are in it."""
    return sum((folder / name).is_file() for name in (ASSIGNMENT_FILE, PUBLIC_CHECKS))


def handed_out_folder(near: Sequence[Path]) -> Path | None:
    """The first of some folders that has both files; None when none has."""
    return next((folder for folder in near if files_present(folder) == 2), None)


def homework_in(folder: Path) -> Path | None:
    """`homework.py` in a folder, else the notebook; None when there is neither."""
    return next((folder / name for name in HOMEWORK if (folder / name).is_file()), None)
