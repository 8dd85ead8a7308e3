"""Zips, read under limits: an entry after the other, piece by piece. Nothing is written here.

In grading this runs in a short-lived, locked-down process; whoever writes the pieces judges names and sizes
again (see `unpacking`).
"""

import calendar
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from grader.domain.assignment import MEGABYTE
from grader.domain.errors import SubmissionError
from grader.domain.submission import RefusedFile
from grader.files.names import displayable
from grader.intake.archive_pieces import CHUNK, Begun, Caps, Ended, Piece
from grader.intake.entry_name import Taken, name_fault
from grader.intake.naming import clutter_reason, is_clutter

END_RECORD = 22
END_SEARCH = END_RECORD + 65535
ENTRY_RECORD = 46


def contents(file: BinaryIO, name: str, caps: Caps) -> Iterator[Piece]:
    """What an archive holds: for each entry Begun, its bytes and Ended, or the reason why it is left inside.

    Args:
        file: The archive, seekable.
        name: Its name, for the sentences.
        caps: What is too much.

    Raises:
        SubmissionError: The archive as a whole cannot be used; the sentence names it and the remedy.
    """
    with opened(file, name, caps.entries) as archive:
        entries = archive.infolist()
        locked = [bool(entry.flag_bits & 1) for entry in entries if not entry.filename.endswith("/")]
        if locked and all(locked):
            raise SubmissionError(f"{name}: is protected by a password. Pack it again without one.")
        declared, most = sum(entry.file_size for entry in entries), caps.total_bytes
        if declared > most:
            raise SubmissionError(
                f"{name}: would unpack to {declared // MEGABYTE} MB; at most {most // MEGABYTE} MB "
                "are possible. Take out what was not asked for (data sets, environments) and pack it again."
            )
        yield from _pieces(archive, entries, caps)


def opened(file: BinaryIO, name: str, most_entries: int) -> zipfile.ZipFile:
    """The zip, opened, after a look at the size of its directory.

    Raises:
        SubmissionError: It is not a zip, is damaged, or lists too many entries.
    """
    too_many = f"{name}: lists more than {most_entries} files. Pack only what was asked for."
    try:
        count = directory_bytes(file) // ENTRY_RECORD
        if count > most_entries * 4:  # an entry's record also holds its name
            raise SubmissionError(too_many)
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, struct.error) as error:
        raise SubmissionError(
            f"{name}: cannot be opened as a zip; it is damaged or was not uploaded completely. "
            "Pack the files again as a .zip and upload that."
        ) from error
    except OSError as error:
        raise SubmissionError(f"{name}: cannot be read ({error.strerror}). Upload the file again.") from error
    if len(archive.infolist()) > most_entries:
        archive.close()
        raise SubmissionError(too_many)
    return archive


def directory_bytes(file: BinaryIO) -> int:
    """The size of a zip's directory in bytes, read before `zipfile` would build an object per entry.

    The records are those of APPNOTE.TXT 4.3.14 to 4.3.16.

    Raises:
        zipfile.BadZipFile: There is no directory.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - END_SEARCH))
    tail = file.read(END_SEARCH)
    start = tail.rfind(b"PK\x05\x06")
    if start < 0 or start + END_RECORD > len(tail):
        raise zipfile.BadZipFile("no directory")
    length = int(struct.unpack_from("<L", tail, start + 12)[0])
    locator = start - 20
    if locator >= 0 and tail[locator : locator + 4] == b"PK\x06\x07":
        file.seek(min(struct.unpack_from("<Q", tail, locator + 8)[0], size))
        record = file.read(56)
        if record[:4] == b"PK\x06\x06" and len(record) == 56:
            length = max(length if length != 0xFFFFFFFF else 0, struct.unpack_from("<Q", record, 40)[0])
    return length


def _pieces(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], caps: Caps) -> Iterator[Piece]:
    """Every entry that may be unpacked, and the reasons for the others."""
    taken = Taken()
    left = caps.total_bytes
    for entry in entries:
        name = entry.filename.replace("\\", "/")
        if name.endswith("/"):
            continue
        if is_clutter(PurePosixPath(name)):
            yield RefusedFile(displayable(name), clutter_reason(displayable(name)), clutter=True)
            continue
        reason = name_fault(name) or _entry_fault(entry, caps) or taken.collision(name)
        if reason is not None:
            shown = displayable(name)
            yield RefusedFile(shown, f"{shown}: {reason}")
            continue
        yield Begun(name, _modified(entry))
        reason = yield from _content(archive, entry, min(caps.file_bytes, left))
        yield Ended(reason)
        if reason is None:
            left -= entry.file_size
            taken.add(name)


def _entry_fault(entry: zipfile.ZipInfo, caps: Caps) -> str | None:
    """Why an entry is not unpacked, judged by what the archive says of it."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device, not a file. Pack the file itself."
    if entry.flag_bits & 1:
        return "is protected by a password. Pack it again without one."
    if entry.file_size > caps.file_bytes:
        most = caps.file_bytes // MEGABYTE
        return f"is {entry.file_size // MEGABYTE} MB large, and at most {most} MB are accepted."
    if entry.file_size > MEGABYTE and entry.file_size > caps.ratio * max(1, entry.compress_size):
        return "unpacks to hundreds of times its size, as no homework does. Pack it again."
    return None


def _modified(entry: zipfile.ZipInfo) -> int:
    try:
        return max(calendar.timegm((*entry.date_time, 0, 1, 0)), 0)
    except ValueError:  # the month 0
        return 0


def _content(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int
) -> Generator[bytes, None, str | None]:
    """An entry's content; the reason why it is not whole, if it is not."""
    count = 0
    try:
        with archive.open(entry) as source:
            while chunk := source.read(CHUNK):
                count += len(chunk)
                if count > most:
                    return "is larger than what may be unpacked. Hand in only what was asked for."
                yield chunk
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError):
        return "is damaged within the archive. Pack and upload the files again."
    except (NotImplementedError, RuntimeError):
        return "is packed by a method that cannot be read. Pack the files again as an ordinary .zip."
    return None
