"""When submissions were due and came, as people decide it after they were graded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.decisions.reason import stated
from grader.domain.edit import Edit, Extended, InTime, Received
from grader.domain.result import Result
from grader.domain.score import LateRecord
from grader.gradebook import Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession


@dataclass(frozen=True)
class ArrivalDecision:
    """What follows from when a submission came.

    Attributes:
        late: None where the assignment has no deadline.
    """

    late: LateRecord | None
    revision: Revision


def record_received(
    session: ClassSession, student_id: str, moment: datetime | None, *, why: str, allow_lower: bool = False
) -> ArrivalDecision:
    """Record when the files that were graded came. Whatever comes later comes when the LMS says.

    Args:
        moment: With its zone; None takes back what people said before.
        why: Where that is from: the student reads it.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such student or reason, or a released grade would fall.
    """
    in_utc = None if moment is None else moment.astimezone(UTC)

    def decided(digest: str, reason: str) -> Received:
        return Received(
            who=session.who,
            when=session.clock(),
            why=reason,
            student_id=student_id,
            digest=digest,
            moment=in_utc,
        )

    return _arrival(session, student_id, decided, why, allow_lower)


def record_in_time(
    session: ClassSession, student_id: str, *, why: str, allow_lower: bool = False
) -> ArrivalDecision:
    """Record that the files that were graded came in time, whatever the LMS says: see `record_received`."""

    def decided(digest: str, reason: str) -> InTime:
        return InTime(who=session.who, when=session.clock(), why=reason, student_id=student_id, digest=digest)

    return _arrival(session, student_id, decided, why, allow_lower)


def _arrival(
    session: ClassSession, student_id: str, decided: Callable[[str, str], Edit], why: str, allow_lower: bool
) -> ArrivalDecision:
    """What follows from an edit of the submission's digest and the reason."""
    reason = stated(why)
    session.require_student(student_id)

    def decide(snapshot: Snapshot, _: object) -> Sequence[Edit]:
        digest = snapshot.evidence[student_id].submission_digest
        return [decided(digest, reason)]

    revision = session.revised(f"received {student_id}", decide=decide, allow_lower=allow_lower)
    return ArrivalDecision(revision.score(student_id).late, revision)


@dataclass(frozen=True)
class Regrade:
    """What scoring a class again came to.

    Attributes:
        extensions: How many deadlines were given that had not been.
        unknown: The students with an extension and without a result, sorted.
    """

    revision: Revision
    extensions: int = 0
    unknown: tuple[str, ...] = ()


def regrade(
    session: ClassSession,
    *,
    extensions: Mapping[str, datetime] | None = None,
    source: str = "",
    allow_lower: bool = False,
) -> Regrade:
    """Score the stored evidence with the rubric as it is now. No student's code runs.

    Args:
        extensions: Student -> a deadline of the student's own, given after the fact.
        source: The name of the list that they are from.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: A released grade would fall.
    """
    deadlines = extensions or {}

    def decide(_: object, results: Sequence[Result]) -> Sequence[Edit]:
        why = f"An extension, by {source}."
        return extension_edits(results, deadlines, who=session.who, when=session.clock(), why=why)

    given = decide if extensions is not None else None
    revision = session.revised("regrade", decide=given, allow_lower=allow_lower)
    known = {result.score.student_id for result in revision.results}
    return Regrade(revision, len(revision.edits), tuple(sorted(deadlines.keys() - known)))


def extension_edits(
    results: Sequence[Result], deadlines: Mapping[str, datetime], *, who: str, when: datetime, why: str
) -> list[Extended]:
    """The edits that give students deadlines of their own, without those whose deadline is that already.

    Args:
        deadlines: By student; those without a result are left out.
    """
    edits = []
    for result in results:
        student_id, late = result.score.student_id, result.score.late
        wanted = deadlines.get(student_id)
        if wanted is not None and (late is None or not late.extended or late.due != wanted):
            deadline = wanted.astimezone(UTC)
            edits.append(Extended(who=who, when=when, why=why, student_id=student_id, deadline=deadline))
    return edits
