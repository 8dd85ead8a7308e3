"""Computes the score of a submission: all lines of its rubric, lateness, and the total.

It combines the lines, applies people's decisions, and takes off the penalty for lateness as far as the time
is known. It determines the state of the whole score. It never decides about the points of a single line.
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
    """How late a submission is and what that costs; None if there is no deadline.

    Args:
        assignment: Has the deadline and the rule.
        evidence: Says when the submission came, as far as that is known.
        total: The points before any penalty; None if they are withheld.
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
    """The time of arrival and the deadline; a decision outweighs the LMS, and the last one counts.

    A decision about when a submission came concerns only those files. If a student has two own deadlines, one
    given with the run and one decided since, the later counts.
    """
    delivery = evidence.delivery
    own_deadlines = [edit for edit in edits if isinstance(edit, Extended)][-1:]
    deadlines = [
        deadline
        for deadline in (delivery.extension, *(edit.deadline for edit in own_deadlines))
        if deadline is not None
    ]
    extension = max(deadlines, default=None)
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
    """How long after the deadline the submission came, in seconds; None if that is unknown.

    0 or less is in time; within the grace period it is 0.
    """
    due, received = came.extension or assignment.deadline, came.received_at
    if due is None or received is None or (due.tzinfo is None) != (received.tzinfo is None):
        return None
    late = (received - due).total_seconds()
    return 0.0 if 0 < late <= assignment.late.grace_minutes * 60 else late


def _record(assignment: Assignment, came: Arrival, late: float | None, total: float | None) -> LateRecord:
    if came.in_time or (late is not None and late <= 0):
        return LateRecord("in_time", 0, 0.0, total, asked=False, reason="It came on time.")
    if late is not None:
        return _late(assignment, late, total)
    if came.marked:
        return LateRecord(
            state="unknown",
            days=None,
            penalty=None,
            total_after=total if assignment.late.points_per_day is None or total == 0 else None,
            asked=True,
            reason="It is marked as late, but not by how much: a person looks it up. Nothing was taken off.",
        )
    reason = "Nothing shows when it was handed in, so nothing was taken off."
    return LateRecord("unknown", None, None, total, asked=False, reason=reason)


def _late(assignment: Assignment, seconds: float, total: float | None) -> LateRecord:
    rule, days = assignment.late, math.ceil(seconds / DAY)
    if rule.points_per_day is None:
        reason = "A person decides what follows from it; the points here do not reflect it."
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
        evidence: The evidence about the submission.
        edits: People's decisions, oldest first. Those about other students are ignored, as are those about
            items and checks that the assignment no longer has (`stray_targets` names them).

    Returns:
        One line per rubric item, in its order. The total sums the known points. It is None if the submission
        was refused, if the grader failed, and (withheld) if a required file is missing. A person's ruling
        ends that, and in the first two cases so do people's points for every line. If the ruling says that
        the rest counts, items that could not be judged for lack of code give no points.

    Raises:
        UsageError: The evidence is about another assignment.
        EngineError: The evidence has a status that does not exist.
    """
    if evidence.assignment_id != assignment.id:
        raise UsageError(
            f"{evidence.student_id}: the evidence is about '{evidence.assignment_id}', "
            f"not '{assignment.id}'. Score it with its own assignment."
        )
    own_edits = [edit for edit in edits if edit.student_id in (None, evidence.student_id)]
    waived = waived_checks(assignment, own_edits)
    claim = claimed(evidence, own_edits)
    accepted = acceptance(evidence, own_edits)
    evidence = replace(with_waived(assignment, with_acceptance(evidence, accepted), waived), claim=claim)
    status, reason = _status(assignment, evidence)
    unscorable, ruled = _why_unscorable(status, evidence), rulings(status, evidence, own_edits)
    consequences = forbidden(assignment.forbidden, evidence.forbidden, evidence.findings, evidence.unproven)
    lines = []
    for item in assignment.rubric:
        if unscorable and not item.by_person:
            line = undecided_line(item, unscorable)
            if lifts(ruled):
                line = lost_line(item, handed_in=status is GradeStatus.REFUSED)
        elif unscorable:
            line = person_line(item)
        else:
            line = scored_line(item, assignment, evidence, consequences, waived)
        lines.append(marked_line(line, item, assignment, own_edits))
    known_points = rounded(sum(line.points for line in lines if line.points is not None))
    decided = rounded(sum(line.maximum for line in lines if line.state == LineState.DECIDED))
    ruled_total = total_of(
        status, reason, known_points, ruled, decided=all(line.points is not None for line in lines)
    )
    return Score(
        student_id=evidence.student_id,
        status=status,
        lines=tuple(lines),
        total=ruled_total.points,
        decided=rounded(assignment.maximum) if ruled_total.closed else decided,
        maximum=rounded(assignment.maximum),
        reason=ruled_total.reason,
        closed=ruled_total.closed,
        edits=ruled_total.edits,
        waived=tuple(waived.items()),
        late=late_record(assignment, evidence, ruled_total.points, own_edits),
        claim=claim,
        lower=lower_run(own_edits),
        ownership=ownership(own_edits),
        released=release(own_edits),
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


def _why_unscorable(status: GradeStatus, evidence: Evidence) -> str:
    """Why no item can be scored automatically; empty if they can."""
    if status is GradeStatus.ENGINE_ERROR:
        return f"The grader failed, so nothing is known. {evidence.reason}".strip()
    if status is GradeStatus.REFUSED:
        return evidence.reason or "The submission cannot be graded."
    if Role.CODE in evidence.missing:
        return "No code was handed in, so there is nothing to check."
    return ""
