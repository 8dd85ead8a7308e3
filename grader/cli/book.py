"""What the commands about a gradebook have in common: their options, and the book that they work on."""

import contextlib
import getpass
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.domain.evidence import Evidence
    from grader.gradebook import Gradebook
    from grader.results.revision import Decision, Revision

BOOK_VARIABLE = "GRADER_GRADEBOOK"
WHO_VARIABLE = "GRADER_BY"
Command = TypeVar("Command", bound=Callable[..., Any])


def gradebook_option(command: Command) -> Command:
    """`--gradebook`: the parameter `gradebook`."""
    return click.option(
        "--gradebook",
        envvar=BOOK_VARIABLE,
        metavar="URL",
        help="Where the gradebook is, e.g. postgresql://host/name. Default: $GRADER_GRADEBOOK, or "
        "OUT/gradebook.sqlite.",
    )(command)


def by_option(command: Command) -> Command:
    """`--by`: the parameter `by`."""
    return click.option(
        "--by",
        envvar=WHO_VARIABLE,
        metavar="NAME",
        help="Who you are, for the record. Default: $GRADER_BY, or your login name.",
    )(command)


_COURSE = click.option(
    "--course", type=click.Path(path_type=Path), help="The course folder (default: found upward)."
)
_ASSIGNMENT = click.option(
    "--assignment",
    "assignment_id",
    metavar="ID",
    help="The assignment, e.g. vit_defects. Default: the only one in the gradebook.",
)


def book_options(command: Command) -> Command:
    """The options of commands that add to a book: `assignment_id`, `course`, `gradebook`, `by`."""
    for option in (_COURSE, by_option, gradebook_option, _ASSIGNMENT):
        command = option(command)
    return command


def lower_option(command: Command) -> Command:
    """`--allow-lower`: the parameter `allow_lower`."""
    return click.option("--allow-lower", is_flag=True, help="Grades that were released may fall.")(command)


def operator(by: str | None) -> str:
    """Who runs the command.

    Raises:
        UsageError: Nobody says so.
    """
    from grader.domain.formatting import printable

    name = " ".join(printable(by or "").split())
    if not name:
        try:
            name = getpass.getuser()
        except (OSError, KeyError, ImportError):
            raise UsageError(f"Say who you are, for the record: --by NAME, or ${WHO_VARIABLE}.") from None
    return name


def reason(why: str) -> str:
    """What was given by `--why`, on one line.

    Raises:
        UsageError: It is empty.
    """
    from grader.domain.formatting import printable

    told = " ".join(printable(why).split())
    if not told:
        raise UsageError("--why is empty. Say why in a sentence: students and colleagues read it.")
    return told


def now() -> datetime:
    """The time, to a second."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Desk:
    """A book, its assignment as it is today, and who works on it."""

    out: Path
    book: "Gradebook"
    assignment: Assignment
    who: str

    def require_student(self, student_id: str) -> None:
        """Raises unless the book knows the student.

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
        decide: "Decision | None" = None,
        absent: "Sequence[Evidence]" = (),
        allow_lower: bool = False,
    ) -> "Revision":
        """As `grader.results.revision.revised`, with the desk's own."""
        from grader.results.revision import revised

        return revised(
            self.assignment,
            self.book,
            self.out,
            who=self.who,
            cause=cause,
            clock=now,
            decide=decide,
            absent=absent,
            allow_lower=allow_lower,
        )


@contextlib.contextmanager
def desk(
    out: Path, *, assignment_id: str | None, course: Path | None, gradebook: str | None, by: str | None
) -> Iterator[Desk]:
    """The book of a results folder, for one command.

    Raises:
        UsageError: There is no such book or assignment.
        CourseError: A file of the course is malformed.
    """
    from grader.course.assignment_file import read_assignment
    from grader.course.locate import located_course
    from grader.gradebook import Gradebook

    with Gradebook(out, gradebook, assignment_id=assignment_id) as book:
        assignment_id = _the_one(out, book.assignments(), assignment_id)
        assignment = read_assignment(located_course(course).reference(assignment_id))
        catch_up(out, book, assignment)
        yield Desk(out, book, assignment, operator(by))


def catch_up(out: Path, book: "Gradebook", assignment: Assignment) -> None:
    """Write what tells of an earlier state of the book, as after a kill, and say so.

    Raises:
        UsageError: The book cannot be used.
    """
    from grader.domain.formatting import printable
    from grader.results.catching_up import caught_up

    told = caught_up(assignment, book, out, now)
    if told:
        click.echo(printable(f"note: {told}"), err=True)


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


def told_revision(revision: "Revision", done: str) -> None:
    """Print whose total changed, from what to what, and what was done."""
    from grader.domain.formatting import printable

    for change in revision.changes:
        click.echo(printable(str(change)))
    if revision.stray:
        click.echo(
            printable(
                f"note: the assignment no longer has {', '.join(revision.stray)}; what people decided about "
                "it is kept and does not count."
            ),
            err=True,
        )
    totals = len(revision.changes)
    click.echo(printable(f"{done} {totals} {'total' if totals == 1 else 'totals'} changed.".lstrip()))
