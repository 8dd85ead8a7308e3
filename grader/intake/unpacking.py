"""Writes the content of an archive: nothing outside the folder, and nothing without a limit.

The archive may have taken over the process that read it, so names and sizes are checked again here.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from grader.domain.errors import Interruption, SubmissionError
from grader.domain.limits import MEGABYTE
from grader.domain.submission import RefusedFile
from grader.files.file_names import displayable
from grader.intake.archive import checkpoint_fault, contents
from grader.intake.archive_pieces import Begun, Caps, Ended, Piece
from grader.intake.naming import Taken, name_fault, parts_of
from grader.lms.downloads import metadata_rows
from grader.lms.system import Row

FREE_SPACE = 200 * MEGABYTE


class Opener(Protocol):
    """Opens zips that other people made."""

    def contents(self, archive: Path, caps: Caps) -> Iterator[Piece]:
        """The content of an archive: see `archive.contents`.

        Raises:
            SubmissionError: It cannot be used, or opening it exceeded a limit.
        """

    def checkpoint_fault(self, path: Path, name: str) -> str | None:
        """Why a checkpoint is not accepted: see `archive.checkpoint_fault`."""

    def metadata_rows(self, path: Path) -> list[Row]:
        """The rows of a download's metadata: see `downloads.metadata_rows`.

        Raises:
            SubmissionError: It cannot be read.
        """


class OpenedHere:
    """Opens zips in the calling process: for one's own work on one's own machine."""

    def contents(self, archive: Path, caps: Caps) -> Iterator[Piece]:
        """The content of an archive."""
        with _readable(archive) as file:
            yield from contents(file, archive.name, caps)

    def checkpoint_fault(self, path: Path, name: str) -> str | None:
        """Why a checkpoint is not accepted."""
        with path.open("rb") as file:
            return checkpoint_fault(file, name)

    def metadata_rows(self, path: Path) -> list[Row]:
        """The rows of a download's metadata."""
        with _readable(path) as file:
            return metadata_rows(file, path.name)


HERE = OpenedHere()


@dataclass(frozen=True)
class Unpacked:
    """The files that were unpacked, and the entries that were not, with reasons."""

    files: tuple[Path, ...]
    refused: tuple[RefusedFile, ...]


def unpacked(archive: Path, into: Path, caps: Caps, opener: Opener = HERE) -> Unpacked:
    """The files of `archive`, written to `into` under their own relative paths.

    Args:
        archive: A zip.
        into: A folder; it is made.
        caps: The limits.
        opener: Opens it.

    Raises:
        SubmissionError: The archive as a whole cannot be used; the sentence names it and the remedy.
    """
    into.mkdir(parents=True, exist_ok=True)
    room = min(caps.total_bytes, max(0, shutil.disk_usage(into).free - FREE_SPACE))
    writing = _Writing(into, replace(caps, total_bytes=room))
    try:
        for piece in opener.contents(archive, writing.caps):
            writing.take(piece)
    except _NonsenseError as error:
        raise SubmissionError(
            f"{archive.name}: unpacking it failed. Pack the files again as a .zip and upload that."
        ) from error
    finally:
        writing.stop()
    return Unpacked(tuple(writing.files), tuple(writing.refused))


def _readable(archive: Path) -> BinaryIO:
    try:
        return archive.open("rb")
    except OSError as error:
        raise SubmissionError(
            f"{archive.name}: cannot be read ({error.strerror}). Upload the file again."
        ) from error


class _NonsenseError(Interruption):
    """The process that reads an archive sent pieces that it cannot have read."""


class _Writing:
    """An archive's files while they are written."""

    def __init__(self, into: Path, caps: Caps) -> None:
        self.caps = caps
        self.files: list[Path] = []
        self.refused: list[RefusedFile] = []
        self._into = into
        self._left = caps.total_bytes
        self._entries = 0
        self._taken = Taken()
        self._name = ""  # of the entry that has begun
        self._size = 0  # of it, in bytes
        self._modified = 0
        self._sink: BinaryIO | None = None
        self._failure: str | None = None

    def take(self, piece: Piece) -> None:
        """Write a piece, or note why not.

        Raises:
            _NonsenseError: It exceeds the caps, or has a name that no file may have.
        """
        if isinstance(piece, bytes):
            self._write(piece)
        elif isinstance(piece, Ended):
            self._end(piece.reason)
        else:
            self._entries += 1
            if self._name or self._entries > self.caps.entries:
                raise _NonsenseError
            if isinstance(piece, Begun):
                self._begin(piece)
            else:
                self.refused.append(RefusedFile(displayable(piece.name), piece.reason[:400], piece.clutter))

    def _begin(self, begun: Begun) -> None:
        name = begun.name
        if name_fault(name) or self._taken.collision(name):
            raise _NonsenseError
        self._name, self._size, self._failure = name, 0, None
        self._modified = min(max(begun.modified, 0), 2**32)
        target = self._target()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._sink = target.open("xb")
        except OSError as error:
            self._fail(error)

    def _write(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if not self._name or self._size > min(self.caps.file_bytes, self._left):
            raise _NonsenseError
        if self._sink is not None:
            try:
                self._sink.write(chunk)
            except OSError as error:
                self._fail(error)

    def _end(self, reason: str | None) -> None:
        if not self._name:
            raise _NonsenseError
        name, target = self._name, self._target()
        reason = self._close() or reason
        if reason is not None:
            target.unlink(missing_ok=True)
            self.refused.append(RefusedFile(displayable(name), f"{displayable(name)}: {reason[:400]}"))
            return
        with contextlib.suppress(OSError):  # the time is only a hint
            os.utime(target, (self._modified, self._modified))
        self._left -= self._size
        self._taken.add(name)
        self.files.append(target)

    def stop(self) -> None:
        """Discard the entry that has begun and never ended."""
        if self._name:
            target = self._target()
            self._close()
            target.unlink(missing_ok=True)

    def _close(self) -> str | None:
        """Close the entry's file; returns why it is incomplete, if it is."""
        if self._sink is not None:
            try:
                self._sink.close()
            except OSError as error:
                self._fail(error)
        self._name, self._sink = "", None
        return self._failure

    def _fail(self, error: OSError) -> None:
        self._failure = f"could not be unpacked ({error.strerror}). Rename it and pack it again."

    def _target(self) -> Path:
        return self._into.joinpath(*parts_of(self._name))
