"""How late a submission is, and what that costs: never more than what is known."""

import math

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import LateRecord
from grader.scoring.points import plain, rounded

DAY = 86_400  # seconds


def seconds_late(assignment: Assignment, evidence: Evidence) -> float | None:
    """How long after the student's deadline the submission came, in seconds; None when that is unknown.

    0 or less is in time, and so is what comes within the time of grace: it gives 0.
    """
    due, received = evidence.delivery.extension or assignment.deadline, evidence.received_at
    if due is None or received is None or (due.tzinfo is None) != (received.tzinfo is None):
        return None
    late = (received - due).total_seconds()
    return 0.0 if 0 < late <= assignment.late.grace_minutes * 60 else late


def late_record(assignment: Assignment, evidence: Evidence, total: float | None) -> LateRecord | None:
    """How late a submission is and what that costs; None where there is no deadline.

    Args:
        assignment: Its deadline and its rule.
        evidence: When the submission came, as far as that is known.
        total: The points before any penalty; None when they are withheld.
    """
    marked = evidence.delivery.marked_late
    if not marked and (evidence.delivery.extension or assignment.deadline) is None:
        return None
    late = seconds_late(assignment, evidence)
    if late is None and marked:
        return LateRecord(
            state="unknown",
            days=None,
            penalty=None,
            total_after=total if assignment.late.points_per_day is None else None,
            asked=True,
            reason="It is marked as late without saying by how much: a person looks it up. "
            "Nothing was taken off.",
        )
    if late is None:
        reason = "Nothing tells when it was handed in, so nothing was taken off."
        return LateRecord("unknown", None, None, total, asked=False, reason=reason)
    if late <= 0:
        return LateRecord("in_time", 0, 0.0, total, asked=False, reason="It came in time.")
    return _late(assignment, math.ceil(late / DAY), total)


def _late(assignment: Assignment, days: int, total: float | None) -> LateRecord:
    rule = assignment.late
    if rule.points_per_day is None:
        reason = "A person decides what follows from it; the points here do not."
        return LateRecord("late", days, None, total, asked=True, reason=reason)
    penalty = days * rule.points_per_day
    shown = f"{days} {'day' if days == 1 else 'days'} late, at {plain(rule.points_per_day)} points each"
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
