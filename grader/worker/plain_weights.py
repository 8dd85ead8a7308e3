"""Weights in formats that hold arrays alone: `.safetensors` and `.npz`. Nothing is unpickled.

The layout of safetensors: 8 bytes with the header's length (little endian), the header in JSON (name ->
dtype, shape, data_offsets), and the tensors' bytes without a gap (https://huggingface.co/docs/safetensors).
Every length is compared with what is there before it is used. `measuring` decides whether the weights fit the
model.

Tests: tests/worker/test_plain_weights.py
"""

import io
import json
import math
import struct
import zipfile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.protocol.replies import CheckpointFault

MOST_HEADER = 4_000_000  # bytes
MOST_ARRAYS = 5000
MOST_DIMENSIONS = 8
_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NUMPY = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "b1")


def is_safetensors(data: bytes) -> bool:
    """Whether a file begins as one of safetensors does."""
    return data[_LENGTH.size : _LENGTH.size + 1] == b"{"


def is_npz(data: bytes) -> bool:
    """Whether a file is a zip of NumPy's arrays."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError):
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def safetensors_weights(data: bytes, max_bytes: int) -> dict[str, Tensor] | CheckpointFault:
    """The tensors of a safetensors file by name, or why there are none to be had.

    Args:
        data: The file.
        max_bytes: That all tensors may take.
    """
    if len(data) > max_bytes:
        return "too_large"
    entries = _header(data)
    if entries is None:
        return "unreadable"
    if not entries or len(entries) > MOST_ARRAYS:
        return "no_state_dict"
    begin = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    found: dict[str, Tensor] = {}
    at = 0  # tensors follow each other: each byte is of one
    for name, entry in sorted(entries.items(), key=lambda item: _offsets(item[1])):
        dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry.get("dtype"), str) else None
        if dtype is None:
            return "odd_entry"
        shape, (first, last) = _shape(entry.get("shape")), _offsets(entry)
        if shape is None or first != at or last > len(data) - begin:
            return "unreadable"
        if last - first != math.prod(shape) * dtype.itemsize:
            return "unreadable"
        found[name] = _tensor(data[begin + first : begin + last], dtype, shape)
        at = last
    return found if at == len(data) - begin else "unreadable"


def _header(data: bytes) -> dict[str, dict[str, Any]] | None:
    """The entries of the header, each a table; None where there is no such header."""
    if len(data) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(data)
    if not 2 <= length <= min(MOST_HEADER, len(data) - _LENGTH.size):
        return None
    try:
        text = data[_LENGTH.size : _LENGTH.size + length].decode("utf-8")
        header = json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict):
        return None
    header.pop(_METADATA, None)
    if not all(isinstance(entry, dict) and _offsets(entry) != (-1, -1) for entry in header.values()):
        return None
    return header


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON in which no key is there twice.

    Raises:
        ValueError: One is.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made


def _offsets(entry: dict[str, Any]) -> tuple[int, int]:
    """Where an entry's bytes begin and end; (-1, -1) where it does not say so."""
    match entry.get("data_offsets"):
        case [int(first), int(last)] if 0 <= first <= last and bool not in (type(first), type(last)):
            return first, last
    return -1, -1


def _shape(said: object) -> list[int] | None:
    """A shape, if what a file says is one."""
    if not isinstance(said, list) or len(said) > MOST_DIMENSIONS:
        return None
    return said if all(type(side) is int and 0 <= side < 2**40 for side in said) else None


def _tensor(content: bytes, dtype: torch.dtype, shape: list[int]) -> Tensor:
    if not content:
        return torch.zeros(shape, dtype=dtype)
    if dtype == torch.bool:  # a byte of a boolean is 0 or 1, whatever the file says
        return torch.frombuffer(bytearray(content), dtype=torch.uint8).ne(0).reshape(shape)
    return torch.frombuffer(bytearray(content), dtype=dtype).reshape(shape)


def npz_weights(data: bytes, max_bytes: int) -> dict[str, Tensor] | CheckpointFault:
    """The arrays of an `.npz` file by name, or why there are none to be had.

    Args:
        data: The file.
        max_bytes: That all arrays may take, unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if not entries or len(entries) > MOST_ARRAYS:
                return "no_state_dict"
            if sum(entry.file_size for entry in entries) > max_bytes:
                return "too_large"
            found: dict[str, Tensor] = {}
            for entry in entries:
                with archive.open(entry) as file:
                    made = _array(file.read(entry.file_size))
                if isinstance(made, str):
                    return made
                found[entry.filename.removesuffix(".npy")] = made
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, RuntimeError, NotImplementedError):
        return "unreadable"
    return found if len(found) == len(entries) else "unreadable"


def _array(content: bytes) -> Tensor | CheckpointFault:
    """One array, whose header must say just what is there.

    Raises:
        ValueError: It is not an array of NumPy's.
    """
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        return "unreadable"
    if dtype.str[1:] not in _NUMPY:
        return "odd_entry"
    values = content[stream.tell() :]
    if _shape(list(shape)) is None or math.prod(shape) * dtype.itemsize != len(values):
        return "unreadable"
    flat = np.frombuffer(values, dtype=dtype)
    array = flat.reshape(shape, order="F" if by_column else "C")
    return torch.from_numpy(np.array(array, dtype=dtype.newbyteorder("="), order="C"))
