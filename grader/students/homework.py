"""A student's homework and the assignment that it is for, found from where the student works.

It looks for the folder that a course handed out, or for the course around it, reads the assignment with
the student's own values, and picks the file. It decides which assignment a command is about. It never
reads the program in the file, and runs nothing.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.course.locate import Course, located_course, student_assignment
from grader.course.variant_values import own_values
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.assignment_versions import Value
from grader.domain.errors import NoAssignmentFound, UsageError
from grader.domain.formatting import listed, named
from grader.files.known_folders import (
    ASSIGNMENT_FILE,
    PUBLIC_GLOB,
    handed_out_folder,
    is_incomplete,
    public_checks,
)
from grader.students.own_machine import file_content, homework_file


@dataclass(frozen=True)
class LocalAssignment:
    """An assignment as students have it.

    Attributes:
        datasets: The folder of its data set files.
        values: What was drawn for this copy, by name.
        part: The only part that is asked for; the assignment then has its checks alone. Empty: all parts.
    """

    assignment: Assignment
    datasets: Path
    values: dict[str, Value] = field(default_factory=dict)
    part: str = ""

    @property
    def public_checks(self) -> Sequence[Path]:
        """The check files."""
        return public_checks(self.assignment.folder)

    def of_part(self, part: str) -> "LocalAssignment":
        """The same with the checks of one part alone.

        Raises:
            UsageError: There is no such part.
        """
        checks = tuple(spec for spec in self.assignment.checks if spec.component == part)
        if part == SUBMISSION or not checks:
            raise UsageError(_no_part(part, parts(self.assignment)))
        return replace(self, assignment=replace(self.assignment, checks=checks), part=part)


def parts(assignment: Assignment) -> tuple[str, ...]:
    """The names of the parts that have checks, in their order."""
    components = dict.fromkeys(spec.component for spec in assignment.checks)
    return tuple(name for name in components if name != SUBMISSION)


def _no_part(part: str, names_of_parts: Sequence[str]) -> str:
    lower = {name.lower(): name for name in names_of_parts}
    close = difflib.get_close_matches(part.lower(), lower, n=1)
    meant = f" Is `{lower[close[0]]}` meant?" if close else ""
    listed_names = listed([f"`{name}`" for name in names_of_parts], limit=len(names_of_parts))
    return f"There is no part {named(part)}.{meant} The parts that can be checked are {listed_names}."


def local_assignment(
    near: Sequence[Path],
    *,
    folder: Path | None = None,
    assignment_id: str | None = None,
    course: Path | None = None,
) -> LocalAssignment:
    """The assignment in a folder that the course handed out, or the template of a course's assignment.

    Args:
        near: Where to look for the handed-out files, in this order: beside the homework, the working folder.
            A folder of an assignment's reference means that assignment.
        folder: The folder with them, when the person names it.
        assignment_id: The id of an assignment of a course, whose template is then used. It need not be given
            where the course has one assignment.
        course: The course's folder; None: it is looked for as in every command.

    Raises:
        NoAssignmentFound: None was named, and there is none, or there are several.
        UsageError: What was named is not an assignment.
        CourseError: One of its files is malformed.
    """
    if folder is not None:
        return _handed_out(folder)
    if assignment_id is not None:
        return _template_of(located_course(course), assignment_id)
    if (complete := handed_out_folder(near)) is not None:
        return _handed_out(complete)
    for candidate in near:
        if is_incomplete(candidate) and not (candidate / "checks").is_dir():
            return _handed_out(candidate)  # says which of the two is missing
    around = _course_around(course)
    if around is not None:
        assignments = around.assignments()
        near_ids = [name for name in assignments if any(_within(place, around, name) for place in near)]
        if len(near_ids or assignments) == 1:
            return _template_of(around, (near_ids or assignments)[0])
        ids = ", ".join(around.assignments())
        raise NoAssignmentFound(
            f"Which assignment of the course is meant? Say so: --assignment ID ({ids or 'none yet'})."
        )
    raise NoAssignmentFound(
        f"No assignment was found: {ASSIGNMENT_FILE} and {PUBLIC_GLOB} are not in {_folder_names(near)}. "
        "Go to the folder that the course handed out, or name it: --assignment-folder FOLDER."
    )


def _within(place: Path, course: Course, assignment_id: str) -> bool:
    """Whether a folder belongs to the reference of an assignment."""
    return place.resolve().is_relative_to((course.root / "reference" / assignment_id).resolve())


def _course_around(named: Path | None) -> Course | None:
    """The course that is named, or else the one around the working folder, if any."""
    try:
        return located_course(named)
    except UsageError:
        if named is not None:
            raise
        return None


def _template_of(course: Course, assignment_id: str) -> LocalAssignment:
    """What students receive of a course's assignment."""
    course.reference(assignment_id)  # refuses an unknown id
    template = course.root / "template" / assignment_id
    if not template.is_dir():
        raise UsageError(
            f"The course has no template/{assignment_id} yet. Make it: grader template {assignment_id}"
        )
    return local_at(template, course.datasets)


def _handed_out(folder: Path) -> LocalAssignment:
    return local_at(folder, folder / "datasets")


def local_at(folder: Path, datasets: Path) -> LocalAssignment:
    """The assignment in a folder.

    Args:
        datasets: The folder of its data set files.

    Raises:
        CourseError: One of its files is malformed.
    """
    assignment = student_assignment(folder)
    return LocalAssignment(assignment, datasets, own_values(folder, assignment.variant))


def _folder_names(folders: Sequence[Path]) -> str:
    return " or in ".join(dict.fromkeys(str(folder.resolve()) for folder in folders))


# --- homework --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HomeworkRequest:
    """Which homework is meant.

    Attributes:
        working: The folder that the student works in.
        file: The script or notebook; None: homework.py, or homework.ipynb, in `working`.
        folder: The folder that the course handed out; None: looked for beside the file, and in `working`.
        assignment_id: Which assignment, in a course's own folder.
        course: The course's folder; None: looked for in the folders above.
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
