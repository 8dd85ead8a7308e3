"""Answers about a submitted file: what is packed in it, what it claims, and how it looks to people.

The file is open in the process that asks, which sends its bytes as they are read here. Archives are read,
code is parsed, pictures are decoded and a source is rendered here. Nothing is executed, and no pickle is
read. nbconvert is imported only in a parser, and at its start only if views are wanted: that takes as long as
everything else that a parser loads.
"""

import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from grader.analysis.stated_values import claim_in_report
from grader.domain.errors import SubmissionError
from grader.domain.submission import RefusedFile, View
from grader.files.stored_records import validator
from grader.intake.archive import checkpoint_fault, contents
from grader.intake.archive_pieces import CHUNK, Begun, Caps, Ended, Piece
from grader.lms.downloads import metadata_rows
from grader.parser.messages import FILE_PART, MOST_TEXT, MOST_TOKENS, FileRequest
from grader.parser.service.pdf_pages import report_pages
from grader.protocol.frames import Frame, read_frame, write_frame
from grader.similarity.compared_work import MOST_FIGURES, Code, ComparedPicture
from grader.similarity.normalized_code import read_code
from grader.similarity.pictures import notebook_figures, report_figures
from grader.similarity.weights import read_weights


def requested_file(reader: BinaryIO, writer: BinaryIO, size: int) -> BinaryIO:
    """A seekable file of `size` bytes, which are asked for as they are read."""
    return io.BufferedReader(_RequestedFile(reader, writer, size), CHUNK // 4)


class _RequestedFile(io.RawIOBase):
    """A file that is open in the process that asks."""

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


# --- page view -------------------------------------------------------------------------------------------


_SECONDS = 5  # processor time that rendering may take


def view_answer(name: str, data: bytes, modules: Mapping[str, bytes] | None = None) -> dict[str, Any]:
    """The answer with the view of a file, or without one if it cannot be rendered.

    Args:
        modules: The modules that it imports, by name.
    """
    import resource  # only where submissions are graded, on Linux

    from grader.analysis.view import viewed

    # Markdown can take a renderer hours. The limit then ends this process, which has sent the program before.
    used_seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    limit = math.ceil(used_seconds) + _SECONDS
    # also the hard limit: process 1 of a namespace ignores the signal that the soft limit sends
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    try:
        return {"view": validator(View).dump_python(viewed(name, data, modules), mode="json")}
    except SubmissionError as error:
        return {"refused": str(error)}
    except (MemoryError, RecursionError):
        return {"exhausted": True}
    except Exception as error:  # noqa: BLE001 - an unforeseen error costs only the view
        return {"failed": f"{type(error).__name__}: {error}"}


def warm() -> None:
    """Load what rendering the first file would load."""
    from grader.analysis import view

    view.warm()
    validator(View)


# --- file contents ---------------------------------------------------------------------------------------


_DONE = Frame({"done": True})


def answers_about(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    """The answers to a request about a file, as they come.

    Args:
        request: `open` is one of the kinds of `FileRequest` that this module reads; `name` is the file's.
        file: Seekable.

    Raises:
        SubmissionError: It cannot be used.
    """
    return _READERS[FileRequest(request["open"])](request, file)


def _archive(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    for piece in contents(file, request["name"], Caps(**request["caps"])):
        yield _piece(piece)
    yield _DONE


def _piece(piece: Piece) -> Frame:
    match piece:
        case bytes():
            return Frame({"chunk": True}, {"data": np.frombuffer(piece, dtype=np.uint8)})
        case Begun(name, modified):
            return Frame({"begun": name, "modified": modified})
        case Ended(reason):
            return Frame({"ended": reason or ""})
        case RefusedFile(name, reason, clutter):
            return Frame({"left_out": [name, reason, clutter]})


def _checkpoint(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    yield Frame({"fault": checkpoint_fault(file, request["name"])})


def _report(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    claim = claim_in_report(request["name"], report_pages(file))
    yield Frame({"claim": asdict(claim) if claim else None})


def _metadata(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    for row in metadata_rows(file, request["name"]):
        yield Frame({"row": row})
    yield _DONE


def _code(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    code: Code = read_code(request["name"], file.read())
    lines = np.array([line for unit in code.units for _, line in unit.tokens], dtype=np.int32)
    if len(lines) > MOST_TOKENS or sum(map(len, code.text.values())) > MOST_TEXT:
        raise SubmissionError("holds more code than can be compared.")
    units = [[unit.file, unit.block, " ".join(unit.form)] for unit in code.units]
    yield Frame({"text": code.text, "units": units}, {"lines": lines})


def _weights(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    weights = read_weights(file, request["name"])
    yield Frame(
        {"sizes": list(weights.sizes), "digests": list(weights.digests)}, {"samples": weights.samples}
    )


def _figures(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    is_notebook = Path(request["name"]).suffix.lower() == ".ipynb"
    figures = notebook_figures(file.read()) if is_notebook else report_figures(file)
    for figure in _first(figures):
        yield Frame(
            {"digest": figure.digest, "where": figure.where, "size": [figure.width, figure.height]},
            {"preview": figure.preview},
        )
    yield _DONE


def _first(figures: Iterator[ComparedPicture]) -> Iterator[ComparedPicture]:
    # the last of the MOST_FIGURES answers that are read is `_DONE`
    return (figure for _, figure in zip(range(MOST_FIGURES - 1), figures, strict=False))


_READERS: dict[FileRequest, Callable[[dict[str, Any], BinaryIO], Iterator[Frame]]] = {
    FileRequest.ARCHIVE: _archive,
    FileRequest.CHECKPOINT: _checkpoint,
    FileRequest.REPORT: _report,
    FileRequest.METADATA: _metadata,
    FileRequest.CODE: _code,
    FileRequest.WEIGHTS: _weights,
    FileRequest.FIGURES: _figures,
}
