"""Writes files that are complete or absent, whatever interrupts the writing.

Pages, records, tables of marks and packages are written by it. Files that a student packs are copied without.
"""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from grader.domain.errors import UsageError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write(path: Path, content: bytes, *, remedy: str = "") -> None:
    """Write a file so that it is completely on the disk under its name, or not there at all.

    Args:
        path: The file; its folder exists.
        content: Its new content.
        remedy: What to do if it may not be written, as a sentence.

    Raises:
        UsageError: The disk does not take it.
    """
    write_pieces(path, [content], remedy=remedy)


def write_pieces(path: Path, pieces: Iterable[bytes], *, remedy: str = "") -> None:
    """Write a file like `write`, in pieces.

    Args:
        path: The file; its folder exists.
        pieces: Its content, in order.
        remedy: As for `write`.

    Raises:
        UsageError: The disk does not take it.
    """
    _put(path, pieces, remedy)
    with explained(path, remedy):
        _sync_folder(path.parent)


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write several files of a folder like `write`: together they cost little more than one.

    Args:
        folder: It exists.
        files: Name -> content.

    Raises:
        UsageError: The disk does not take one of them.
    """
    for name, content in files.items():
        _put(folder / name, [content], "")
    with explained(folder, ""):
        _sync_folder(folder)


def make_folder(folder: Path, *, remedy: str = "") -> None:
    """Make a folder and its parents if they do not exist.

    Args:
        folder: The folder.
        remedy: As for `write`.

    Raises:
        UsageError: It cannot be made.
    """
    with explained(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)


def _put(path: Path, pieces: Iterable[bytes], remedy: str) -> None:
    """Write a file under a name of its own, and give it its name when it is complete on the disk."""
    # not by tempfile, whose files only the owner may read
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    with explained(path, remedy):
        try:
            with temporary.open("xb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def explained(path: Path, remedy: str = "") -> Iterator[None]:
    """What the system refuses while a file or folder is written, as a sentence.

    Raises:
        UsageError: It refuses something.
    """
    try:
        yield
    except OSError as error:
        raise _refused(path, error, remedy) from None


def _refused(path: Path, error: OSError, remedy: str) -> UsageError:
    default_remedy = (
        "Make room there."
        if error.errno in _FULL
        else "Work where you may write, or on a copy of the folder."
    )
    return UsageError(f"{path} cannot be written ({error.strerror}). {remedy or default_remedy}")


def lacks_room(error: BaseException) -> bool:
    """Whether something was not written, or could not be made, because a disk is full."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        if isinstance(one, OSError) and one.errno in _FULL:
            return True
        seen.add(id(one))
        one = one.__cause__ or one.__context__
    return False


def _sync_folder(folder: Path) -> None:
    """Make the folder's entries durable if the system can (Windows cannot open folders)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
