"""What can be told of weights without loading them: a `.pth` is a zip that holds a pickle.

A `.safetensors` file and an `.npz` hold arrays and nothing else.
"""

import zipfile
from pathlib import PurePath
from typing import BinaryIO

from grader.domain.assignment import MEGABYTE
from grader.domain.errors import SubmissionError
from grader.intake.archive import opened

MOST_ENTRIES = 20_000
MOST_PICKLE_BYTES = 16 * MEGABYTE
MOST_HEADER_BYTES = 4 * MEGABYTE  # of a safetensors file
REMEDY = 'Save it again with torch.save(model.state_dict(), "<StudentID>.pth") and hand that file in.'


def checkpoint_fault(file: BinaryIO, name: str) -> str | None:
    """Why the checkpoint is not accepted, as a sentence with the remedy, or None.

    Accepted are, by the name's suffix, `.safetensors` with a header of bounded length, `.npz` (a zip of
    NumPy's arrays), and else the zip format that `torch.save` writes: every entry stored as it is (so that
    nothing can unpack to more than the file's size), no name twice, one `data.pkl` of bounded size.

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
    """What is wrong with the beginning of a safetensors file: 8 bytes of the header's length, and JSON."""
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
    if not names or not all(each.endswith(".npy") for each in names):
        return f"{name}: holds something else than NumPy's arrays. {remedy}"
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
