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
from grader.domain.student_history import NO_HISTORY, History
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
from grader.scoring.late_days import penalty, tokens_left, tokens_used, tokens_words
from grader.scoring.measurements import plain
from grader.scoring.rubric_lines import forbidden, lost_line, person_line, scored_line, undecided_line

DAY = 86_400  # seconds


def late_record(
    assignment: Assignment,
    evidence: Evidence,
    total: float | None,
    edits: Sequence[Edit] = (),
    history: History = NO_HISTORY,
) -> LateRecord | None:
    """How late a submission is and what that costs; None where there is no deadline.

    Args:
        assignment: Its deadline and its rule.
        evidence: When the submission came, as far as that is known.
        total: The points before any penalty; None when they are withheld.
        edits: Those about the student, oldest first, of any kind.
        history: The late days that other assignments have used.
    """
    came = _arrival(evidence, edits)
    due = came.extension or assignment.deadline
    if not came.marked and due is None:
        return None
    late = None if came.in_time else _seconds_late(assignment, came)
    left = tokens_left(assignment.late_tokens, history) if assignment.late_tokens is not None else None
    record = _record(assignment, came, late, total, left)
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


def _record(
    assignment: Assignment, came: Arrival, late: float | None, total: float | None, left: int | None
) -> LateRecord:
    """The record, without what is known of times.

    Args:
        left: The late days that there are for this assignment; None where the course has none.
    """
    if came.in_time or (late is not None and late <= 0):
        return LateRecord("in_time", 0, 0.0, total, asked=False, reason="It came in time.", tokens_left=left)
    if late is not None:
        return _late(assignment, late, total, left)
    if came.marked:
        return LateRecord(
            state="unknown",
            days=None,
            penalty=None,
            total_after=total if assignment.late.points_per_day is None or total == 0 else None,
            asked=True,
            reason="It is marked as late without saying by how much: a person looks it up. "
            "Nothing was taken off.",
            tokens_left=left,
        )
    reason = "Nothing tells when it was handed in, so nothing was taken off."
    return LateRecord("unknown", None, None, total, asked=False, reason=reason, tokens_left=left)


def _late(assignment: Assignment, seconds: float, total: float | None, left: int | None) -> LateRecord:
    rule, days = assignment.late, math.ceil(seconds / DAY)
    used = tokens_used(rule, days, total, left or 0)
    counting = days - used
    spent = (
        ""
        if left is None or assignment.late_tokens is None
        else tokens_words(assignment.late_tokens, used, left)
    )
    rest = None if left is None else left - used

    def record(penalty: float | None, after: float | None, reason: str, *, asked: bool = False) -> LateRecord:
        told = f"{reason} {spent}".rstrip()
        return LateRecord("late", days, penalty, after, asked, told, tokens_used=used, tokens_left=rest)

    late = how_late(seconds)
    if used and not counting:
        return record(0.0, total, f"{late}: nothing is taken off.")
    if rule.points_per_day is None:
        reason = "A person decides what follows from it; the points here do not."
        return record(None, total, reason, asked=True)
    counted = f"{counting} {'day' if counting == 1 else 'days'}"
    begun = "" if late == f"{counted} late" else f" so {counted}"
    shown = f"{late},{begun} at {plain(rule.points_per_day)} points each"
    if used:
        shown = f"{late}, of which {counted} at {plain(rule.points_per_day)} points each"
    if rule.most_points is not None and counting * rule.points_per_day > rule.most_points:
        shown += f" and at most {plain(rule.most_points)} in all"
    lost = rounded(penalty(rule, counting, total))
    after = None if total is None else rounded(total - lost)
    told = f"{shown}: {plain(lost)} points are taken off"
    told += "." if total is None or after is None else f", so {plain(total)} become {plain(after)}."
    return record(lost, after, told)


# --- submission score ------------------------------------------------------------------------------------


def score(
    assignment: Assignment,
    evidence: Evidence,
    *,
    edits: Sequence[Edit] = (),
    history: History = NO_HISTORY,
) -> Score:
    """The points that the evidence is worth under the assignment's rubric.

    Args:
        assignment: The rubric, the checks and the forbidden parts.
        evidence: What was found out about the submission.
        edits: What people decided, oldest first. Those about other students do not count, nor those about
            items and checks that the assignment no longer has (`stray_targets` names them).
        history: The student's other attempts, and the late days that other assignments have used.

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
        late=late_record(assignment, evidence, made.points, own, history),
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
