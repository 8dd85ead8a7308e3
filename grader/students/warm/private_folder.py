"""The folder in which warm processes can be found: the user's own, and nobody else can look into it."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from grader.files.user_folders import cache_folder, runtime_folder

OWN = 0o700
NAME = "warm"
LOCK = ".lock"


def private_folder() -> Path:
    """The folder, made where there is none.

    Raises:
        OSError: There can be none, or what lies there cannot be trusted.
    """
    above = _folder_above()
    above.mkdir(parents=True, exist_ok=True)
    return checked_folder(above / NAME)


def checked_folder(folder: Path) -> Path:
    """The folder, made where there is none, if it is the user's own and closed to others.

    Raises:
        OSError: It cannot be made.
        PermissionError: It is a link, no folder, somebody else's, or open to others.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=OWN)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{folder} is not a folder")
    # Windows has no such modes: there the user's profile is closed to others
    if sys.platform != "win32" and (found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != OWN):
        raise PermissionError(f"{folder} is not the user's alone")
    return folder


def _folder_above() -> Path:
    """Where the folder is: what the system has for sockets, else the cache.

    Raises:
        OSError: The user has neither.
    """
    try:
        found = runtime_folder()
        return found if found.parent.is_dir() else cache_folder()
    except RuntimeError as error:  # no home
        raise FileNotFoundError(str(error)) from error


def names_in(folder: Path) -> Iterator[str]:
    """The names of the warm processes that were ever started in a folder."""
    for path in sorted(folder.glob(f"*{LOCK}")):
        yield path.name.removesuffix(LOCK)


class Lock:
    """A lock that one process holds as long as it lives, however it ends."""

    def __init__(self, path: Path) -> None:
        """Nobody holds it yet.

        Args:
            path: Its file, which stays.
        """
        self._path = path
        self._file: BinaryIO | None = None

    def taken(self) -> bool:
        """Take it; False when another process has it.

        Raises:
            OSError: There is no room, or locks are not to be had where the file lies.
        """
        file = self._path.open("ab")
        try:
            _lock(file)
        except BlockingIOError:
            file.close()
            return False
        except BaseException:
            file.close()
            raise
        self._file = file
        return True

    def is_held(self) -> bool:
        """Whether another process has it now.

        Raises:
            OSError: As for `taken`.
        """
        if not self._path.exists():
            return False
        with self:
            return not self.taken()

    def release(self) -> None:
        """Give this process's end of it up: forks that have the file open hold it on."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "Lock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


if sys.platform == "win32":
    import msvcrt

    def _lock(file: BinaryIO) -> None:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from error

else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
