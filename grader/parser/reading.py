"""What is compared of a submission, read in a parser: its code, its checkpoint's tensors, its pictures.

Code is parsed and pictures are decoded there; nothing is executed, and no pickle is read.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from grader.domain.errors import SubmissionError
from grader.parser.opening import LIMITS, OpenedApart
from grader.protocol.frames import Frame, FrameLimit, write_frame
from grader.similarity.code import read_code
from grader.similarity.figures import MOST_FIGURES, PREVIEW, notebook_figures, report_figures
from grader.similarity.shape import Unit
from grader.similarity.weights import MOST_TENSORS, SAMPLES, read_weights
from grader.similarity.work import Code, Figure, Weights

KINDS = ("code", "weights", "figures")
MOST_TOKENS = 400_000
MOST_TEXT = 4_000_000  # characters of code in all
FROM_CODE = FrameLimit(document=40_000_000, arrays=8 * MOST_TOKENS, values=1_000_000)
FROM_WEIGHTS = FrameLimit(document=1_000_000, arrays=4 * SAMPLES * MOST_TENSORS)
FROM_FIGURES = FrameLimit(document=10_000, arrays=3 * PREVIEW * PREVIEW, values=100)


class ReadApart:
    """Reads files in a parser of their own, which a bomb can end and nothing else."""

    def __init__(self, opened: OpenedApart) -> None:
        self._opened = opened

    def code(self, path: Path) -> Code:
        """The code of a script or a notebook.

        Raises:
            SubmissionError: It cannot be read, with the reason.
        """
        answers = self._opened.answers(path, {"open": "code"}, LIMITS.cpu_seconds, FROM_CODE)
        with contextlib.closing(answers):
            frame = next(answers)
        match frame.document:
            case {"text": dict(text), "units": list(units)} if "lines" in frame.arrays:
                return Code(_text(text), _units(units, frame.arrays["lines"].tolist(), text))
        raise _senseless(path)

    def weights(self, path: Path) -> Weights:
        """The tensors of a checkpoint.

        Raises:
            SubmissionError: It cannot be read, with the reason.
        """
        answers = self._opened.answers(path, {"open": "weights"}, LIMITS.cpu_seconds, FROM_WEIGHTS)
        with contextlib.closing(answers):
            frame = next(answers)
        samples = frame.arrays.get("samples")
        match frame.document:
            case {"sizes": list(sizes), "digests": list(digests)} if (
                samples is not None
                and samples.dtype == np.float32
                and samples.shape == (len(sizes), SAMPLES)
                and len(digests) == len(sizes) <= MOST_TENSORS
                and all(type(size) is int and 0 <= size < 2**40 for size in sizes)
            ):
                return Weights(tuple(sizes), tuple(str(digest)[:64] for digest in digests), samples)
        raise _senseless(path)

    def figures(self, path: Path, into: list[Figure]) -> None:
        """Adds the pictures of a notebook or a report to `into`, as they come.

        Raises:
            SubmissionError: Reading them ended badly; those before are there.
        """
        answers = self._opened.answers(path, {"open": "figures"}, LIMITS.cpu_seconds, FROM_FIGURES)
        with contextlib.closing(answers):
            for _ in range(MOST_FIGURES):
                frame = next(answers)
                if frame.document.get("done") is True:
                    return
                into.append(_figure(path, frame))


def serve_reading(job: dict[str, Any], file: BinaryIO, writer: BinaryIO) -> None:
    """In the parser: answer about the file that a job names.

    Raises:
        SubmissionError: It cannot be read.
    """
    if job["open"] == "code":
        write_frame(writer, _told_code(read_code(job["name"], file.read())))
    elif job["open"] == "weights":
        found = read_weights(file, job["name"])
        told = {"sizes": list(found.sizes), "digests": list(found.digests)}
        write_frame(writer, Frame(told, {"samples": found.samples}))
    else:
        figures = notebook_figures(file.read()) if _is_notebook(job["name"]) else report_figures(file)
        for figure in _first(figures):
            told_figure = {
                "digest": figure.digest,
                "where": figure.where,
                "size": [figure.width, figure.height],
            }
            write_frame(writer, Frame(told_figure, {"preview": figure.preview}))
        write_frame(writer, Frame({"done": True}))


def _first(figures: Iterator[Figure]) -> Iterator[Figure]:
    return (figure for _, figure in zip(range(MOST_FIGURES - 1), figures, strict=False))


def _is_notebook(name: str) -> bool:
    return Path(name).suffix.lower() == ".ipynb"


def _told_code(code: Code) -> Frame:
    lines = np.array([line for unit in code.units for _, line in unit.tokens], dtype=np.int32)
    if len(lines) > MOST_TOKENS or sum(map(len, code.text.values())) > MOST_TEXT:
        raise SubmissionError("holds more code than can be compared.")
    units = [[unit.file, unit.block, " ".join(unit.form)] for unit in code.units]
    return Frame({"text": code.text, "units": units}, {"lines": lines})


def _text(text: dict[str, Any]) -> dict[str, str]:
    return {str(name)[:300]: str(value) for name, value in text.items()}


def _units(told: list[Any], lines: list[Any], text: dict[str, Any]) -> tuple[Unit, ...]:
    """The units that a parser told, whose lines follow each other in one list."""
    found: list[Unit] = []
    at = 0
    for one in told:
        match one:
            case [str(file), int(block), str(form)] if form and file in text:
                tokens = form.split(" ")
            case _:
                raise SubmissionError("reading its code gave no sense.")
        its = lines[at : at + len(tokens)]
        at += len(tokens)
        if len(its) != len(tokens) or not all(type(line) is int for line in its):
            raise SubmissionError("reading its code gave no sense.")
        found.append(Unit(file[:300], block, tuple(zip(tokens, its, strict=True))))
    return tuple(found)


def _figure(path: Path, frame: Frame) -> Figure:
    preview = frame.arrays.get("preview")
    match frame.document:
        case {"digest": str(digest), "where": str(where), "size": [int(width), int(height)]} if (
            preview is not None
            and preview.dtype == np.uint8
            and preview.ndim == 3
            and preview.shape[2] == 3
            and 0 < preview.shape[0] <= PREVIEW
            and 0 < preview.shape[1] <= PREVIEW
        ):
            return Figure(digest[:64], where[:60], width, height, preview)
    raise _senseless(path)


def _senseless(path: Path) -> SubmissionError:
    return SubmissionError(f"{path.name}: reading it gave no sense. Look at the file.")
