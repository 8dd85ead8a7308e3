"""Reads zips and checkpoints under limits, without loading or writing anything.

It gives the entries of a zip one after the other, in pieces. It checks a file of weights as far as that is
possible without loading it: a `.pth` is a zip that holds a pickle; a `.safetensors` file and an `.npz` hold
arrays and nothing else. In grading this runs in a short-lived, locked-down process; the process that writes
the pieces checks names and sizes again (see `unpacking`).
"""

import calendar
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import PurePath, PurePosixPath
from typing import BinaryIO

from grader.domain.errors import SubmissionError
from grader.domain.limits import MEGABYTE
from grader.domain.submission import RefusedFile
from grader.files.file_names import displayable
from grader.intake.archive_pieces import CHUNK, Begun, Caps, Ended, Piece
from grader.intake.naming import Taken, clutter_reason, is_clutter, name_fault

END_RECORD = 22
END_SEARCH = END_RECORD + 65535
ENTRY_RECORD = 46


def contents(file: BinaryIO, name: str, caps: Caps) -> Iterator[Piece]:
    """The content of an archive: for each entry Begun, its bytes and Ended, or why it is not unpacked.

    Args:
        file: The archive, seekable.
        name: Its name, for the messages.
        caps: The limits.

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
                "are allowed. Take out what was not asked for (data sets, environments) and pack it again."
            )
        yield from _pieces(archive, entries, caps)


def opened(file: BinaryIO, name: str, most_entries: int) -> zipfile.ZipFile:
    """The zip, opened after a check of the size of its directory.

    Raises:
        SubmissionError: It is not a zip, is damaged, or lists too many entries.
    """
    too_many = f"{name}: lists more than {most_entries} files. Pack only what was asked for."
    try:
        count = directory_bytes(file) // ENTRY_RECORD
        if count > most_entries * 4:  # a record is longer than this: it also holds the entry's name
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
    """The size of a zip's directory in bytes, read before `zipfile` builds an object for each entry.

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
    names_in_use = Taken()
    bytes_left = caps.total_bytes
    for entry in entries:
        name = entry.filename.replace("\\", "/")
        if name.endswith("/"):
            continue
        if is_clutter(PurePosixPath(name)):
            yield RefusedFile(displayable(name), clutter_reason(displayable(name)), clutter=True)
            continue
        reason = name_fault(name) or _entry_fault(entry, caps) or names_in_use.collision(name)
        if reason is not None:
            shown = displayable(name)
            yield RefusedFile(shown, f"{shown}: {reason}")
            continue
        yield Begun(name, _modified(entry))
        reason = yield from _content(archive, entry, min(caps.file_bytes, bytes_left))
        yield Ended(reason)
        if reason is None:
            bytes_left -= entry.file_size
            names_in_use.add(name)


def _entry_fault(entry: zipfile.ZipInfo, caps: Caps) -> str | None:
    """Why an entry is not unpacked, judged by what the archive says about it."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device, not a file. Pack the file itself."
    if entry.flag_bits & 1:
        return "is protected by a password. Pack it again without one."
    if entry.file_size > caps.file_bytes:
        most = caps.file_bytes // MEGABYTE
        return f"is {entry.file_size // MEGABYTE} MB in size, but at most {most} MB are accepted."
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
    """An entry's content; returns why it is incomplete, if it is."""
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


# --- checkpoint file -------------------------------------------------------------------------------------


MOST_ENTRIES = 20_000
MOST_PICKLE_BYTES = 16 * MEGABYTE
MOST_HEADER_BYTES = 4 * MEGABYTE  # of a safetensors file
REMEDY = 'Save it again with torch.save(model.state_dict(), "<StudentID>.pth") and hand that file in.'


def checkpoint_fault(file: BinaryIO, name: str) -> str | None:
    """Why the checkpoint is not accepted, as a sentence with the remedy, or None.

    The suffix decides: a `.safetensors` file needs a header of bounded length, and an `.npz` is a zip of
    NumPy's arrays. All others must have the zip format that `torch.save` writes: every entry stored
    uncompressed (so that nothing unpacks to more than the file's size), no name twice, and one `data.pkl` of
    bounded size.

    Args:
        file: The file, seekable.
        name: The student's name for it.
    """
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(64)
    suffix = PurePath(name).suffix.lower()
    if suffix == ".safetensors":
        return _safetensors_fault(head, name, size)
    if suffix == ".npz":
        return _npz_fault(file, name)
    if not head.startswith(b"PK"):
        return f"{name}: {_other_format(head)} {REMEDY}"
    try:
        with opened(file, name, MOST_ENTRIES) as archive:
            entries = archive.infolist()
    except SubmissionError:
        return f"{name}: is damaged or was not uploaded completely. {REMEDY}"
    fault = _entries_fault(entries, size)
    return f"{name}: {fault} {REMEDY}" if fault else None


def _safetensors_fault(head: bytes, name: str, size: int) -> str | None:
    """What is wrong with the start of a safetensors file: 8 bytes with the header's length, then JSON."""
    length = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and 2 <= length <= min(MOST_HEADER_BYTES, size - 8):
        return None
    what = "is not in the format of safetensors, or was not uploaded completely."
    return f"{name}: {what} Save it again with safetensors.torch.save_file(model.state_dict(), FILE)."


def _npz_fault(file: BinaryIO, name: str) -> str | None:
    """What is wrong with a zip of NumPy's arrays."""
    remedy = "Save it again with numpy.savez(FILE, **arrays), one array for each name of the state_dict."
    try:
        with opened(file, name, MOST_ENTRIES) as archive:
            entries = archive.infolist()
    except SubmissionError:
        return f"{name}: is not a zip of arrays, or was not uploaded completely. {remedy}"
    names = [entry.filename for entry in entries]
    if not names or not all(entry_name.endswith(".npy") for entry_name in names):
        return f"{name}: holds something other than NumPy arrays. {remedy}"
    if len(set(names)) != len(names):
        return f"{name}: lists a name twice. {remedy}"
    if any(entry.flag_bits & 1 for entry in entries):
        return f"{name}: is protected by a password. {remedy}"
    return None


def _other_format(head: bytes) -> str:
    """What a file that is not a zip seems to be."""
    if head[:1] == b"\x80":
        return "is in the old format of torch.save (a bare pickle), which is not opened."
    if head.startswith(b"\x89HDF"):
        return "is an HDF5 file, as Keras writes them, not a checkpoint of PyTorch."
    if head.startswith(b"version https://git-lfs"):
        return "is only the pointer that Git LFS keeps in place of the file."
    if all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head):
        return "is a text file, not a checkpoint of PyTorch."
    return "is not a checkpoint of PyTorch."


def _entries_fault(entries: list[zipfile.ZipInfo], size: int) -> str | None:
    """What is wrong with the entries of the zip."""
    names = [entry.filename for entry in entries]
    pickles = [entry for entry in entries if entry.filename.rsplit("/", 1)[-1] == "data.pkl"]
    if len(pickles) != 1:
        return "is a zip, but not one that torch.save wrote (it holds no data.pkl)."
    if len(set(names)) != len(names):
        return "lists a name twice, which torch.save never does."
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            return "was packed again: its parts are compressed, which torch.save never does."
        if entry.flag_bits & 1:
            return "is protected by a password."
    if sum(entry.file_size for entry in entries) > size:
        return "says that it holds more than its own size."
    if pickles[0].file_size > MOST_PICKLE_BYTES:
        return f"describes more than a model (its data.pkl is over {MOST_PICKLE_BYTES // MEGABYTE} MB)."
    return None
