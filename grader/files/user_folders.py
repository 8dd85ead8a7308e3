"""A user's own folders, outside courses and homework."""

import os
import sys
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
