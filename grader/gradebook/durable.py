"""Files that are whole or absent, whatever interrupts their writing."""

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from grader.domain.errors import UsageError


def write(path: Path, content: bytes) -> None:
    """Write a file so that it is on the disk, whole, under its name, or not there at all.

    Args:
        path: The file; its folder exists.
        content: What it holds then.

    Raises:
        UsageError: The disk does not take it.
    """
    write_pieces(path, [content])


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file in the same way, piece by piece as they are made.

    Args:
        path: The file; its folder exists.
        pieces: What it holds then, in order.

    Raises:
        UsageError: The disk does not take it.
    """
    # not by tempfile, whose files only the owner may read
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise _refused(path, error) from None


def _refused(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{path} cannot be written ({error.strerror}). Make room, or give another folder by --out."
    )


def _sync_folder(folder: Path) -> None:
    """Make the folder's entries durable, where the system can (Windows cannot open folders)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
