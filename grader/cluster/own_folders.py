"""Folders of one process, which go with it: at its end, or, if it was killed, when the next one begins."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

NODE = "grader-node-"  # what a node has of a run
DASK = "grader-dask-"  # what Dask writes


@contextlib.contextmanager
def own_folder(prefix: str) -> Iterator[Path]:
    """A folder, 0700, below that for temporary files; those of processes that were killed go now.

    Args:
        prefix: With which its name begins.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        # it gets its name when it is locked: whoever finds it unlocked may remove the folder
        with (folder / "locking").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "locking").rename(folder / "lock")
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_left(folder: Path) -> None:
    """Remove another process's folder if that has ended; whatever is another user's stays."""
    with contextlib.suppress(OSError):
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return
        with (folder / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
