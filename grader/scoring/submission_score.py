"""The score of one submission: all lines of its rubric, lateness, and the total.

It puts the lines together, lets what people decided go over them, and takes off what a late submission
costs: never more than what is known of the time. It says which state the whole score is in. It never
decides about the points of a single line.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Extended, InTime, Received
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, LateRecord, LineState, Score, how_late, rounded
from grader.domain.submission import Arrival, Role
from grader.scoring.decided_by_people import (
    acceptance,
    claimed,
    lifts,
    lower_run,
    marked_line,
    ownership,
    release,
    rulings,
    total_of,
    waived_checks,
    with_acceptance,
    with_waived,
)
from grader.scoring.measurements import plain
from grader.scoring.rubric_lines import forbidden, lost_line, person_line, scored_line, undecided_line

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


# --- submission score ------------------------------------------------------------------------------------


def score(assignment: Assignment, evidence: Evidence, *, edits: Sequence[Edit] = ()) -> Score:
    """The points that the evidence is worth under the assignment's rubric.

    Args:
        assignment: The rubric, the checks and the forbidden parts.
        evidence: What was found out about the submission.
        edits: What people decided, oldest first. Those about other students do not count, nor those about
            items and checks that the assignment no longer has (`stray_targets` names them).

    Returns:
        One line per rubric item, in its order. The total sums the known points; it is None for what was
        refused, for a fault of the grader, and (withheld) when a required file is missing, until a person
        has the last word, or people gave the points of every line of the first two. Where the last word is
        that the rest counts, what could not be judged because there is no code to judge gives no points.

    Raises:
        UsageError: The evidence is about another assignment.
        EngineError: The evidence has a status that does not exist.
    """
    if evidence.assignment_id != assignment.id:
        raise UsageError(
            f"{evidence.student_id}: the evidence is about '{evidence.assignment_id}', "
            f"not '{assignment.id}'. Score it with its own assignment."
        )
    own = [edit for edit in edits if edit.student_id in (None, evidence.student_id)]
    waived = waived_checks(assignment, own)
    claim = claimed(evidence, own)
    accepted = acceptance(evidence, own)
    evidence = replace(with_waived(assignment, with_acceptance(evidence, accepted), waived), claim=claim)
    status, reason = _status(assignment, evidence)
    nothing, ruled = _nothing_found(status, evidence), rulings(status, evidence, own)
    found = forbidden(assignment.forbidden, evidence.forbidden, evidence.findings, evidence.unproven)
    lines = []
    for item in assignment.rubric:
        if nothing and not item.by_person:
            line = undecided_line(item, nothing)
            if lifts(ruled):
                line = lost_line(item, handed_in=status is GradeStatus.REFUSED)
        elif nothing:
            line = person_line(item)
        else:
            line = scored_line(item, assignment, evidence, found, waived)
        lines.append(marked_line(line, item, assignment, own))
    known = rounded(sum(line.points for line in lines if line.points is not None))
    decided = rounded(sum(line.maximum for line in lines if line.state == LineState.DECIDED))
    made = total_of(status, reason, known, ruled, decided=all(line.points is not None for line in lines))
    return Score(
        student_id=evidence.student_id,
        status=status,
        lines=tuple(lines),
        total=made.points,
        decided=rounded(assignment.maximum) if made.closed else decided,
        maximum=rounded(assignment.maximum),
        reason=made.reason,
        closed=made.closed,
        edits=made.edits,
        waived=tuple(waived.items()),
        late=late_record(assignment, evidence, made.points, own),
        claim=claim,
        lower=lower_run(own),
        ownership=ownership(own),
        released=release(own),
        accepted=accepted,
    )


def _status(assignment: Assignment, evidence: Evidence) -> tuple[GradeStatus, str]:
    if evidence.status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR):
        return GradeStatus(evidence.status), evidence.reason
    if evidence.status is not None:
        raise EngineError(
            f"{evidence.student_id}: the evidence has the status '{evidence.status}', which does not exist. "
            "Grade the submission again."
        )
    if evidence.absent:
        return GradeStatus.INCOMPLETE, "Nothing was handed in"
    if evidence.missing and not evidence.partial:
        asked = evidence.origin.asked_id(evidence.student_id)
        names = [_file_name(assignment, asked, role) for role in evidence.missing]
        told = f"{names[0]} is missing" if len(names) == 1 else f"{' and '.join(names)} are missing"
        return GradeStatus.INCOMPLETE, told
    return GradeStatus.GRADED, evidence.reason


def _file_name(assignment: Assignment, student_id: str, role: str) -> str:
    asked = next((file for file in assignment.files if file.role == role), None)
    if asked is None:
        return f"the {role} file"
    stem = asked.stem or assignment.file_stem
    return stem.replace("{student_id}", student_id) + " or ".join(asked.suffixes)


def _nothing_found(status: GradeStatus, evidence: Evidence) -> str:
    """Why no item can be scored automatically; empty when they can."""
    if status is GradeStatus.ENGINE_ERROR:
        return f"The grader failed, so nothing is known. {evidence.reason}".strip()
    if status is GradeStatus.REFUSED:
        return evidence.reason or "The submission cannot be graded."
    if Role.CODE in evidence.missing:
        return "No code was handed in, so there is nothing to check."
    return ""
