"""Folders that are found without being named: a user's own, and the one that a course handed out."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def cache_folder() -> Path:
    """The folder in which decoded images are kept between runs."""
    base = os.environ.get("GRADER_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "vit-grader"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "vit-grader"
    return Path.home() / ".cache" / "vit-grader"


def runtime_folder() -> Path:
    """The folder for sockets and the like of a running process: the system's own, else in the cache."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    return Path(base) / "vit-grader" if Path(base).is_absolute() else cache_folder()


# --- the folder that a course handed out -----------------------------------------------------------------


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
