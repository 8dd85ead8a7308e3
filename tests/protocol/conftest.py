"""Frames as a hostile writer makes them."""

import io
import json
from collections.abc import Callable
from typing import Any, BinaryIO

import pytest

from grader.protocol.frames import HEADER, MAGIC


@pytest.fixture(scope="session")
def hostile_frame() -> Callable[..., BinaryIO]:
    """A stream that holds one frame, whose header and document may lie."""

    def made(
        document: Any,
        payload: bytes = b"",
        *,
        magic: bytes = MAGIC,
        document_size: int | None = None,
        arrays_size: int | None = None,
    ) -> BinaryIO:
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        header = HEADER.pack(
            magic,
            len(text) if document_size is None else document_size,
            len(payload) if arrays_size is None else arrays_size,
        )
        return io.BytesIO(header + text + payload)

    return made
