"""The score of one submission: all lines of its rubric, lateness, and the total.

It puts the lines together, lets what people decided go over them, and takes off what a late submission
costs (`lateness`); where the assignment allows a resubmission, the points of two attempts become one score
(`resubmission`). It says which state the whole score is in. It never decides about the points of a single
line.
"""

from collections.abc import Sequence
from dataclasses import replace

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, LineState, Score, rounded
from grader.domain.student_history import NO_HISTORY, History
from grader.domain.submission import Role
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
from grader.scoring.lateness import late_record
from grader.scoring.resubmission import is_first, own_attempts, resubmitted
from grader.scoring.rubric_lines import forbidden, lost_line, person_line, scored_line, undecided_line
from grader.scoring.tries import own_try


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
    points = _score_of_attempts(assignment, evidence, own, history)
    return replace(points, tries=own_try(assignment, evidence, own, history))


def _score_of_attempts(
    assignment: Assignment, evidence: Evidence, own: Sequence[Edit], history: History
) -> Score:
    """The points of the attempt that counts, and what it regains of those that an earlier one lost.

    Args:
        own: The edits about the student, oldest first.
    """
    newest = _attempt_score(assignment, evidence, own, history)
    if assignment.resubmission is None:
        return newest
    about = own_attempts(assignment, evidence, own, history)
    if about.first is None:
        return replace(newest, resubmission=about.ignored)
    first = _attempt_score(assignment, about.first, about.edits, history)
    if not is_first(first):
        return newest
    combined = resubmitted(assignment, about, first, newest)
    return replace(combined, late=late_record(assignment, about.first, combined.total, own, history))


def _attempt_score(
    assignment: Assignment, evidence: Evidence, own: Sequence[Edit], history: History
) -> Score:
    """The points of one attempt, whatever other attempts there are.

    Args:
        own: The edits about the student, oldest first.
    """
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
