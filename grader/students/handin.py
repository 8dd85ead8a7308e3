"""The files that a student hands in, put together: with whose they are, and for which assignment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.students.candidates import checked_id, inferred_id
from grader.students.handout import local_assignment
from grader.students.packing import Package, package


@dataclass(frozen=True)
class HandinRequest:
    """A hand-in that is to be put together.

    Attributes:
        source: Where the student's files are.
        working: The folder that the student works in.
        student_id: None: as the files' names begin.
        given: Files that the student names; the others are looked for.
        out: Where to; None: `handin` in `source`.
        zipped: Also make a zip of all of them.
        force: Replace files of the same names with other content.
        folder, assignment_id, course: The assignment: see `HomeworkRequest`.
    """

    source: Path
    working: Path
    student_id: str | None = None
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
    given_id = request.student_id
    return package(
        request.source,
        local.assignment,
        checked_id(given_id) if given_id else inferred_id(request.source, local.assignment),
        given=request.given,
        out=request.out,
        force=request.force,
        zipped=request.zipped,
    )
