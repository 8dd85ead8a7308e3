"""What people decide about one student's submission: the run that counts, the claim, an accepted file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.decisions.reason import stated
from grader.domain.assignment import Assignment
from grader.domain.edit import Accepted, Claimed, Edit, RunChosen
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.submission import Role
from grader.gradebook import Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession


@dataclass(frozen=True)
class ChosenRun:
    """Which run counts now.

    Attributes:
        number: Its number, 1 for the student's first.
    """

    number: int
    revision: Revision


def choose_run(
    session: ClassSession, student_id: str, number: int | None, *, why: str, allow_lower: bool = False
) -> ChosenRun:
    """Say which of a student's runs counts, until the student hands in something new. Nothing runs again.

    Args:
        number: As `grader history` numbers them; None: the latest there is.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student, run or reason, or a released grade would fall.
    """
    reason, chosen = stated(why), number or 0

    def decide(*_: object) -> Sequence[Edit]:
        nonlocal chosen
        runs = session.book.runs(student_id)
        chosen = runs[-1] if number is None else number
        if chosen not in runs:
            known = ", ".join(map(str, runs))
            raise UsageError(f"There is no run '{number}'. Give one of {known}, or latest.")
        return [
            RunChosen(who=session.who, when=session.clock(), why=reason, student_id=student_id, number=chosen)
        ]

    revision = session.revised(f"count {student_id}", decide=decide, allow_lower=allow_lower)
    return ChosenRun(chosen, revision)


def record_claim(
    session: ClassSession, student_id: str, accuracy: float | None, *, why: str, allow_lower: bool = False
) -> Revision:
    """Record the test accuracy that a student's report claims, where it could not be read.

    Args:
        accuracy: 0 to 1; None takes back what was recorded before.
        why: Where it stands.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student or reason, or a released grade would fall.
    """
    reason = stated(why)
    session.require_student(student_id)

    def decide(*_: object) -> Sequence[Edit]:
        return [
            Claimed(
                who=session.who, when=session.clock(), why=reason, student_id=student_id, accuracy=accuracy
            )
        ]

    return session.revised(f"claim {student_id}", decide=decide, allow_lower=allow_lower)


def accept_file(
    session: ClassSession, student_id: str, file: str | None, *, why: str, allow_lower: bool = False
) -> Revision:
    """Accept a file that was set aside as a student's report, while the submission that counts has it.

    Args:
        file: Its name, as the report and the class page show it; None takes back what was accepted.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student, file or reason, the file cannot be the report, or a released
            grade would fall.
    """
    reason = stated(why)
    session.require_student(student_id)

    def decide(snapshot: Snapshot, _: object) -> Sequence[Edit]:
        if file is not None:
            _require_acceptable(session.assignment, snapshot.evidence[student_id], file)
        return [Accepted(who=session.who, when=session.clock(), why=reason, student_id=student_id, file=file)]

    return session.revised(f"accept {student_id}", decide=decide, allow_lower=allow_lower)


def _require_acceptable(assignment: Assignment, evidence: Evidence, file: str) -> None:
    """Raises unless a file can count as the report.

    Raises:
        UsageError: It cannot.
    """
    whose = f"'{evidence.student_id}'"
    if not any(required.role == Role.REPORT for required in assignment.files):
        raise UsageError(f"{assignment.id} asks for no report, so there is nothing to accept.")
    if Role.REPORT not in evidence.missing:
        raise UsageError(f"{whose} has a report already, or was graded without one: nothing is missing.")
    names = list(dict.fromkeys(refused.name for refused in evidence.refused_files))
    if file not in names:
        there = f"There is {', '.join(names)}." if names else "Nothing of theirs was set aside."
        raise UsageError(f"No file '{file}' of {whose} was set aside. {there}")
    suffix = Path(file).suffix.lower()
    for required in assignment.files:
        if required.role != Role.REPORT and suffix in required.suffixes:
            raise UsageError(f"{file} is not a report: {suffix} is what the {required.role} is handed in as.")
