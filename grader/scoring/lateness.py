"""How late a submission is, and what that costs: never more than what is known."""

import math
from collections.abc import Sequence
from dataclasses import replace

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Extended, InTime, Received
from grader.domain.evidence import Evidence
from grader.domain.score import LateRecord, how_late, rounded
from grader.domain.submission import Arrival
from grader.scoring.points import plain

DAY = 86_400  # seconds


def late_record(
    assignment: Assignment, evidence: Evidence, total: float | None, edits: Sequence[Edit] = ()
) -> LateRecord | None:
    """How late a submission is and what that costs; None where there is no deadline.

    Args:
        assignment: Its deadline and its rule.
        evidence: When the submission came, as far as that is known.
        total: The points before any penalty; None when they are withheld.
        edits: Those about the student, oldest first, of any kind.
    """
    came = _arrival(evidence, edits)
    due = came.extension or assignment.deadline
    if not came.marked and due is None:
        return None
    late = None if came.in_time else _seconds_late(assignment, came)
    record = _record(assignment, came, late, total)
    reason = f"{record.reason} ({came.decided.why})" if came.decided else record.reason
    return replace(
        record,
        reason=reason,
        seconds=late,
        received_at=came.received_at,
        due=due,
        extended=came.extension is not None,
        decided=f"{came.decided.who}: {came.decided.why}" if came.decided else "",
    )


def _arrival(evidence: Evidence, edits: Sequence[Edit]) -> Arrival:
    """What is known, the last decision first.

    A decision about when a submission came is about those files alone. Of two deadlines of a student's own,
    one given with the run and one decided since, the later counts.
    """
    delivery = evidence.delivery
    own = [edit for edit in edits if isinstance(edit, Extended)][-1:]
    given = [one for one in (delivery.extension, *(edit.deadline for edit in own)) if one is not None]
    extension = max(given, default=None)
    for edit in reversed(edits):
        match edit:
            case InTime(digest=evidence.submission_digest):
                return Arrival(evidence.received_at, True, marked=False, extension=extension, decided=edit)
            case Received(digest=evidence.submission_digest, moment=None):
                break
            case Received(digest=evidence.submission_digest):
                return Arrival(edit.moment, False, marked=False, extension=extension, decided=edit)
    return Arrival(evidence.received_at, False, delivery.marked_late, extension)


def _seconds_late(assignment: Assignment, came: Arrival) -> float | None:
    """How long after the deadline the submission came, in seconds; None when that is unknown.

    0 or less is in time, and so is what comes within the time of grace: it gives 0.
    """
    due, received = came.extension or assignment.deadline, came.received_at
    if due is None or received is None or (due.tzinfo is None) != (received.tzinfo is None):
        return None
    late = (received - due).total_seconds()
    return 0.0 if 0 < late <= assignment.late.grace_minutes * 60 else late


def _record(assignment: Assignment, came: Arrival, late: float | None, total: float | None) -> LateRecord:
    if came.in_time or (late is not None and late <= 0):
        return LateRecord("in_time", 0, 0.0, total, asked=False, reason="It came in time.")
    if late is not None:
        return _late(assignment, late, total)
    if came.marked:
        return LateRecord(
            state="unknown",
            days=None,
            penalty=None,
            total_after=total if assignment.late.points_per_day is None or total == 0 else None,
            asked=True,
            reason="It is marked as late without saying by how much: a person looks it up. "
            "Nothing was taken off.",
        )
    reason = "Nothing tells when it was handed in, so nothing was taken off."
    return LateRecord("unknown", None, None, total, asked=False, reason=reason)


def _late(assignment: Assignment, seconds: float, total: float | None) -> LateRecord:
    rule, days = assignment.late, math.ceil(seconds / DAY)
    if rule.points_per_day is None:
        reason = "A person decides what follows from it; the points here do not."
        return LateRecord("late", days, None, total, asked=True, reason=reason)
    penalty = days * rule.points_per_day
    counted = f"{days} {'day' if days == 1 else 'days'}"
    late = how_late(seconds)
    begun = "" if late == f"{counted} late" else f" so {counted}"
    shown = f"{late},{begun} at {plain(rule.points_per_day)} points each"
    if rule.most_points is not None and penalty > rule.most_points:
        penalty = rule.most_points
        shown += f" and at most {plain(penalty)} in all"
    if total is not None:
        penalty = min(penalty, total)
    penalty = rounded(penalty)
    after = None if total is None else rounded(total - penalty)
    told = f"{shown}: {plain(penalty)} points are taken off"
    told += "." if total is None or after is None else f", so {plain(total)} become {plain(after)}."
    return LateRecord("late", days, penalty, after, asked=False, reason=told)
