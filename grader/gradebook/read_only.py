"""A gradebook's file that may only be read: it is read without touching its folder, and never half-written.

SQLite reads a file with a write-ahead log by two more files beside it, which it makes where they are not.
Where they are there, because somebody works with the book or was killed, they can be used as they are:
whoever writes sees the reader's locks, and lets it finish. Where they are not, a reader who can make none
would have to believe that nobody writes, and one who does would tear what is read. So the reader takes a copy
instead, of a moment in which nobody wrote, and reads that: what SQLite would find after a power cut then.
"""

import os
import shutil
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from grader.domain.errors import UsageError

_LOG, _INDEX, _JOURNAL = "-wal", "-shm", "-journal"
_ATTEMPTS = 200
_SETTLED = 0.03  # seconds; within a tick of the file system's clock two writes have the same time


def may_write(file: Path) -> bool:
    """Whether a book's file can be written by whoever runs this, or made where it is not there yet."""
    if not file.exists():
        there = next((folder for folder in file.parents if folder.exists()), file.parent)
        return os.access(there, os.W_OK)
    parts = [_beside(file, ending) for ending in ("", _LOG, _INDEX)]
    # what belongs to the log is made and removed beside the file
    return all(os.access(path, os.W_OK) for path in (file.parent, *parts) if path.exists())


def shared(file: Path, timeout: float) -> sqlite3.Connection | None:
    """A connection beside others who may write; None where SQLite would have to make files for that.

    Args:
        timeout: Seconds to wait for others.
    """
    if not all(os.access(_beside(file, ending), os.R_OK) for ending in (_LOG, _INDEX)):
        return None
    address = f"file:{quote(str(file.resolve()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=timeout, check_same_thread=False)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:  # whoever worked with it has just left, and took the files along
        connection.close()
        return None
    return connection


@dataclass(frozen=True)
class Copy:
    """A copy of a book's file, in a folder of its own."""

    file: Path
    folder: "tempfile.TemporaryDirectory[str]"

    def close(self) -> None:
        """Remove it."""
        self.folder.cleanup()


def opened(file: Path, timeout: float) -> sqlite3.Connection | Copy:
    """A connection beside others who may write, or a copy of the file as it is now.

    Args:
        timeout: Seconds to wait for others.

    Raises:
        UsageError: It cannot be read, or there is no room for a copy, or somebody writes all the time.
    """
    for _ in range(_ATTEMPTS):
        found = shared(file, timeout) or _copied(file)
        if found is not None:
            return found
        time.sleep(_SETTLED)
    raise UsageError(f"{file} may only be read here, and somebody writes to it all the time. Run this again.")


def _copied(file: Path) -> Copy | None:
    """A copy; None where somebody wrote just now, or while it was taken."""
    try:
        before = _parts(file)
        if abs(time.time() - max(changed for _, _, _, changed in before) / 1e9) < _SETTLED:
            return None
        folder = tempfile.TemporaryDirectory(prefix="grader-book-")
        copy = Copy(Path(folder.name) / file.name, folder)
        try:
            for ending, *_ in before:
                shutil.copyfile(_beside(file, ending), _beside(copy.file, ending))
            if _parts(file) == before:
                return copy
        except BaseException:
            copy.close()
            raise
        copy.close()
    except FileNotFoundError:  # the log, as somebody leaves
        return None
    except OSError as error:
        raise UsageError(_no_copy(file, error)) from None
    return None


def _parts(file: Path) -> list[tuple[str, int, int, int]]:
    """(ending, inode, size, time of the last change in ns) of what the book consists of."""
    found = []
    for ending in ("", _LOG, _JOURNAL):
        try:
            stat = _beside(file, ending).stat()
        except FileNotFoundError:
            if not ending:
                raise
            continue
        found.append((ending, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def _no_copy(file: Path, error: OSError) -> str:
    return (
        f"{file} may only be read here, and reading it takes a copy of it in {tempfile.gettempdir()}, which "
        f"could not be made ({error.strerror}). Make room there, or name another folder by $TMPDIR."
    )
