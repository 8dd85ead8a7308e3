"""A check that was wrong counts as passed, for the whole class."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.course.toml_file import remedy
from grader.decisions.reason import stated
from grader.domain.edit import Edit, Waived
from grader.domain.errors import UsageError
from grader.results.revision import Revision
from grader.results.session import ClassSession


@dataclass(frozen=True)
class WaivedCheck:
    """What a waiver came to.

    Attributes:
        check: The check's id, without `test_`.
    """

    check: str
    revision: Revision


def waive_check(
    session: ClassSession, check: str, *, why: str, undo: bool = False, allow_lower: bool = False
) -> WaivedCheck:
    """Count a check as passed for everybody, also for later submissions. No student's code runs.

    Args:
        check: Its id, with or without `test_`.
        undo: The check counts again.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such check or reason, or a released grade would fall.
    """
    reason, known = stated(why), [spec.id for spec in session.assignment.checks]
    name = check.removeprefix("test_")
    if name not in known:
        advice = remedy(name, known, "The class page lists them all.")
        raise UsageError(f"'{session.assignment.id}' has no check '{check}'. {advice}")

    def decide(*_: object) -> Sequence[Edit]:
        return [Waived(who=session.who, when=session.clock(), why=reason, check=name, lifted=undo)]

    revision = session.revised(
        f"{'unwaive' if undo else 'waive'} {name}", decide=decide, allow_lower=allow_lower
    )
    return WaivedCheck(name, revision)
