"""The class whose answers are marked, and its list of tasks, which follows the gradebook.

A task is one submission and one part that a person marks (`q6`, `q10.patches`); a team has one. Pages name a
submission by its handle, a short text drawn from the class's salt, which does not reveal whose it is. The
list of tasks stands in indexed tables and is brought up to date by what was added to the gradebook since, by
whatever command. It never gives a mark (`mark_saving` does).
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.gradebook import Gradebook


@dataclass(frozen=True)
class Desk:
    """A class that is marked. All functions of this package take it; it may be used by several threads.

    Attributes:
        out: The folder of the results.
        book: Its gradebook, opened for writing.
        assignment: As it was read at the start; `assignment_now` follows changes of the rubric items.
    """

    out: Path
    book: Gradebook
    assignment: Assignment


class UnknownTask(UsageError):
    """There is no such submission, or nothing of it is marked under this target."""


def assignment_now(desk: Desk) -> Assignment:
    """The assignment with the rubric items and comments that stand in its files at this moment.

    Raises:
        CourseError: One of these files is malformed.
    """
    raise NotImplementedError


def refresh(desk: Desk, now: datetime) -> None:
    """Bring the list of tasks up to date with the gradebook, as all functions that read it do themselves.

    Call it once when a console starts: the first time, it scores the whole class.
    """
    raise NotImplementedError


def handle_of(desk: Desk, student_id: str) -> str:
    """The handle of a student's submission; for a team, that of all its members.

    Raises:
        UnknownTask: The gradebook does not list the student, or nothing of it is to be marked.
    """
    raise NotImplementedError


def students_of(desk: Desk, handle: str) -> tuple[str, ...]:
    """The ids of the students of a submission, the first one's first. Not for blind pages: see `audit_log`.

    Raises:
        UnknownTask: There is no such submission.
    """
    raise NotImplementedError
