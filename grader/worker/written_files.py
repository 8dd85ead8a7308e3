"""Files that a script writes while the grader executes it: they land in a folder that goes afterwards.

On a student's own machine the script would write over what an earlier run of theirs has left, such as a table
that is handed in, with the numbers of a trial on synthetic images.

Tests: tests/worker/test_written_files.py
"""

import builtins
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def written_apart() -> Iterator[None]:
    """Have `open` write to a folder of its own, and read from there what was written."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        real = builtins.open

        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if isinstance(file, str | os.PathLike) and isinstance(mode, str):
                file = _place(Path(folder), file, mode, real)
            return real(file, mode, *args, **kwargs)

        builtins.open = io.open = opened
        try:
            yield
        finally:
            builtins.open = io.open = real


def _place(
    folder: Path, file: str | os.PathLike[str], mode: str, real: Callable[..., Any]
) -> str | os.PathLike[str]:
    """Where a file is opened: in the folder if it is written, or was."""
    asked = Path(file).absolute()
    apart = folder.joinpath(*asked.parts[1:])
    writes = bool(set(mode) & set("wax+"))
    if not apart.is_file():
        if not writes:
            return file
        # the folder may be missing only because the grader left out what makes it
        apart.parent.mkdir(parents=True, exist_ok=True)
        if asked.is_file() and "w" not in mode:
            with real(asked, "rb") as before, real(apart, "wb") as after:
                shutil.copyfileobj(before, after)
    return apart
