"""A class's gradebook, opened for somebody's work: decisions, exports and publications all begin with it."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.course.locate import located_course
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.gradebook import Gradebook
from grader.results.class_pages import CatchUp, caught_up
from grader.results.revision import Decision, Revision, revised


@dataclass(frozen=True)
class SessionRequest:
    """Which class is worked on, and by whom.

    Attributes:
        out: The folder of the results.
        who: The person, for the record.
        assignment_id: None: the only one that the gradebook holds.
        course: The course's folder; None: found upward from the working directory.
        gradebook: An SQLAlchemy URL; None: `gradebook.sqlite` in `out`.
    """

    out: Path
    who: str
    assignment_id: str | None = None
    course: Path | None = None
    gradebook: str | None = None


@dataclass(frozen=True)
class ClassSession:
    """A gradebook, its assignment as it is today, and who works on it.

    Attributes:
        out: The folder of the results.
        who: The person, for the record.
        clock: The time, with its zone.
    """

    out: Path
    book: Gradebook
    assignment: Assignment
    who: str
    clock: Callable[[], datetime]

    def require_student(self, student_id: str) -> None:
        """Raises unless the gradebook knows the student.

        Raises:
            UsageError: It does not.
        """
        if student_id not in self.book.students():
            raise UsageError(
                f"{self.out}: there is no student '{student_id}' in the gradebook. See scores.csv."
            )

    def revised(
        self,
        cause: str,
        *,
        decide: Decision | None = None,
        absent: Sequence[Evidence] = (),
        allow_lower: bool = False,
    ) -> Revision:
        """As `grader.results.revision.revised`, with the session's own.

        Raises:
            UsageError: A released grade would fall, or the book cannot be used; then nothing was changed.
        """
        return revised(
            self.assignment,
            self.book,
            self.out,
            who=self.who,
            cause=cause,
            clock=self.clock,
            decide=decide,
            absent=absent,
            allow_lower=allow_lower,
        )


@contextlib.contextmanager
def class_session(
    request: SessionRequest, *, clock: Callable[[], datetime], on_catch_up: Callable[[CatchUp], None]
) -> Iterator[ClassSession]:
    """The gradebook of a results folder, opened for one piece of work.

    Files that tell of an earlier state of it, as after a kill, are written again first.

    Args:
        on_catch_up: Is told when such files were there, and what became of them.

    Raises:
        UsageError: There is no such gradebook or assignment.
        CourseError: A file of the course is malformed.
    """
    with Gradebook(request.out, request.gradebook, assignment_id=request.assignment_id) as book:
        assignment_id = _the_one(request.out, book.assignments(), request.assignment_id)
        assignment = located_course(request.course).assignment(assignment_id)
        catch_up = caught_up(assignment, book, request.out, clock)
        if catch_up is not None:
            on_catch_up(catch_up)
        yield ClassSession(request.out, book, assignment, request.who, clock)


def _the_one(out: Path, known: Sequence[str], asked: str | None) -> str:
    """The assignment that is meant, among those that the book knows."""
    if not known:
        raise UsageError(
            f"{out}: there is no gradebook in it. "
            "Give the --out folder of `grader grade`, and the --gradebook if it had one."
        )
    if asked is None and len(known) > 1:
        raise UsageError(
            f"{out}: the gradebook holds several assignments: {', '.join(known)}. Say which by --assignment."
        )
    if asked is not None and asked not in known:
        raise UsageError(
            f"{out}: the gradebook holds nothing about '{asked}', only about {', '.join(known)}. "
            "Give another folder, or another --assignment."
        )
    return asked or known[0]
