"""Folders of a user's own, outside of courses and homework."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Where decoded images are kept between runs."""
    given = os.environ.get("GRADER_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "vit-grader"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "vit-grader"
    return Path.home() / ".cache" / "vit-grader"


def runtime_folder() -> Path:
    """Where sockets and the like lie while a process lives: the system's folder for it, else in the cache."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    return Path(given) / "vit-grader" if Path(given).is_absolute() else cache_folder()
