"""Opens a class's gradebook for somebody's work: decisions, exports and publications all begin here."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.course.locate import located_course
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.gradebook import Gradebook, Snapshot
from grader.results.class_pages import CatchUp, caught_up
from grader.results.folder_use import in_use
from grader.results.followed_class import FollowedClass
from grader.results.revision import Decision, Review, Revision, revised


@dataclass(frozen=True)
class SessionRequest:
    """A request to work on a class.

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
    """A gradebook, its current assignment, and who works on it.

    Attributes:
        out: The folder of the results.
        who: The person, for the record.
        clock: The time, with its zone.
        review: Asked before a decision is recorded; None: every decision is recorded.
        followed: The class in the memory of a process that writes the pages later; None: the class is read
            for each decision, and its pages are written with it.
    """

    out: Path
    book: Gradebook
    assignment: Assignment
    who: str
    clock: Callable[[], datetime]
    review: Review | None = None
    followed: FollowedClass | None = None

    def snapshot(self, *, attempts: bool = False) -> Snapshot:
        """The state of the gradebook at this moment.

        Args:
            attempts: See `Gradebook.snapshot`.

        Raises:
            UsageError: The gradebook is empty, or a record is damaged.
        """
        if self.followed is not None and (self.assignment.compares_attempts or not attempts):
            return self.followed.now(self.assignment).snapshot
        return self.book.snapshot(attempts=attempts)

    def require_student(self, student_id: str) -> None:
        """Check that the gradebook knows the student.

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
        """Call `grader.results.revision.revised` with the session's own gradebook.

        Raises:
            UsageError: A released grade would fall, or the gradebook cannot be used; nothing was changed.
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
            review=self.review,
            followed=self.followed,
        )


@contextlib.contextmanager
def class_session(
    request: SessionRequest, *, clock: Callable[[], datetime], on_catch_up: Callable[[CatchUp], None] | None
) -> Iterator[ClassSession]:
    """The gradebook of a results folder, opened for one piece of work.

    Files that show an earlier state, as after a kill, are written again first.

    Args:
        on_catch_up: Called if there were such files, with what was done about them. None: they are left as
            they are, for somebody who writes them later.

    Raises:
        UsageError: There is no such gradebook or assignment, or persons are being forgotten in the folder.
        CourseError: A file of the course is malformed.
    """
    with (
        in_use(request.out),
        Gradebook(request.out, request.gradebook, assignment_id=request.assignment_id) as book,
    ):
        assignment_id = _chosen_assignment_id(request.out, book.assignments(), request.assignment_id)
        assignment = located_course(request.course).assignment(assignment_id)
        if on_catch_up is not None:
            catch_up = caught_up(assignment, book, request.out, clock)
            if catch_up is not None:
                on_catch_up(catch_up)
        yield ClassSession(request.out, book, assignment, request.who, clock)


def _chosen_assignment_id(out: Path, existing: Sequence[str], asked: str | None) -> str:
    """The id of the requested assignment, or of the only one in the gradebook."""
    if not existing:
        raise UsageError(
            f"{out}: there is no gradebook in it. "
            "Give the --out folder of `grader grade`, and the --gradebook if it had one."
        )
    if asked is None and len(existing) > 1:
        raise UsageError(
            f"{out}: the gradebook holds several assignments: {', '.join(existing)}. "
            "Say which with --assignment."
        )
    if asked is not None and asked not in existing:
        raise UsageError(
            f"{out}: the gradebook holds nothing about '{asked}', only about {', '.join(existing)}. "
            "Give another folder, or another --assignment."
        )
    return asked or existing[0]
