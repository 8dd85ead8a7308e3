"""A submitted source parsed: its program, and how it looks to people."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from grader.domain.assignment import Assignment, ProgramRules
from grader.domain.errors import EngineError, SubmissionError
from grader.domain.program import Program
from grader.domain.submission_view import View
from grader.files.typed_json import validator
from grader.parser.messages import PROGRAM, SOURCE_LIMITS
from grader.protocol.frames import Frame
from grader.protocol.timed_answers import Silence, timed_answers
from grader.sandbox.processes import Processes

SECONDS = 30.0  # of wall-clock time
_MOST_VIEW = 12_000_000  # characters of a view, pictures included


def parsed(
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
        show: Given the file as a person reads it, where it can be rendered: also of one that is refused.
            Whatever rendering it comes to, the program is what it is.

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
            raise Silence(SOURCE_LIMITS.exceeded("memory"))
    except Silence as silence:
        raise SubmissionError(
            f"{name}: reading it ended badly ({silence}). Is it deeply nested, or not written by hand?"
        ) from silence
    if "refused" in answer:
        raise SubmissionError(str(answer["refused"])[:2000])
    if "program" not in answer:
        raise EngineError(f"{name}: the parser failed ({str(answer.get('failed'))[:300]}).")
    program: Program = validator(Program).validate_json(json.dumps(answer["program"]))
    return program


def _next_view(frames: Iterator[Frame]) -> View | None:
    try:
        return view_in(next(frames).document)
    except Silence:
        return None


def view_in(answer: dict[str, Any]) -> View | None:
    """The view in a parser's answer; None where it has none that makes sense.

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
