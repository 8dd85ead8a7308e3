"""One score of two attempts: what a resubmission regains of the points that the first one lost.

The first is the last attempt that came before the student's deadline and has points to add to: one that
could not be opened never takes the place of one before it. An attempt that comes after the deadline, while
resubmissions are open, regains the stated share of what the first lost, item by item, and takes nothing
away: `first + share * max(0, later - first)`. Without a first the ordinary rule on late work applies. Marks
that were given before the resubmission came are about the first. Points that a person types for an
automatic item after it came stand as they are. It never decides how late an attempt is (`lateness` does).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from grader.domain.assignment import Assignment, RubricItem
from grader.domain.assignment_rules import Resubmission
from grader.domain.edit import Because, Edit, Marked
from grader.domain.errors import EngineError
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, LineState, Score, ScoreLine, rounded
from grader.domain.several_attempts import ResubmissionRecord, ResubmissionState, TwoAttempts
from grader.domain.submission_result import Attempt, History
from grader.scoring.lateness import arrival, seconds_late
from grader.scoring.measurements import percent, plain

AttemptScore = Callable[[Evidence, Sequence[Edit]], Score]
"""The score of one attempt by itself, with the decisions that are about it."""


class When(Enum):
    """When an attempt came."""

    IN_TIME = auto()
    RESUBMITTED = auto()  # after the deadline, while resubmissions are open
    TOO_LATE = auto()
    UNKNOWN = auto()


def when_it_came(assignment: Assignment, evidence: Evidence, edits: Sequence[Edit]) -> When:
    """When an attempt came, by the LMS and by what people decided.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    came = arrival(evidence, edits)
    late = seconds_late(assignment, came)
    due = came.due(assignment.deadline)
    if came.in_time or (late is not None and late <= 0):
        return When.IN_TIME
    if late is None or came.received_at is None or due is None:
        return When.UNKNOWN
    return When.RESUBMITTED if came.received_at <= _rule(assignment).end(due) else When.TOO_LATE


@dataclass(frozen=True)
class OwnAttempts:
    """The two attempts that a score is made of.

    Attributes:
        first: The attempt from before the deadline; None where the one that is scored stands alone.
        first_score: Its score by itself; None without a first.
        record: What is recorded of the resubmission, before its points are known; None without a first.
        ignored: The same of a resubmission that came too late and does not count; None if there is none.
    """

    first: Evidence | None = None
    first_score: Score | None = None
    record: ResubmissionRecord | None = None
    ignored: ResubmissionRecord | None = None


def own_attempts(
    assignment: Assignment,
    evidence: Evidence,
    edits: Sequence[Edit],
    history: History,
    *,
    alone: AttemptScore,
) -> OwnAttempts:
    """The attempts that the score of a submission is made of.

    Args:
        evidence: Of the attempt that counts.
        edits: Those about the student, oldest first, of any kind.
        alone: Scores one attempt.
    """
    others = _others(assignment, evidence, edits, history)
    own = when_it_came(assignment, evidence, edits)
    if own is When.RESUBMITTED:
        begun = _begun(others, history.first_run(evidence))
        first = _first(others[When.IN_TIME], edits, begun, alone)
        if first is not None:
            record = _record(assignment, evidence, edits, ResubmissionState.COUNTED)
            return OwnAttempts(first[0].evidence, first[1], record)
    ignored = _last(others[When.TOO_LATE], edits)
    if ignored is None or own is When.TOO_LATE:
        return OwnAttempts()
    record = _record(assignment, ignored.evidence, edits, ResubmissionState.TOO_LATE)
    reason = "A later submission came after resubmissions had ended, so it does not count."
    return OwnAttempts(ignored=replace(record, reason=reason))


@dataclass(frozen=True)
class Instead:
    """The attempt that counts in the place of the one that was examined last.

    Attributes:
        because: `TOO_LATE` or `CAME_BEFORE`.
    """

    attempt: Attempt
    because: Because


def attempt_instead(
    assignment: Assignment,
    evidence: Evidence,
    edits: Sequence[Edit],
    history: History,
    *,
    alone: AttemptScore,
) -> Instead | None:
    """The attempt that counts in the place of one that came after resubmissions had ended, or before another.

    Args:
        evidence: Of the attempt that was examined last.
        edits: Those about the student, oldest first, of any kind.
        alone: Scores one attempt.

    Returns:
        Of one that came too late: the resubmission that came before it, else the first. Of one that came
        before the deadline and was examined after others: the last resubmission. None where the attempt
        counts itself, also if nothing that has points came before the deadline and it came last.
    """
    if assignment.resubmission is None:
        return None
    own = when_it_came(assignment, evidence, edits)
    others = _others(assignment, evidence, edits, history)
    resubmission = _last(others[When.RESUBMITTED], edits)
    if own is When.IN_TIME:
        too_late = _last(others[When.TOO_LATE], edits)
        if resubmission is None and too_late is not None:
            begun = _begun(others, None)
            usable = _first(others[When.IN_TIME], edits, begun, alone) is not None
            if not usable and not is_first(alone(evidence, _about_first(edits, begun))):
                return Instead(too_late, Because.CAME_BEFORE)
        return Instead(resubmission, Because.CAME_BEFORE) if resubmission is not None else None
    if own is not When.TOO_LATE:
        return None
    first = _first(others[When.IN_TIME], edits, _begun(others, history.first_run(evidence)), alone)
    return Instead(resubmission or first[0], Because.TOO_LATE) if first is not None else None


def with_one_deadline(evidence: Evidence, history: History) -> tuple[Evidence, History]:
    """The same, with one deadline of the student's own: it is given while one attempt is graded, for all.

    It is the one that the attempt has which is scored, else the latest.
    """
    known = (attempt.evidence.delivery.extension for attempt in history.attempts)
    extension = evidence.delivery.extension or max(filter(None, known), default=None)

    def extended(attempt: Evidence) -> Evidence:
        return replace(attempt, delivery=replace(attempt.delivery, extension=extension))

    if extension is None:
        return evidence, history
    attempts = (replace(attempt, evidence=extended(attempt.evidence)) for attempt in history.attempts)
    return extended(evidence), replace(history, attempts=tuple(attempts))


def _others(
    assignment: Assignment, evidence: Evidence, edits: Sequence[Edit], history: History
) -> dict[When, list[Attempt]]:
    """The student's attempts beside the one that is scored, by when they came."""
    others: dict[When, list[Attempt]] = {when: [] for when in When}
    for attempt in history.attempts:
        if attempt.digest != evidence.submission_digest:
            others[when_it_came(assignment, attempt.evidence, edits)].append(attempt)
    return others


def _begun(others: Mapping[When, Sequence[Attempt]], own_run: int | None) -> int | None:
    """The number of the first run of a resubmission; None: none is in the gradebook yet.

    Args:
        others: The attempts beside the one that is scored, which came after the deadline itself.
        own_run: The number of its first run.
    """
    runs = [
        attempt.first_run
        for when, attempts in others.items()
        if when is not When.IN_TIME
        for attempt in attempts
    ]
    return min([*runs, *([own_run] if own_run is not None else [])], default=None)


def _first(
    in_time: Sequence[Attempt], edits: Sequence[Edit], begun: int | None, alone: AttemptScore
) -> tuple[Attempt, Score] | None:
    """The last attempt in time that has points to add to, and its score; None if there is none.

    Args:
        begun: The number of the first run of a resubmission.
    """
    about = _about_first(edits, begun)
    left = list(in_time)
    while (attempt := _last(left, edits)) is not None:
        found = alone(attempt.evidence, about)
        if is_first(found):
            return attempt, found
        left.remove(attempt)
    return None


def is_first(score: Score) -> bool:
    """Whether an attempt has points that a resubmission can add to; where the grader failed, it may have."""
    return score.status is GradeStatus.ENGINE_ERROR or (score.total is not None and not score.closed)


def resubmitted(assignment: Assignment, attempts: OwnAttempts, later: Score) -> Score:
    """The score of both attempts, without what lateness costs.

    Args:
        attempts: By `own_attempts`, with a first one.
        later: The score of the resubmission by itself.
    """
    rule, record, first = _rule(assignment), attempts.record, attempts.first_score
    if record is None or first is None:
        raise EngineError(f"{later.student_id}: there is no resubmission to score. Report this.")
    known = replace(record, first=first.total, resubmitted=later.total)
    if later.closed or later.status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR):
        unusable = replace(
            known,
            state=ResubmissionState.UNUSABLE,
            resubmitted=None,
            asked=later.status is GradeStatus.ENGINE_ERROR,
            reason="The resubmission could not be graded, so the points from before the deadline stand.",
        )
        return replace(
            later,
            status=first.status,
            lines=first.lines,
            total=first.total,
            decided=first.decided,
            reason=first.reason,
            closed=False,
            edits=first.edits,
            resubmission=unusable,
        )
    lacks_files = later.status is GradeStatus.INCOMPLETE
    lines = tuple(
        _line(rule, item, before, after, lacks_files=lacks_files)
        for item, before, after in zip(assignment.rubric, first.lines, later.lines, strict=True)
    )
    total = rounded(sum(line.points for line in lines if line.points is not None))
    sums = [rounded(sum(line.points or 0.0 for line in score.lines)) for score in (first, later)]
    reason = (
        f"{plain(sums[0])} points before the deadline, {plain(sums[1])} in the resubmission: "
        f"{percent(rule.regains)} of the points that it wins back count, which makes {plain(total)}."
    )
    return replace(
        later,
        status=GradeStatus.GRADED,
        lines=lines,
        total=total,
        decided=rounded(sum(line.maximum for line in lines if line.state == LineState.DECIDED)),
        reason=first.reason if lacks_files else later.reason,
        edits=(),
        resubmission=replace(known, first=sums[0], resubmitted=sums[1], reason=reason),
    )


def _line(
    rule: Resubmission, item: RubricItem, first: ScoreLine, later: ScoreLine, *, lacks_files: bool
) -> ScoreLine:
    """The line of both attempts.

    Args:
        lacks_files: A required file is missing from the resubmission: what it has no points for is not open.
    """
    typed = len(later.edits) > len(first.edits) and later.edits[-1].new is not None
    if typed and not item.by_person:
        return later
    if first.points is None:
        if item.by_person or later.points is None:
            return later
        reason = f"Before the deadline: {first.reason} A person decides what the resubmission regains."
        return replace(later, points=None, state=LineState.AWAITING, floor=None, reason=reason)
    if later.points is None:
        return first if lacks_files else replace(later, floor=first.points)
    both = TwoAttempts(first.points, later.points)
    points = rounded(first.points + rule.regains * max(0.0, later.points - first.points))
    if points == later.points:
        return replace(later, attempts=both)
    reason = (
        f"{later.reason} {plain(first.points)} points before the deadline, {plain(later.points)} in the "
        f"resubmission: {plain(points)} count."
    )
    return replace(later, points=points, reason=reason.lstrip(), attempts=both)


def _last(attempts: Sequence[Attempt], edits: Sequence[Edit]) -> Attempt | None:
    """The attempt that came last; of those of which nobody knows the time, the one examined last."""

    def order(attempt: Attempt) -> tuple[float, int]:
        received_at = arrival(attempt.evidence, edits).received_at
        return (received_at.timestamp() if received_at is not None else 0.0, attempt.first_run)

    return max(attempts, key=order, default=None)


def _about_first(edits: Sequence[Edit], begun: int | None) -> tuple[Edit, ...]:
    """What people decided, without the marks that were given after a resubmission had come.

    A mark without a run is being given just now.

    Args:
        begun: The number of the first run of a resubmission; None: none is in the gradebook yet.
    """
    return tuple(
        edit
        for edit in edits
        if not isinstance(edit, Marked) or begun is None or (edit.run is not None and edit.run < begun)
    )


def _record(
    assignment: Assignment, evidence: Evidence, edits: Sequence[Edit], state: ResubmissionState
) -> ResubmissionRecord:
    came, rule = arrival(evidence, edits), _rule(assignment)
    due = came.due(assignment.deadline)
    if due is None or came.received_at is None:
        raise EngineError(f"{evidence.student_id}: nothing tells when it was resubmitted. Report this.")
    return ResubmissionRecord(state, rule.regains, rule.end(due), came.received_at, None, None, "")


def _rule(assignment: Assignment) -> Resubmission:
    if assignment.resubmission is None:
        raise EngineError(f"{assignment.id} has no rule on resubmissions. Report this.")
    return assignment.resubmission
