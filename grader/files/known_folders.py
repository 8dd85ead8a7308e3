"""Folders and files that are found without being named: a user's own, and those of a course."""

import os
import re
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


# --- the files of a course -------------------------------------------------------------------------------


def visible(folder: Path, *patterns: str) -> list[Path]:
    """What matches the patterns below a folder, by name, without what programs leave there for themselves.

    Left out are compiled modules, and everything under a name that begins with a dot: editors keep locks and
    copies there (`.#solution.py`, `.ipynb_checkpoints`), and systems their own records (`._solution.py`). So
    are an editor's other copies (`table.csv~`, `#table.csv#`).
    """
    found = {path.relative_to(folder): path for pattern in patterns for path in folder.glob(pattern)}
    return [
        path
        for name, path in sorted(found.items())
        if not any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        and not name.name.endswith(("~", "#"))
    ]


# --- the folder that a course handed out -----------------------------------------------------------------


ASSIGNMENT_FILE = "assignment.toml"
PUBLIC_CHECKS, PUBLIC_GLOB = "test_public.py", "test_public*.py"  # one file, or several `test_public_*.py`
HOMEWORK = ("homework.py", "homework.ipynb")

_PUBLIC_CHECKS = re.compile(r"test_public(_\w+)?\.py")


def is_public_checks(name: str) -> bool:
    """Whether a file of this name holds public checks: `test_public.py`, `test_public_attention.py`."""
    return _PUBLIC_CHECKS.fullmatch(name) is not None


def public_checks(folder: Path) -> list[Path]:
    """The files of a folder that hold public checks, by name."""
    return sorted(path for path in folder.glob(PUBLIC_GLOB) if is_public_checks(path.name))


def is_complete(folder: Path) -> bool:
    """Whether a folder has what marks it as handed out by a course: the assignment and public checks."""
    return (folder / ASSIGNMENT_FILE).is_file() and bool(public_checks(folder))


def is_incomplete(folder: Path) -> bool:
    """Whether a folder has one of these alone."""
    return (folder / ASSIGNMENT_FILE).is_file() != bool(public_checks(folder))


def handed_out_folder(near: Sequence[Path]) -> Path | None:
    """The first of some folders that has both; None when none has."""
    return next((folder for folder in near if is_complete(folder)), None)


def homework_in(folder: Path) -> Path | None:
    """`homework.py` in a folder, else the notebook; None when there is neither."""
    return next((folder / name for name in HOMEWORK if (folder / name).is_file()), None)
