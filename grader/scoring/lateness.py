"""How late one submission is, what that costs, and how many late days of the course it uses.

It decides when a submission came and was due, by what the LMS records and what people decided, and takes
off what the rule of the assignment says: never more than what is known of the time. Late days of the course
(the tokens of `[late] tokens`) are used first. Assignments use them in the order of their deadlines, in whole
days, and only where they leave the student more points. It never decides which of several attempts counts,
nor which other assignments used how many late days.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from grader.domain.assignment import Assignment
from grader.domain.assignment_rules import CourseLateDays, LatePolicy
from grader.domain.edit import Edit, Extended, InTime, Received
from grader.domain.evidence import Evidence
from grader.domain.score import LateRecord, how_late, rounded
from grader.domain.submission import Arrival
from grader.domain.submission_result import NO_HISTORY, History
from grader.scoring.measurements import plain

DAY = 86_400  # seconds


def late_record(
    assignment: Assignment,
    evidence: Evidence,
    total: float | None,
    edits: Sequence[Edit] = (),
    history: History = NO_HISTORY,
    *,
    withheld: bool = False,
) -> LateRecord | None:
    """How late a submission is and what that costs; None if there is no deadline.

    Args:
        assignment: Has the deadline and the rule.
        evidence: Says when the submission came, as far as that is known.
        total: The points before any penalty; None if they are withheld.
        edits: Those about the student, oldest first, of any kind.
        history: The late days that other assignments have used.
        withheld: The total is held for now: the penalty and the late days are those of the total, and nothing
            says what is left of it.
    """
    came = arrival(evidence, edits)
    due = came.due(assignment.deadline)
    if not came.marked and due is None:
        return None
    late = None if came.in_time else seconds_late(assignment, came)
    left = (
        late_days_left(assignment.course_late_days, history)
        if assignment.course_late_days is not None
        else None
    )
    record = _record(assignment, came, late, total, left, withheld)
    if withheld:
        record = replace(record, total_after=None)
    reason = f"{record.reason} ({came.decided.why})" if came.decided else record.reason
    return replace(
        record,
        reason=reason,
        seconds=late,
        received_at=came.received_at,
        due=due,
        extended=came.extension is not None and due == came.extension,
        decided=f"{came.decided.who}: {came.decided.why}" if came.decided else "",
    )


def arrival(evidence: Evidence, edits: Sequence[Edit]) -> Arrival:
    """The time of arrival and the deadline; a decision outweighs the LMS, and the last one counts.

    A decision about when a submission came concerns only those files. If a student has two own deadlines, one
    given with the run and one decided since, the later counts.
    """
    delivery = evidence.delivery
    own_deadlines = [edit for edit in edits if isinstance(edit, Extended)][-1:]
    deadlines = (delivery.extension, *(edit.deadline for edit in own_deadlines))
    extension = max((deadline for deadline in deadlines if deadline is not None), default=None)
    for edit in reversed(edits):
        match edit:
            case InTime(digest=evidence.submission_digest):
                return Arrival(evidence.received_at, True, marked=False, extension=extension, decided=edit)
            case Received(digest=evidence.submission_digest, moment=None):
                break
            case Received(digest=evidence.submission_digest):
                return Arrival(edit.moment, False, marked=False, extension=extension, decided=edit)
    return Arrival(evidence.received_at, False, delivery.marked_late, extension)


def seconds_late(assignment: Assignment, came: Arrival) -> float | None:
    """How long after the deadline the submission came, in seconds; None if that is unknown.

    0 or less is in time; within the grace period it is 0.
    """
    due, received = came.due(assignment.deadline), came.received_at
    if due is None or received is None or (due.tzinfo is None) != (received.tzinfo is None):
        return None
    late = (received - due).total_seconds()
    return 0.0 if 0 < late <= assignment.late.grace_minutes * 60 else late


def _record(
    assignment: Assignment,
    came: Arrival,
    late: float | None,
    total: float | None,
    left: int | None,
    withheld: bool,
) -> LateRecord:
    """The record; `late_record` adds the times.

    Args:
        left: The late days that there are for this assignment; None where the course has none.
        withheld: The reason does not mention the total.
    """
    if came.in_time or (late is not None and late <= 0):
        return LateRecord("in_time", 0, 0.0, total, asked=False, reason="It came on time.", tokens_left=left)
    if late is not None:
        return _late(assignment, late, total, left, withheld)
    if came.marked:
        return LateRecord(
            state="unknown",
            days=None,
            penalty=None,
            # where late work costs points, by how much the total falls is not known
            total_after=total if assignment.late.points_per_day is None or total == 0 else None,
            asked=True,
            reason="It is marked as late, but not by how much: a person looks it up. Nothing was taken off.",
            tokens_left=left,
        )
    reason = "Nothing shows when it was handed in, so nothing was taken off."
    return LateRecord("unknown", None, None, total, asked=False, reason=reason, tokens_left=left)


def _late(
    assignment: Assignment, seconds: float, total: float | None, left: int | None, withheld: bool
) -> LateRecord:
    rule, days = assignment.late, math.ceil(seconds / DAY)
    used = late_days_used(rule, days, total, left or 0)
    counting = days - used
    spent = (
        ""
        if left is None or assignment.course_late_days is None
        else _late_days_words(assignment.course_late_days, used, left)
    )
    rest = None if left is None else left - used

    def record(penalty: float | None, after: float | None, reason: str, *, asked: bool = False) -> LateRecord:
        sentences = f"{reason} {spent}".rstrip()
        return LateRecord("late", days, penalty, after, asked, sentences, tokens_used=used, tokens_left=rest)

    late = how_late(seconds)
    if used and not counting:
        return record(0.0, total, f"{late}: nothing is taken off.")
    if rule.points_per_day is None:
        undecided = "A person decides what follows from it; the points here do not reflect it."
        return record(None, total, undecided, asked=True)
    # whole sentences, or catalogs do not find them
    counted = f"{counting} {'day' if counting == 1 else 'days'}"
    if used:
        shown = f"{late}, of which {counted} at {plain(rule.points_per_day)} points each"
    elif late == f"{counted} late":
        shown = f"{late}, at {plain(rule.points_per_day)} points each"
    else:
        shown = f"{late}, so {counted} at {plain(rule.points_per_day)} points each"
    if rule.most_points is not None and counting * rule.points_per_day > rule.most_points:
        shown = f"{shown} and at most {plain(rule.most_points)} in all"
    lost = rounded(_penalty(rule, counting, total))
    after = None if total is None or withheld else rounded(total - lost)
    if total is None or after is None:
        return record(lost, after, f"{shown}: {plain(lost)} points are taken off.")
    taken = f"{shown}: {plain(lost)} points are taken off, so {plain(total)} become {plain(after)}."
    return record(lost, after, taken)


# --- late days -------------------------------------------------------------------------------------------


def _penalty(rule: LatePolicy, days: int, total: float | None) -> float:
    """The points that so many late days cost under a rule that has points for a day.

    Args:
        total: The points that there are: no more can be lost; None where they are withheld.
    """
    bounds = [bound for bound in (rule.most_points, total) if bound is not None]
    return min([days * (rule.points_per_day or 0.0), *bounds])


def late_days_left(late_days: CourseLateDays, history: History) -> int:
    """How many late days the assignments with earlier deadlines have left to this one."""
    used = dict(history.late_days)
    return max(0, late_days.count - sum(used.get(earlier, 0) for earlier in late_days.earlier))


def late_days_used(rule: LatePolicy, days: int, total: float | None, left: int) -> int:
    """How many late days a submission uses: the fewest that cost the student the least.

    Without points for a day a person decides about the days that remain, so that each one helps. Where there
    are no points, or they are withheld, nothing can be saved.

    Args:
        days: That had begun since the deadline.
        left: Late days that there are.
    """
    most = min(days, left)
    if most <= 0 or not total:
        return 0
    if rule.points_per_day is None:
        return most
    least = _penalty(rule, days - most, total)
    return next(used for used in range(most + 1) if _penalty(rule, days - used, total) <= least)


def _late_days_words(late_days: CourseLateDays, used: int, left: int) -> str:
    """What became of the late days, in a sentence for the student.

    Args:
        used: Of them, here.
        left: That there were for this assignment.
    """
    if used:
        return f"{used} of {late_days.count} late days used here, {left - used} left."
    if not left:
        return f"None of the {late_days.count} late days of the course are left."
    return f"No late day would help here: {left} of {late_days.count} are left."
