"""Submitted files opened and parsed in a parser: archives, reports, checkpoints, sources.

A parser is asked for an archive's contents, for what a checkpoint or a report says, for the compared parts
of a submission, and for the program in a source with its view. This end hands out bytes and believes no
answer. An archive may be larger than any message, so the parser asks for the bytes that it wants to see,
and sends what it unpacks piece by piece. This end opens no hostile bytes itself.
"""

import contextlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from pydantic import ValidationError

from grader.domain.analyzed_program import Claim, Program
from grader.domain.assignment import Assignment, ProgramRules
from grader.domain.errors import EngineError, SubmissionError
from grader.domain.limits import MEGABYTE
from grader.domain.submission import RefusedFile, View
from grader.files.stored_records import validator
from grader.intake.archive_pieces import CHUNK, Begun, Caps, Ended, Piece
from grader.lms.system import MOST_ROWS, Row
from grader.parser.messages import (
    CODE,
    FIGURE,
    FILE_LIMITS,
    PIECE,
    PROGRAM,
    SOURCE_LIMITS,
    WEIGHTS,
    FileRequest,
)
from grader.protocol.frames import ClosedError, Frame, FrameLimit, write_frame
from grader.protocol.link import NoAnswer, timed_answers
from grader.sandbox.child_processes import Processes
from grader.sandbox.process_limits import ProcessLimits
from grader.similarity.compared_work import (
    MOST_FIGURES,
    MOST_TENSORS,
    PREVIEW,
    SAMPLES,
    Code,
    CodeUnit,
    ComparedPicture,
    SampledWeights,
)

_FURTHEST = 2**62  # longer than any file, and small enough for `seek`
_SPEED = 25 * MEGABYTE  # bytes per second: unpacking reaches at least this, and usually ten times as much


class ParserOpener:
    """Opens each file in a parser of its own: a file that takes too many resources ends that parser only."""

    def __init__(self, parsers: Processes) -> None:
        self._parsers = parsers

    def contents(self, archive: Path, caps: Caps) -> Iterator[Piece]:
        """What an archive holds.

        Raises:
            SubmissionError: It cannot be used, or unpacking it took more resources than are granted.
        """
        answers = self.answers(
            archive,
            {"open": FileRequest.ARCHIVE, "caps": asdict(caps)},
            FILE_LIMITS.cpu_seconds + caps.total_bytes // _SPEED,
        )
        with contextlib.closing(answers):
            for frame in answers:
                match frame.document:
                    case {"begun": str(name), "modified": int(modified)}:
                        yield Begun(name, modified)
                    case {"chunk": True} if "data" in frame.arrays:
                        yield frame.arrays["data"].tobytes()
                    case {"ended": str(reason)}:
                        yield Ended(reason or None)
                    case {"left_out": [str(name), str(reason), bool(clutter)]}:
                        yield RefusedFile(name, reason, clutter)
                    case {"done": True}:
                        return
                    case _:
                        raise _opening_failed(archive.name, "its answer makes no sense")

    def checkpoint_fault(self, path: Path, name: str) -> str | None:
        """Why a checkpoint is not accepted."""
        answers = self.answers(path, {"open": FileRequest.CHECKPOINT}, FILE_LIMITS.cpu_seconds, name=name)
        with contextlib.closing(answers):
            try:
                fault = next(answers).document.get("fault")
            except SubmissionError as error:
                return str(error)
        return str(fault)[:1000] if fault else None

    def claim(self, path: Path, name: str) -> Claim | None:
        """The accuracy that a report names; None if it names none or cannot be read."""
        answers = self.answers(path, {"open": FileRequest.REPORT}, FILE_LIMITS.cpu_seconds, name=name)
        with contextlib.closing(answers), contextlib.suppress(SubmissionError):
            match next(answers).document.get("claim"):
                case {"accuracy": float(share), "source": str(source), "text": str(text)} if 0 < share <= 1:
                    return Claim(share, source[:200], text[:300])
        return None

    def metadata_rows(self, path: Path) -> list[Row]:
        """What the metadata of a download says.

        Raises:
            SubmissionError: It cannot be read, or reading it took more resources than are granted.
        """
        rows: list[Row] = []
        answers = self.answers(path, {"open": FileRequest.METADATA}, FILE_LIMITS.cpu_seconds)
        with contextlib.closing(answers):
            for frame in answers:
                match frame.document:
                    case {"row": list(row)} if len(rows) < MOST_ROWS:
                        rows.append(row)
                    case {"done": True}:
                        return rows
                    case _:
                        raise _opening_failed(path.name, "its answer makes no sense")
        return rows

    def answers(
        self,
        path: Path,
        request: dict[str, Any],
        seconds: int,
        limit: FrameLimit = PIECE,
        *,
        limits: ProcessLimits | None = None,
        name: str = "",
    ) -> Generator[Frame, None, None]:
        """A parser's answers about a file, whose bytes it gets as it asks for them.

        Args:
            path: The file.
            request: What is asked; `open` says what to open it as.
            seconds: The limit of processor time, unless `limits` sets it, and of wall-clock time.
            limit: How large an answer may be.
            limits: What the parser may use; by default `FILE_LIMITS`.
            name: What sentences call the file; by default its own name.

        Raises:
            SubmissionError: It cannot be used, or opening it failed.
        """
        limits, name = limits or replace(FILE_LIMITS, cpu_seconds=seconds), name or path.name
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(path.open("rb"))
                request = {**request, "name": name, "size": path.stat().st_size}
            except OSError as error:
                raise SubmissionError(
                    f"{name}: cannot be read ({error.strerror}). Upload the file again."
                ) from error
            child = self._parsers.spawn(limits)
            try:
                for frame in stack.enter_context(timed_answers(child, Frame(request), seconds, limit)):
                    match frame.document:
                        case {"read": [int(offset), int(count)]}:
                            # if the parser is gone, the next read reports it
                            with contextlib.suppress(ClosedError):
                                write_frame(child.writer, _part(file, offset, count))
                        case {"refused": str(sentence)}:
                            raise SubmissionError(sentence[:2000])
                        case {"failed": str(message)}:  # an unforeseen kind of archive
                            raise _opening_failed(name, message[:300])
                        case {"exhausted": True}:
                            raise _opening_failed(name, limits.exceeded("memory"))
                        case _:
                            yield frame
            except NoAnswer as no_answer:
                raise _opening_failed(name, str(no_answer)) from no_answer


def _opening_failed(name: str, why: str) -> SubmissionError:
    return SubmissionError(
        f"{name}: opening it failed ({why}). Pack only what was asked for and upload that."
    )


def _part(file: BinaryIO, offset: int, count: int) -> Frame:
    file.seek(min(max(offset, 0), _FURTHEST))
    return Frame({}, {"data": np.frombuffer(file.read(min(max(count, 0), CHUNK)), dtype=np.uint8)})


# --- compared work ---------------------------------------------------------------------------------------


class ParserReader:
    """Reads each file in a parser of its own: a file that takes too many resources ends that parser only."""

    def __init__(self, opener: ParserOpener) -> None:
        self._opened = opener

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
        raise _unusable_answer(path)

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
        raise _unusable_answer(path)

    def figures(self, path: Path, into: list[ComparedPicture]) -> None:
        """Add the pictures of a notebook or a report to `into`, as they come.

        Raises:
            SubmissionError: Reading them ended badly; the earlier ones are kept.
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
    """The units in a parser's answer, which sends the lines of all units in a single list."""
    units: list[CodeUnit] = []
    position = 0
    for unit in listed:
        match unit:
            case [str(file), int(block), str(form)] if form and file in text:
                tokens = form.split(" ")
            case _:
                raise SubmissionError("reading its code gave no usable answer.")
        unit_lines = lines[position : position + len(tokens)]
        position += len(tokens)
        if len(unit_lines) != len(tokens) or not all(type(line) is int for line in unit_lines):
            raise SubmissionError("reading its code gave no usable answer.")
        units.append(CodeUnit(file[:300], block, tuple(zip(tokens, unit_lines, strict=True))))
    return tuple(units)


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
    raise _unusable_answer(path)


def _unusable_answer(path: Path) -> SubmissionError:
    return SubmissionError(f"{path.name}: reading it gave no usable answer. Look at the file.")


# --- parsed program --------------------------------------------------------------------------------------


SECONDS = 30.0  # wall-clock time
_MOST_VIEW = 12_000_000  # characters of a view, pictures included


def parsed_program(
    parsers: Processes,
    name: str,
    data: bytes,
    assignment: Assignment,
    show: Callable[[View], None] | None = None,
    modules: Mapping[str, bytes] | None = None,
) -> Program:
    """The program in a submitted file.

    Args:
        modules: Python files beside it: name, with the folders before it -> content.
        show: Called with the file as a person reads it, if it can be rendered, even if the file is refused.
            Whether rendering succeeds has no effect on the program.

    Raises:
        SubmissionError: It cannot be read, with the sentence for the student.
    """
    request = {
        "name": name,
        "view": show is not None,
        "modules": list(modules or {}),
        "rules": validator(ProgramRules).dump_python(assignment.program_rules, mode="json"),
    }
    contents = {f"module{number}": content for number, content in enumerate((modules or {}).values())}
    frame = Frame(
        request,
        {key: np.frombuffer(content, dtype=np.uint8) for key, content in {"data": data, **contents}.items()},
    )
    try:
        with timed_answers(parsers.spawn(SOURCE_LIMITS), frame, SECONDS, PROGRAM) as frames:
            answer = next(frames).document
            if show is not None and (view := _next_view(frames)) is not None:
                show(view)
        if "exhausted" in answer:
            raise NoAnswer(SOURCE_LIMITS.exceeded("memory"))
    except NoAnswer as no_answer:
        raise SubmissionError(
            f"{name}: reading it failed ({no_answer}). Is it deeply nested, or not written by hand?"
        ) from no_answer
    if "refused" in answer:
        raise SubmissionError(str(answer["refused"])[:2000])
    if "program" not in answer:
        raise EngineError(f"{name}: the parser failed ({str(answer.get('failed'))[:300]}).")
    program: Program = validator(Program).validate_json(json.dumps(answer["program"]))
    return program


def _next_view(frames: Iterator[Frame]) -> View | None:
    try:
        return view_in(next(frames).document)
    except NoAnswer:
        return None


def view_in(answer: dict[str, Any]) -> View | None:
    """The view in a parser's answer; None if it has none that makes sense.

    Its HTML is hostile until it is cleaned.
    """
    try:
        view = validator(View).validate_python(answer.get("view"))
    except ValidationError:
        return None
    return view if _size(view) <= _MOST_VIEW else None


def _size(view: View) -> int:
    pieces = sum(len(text) for cell in view.cells for line in cell.lines for _, text in line)
    return pieces + sum(len(cell.html) for cell in view.cells)
