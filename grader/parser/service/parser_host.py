"""The parsers' host: forks a locked-down process for each source or file, which answers about that one.

Parsing executes nothing, but a parser can be made to use up memory and time, or to crash.
"""

import io
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from grader.analysis import program as analyzed
from grader.analysis.joining import installed
from grader.domain.analyzed_program import Program
from grader.domain.assignment import ProgramRules
from grader.domain.errors import SubmissionError
from grader.files.stored_records import validator
from grader.parser.messages import SOURCE, VIEWS, FileRequest
from grader.parser.service import file_contents, pdf_pages
from grader.parser.service.file_contents import answers_about, requested_file
from grader.parser.service.pdf_pages import report_pages
from grader.protocol.frames import Frame, read_frame, write_frame
from grader.sandbox import forkserver
from grader.similarity import pictures


def main() -> None:
    """Run the host."""
    forkserver.main(_serve, _prepare)


def _prepare() -> None:
    # the first use of each of these loads more modules than its import does
    analyzed("warm.py", b"import other\n", ProgramRules(), {"other.py": b"x = 1\n"})
    installed()
    for kind in (Program, ProgramRules):
        validator(kind)
    report_pages(io.BytesIO(b"%PDF-1.4 no pages"))
    pictures.warm()
    if VIEWS in sys.argv:
        file_contents.warm()
        pdf_pages.warm()


def _serve(reader: BinaryIO, writer: BinaryIO) -> None:
    frame = read_frame(reader, SOURCE)
    request = frame.document
    modules: set[str] = set()
    try:
        if "open" in request:
            file = requested_file(reader, writer, request["size"])
            for answer in _answers_about(request, file):
                write_frame(writer, answer)
            return
        document = {"program": _program(frame)}
        modules = set(document["program"]["modules"])
    except SubmissionError as error:
        document = {"refused": str(error)}
    except MemoryError:
        document = {"exhausted": True}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is our fault and not the student's
        document = {"failed": f"{type(error).__name__}: {error}"}
    write_frame(writer, Frame(document))
    if request.get("view"):
        shown = {name: data for name, data in _modules(frame).items() if name in modules}
        data = frame.arrays["data"].tobytes()
        write_frame(writer, Frame(file_contents.view_answer(request["name"], data, shown)))


def _answers_about(request: dict[str, Any], file: BinaryIO) -> Iterator[Frame]:
    if request["open"] == FileRequest.PAGES:
        return pdf_pages.page_answers(request["first"], file)
    return answers_about(request, file)


def _modules(frame: Frame) -> dict[str, bytes]:
    """The modules beside the file: name -> content."""
    names = frame.document.get("modules", ())
    return {name: frame.arrays[f"module{number}"].tobytes() for number, name in enumerate(names)}


def _program(frame: Frame) -> Any:
    """The program in a submitted file, as JSON."""
    request = frame.document
    program = analyzed(
        request["name"],
        frame.arrays["data"].tobytes(),
        validator(ProgramRules).validate_python(request["rules"]),
        _modules(frame),
    )
    return validator(Program).dump_python(program, mode="json")
