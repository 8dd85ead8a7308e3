"""The files of a submission that its homework may import."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.files.own_modules import MOST_MODULES, spoken_of
from grader.lms.downloads import read_name

MOST_BYTES = 10_000_000  # of all modules of a submission


def own_modules(code: Path, others: Sequence[Path]) -> dict[str, Path]:
    """The modules beside a homework: name, with the folders before it -> path.

    Args:
        code: The script or notebook.
        others: The other code files of the submission. What an LMS puts before a name is taken off.
    """
    scripts = [path for path in others if path.suffix.lower() == ".py"]
    if not scripts:
        return {}
    top = Path(os.path.commonpath([path.parent for path in (code, *scripts)]))
    named = {_name(path, top): path for path in scripts}
    contents = {name: path.read_bytes() for name, path in named.items()}
    chosen: dict[str, Path] = {}
    size = 0
    for name in spoken_of(code.read_bytes(), contents)[:MOST_MODULES]:
        size += len(contents[name])
        if size <= MOST_BYTES:
            chosen[name] = named[name]
    return chosen


def contents(modules: Mapping[str, Path]) -> dict[str, bytes]:
    """What the modules hold, by name."""
    return {name: path.read_bytes() for name, path in modules.items()}


def _name(path: Path, top: Path) -> str:
    return (path.relative_to(top).parent / (read_name(path.name).name or path.name)).as_posix()
