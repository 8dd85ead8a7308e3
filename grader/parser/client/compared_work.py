"""What is compared of a submission, as a parser reads it: code, the tensors of a checkpoint, pictures."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from grader.domain.errors import SubmissionError
from grader.parser.client.opened_files import ParserOpener
from grader.parser.messages import CODE, FIGURE, FILE_LIMITS, WEIGHTS, FileRequest
from grader.protocol.frames import Frame
from grader.similarity.work import (
    MOST_FIGURES,
    MOST_TENSORS,
    PREVIEW,
    SAMPLES,
    Code,
    CodeUnit,
    ComparedPicture,
    SampledWeights,
)


class ParserReader:
    """Reads files in a parser of their own, which a bomb can end and nothing else."""

    def __init__(self, opened: ParserOpener) -> None:
        self._opened = opened

    def code(self, path: Path) -> Code:
        """The code of a script or a notebook.

        Raises:
            SubmissionError: It cannot be read, with the reason.
        """
        answers = self._opened.answers(path, {"open": FileRequest.CODE}, FILE_LIMITS.cpu_seconds, CODE)
        with contextlib.closing(answers):
            frame = next(answers)
        match frame.document:
            case {"text": dict(text), "units": list(units)} if "lines" in frame.arrays:
                return Code(_text(text), _units(units, frame.arrays["lines"].tolist(), text))
        raise _senseless(path)

    def weights(self, path: Path) -> SampledWeights:
        """The tensors of a checkpoint.

        Raises:
            SubmissionError: It cannot be read, with the reason.
        """
        answers = self._opened.answers(path, {"open": FileRequest.WEIGHTS}, FILE_LIMITS.cpu_seconds, WEIGHTS)
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
                return SampledWeights(tuple(sizes), tuple(str(digest)[:64] for digest in digests), samples)
        raise _senseless(path)

    def figures(self, path: Path, into: list[ComparedPicture]) -> None:
        """Adds the pictures of a notebook or a report to `into`, as they come.

        Raises:
            SubmissionError: Reading them ended badly; those before are there.
        """
        answers = self._opened.answers(path, {"open": FileRequest.FIGURES}, FILE_LIMITS.cpu_seconds, FIGURE)
        with contextlib.closing(answers):
            for _ in range(MOST_FIGURES):
                frame = next(answers)
                if frame.document.get("done") is True:
                    return
                into.append(_figure(path, frame))


def _text(text: dict[str, Any]) -> dict[str, str]:
    return {str(name)[:300]: str(value) for name, value in text.items()}


def _units(listed: list[Any], lines: list[Any], text: dict[str, Any]) -> tuple[CodeUnit, ...]:
    """The units in a parser's answer, whose lines follow each other in one list."""
    found: list[CodeUnit] = []
    at = 0
    for unit in listed:
        match unit:
            case [str(file), int(block), str(form)] if form and file in text:
                tokens = form.split(" ")
            case _:
                raise SubmissionError("reading its code gave no sense.")
        its = lines[at : at + len(tokens)]
        at += len(tokens)
        if len(its) != len(tokens) or not all(type(line) is int for line in its):
            raise SubmissionError("reading its code gave no sense.")
        found.append(CodeUnit(file[:300], block, tuple(zip(tokens, its, strict=True))))
    return tuple(found)


def _figure(path: Path, frame: Frame) -> ComparedPicture:
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
            return ComparedPicture(digest[:64], where[:60], width, height, preview)
    raise _senseless(path)


def _senseless(path: Path) -> SubmissionError:
    return SubmissionError(f"{path.name}: reading it gave no sense. Look at the file.")
