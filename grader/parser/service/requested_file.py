"""A file that the other end holds: a parser asks for its bytes as it reads them."""

import io
from typing import Any, BinaryIO

from grader.intake.archive_pieces import CHUNK
from grader.parser.messages import FILE_PART
from grader.protocol.frames import Frame, read_frame, write_frame


def requested_file(reader: BinaryIO, writer: BinaryIO, size: int) -> BinaryIO:
    """A seekable file of `size` bytes, which are asked for as they are read."""
    return io.BufferedReader(_RequestedFile(reader, writer, size), CHUNK // 4)


class _RequestedFile(io.RawIOBase):
    """A file whose bytes the other end holds."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO, size: int) -> None:
        self._reader = reader
        self._writer = writer
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("a position before the file's beginning")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), CHUNK, max(self._size - self._at, 0))
        if count == 0:
            return 0
        write_frame(self._writer, Frame({"read": [self._at, count]}))
        data = read_frame(self._reader, FILE_PART).arrays["data"]
        buffer[: len(data)] = data.data
        self._at += len(data)
        return len(data)
