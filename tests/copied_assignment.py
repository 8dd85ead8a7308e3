"""An assignment of ours in a course of its own, where a test may change its files."""

import shutil
from pathlib import Path

FOR_VALIDATION = ("mistakes", "forms", "recipes")  # hundreds of files that no grading reads


def copied_assignment(folder: Path, course: Path) -> Path:
    """Copy an assignment into a course, without what only its validation reads; the copy's folder."""
    ignored = shutil.ignore_patterns("__pycache__", *FOR_VALIDATION)
    return Path(shutil.copytree(folder, course / "reference" / folder.name, ignore=ignored))
