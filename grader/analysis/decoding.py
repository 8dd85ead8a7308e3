"""Text encodings: from the bytes of a file to its text.

It tries UTF-16 by its byte order mark, UTF-8, the declared encoding, then two Windows encodings. The last two
count only where the caller says that the text makes sense. Where none fits it raises a sentence with the
remedy, and never guesses further. `source` decides whether the text is Python.

Tests: tests/analysis/test_source_reading.py
"""

import codecs
import io
import tokenize
from collections.abc import Callable

from grader.domain.errors import SubmissionError

REMEDY = "Open it in an editor, choose 'Save with encoding: UTF-8', and hand it in again."
WINDOWS = ("cp1252", "latin-1")


def text(name: str, data: bytes, readable: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and notes about how it was read.

    UTF-8 with or without a mark, then what a coding line declares, then UTF-16 by its mark, then Windows
    encodings where the text makes sense in them.

    Args:
        name: The file's name, for messages.
        data: Its content.
        readable: Whether a text makes sense (it parses): the proof for an encoding that takes any bytes.

    Raises:
        SubmissionError: The file is empty, holds NUL bytes or is in no encoding that could be told.
    """
    if not data.strip():
        raise SubmissionError(f"{name}: is empty. Save your work into it and hand it in again.")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoded = _decoded(data, "utf-16")
        if decoded is None or "\0" in decoded:
            raise SubmissionError(f"{name}: begins like UTF-16 but cannot be read as it. {REMEDY}")
        return _lines(decoded), (f"{name} is saved as UTF-16; it was read all the same. Save it as UTF-8.",)
    if b"\0" in data:
        raise SubmissionError(
            f"{name}: holds NUL bytes, so it is not a text file (perhaps it was damaged). {REMEDY}"
        )
    decoded = _decoded(data, "utf-8-sig")
    if decoded is not None:
        return _lines(decoded), ()
    declared = _declared(data)
    if declared is not None and (decoded := _decoded(data, declared)) is not None:
        return _lines(decoded), ()
    for encoding in WINDOWS:
        decoded = _decoded(data, encoding)
        if decoded is not None and readable(_lines(decoded)):
            note = f"{name} is not saved as UTF-8; it was read as {encoding}. Save it as UTF-8."
            return _lines(decoded), (note,)
    raise SubmissionError(f"{name}: is not saved as UTF-8 and cannot be read. {REMEDY}")


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _declared(data: bytes) -> str | None:
    """The encoding that a coding line declares (PEP 263), if it is one of text."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        codec = codecs.lookup(encoding)
    except (SyntaxError, LookupError):
        return None
    return codec.name if getattr(codec, "_is_text_encoding", True) else None


def _lines(decoded: str) -> str:
    """The text with `\\n` between lines, as the parser counts them."""
    return decoded.replace("\r\n", "\n").replace("\r", "\n")
