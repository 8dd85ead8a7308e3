"""What can be told of a checkpoint without loading it: a `.pth` is a zip that holds a pickle."""

import zipfile
from typing import BinaryIO

from grader.domain.assignment import MEGABYTE
from grader.domain.errors import SubmissionError
from grader.intake.archive import opened

MOST_ENTRIES = 20_000
MOST_PICKLE_BYTES = 16 * MEGABYTE
REMEDY = 'Save it again with torch.save(model.state_dict(), "<StudentID>.pth") and hand that file in.'


def checkpoint_fault(file: BinaryIO, name: str) -> str | None:
    """Why the checkpoint is not accepted, as a sentence with the remedy, or None.

    Accepted is the zip format that `torch.save` writes: every entry stored as it is (so that nothing can
    unpack to more than the file's size), no name twice, one `data.pkl` of bounded size.

    Args:
        file: The file, seekable.
        name: The student's name for it.
    """
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(64)
    if not head.startswith(b"PK"):
        return f"{name}: {_other_format(head)} {REMEDY}"
    try:
        with opened(file, name, MOST_ENTRIES) as archive:
            entries = archive.infolist()
    except SubmissionError:
        return f"{name}: is damaged or was not uploaded completely. {REMEDY}"
    fault = _entries_fault(entries, size)
    return f"{name}: {fault} {REMEDY}" if fault else None


def _other_format(head: bytes) -> str:
    """What a file that is no zip seems to be."""
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
