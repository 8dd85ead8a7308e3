"""Workers for the judge's tests that lie in their replies."""

from collections.abc import Callable
from typing import Any, BinaryIO

import pytest

from grader.protocol.link import WorkerProcess


class Tampered:
    """A worker whose replies pass through a function that changes bytes on their way to the judge."""

    def __init__(self, process: Any, change: Callable[[Any], Any]) -> None:
        self._process = process
        self._change = change
        self.attestation = process.attestation
        self.writer: BinaryIO = process.writer
        self._left = b""

    @property
    def reader(self) -> "Tampered":
        """The changed replies."""
        return self

    def read(self, size: int) -> bytes:
        """The next bytes of a changed reply."""
        import io

        from grader.protocol.frames import FrameLimit, read_frame, write_frame

        if not self._left:
            stream = io.BytesIO()
            write_frame(stream, self._change(read_frame(self._process.reader, FrameLimit())))
            self._left = stream.getvalue()
        part, self._left = self._left[:size], self._left[size:]
        return part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)


@pytest.fixture(scope="session")
def tampered() -> Callable[[WorkerProcess, Callable[[Any], Any]], Any]:
    """Change every reply frame of a worker."""
    return Tampered
