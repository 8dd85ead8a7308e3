"""Frames: a JSON document and named arrays, with lengths known before anything is allocated.

Layout: 4 bytes magic, u32 length of the document, u64 length of the arrays (little endian), the document in
UTF-8, the arrays one after the other in C order. The document's key `$arrays` lists name, dtype and shape.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from grader.domain.errors import Interruption

MAGIC = b"GRF1"
HEADER = struct.Struct("<4sIQ")
DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")
ARRAYS_KEY = "$arrays"
MAX_ARRAYS = 4096
MAX_DIMENSIONS = 8

Array = NDArray[Any]


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, count: int, /) -> bytes:
        """At most `count` bytes; nothing at the end."""


class ProtocolError(Interruption):
    """The other side sent something that is not a frame, or more than was allowed."""


class ClosedError(ProtocolError):
    """The other side is gone."""


@dataclass(frozen=True)
class FrameLimit:
    """How large a frame may be.

    Attributes:
        document: In bytes.
        arrays: In bytes.
        values: In the document, at any depth. A validator may report every wrong value, and a report takes
            hundreds of times as many bytes as the value.
    """

    document: int = 4_000_000
    arrays: int = 256_000_000
    values: int = 200_000


@dataclass(frozen=True)
class Frame:
    """One message: JSON values and arrays by name.

    Attributes:
        text: Of a frame that was read, its document as it came, with its list of arrays.
    """

    document: dict[str, Any]
    arrays: Mapping[str, Array] = field(default_factory=dict)
    text: str = ""


def write_frame(stream: BinaryIO, frame: Frame) -> None:
    """Write one frame and flush it.

    Raises:
        ClosedError: Nobody reads any more.
        ProtocolError: An array has a dtype that frames do not carry.
    """
    # a dtype's name does not include its byte order: everything travels in this machine's own
    contiguous = {
        name: np.ascontiguousarray(value, dtype=np.asarray(value).dtype.newbyteorder("="))
        for name, value in frame.arrays.items()
    }
    for name, value in contiguous.items():
        if _name(value.dtype) not in DTYPES:
            raise ProtocolError(f"array {name!r} has dtype {value.dtype}, which a frame cannot carry")
    # ascontiguousarray turns a scalar into one dimension: the shape is taken from the original
    descriptions = [
        {"name": name, "dtype": _name(value.dtype), "shape": list(np.shape(frame.arrays[name]))}
        for name, value in contiguous.items()
    ]
    document = _ENCODER.encode({**frame.document, ARRAYS_KEY: descriptions}).encode()
    size = sum(value.nbytes for value in contiguous.values())
    try:
        stream.write(HEADER.pack(MAGIC, len(document), size) + document)
        for value in contiguous.values():
            stream.write(value.reshape(-1).view(np.uint8).data)
        stream.flush()
    except (BrokenPipeError, ConnectionError, ValueError) as error:
        raise ClosedError("the other side is gone") from error


def read_frame(stream: Readable, limit: FrameLimit) -> Frame:
    """Read one frame from a hostile writer.

    Raises:
        ClosedError: The stream ended before a frame began or within it.
        ProtocolError: It is not a frame, or larger than `limit`.
    """
    magic, document_size, arrays_size = HEADER.unpack(_exactly(stream, HEADER.size))
    if magic != MAGIC:
        raise ProtocolError("not a frame")
    if document_size > limit.document or arrays_size > limit.arrays:
        raise ProtocolError(f"a frame of {document_size + arrays_size} bytes is larger than allowed")
    try:
        text = _exactly(stream, document_size).decode()
        document = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a frame's document is not JSON") from error
    if not isinstance(document, dict):
        raise ProtocolError("a frame's document is not an object")
    # a value takes two letters at least, with what separates it from the next
    if document_size > 2 * limit.values and _has_more_values(document, limit.values):
        raise ProtocolError("a frame's document holds more values than allowed")
    announced = _announced_arrays(document.pop(ARRAYS_KEY, []))
    if sum(size for _, _, _, size in announced) != arrays_size:
        raise ProtocolError("a frame's arrays do not have the size that they say")
    arrays = {}
    for name, dtype, shape, size in announced:
        try:
            arrays[name] = np.frombuffer(_exactly(stream, size), dtype=dtype).reshape(shape)
        except ValueError as error:  # no bytes at all, but sides whose product numpy cannot compute
            raise ProtocolError("an array's shape is malformed") from error
    return Frame(document, arrays, text)


@cache
def _name(dtype: "np.dtype[Any]") -> str:
    return dtype.name


def _has_more_values(document: Any, most: int) -> bool:
    """Whether a document holds more than `most` values."""
    count, containers = 0, [document]
    while containers:
        container = containers.pop()
        values = container.values() if isinstance(container, dict) else container
        count += len(values)
        if count > most:
            return True
        containers += [value for value in values if isinstance(value, dict | list)]
    return False


def _announced_arrays(listed: object) -> list[tuple[str, "np.dtype[Any]", tuple[int, ...], int]]:
    """(name, dtype, shape, bytes) of every array that a document announces."""
    if not isinstance(listed, list) or len(listed) > MAX_ARRAYS:
        raise ProtocolError("a frame's list of arrays is malformed")
    arrays = []
    for entry in listed:
        match entry:
            case {"name": str(name), "dtype": str(dtype), "shape": list(shape)} if dtype in DTYPES:
                pass
            case _:
                raise ProtocolError("a frame's list of arrays is malformed")
        if len(shape) > MAX_DIMENSIONS or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
            raise ProtocolError("an array's shape is malformed")
        arrays.append((name, np.dtype(dtype), tuple(shape), math.prod(shape) * np.dtype(dtype).itemsize))
    if len({name for name, *_ in arrays}) != len(arrays):
        raise ProtocolError("two arrays of a frame have the same name")
    return arrays


def _exactly(stream: Readable, count: int) -> bytes:
    """`count` bytes, read as they come: the stream may be unbuffered."""
    parts = []
    while count > 0:
        try:
            part = stream.read(min(count, 1 << 20))
        except (ConnectionError, ValueError) as error:
            raise ClosedError("the other side is gone") from error
        if not part:
            raise ClosedError("the stream ended")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # 1e999
        raise ValueError(f"{text[:40]} is too large")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# made once: making one takes as long as many a document
_ENCODER = json.JSONEncoder(allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
