"""Answers about a file that was handed in: what is packed in it, what it claims, what is compared of it.

Archives are read, code is parsed and pictures are decoded here; nothing is executed, and no pickle is read.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from grader.analysis.claims import claim_in_report
from grader.domain.errors import SubmissionError
from grader.domain.submission import RefusedFile
from grader.intake.archive import contents
from grader.intake.archive_pieces import Begun, Caps, Ended, Piece
from grader.intake.checkpoint_file import checkpoint_fault
from grader.lms.downloads import metadata_rows
from grader.parser.messages import MOST_TEXT, MOST_TOKENS, FileRequest
from grader.parser.service.pdf_text import report_pages
from grader.protocol.frames import Frame
from grader.similarity.code import read_code
from grader.similarity.pictures import notebook_figures, report_figures
from grader.similarity.weights import read_weights
from grader.similarity.work import MOST_FIGURES, Code, ComparedPicture

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
            return Frame({"left": [name, reason, clutter]})


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
