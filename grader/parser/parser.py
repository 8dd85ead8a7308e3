"""The parser: reads a hostile source, zip or checkpoint in a short-lived, locked-down process.

`python -m grader.parser.parser` is a host that forks one for each of them. Parsing executes nothing, but a
parser can be made to use up memory and time, or to crash.
"""

import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from grader.analysis import program as analyzed
from grader.domain.assignment import Assignment, Component, ForbiddenRule
from grader.domain.errors import EngineError, SubmissionError
from grader.domain.program import Program
from grader.domain.view import View
from grader.files.typed_json import validator
from grader.intake import pdf_pages
from grader.intake.report import report_pages
from grader.parser import rendering
from grader.parser.opening import asked_file, serve_opening
from grader.parser.paper import PAGES, serve_pages
from grader.parser.reading import KINDS, serve_reading
from grader.protocol.exchange import Silence, conversation
from grader.protocol.frames import Frame, FrameLimit, read_frame, write_frame
from grader.sandbox import forkserver
from grader.sandbox.limits import ProcessLimits
from grader.sandbox.processes import Processes
from grader.similarity import figures

LIMITS = ProcessLimits(memory_mb=1500, cpu_seconds=30, file_mb=1, scratch_mb=16)
SECONDS = 30.0
FROM_PIPELINE = FrameLimit(document=4_000_000, arrays=100_000_000)
COMPONENTS, FORBIDDEN = tuple[Component, ...], tuple[ForbiddenRule, ...]
FROM_PARSER = FrameLimit(document=64_000_000, arrays=0, values=1_000_000)


def main() -> None:
    """Run the host."""
    forkserver.main(_serve, _prepare)


def parsed(
    parsers: Processes,
    name: str,
    data: bytes,
    assignment: Assignment,
    show: Callable[[View], None] | None = None,
) -> Program:
    """The program in a submitted file.

    Args:
        show: Given the file as a person reads it, where it can be rendered: also of one that is refused.
            Whatever rendering it comes to, the program is what it is.

    Raises:
        SubmissionError: It cannot be read, with the sentence for the student.
    """
    job = {
        "name": name,
        "view": show is not None,
        "components": validator(COMPONENTS).dump_python(assignment.components, mode="json"),
        "forbidden": validator(FORBIDDEN).dump_python(assignment.forbidden, mode="json"),
    }
    request = Frame(job, {"data": np.frombuffer(data, dtype=np.uint8)})
    try:
        with conversation(parsers.spawn(LIMITS), request, SECONDS, FROM_PARSER) as frames:
            answer = next(frames).document
            if show is not None and (view := _rendered(frames)) is not None:
                show(view)
        if "exhausted" in answer:
            raise Silence(LIMITS.exceeded("memory"))
    except Silence as silence:
        raise SubmissionError(
            f"{name}: reading it ended badly ({silence}). Is it deeply nested, or not written by hand?"
        ) from silence
    if "refused" in answer:
        raise SubmissionError(str(answer["refused"])[:2000])
    if "program" not in answer:
        raise EngineError(f"{name}: the parser failed ({str(answer.get('failed'))[:300]}).")
    found: Program = validator(Program).validate_json(json.dumps(answer["program"]))
    return found


def _rendered(frames: Iterator[Frame]) -> View | None:
    try:
        return rendering.view_told(next(frames).document)
    except Silence:
        return None


def _prepare() -> None:
    # the first use of each of these loads more modules than its import does
    analyzed("warm.py", b"x = 1\n", components=(), forbidden=())
    for kind in (Program, COMPONENTS, FORBIDDEN):
        validator(kind)
    report_pages(io.BytesIO(b"%PDF-1.4 no pages"))
    figures.warm()
    if rendering.VIEWS in sys.argv:
        rendering.warm()
        pdf_pages.warm()


def _serve(reader: BinaryIO, writer: BinaryIO) -> None:
    frame = read_frame(reader, FROM_PIPELINE)
    try:
        if frame.document.get("open") in KINDS:
            serve_reading(frame.document, asked_file(frame.document, reader, writer), writer)
            return
        if frame.document.get("open") == PAGES:
            serve_pages(frame.document, asked_file(frame.document, reader, writer), writer)
            return
        if "open" in frame.document:
            serve_opening(frame.document, reader, writer)
            return
        answer = {"program": _program(frame)}
    except SubmissionError as error:
        answer = {"refused": str(error)}
    except MemoryError:
        answer = {"exhausted": True}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is ours and not the student's
        answer = {"failed": f"{type(error).__name__}: {error}"}
    write_frame(writer, Frame(answer))
    if frame.document.get("view"):
        data = frame.arrays["data"].tobytes()
        write_frame(writer, Frame(rendering.told_view(frame.document["name"], data)))


def _program(frame: Frame) -> Any:
    """The program in a submitted file, as JSON."""
    job = frame.document
    found = analyzed(
        job["name"],
        frame.arrays["data"].tobytes(),
        components=validator(COMPONENTS).validate_python(job["components"]),
        forbidden=validator(FORBIDDEN).validate_python(job["forbidden"]),
    )
    return validator(Program).dump_python(found, mode="json")


if __name__ == "__main__":
    main()
