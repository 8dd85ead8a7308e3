"""The files that a student hands in, put together: with whose they are, and for which assignment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.course.written_id import written_id
from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.program import Place
from grader.domain.submission import Role
from grader.students.candidates import candidate, checked_id, inferred_id, named_ids
from grader.students.handout import local_assignment
from grader.students.own_check import local_check
from grader.students.own_machine import own_program
from grader.students.packing import Package, package


@dataclass(frozen=True)
class HandinRequest:
    """A hand-in that is to be put together.

    Attributes:
        source: Where the student's files are.
        working: The folder that the student works in.
        student_id: None: as the code states it, else as the files' names begin.
        confirmed: The id counts although the code states another one.
        checked: The public checks are made, too.
        given: Files that the student names; the others are looked for.
        out: Where to; None: `handin` in `source`.
        zipped: Also make a zip of all of them.
        force: Replace files of the same names with other content.
        folder, assignment_id, course: The assignment: see `HomeworkRequest`.
    """

    source: Path
    working: Path
    student_id: str | None = None
    confirmed: bool = False
    checked: bool = True
    given: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    out: Path | None = None
    zipped: bool = False
    force: bool = False
    folder: Path | None = None
    assignment_id: str | None = None
    course: Path | None = None


def pack_handin(request: HandinRequest) -> Package:
    """Find, verify and copy the files to hand in. What is fine is packed, whatever is wrong with the others.

    Raises:
        UsageError: There is no such folder, file, id or assignment.
        CourseError: A file of the assignment is malformed.
    """
    local = local_assignment(
        (request.source, request.working),
        folder=request.folder,
        assignment_id=request.assignment_id,
        course=request.course,
    )
    packed = package(
        request.source,
        local.assignment,
        _student_id(request, local.assignment),
        given=request.given,
        out=request.out,
        force=request.force,
        zipped=request.zipped,
    )
    code = next((file.source for file in packed.files if file.role == Role.CODE), None)
    if not request.checked or code is None or packed.program is None:
        return packed
    return replace(packed, checked=local_check(code, local))


def _student_id(request: HandinRequest, assignment: Assignment) -> str:
    """Whose work it is: as the person says, as the code states, or as the files' names begin.

    Raises:
        UsageError: Nothing says so, or two of these contradict each other.
    """
    given = checked_id(request.student_id) if request.student_id else ""
    if not request.source.is_dir():
        return given or inferred_id(request.source, assignment)  # what is wrong is said by who packs
    stated = _stated_id(request, assignment, given)
    if stated is None or request.confirmed or stated.value == given:
        return given or inferred_id(request.source, assignment)
    is_example = stated.value == assignment.example_id
    what = f"STUDENT_ID at {stated.place} is " + (
        f"still {stated.value}, as it was handed out" if is_example else stated.value
    )
    remedy = "Correct that line and save the weights again under the right name"
    if given:
        raise UsageError(
            f"--id {given}, and {what}. Whose work is it? {remedy}; or, if --id is right, add --id-is-right."
        )
    if is_example:
        raise UsageError(f"{what}. {remedy}; or say whose work it is: --id STUDENT_ID --id-is-right.")
    others = named_ids(request.source, assignment) - {stated.value}
    if others:
        raise UsageError(
            f"{what}, and the names of files here say {' and '.join(sorted(others))}. Say whose work it is: "
            f"grader pack --id {stated.value}"
        )
    return checked_id(stated.value)


@dataclass(frozen=True)
class _StatedId:
    value: str
    place: Place


def _stated_id(request: HandinRequest, assignment: Assignment, given: str) -> _StatedId | None:
    """The id that the code states; None where it cannot be read, or states none."""
    code = next(iter(request.given.get(Role.CODE, ())), None) or next(
        (
            candidate(request.source, asked, given, {file.name for file in assignment.provided}).path
            for asked in assignment.asked_files
            if asked.role == Role.CODE
        ),
        None,
    )
    if code is None or not code.is_file():
        return None
    try:
        program = own_program(code, assignment)
    except (SubmissionError, UsageError):
        return None  # whoever packs it says what is wrong
    stated = [
        _StatedId(found[0], Place(file, found[1]))
        for file, text in (program.source or {}).items()
        if file not in program.modules and (found := written_id(text)) is not None
    ]
    return stated[-1] if stated else None
