"""A lock on a folder between processes, as far as the system has such locks.

It ends with the process that holds it, however that ends. It decides nothing about what may be written.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextlib.contextmanager
def locked_folder(folder: Path, *, exclusive: bool = True, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a folder; without effect on systems and file systems that have no such locks.

    Args:
        exclusive: Nobody else holds it meanwhile; otherwise, others may that do not ask for that either.
        wait: Wait while others hold it, instead of raising.

    Raises:
        BlockingIOError: Another process holds it, and `wait` is false.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        how = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)
