"""Pipes whose numbers tell nothing of others.

The kernel numbers nameless pipes by a count of the whole machine, so that a process could tell another one
something by making many of them. A named pipe has a number of the file system that it lies in, which here is
the process's own.
"""

import itertools
import os
from pathlib import Path


def replace_pipes(folder: Path) -> None:
    """Let `os.pipe` and `os.pipe2` make named pipes in a folder, and take their names away at once.

    Who calls the kernel without Python gets none.

    Args:
        folder: The process's own, on a file system of its own.
    """
    numbers = itertools.count()

    def pipe2(flags: int) -> tuple[int, int]:
        """Two ends of a new pipe, to read and to write."""
        path = folder / f".pipe-{next(numbers)}"
        os.mkfifo(path, 0o600)
        try:
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                writer = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            except OSError:
                os.close(reader)
                raise
        finally:
            path.unlink()
        for end in (reader, writer):
            os.set_blocking(end, not flags & os.O_NONBLOCK)
            os.set_inheritable(end, not flags & os.O_CLOEXEC)
        return reader, writer

    def pipe() -> tuple[int, int]:
        """Two ends of a new pipe, to read and to write."""
        return pipe2(os.O_CLOEXEC)

    os.pipe, os.pipe2 = pipe, pipe2
