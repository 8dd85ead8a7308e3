"""A student's homework and its assignment, found: checking and training on one's own machine need both."""

from dataclasses import dataclass
from pathlib import Path

from grader.students.handout import LocalAssignment, local_assignment
from grader.students.own_machine import file_content, homework_file


@dataclass(frozen=True)
class HomeworkRequest:
    """Which homework is meant.

    Attributes:
        working: The folder that the student works in.
        file: The script or notebook; None: homework.py, or homework.ipynb, in `working`.
        folder: The folder that the course handed out; None: looked for beside the file, and in `working`.
        assignment_id: In a course's own folder: the assignment.
        course: The course's folder; None: found upward.
    """

    working: Path
    file: Path | None = None
    folder: Path | None = None
    assignment_id: str | None = None
    course: Path | None = None


@dataclass(frozen=True)
class Homework:
    """A homework's file, which can be read, and its assignment."""

    path: Path
    local: LocalAssignment


def homework(request: HomeworkRequest) -> Homework:
    """The homework that is meant.

    Raises:
        UsageError: There is no such file, or no assignment.
        CourseError: A file of the assignment is malformed.
    """
    path = request.file or homework_file(request.working)
    file_content(path)  # a missing file is the first thing to say
    local = local_assignment(
        (path.parent, request.working),
        folder=request.folder,
        assignment_id=request.assignment_id,
        course=request.course,
    )
    return Homework(path, local)
